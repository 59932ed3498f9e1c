package conformance_test

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The suites in the files suite_*_test.go were written by others, for other servers. Their
// sources are not here: they come from the registry of their language, with the few edits
// that the tests name.

// inCI tells a run in which nothing may be skipped for want of a tool.
func inCI() bool { return os.Getenv("CATALOGD_CI") != "" || os.Getenv("CI") != "" }

// slowSuite skips a suite that takes minutes, or has to fetch and build its client first,
// unless somebody asked for those.
func slowSuite(t *testing.T) {
	t.Helper()
	if os.Getenv("CATALOGD_SUITES") == "" {
		t.Skip("NOT run, because it is slow: `make conformance` runs it, and so does CATALOGD_SUITES=1")
	}
}

// missing ends a test that lacks a tool: it fails where all of them have to be there.
func missing(t *testing.T, say string) {
	t.Helper()
	if inCI() {
		t.Fatal(say)
	}
	t.Skip("NOT run: " + say)
}

// suiteCache is a folder that outlives the run, for what is costly to fetch or build.
func suiteCache(t *testing.T, name string) string {
	t.Helper()
	base, err := os.UserCacheDir()
	if err != nil {
		base = t.TempDir() // no home: it works, but for this run only
	}
	dir := filepath.Join(base, "catalogd", "suites", name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// edit is a change to a suite's source, whose constants are those of the servers that it
// was written for.
type edit struct {
	old, new string
	why      string
}

// editedSource copies a source with the edits made. Each has to find its place, or the
// tests are not those that it was written for.
func editedSource(t *testing.T, path, to string, edits []edit) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	source := string(raw)
	for _, e := range edits {
		if !strings.Contains(source, e.old) {
			t.Fatalf("%s does not contain %q any more (the edit is made because of %s)", path, e.old, e.why)
		}
		source = strings.ReplaceAll(source, e.old, e.new)
	}
	if err := os.WriteFile(to, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
}

// intact reports whether a file is there and has this SHA-256.
func intact(path, checksum string) bool {
	raw, err := os.ReadFile(path)
	sum := sha256.Sum256(raw)
	return err == nil && hex.EncodeToString(sum[:]) == checksum
}

// unpack checks an archive, unpacks it and returns the one folder in it.
func unpack(t *testing.T, archive, checksum string) string {
	t.Helper()
	if !intact(archive, checksum) {
		t.Fatalf("%s does not have the SHA-256 %s", archive, checksum)
	}
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "tar", "-xzf", archive, "-C", dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
	found, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(found) != 1 {
		t.Fatalf("%s holds %v, %v", archive, found, err)
	}
	return found[0]
}

// startServer starts a catalogd that the test has for itself.
func startServer(t *testing.T) *server {
	t.Helper()
	s := &server{}
	if err := s.start(); err != nil {
		t.Fatalf("catalogd: %v\n%s", err, s.log())
	}
	t.Cleanup(func() {
		if err := s.stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}
