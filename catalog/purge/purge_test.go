package purge_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/google/go-cmp/cmp"

	"github.com/catalogd/catalogd/catalog"
	"github.com/catalogd/catalogd/catalog/postgres"
	"github.com/catalogd/catalogd/catalog/postgres/pgtest"
	"github.com/catalogd/catalogd/catalog/purge"
	"github.com/catalogd/catalogd/catalog/storage"
	"github.com/catalogd/catalogd/mv/changes/tabletest"
)

const warehouse = "wh"

var space = catalog.Namespace{"ns"}

// world is a catalog with the real store and real files.
type world struct {
	*testing.T
	root    string
	store   *postgres.Store
	files   *storage.Files
	service *catalog.Service
	limit   *limited
	exec    func(sql string, args ...any)

	documents int
}

func newWorld(t *testing.T) *world {
	t.Helper()
	pool := pgtest.Pool(t)
	w := &world{T: t, root: t.TempDir(), store: postgres.New(pool, nil)}
	var err error
	w.files, err = storage.New(storage.Config{Roots: []string{"file://" + w.root}})
	w.check(err)
	t.Cleanup(w.files.Close)
	w.limit = &limited{Files: w.files}
	w.service = catalog.NewService(catalog.Config{Store: w.store, Files: w.files})
	w.check(w.store.EnsureWarehouse(t.Context(), catalog.Warehouse{Name: warehouse, Location: "file://" + w.root}))
	w.check(w.store.CreateNamespace(t.Context(), warehouse, space, nil))
	w.exec = func(sql string, args ...any) {
		t.Helper()
		_, err := pool.Exec(context.WithoutCancel(t.Context()), sql, args...)
		w.check(err)
	}
	return w
}

func (w *world) check(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// limited deletes as many files as it is told and then fails, like a process that is
// killed.
type limited struct {
	purge.Files

	left  atomic.Int64
	limit bool
	spoil func() // runs before the first deletion
}

var errKilled = errors.New("killed")

func (l *limited) Remove(ctx context.Context, location string) error {
	if l.spoil != nil {
		l.spoil()
		l.spoil = nil
	}
	if l.limit && l.left.Add(-1) < 0 {
		return errKilled
	}
	return l.Files.Remove(ctx, location)
}

func (w *world) purger(log *slog.Logger) *purge.Purger {
	return purge.New(purge.Config{Registry: w.store, Documents: w.service, FS: w.files.FS(), Files: w.limit, Log: log})
}

func ident(name string) catalog.TableIdent { return catalog.TableIdent{Namespace: space, Name: name} }

// full makes a table of every kind of file: data, position and equality deletes or
// deletion vectors, statistics, and older metadata files.
func (w *world) full(name string, o tabletest.Options) *tabletest.Table {
	w.Helper()
	o.Location = "file://" + filepath.Join(w.root, name)
	t := tabletest.New(w, o)
	t.Append(tabletest.At(1, 1), tabletest.At(2, 30), tabletest.At(3, 60))
	t.Append(tabletest.At(4, 1), tabletest.At(5, 30))
	t.Delete(true, iceberg.EqualTo(iceberg.Reference("id"), int64(1)))
	if o.Version != 3 {
		t.DeleteEqual([]int{tabletest.FieldID, tabletest.FieldTS}, tabletest.At(2, 30))
	}
	t.Compact(func(f iceberg.DataFile) bool { return f.Count() == 1 }, func(tabletest.Row) bool { return true })
	return t
}

// register puts the table into the catalog through a metadata file with statistics and a
// log.
func (w *world) register(name string, t *tabletest.Table) catalog.Pointer {
	w.Helper()
	location := t.Location()
	file := func(rel, content string) string {
		path := filepath.Join(strings.TrimPrefix(location, "file://"), rel)
		w.check(os.MkdirAll(filepath.Dir(path), 0o750))
		w.check(os.WriteFile(path, []byte(content), 0o600))
		return "file://" + path
	}
	older := file("metadata/00000-older.metadata.json", "{}")
	stats := file("metadata/stats.puffin", "PFA1")
	partition := file("metadata/partition-stats.parquet", "PAR1")
	doc := string(t.Document())
	doc = strings.TrimSuffix(strings.TrimSpace(doc), "}") + fmt.Sprintf(`,"metadata-log":[{"timestamp-ms":1,"metadata-file":%q}],
		"statistics":[{"snapshot-id":%d,"statistics-path":%q,"file-size-in-bytes":4,"file-footer-size-in-bytes":0,"blob-metadata":[]}],
		"partition-statistics":[{"snapshot-id":%d,"statistics-path":%q,"file-size-in-bytes":4}]}`, older, t.Head(), stats, t.Head(), partition)
	doc = strings.Replace(doc, `"metadata-log":[],`, "", 1)
	w.documents++ // a name is never used twice
	current := file(fmt.Sprintf("metadata/00001-%d.metadata.json", w.documents), doc)
	l, err := w.service.RegisterTable(w.Context(), warehouse, space, name, current, false)
	w.check(err)
	return l.Pointer
}

// listing is all files below a folder of the root, relative to it.
func (w *world) listing(folder string) []string {
	w.Helper()
	found := []string{}
	root := filepath.Join(w.root, folder)
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			found = append(found, strings.TrimPrefix(name, root+"/"))
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		w.Fatal(err)
	}
	return found
}

