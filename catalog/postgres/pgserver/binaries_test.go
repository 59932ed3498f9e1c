package pgserver_test

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/catalogd/catalogd/catalog/postgres/pgserver"
)

func TestFind(t *testing.T) {
	t.Parallel()
	b, err := pgserver.Find(t.Context())
	if errors.Is(err, pgserver.ErrNoBinaries) {
		t.Skipf("nothing to find: %v", err)
	} else if err != nil {
		t.Fatal(err)
	}
	if b.Major < pgserver.MinMajor || !strings.HasPrefix(b.Version, strconv.Itoa(b.Major)) {
		t.Errorf("Find = %+v, want version %d or newer", b, pgserver.MinMajor)
	}
}

// install makes a folder that looks like PostgreSQL's.
func install(t *testing.T, version string, programs ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, p := range programs {
		script := fmt.Sprintf("#!/bin/sh\necho '%s (PostgreSQL) %s'\n", p, version)
		if err := os.WriteFile(filepath.Join(dir, p), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestFind_Chooses(t *testing.T) {
	t.Parallel()
	all := []string{"postgres", "initdb", "pg_ctl"}
	old := install(t, "14.22", all...)
	client := install(t, "17.2", "pg_ctl")
	good := install(t, "16.9 (Debian 16.9-1)", all...)
	beta := install(t, "19beta1", all...)

	for _, tt := range []struct {
		name  string
		dirs  []string
		dir   string
		major int
	}{
		{"the first that is good", []string{old, client, good, beta}, good, 16},
		{"a beta", []string{beta, good}, beta, 19},
	} {
		got, err := pgserver.FindIn(t.Context(), tt.dirs...)
		if err != nil || got.Dir != tt.dir || got.Major != tt.major {
			t.Errorf("%s: find = %+v, %v, want major %d in %s", tt.name, got, err, tt.major, tt.dir)
		}
	}
	_, err := pgserver.FindIn(t.Context(), old, client)
	if !errors.Is(err, pgserver.ErrNoBinaries) {
		t.Fatalf("find = %v, want ErrNoBinaries", err)
	}
	for _, want := range []string{"apt-get install postgresql", "14.22", "has no postgres"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q does not say %q", err, want)
		}
	}
}

// repository serves the archive of testdata as Maven Central does, with the given
// checksum, or the right one if it is empty. It counts downloads.
func repository(t *testing.T, checksum string) (url string, downloads *atomic.Int32) {
	t.Helper()
	archive, err := os.ReadFile(filepath.Join("testdata", "binaries.txz"))
	if err != nil {
		t.Fatal(err)
	}
	var jar bytes.Buffer
	z := zip.NewWriter(&jar)
	w, err := z.Create("postgres.txz")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(archive); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if checksum == "" {
		sum := sha256.Sum256(jar.Bytes())
		checksum = hex.EncodeToString(sum[:])
	}
	downloads = new(atomic.Int32)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "-18.3.0.jar"):
			downloads.Add(1)
			_, _ = w.Write(jar.Bytes())
		case strings.HasSuffix(r.URL.Path, ".sha256"):
			_, _ = w.Write([]byte(checksum))
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(srv.Close)
	return srv.URL, downloads
}

// TestFetch fetches twice: the second time from the cache, with nothing else left in it.
func TestFetch(t *testing.T) {
	t.Parallel()
	url, downloads := repository(t, "")
	cache := t.TempDir()
	for range 2 {
		b, err := pgserver.FetchFrom(t.Context(), url, cache)
		if err != nil {
			t.Fatal(err)
		}
		if b.Major != 18 || !strings.HasPrefix(b.Dir, cache) {
			t.Errorf("Fetch = %+v, want version 18 below %s", b, cache)
		}
	}
	if got := downloads.Load(); got != 1 {
		t.Errorf("%d downloads, want 1", got)
	}
	entries, err := os.ReadDir(cache)
	if err != nil || len(entries) != 1 {
		t.Errorf("cache holds %v (%v), want one folder", entries, err)
	}
}

func TestFetch_Fails(t *testing.T) {
	t.Parallel()
	tampered, _ := repository(t, strings.Repeat("0", 64))
	gone := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(gone.Close)
	for name, tt := range map[string]struct{ url, want string }{
		"wrong checksum": {tampered, "checksum"},
		"no such file":   {gone.URL, "no version found"},
		"no network":     {"http://127.0.0.1:1", "unable to connect"},
	} {
		cache := t.TempDir()
		_, err := pgserver.FetchFrom(t.Context(), tt.url, cache)
		if !errors.Is(err, pgserver.ErrNoBinaries) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: Fetch = %v, want ErrNoBinaries with %q", name, err, tt.want)
		}
		if entries, err := os.ReadDir(cache); err != nil || len(entries) != 0 {
			t.Errorf("%s: cache holds %v (%v), want nothing", name, entries, err)
		}
	}
}

// TestFetch_Real downloads the real thing and runs it. It needs the network, so it is
// asked for by name: CATALOGD_TEST_DOWNLOAD=1.
func TestFetch_Real(t *testing.T) {
	t.Parallel()
	if os.Getenv("CATALOGD_TEST_DOWNLOAD") == "" {
		t.Skip("CATALOGD_TEST_DOWNLOAD is not set")
	}
	b, err := pgserver.Fetch(t.Context(), sharedDir(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, pgserver.Config{Dir: t.TempDir(), Binaries: b})
	if got := query[string](t, s.URL(), `SHOW server_version`); got != b.Version {
		t.Errorf("server version = %s, want %s", got, b.Version)
	}
}
