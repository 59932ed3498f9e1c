package purge_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/iceberg-go/table"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/catalogd/catalogd/catalog"
	"github.com/catalogd/catalogd/catalog/purge"
	"github.com/catalogd/catalogd/mv/changes/tabletest"
)

// clone makes a table whose only file is one of another table, and returns that file.
func (w *world) clone(name string, source *tabletest.Table) (t *tabletest.Table, shared string) {
	w.Helper()
	shared = source.Tasks()[0].File.FilePath()
	t = tabletest.New(w, tabletest.Options{Location: "file://" + filepath.Join(w.root, name)})
	t.Tx(func(ctx context.Context, tx *table.Transaction) error {
		return tx.AddFiles(ctx, []string{shared}, nil, false)
	})
	w.register(name, t)
	return t, shared
}

func (w *world) move(from, to string) {
	w.Helper()
	w.check(os.Rename(filepath.Join(w.root, from), filepath.Join(w.root, to)))
}

// TestPurgeWaitsForAbsentStorage: a table none of whose files is there does not say that
// it uses nothing.
func TestPurgeWaitsForAbsentStorage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	source := w.full("t", tabletest.Options{})
	w.register("t", source)
	_, shared := w.clone("clone", source)
	before := w.listing("t")
	id := w.dropped("t")
	w.move("clone", "away")
	if _, err := w.purger(nil).Purge(t.Context(), id); catalog.KindOf(err) != catalog.KindUnavailable || !strings.Contains(err.Error(), "ns.clone") {
		t.Errorf("Purge = %v, want an error that names the table whose files are away", err)
	}
	if diff := cmp.Diff(before, w.listing("t")); diff != "" {
		t.Fatalf("files are gone (-before +after):\n%s", diff)
	}
	w.move("away", "clone")
	w.purge(id)
	if left := w.listing("t"); len(left) != 1 || !strings.HasSuffix(shared, left[0]) {
		t.Errorf("left behind: %v, want the shared file %s", left, shared)
	}
}

// TestPurgeAsksAgainAboutMissingFiles: a list or a manifest that was gone once is looked
// for again, since it may be back.
func TestPurgeAsksAgainAboutMissingFiles(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"list", "manifest"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			source := w.full("t", tabletest.Options{})
			w.register("t", source)
			clone, shared := w.clone("clone", source)
			w.register("first", w.full("first", tabletest.Options{}))
			file := strings.TrimPrefix(clone.CurrentSnapshot().ManifestList, "file://")
			if what == "manifest" {
				list, err := clone.CurrentSnapshot().Manifests(w.files.FS())
				w.check(err)
				file = strings.TrimPrefix(list[0].FilePath(), "file://")
			}
			w.check(os.Rename(file, file+".away"))
			w.purge(w.dropped("first"))
			if left := w.listing("first"); len(left) != 0 {
				t.Errorf("left behind: %v, although the table with the missing %s has its metadata file", left, what)
			}
			w.check(os.Rename(file+".away", file))
			w.purge(w.dropped("t"))
			if left := w.listing("t"); len(left) != 1 || !strings.HasSuffix(shared, left[0]) {
				t.Errorf("left behind: %v, want the shared file %s", left, shared)
			}
		})
	}
}

// TestPurgePausesForDroppedNewcomers: who may still come back to the location does not end
// a purge for good.
func TestPurgePausesForDroppedNewcomers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.register("t", w.full("t", tabletest.Options{}))
	id := w.dropped("t")
	w.limit.spoil = func() {
		w.exec(`INSERT INTO dropped_object (catalog_name, table_namespace, table_name, metadata_location, iceberg_type, object_uuid, location, location_key,
			is_materialized, created_at, changed_at, dropped_at, expires_at, purge)
			VALUES ($1, 'ns', 'newcomer', 'x', 'TABLE', $2, $3, $4, false, now(), now(), now(), now() + interval '1 day', false)`,
			warehouse, uuid.NewString(), p.Location, catalog.LocationKey(p.Location))
	}
	clock := time.Now()
	late := purge.New(purge.Config{
		Registry: w.store, Documents: w.service, FS: w.files.FS(), Files: w.limit,
		Now: func() time.Time { clock = clock.Add(time.Minute); return clock },
	})
	wait, err := late.Purge(t.Context(), id)
	if err != nil || wait < time.Hour {
		t.Fatalf("Purge = wait %s, %v, want nearly a day", wait, err)
	}
	w.due(1)
	w.exec(`DELETE FROM dropped_object WHERE table_name = 'newcomer'`)
	w.purge(id)
	if left := w.listing("t"); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// stubborn cannot delete one file.
type stubborn struct {
	purge.Files

	file string
}

func (s stubborn) Remove(ctx context.Context, location string) error {
	if location == s.file {
		return errors.New("permission denied")
	}
	return s.Files.Remove(ctx, location)
}

// TestTrimGoesOn: a metadata file that cannot be deleted waits, the others do not.
func TestTrimGoesOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.register("t", w.full("t", tabletest.Options{}))
	var names []string
	for _, name := range []string{"a", "b", "c"} {
		path := filepath.Join(w.root, "t", "metadata", name+".metadata.json")
		w.check(os.WriteFile(path, []byte("{}"), 0o600))
		w.exec(`INSERT INTO obsolete_metadata (metadata_location, object_uuid) VALUES ($1, $2)`, "file://"+path, p.UUID)
		names = append(names, "file://"+path)
	}
	trim := func(files purge.Files) {
		t.Helper()
		w.check(purge.NewTrimmer(w.store, files, slog.New(slog.DiscardHandler)).Trim(t.Context()))
	}
	there := func() []string {
		return slices.DeleteFunc(slices.Clone(names), func(f string) bool {
			_, err := os.Stat(strings.TrimPrefix(f, "file://"))
			return err != nil
		})
	}
	trim(stubborn{w.files, names[0]})
	if left := there(); !cmp.Equal(left, names[:1]) {
		t.Errorf("left: %v, want the one that cannot be deleted", left)
	}
	trim(w.files)
	if left := there(); !cmp.Equal(left, names[:1]) {
		t.Errorf("left: %v, want the one that was put off", left)
	}
	w.exec(`UPDATE obsolete_metadata SET not_before = not_before - interval '61 minutes'`)
	trim(w.files)
	if left := there(); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

// TestRegisterRefusesOutgrownFiles: a metadata file that will be deleted is no table.
func TestRegisterRefusesOutgrownFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tbl := w.full("t", tabletest.Options{})
	p := w.register("t", tbl)
	older := filepath.Join(w.root, "t", "metadata", "old.metadata.json")
	w.check(os.WriteFile(older, tbl.Document(), 0o600))
	w.exec(`INSERT INTO obsolete_metadata (metadata_location, object_uuid) VALUES ($1, $2)`, "file://"+older, p.UUID)
	for _, overwrite := range []bool{true, false} {
		name := map[bool]string{true: "t", false: "twin"}[overwrite]
		_, err := w.service.RegisterTable(t.Context(), warehouse, space, name, "file://"+older, overwrite)
		if catalog.KindOf(err) != catalog.KindConflict || !strings.Contains(err.Error(), "table ns.t has outgrown it") {
			t.Errorf("RegisterTable(overwrite %v) = %v, want a conflict that names the table", overwrite, err)
		}
	}
	w.exec(`DELETE FROM obsolete_metadata`)
	if _, err := w.service.RegisterTable(t.Context(), warehouse, space, "t", "file://"+older, true); err != nil {
		t.Errorf("RegisterTable of a file that stays = %v", err)
	}
}
