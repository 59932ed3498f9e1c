package jobs_test

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/catalogd/catalogd/catalog"
	"github.com/catalogd/catalogd/catalog/storage"
	"github.com/catalogd/catalogd/jobs"
	"github.com/catalogd/catalogd/mv"
	"github.com/catalogd/catalogd/mv/publish"
)

// pointer reads a row.
func (w *world) pointer(name string, typ catalog.ObjectType) catalog.Pointer {
	w.Helper()
	l, err := w.store.Load(w.Context(), warehouse, ident(name), typ, catalog.NoDocument)
	w.check(err)
	return l.Pointer
}

// place gives a storage table a real folder with a file in it.
func (w *world) place(table, location string) (file string) {
	w.Helper()
	w.exec(`UPDATE iceberg_tables SET location = $2 WHERE table_name = $1`, table, "file://"+location)
	file = filepath.Join(location, "data", "a.parquet")
	w.check(os.MkdirAll(filepath.Dir(file), 0o750))
	w.check(os.WriteFile(file, []byte("rows"), 0o600))
	return file
}

func (w *world) drop(view string) {
	w.Helper()
	w.check(w.store.Commit(w.Context(), []catalog.Change{
		{Op: catalog.OpDrop, Pointer: w.pointer(view, catalog.TypeView)},
		{Op: catalog.OpDrop, Pointer: w.pointer(view+"__storage", catalog.TypeTable)},
	}))
}

func (w *world) cleaner(root string) *mv.Cleaner {
	w.Helper()
	files, err := storage.New(storage.Config{Roots: []string{"file://" + root}})
	w.check(err)
	w.Cleanup(files.Close)
	return mv.NewCleaner(mv.CleanerConfig{Registry: w.reg, Sweeper: publish.NewSweeper(files.FS(), files)})
}

func TestDroppedStorageGoesAfterItsRetention(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	root := t.TempDir()
	for _, v := range []string{"gone", "twice", "kept"} {
		w.view(v, 0)
	}
	gone := w.place("gone__storage", filepath.Join(root, "gone", "storage-"+uuid.NewString()))
	twice := w.place("twice__storage", filepath.Join(root, "twice", "storage-"+uuid.NewString()))
	kept := w.place("kept__storage", filepath.Join(root, "kept", "storage-"+uuid.NewString()))
	p := w.pointer("gone__storage", catalog.TypeTable)
	w.drop("gone")
	w.drop("twice")
	// The same table once more: it came back, and was dropped again.
	w.exec(`INSERT INTO river_job (kind, queue, args, state, max_attempts, scheduled_at)
		SELECT kind, queue, args, 'scheduled', max_attempts, now() + interval '9 days' FROM river_job
		 WHERE kind = 'dropped_storage' AND args->>'name' = 'demo.twice__storage'`)
	// A view that is dropped without its storage table, which is a plain one afterwards.
	free := w.pointer("kept__storage", catalog.TypeTable)
	from := free.MetadataLocation
	free.StorageOf, free.MetadataLocation = "", w.location()
	w.check(w.store.Commit(t.Context(), []catalog.Change{
		{Op: catalog.OpDrop, Pointer: w.pointer("kept", catalog.TypeView)},
		{Op: catalog.OpSwap, Pointer: free, From: from, Document: document(free.MetadataLocation)},
	}))
	w.check(w.store.Commit(t.Context(), []catalog.Change{{Op: catalog.OpDrop, Pointer: free}}))

	if n := query[int](w, `SELECT count(*) FROM river_job WHERE kind = 'dropped_storage'`); n != 3 {
		t.Fatalf("%d jobs for dropped storage, want one for each drop with its view", n)
	}
	var args jobs.DroppedStorageArgs
	w.check(w.pool.QueryRow(t.Context(), `SELECT args FROM river_job WHERE kind = 'dropped_storage' AND args->>'name' = 'demo.gone__storage'`).Scan(&args))
	want := jobs.DroppedStorageArgs{TableUUID: p.UUID, Location: p.Location, Name: "demo.gone__storage", DroppedAt: args.DroppedAt}
	if !cmp.Equal(args, want) {
		t.Errorf("args = %+v, want %+v", args, want)
	}
	if off := query[float64](w, `SELECT max(abs(extract(epoch FROM scheduled_at - (args->>'dropped_at')::timestamptz - interval '7 days')))
		FROM river_job WHERE kind = 'dropped_storage' AND scheduled_at < now() + interval '8 days'`); off > 0.001 {
		t.Errorf("removal is scheduled %v s away from seven days after the drop", off)
	}

	// Seven days later.
	w.exec(`UPDATE river_job SET state = 'available', scheduled_at = now() WHERE kind = 'dropped_storage' AND scheduled_at < now() + interval '8 days'`)
	w.start(newEngine(w), func(c *jobs.Config) { c.Cleaner, c.MaintainEvery = w.cleaner(root), 200*time.Millisecond })
	w.eventually("both jobs end", func() bool {
		return query[int](w, `SELECT count(*) FROM river_job WHERE kind = 'dropped_storage' AND state = 'completed'`) == 2
	})
	if _, err := os.Stat(filepath.Dir(filepath.Dir(gone))); !os.IsNotExist(err) {
		t.Errorf("the folder of the dropped table is still there: %v", err)
	}
	for _, file := range []string{twice, kept} {
		if _, err := os.Stat(file); err != nil {
			t.Errorf("a file that must stay: %v", err)
		}
	}
}

