package storage_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/catalogd/catalogd/catalog"
	"github.com/catalogd/catalogd/catalog/storage"
)

func open(t testing.TB, cfg storage.Config) *storage.Files {
	t.Helper()
	f, err := storage.New(cfg)
	if err != nil {
		t.Fatalf("New(%+v) = %v", cfg, err)
	}
	t.Cleanup(f.Close)
	return f
}

func TestFilesSpellings(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	f := open(t, storage.Config{Roots: []string{"file://" + root}})
	for i, prefix := range []string{"file:", "file://", "file://localhost", "local://", "", "FILE://"} {
		location := fmt.Sprintf("%s%s/t/metadata/v%d.json", prefix, root, i)
		want := []byte(location)
		if err := f.Write(t.Context(), location, want); err != nil {
			t.Fatalf("Write(%s) = %v", location, err)
		}
		plain, err := os.ReadFile(filepath.Join(root, "t/metadata", fmt.Sprintf("v%d.json", i)))
		if err != nil || !bytes.Equal(plain, want) {
			t.Fatalf("Write(%s) left %q, %v on disk", location, plain, err)
		}
		got, err := f.Read(t.Context(), location)
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("Read(%s) = %q, %v", location, got, err)
		}
		if ok, err := f.Exists(t.Context(), location); !ok || err != nil {
			t.Fatalf("Exists(%s) = %v, %v", location, ok, err)
		}
	}
}

func TestFilesRefusesLocations(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	f := open(t, storage.Config{Roots: []string{root}})
	for _, location := range []string{
		"", "relative/x", "file:relative", "file://host/x", root + "/../x", "file://" + root + "/a/../../x", root + "/..",
		root + "/a\x00b", "s3:///key", root + "x/y", "/etc/passwd", "file:///etc/passwd", root, "s3://bucket/x",
	} {
		if err := f.Write(t.Context(), location, []byte("x")); catalog.KindOf(err) != catalog.KindInvalid {
			t.Errorf("Write(%q) = %v, want KindInvalid", location, err)
		}
		if err := f.Remove(t.Context(), location); catalog.KindOf(err) != catalog.KindInvalid {
			t.Errorf("Remove(%q) = %v, want KindInvalid", location, err)
		}
		if err := f.RemoveAll(t.Context(), location); catalog.KindOf(err) != catalog.KindInvalid {
			t.Errorf("RemoveAll(%q) = %v, want KindInvalid", location, err)
		}
		w := f.FS()
		if _, err := w.Create(location); catalog.KindOf(err) != catalog.KindInvalid {
			t.Errorf("Create(%q) = %v, want KindInvalid", location, err)
		}
	}
	if _, err := storage.New(storage.Config{Roots: []string{"a/b"}}); catalog.KindOf(err) != catalog.KindInvalid {
		t.Errorf("New with a relative root = %v, want KindInvalid", err)
	}
}

func TestFilesAllowAnyFile(t *testing.T) {
	t.Parallel()
	f := open(t, storage.Config{AllowAnyFile: true})
	location := "file:" + t.TempDir() + "/x.json"
	if err := f.Write(t.Context(), location, []byte("x")); err != nil {
		t.Fatalf("Write(%s) = %v", location, err)
	}
	if err := f.Write(t.Context(), "mem://b/x", nil); catalog.KindOf(err) != catalog.KindInvalid {
		t.Errorf("Write to a bucket that is no root = %v, want KindInvalid", err)
	}
}

func TestFilesMissing(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	f := open(t, storage.Config{Roots: []string{root}})
	if err := os.WriteFile(root+"/plain", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, location := range []string{"file://" + root + "/none.json", root, root + "/plain/below"} {
		_, err := f.Read(t.Context(), location)
		e, ok := errors.AsType[*catalog.Error](err)
		if !ok || e.Kind != catalog.KindNotFound || e.Msg != "Failed to open input stream for file: "+location {
			t.Errorf("Read(%s) = %v, want KindNotFound with Java's text", location, err)
		}
		if exists, err := f.Exists(t.Context(), location); exists || err != nil {
			t.Errorf("Exists(%s) = %v, %v, want false", location, exists, err)
		}
	}
	if _, err := f.FS().Open(root + "/none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("FS().Open of a missing file = %v, want fs.ErrNotExist", err)
	}
	if err := f.Remove(t.Context(), root+"/none"); err != nil {
		t.Errorf("Remove of a missing file = %v", err)
	}
}

func TestFilesPercentNames(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	f := open(t, storage.Config{Roots: []string{root}})
	if err := f.Write(t.Context(), "file://"+root+"/a%20b", []byte("literal")); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(root + "/a%20b"); err != nil {
		t.Errorf("the name was not taken literally: %v", err)
	}
	if err := os.WriteFile(root+"/ts=10:00", []byte("decoded"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := f.Read(t.Context(), "file://"+root+"/ts=10%3A00")
	if err != nil || string(got) != "decoded" {
		t.Errorf("Read of a name that iceberg-go decoded = %q, %v", got, err)
	}
}

func TestFilesNeverReplaces(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	f := open(t, storage.Config{Roots: []string{root}})
	location := root + "/x/v1.json"
	var wins sync.Map
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			body := strings.Repeat(strconv.Itoa(i%10), 4096)
			switch err := f.Write(t.Context(), location, []byte(body)); {
			case err == nil:
				wins.Store(i, body)
			case catalog.KindOf(err) != catalog.KindAlreadyExists:
				t.Errorf("Write = %v, want KindAlreadyExists", err)
			}
		})
	}
	wg.Wait()
	var won []string
	wins.Range(func(_, body any) bool { won = append(won, body.(string)); return true })
	got, err := f.Read(t.Context(), location)
	if err != nil || len(won) != 1 || string(got) != won[0] {
		t.Errorf("%d writers won, file has %d bytes, %v", len(won), len(got), err)
	}
	left, err := f.List(t.Context(), root)
	if err != nil || !cmp.Equal(left, []string{location}) {
		t.Errorf("List = %v, %v, want only %s: temporary files stayed", left, err, location)
	}
}

