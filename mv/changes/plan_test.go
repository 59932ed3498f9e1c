package changes_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"
	iceio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"
	"github.com/google/go-cmp/cmp"

	"github.com/catalogd/catalogd/catalog"
	"github.com/catalogd/catalogd/mv"
	"github.com/catalogd/catalogd/mv/changes"
	"github.com/catalogd/catalogd/mv/changes/tabletest"
	"github.com/catalogd/catalogd/mv/plan"
)

// mixed makes a table with every kind of delete that its version knows.
func mixed(t *testing.T, o tabletest.Options) *tabletest.Table {
	t.Helper()
	tbl := three(t, o)
	tbl.DeleteEqual([]int{tabletest.FieldID, tabletest.FieldTS}, tabletest.At(2, 10))
	tbl.Append(tabletest.At(2, 10), tabletest.Null(60))
	tbl.Delete(true, is(11))
	tbl.Append(tabletest.At(70, 20))
	tbl.DeleteEqual([]int{tabletest.FieldID, tabletest.FieldTS}, tabletest.At(70, 20))
	tbl.Delete(true, is(23))
	return tbl
}

func options() []tabletest.Options {
	var out []tabletest.Options
	for _, version := range []int{2, 3} {
		for _, day := range []bool{false, true} {
			out = append(out, tabletest.Options{Version: version, Day: day}, tabletest.Options{Version: version, Day: day, Properties: wholePaths})
		}
	}
	return out
}

// names flattens an input file for comparison.
func names(path string, lists ...[]string) string {
	var b strings.Builder
	b.WriteString(path)
	for _, l := range lists {
		slices.Sort(l)
		fmt.Fprintf(&b, " %v", l)
	}
	return b.String()
}

func TestPlanEqualsIcebergGo(t *testing.T) {
	t.Parallel()
	for _, o := range options() {
		tbl := mixed(t, o)
		got, err := changes.New(iceio.LocalFS{}).Plan(t.Context(), tbl.Document(), tbl.Head(), nil)
		if err != nil {
			t.Fatal(err)
		}
		var ours, theirs []string
		var total int64
		for _, f := range got.Files {
			var pos, eq, dv []string
			for _, d := range f.PositionDeletes {
				pos = append(pos, d.Path)
			}
			for _, d := range f.EqualityDeletes {
				eq = append(eq, fmt.Sprint(d.Path, d.EqualityIDs))
			}
			if f.DeletionVector != nil {
				dv = append(dv, fmt.Sprint(f.DeletionVector.Path, f.DeletionVector.Offset, f.DeletionVector.Length))
			}
			ours = append(ours, names(fmt.Sprint(f.Path, f.Records, f.Bytes, f.Format), pos, eq, dv))
			total += f.Bytes
		}
		for _, task := range tbl.Tasks() {
			var pos, eq, dv []string
			for _, d := range task.DeleteFiles {
				pos = append(pos, d.FilePath())
			}
			for _, d := range task.EqualityDeleteFiles {
				eq = append(eq, fmt.Sprint(d.FilePath(), d.EqualityFieldIDs()))
			}
			for _, d := range task.DeletionVectorFiles {
				dv = append(dv, fmt.Sprint(d.FilePath(), *d.ContentOffset(), *d.ContentSizeInBytes()))
			}
			f := task.File
			theirs = append(theirs, names(fmt.Sprint(f.FilePath(), f.Count(), f.FileSizeBytes(), f.FileFormat()), pos, eq, dv))
		}
		slices.Sort(ours)
		slices.Sort(theirs)
		if diff := cmp.Diff(theirs, ours); diff != "" || len(ours) < 4 {
			t.Errorf("%+v: files and deletes (-iceberg-go +ours):\n%s", o, diff)
		}
		if got.Bytes != total || got.TotalBytes < total {
			t.Errorf("Bytes = %d of %d, want %d", got.Bytes, got.TotalBytes, total)
		}
	}
}

