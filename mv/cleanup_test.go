package mv_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/catalogd/catalogd/catalog"
	catalogpg "github.com/catalogd/catalogd/catalog/postgres"
	"github.com/catalogd/catalogd/catalog/postgres/pgtest"
	"github.com/catalogd/catalogd/catalog/storage"
	"github.com/catalogd/catalogd/jobs"
	"github.com/catalogd/catalogd/mv"
	"github.com/catalogd/catalogd/mv/changes/tabletest"
	mvpg "github.com/catalogd/catalogd/mv/postgres"
	"github.com/catalogd/catalogd/mv/publish"
)

// house is a catalog with a materialized view whose storage table has real files, real
// metadata and real snapshots.
type house struct {
	*testing.T
	pool    *pgxpool.Pool
	store   *catalogpg.Store
	service *catalog.Service
	files   *storage.Files
	reg     *mvpg.Registry
	root    string // location
	now     time.Time
	log     bytes.Buffer

	view    string
	table   *tabletest.Table // writes files; the catalog's own document is the truth
	cleaner *mv.Cleaner
	rows    []tabletest.Row
}

var storageIdent = catalog.TableIdent{Namespace: catalog.Namespace{"demo"}, Name: "v__storage"}

func newHouse(t *testing.T) *house {
	t.Helper()
	h := &house{T: t, pool: pgtest.Pool(t), root: "file://" + t.TempDir(), now: time.Now()}
	h.reg = mvpg.New(h.pool)
	queue, err := jobs.NewEnqueuer(h.pool, slog.New(slog.DiscardHandler))
	h.check(err)
	h.store = catalogpg.New(h.pool, jobs.NewHook(h.reg, queue))
	h.files, err = storage.New(storage.Config{Roots: []string{h.root}})
	h.check(err)
	t.Cleanup(h.files.Close)
	h.service = catalog.NewService(catalog.Config{Store: h.store, Files: h.files})
	h.cleaner = mv.NewCleaner(mv.CleanerConfig{
		Registry: h.reg, Documents: h.service, Sweeper: publish.NewSweeper(h.files.FS(), h.files),
		Log: slog.New(slog.NewTextHandler(&h.log, nil)), Now: func() time.Time { return h.now },
	})
	h.check(h.store.EnsureWarehouse(t.Context(), catalog.Warehouse{Name: "wh", Location: h.root}))
	h.check(h.store.CreateNamespace(t.Context(), "wh", catalog.Namespace{"demo"}, nil))
	h.create()
	return h
}

func (h *house) check(err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
}

func (h *house) exec(sql string, args ...any) {
	h.Helper()
	_, err := h.pool.Exec(h.Context(), sql, args...)
	h.check(err)
}

// create registers the view and its storage table, which is below the view as usual.
func (h *house) create() {
	h.Helper()
	h.table = tabletest.New(h, tabletest.Options{
		Day: true, Location: h.root + "/demo/v/storage-" + uuid.NewString(), FS: h.files.FS(),
		Properties: iceberg.Properties{"write.metadata.previous-versions-max": "2"},
	})
	doc := h.table.Document()
	file := h.table.Location() + "/metadata/00000-" + uuid.NewString() + ".metadata.json"
	h.check(h.files.Write(h.Context(), file, doc))
	h.view = uuid.NewString()
	view := catalog.Pointer{
		Warehouse: "wh", Ident: catalog.TableIdent{Namespace: catalog.Namespace{"demo"}, Name: "v"}, Type: catalog.TypeView, UUID: h.view,
		MetadataLocation: h.root + "/demo/v/metadata/1.json", Location: h.root + "/demo/v", ViewVersionID: 1, IsMaterialized: true,
	}
	store := catalog.Pointer{
		Warehouse: "wh", Ident: storageIdent, Type: catalog.TypeTable, UUID: h.table.Metadata().TableUUID().String(),
		MetadataLocation: file, Location: h.table.Location(), SnapshotID: mv.NoSnapshot, StorageOf: h.view,
	}
	reg := &mv.Registration{Definition: mv.Definition{
		ViewUUID: h.view, Warehouse: "wh", Ident: view.Ident, VersionID: 1, Dialect: mv.DuckDB, SQL: "SELECT 1",
		Storage: storageIdent, StorageUUID: store.UUID, Mode: mv.Managed,
	}}
	h.check(h.store.Commit(h.Context(), []catalog.Change{
		{Op: catalog.OpCreate, Pointer: view, Document: catalog.NewDocument(view.MetadataLocation, []byte("{}"), nil), Attachment: reg},
		{Op: catalog.OpCreate, Pointer: store, Document: catalog.NewDocument(file, doc, nil)},
	}))
}

