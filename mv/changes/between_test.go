package changes_test

import (
	"bytes"
	"context"
	"slices"
	"testing"

	"github.com/apache/iceberg-go"
	iceio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"
	"github.com/google/go-cmp/cmp"

	"github.com/catalogd/catalogd/mv"
	"github.com/catalogd/catalogd/mv/changes"
	"github.com/catalogd/catalogd/mv/changes/tabletest"
	"github.com/catalogd/catalogd/mv/plan"
)

const hour = int64(3_600_000_000)

// hours is a range of the ts column in hours.
type hours struct{ Lo, Hi int64 }

// between asks for the change and checks the half of its contract that is never allowed
// to break: the rows that differ lie in what is reported.
func between(t *testing.T, tbl *tabletest.Table, from, to int64) changes.Change {
	t.Helper()
	ch, err := changes.New(iceio.LocalFS{}).Changes(t.Context(), tbl.Document(), from, to,
		[]changes.Column{{FieldID: tabletest.FieldTS}, {FieldID: tabletest.FieldID}, {FieldID: tabletest.FieldKey}})
	if err != nil {
		t.Fatalf("Changes(%d, %d) = %v", from, to, err)
	}
	if readable(tbl, from) && readable(tbl, to) {
		diff := tabletest.Diff(tbl.Rows(from), tbl.Rows(to))
		if missed := uncovered(ch, diff); missed != "" || (ch.None && len(diff) > 0) {
			t.Fatalf("from %d to %d, None=%v: %s", from, to, ch.None, missed)
		}
	}
	return ch
}

func readable(tbl *tabletest.Table, id int64) bool { return id == -1 || tbl.SnapshotByID(id) != nil }

func holds(c changes.Touched, v any) bool {
	if c.Everything || (v == nil && c.Null) {
		return true
	}
	return v != nil && slices.ContainsFunc(c.Ranges, func(r plan.Range) bool {
		lo, okLo := changes.Compare(v, r.Lo)
		hi, okHi := changes.Compare(v, r.Hi)
		return (r.Lo == nil || (okLo && lo >= 0)) && (r.Hi == nil || (okHi && hi <= 0))
	})
}

// want checks the other half: nothing else is reported.
func want(t *testing.T, ch changes.Change, ranges ...hours) {
	t.Helper()
	if ch.Everything {
		t.Fatalf("everything is reported, reason %s, want %v", ch.Reason, ranges)
	}
	var got []hours
	for _, r := range ch.Ranges {
		lo, ok := r.Lo.(int64)
		hi, ok2 := r.Hi.(int64)
		if !ok || !ok2 {
			t.Fatalf("range %+v is open", r)
		}
		got = append(got, hours{lo / hour, hi / hour})
	}
	if diff := cmp.Diff(ranges, got); diff != "" {
		t.Fatalf("reported ranges (-want +got):\n%s", diff)
	}
}

func wantEverything(t *testing.T, ch changes.Change, reason string) {
	t.Helper()
	if !ch.Everything || ch.Reason != reason || ch.None {
		t.Fatalf("got everything=%v reason=%q none=%v, want everything because of %s", ch.Everything, ch.Reason, ch.None, reason)
	}
}

// three makes a table with a file for the hours 10–11, 20–21 and 30–31.
func three(t *testing.T, o tabletest.Options) *tabletest.Table {
	t.Helper()
	tbl := tabletest.New(t, o)
	for i, h := range []int64{10, 20, 30} {
		id := int64(i) * 10
		tbl.Append(tabletest.At(id+1, h), tabletest.At(id+2, h), tabletest.At(id+3, h+1))
	}
	return tbl
}

// file finds the live data file that holds a row.
func file(t *testing.T, tbl *tabletest.Table, hourOfRow int64) iceberg.DataFile {
	t.Helper()
	for _, task := range tbl.Tasks() {
		lo, err := iceberg.LiteralFromBytes(iceberg.PrimitiveTypes.Timestamp, task.File.LowerBoundValues()[tabletest.FieldTS])
		if err != nil {
			continue
		}
		if ts, ok := lo.Any().(iceberg.Timestamp); ok && int64(ts)/hour == hourOfRow {
			return task.File
		}
	}
	t.Fatalf("no live file starts at hour %d", hourOfRow)
	return nil
}

// wholePaths makes iceberg-go write the bounds of file_path uncut, as Java does.
var wholePaths = iceberg.Properties{"write.metadata.metrics.column.file_path": "full"}

func all(iceberg.DataFile) bool             { return true }
func keep(tabletest.Row) bool               { return true }
func is(id int64) iceberg.BooleanExpression { return iceberg.EqualTo(iceberg.Reference("id"), id) }