// dropped drops a table with purge and returns the drop.
func (w *world) dropped(name string) int64 {
	w.Helper()
	w.check(w.service.DropTable(w.Context(), warehouse, ident(name), true))
	return w.due(1)[0]
}

func (w *world) due(n int) []int64 {
	w.Helper()
	ids, err := w.store.Expire(w.Context())
	w.check(err)
	if len(ids) != n {
		w.Fatalf("%d drops are to be purged, want %d", len(ids), n)
	}
	return ids
}

func (w *world) purge(id int64) {
	w.Helper()
	wait, err := w.purger(nil).Purge(w.Context(), id)
	if err != nil || wait != 0 {
		w.Fatalf("Purge = wait %s, %v", wait, err)
	}
}

func TestPurgeDeletesEverythingReachable(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]tabletest.Options{
		"v2": {Version: 2}, "v2 partitioned": {Version: 2, Day: true, Bucket: true}, "v3": {Version: 3, Day: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.register("t", w.full("t", o))
			other := w.full("other", o)
			w.register("other", other)
			before := w.listing("other")
			if n := len(w.listing("t")); n < 12 {
				t.Fatalf("the table has %d files, too few to mean anything", n)
			}
			stray := filepath.Join(w.root, "t", "data", "not-ours.parquet")
			w.check(os.WriteFile(stray, nil, 0o600))
			id := w.dropped("t")
			w.purge(id)
			if left := w.listing("t"); !cmp.Equal(left, []string{"data/not-ours.parquet"}) {
				t.Errorf("left behind: %v, want only the file that the table does not know", left)
			}
			if diff := cmp.Diff(before, w.listing("other")); diff != "" {
				t.Errorf("another table lost files (-before +after):\n%s", diff)
			}
			w.due(0)
			w.purge(id) // once more
			if _, err := os.Stat(filepath.Join(w.root, "t", "metadata")); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("an empty folder is left: %v", err)
			}
		})
	}
}

// TestPurgeIsResumed: whatever the moment at which a purge is cut off, the next one ends
// in the same state, and in between every manifest still leads to what it names.
func TestPurgeIsResumed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for cut := 0; ; cut++ {
		name := fmt.Sprintf("t%d", cut)
		w.register(name, w.full(name, tabletest.Options{Day: true}))
		files := w.listing(name)
		id := w.dropped(name)
		w.limit.limit = true
		w.limit.left.Store(int64(cut))
		_, err := w.purger(nil).Purge(t.Context(), id)
		w.limit.limit = false
		if err == nil && cut < len(files) {
			t.Fatalf("the purge of %d files was not cut off after %d", len(files), cut)
		}
		if err != nil && !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
		if err != nil {
			if left := len(w.listing(name)); left < len(files)-cut {
				t.Errorf("cut off after %d of %d: %d are left", cut, len(files), left)
			}
			w.due(1)
			w.purge(id)
		}
		if left := w.listing(name); len(left) != 0 {
			t.Fatalf("cut off after %d of %d, and run again: left behind %v", cut, len(files), left)
		}
		w.due(0)
		if err == nil {
			if cut < 12 {
				t.Errorf("only %d points were tried", cut)
			}
			break
		}
	}
}

