package main

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/catalogd/catalogd/"

// arrows is the package map of ARCHITECTURE.md: for each package of ours, every package
// of ours that it may import. Adapters point at the domain and never at each other; test
// files are not counted.
var arrows = map[string][]string{
	"openapi": {},

	"api":            {"api/rest", "api/mvrest", "api/managerest", "catalog", "catalog/scan", "mv"},
	"api/rest":       {},
	"api/mvrest":     {},
	"api/managerest": {},

	"catalog":                   {"catalog/metadata"},
	"catalog/metadata":          {},
	"catalog/metadata/difftest": {},
	"catalog/metadata/fuzz":     {},
	"catalog/postgres":          {"catalog", "catalog/scan"},
	"catalog/postgres/pgserver": {},
	"catalog/postgres/pgtest":   {"catalog/postgres/pgserver", "migrations"},
	"catalog/scan":              {"catalog"},
	"catalog/purge":             {"catalog"},
	"catalog/storage":           {"catalog"},
	"catalog/storetest":         {"catalog"},

	"mv":                   {"catalog", "catalog/metadata", "mv/plan", "mv/sqltext"},
	"mv/sqltext":           {},
	"mv/plan":              {"mv/sqltext"},
	"mv/postgres":          {"mv", "catalog"},
	"mv/changes":           {"mv", "catalog", "catalog/metadata", "mv/plan"},
	"mv/changes/tabletest": {},
	"mv/publish":           {"mv", "catalog", "catalog/metadata", "mv/plan", "mv/changes"},
	"mv/exec/duckdb":       {"mv", "mv/plan", "catalog"},
	"mv/exec/exectest":     {"mv", "mv/plan", "catalog"},

	"jobs":        {"mv", "catalog"},
	"migrations":  {},
	"conformance": {},

	"conformance/linear": {},
	"conformance/rck":    {},

	"cmd/catalogd/client": {"api/mvrest", "api/managerest"},
	"cmd/catalogd/lake":   {},
	"cmd/catalogd/demo":   {"api/mvrest", "cmd/catalogd/client", "cmd/catalogd/lake"},
}

// isProgram tells the packages that wire everything together: they may import all but
// the black-box suites.
func isProgram(pkg string) bool {
	return strings.HasPrefix(pkg, "cmd/") || pkg == "bench" || strings.HasPrefix(pkg, "bench/")
}

// TestArrows fails when a package imports against the map or is missing from it. The test
// cache does not see new imports in other packages: run it with -count=1 when in doubt.
func TestArrows(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-tags", "duckdb_arrow", "-json=ImportPath,Imports", module+"...")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, &stderr)
	}
	seen := 0
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; seen++ {
		var p struct {
			ImportPath string   `json:"ImportPath"`
			Imports    []string `json:"Imports"`
		}
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		checkArrows(t, strings.TrimPrefix(p.ImportPath, module), p.Imports)
	}
	if seen < len(arrows)/2 {
		t.Errorf("go list showed %d packages, want about %d: the test has lost its subject", seen, len(arrows))
	}
}

func checkArrows(t *testing.T, pkg string, imports []string) {
	t.Helper()
	allowed, known := arrows[pkg]
	if !known && !isProgram(pkg) {
		t.Errorf("package %s is not in the map: say here what it may import", pkg)
	}
	for _, imp := range imports {
		dep, ours := strings.CutPrefix(imp, module)
		switch {
		case !ours:
		case isProgram(pkg):
			if dep == "conformance" {
				t.Errorf("%s must not import %s", pkg, dep)
			}
		case !slices.Contains(allowed, dep):
			t.Errorf("%s must not import %s", pkg, dep)
		}
	}
}