func (h *house) pointer() catalog.Pointer {
	h.Helper()
	p, ok, err := h.service.Find(h.Context(), "wh", storageIdent)
	if err != nil || !ok {
		h.Fatalf("storage table: %v, %v", ok, err)
	}
	return p
}

// output writes a file as an engine does in a run.
func (h *house) output(run string, rows ...tabletest.Row) mv.OutputFile {
	h.Helper()
	f := h.table.Write(rows...)[0]
	data, err := h.files.Read(h.Context(), f.FilePath())
	h.check(err)
	to := publish.Folder(h.table.Location(), run) + "0.parquet"
	h.check(h.files.Write(h.Context(), to, data))
	h.check(h.files.Remove(h.Context(), f.FilePath()))
	return mv.OutputFile{Path: to, Records: f.Count(), Bytes: f.FileSizeBytes()}
}

// begin records a run with the given state.
func (h *house) begin(status string, process any) string {
	h.Helper()
	id := uuid.NewString()
	h.exec(`INSERT INTO refresh (refresh_id, view_uuid, status, process_id, ended_at)
		VALUES ($1, $2, $3, $4, CASE WHEN $3 <> 'running' THEN clock_timestamp() END)`, id, h.view, status, process)
	return id
}

// refresh replaces all rows, n times; two snapshots stay.
func (h *house) refresh(n int) {
	h.Helper()
	pub := publish.New(h.files.FS(), h.files)
	for range n {
		id := h.begin("running", nil)
		p := h.pointer()
		doc, err := h.service.Document(h.Context(), p)
		h.check(err)
		h.rows = []tabletest.Row{tabletest.At(int64(len(h.rows))+1, 5), tabletest.At(int64(n), 6)}
		staged, err := pub.Replace(h.Context(), mv.Publication{
			Document: doc, Head: p.SnapshotID, All: true, Add: []mv.OutputFile{h.output(id, h.rows...)}, Keep: 2,
		})
		h.check(err)
		_, err = h.service.CommitTable(h.Context(), "wh", storageIdent, catalog.CommitRequest{
			Requirements: staged.Requirements, Updates: staged.Updates, Internal: true,
		})
		h.check(err)
		h.exec(`UPDATE refresh SET status = 'succeeded', ended_at = clock_timestamp() WHERE refresh_id = $1`, id)
	}
}

// see is the periodic look at all storage tables.
func (h *house) see() mv.Sighting {
	h.Helper()
	seen, err := h.cleaner.Sightings(h.Context(), time.Hour)
	if err != nil || len(seen) != 1 {
		h.Fatalf("Sightings = %+v, %v, want the one storage table", seen, err)
	}
	return seen[0]
}

func (h *house) all() []string {
	h.Helper()
	all, err := h.files.List(h.Context(), h.table.Location())
	h.check(err)
	return all
}

// age makes all files that much older than now.
func (h *house) age(d time.Duration) {
	h.Helper()
	for _, name := range h.all() {
		at := h.now.Add(-d)
		h.check(os.Chtimes(strings.TrimPrefix(name, "file://"), at, at))
	}
}

// meta is the table as a client would load it.
func (h *house) meta() table.Metadata {
	h.Helper()
	doc, err := h.files.Read(h.Context(), h.pointer().MetadataLocation)
	h.check(err)
	meta, err := table.ParseMetadataBytes(doc)
	h.check(err)
	return meta
}