// TestPurgeKeepsWhatOthersUse: each way in which a table's files can be another one's.
func TestPurgeKeepsWhatOthersUse(t *testing.T) {
	t.Parallel()
	// foreign makes a row as another catalog implementation does: it knows six columns.
	foreign := func(w *world, name, metadata string) {
		w.exec(`INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name, metadata_location, iceberg_type)
			VALUES ($1, 'ns', $2, $3, 'TABLE')`, warehouse, name, metadata)
	}
	for name, share := range map[string]func(w *world, p catalog.Pointer){
		"registered twice": func(w *world, p catalog.Pointer) { foreign(w, "twin", p.MetadataLocation) },
		"an older state registered": func(w *world, p catalog.Pointer) {
			older := filepath.Join(w.root, "t", "metadata", "v0.metadata.json")
			doc, err := os.ReadFile(strings.TrimPrefix(p.MetadataLocation, "file://"))
			w.check(err)
			w.check(os.WriteFile(older, doc, 0o600))
			foreign(w, "twin", "file://"+older)
		},
		"its state copied elsewhere": func(w *world, p catalog.Pointer) {
			doc, err := os.ReadFile(strings.TrimPrefix(p.MetadataLocation, "file://"))
			w.check(err)
			file := filepath.Join(w.root, "copy.metadata.json")
			w.check(os.WriteFile(file, []byte(strings.Replace(string(doc), p.UUID, "0f2c1f6e-6b6a-4c39-9c6b-1f2a3b4c5d6e", 1)), 0o600))
			foreign(w, "copy", "file://"+file)
		},
		"a table inside": func(w *world, p catalog.Pointer) {
			inner := tabletest.New(w, tabletest.Options{Location: p.Location + "/inner"})
			inner.Append(tabletest.At(1, 1))
			file := filepath.Join(w.root, "inner.metadata.json")
			w.check(os.WriteFile(file, inner.Document(), 0o600))
			foreign(w, "inner", "file://"+file)
			w.exec(`UPDATE iceberg_tables SET location = $1, location_key = $2 WHERE table_name = 'inner'`,
				p.Location+"/inner", catalog.LocationKey(p.Location+"/inner"))
		},
		"a table around": func(w *world, _ catalog.Pointer) {
			foreign(w, "outer", "file://"+w.root+"/outer.metadata.json")
			w.exec(`UPDATE iceberg_tables SET location = $1, location_key = $2 WHERE table_name = 'outer'`, "file://"+w.root, catalog.LocationKey(w.root))
		},
		"a dropped twin that can come back": func(w *world, p catalog.Pointer) {
			foreign(w, "twin", p.MetadataLocation)
			d := time.Hour
			w.check(w.store.UpdateWarehouse(w.Context(), warehouse, catalog.WarehouseUpdate{SoftDelete: &d}))
			w.check(w.service.DropTable(w.Context(), warehouse, ident("twin"), false))
			d = 0
			w.check(w.store.UpdateWarehouse(w.Context(), warehouse, catalog.WarehouseUpdate{SoftDelete: &d}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			p := w.register("t", w.full("t", tabletest.Options{}))
			share(w, p)
			before := w.listing("t")
			id := w.dropped("t")
			w.purge(id)
			after := w.listing("t")
			if name == "its state copied elsewhere" {
				// The copy does not name the file that only the original's row named.
				before = slices.DeleteFunc(before, func(f string) bool { return "file://"+filepath.Join(w.root, "t", f) == p.MetadataLocation })
			}
			if diff := cmp.Diff(before, after); diff != "" {
				t.Errorf("files are gone (-before +after):\n%s", diff)
			}
			w.due(0) // and it is not tried again
		})
	}
}

// TestPurgeKeepsSharedFiles: files that tables elsewhere took over by their paths stay, and
// nothing else does.
func TestPurgeKeepsSharedFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	source := w.full("t", tabletest.Options{Day: true})
	w.register("t", source)
	var taken []string
	clone := tabletest.New(w, tabletest.Options{Location: "file://" + filepath.Join(w.root, "clone")})
	for _, task := range source.Tasks()[:1] {
		taken = append(taken, task.File.FilePath())
	}
	clone.Tx(func(ctx context.Context, tx *table.Transaction) error { return tx.AddFiles(ctx, taken, nil, false) })
	w.register("clone", clone)
	last := tabletest.New(w, tabletest.Options{Location: "file://" + filepath.Join(w.root, "late")})
	w.register("late", last)

	id := w.dropped("t")
	w.purge(id)
	want := []string{strings.TrimPrefix(taken[0], "file://"+filepath.Join(w.root, "t")+"/")}
	if left := w.listing("t"); !cmp.Equal(left, want) {
		t.Errorf("left behind: %v, want the shared file %v", left, want)
	}
	if rows := clone.Rows(clone.Head()); len(rows) == 0 {
		t.Error("the clone cannot read its rows")
	}
	// What a table uses outside of its location is known now, and found again without
	// reading it; a new snapshot is looked at.
	again := w.full("again", tabletest.Options{})
	w.register("again", again)
	file := again.Tasks()[0].File.FilePath()
	clone.Tx(func(ctx context.Context, tx *table.Transaction) error {
		return tx.AddFiles(ctx, []string{file}, nil, false)
	})
	w.exec(`DELETE FROM iceberg_tables WHERE table_name = 'clone'`)
	w.register("clone", clone)
	w.purge(w.dropped("again"))
	if left := w.listing("again"); len(left) != 1 || !strings.HasSuffix(file, left[0]) {
		t.Errorf("left behind: %v, want the shared file %s", left, file)
	}
}

