package conformance_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// python is the interpreter that has PyIceberg. A run without it is told apart from one
// that passed: in CI it fails.
func python(t *testing.T) string {
	t.Helper()
	path := os.Getenv("CATALOGD_TEST_PYTHON")
	if path != "" {
		if _, err := os.Stat(path); err != nil {
			t.Fatalf("CATALOGD_TEST_PYTHON: %v; `make test` makes it", err)
		}
		return path
	}
	const how = "CATALOGD_TEST_PYTHON is not set, so PyIceberg is NOT tested: run `make test`, or install conformance/requirements.txt and name that Python"
	if os.Getenv("CI") != "" {
		t.Fatal(how)
	}
	t.Skip(how)
	return ""
}

// TestPyIceberg runs each script below pyiceberg/ in a process of its own: it prints what
// differs and exits with 1.
func TestPyIceberg(t *testing.T) {
	t.Parallel()
	interpreter := python(t)
	scripts, err := filepath.Glob("pyiceberg/*.py")
	if err != nil || len(scripts) < 2 {
		t.Fatalf("scripts = %v, %v", scripts, err)
	}
	for _, script := range scripts {
		name := filepath.Base(script)
		if name == "lake.py" {
			continue // what the others share
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), interpreter, "-W", "ignore", script)
			cmd.Env = append(os.Environ(), "CATALOGD_URI="+uriOf(t), "PYTHONDONTWRITEBYTECODE=1", "PYICEBERG_HOME="+t.TempDir())
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s", name, err, out)
			}
		})
	}
}