// needs lists what iceberg-go reaches from metadata, and the metadata files.
func (h *house) needs() []string {
	h.Helper()
	meta := h.meta()
	need := map[string]bool{h.pointer().MetadataLocation: true}
	for older := range meta.PreviousFiles() {
		need[older.MetadataFile] = true
	}
	for _, s := range meta.Snapshots() {
		need[s.ManifestList] = true
		list, err := s.Manifests(h.files.FS())
		h.check(err)
		for _, m := range list {
			need[m.FilePath()] = true
			for e, err := range m.Entries(h.files.FS(), true) {
				h.check(err)
				need[e.DataFile().FilePath()] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(need))
}

func (h *house) readable() {
	h.Helper()
	h.table.Reset(h.meta())
	if diff := tabletest.Diff(h.rows, h.table.Rows(h.table.Head())); len(diff) > 0 {
		h.Errorf("%d rows of the storage table differ", len(diff))
	}
}

func TestCleanLeavesWhatTheTableNeeds(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.refresh(6)
	process := uuid.New()
	h.exec(`INSERT INTO process_heartbeat (process_id) VALUES ($1)`, process)
	running, dead, alive := h.begin("running", nil), h.begin("lost", uuid.New()), h.begin("lost", process)
	files := map[string]string{}
	for _, run := range []string{running, dead, alive} {
		files[run] = h.output(run, tabletest.At(1, 1)).Path
	}
	h.exec(`UPDATE refresh SET started_at = now() - interval '5 hours', progress_at = now() - interval '5 hours',
		ended_at = ended_at - interval '2 hours'`)
	h.age(3 * time.Hour)
	seen := h.see()
	if got := h.pointer(); seen.TableUUID != got.UUID || seen.MetadataLocation != got.MetadataLocation {
		t.Fatalf("seen %+v, want %+v", seen, got)
	}
	if err := h.cleaner.Clean(t.Context(), seen); catalog.KindOf(err) != catalog.KindUnavailable {
		t.Errorf("Clean right after the sighting = %v, want a refusal", err)
	}
	h.now = h.now.Add(time.Hour)
	before := len(h.all())
	h.check(h.cleaner.Clean(t.Context(), seen))

	want := append(h.needs(), files[running], files[alive])
	slices.Sort(want)
	if diff := cmp.Diff(want, h.all()); diff != "" {
		t.Errorf("files (-needed +left):\n%s", diff)
	}
	if removed := fmt.Sprintf("removed=%d ", before-len(want)); before-len(want) < 8 || !strings.Contains(h.log.String(), removed) {
		t.Errorf("the log does not say %q: %s", removed, &h.log)
	}
	h.readable()
	h.refresh(1) // the table can still be written
	h.readable()
}

// TestCleanSparesReaders is a fast view: all snapshots that were there an hour ago are
// gone, and the newest of them was gone only a moment ago.
func TestCleanSparesReaders(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.refresh(5)
	h.age(9 * time.Hour)
	seen, needed := h.see(), h.needs()
	h.refresh(4)
	h.now = h.now.Add(61 * time.Minute)
	h.exec(`DELETE FROM metadata_document WHERE metadata_location = $1`, seen.MetadataLocation) // long pruned
	h.check(h.cleaner.Clean(t.Context(), seen))
	left := h.all()
	for _, name := range needed {
		if !slices.Contains(left, name) {
			t.Errorf("%s was removed, although a query may still read it", name)
		}
	}
	h.readable()
	h.age(9 * time.Hour)
	next := h.see()
	h.now = h.now.Add(time.Hour)
	h.exec(`UPDATE refresh SET ended_at = $1`, next.At.Add(-time.Minute))
	h.check(h.cleaner.Clean(t.Context(), next))
	if diff := cmp.Diff(h.needs(), h.all()); diff != "" {
		t.Errorf("files after the next cleanup (-needed +left):\n%s", diff)
	}
}

func TestCleanLeavesOthersAlone(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.refresh(5)
	h.age(100 * time.Hour)
	seen := h.see()
	h.now = h.now.Add(2 * time.Hour)
	h.exec(`UPDATE refresh SET ended_at = ended_at - interval '2 hours'`)
	before := h.all()
	p := h.pointer()
	cases := []struct{ name, location, metadata, uuid string }{
		{"inside", strings.Replace(p.Location, "file://", "file:", 1) + "/data/t", "s3://b/1.json", uuid.NewString()},
		{"around", h.root + "/", "s3://b/1.json", uuid.NewString()},
		{"same table", "s3://b/x", "s3://b/1.json", p.UUID},
		{"metadata inside", "", strings.TrimPrefix(p.MetadataLocation, "file://"), ""},
	}
	for _, c := range cases {
		h.exec(`INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name, metadata_location, location, object_uuid)
			VALUES ('elsewhere', 'x', 'y', $1, nullif($2, ''), nullif($3, '')::uuid)`, c.metadata, c.location, c.uuid)
		h.check(h.cleaner.Clean(t.Context(), seen))
		h.check(h.cleaner.RemoveDropped(t.Context(), mv.DroppedStorage{TableUUID: p.UUID, Location: p.Location, At: h.now}))
		if diff := cmp.Diff(before, h.all()); diff != "" {
			t.Errorf("%s: files changed:\n%s", c.name, diff)
		}
		if !strings.Contains(h.log.String(), "elsewhere.x.y") {
			t.Errorf("%s: the log does not name the other table: %s", c.name, &h.log)
		}
		h.log.Reset()
		h.exec(`DELETE FROM iceberg_tables WHERE catalog_name = 'elsewhere'`)
	}
	neighbour := strings.TrimSuffix(p.Location, "1") + "12345"
	h.exec(`INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name, metadata_location, location)
		VALUES ('elsewhere', 'x', 'y', $1, $2)`, neighbour+"/metadata/1.json", neighbour)
	h.check(h.cleaner.Clean(t.Context(), seen))
	if len(h.all()) == len(before) {
		t.Errorf("nothing was removed because of a neighbour: %s", &h.log)
	}
}

func TestCleanRemovesNothingIfUnsure(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.refresh(4)
	list, err := h.meta().Snapshots()[0].Manifests(h.files.FS())
	h.check(err)
	h.check(os.WriteFile(strings.TrimPrefix(list[0].FilePath(), "file://"), []byte("damaged"), 0o600))
	h.age(100 * time.Hour)
	seen, before := h.see(), h.all()
	h.now = h.now.Add(2 * time.Hour)
	if err := h.cleaner.Clean(t.Context(), seen); err == nil || !strings.Contains(err.Error(), path.Base(list[0].FilePath())) {
		t.Errorf("Clean = %v, want an error that names the manifest", err)
	}
	if diff := cmp.Diff(before, h.all()); diff != "" {
		t.Errorf("files changed:\n%s", diff)
	}
	gone := mv.Sighting{TableUUID: uuid.NewString(), MetadataLocation: seen.MetadataLocation, At: seen.At}
	if err := h.cleaner.Clean(t.Context(), gone); err != nil {
		t.Errorf("Clean of a table that is gone = %v", err)
	}
}

func TestRemoveDropped(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.refresh(2)
	p := h.pointer()
	d := mv.DroppedStorage{TableUUID: p.UUID, Location: p.Location, Name: "demo.v__storage", At: h.now.Add(time.Minute)}
	stays := func(what, why string, d mv.DroppedStorage) {
		t.Helper()
		h.log.Reset()
		before := h.all()
		if err := h.cleaner.RemoveDropped(t.Context(), d); err != nil {
			t.Errorf("%s: RemoveDropped = %v", what, err)
		}
		if diff := cmp.Diff(before, h.all()); diff != "" || !strings.Contains(h.log.String(), why) {
			t.Errorf("%s: log %s, files changed:\n%s", what, &h.log, diff)
		}
	}
	stays("not dropped", "belong to others", d)
	doc, err := h.service.Document(t.Context(), p)
	h.check(err)
	h.check(h.store.Commit(t.Context(), []catalog.Change{
		{Op: catalog.OpDrop, Pointer: catalog.Pointer{
			Warehouse: "wh", Ident: catalog.TableIdent{Namespace: catalog.Namespace{"demo"}, Name: "v"}, Type: catalog.TypeView, UUID: h.view,
		}},
		{Op: catalog.OpDrop, Pointer: p},
	}))
	var queued json.RawMessage
	h.check(h.pool.QueryRow(t.Context(), `SELECT args FROM river_job WHERE kind = 'dropped_storage' AND state = 'scheduled'`).Scan(&queued))
	if !bytes.Contains(queued, []byte(p.Location)) {
		t.Errorf("queued %s, want location %s", queued, p.Location)
	}

	back := p
	back.StorageOf, back.Ident.Name = "", "back"
	h.check(h.store.Commit(t.Context(), []catalog.Change{{Op: catalog.OpCreate, Pointer: back, Document: catalog.NewDocument(p.MetadataLocation, doc, nil)}}))
	stays("registered again", "wh.demo.back", d)
	h.check(h.store.Commit(t.Context(), []catalog.Change{{Op: catalog.OpDrop, Pointer: back}}))

	parent := d
	parent.Location = path.Dir(strings.TrimPrefix(d.Location, "file://"))
	stays("a location that somebody else chose", "did not choose", parent)
	other := d
	other.Location = "file:///elsewhere/storage-" + uuid.NewString()
	stays("outside of the roots", "may not write", other)

	late := d
	late.At = h.now.Add(-2 * time.Hour)
	stays("used after the drop", "since", late)

	h.log.Reset()
	removed := len(h.all())
	h.check(h.cleaner.RemoveDropped(t.Context(), d))
	if left := h.all(); len(left) > 0 || !strings.Contains(h.log.String(), fmt.Sprintf("removed=%d ", removed)) {
		t.Errorf("left %v, log %s", left, &h.log)
	}
	h.check(h.cleaner.RemoveDropped(t.Context(), d)) // once more, as after a crash
}
