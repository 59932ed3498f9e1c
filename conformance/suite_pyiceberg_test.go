package conformance_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// PyIceberg's tests are in its source distribution, not in what pip installs.
const (
	pyIcebergSource   = "pyiceberg-0.12.0"
	pyIcebergChecksum = "19f165d298054f9436108691098b60fa0fa99d0eff5fb884700c43b29334a39d"
)

// pyIcebergTests is how many of its integration tests are there to be passed, after those
// that exceptions.txt and the plugin leave out.
const pyIcebergTests = 575

// TestPyIceberg_Integration runs PyIceberg's own integration tests. The plugin below
// suites/pyiceberg points them at catalogd; exceptions.txt beside it gives the reasons for
// what is left out.
func TestPyIceberg_Integration(t *testing.T) {
	t.Parallel()
	slowSuite(t)
	interpreter := python(t)
	own := startServer(t)
	source := pyIcebergTestsFolder(t, interpreter)
	plugin, err := filepath.Abs("suites/pyiceberg")
	if err != nil {
		t.Fatal(err)
	}
	summary := filepath.Join(t.TempDir(), "summary.json")
	cmd := exec.CommandContext(t.Context(), interpreter, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "catalogd_plugin",
		"-m", "integration", "--tb=short", "-rxX", "tests/integration")
	cmd.Dir = source
	cmd.Env = append(os.Environ(),
		"CATALOGD_URI="+own.uri, "SUITE_SUMMARY="+summary,
		"PYTHONPATH="+plugin, "PYTHONDONTWRITEBYTECODE=1", "PYICEBERG_HOME="+t.TempDir(),
		"PYICEBERG_TEST_CATALOG=catalogd", "PYICEBERG_CATALOG__CATALOGD__TYPE=rest", "PYICEBERG_CATALOG__CATALOGD__URI="+own.uri)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
	raw, err := os.ReadFile(summary)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Passed, Failed, Skipped, Expected int
		LeftOut                           int `json:"left_out"`
		Unused                            []string
	}
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	t.Logf("PyIceberg: %d passed, %d failed, %d skipped, %d failed as expected, %d left out", got.Passed, got.Failed, got.Skipped, got.Expected, got.LeftOut)
	if got.Passed != pyIcebergTests || got.Failed > 0 || got.Skipped > 0 || len(got.Unused) > 0 {
		t.Errorf("%s, want %d passed and the rest explained:\n%s", raw, pyIcebergTests, out)
	}
}

// pyIcebergTestsFolder fetches the source distribution, unless an earlier run has, and
// returns a folder with its tests alone: its packages would hide the installed ones.
func pyIcebergTestsFolder(t *testing.T, interpreter string) string {
	t.Helper()
	cache := suiteCache(t, "pyiceberg")
	archive := filepath.Join(cache, pyIcebergSource+".tar.gz")
	if !intact(archive, pyIcebergChecksum) {
		cmd := exec.CommandContext(t.Context(), interpreter, "-m", "pip", "download", "--quiet", "--disable-pip-version-check",
			"--no-deps", "--no-binary", "pyiceberg", "--dest", cache, "pyiceberg==0.12.0")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", cmd, err, out)
		}
	}
	unpacked, out := unpack(t, archive, pyIcebergChecksum), t.TempDir()
	for _, name := range []string{"tests", "pyproject.toml"} {
		if err := os.Rename(filepath.Join(unpacked, name), filepath.Join(out, name)); err != nil {
			t.Fatal(err)
		}
	}
	return out
}