func TestFilesPrepareListRemove(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	f := open(t, storage.Config{Roots: []string{"file:" + root}})
	table := "file://" + root + "/ns/t/"
	if err := f.Prepare(t.Context(), table); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{"metadata", "data"} {
		if info, err := os.Stat(filepath.Join(root, "ns/t", folder)); err != nil || !info.IsDir() {
			t.Errorf("Prepare made no folder %s: %v", folder, err)
		}
	}
	for _, name := range []string{"data/r1/a", "data/r1/p=1/b", "data/r2/c"} {
		if err := f.Write(t.Context(), table+name, []byte(name)); err != nil {
			t.Fatal(err)
		}
	}
	got, err := f.List(t.Context(), table+"data/r1")
	want := []string{table + "data/r1/a", table + "data/r1/p=1/b"}
	if err != nil || !cmp.Equal(got, want) {
		t.Errorf("List = %v, %v, want %v", got, err, want)
	}
	if err := f.RemoveAll(t.Context(), table+"data/r1"); err != nil {
		t.Fatal(err)
	}
	got, err = f.List(t.Context(), table)
	if err != nil || !cmp.Equal(got, []string{table + "data/r2/c"}) {
		t.Errorf("after RemoveAll: List = %v, %v", got, err)
	}
}

// TestFilesCreateTakesTheName: of two writers of one name, the second fails before it has
// touched a byte of the first.
func TestFilesCreateTakesTheName(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	f := open(t, storage.Config{Roots: []string{root}})
	out := f.FS()
	w, err := out.Create(root + "/m/a.avro")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte("half")); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Create(root + "/m/a.avro"); err == nil {
		t.Error("a name was given away twice")
	}
	if err := errors.Join(w.Close(), w.Close()); err != nil {
		t.Fatal(err)
	}
	if got, err := f.Read(t.Context(), root+"/m/a.avro"); string(got) != "half" || err != nil {
		t.Errorf("Read = %q, %v", got, err)
	}
}

func TestFilesObjectStore(t *testing.T) {
	t.Parallel()
	f := open(t, storage.Config{Roots: []string{"mem://storage-test/wh"}})
	location := "mem://storage-test/wh/t/metadata/v1.json"
	if err := f.Write(t.Context(), location, []byte("doc")); err != nil {
		t.Fatal(err)
	}
	if got, err := f.Read(t.Context(), location); string(got) != "doc" || err != nil {
		t.Errorf("Read = %q, %v", got, err)
	}
	if _, err := f.Read(t.Context(), location+"x"); catalog.KindOf(err) != catalog.KindNotFound {
		t.Errorf("Read of a missing object = %v, want KindNotFound", err)
	}
	if err := f.Write(t.Context(), "mem://storage-test/whx/t", nil); catalog.KindOf(err) != catalog.KindInvalid {
		t.Errorf("Write beside the root = %v, want KindInvalid", err)
	}
	if got, err := f.List(t.Context(), "mem://storage-test/wh/t"); err != nil || !cmp.Equal(got, []string{location}) {
		t.Errorf("List = %v, %v", got, err)
	}
	if err := f.RemoveAll(t.Context(), "mem://storage-test/wh/t"); err != nil {
		t.Fatal(err)
	}
	if got, _ := f.List(t.Context(), "mem://storage-test/wh/t"); len(got) != 0 {
		t.Errorf("after RemoveAll: List = %v", got)
	}
	if err := f.Write(t.Context(), "nosuch://b/x", nil); catalog.KindOf(err) != catalog.KindInvalid {
		t.Errorf("Write to an unknown scheme = %v, want KindInvalid", err)
	}
}
