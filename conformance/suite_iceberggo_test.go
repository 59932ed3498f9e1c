package conformance_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/catalog/catalogtest"
	"github.com/apache/iceberg-go/catalog/rest"
)

// TestIcebergGo runs the suite that iceberg-go has for every catalog.
func TestIcebergGo(t *testing.T) {
	t.Parallel()
	uri := uriOf(t)
	catalogtest.RunCatalogTests(t, catalogtest.Config{
		SupportsNamespaceProperties: true,
		NewCatalog: func(t *testing.T) catalog.Catalog {
			t.Helper()
			c, err := rest.NewCatalog(t.Context(), "catalogd", uri)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			})
			return c
		},
	})
}

// integrationSources are iceberg-go's integration tests of its REST catalog, but for the
// one that looks into the catalog's private fields (TestProtocol_Config reads the list of
// endpoints itself).
func integrationSources(uri, warehouse string) map[string][]edit {
	return map[string][]edit{
		"rest_integration_test.go": {
			{`"http://localhost:8181"`, quoted(uri), "the container's address"},
			{"\t_ \"github.com/apache/iceberg-go/io/gocloud\"\n", "", "no object store is used"},
			{`"s3://warehouse/iceberg"`, quoted(warehouse + "/iceberg"), "the container's warehouse"},
			{
				`s.Equal("s3://warehouse/rest-integration-test/test-create-table", tbl.Location())`,
				`s.Contains(tbl.Location(), "/rest-integration-test/test-create-table")`,
				"catalogd's default locations are never used twice",
			},
			{"\tconst expectedLocation = \"s3://warehouse/rest-integration-test/test-write-commit-table\"\n", "", "the same"},
			{"s.Equal(expectedLocation, tbl.Location())", "expectedLocation := tbl.Location()", "the same"},
		},
		"scan_planning_integration_test.go": {
			{`"http://localhost:8182"`, quoted(uri), "the container's address"},
			{"\ts.assertJavaPlanningCredentials(response.StorageCredentials)\n", "", "a local warehouse needs no credentials"},
			{"\ts.Require().Len(raw.StorageCredentials, 1)\n", "", "the same"},
			{"\ts.Equal(\"gcp\", raw.StorageCredentials[0].Prefix)\n", "", "the same"},
			{"\ts.Equal(integrationGCSToken, raw.StorageCredentials[0].Config[integrationGCSTokenKey])\n", "", "the same"},
		},
	}
}

func quoted(s string) string {
	b, _ := json.Marshal(s) // a string can always be marshalled
	return string(b)
}

// TestIcebergGo_Integration runs iceberg-go's own integration tests, from the module's
// sources, against a catalogd of their own: they drop and make the same namespace each.
func TestIcebergGo_Integration(t *testing.T) {
	t.Parallel()
	own := startServer(t)
	folder, err := filepath.Abs("suites/iceberggo")
	if err != nil {
		t.Fatal(err)
	}
	module, overlay := moduleFolder(t, "github.com/apache/iceberg-go"), map[string]string{}
	for name, edits := range integrationSources(own.uri, "file://"+filepath.Join(own.folder, "data", "warehouse")) {
		edited := filepath.Join(t.TempDir(), name)
		editedSource(t, filepath.Join(module, "catalog", "rest", name), edited, edits)
		overlay[filepath.Join(folder, name)] = edited
	}
	raw, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "overlay.json")
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "test", "-v", "-count=1", "-tags", "duckdb_arrow,integration", "-overlay", file, "./suites/iceberggo")
	cmd.Env = append(os.Environ(), "RUN_INTEGRATION_TESTS=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
	passed, skipped := strings.Count(string(out), "    --- PASS: "), strings.Count(string(out), "    --- SKIP: ")
	t.Logf("iceberg-go's integration tests: %d passed, %d skipped", passed, skipped)
	if passed < icebergGoTests || skipped > 0 {
		t.Errorf("%d tests passed and %d were skipped, want %d and 0:\n%s", passed, skipped, icebergGoTests, out)
	}
}

// icebergGoTests is how many tests the sources hold.
const icebergGoTests = 11

// moduleFolder is where the sources of a dependency are.
func moduleFolder(t *testing.T, module string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", module)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v", cmd, err)
	}
	return strings.TrimSpace(string(out))
}
