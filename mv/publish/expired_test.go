package publish_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/catalogd/catalogd/catalog"
	"github.com/catalogd/catalogd/mv"
	"github.com/catalogd/catalogd/mv/changes/tabletest"
	"github.com/catalogd/catalogd/mv/publish"
)

const otherRun = "11111111-1111-4111-8111-111111111111"

// today is the moment of every sweep; the files' own times are set to suit.
var today = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func (b *bench) sweep(docs ...[]byte) (mv.Swept, error) {
	b.t.Helper()
	return publish.NewSweeper(b.files.FS(), b.files).Sweep(b.t.Context(), mv.Sweep{
		Location: b.Location(), Documents: docs, OwnBefore: today.Add(-time.Hour), StrangersBefore: today.Add(-72 * time.Hour),
	})
}

// put writes a file below the table's location.
func (b *bench) put(rel string) string {
	b.t.Helper()
	name := b.Location() + "/" + rel
	if err := b.files.Write(b.t.Context(), name, []byte("12345")); err != nil {
		b.t.Fatal(err)
	}
	return name
}

// age sets the time of files; none means all.
func (b *bench) age(d time.Duration, names ...string) {
	b.t.Helper()
	if len(names) == 0 {
		names = b.all()
	}
	for _, name := range names {
		if err := os.Chtimes(strings.TrimPrefix(name, "file://"), today.Add(-d), today.Add(-d)); err != nil {
			b.t.Fatal(err)
		}
	}
}

func (b *bench) all() []string {
	b.t.Helper()
	all, err := b.files.List(b.t.Context(), b.Location())
	if err != nil {
		b.t.Fatal(err)
	}
	return all
}

// reachable is what iceberg-go would read of any snapshot.
func (b *bench) reachable() []string {
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
			for e, err := range m.Entries(b.files.FS(), true) {
				if err != nil {
					b.t.Fatal(err)
				}
				live[e.DataFile().FilePath()] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(live))
}

// keys reads all rows of all snapshots.
func (b *bench) keys() map[int64][]string {
	b.t.Helper()
	out := map[int64][]string{}
	for _, s := range b.Metadata().Snapshots() {
		for _, r := range b.Rows(s.SnapshotID) {
			out[s.SnapshotID] = append(out[s.SnapshotID], r.Key())
		}
		slices.Sort(out[s.SnapshotID])
	}
	return out
}

// churn publishes n snapshots, of which the newest three stay.
func (b *bench) churn(n int64) {
	b.t.Helper()
	b.keep = 3
	for i := range n {
		d := i % 4
		b.refresh(map[int64][]tabletest.Row{d: rowsOf(d, int64(b.runs), 2)})
	}
}