// TestPlanRestrictionKeepsRows reads each row's file: a file that holds a wanted row is
// never left out, whatever is deleted from it.
func TestPlanRestrictionKeepsRows(t *testing.T) {
	t.Parallel()
	restrictions := []plan.Set{
		{Intervals: []plan.Interval{{Lo: 10 * hour, Hi: 11 * hour}}},
		{Intervals: []plan.Interval{{Lo: 21 * hour, Hi: 21 * hour, Closed: true}}},
		{Intervals: []plan.Interval{{Hi: 20 * hour}, {Lo: 31 * hour}}},
		{Null: true},
		{Intervals: []plan.Interval{{Lo: 500 * hour}}},
		{},
	}
	wantFiles := []int{1, 1, 2, 1, 0, 0}
	for _, o := range options() {
		tbl := three(t, o)
		tbl.Append(tabletest.Null(60))
		tbl.Delete(true, is(1))
		for i, set := range restrictions {
			got, err := changes.New(iceio.LocalFS{}).PlanAs(t.Context(), tbl.Document(), tbl.Head(), changes.PlanRequest{
				Restriction: &mv.Restriction{FieldID: tabletest.FieldTS, Set: set},
			})
			if err != nil {
				t.Fatal(err)
			}
			if len(got.Files) != wantFiles[i] {
				t.Errorf("%+v, set %+v: %d files, want %d", o, set, len(got.Files), wantFiles[i])
			}
			if i == 0 && (len(got.Files[0].PositionDeletes) == 0 && got.Files[0].DeletionVector == nil) {
				t.Errorf("%+v: the delete of the only file was left out", o)
			}
		}
	}
}

func TestPlanWithoutBoundsKeepsEverything(t *testing.T) {
	t.Parallel()
	tbl := three(t, tabletest.Options{NoStats: true})
	for _, field := range []int{tabletest.FieldTS, tabletest.FieldID, 99} {
		got, err := changes.New(iceio.LocalFS{}).Plan(t.Context(), tbl.Document(), tbl.Head(), &mv.Restriction{
			FieldID: field, Set: plan.Set{Intervals: []plan.Interval{{Lo: int64(-2), Hi: int64(-1)}}},
		})
		if err != nil || len(got.Files) != 3 {
			t.Errorf("column %d: %d files, %v, want all 3", field, len(got.Files), err)
		}
	}
}

func TestPlanPinsSnapshotAndSchema(t *testing.T) {
	t.Parallel()
	tbl := three(t, tabletest.Options{Day: true})
	old := tbl.Head()
	tbl.Tx(func(_ context.Context, tx *table.Transaction) error {
		return tx.UpdateSchema(true, false).AddColumn([]string{"extra"}, iceberg.PrimitiveTypes.Int64, "", false, nil).Commit()
	})
	tbl.Append(tabletest.At(90, 90))
	doc := tbl.Document()
	reader := changes.New(iceio.LocalFS{})
	for _, c := range []struct {
		snapshot int64
		schema   *int
		files    int
		extra    bool
	}{{old, nil, 3, false}, {old, new(1), 3, true}, {tbl.Head(), nil, 4, true}, {mv.NoSnapshot, nil, 0, true}} {
		got, err := reader.PlanAs(t.Context(), doc, c.snapshot, changes.PlanRequest{SchemaID: c.schema})
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Files) != c.files || strings.Contains(string(got.Schema), `"extra"`) != c.extra {
			t.Errorf("snapshot %d, schema %v: %d files, schema %s", c.snapshot, c.schema, len(got.Files), got.Schema)
		}
		if !strings.Contains(string(doc), string(got.Schema)) {
			t.Errorf("schema %s is not the document's own text", got.Schema)
		}
	}
	if _, err := reader.Plan(t.Context(), doc, 42, nil); catalog.KindOf(err) != catalog.KindNotFound {
		t.Errorf("Plan of an unknown snapshot = %v, want KindNotFound", err)
	}
	if _, err := reader.PlanAs(t.Context(), doc, old, changes.PlanRequest{SchemaID: new(77)}); catalog.KindOf(err) != catalog.KindUnprocessable {
		t.Errorf("Plan of an unknown schema = %v, want KindUnprocessable", err)
	}
}

func TestStoredFollowsPartitions(t *testing.T) {
	t.Parallel()
	tbl := three(t, tabletest.Options{Day: true})
	reader := changes.New(iceio.LocalFS{})
	for _, c := range []struct {
		set   plan.Set
		files int
		whole bool
	}{
		{plan.Set{Intervals: []plan.Interval{{Lo: int64(0), Hi: 24 * hour}}}, 2, true},
		{plan.Set{Intervals: []plan.Interval{{Lo: 11 * hour, Hi: 12 * hour}}}, 2, false}, // part of the day
		{plan.Set{Intervals: []plan.Interval{{Lo: 24 * hour, Hi: 48 * hour}}}, 1, true},
		{plan.Set{Null: true}, 0, true},
	} {
		got, err := reader.Stored(t.Context(), tbl.Document(), &mv.Restriction{FieldID: tabletest.FieldTS, Set: c.set})
		if err != nil {
			t.Fatal(err)
		}
		whole := !slices.ContainsFunc(got, func(s changes.Stored) bool { return !s.Contained })
		if len(got) != c.files || whole != c.whole {
			t.Errorf("%+v: %d files, whole=%v, want %d, %v", c.set, len(got), whole, c.files, c.whole)
		}
	}
}

