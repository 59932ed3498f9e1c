package tabletest

import (
	"context"
	"fmt"
	"iter"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/iceberg-go/table"
)

// Rows reads the rows of a snapshot with iceberg-go, -1 for none.
func (t *Table) Rows(snapshotID int64) []Row {
	t.tb.Helper()
	if snapshotID == -1 {
		return nil
	}
	scan := t.Scan(table.WithSnapshotID(snapshotID))
	tasks, err := scan.PlanFiles(context.Background())
	if err != nil {
		t.tb.Fatal(err)
	}
	return t.rows(scan, tasks)
}

// RowsOf reads the rows of some tasks of a scan with iceberg-go.
func (t *Table) RowsOf(scan *table.Scan, tasks []table.FileScanTask) []Row {
	t.tb.Helper()
	return t.rows(scan, tasks)
}

func (t *Table) rows(scan *table.Scan, tasks []table.FileScanTask) []Row {
	t.tb.Helper()
	_, batches, err := scan.ReadTasks(context.Background(), tasks)
	if err != nil {
		t.tb.Fatal(err)
	}
	return t.decode(batches)
}

func (t *Table) decode(batches iter.Seq2[arrow.RecordBatch, error]) []Row {
	t.tb.Helper()
	var rows []Row
	for batch, err := range batches {
		if err != nil {
			t.tb.Fatal(err)
		}
		at := len(rows)
		rows = append(rows, make([]Row, batch.NumRows())...)
		for i, f := range batch.Schema().Fields() {
			for j := range int(batch.NumRows()) {
				set(&rows[at+j], f.Name, batch.Column(i), j)
			}
		}
		batch.Release()
	}
	return rows
}

func set(r *Row, name string, col arrow.Array, i int) {
	if col.IsNull(i) {
		return
	}
	switch c := col.(type) {
	case *array.Int64:
		if name == "id" {
			r.ID = c.Value(i)
		} else {
			r.V = c.Value(i)
		}
	case *array.String:
		r.K = c.Value(i)
	case *array.LargeString:
		r.K = c.Value(i)
	case *array.Timestamp:
		ts := int64(c.Value(i))
		r.TS = &ts
	}
}

// Key identifies a row's content.
func (r Row) Key() string {
	if r.TS == nil {
		return fmt.Sprintf("%d NULL %q %d", r.ID, r.K, r.V)
	}
	return fmt.Sprintf("%d %d %q %d", r.ID, *r.TS, r.K, r.V)
}

// Diff is the symmetric difference of two bags of rows.
func Diff(a, b []Row) []Row {
	count := map[string]int{}
	for _, r := range a {
		count[r.Key()]++
	}
	for _, r := range b {
		count[r.Key()]--
	}
	var out []Row
	for _, r := range append(append([]Row{}, a...), b...) {
		if count[r.Key()] != 0 {
			out = append(out, r)
		}
	}
	return out
}