func TestSweepLeavesWhatIsReachable(t *testing.T) {
	t.Parallel()
	b := newBench(t, tabletest.Options{Day: true}, publish.WithManifestEntries(4))
	b.churn(11)
	lost, err := b.stage(map[int64][]tabletest.Row{1: rowsOf(1, 99, 2)}) // written, never committed
	if err != nil {
		t.Fatal(err)
	}
	killed := b.put("data/" + otherRun + "/ts_day=2/half.parquet")
	half := b.put("metadata/.tmp-123")
	stats := b.put("metadata/some.stats")
	stranger, old := b.put("data/ts_day=1/spark.parquet"), b.put("data/ts_day=1/abandoned.parquet")
	flink, log := b.put("metadata/flink-job.avro"), b.put("metadata/00001-"+otherRun+".metadata.json")
	unlogged := b.put("metadata/00000-" + otherRun + ".metadata.json")
	b.age(2 * time.Hour)
	b.age(73*time.Hour, old)
	running := b.put("data/22222222-2222-4222-8222-222222222222/a.parquet")
	b.age(500*time.Hour, running)
	young := b.put("data/33333333-3333-4333-8333-333333333333/a.parquet")
	b.age(59*time.Minute, young)
	want, rows, before := b.reachable(), b.keys(), b.all()
	bytes := sizes(t, before)

	swept, err := publish.NewSweeper(b.files.FS(), b.files).Sweep(t.Context(), mv.Sweep{
		Location: b.Location(), Documents: [][]byte{withLog(t, b.Document(), log)}, Runs: map[string]bool{"22222222-2222-4222-8222-222222222222": true},
		OwnBefore: today.Add(-time.Hour), StrangersBefore: today.Add(-72 * time.Hour),
	})
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, stats, stranger, flink, log, running, young)
	slices.Sort(want)
	left := b.all()
	if diff := cmp.Diff(want, left); diff != "" {
		t.Errorf("files after the sweep (-reachable +left):\n%s", diff)
	}
	for _, name := range append([]string{killed, half, old, unlogged}, lost.Written...) {
		if !slices.Contains(before, name) {
			t.Errorf("%s was not there: this test proves less than it says", name)
		}
	}
	if diff := cmp.Diff(rows, b.keys()); diff != "" {
		t.Errorf("rows changed:\n%s", diff)
	}
	b.check()
	wantSwept := mv.Swept{Listed: len(before), Young: 4, Removed: len(before) - len(left), Bytes: bytes - sizes(t, left)}
	if swept != wantSwept {
		t.Errorf("Sweep = %+v, want %+v", swept, wantSwept)
	}
	if _, err := os.Stat(filepath.Join(strings.TrimPrefix(b.Location(), "file://"), "data", otherRun)); !os.IsNotExist(err) {
		t.Errorf("the folder of the killed run is still there: %v", err)
	}
	if again, err := b.sweep(withLog(t, b.Document(), log)); err != nil || again.Removed != 1 { // nobody runs any more
		t.Errorf("second Sweep = %+v, %v, want one file removed", again, err)
	}
}

func sizes(t *testing.T, names []string) (sum int64) {
	t.Helper()
	for _, name := range names {
		info, err := os.Stat(strings.TrimPrefix(name, "file://"))
		if err != nil {
			t.Fatal(err)
		}
		sum += info.Size()
	}
	return sum
}

