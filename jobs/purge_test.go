package jobs_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/iceberg-go"
	"github.com/google/uuid"

	"github.com/catalogd/catalogd/catalog"
	"github.com/catalogd/catalogd/catalog/purge"
	"github.com/catalogd/catalogd/catalog/storage"
	"github.com/catalogd/catalogd/jobs"
	"github.com/catalogd/catalogd/mv/changes/tabletest"
)

// lake is a world whose tables have real files.
type lake struct {
	*world
	root    string
	files   *storage.Files
	service *catalog.Service
}

func newLake(t *testing.T) lake {
	t.Helper()
	w := newWorld(t)
	l := lake{world: w, root: t.TempDir()}
	var err error
	l.files, err = storage.New(storage.Config{Roots: []string{"file://" + l.root}})
	w.check(err)
	t.Cleanup(l.files.Close)
	l.service = catalog.NewService(catalog.Config{Store: w.store, Files: l.files})
	return l
}

// table makes a registered table with a few files and returns its folder.
func (l lake) table(name string) string {
	l.Helper()
	folder := filepath.Join(l.root, name)
	t := tabletest.New(l, tabletest.Options{Location: "file://" + folder})
	t.Append(tabletest.At(1, 1), tabletest.At(2, 30))
	t.Append(tabletest.At(3, 60))
	t.Delete(true, iceberg.EqualTo(iceberg.Reference("id"), int64(1)))
	file := filepath.Join(folder, "metadata", "00001-"+uuid.NewString()+".metadata.json")
	l.check(os.WriteFile(file, t.Document(), 0o600))
	_, err := l.service.RegisterTable(l.Context(), warehouse, catalog.Namespace{"demo"}, name, "file://"+file, false)
	l.check(err)
	return folder
}

func (l lake) keep(d time.Duration) {
	l.Helper()
	l.check(l.store.UpdateWarehouse(l.Context(), warehouse, catalog.WarehouseUpdate{SoftDelete: &d}))
}

func (l lake) drop(name string, purge bool) {
	l.Helper()
	l.check(l.service.DropTable(l.Context(), warehouse, ident(name), purge))
}

func (l lake) purger(files purge.Files) *purge.Purger {
	return purge.New(purge.Config{Registry: l.store, Documents: l.service, FS: l.files.FS(), Files: files, Log: slog.New(slog.DiscardHandler)})
}

// work starts a process that takes care of drops.
func (l lake) work(files purge.Files, adjust ...func(*jobs.Config)) *jobs.Client {
	l.Helper()
	return l.start(newEngine(l.world), func(c *jobs.Config) {
		c.Dropped, c.Purger, c.Obsolete = l.store, l.purger(files), purge.NewTrimmer(l.store, files, slog.New(slog.DiscardHandler))
		c.MaintainEvery, c.ExpireEvery = 100*time.Millisecond, 300*time.Millisecond
		for _, a := range adjust {
			a(c)
		}
	})
}

func there(folder string) bool {
	_, err := os.Stat(folder)
	return err == nil
}

// expire lets the time of all dropped objects be over.
func (l lake) expire() {
	l.Helper()
	l.exec(`UPDATE dropped_object SET expires_at = clock_timestamp()`)
}

func TestDropsExpire(t *testing.T) {
	t.Parallel()
	l := newLake(t)
	l.keep(time.Hour)
	gone, stays, back := l.table("gone"), l.table("stays"), l.table("back")
	l.drop("gone", true)
	l.drop("stays", false)
	l.drop("back", true)
	l.work(l.files)
	if n := query[int](l.world, `SELECT count(*) FROM river_job WHERE kind = 'purge_dropped'`); n != 0 {
		t.Errorf("%d purges before anything has expired", n)
	}
	_, err := l.service.Undrop(t.Context(), warehouse, catalog.UndropRequest{Ident: ident("back")})
	l.check(err)
	l.expire()
	l.eventually("nothing dropped is left", func() bool { return query[int](l.world, `SELECT count(*) FROM dropped_object`) == 0 })
	if there(gone) || !there(stays) || !there(back) {
		t.Errorf("there are gone %v, stays %v, back %v: want the last two", there(gone), there(stays), there(back))
	}
	l.check(l.service.TableExists(t.Context(), warehouse, ident("back")))
	if n := query[int](l.world, `SELECT count(DISTINCT object_uuid) FROM metadata_document`); n != 1 {
		t.Errorf("documents of %d objects are stored, want those of the one that is left", n)
	}
}