func TestBetweenT1RowMovesBucket(t *testing.T) {
	t.Parallel()
	tbl := three(t, tabletest.Options{})
	from := tbl.Head()
	moved := tabletest.At(1, 12)
	to := tbl.Replace([]iceberg.DataFile{file(t, tbl, 10)}, moved, tabletest.At(2, 12), tabletest.At(3, 12))
	want(t, between(t, tbl, from, to), hours{10, 11}, hours{12, 12})
}

func TestBetweenT2OverwriteAddsOnlyDeletes(t *testing.T) {
	t.Parallel()
	for _, version := range []int{2, 3} {
		for _, day := range []bool{false, true} {
			tbl := three(t, tabletest.Options{Version: version, Day: day, Properties: wholePaths})
			from := tbl.Head()
			tbl.Delete(true, is(11))
			tbl.SetOperation(table.OpOverwrite)
			want(t, between(t, tbl, from, tbl.Head()), hours{20, 21})
		}
	}
	// Position deletes whose path bounds are cut off may hit every file of the partition.
	tbl := three(t, tabletest.Options{Day: true})
	from := tbl.Head()
	tbl.Delete(true, is(11))
	tbl.SetOperation(table.OpOverwrite)
	want(t, between(t, tbl, from, tbl.Head()), hours{10, 11}, hours{20, 21})
}

func TestBetweenT3OverwriteRemovesOnly(t *testing.T) {
	t.Parallel()
	tbl := three(t, tabletest.Options{})
	from := tbl.Head()
	tbl.Replace([]iceberg.DataFile{file(t, tbl, 20)})
	tbl.SetOperation(table.OpOverwrite)
	want(t, between(t, tbl, from, tbl.Head()), hours{20, 21})
}

func TestBetweenT4FileWithoutBounds(t *testing.T) {
	t.Parallel()
	for _, day := range []bool{false, true} {
		tbl := three(t, tabletest.Options{Day: day})
		from := tbl.Head()
		files := tbl.Write(tabletest.At(40, 100))
		tbl.Update(table.NewSetPropertiesUpdate(iceberg.Properties{"write.metadata.metrics.default": "none"}))
		files = append(files, tbl.Write(tabletest.At(41, 50))...)
		to := tbl.Upsert(files, nil)
		ch := between(t, tbl, from, to)
		if !day {
			wantEverything(t, ch, changes.ReasonNoBounds)
			continue
		}
		want(t, ch, hours{48, 71}, hours{100, 100}) // the day of hour 50
	}
}

func TestBetweenT5Rollback(t *testing.T) {
	t.Parallel()
	tbl := three(t, tabletest.Options{})
	back := tbl.Head()
	from := tbl.Append(tabletest.At(50, 50))
	tbl.Tx(func(_ context.Context, tx *table.Transaction) error { return tx.RollbackToSnapshot(back) })
	wantEverything(t, between(t, tbl, from, tbl.Head()), changes.ReasonRolledBack)
}

func TestBetweenT6RollbackThenAppend(t *testing.T) {
	t.Parallel()
	tbl := three(t, tabletest.Options{})
	back := tbl.Head()
	from := tbl.Append(tabletest.At(50, 50))
	tbl.Tx(func(_ context.Context, tx *table.Transaction) error { return tx.RollbackToSnapshot(back) })
	to := tbl.Append(tabletest.At(60, 60))
	wantEverything(t, between(t, tbl, from, to), changes.ReasonRolledBack)
}

// branch commits rows to a branch that starts at the head.
func branch(t *testing.T, tbl *tabletest.Table, rows ...tabletest.Row) int64 {
	t.Helper()
	tbl.Update(table.NewSetSnapshotRefUpdate("audit", tbl.Head(), table.BranchRef, 0, 0, 0))
	files := tbl.Write(rows...)
	tx, err := tbl.NewTransactionOnBranchWithError("audit")
	if err != nil {
		t.Fatal(err)
	}
	if err := tx.NewRowDelta(nil).AddRows(files...).Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	tbl.Update()
	return tbl.SnapshotByName("audit").SnapshotID
}

func TestBetweenT7FastForward(t *testing.T) {
	t.Parallel()
	tbl := three(t, tabletest.Options{})
	from := tbl.Head()
	audit := branch(t, tbl, tabletest.At(70, 70))
	if ch := between(t, tbl, from, tbl.Head()); !ch.None {
		t.Fatalf("a commit on a branch changed main: %+v", ch)
	}
	tbl.Update(table.NewSetSnapshotRefUpdate(table.MainBranch, audit, table.BranchRef, 0, 0, 0))
	want(t, between(t, tbl, from, tbl.Head()), hours{70, 70})
}

