package conformance_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
)

// The suites that iceberg-rust has for all its catalogs come with this crate.
const (
	loaderCrate    = "iceberg-catalog-loader"
	loaderVersion  = "0.10.1"
	loaderChecksum = "eed92bf01c88070fa32d1dcbfcd2f65e50804655b3ba7fd49f2c7a951dfcc115"
)

// rustTests is how many tests there are: 24 of iceberg-rust's and 2 of our own.
const rustTests = 26

// minRust is the version of Rust that iceberg-rust needs, 1.minRust.
const minRust = 94

// loaderEdits are the edits to iceberg-rust's suites.
var loaderEdits = map[string][]edit{
	"namespace_suite.rs":      nil,
	"schema_update_suite.rs":  nil,
	"table_register_suite.rs": nil,
	"table_rename_suite.rs":   nil,
	"table_suite.rs": {{
		"!file_io.exists(location).await?", "!common::is_there_for_good(&file_io, location).await?",
		"a purge that answers first and deletes the files then",
	}},
}

// TestRust runs iceberg-rust's client, through its crate iceberg-catalog-rest: its own
// suites and what suites/rust adds.
func TestRust(t *testing.T) {
	t.Parallel()
	slowSuite(t)
	needRust(t)
	own := startServer(t)
	workspace := filepath.Join(t.TempDir(), "rust")
	if err := os.CopyFS(workspace, os.DirFS("suites/rust")); err != nil {
		t.Fatal(err)
	}
	suites := unpackCrate(t)
	for name, edits := range loaderEdits {
		editedSource(t, filepath.Join(suites, "tests", name), filepath.Join(workspace, "tests", name), edits)
	}
	// Other catalogs' cases are in the same files, so that the tests are picked by name.
	cmd := exec.CommandContext(t.Context(), "cargo", "test", "--locked", "--no-fail-fast", "--tests", "--", "rest_catalog", "life_of_a_table", "appends_that_race")
	cmd.Dir = workspace
	cmd.Env = append(os.Environ(), "CATALOGD_URI="+own.uri, "CARGO_TARGET_DIR="+suiteCache(t, "rust"), "CARGO_TERM_COLOR=never")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
	passed := 0
	for _, m := range regexp.MustCompile(`(?m)^test result: ok\. (\d+) passed; 0 failed; 0 ignored;`).FindAllSubmatch(out, -1) {
		n, _ := strconv.Atoi(string(m[1])) // digits
		passed += n
	}
	t.Logf("iceberg-rust: %d passed", passed)
	if passed != rustTests {
		t.Errorf("%d tests passed, want %d:\n%s", passed, rustTests, out)
	}
}

func needRust(t *testing.T) {
	t.Helper()
	const how = "iceberg-rust needs Rust 1.%d or later (https://rustup.rs): %v"
	out, err := exec.CommandContext(t.Context(), "cargo", "--version").CombinedOutput()
	if err != nil {
		missing(t, fmt.Sprintf(how, minRust, err))
	}
	version := regexp.MustCompile(`^cargo 1\.(\d+)\.`).FindSubmatch(out)
	if version == nil {
		missing(t, fmt.Sprintf(how, minRust, string(out)))
	}
	if minor, _ := strconv.Atoi(string(version[1])); minor < minRust {
		missing(t, fmt.Sprintf(how, minRust, string(out)))
	}
}

// unpackCrate has Cargo fetch the crate of the suites, if it has not done so before, and
// returns a folder with its files. Building the crate would build the clients of five
// other catalogs.
func unpackCrate(t *testing.T) string {
	t.Helper()
	home := os.Getenv("CARGO_HOME")
	if home == "" {
		user, err := os.UserHomeDir()
		if err != nil {
			t.Fatal(err)
		}
		home = filepath.Join(user, ".cargo")
	}
	name := loaderCrate + "-" + loaderVersion
	pattern := filepath.Join(home, "registry", "cache", "*", name+".crate")
	found, _ := filepath.Glob(pattern) // the pattern is good
	if len(found) == 0 {
		cmd := exec.CommandContext(t.Context(), "cargo", "info", loaderCrate+"@"+loaderVersion)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", cmd, err, out)
		}
		found, _ = filepath.Glob(pattern)
	}
	if len(found) == 0 {
		t.Fatalf("Cargo has fetched %s, but there is no %s", name, pattern)
	}
	return unpack(t, found[0], loaderChecksum)
}
