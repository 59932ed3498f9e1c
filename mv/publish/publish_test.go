package publish_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/google/go-cmp/cmp"

	"github.com/catalogd/catalogd/catalog"
	"github.com/catalogd/catalogd/catalog/storage"
	"github.com/catalogd/catalogd/mv"
	"github.com/catalogd/catalogd/mv/changes/tabletest"
	"github.com/catalogd/catalogd/mv/plan"
	"github.com/catalogd/catalogd/mv/publish"
)

const (
	hour = int64(3_600_000_000)
	day  = 24 * hour
)

// bench is a storage table with the model of its rows.
type bench struct {
	*tabletest.Table
	t     testing.TB
	files *storage.Files
	pub   *publish.Publisher
	runs  int
	keep  int
	model map[int64][]tabletest.Row // by day
}

func newBench(t testing.TB, o tabletest.Options, options ...publish.Option) *bench {
	t.Helper()
	root := "file://" + t.TempDir()
	files, err := storage.New(storage.Config{Roots: []string{root}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(files.Close)
	o.Location, o.FS = root+"/t", files.FS()
	return &bench{
		Table: tabletest.New(t, o), t: t, files: files, pub: publish.New(files.FS(), files, options...), model: map[int64][]tabletest.Row{},
	}
}

// output writes rows where an engine would, and reports them as one does.
func (b *bench) output(rows ...tabletest.Row) []mv.OutputFile {
	b.t.Helper()
	b.runs++
	var out []mv.OutputFile
	for i, f := range b.Write(rows...) {
		data, err := b.files.Read(b.t.Context(), f.FilePath())
		if err != nil {
			b.t.Fatal(err)
		}
		path := fmt.Sprintf("%s%d.parquet", publish.Folder(b.Location(), b.run()), i)
		if err := b.files.Write(b.t.Context(), path, data); err != nil {
			b.t.Fatal(err)
		}
		if err := b.files.Remove(b.t.Context(), f.FilePath()); err != nil {
			b.t.Fatal(err)
		}
		out = append(out, mv.OutputFile{Path: path, Records: f.Count(), Bytes: f.FileSizeBytes()})
	}
	return out
}

func (b *bench) run() string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", b.runs) }

// days is the restriction to whole days.
func days(d ...int64) *mv.Restriction {
	r := &mv.Restriction{FieldID: tabletest.FieldTS}
	for _, n := range d {
		r.Set.Intervals = append(r.Set.Intervals, plan.Interval{Lo: n * day, Hi: (n + 1) * day})
	}
	return r
}

// refresh publishes new rows for some days in place of the old ones.
func (b *bench) refresh(rows map[int64][]tabletest.Row) *publish.Commit {
	b.t.Helper()
	c, err := b.stage(rows)
	if err != nil {
		b.t.Fatal(err)
	}
	if err := b.Commit(c.Requirements, c.Updates); err != nil {
		b.t.Fatal(err)
	}
	maps.Copy(b.model, rows)
	return c
}

func (b *bench) stage(rows map[int64][]tabletest.Row) (*publish.Commit, error) {
	b.t.Helper()
	doc := b.Document()
	old, err := b.pub.Stored(b.t.Context(), doc, days(slices.Sorted(maps.Keys(rows))...))
	if err != nil {
		b.t.Fatal(err)
	}
	if !old.Whole {
		b.t.Fatalf("files of whole days are not whole: %+v", old)
	}
	var flat []tabletest.Row
	for _, d := range slices.Sorted(maps.Keys(rows)) {
		flat = append(flat, rows[d]...)
	}
	var add []mv.OutputFile
	if len(flat) > 0 {
		add = b.output(flat...)
	}
	return b.pub.Stage(b.t.Context(), mv.Publication{
		Document: doc, Head: b.Head(), Remove: &old, Add: add, Keep: b.keep, Summary: map[string]string{mv.KeyRefreshID: b.run()},
	})
}

// check compares the table, read by iceberg-go, with the model.
func (b *bench) check() {
	b.t.Helper()
	var want []tabletest.Row
	for _, rows := range b.model {
		want = append(want, rows...)
	}
	if diff := tabletest.Diff(want, b.Rows(b.Head())); len(diff) > 0 {
		b.t.Fatalf("%d rows differ from the model, for example %s", len(diff), diff[0].Key())
	}
}

// liveFiles lists every file that the table's metadata reaches.
func (b *bench) liveFiles() map[string]bool {
	b.t.Helper()
	live := map[string]bool{}
	for _, s := range b.Metadata().Snapshots() {
		live[s.ManifestList] = true
		list, err := s.Manifests(b.files.FS())
		if err != nil {
			b.t.Fatal(err)
		}
		for _, m := range list {
			live[m.FilePath()] = true
			for e, err := range m.Entries(b.files.FS(), false) {
				if err != nil {
					b.t.Fatal(err)
				}
				live[e.DataFile().FilePath()] = true
			}
		}
	}
	return live
}

func (b *bench) garbage() []string {
	b.t.Helper()
	all, err := b.files.List(b.t.Context(), b.Location())
	if err != nil {
		b.t.Fatal(err)
	}
	live := b.liveFiles()
	return slices.DeleteFunc(all, func(f string) bool { return live[f] })
}

func rowsOf(d int64, seed, n int64) []tabletest.Row {
	var rows []tabletest.Row
	for i := range n {
		rows = append(rows, tabletest.At(d*1000+seed*10+i, d*24+i))
	}
	return rows
}

func TestReplaceFollowsTheModel(t *testing.T) {
	t.Parallel()
	b := newBench(t, tabletest.Options{Day: true}, publish.WithManifestEntries(8))
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range int64(30) {
		rows := map[int64][]tabletest.Row{}
		for range 1 + rng.IntN(3) {
			rows[rng.Int64N(25)] = nil
		}
		for d := range rows {
			rows[d] = rowsOf(d, i, rng.Int64N(3)) // sometimes none: the day vanishes
		}
		c := b.refresh(rows)
		head := b.CurrentSnapshot()
		if head.SnapshotID != c.SnapshotID || head.Summary.Operation != table.OpOverwrite || head.Summary.Properties[mv.KeyRefreshID] != b.run() {
			t.Fatalf("run %d: head = %+v", i, head)
		}
		if i%10 == 9 {
			b.check()
			b.totals()
		}
	}
	if g := b.garbage(); len(g) > 0 {
		t.Errorf("%d files are not reachable, for example %s", len(g), g[0])
	}
}

// totals compares the running totals of the summary with the truth.
func (b *bench) totals() {
	b.t.Helper()
	var files, records, bytes int64
	for _, task := range b.Tasks() {
		files++
		records += task.File.Count()
		bytes += task.File.FileSizeBytes()
	}
	props := b.CurrentSnapshot().Summary.Properties
	want := map[string]string{
		"total-data-files": strconv.FormatInt(files, 10), "total-records": strconv.FormatInt(records, 10),
		"total-files-size": strconv.FormatInt(bytes, 10), "total-delete-files": "0",
	}
	for k, v := range want {
		if props[k] != v {
			b.t.Errorf("summary %s = %q, want %q", k, props[k], v)
		}
	}
}

func TestReplaceBoundsMetadata(t *testing.T) {
	t.Parallel()
	b := newBench(t, tabletest.Options{Day: true}, publish.WithManifestEntries(10))
	const n, span, keep = 70, 30, 20
	b.keep = keep
	var most, read int
	for i := range int64(n) {
		d := i % span
		c := b.refresh(map[int64][]tabletest.Row{d: rowsOf(d, i, 1)})
		most = max(most, c.Manifests)
		if i >= span {
			read = max(read, c.ManifestsIn)
		}
	}
	b.check()
	// The live files in manifests that are at least half full, and the small ones.
	if limit := span/(10/2) + 8 + 1; most > limit {
		t.Errorf("up to %d manifests, want at most %d", most, limit)
	}
	if read > 1+8+1 {
		t.Errorf("a refresh of one day read up to %d manifests", read)
	}
	if got := len(b.Metadata().Snapshots()); got != keep {
		t.Errorf("%d snapshots are left, want %d", got, keep)
	}
}

func TestReplaceKeepsLeasedAndNamedSnapshots(t *testing.T) {
	t.Parallel()
	b := newBench(t, tabletest.Options{Day: true})
	var made []int64
	for i := range int64(6) {
		made = append(made, b.refresh(map[int64][]tabletest.Row{i: rowsOf(i, i, 1)}).SnapshotID)
	}
	b.Update(table.NewSetSnapshotRefUpdate("tag", made[0], table.TagRef, 0, 0, 0))
	c, err := b.pub.Stage(t.Context(), mv.Publication{
		Document: b.Document(), Head: b.Head(), Add: b.output(rowsOf(9, 9, 1)...), Keep: 2, Leased: []int64{made[2], 12345},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Commit(c.Requirements, c.Updates); err != nil {
		t.Fatal(err)
	}
	var left []int64
	for _, s := range b.Metadata().Snapshots() {
		left = append(left, s.SnapshotID)
	}
	slices.Sort(left)
	want := []int64{made[0], made[2], made[5], c.SnapshotID}
	slices.Sort(want)
	if !cmp.Equal(left, want) {
		t.Errorf("snapshots left = %v, want %v", left, want)
	}
	if expired := []int64{made[4], made[3], made[1]}; !cmp.Equal(c.Expired, expired) {
		t.Errorf("Expired = %v, want %v", c.Expired, expired)
	}
}

func TestReplaceAllAndEmpty(t *testing.T) {
	t.Parallel()
	b := newBench(t, tabletest.Options{Day: true})
	publishAll := func(rows ...tabletest.Row) {
		t.Helper()
		var add []mv.OutputFile
		if len(rows) > 0 {
			add = b.output(rows...)
		}
		st, err := b.pub.Replace(t.Context(), mv.Publication{Document: b.Document(), Head: b.Head(), All: true, Add: add})
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Commit(st.Requirements, st.Updates); err != nil {
			t.Fatal(err)
		}
		if got := b.CurrentSnapshot().Summary.Operation; got != table.OpOverwrite {
			t.Fatalf("operation = %s, want overwrite", got)
		}
		b.model = map[int64][]tabletest.Row{0: rows}
		b.check()
		b.totals()
	}
	publishAll() // a view without rows: refreshed, and empty
	publishAll(slices.Concat(rowsOf(1, 1, 3), rowsOf(2, 1, 2), []tabletest.Row{tabletest.Null(7)})...)
	publishAll(rowsOf(3, 1, 1)...)
	publishAll()
	publishAll(rowsOf(4, 1, 1)...)
}

func TestReplaceRemovesDeletesOfItsFiles(t *testing.T) {
	t.Parallel()
	b := newBench(t, tabletest.Options{Day: true, Properties: iceberg.Properties{"write.metadata.metrics.column.file_path": "full"}})
	b.refresh(map[int64][]tabletest.Row{1: rowsOf(1, 0, 3), 2: rowsOf(2, 0, 3)})
	b.Delete(true, iceberg.EqualTo(iceberg.Reference("id"), int64(1000)))
	b.Delete(true, iceberg.EqualTo(iceberg.Reference("id"), int64(2000)))
	c := b.refresh(map[int64][]tabletest.Row{1: rowsOf(1, 1, 3)})
	b.model[2] = b.model[2][1:]
	b.check()
	if got := b.CurrentSnapshot().Summary.Properties["removed-delete-files"]; got != "1" || c.RowsRemoved != 3 {
		t.Errorf("removed-delete-files = %q, rows removed %d, want the one delete file of day 1", got, c.RowsRemoved)
	}
	st, err := b.pub.Replace(t.Context(), mv.Publication{Document: b.Document(), Head: b.Head(), All: true, Add: b.output(rowsOf(5, 1, 1)...)})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Commit(st.Requirements, st.Updates); err != nil {
		t.Fatal(err)
	}
	b.model = map[int64][]tabletest.Row{5: rowsOf(5, 1, 1)}
	b.check()
	b.totals()
}

func TestReplaceLosesRace(t *testing.T) {
	t.Parallel()
	b := newBench(t, tabletest.Options{Day: true})
	b.refresh(map[int64][]tabletest.Row{1: rowsOf(1, 0, 2), 2: rowsOf(2, 0, 2)})
	loser, err := b.stage(map[int64][]tabletest.Row{1: rowsOf(1, 7, 2)})
	if err != nil {
		t.Fatal(err)
	}
	folder := publish.Folder(b.Location(), b.run())
	b.refresh(map[int64][]tabletest.Row{2: rowsOf(2, 8, 2)})
	if err := b.Commit(loser.Requirements, loser.Updates); !errors.Is(err, table.ErrCommitFailed) {
		t.Fatalf("a commit over a moved head = %v, want a failed requirement", err)
	}
	if len(b.garbage()) == 0 {
		t.Fatal("the loser left nothing: this test would prove nothing")
	}
	if err := b.pub.Discard(t.Context(), loser.Written, folder); err != nil {
		t.Fatal(err)
	}
	if g := b.garbage(); len(g) > 0 {
		t.Errorf("after Discard %d files are not reachable, for example %s", len(g), g[0])
	}
	b.check()
}

func TestReplaceRefuses(t *testing.T) {
	t.Parallel()
	b := newBench(t, tabletest.Options{Day: true})
	b.refresh(map[int64][]tabletest.Row{1: rowsOf(1, 0, 2)})
	good := b.output(rowsOf(3, 0, 2)...)
	wide := b.output(rowsOf(4, 0, 2)...)
	straddling := newBench(t, tabletest.Options{}).straddle(b, rowsOf(5, 0, 1), rowsOf(6, 0, 1))
	doc, head := b.Document(), b.Head()
	gone := &mv.Stored{Files: []mv.InputFile{{Path: b.Location() + "/data/none.parquet"}}}
	cases := []struct {
		name string
		pub  mv.Publication
		kind catalog.Kind
	}{
		{"moved head", mv.Publication{Document: doc, Head: head + 1}, catalog.KindCommitFailed},
		{"no head", mv.Publication{Document: doc, Head: mv.NoSnapshot}, catalog.KindCommitFailed},
		{"file is gone", mv.Publication{Document: doc, Head: head, Remove: gone}, catalog.KindCommitFailed},
		{"wrong row count", mv.Publication{Document: doc, Head: head, Add: []mv.OutputFile{{Path: good[0].Path, Bytes: good[0].Bytes, Records: 99}}}, catalog.KindUnprocessable},
		{"wrong size", mv.Publication{Document: doc, Head: head, Add: []mv.OutputFile{{Path: good[0].Path, Bytes: 1, Records: good[0].Records}}}, catalog.KindUnprocessable},
		{"twice", mv.Publication{Document: doc, Head: head, Add: append(slices.Clone(wide), wide...)}, catalog.KindUnprocessable},
		{"straddles", mv.Publication{Document: doc, Head: head, Add: straddling}, catalog.KindUnprocessable},
		{"not a table", mv.Publication{Document: []byte("{"), Head: head}, catalog.KindUnprocessable},
	}
	before := len(b.garbage())
	for _, c := range cases {
		if _, err := b.pub.Replace(t.Context(), c.pub); catalog.KindOf(err) != c.kind {
			t.Errorf("%s: Replace = %v (kind %d), want kind %d", c.name, err, catalog.KindOf(err), c.kind)
		}
	}
	if after := len(b.garbage()); after != before {
		t.Errorf("refused runs left %d files", after-before)
	}
}

// straddle writes one file that holds rows of two days, into the folder of another bench.
func (b *bench) straddle(into *bench, rows ...[]tabletest.Row) []mv.OutputFile {
	b.t.Helper()
	out := b.output(slices.Concat(rows...)...)
	for i := range out {
		data, err := b.files.Read(b.t.Context(), out[i].Path)
		if err != nil {
			b.t.Fatal(err)
		}
		out[i].Path = into.Location() + "/data/straddle/" + strconv.Itoa(i)
		if err := into.files.Write(b.t.Context(), out[i].Path, data); err != nil {
			b.t.Fatal(err)
		}
	}
	return out
}

func TestNoData(t *testing.T) {
	t.Parallel()
	b := newBench(t, tabletest.Options{Day: true})
	if _, err := b.pub.NoData(t.Context(), mv.Publication{Document: b.Document(), Head: mv.NoSnapshot}); catalog.KindOf(err) != catalog.KindUnprocessable {
		t.Errorf("NoData of an empty table = %v", err)
	}
	b.refresh(map[int64][]tabletest.Row{1: rowsOf(1, 0, 2)})
	old := b.CurrentSnapshot()
	st, err := b.pub.NoData(t.Context(), mv.Publication{Document: b.Document(), Head: b.Head(), Summary: map[string]string{mv.KeyStrategy: "none"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Commit(st.Requirements, st.Updates); err != nil {
		t.Fatal(err)
	}
	head := b.CurrentSnapshot()
	if head.Summary.Operation != table.OpReplace || head.Summary.Properties[mv.KeyStrategy] != "none" || *head.ParentSnapshotID != old.SnapshotID {
		t.Errorf("head = %+v", head)
	}
	if head.ManifestList == old.ManifestList || len(st.Written) != 1 {
		t.Errorf("manifest list %s is shared, or %v was written", head.ManifestList, st.Written)
	}
	a, err := old.Manifests(b.files.FS())
	if err != nil {
		t.Fatal(err)
	}
	c, err := head.Manifests(b.files.FS())
	if err != nil {
		t.Fatal(err)
	}
	if !cmp.Equal(paths(a), paths(c)) || c[0].SequenceNum() != a[0].SequenceNum() || c[0].SnapshotID() != a[0].SnapshotID() {
		t.Errorf("manifests changed: %v, %v", a, c)
	}
	b.check()
	b.totals()
}

func paths(list []iceberg.ManifestFile) []string {
	var out []string
	for _, m := range list {
		out = append(out, m.FilePath())
	}
	return out
}

func TestDiscardRefusesSharedFolders(t *testing.T) {
	t.Parallel()
	b := newBench(t, tabletest.Options{})
	b.refresh(nil)
	for _, folder := range []string{b.Location(), b.Location() + "/data", b.Location() + "/data/", b.Location() + "/data/..", b.Location() + "/data/.", "/"} {
		if err := b.pub.Discard(t.Context(), nil, folder); catalog.KindOf(err) != catalog.KindInvalid {
			t.Errorf("Discard(%s) = %v, want KindInvalid", folder, err)
		}
	}
	if g := b.garbage(); len(g) != 0 {
		t.Errorf("garbage %v", g)
	}
	b.check()
}