func TestBetweenT8CommitOnBranchOnly(t *testing.T) {
	t.Parallel()
	tbl := three(t, tabletest.Options{})
	from := tbl.Head()
	audit := branch(t, tbl, tabletest.At(70, 70))
	main := tbl.Append(tabletest.At(80, 80))
	want(t, between(t, tbl, from, main), hours{80, 80})
	wantEverything(t, between(t, tbl, audit, main), changes.ReasonRolledBack)
}

func TestBetweenT9EarlierTimestamp(t *testing.T) {
	t.Parallel()
	tbl := three(t, tabletest.Options{})
	from := tbl.Head()
	tbl.Append(tabletest.At(90, 90))
	tbl.SetTimestamp(tbl.SnapshotByID(from).TimestampMs - 30_000)
	want(t, between(t, tbl, from, tbl.Head()), hours{90, 90})
}

func TestBetweenT10ExpiredBelowCompaction(t *testing.T) {
	t.Parallel()
	tbl := three(t, tabletest.Options{})
	from := tbl.Head()
	tbl.Update(table.NewSetSnapshotRefUpdate("keep", from, table.TagRef, 0, 0, 0))
	lost := tbl.Append(tabletest.At(100, 100))
	to := tbl.Compact(all, keep)
	tbl.Update(table.NewRemoveSnapshotsUpdate([]int64{lost}, false))
	wantEverything(t, between(t, tbl, from, to), changes.ReasonChainBroken)
}

func TestBetweenT11ExpiredAppendIsLive(t *testing.T) {
	t.Parallel()
	tbl := three(t, tabletest.Options{})
	from := tbl.Head()
	tbl.Update(table.NewSetSnapshotRefUpdate("keep", from, table.TagRef, 0, 0, 0))
	lost := tbl.Append(tabletest.At(100, 100))
	to := tbl.Append(tabletest.At(110, 110))
	tbl.Update(table.NewRemoveSnapshotsUpdate([]int64{lost}, false))
	wantEverything(t, between(t, tbl, from, to), changes.ReasonChainBroken)
}

func TestBetweenT12PureDelete(t *testing.T) {
	t.Parallel()
	for _, mergeOnRead := range []bool{false, true} {
		for _, version := range []int{2, 3} {
			tbl := three(t, tabletest.Options{Version: version, Properties: wholePaths})
			from := tbl.Head()
			to := tbl.Delete(mergeOnRead, is(23))
			want(t, between(t, tbl, from, to), hours{30, 31})
		}
	}
}

func TestBetweenT13BookmarkExpired(t *testing.T) {
	t.Parallel()
	tbl := three(t, tabletest.Options{})
	from := tbl.Head()
	middle := tbl.Append(tabletest.At(130, 130))
	to := tbl.Append(tabletest.At(140, 140))
	tbl.Update(table.NewRemoveSnapshotsUpdate([]int64{from}, false))
	want(t, between(t, tbl, from, to), hours{130, 130}, hours{140, 140}) // its children still say what they did
	tbl.Update(table.NewRemoveSnapshotsUpdate([]int64{middle}, false))
	wantEverything(t, between(t, tbl, from, to), changes.ReasonChainBroken)
}

func TestBetweenT14LateRow(t *testing.T) {
	t.Parallel()
	tbl := three(t, tabletest.Options{Day: true})
	from := tbl.Head()
	to := tbl.Append(tabletest.At(141, 3), tabletest.At(142, 50_000))
	want(t, between(t, tbl, from, to), hours{3, 3}, hours{50_000, 50_000})
}

func TestBetweenT38EqualityDeletes(t *testing.T) {
	t.Parallel()
	tbl := three(t, tabletest.Options{})
	from := tbl.Head()
	to := tbl.DeleteEqual([]int{tabletest.FieldID}, tabletest.Row{ID: 11})
	ch := between(t, tbl, from, to)
	want(t, ch, hours{20, 21}) // ts is no key: the files that may hold the key are hit
	ids := ch.Columns[1]
	if ids.Everything || !cmp.Equal(ids.Ranges, []plan.Range{{Lo: int64(11), Hi: int64(11)}}) {
		t.Errorf("the key column reports %+v, want the deleted key", ids)
	}
	tbl.Append(tabletest.At(15, 150))
	last := tbl.DeleteEqual([]int{tabletest.FieldID, tabletest.FieldTS}, tabletest.At(15, 150))
	want(t, between(t, tbl, to, last), hours{150, 150})
}

