package conformance_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
)

// openAPIExamples is how many requests schemathesis makes up for each operation, beside
// those that it derives from the document's limits.
const openAPIExamples = "10"

// TestOpenAPI has schemathesis send requests that it makes from our OpenAPI documents, right
// ones and wrong ones. No answer may be a 5xx, or one that the document does not foresee.
// It is not asked to complain of what is accepted: clients send more than any document
// says, and a catalog that is pedantic serves nobody.
func TestOpenAPI(t *testing.T) {
	t.Parallel()
	slowSuite(t)
	interpreter := python(t)
	own := startServer(t)
	hooks, err := filepath.Abs("suites/schemathesis")
	if err != nil {
		t.Fatal(err)
	}
	documents, err := filepath.Glob("../openapi/*.yaml")
	if err != nil || len(documents) < 2 {
		t.Fatalf("documents = %v, %v", documents, err)
	}
	for _, document := range documents {
		path, err := filepath.Abs(document)
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), interpreter, "-m", "schemathesis.cli", "run", path, "--url", own.uri,
			"--phases", "examples,coverage,fuzzing", "--max-examples", openAPIExamples, "--seed", "1", "--generation-database", "none",
			"--checks", "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,response_headers_conformance,unsupported_method",
			"--continue-on-failure", "--no-color", "--warnings", "off", "--suppress-health-check", "too_slow")
		cmd.Dir = t.TempDir()
		cmd.Env = append(os.Environ(), "CATALOGD_URI="+own.uri, "SCHEMATHESIS_HOOKS=catalogd_hooks", "PYTHONPATH="+hooks, "PYTHONDONTWRITEBYTECODE=1")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", cmd, err, out)
			continue
		}
		selected := number(out, `Selected: (\d+)/`)
		passed := number(out, `(\d+) passed\n`)
		t.Logf("schemathesis, %s: %d operations, %d requests passed", filepath.Base(path), selected, passed)
		operations := bytes.Count(fileOf(t, path), []byte("operationId:"))
		if selected != operations || passed < 10*operations {
			t.Errorf("%s has %d operations, %d were tested with %d requests:\n%s", path, operations, selected, passed, out)
		}
	}
}

// number is what the pattern's group matches last, or 0.
func number(out []byte, pattern string) int {
	found := regexp.MustCompile(pattern).FindAllSubmatch(out, -1)
	if len(found) == 0 {
		return 0
	}
	n, _ := strconv.Atoi(string(found[len(found)-1][1])) // digits
	return n
}

func fileOf(t *testing.T, path string) []byte {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