// A drop that is final begins its purge by itself, without anybody looking for it.
func TestPurgeStartsWithTheDrop(t *testing.T) {
	t.Parallel()
	l := newLake(t)
	folder := l.table("t")
	l.drop("t", true)
	if n := query[int](l.world, `SELECT count(*) FROM river_job WHERE kind = 'purge_dropped' AND state = 'available'`); n != 1 {
		t.Errorf("%d purge jobs, want one in the drop's own transaction", n)
	}
	l.work(l.files)
	l.eventually("the files are gone", func() bool { return !there(folder) })
}

// hanging never comes back from the n-th deletion, like a process that is killed there.
type hanging struct {
	purge.Files

	mu    sync.Mutex
	left  int
	hangs chan struct{}
	once  sync.Once
}

func (h *hanging) Remove(ctx context.Context, location string) error {
	h.mu.Lock()
	h.left--
	stop := h.left < 0
	h.mu.Unlock()
	if stop {
		h.once.Do(func() { close(h.hangs) })
		<-ctx.Done()
		return ctx.Err()
	}
	return h.Files.Remove(ctx, location)
}

// A purge whose process dies is taken over by another one.
func TestPurgeIsTakenOver(t *testing.T) {
	t.Parallel()
	l := newLake(t)
	folder := l.table("t")
	l.drop("t", true)
	h := &hanging{Files: l.files, left: 3, hangs: make(chan struct{})}
	first := l.work(h, func(c *jobs.Config) { c.BeatEvery, c.SilentAfter = time.Hour, 2*time.Hour })
	<-h.hangs
	l.exec(`UPDATE process_heartbeat SET seen_at = seen_at - interval '1 hour' WHERE process_id = $1`, first.Process())
	if !there(folder) {
		t.Fatal("the first process has finished")
	}
	l.work(l.files)
	l.eventually("another process has finished it", func() bool { return !there(folder) })
	l.eventually("the object is forgotten", func() bool { return query[int](l.world, `SELECT count(*) FROM dropped_object`) == 0 })
}

// The storage table of a dropped view stays until the view cannot come back.
func TestDroppedStorageWaitsForItsView(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := 30 * 24 * time.Hour
	w.check(w.store.UpdateWarehouse(t.Context(), warehouse, catalog.WarehouseUpdate{SoftDelete: &d}))
	root := t.TempDir()
	w.view("v", 0)
	file := w.place("v__storage", filepath.Join(root, "v", "storage-"+uuid.NewString()))
	w.drop("v")
	if days := query[float64](w, `SELECT extract(epoch FROM scheduled_at - now()) / 86400 FROM river_job WHERE kind = 'dropped_storage'`); days < 29.9 || days > 30.1 {
		t.Errorf("removal is due in %.1f days, want 30: as long as the view can come back", days)
	}
	// Should the time be changed afterwards, the dropped row still speaks against it.
	w.exec(`UPDATE river_job SET state = 'available', scheduled_at = now() WHERE kind = 'dropped_storage'`)
	w.start(newEngine(w), func(c *jobs.Config) { c.Cleaner, c.MaintainEvery = w.cleaner(root), 100*time.Millisecond })
	w.eventually("the job has ended", func() bool {
		return query[int](w, `SELECT count(*) FROM river_job WHERE kind = 'dropped_storage' AND state = 'completed'`) == 1
	})
	if !there(file) {
		t.Error("the rows of a view that can come back are gone")
	}
}