func TestBetweenT40MislabelledReplace(t *testing.T) {
	t.Parallel()
	for _, version := range []int{2, 3} {
		tbl := three(t, tabletest.Options{Version: version})
		tbl.Delete(true, is(21))
		from := tbl.Head()
		first := tbl.Compact(all, keep)
		if ch := between(t, tbl, from, first); !ch.None || !ch.OnlyReplace {
			t.Fatalf("v%d: an honest compaction reports %+v", version, ch)
		}
		to := tbl.Compact(all, func(r tabletest.Row) bool { return r.ID != 1 })
		if ch := between(t, tbl, first, to); ch.None || ch.OnlyReplace {
			t.Fatalf("v%d: a compaction that lost a row reports %+v", version, ch)
		}
		want(t, between(t, tbl, first, to), hours{10, 31})
	}
}

func TestBetweenT45TrailingReplaces(t *testing.T) {
	t.Parallel()
	tbl := three(t, tabletest.Options{})
	start := tbl.Head()
	from := tbl.Append(tabletest.At(45, 45))
	tbl.Compact(all, keep)
	to := tbl.Compact(all, keep)
	want(t, between(t, tbl, start, to), hours{45, 45})
	ch := between(t, tbl, from, to)
	if !ch.None || !ch.OnlyReplace || len(ch.Snapshots) != 2 {
		t.Fatalf("two compactions report %+v", ch)
	}
	only, err := changes.New(iceio.LocalFS{}).OnlyCompaction(t.Context(), tbl.Document(), from, to)
	if err != nil || !only {
		t.Fatalf("OnlyCompaction = %v, %v", only, err)
	}
	only, err = changes.New(iceio.LocalFS{}).OnlyCompaction(t.Context(), tbl.Document(), start, to)
	if err != nil || only {
		t.Fatalf("OnlyCompaction over an append = %v, %v", only, err)
	}
	distrust, err := changes.New(iceio.LocalFS{}, changes.DistrustReplace()).Between(t.Context(), tbl.Document(), from, to, tabletest.FieldTS)
	if err != nil || distrust.None || len(distrust.Ranges) != 1 {
		t.Fatalf("a distrusted compaction = %+v, %v", distrust, err)
	}
}

func TestBetweenT46BrokenLineage(t *testing.T) {
	t.Parallel()
	tbl := three(t, tabletest.Options{})
	from := tbl.Head()
	tbl.Update(table.NewSetSnapshotRefUpdate("keep", from, table.TagRef, 0, 0, 0))
	lost := tbl.Delete(true, is(1))
	tbl.Compact(all, keep)
	to := tbl.Compact(all, keep)
	tbl.Update(table.NewRemoveSnapshotsUpdate([]int64{lost}, false))
	wantEverything(t, between(t, tbl, from, to), changes.ReasonChainBroken)
	only, err := changes.New(iceio.LocalFS{}).OnlyCompaction(t.Context(), tbl.Document(), from, to)
	if err != nil || only {
		t.Fatalf("OnlyCompaction over a gap = %v, %v", only, err)
	}
}

func TestBetweenT51PartitionDropped(t *testing.T) {
	t.Parallel()
	tbl := three(t, tabletest.Options{Day: true})
	tbl.Append(tabletest.At(51, 51), tabletest.At(52, 60))
	from := tbl.Head()
	filter := iceberg.GreaterThanEqual(iceberg.Reference("ts"), iceberg.Timestamp(48*hour))
	to := tbl.Delete(false, filter)
	ch := between(t, tbl, from, to)
	want(t, ch, hours{51, 60})
	if len(ch.Snapshots) != 1 || ch.None {
		t.Errorf("Change = %+v", ch)
	}
}

func TestBetweenT55IDsAreRandom(t *testing.T) {
	t.Parallel()
	tbl := three(t, tabletest.Options{})
	from := tbl.Head()
	var made []int64
	for i := range int64(8) { // the chance that eight random ids are sorted is 1 in 40,320
		made = append(made, tbl.Append(tabletest.At(200+i, 200+2*i)))
	}
	ch := between(t, tbl, from, tbl.Head())
	if !cmp.Equal(ch.Snapshots, made) {
		t.Errorf("Snapshots = %v, want them as they were made: %v", ch.Snapshots, made)
	}
	if len(ch.Ranges) != 8 || ch.ManifestsRead != 8 {
		t.Errorf("%d ranges from %d manifests, want 8 from the 8 new ones: never a hull", len(ch.Ranges), ch.ManifestsRead)
	}
}