// TestPurgeWaitsForUnreadableTables: what a table names is not known until it can be read.
func TestPurgeWaitsForUnreadableTables(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.register("t", w.full("t", tabletest.Options{}))
	other := w.full("other", tabletest.Options{})
	w.register("other", other)
	list := strings.TrimPrefix(other.CurrentSnapshot().ManifestList, "file://")
	content, err := os.ReadFile(list)
	w.check(err)
	w.check(os.WriteFile(list, content[:len(content)/2], 0o600))
	before := w.listing("t")
	id := w.dropped("t")
	if _, err := w.purger(nil).Purge(t.Context(), id); catalog.KindOf(err) != catalog.KindUnavailable || !strings.Contains(err.Error(), list) {
		t.Errorf("Purge = %v, want an error that names %s", err, list)
	}
	if diff := cmp.Diff(before, w.listing("t")); diff != "" {
		t.Errorf("files are gone (-before +after):\n%s", diff)
	}
	w.check(os.WriteFile(list, content, 0o600))
	w.purge(id)
	if left := w.listing("t"); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestPurgeRespectsLeases(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.register("t", w.full("t", tabletest.Options{}))
	w.exec(`INSERT INTO snapshot_lease (table_uuid, snapshot_id, until) VALUES ($1, 1, now() + interval '1 hour')`, p.UUID)
	before := w.listing("t")
	id := w.dropped("t")
	wait, err := w.purger(nil).Purge(t.Context(), id)
	if err != nil || wait < 50*time.Minute || wait > time.Hour {
		t.Errorf("Purge = wait %s, %v, want about an hour", wait, err)
	}
	if diff := cmp.Diff(before, w.listing("t")); diff != "" {
		t.Errorf("leased files are gone (-before +after):\n%s", diff)
	}
	w.exec(`UPDATE snapshot_lease SET until = now() - interval '1 second'`)
	w.purge(id)
	if left := w.listing("t"); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestPurgeHonoursGC: with gc.enabled=false a purge is refused, and one that was asked for
// in another way keeps all files.
func TestPurgeHonoursGC(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.register("t", w.full("t", tabletest.Options{Properties: iceberg.Properties{"gc.enabled": "false"}}))
	err := w.service.DropTable(t.Context(), warehouse, ident("t"), true)
	if catalog.KindOf(err) != catalog.KindConflict || !strings.Contains(err.Error(), "gc.enabled") {
		t.Errorf("DropTable with purge = %v, want a conflict that names gc.enabled", err)
	}
	w.check(w.service.TableExists(t.Context(), warehouse, ident("t")))
	d := time.Hour
	w.check(w.store.UpdateWarehouse(t.Context(), warehouse, catalog.WarehouseUpdate{SoftDelete: &d}))
	w.check(w.service.DropTable(t.Context(), warehouse, ident("t"), false))
	found, err := w.store.FindDropped(t.Context(), warehouse, catalog.DroppedMatch{Ident: ident("t")})
	w.check(err)
	w.check(w.service.ExpireDropped(t.Context(), warehouse, found[0].Pointer.UUID, true))
	before := w.listing("t")
	w.purge(w.due(1)[0])
	if diff := cmp.Diff(before, w.listing("t")); diff != "" {
		t.Errorf("files are gone (-before +after):\n%s", diff)
	}
}

// TestPurgeStaysInside: files of the table outside of its location stay.
func TestPurgeStaysInside(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	outside := "file://" + filepath.Join(w.root, "elsewhere")
	w.register("t", w.full("t", tabletest.Options{Properties: iceberg.Properties{"write.data.path": outside}}))
	before := w.listing("elsewhere")
	if len(before) == 0 {
		t.Fatal("the table has no files outside")
	}
	w.purge(w.dropped("t"))
	if left := w.listing("t"); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	if diff := cmp.Diff(before, w.listing("elsewhere")); diff != "" {
		t.Errorf("files outside are gone (-before +after):\n%s", diff)
	}
}

// TestPurgeStopsForNewcomers: whoever comes to use the location while it is being emptied
// keeps the rest.
func TestPurgeStopsForNewcomers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.register("t", w.full("t", tabletest.Options{}))
	before := w.listing("t")
	id := w.dropped("t")
	w.limit.spoil = func() {
		w.exec(`INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name, metadata_location, iceberg_type)
			VALUES ($1, 'ns', 'newcomer', $2, 'TABLE')`, warehouse, p.MetadataLocation)
	}
	clock := time.Now()
	late := purge.New(purge.Config{
		Registry: w.store, Documents: w.service, FS: w.files.FS(), Files: w.limit,
		Now: func() time.Time { clock = clock.Add(time.Minute); return clock },
	})
	if wait, err := late.Purge(t.Context(), id); err != nil || wait != 0 {
		t.Fatalf("Purge = wait %s, %v", wait, err)
	}
	left := w.listing("t")
	if len(left) == len(before) || len(left) == 0 {
		t.Errorf("%d of %d files are left, want the purge to stop on its way", len(left), len(before))
	}
	if !slices.Contains(left, strings.TrimPrefix(p.MetadataLocation, "file://"+filepath.Join(w.root, "t")+"/")) {
		t.Error("the newcomer's metadata file is gone")
	}
	w.due(0)
}

// TestPurgeKeepsForeignPointers: a table elsewhere may point at a metadata file that the
// dropped one had once.
func TestPurgeKeepsForeignPointers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.register("t", w.full("t", tabletest.Options{}))
	moved := tabletest.New(w, tabletest.Options{Location: "file://" + filepath.Join(w.root, "moved")})
	moved.Append(tabletest.At(1, 1))
	older := filepath.Join(w.root, "t", "metadata", "00000-older.metadata.json")
	w.check(os.WriteFile(older, moved.Document(), 0o600))
	if _, err := w.service.RegisterTable(t.Context(), warehouse, space, "moved", "file://"+older, false); err != nil {
		t.Fatal(err)
	}
	w.purge(w.dropped("t"))
	if left := w.listing("t"); !cmp.Equal(left, []string{"metadata/00000-older.metadata.json"}) {
		t.Errorf("left behind: %v, want the file that another table points at", left)
	}
}

