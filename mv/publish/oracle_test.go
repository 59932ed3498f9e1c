package publish_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/google/go-cmp/cmp"

	"github.com/catalogd/catalogd/mv"
	"github.com/catalogd/catalogd/mv/changes/tabletest"
)

// TestReplaceEqualsReplaceFiles publishes the same change through iceberg-go's own
// ReplaceFiles and compares what the two snapshots say: rows, live files with their
// metrics and partitions, and the summary.
func TestReplaceEqualsReplaceFiles(t *testing.T) {
	t.Parallel()
	for _, o := range []tabletest.Options{
		{Day: true},
		{},
		{Bucket: true},
		{Day: true, Bucket: true},
		{Day: true, Properties: iceberg.Properties{"write.metadata.metrics.default": "full"}},
	} {
		b := newBench(t, o)
		var all []tabletest.Row
		for d := range int64(6) {
			rows := append(rowsOf(d, 0, 3), tabletest.Row{ID: 500 + d, K: strings.Repeat("long ", 8), V: -d})
			all = append(all, rows...)
		}
		st, err := b.pub.Replace(t.Context(), mv.Publication{Document: b.Document(), Head: mv.NoSnapshot, All: true, Add: b.output(all...)})
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Commit(st.Requirements, st.Updates); err != nil {
			t.Fatal(err)
		}
		base := b.Metadata()
		var remove []iceberg.DataFile
		stored := mv.Stored{}
		for i, task := range b.Tasks() {
			if i%2 == 0 {
				remove = append(remove, task.File)
				stored.Files = append(stored.Files, mv.InputFile{Path: task.File.FilePath()})
			}
		}
		add := b.output(rowsOf(7, 1, 3)...)
		c, err := b.pub.Stage(t.Context(), mv.Publication{Document: b.Document(), Head: b.Head(), Remove: &stored, Add: add})
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Commit(c.Requirements, c.Updates); err != nil {
			t.Fatal(err)
		}
		ours := describe(t, b)
		var added []iceberg.DataFile // as the snapshot of ours describes them
		for _, task := range b.Tasks() {
			if slices.ContainsFunc(add, func(f mv.OutputFile) bool { return f.Path == task.File.FilePath() }) {
				added = append(added, task.File)
			}
		}
		b.Reset(base)
		b.Tx(func(ctx context.Context, tx *table.Transaction) error {
			return tx.ReplaceFiles(ctx, remove, added, nil, nil, table.WithoutAutoNameMapping())
		})
		if diff := cmp.Diff(describe(t, b), ours); diff != "" {
			t.Errorf("%+v: ReplaceFiles (-) and ours (+) differ:\n%s", o, diff)
		}
	}
}

// view is what a reader sees of a snapshot.
type view struct {
	Rows    []string
	Files   []string
	Summary map[string]string
}

func describe(t *testing.T, b *bench) view {
	t.Helper()
	v := view{Summary: map[string]string{}}
	for _, r := range b.Rows(b.Head()) {
		v.Rows = append(v.Rows, r.Key())
	}
	for _, task := range b.Tasks() {
		f := task.File
		v.Files = append(v.Files, fmt.Sprint([]any{
			f.FilePath(), f.Partition(), f.Count(), f.FileSizeBytes(), f.NullValueCounts(), f.ValueCounts(), f.LowerBoundValues(),
			f.UpperBoundValues(), f.ColumnSizes(), f.SplitOffsets(), f.SpecID(), *task.DataSequenceNumber,
		}))
	}
	slices.Sort(v.Rows)
	slices.Sort(v.Files)
	for k, n := range b.CurrentSnapshot().Summary.Properties {
		if k != "iceberg-version" { // who wrote it
			v.Summary[k] = n
		}
	}
	return v
}

// TestReplacePartitions lets iceberg-go partition rows by every transform that a storage
// table may have, and compares the tuples that we read from the files.
func TestReplacePartitions(t *testing.T) {
	t.Parallel()
	b := newBench(t, tabletest.Options{Day: true, Bucket: true})
	rows := slices.Concat(rowsOf(-3, 1, 4), rowsOf(11, 1, 4), []tabletest.Row{tabletest.Null(5), tabletest.Null(6)})
	want := map[string]int64{}
	for _, f := range b.Write(rows...) {
		want[fmt.Sprint(f.Partition())] += f.Count()
	}
	st, err := b.pub.Replace(t.Context(), mv.Publication{Document: b.Document(), Head: mv.NoSnapshot, All: true, Add: b.output(rows...)})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Commit(st.Requirements, st.Updates); err != nil {
		t.Fatal(err)
	}
	got := map[string]int64{}
	for _, task := range b.Tasks() {
		got[fmt.Sprint(task.File.Partition())] += task.File.Count()
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("partition tuples (-iceberg-go +ours):\n%s", diff)
	}
}