func TestBetweenNullBucket(t *testing.T) {
	t.Parallel()
	for _, o := range []tabletest.Options{{}, {Day: true}, {Day: true, NoStats: true}} {
		tbl := tabletest.New(t, o)
		from := tbl.Append(tabletest.At(1, 10))
		to := tbl.Append(tabletest.Null(2))
		ch := between(t, tbl, from, to)
		if !ch.Null || ch.Everything || len(ch.Ranges) != 0 {
			t.Errorf("%+v: a NULL row reports %+v", o, ch.Touched)
		}
		next := tbl.Append(tabletest.At(3, 20))
		if ch := between(t, tbl, to, next); ch.Null || ch.Everything {
			t.Errorf("%+v: a row that is not NULL reports %+v", o, ch.Touched)
		}
	}
}

func TestBetweenEnds(t *testing.T) {
	t.Parallel()
	tbl := tabletest.New(t, tabletest.Options{})
	if ch := between(t, tbl, mv.NoSnapshot, mv.NoSnapshot); !ch.None || ch.Everything {
		t.Errorf("an empty table reports %+v", ch)
	}
	first := tbl.Append(tabletest.At(1, 1))
	second := tbl.Append(tabletest.At(2, 2))
	ch := between(t, tbl, mv.NoSnapshot, second)
	wantEverything(t, ch, changes.ReasonFirstRefresh)
	if !cmp.Equal(ch.Snapshots, []int64{first, second}) {
		t.Errorf("Snapshots = %v", ch.Snapshots)
	}
	if ch := between(t, tbl, second, second); !ch.None || ch.ManifestsRead != 0 {
		t.Errorf("the same snapshot reports %+v", ch)
	}
	wantEverything(t, between(t, tbl, first, mv.NoSnapshot), changes.ReasonRolledBack)
}

// TestBetweenDroppedManifest removes files the way no writer should: the new snapshot just
// does not list their manifest any more.
func TestBetweenDroppedManifest(t *testing.T) {
	t.Parallel()
	tbl := three(t, tabletest.Options{})
	from := tbl.CurrentSnapshot()
	manifests, err := from.Manifests(iceio.LocalFS{})
	if err != nil {
		t.Fatal(err)
	}
	id, sequence := int64(4711), tbl.Metadata().LastSequenceNumber()+1
	var list bytes.Buffer
	if err := iceberg.WriteManifestList(2, &list, id, &from.SnapshotID, &sequence, 0, manifests[1:]); err != nil {
		t.Fatal(err)
	}
	location := tbl.Location() + "/metadata/snap-4711.avro"
	if err := (iceio.LocalFS{}).WriteFile(location, list.Bytes()); err != nil {
		t.Fatal(err)
	}
	tbl.Update(table.NewAddSnapshotUpdate(&table.Snapshot{
		SnapshotID: id, ParentSnapshotID: &from.SnapshotID, SequenceNumber: sequence, TimestampMs: from.TimestampMs + 1, ManifestList: location,
		Summary: &table.Summary{Operation: table.OpReplace},
	}), table.NewSetSnapshotRefUpdate(table.MainBranch, id, table.BranchRef, 0, 0, 0))
	wantEverything(t, between(t, tbl, from.SnapshotID, id), changes.ReasonLostManifests)
}

// TestBetweenCompactionCountsPositions compacts a file that two position delete files hit
// at the same row, one of them shared with another file: only the positions themselves
// tell that the compaction kept every row.
func TestBetweenCompactionCountsPositions(t *testing.T) {
	t.Parallel()
	tbl := three(t, tabletest.Options{})
	first, second := file(t, tbl, 10), file(t, tbl, 20)
	tbl.Upsert(nil, []iceberg.DataFile{
		tbl.PositionDeletes("a", tabletest.Position{Path: first.FilePath(), Pos: 1}, tabletest.Position{Path: second.FilePath(), Pos: 0}),
		tbl.PositionDeletes("b", tabletest.Position{Path: first.FilePath(), Pos: 1}),
	})
	from := tbl.Head()
	one := func(f iceberg.DataFile) bool { return f.FilePath() == first.FilePath() }
	to := tbl.Compact(one, keep)
	if ch := between(t, tbl, from, to); !ch.None || !ch.OnlyReplace {
		t.Fatalf("an honest compaction of a file with two position deletes reports %+v", ch)
	}
	if got := len(tbl.Rows(to)); got != 7 {
		t.Fatalf("%d rows, want 7: the test does not do what it says", got)
	}
	mixed := tbl.Compact(all, func(r tabletest.Row) bool { return r.ID != 13 })
	if ch := between(t, tbl, to, mixed); ch.None {
		t.Fatal("a compaction that lost a row reports None")
	}
}