// memory notes what it is asked to clean; the tables are the real ones.
type memory struct {
	jobs.Cleaner

	mu      sync.Mutex
	cleaned []mv.Sighting
}

func (m *memory) Clean(_ context.Context, s mv.Sighting) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cleaned = append(m.cleaned, s)
	return nil
}

func TestScanSchedulesOneCleanupOfEachTable(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.tables("plain")
	w.view("a", 0)
	w.view("idle", 0)
	w.exec(`UPDATE iceberg_tables SET changed_at = now() - interval '1 year' WHERE table_name = 'idle__storage'`)
	w.exec(`UPDATE materialized_view SET stale_since = NULL`) // no refreshes: the scan alone
	w.exec(`DELETE FROM river_job`)
	m := &memory{Cleaner: w.cleaner(t.TempDir())}
	c := w.start(newEngine(w), func(c *jobs.Config) { c.Cleaner, c.MaintainEvery = m, 200*time.Millisecond })
	seen := w.pointer("a__storage", catalog.TypeTable)
	const pending = `FROM river_job WHERE kind = 'storage_cleanup' AND state = 'scheduled'`
	w.eventually("the scan at the start", func() bool { return query[int](w, `SELECT count(*) `+pending) == 1 })
	var args jobs.CleanupArgs
	w.check(w.pool.QueryRow(t.Context(), `SELECT args `+pending).Scan(&args))
	if args.TableUUID != seen.UUID || args.MetadataLocation != seen.MetadataLocation {
		t.Errorf("args = %+v, want those of %+v", args, seen)
	}
	if off := query[float64](w, `SELECT extract(epoch FROM scheduled_at - (args->>'seen_at')::timestamptz) `+pending); off < 3599.9 || off > 3600.1 {
		t.Errorf("the cleanup is %v s after the sighting, want an hour", off)
	}
	w.stop(c)

	// Another scan meets the same tables, one of them changed: the first sighting stands.
	w.check(w.swap(t.Context(), "a__storage"))
	w.exec(`DELETE FROM river_job WHERE kind = 'storage_cleanup_scan'`)
	c = w.start(newEngine(w), func(c *jobs.Config) { c.Cleaner, c.MaintainEvery = m, 200*time.Millisecond })
	w.eventually("the second scan", func() bool {
		return query[int](w, `SELECT count(*) FROM river_job WHERE kind = 'storage_cleanup_scan' AND state = 'completed'`) == 1
	})
	if n := query[int](w, `SELECT count(*) `+pending); n != 1 {
		t.Errorf("%d cleanups wait, want the first one alone", n)
	}
	w.exec(`UPDATE river_job SET state = 'available', scheduled_at = now() WHERE kind = 'storage_cleanup'`)
	w.eventually("the cleanup", func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		return len(m.cleaned) == 1
	})
	w.stop(c)
	want := []mv.Sighting{{TableUUID: args.TableUUID, MetadataLocation: args.MetadataLocation, At: args.SeenAt}}
	if diff := cmp.Diff(want, m.cleaned); diff != "" {
		t.Errorf("cleaned (-want +got):\n%s", diff)
	}
}