// commit changes a property of a table.
func (l lake) commit(name, updates string) {
	l.Helper()
	_, err := l.service.CommitTable(l.Context(), warehouse, ident(name), catalog.CommitRequest{
		Updates: rawUpdates(updates),
	})
	l.check(err)
}

func TestMetadataIsTrimmed(t *testing.T) {
	t.Parallel()
	l := newLake(t)
	folder := l.table("t")
	l.commit("t", `{"action":"set-properties","updates":{"write.metadata.delete-after-commit.enabled":"true","write.metadata.previous-versions-max":"1"}}`)
	metadata := func() (files []string) {
		found, err := l.files.List(t.Context(), "file://"+folder+"/metadata")
		l.check(err)
		for _, f := range found {
			if strings.HasSuffix(f, ".metadata.json") {
				files = append(files, f)
			}
		}
		return files
	}
	// The second file is one that somebody else has registered since, the third one that an
	// answer names which may be asked for again.
	l.commit("t", `{"action":"set-properties","updates":{"n":"1"}}`)
	l.exec(`INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name, metadata_location, iceberg_type)
		SELECT catalog_name, 'demo', 'other', metadata_location, 'TABLE' FROM iceberg_tables WHERE table_name = 't'`)
	named := query[string](l.world, `SELECT metadata_location FROM iceberg_tables WHERE table_name = 'other'`)
	l.commit("t", `{"action":"set-properties","updates":{"n":"2"}}`)
	promised := query[string](l.world, `SELECT metadata_location FROM iceberg_tables WHERE table_name = 't'`)
	l.exec(`INSERT INTO idempotency_record (catalog_name, idempotency_key, request_digest, metadata_location) VALUES ('wh', gen_random_uuid(), 'x', $1)`, promised)
	for _, n := range []string{"3", "4", "5"} {
		l.commit("t", `{"action":"set-properties","updates":{"n":"`+n+`"}}`)
	}
	if n := len(metadata()); n != 7 {
		t.Fatalf("%d metadata files before the job, want all 7: no request deletes any", n)
	}
	l.work(l.files)
	l.eventually("only what is named is left", func() bool {
		return query[int](l.world, `SELECT count(*) FROM obsolete_metadata`) == 1 && len(metadata()) == 4
	})
	left := strings.Join(metadata(), " ")
	for _, file := range []string{named, promised} {
		if !strings.Contains(left, file) {
			t.Errorf("%s is gone, although something names it", file)
		}
	}
	// The answer's time is over.
	l.exec(`UPDATE idempotency_record SET created_at = created_at - interval '2 hours'`)
	l.exec(`UPDATE obsolete_metadata SET not_before = now()`)
	l.eventually("the promised file is gone", func() bool { return len(metadata()) == 3 && !strings.Contains(strings.Join(metadata(), " "), promised) })
	if _, err := l.service.LoadTable(t.Context(), warehouse, ident("t")); err != nil {
		t.Error(err)
	}
	if _, err := l.service.LoadTable(t.Context(), warehouse, ident("other")); err != nil {
		t.Error(err)
	}
}

func rawUpdates(updates ...string) []json.RawMessage {
	out := make([]json.RawMessage, len(updates))
	for i, u := range updates {
		out[i] = json.RawMessage(u)
	}
	return out
}

// Jobs that work off a backlog have more than the minute that River gives by default.
func TestSweepsHaveTime(t *testing.T) {
	t.Parallel()
	for name, got := range map[string]time.Duration{
		"expire":        (*jobs.ExpireWorker)(nil).Timeout(nil),
		"trim metadata": (*jobs.TrimMetadataWorker)(nil).Timeout(nil),
		"prune":         (*jobs.PruneWorker)(nil).Timeout(nil),
		"prune reports": (*jobs.PruneReportsWorker)(nil).Timeout(nil),
	} {
		if got != 50*time.Minute {
			t.Errorf("%s has %s, want 50 minutes: less than the hour after which River takes a job for dead", name, got)
		}
	}
}