func TestUnreadableFilesAreErrors(t *testing.T) {
	t.Parallel()
	for _, damage := range []struct {
		kind catalog.Kind
		do   func(path string) error
	}{
		{catalog.KindNotFound, os.Remove},
		{catalog.KindUnavailable, func(p string) error { return os.Truncate(p, 200) }},
		{catalog.KindUnavailable, func(p string) error { return os.WriteFile(p, []byte("Obj\x01 no avro"), 0o600) }},
		{catalog.KindUnavailable, func(p string) error { return os.Truncate(p, 0) }},
	} {
		for _, list := range []bool{true, false} {
			tbl := three(t, tabletest.Options{})
			from := tbl.Head()
			to := tbl.Append(tabletest.At(50, 50))
			path := tbl.CurrentSnapshot().ManifestList
			if !list {
				manifests, err := tbl.CurrentSnapshot().Manifests(iceio.LocalFS{})
				if err != nil {
					t.Fatal(err)
				}
				i := slices.IndexFunc(manifests, func(m iceberg.ManifestFile) bool { return m.SnapshotID() == to })
				path = manifests[i].FilePath()
			}
			if err := damage.do(strings.TrimPrefix(path, "file://")); err != nil {
				t.Fatal(err)
			}
			reader := changes.New(iceio.LocalFS{})
			if _, err := reader.Between(t.Context(), tbl.Document(), from, to, tabletest.FieldTS); catalog.KindOf(err) != damage.kind {
				t.Errorf("list=%v: Between = %v (kind %d), want kind %d", list, err, catalog.KindOf(err), damage.kind)
			}
			if _, err := reader.Plan(t.Context(), tbl.Document(), to, nil); catalog.KindOf(err) != damage.kind {
				t.Errorf("list=%v: Plan = %v (kind %d), want kind %d", list, err, catalog.KindOf(err), damage.kind)
			}
			if _, err := reader.Between(t.Context(), tbl.Document(), from, from, tabletest.FieldTS); err != nil {
				t.Errorf("list=%v: Between that needs no damaged file = %v", list, err)
			}
		}
	}
	if _, err := changes.New(iceio.LocalFS{}).Between(t.Context(), []byte("{"), 1, 2, 1); catalog.KindOf(err) != catalog.KindUnprocessable {
		t.Errorf("Between of a broken document = %v", err)
	}
}

func TestPlanIdentityPartitionValues(t *testing.T) {
	t.Parallel()
	loc := "file://" + t.TempDir()
	fields := []iceberg.NestedField{
		{ID: 1, Name: "d", Type: iceberg.PrimitiveTypes.Date},
		{ID: 2, Name: "t", Type: iceberg.PrimitiveTypes.TimestampTz},
		{ID: 3, Name: "s", Type: iceberg.PrimitiveTypes.String},
		{ID: 4, Name: "n", Type: iceberg.PrimitiveTypes.Int64},
		{ID: 5, Name: "b", Type: iceberg.PrimitiveTypes.Bool},
		{ID: 6, Name: "c", Type: iceberg.DecimalTypeOf(9, 2)},
	}
	values := []any{iceberg.Date(19_000), iceberg.Timestamp(1_700_000_000_123_456), `a"b`, int64(9007199254740993), true, nil}
	want := []string{`"2022-01-08"`, `"2023-11-14T22:13:20.123456+00:00"`, `"a\"b"`, `9007199254740993`, `true`, `null`}
	var parts []iceberg.PartitionField
	tuple := map[int]any{}
	for i, f := range fields {
		parts = append(parts, iceberg.PartitionField{SourceIDs: []int{f.ID}, FieldID: 1000 + i, Name: f.Name + "_p", Transform: iceberg.IdentityTransform{}})
		tuple[1000+i] = values[i]
	}
	spec := iceberg.NewPartitionSpec(parts...)
	tbl := tabletest.NewFrom(t, iceberg.NewSchema(0, fields...), &spec, loc)
	b, err := iceberg.NewDataFileBuilder(spec, iceberg.EntryContentData, loc+"/data/x.parquet", iceberg.ParquetFile, tuple, nil, nil, 1, 10)
	if err != nil {
		t.Fatal(err)
	}
	tbl.Upsert([]iceberg.DataFile{b.Build()}, nil)
	got, err := changes.New(iceio.LocalFS{}).Plan(t.Context(), tbl.Document(), tbl.Head(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range fields {
		if v := got.Files[0].Partition[strconv.Itoa(f.ID)]; string(v) != want[i] || !json.Valid(v) {
			t.Errorf("column %s = %s, want %s", f.Name, v, want[i])
		}
	}
}