// withLog makes a document name an earlier metadata file.
func withLog(t *testing.T, doc []byte, file string) []byte {
	t.Helper()
	m := map[string]any{}
	dec := json.NewDecoder(strings.NewReader(string(doc)))
	dec.UseNumber()
	if err := dec.Decode(&m); err != nil {
		t.Fatal(err)
	}
	m["metadata-log"] = []any{map[string]any{"timestamp-ms": 1, "metadata-file": file}}
	out, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestSweepKeepsWhatWasSeen is a query that still reads the snapshot which was current
// when the cleanup was scheduled, although its files are old and its snapshot is gone.
func TestSweepKeepsWhatWasSeen(t *testing.T) {
	t.Parallel()
	b := newBench(t, tabletest.Options{Day: true})
	b.churn(6)
	seen := b.Metadata()
	doc, rows := b.Document(), b.keys()
	b.churn(8)
	b.age(2 * time.Hour)
	if _, err := b.sweep(b.Document(), doc); err != nil {
		t.Fatal(err)
	}
	b.check()
	now := b.Metadata()
	b.Reset(seen)
	if diff := cmp.Diff(rows, b.keys()); diff != "" {
		t.Errorf("rows of the seen snapshots:\n%s", diff)
	}
	b.Reset(now)
	if swept, err := b.sweep(b.Document()); err != nil || swept.Removed == 0 {
		t.Errorf("Sweep without the sighting = %+v, %v, want more files removed", swept, err)
	}
	if diff := cmp.Diff(b.reachable(), b.all()); diff != "" {
		t.Errorf("files after both (-reachable +left):\n%s", diff)
	}
}

func TestSweepRemovesNothingIfUnsure(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(b *bench, manifest, list, data string) error{
		"damaged manifest": func(_ *bench, m, _, _ string) error { return os.Truncate(m, 700) },
		"missing manifest": func(_ *bench, m, _, _ string) error { return os.Remove(m) },
		"damaged list":     func(_ *bench, _, l, _ string) error { return os.WriteFile(l, []byte("Obj"), 0o600) },
		"missing list":     func(_ *bench, _, l, _ string) error { return os.Remove(l) },
		"missing data":     func(_ *bench, _, _, d string) error { return os.Remove(d) },
	} {
		b := newBench(t, tabletest.Options{Day: true})
		b.churn(7)
		oldest := b.Metadata().Snapshots()[0] // not the head: it counts as well
		list, err := oldest.Manifests(b.files.FS())
		if err != nil {
			t.Fatal(err)
		}
		var data string
		for e, err := range list[0].Entries(b.files.FS(), true) {
			if err != nil {
				t.Fatal(err)
			}
			data = e.DataFile().FilePath()
			break
		}
		local := func(n string) string { return strings.TrimPrefix(n, "file://") }
		if err := spoil(b, local(list[0].FilePath()), local(oldest.ManifestList), local(data)); err != nil {
			t.Fatal(err)
		}
		b.age(100 * time.Hour)
		before := b.all()
		if _, err := b.sweep(b.Document()); catalog.KindOf(err) != catalog.KindUnavailable && catalog.KindOf(err) != catalog.KindNotFound {
			t.Errorf("%s: Sweep = %v, want an error that names the file", name, err)
		}
		if diff := cmp.Diff(before, b.all()); diff != "" {
			t.Errorf("%s: files changed:\n%s", name, diff)
		}
	}
}

// TestSweepKnowsSpellings sweeps under other spellings of the location than the metadata
// has: no file may be taken for another one.
func TestSweepKnowsSpellings(t *testing.T) {
	t.Parallel()
	for i, spell := range []func(string) string{
		func(l string) string { return strings.TrimPrefix(l, "file://") },
		func(l string) string { return strings.Replace(l, "file://", "file:", 1) + "/" },
		func(l string) string { return strings.Replace(l, "file://", "FILE://localhost", 1) },
	} {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			b := newBench(t, tabletest.Options{Day: true})
			b.churn(6)
			b.age(100 * time.Hour)
			want := b.reachable()
			swept, err := publish.NewSweeper(b.files.FS(), b.files).Sweep(t.Context(), mv.Sweep{
				Location: spell(b.Location()), Documents: [][]byte{b.Document()}, OwnBefore: today, StrangersBefore: today,
			})
			if err != nil || swept.Removed == 0 {
				t.Errorf("Sweep = %+v, %v", swept, err)
			}
			if diff := cmp.Diff(want, b.all()); diff != "" {
				t.Errorf("files (-reachable +left):\n%s", diff)
			}
		})
	}
}

func TestRemoveTable(t *testing.T) {
	t.Parallel()
	b := newBench(t, tabletest.Options{Day: true})
	b.churn(3)
	b.age(10 * time.Hour)
	newer := b.put("metadata/00009-" + otherRun + ".metadata.json")
	b.age(time.Hour, newer)
	s, all := publish.NewSweeper(b.files.FS(), b.files), b.all()
	if _, used, err := s.RemoveTable(t.Context(), b.Location(), today.Add(-2*time.Hour)); err != nil || used != newer {
		t.Errorf("RemoveTable of a location in use = %q, %v, want %q", used, err, newer)
	}
	if diff := cmp.Diff(all, b.all()); diff != "" {
		t.Errorf("files changed:\n%s", diff)
	}
	size := sizes(t, all)
	swept, used, err := s.RemoveTable(t.Context(), b.Location(), today)
	if err != nil || used != "" || swept.Removed != len(all) || swept.Bytes != size {
		t.Errorf("RemoveTable = %+v, %q, %v, want %d files of %d bytes", swept, used, err, len(all), size)
	}
	if left := b.all(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