// TestSoftDeleteOfForeignRows: a row that another catalog implementation wrote says little
// about its table; what comes back is whole.
func TestSoftDeleteOfForeignRows(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := time.Hour
	w.check(w.store.UpdateWarehouse(t.Context(), warehouse, catalog.WarehouseUpdate{SoftDelete: &d}))
	tbl := w.full("t", tabletest.Options{})
	p := w.register("t", tbl)
	w.exec(`UPDATE iceberg_tables SET object_uuid = NULL, location = NULL, location_key = NULL, snapshot_id = NULL, schema_id = NULL`)
	w.exec(`DELETE FROM metadata_document`)
	w.check(w.service.DropTable(t.Context(), warehouse, ident("t"), false))
	got, err := w.service.Undrop(t.Context(), warehouse, catalog.UndropRequest{UUID: p.UUID})
	if err != nil {
		t.Fatal(err)
	}
	if got.UUID != p.UUID || got.Location != p.Location {
		t.Errorf("Undrop = %+v, want the uuid and location of %+v", got, p)
	}
	l, err := w.service.LoadTable(t.Context(), warehouse, ident("t"))
	if err != nil || l.Pointer.MetadataLocation != p.MetadataLocation {
		t.Errorf("LoadTable = %+v, %v", l.Pointer, err)
	}
}
