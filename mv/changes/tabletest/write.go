package tabletest

import (
	"bytes"
	"context"
	"errors"
	"iter"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/apache/iceberg-go"
	iceio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"
)

// Write writes rows into data files, one for each partition, without committing them.
func (t *Table) Write(rows ...Row) []iceberg.DataFile {
	t.tb.Helper()
	schema := t.arrow(t.Schema())
	batch := t.batch(schema, rows)
	return t.collect(table.WriteRecords(context.Background(), t.Table, schema, one(batch)))
}

func (t *Table) arrow(s *iceberg.Schema) *arrow.Schema {
	schema, err := table.SchemaToArrowSchema(s, nil, true, false)
	if err != nil {
		t.tb.Fatal(err)
	}
	return schema
}

func one(batch arrow.RecordBatch) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) { yield(batch, nil) }
}

func (t *Table) collect(files iter.Seq2[iceberg.DataFile, error]) []iceberg.DataFile {
	t.tb.Helper()
	var out []iceberg.DataFile
	for f, err := range files {
		if err != nil {
			t.tb.Fatal(err)
		}
		out = append(out, f)
	}
	return out
}

// batch fills the columns that schema has.
func (t *Table) batch(schema *arrow.Schema, rows []Row) arrow.RecordBatch {
	t.tb.Helper()
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	for i, f := range schema.Fields() {
		for _, r := range rows {
			switch col := b.Field(i).(type) {
			case *array.Int64Builder:
				if f.Name == "id" {
					col.Append(r.ID)
				} else {
					col.Append(r.V)
				}
			case *array.StringBuilder:
				col.Append(r.K)
			case *array.TimestampBuilder:
				if r.TS == nil {
					col.AppendNull()
				} else {
					col.Append(arrow.Timestamp(*r.TS))
				}
			default:
				t.tb.Fatalf("column %s has type %s", f.Name, f.Type)
			}
		}
	}
	return b.NewRecordBatch()
}

// Append commits rows as new files.
func (t *Table) Append(rows ...Row) int64 {
	t.tb.Helper()
	files := t.Write(rows...)
	return t.Tx(func(ctx context.Context, tx *table.Transaction) error {
		return tx.NewRowDelta(nil).AddRows(files...).Commit(ctx)
	})
}

// Delete deletes rows by copy-on-write, or by position deletes (v2) or deletion vectors
// (v3) if mergeOnRead.
func (t *Table) Delete(mergeOnRead bool, filter iceberg.BooleanExpression) int64 {
	t.tb.Helper()
	mode := table.WriteModeCopyOnWrite
	if mergeOnRead {
		mode = table.WriteModeMergeOnRead
	}
	t.Update(table.NewSetPropertiesUpdate(iceberg.Properties{table.WriteDeleteModeKey: mode}))
	return t.Tx(func(ctx context.Context, tx *table.Transaction) error { return tx.Delete(ctx, filter, nil) })
}

// DeleteEqual commits an equality delete on the given columns for the keys of rows, which
// must lie in the partitions that it shall reach.
func (t *Table) DeleteEqual(ids []int, rows ...Row) int64 {
	t.tb.Helper()
	return t.Tx(func(ctx context.Context, tx *table.Transaction) error {
		var fields []iceberg.NestedField
		for _, f := range t.Schema().Fields() {
			for _, id := range ids {
				if f.ID == id {
					fields = append(fields, f)
				}
			}
		}
		schema := t.arrow(iceberg.NewSchema(0, fields...))
		deletes, err := tx.WriteEqualityDeletes(ctx, ids, one(t.batch(schema, rows)))
		if err != nil {
			return err
		}
		return tx.NewRowDelta(nil).AddDeletes(deletes...).Commit(ctx)
	})
}

// Tasks plans the files of the current snapshot with iceberg-go.
func (t *Table) Tasks() []table.FileScanTask {
	t.tb.Helper()
	tasks, err := t.Scan().PlanFiles(context.Background())
	if err != nil {
		t.tb.Fatal(err)
	}
	return tasks
}

// Compact rewrites the data files that pass into new ones, without their deletes, as a
// replace snapshot. keep may drop rows on the way, which a compaction must never do.
func (t *Table) Compact(pass func(iceberg.DataFile) bool, keep func(Row) bool) int64 {
	t.tb.Helper()
	var tasks []table.FileScanTask
	for _, task := range t.Tasks() {
		if pass(task.File) {
			tasks = append(tasks, task)
		}
	}
	if len(tasks) == 0 {
		return t.Head()
	}
	var rows []Row
	for _, r := range t.rows(t.Scan(), tasks) {
		if keep(r) {
			rows = append(rows, r)
		}
	}
	var files []iceberg.DataFile
	if len(rows) > 0 {
		files = t.Write(rows...)
	}
	return t.Tx(func(ctx context.Context, tx *table.Transaction) error {
		rewrite := tx.NewRewrite(nil)
		seen := map[string]bool{}
		for _, task := range tasks {
			rewrite.DeleteFile(task.File)
			for _, del := range append(append([]iceberg.DataFile{}, task.DeletionVectorFiles...), fileScoped(task.DeleteFiles, task.File)...) {
				if !seen[del.FilePath()+task.File.FilePath()] {
					rewrite.DeleteFile(del)
				}
				seen[del.FilePath()+task.File.FilePath()] = true
			}
		}
		for _, f := range files {
			rewrite.AddDataFile(f)
		}
		return rewrite.Commit(ctx)
	})
}

// fileScoped keeps the position deletes that name only the given data file.
func fileScoped(deletes []iceberg.DataFile, data iceberg.DataFile) []iceberg.DataFile {
	const filePath = 2147483546
	var out []iceberg.DataFile
	for _, d := range deletes {
		ref := d.ReferencedDataFile()
		lo, hi := d.LowerBoundValues()[filePath], d.UpperBoundValues()[filePath]
		if (ref != nil && *ref == data.FilePath()) || (string(lo) == data.FilePath() && string(hi) == data.FilePath()) {
			out = append(out, d)
		}
	}
	return out
}

// Replace swaps data files in one overwrite snapshot: an update by copy-on-write.
func (t *Table) Replace(remove []iceberg.DataFile, rows ...Row) int64 {
	t.tb.Helper()
	var add []iceberg.DataFile
	if len(rows) > 0 {
		add = t.Write(rows...)
	}
	return t.Tx(func(ctx context.Context, tx *table.Transaction) error {
		return tx.ReplaceFiles(ctx, remove, add, nil, nil, table.WithoutAutoNameMapping())
	})
}

// Upsert commits new rows and position deletes or vectors for the rows of a filter as one
// snapshot, like an update by merge-on-read.
func (t *Table) Upsert(files []iceberg.DataFile, deletes []iceberg.DataFile) int64 {
	t.tb.Helper()
	return t.Tx(func(ctx context.Context, tx *table.Transaction) error {
		return tx.NewRowDelta(nil).AddRows(files...).AddDeletes(deletes...).Commit(ctx)
	})
}

// Position is a row of a position delete file.
type Position struct {
	Path string
	Pos  int64
}

// PositionDeletes writes a version 2 position delete file for an unpartitioned table,
// without bounds: nothing but its rows says which files it hits.
func (t *Table) PositionDeletes(name string, rows ...Position) iceberg.DataFile {
	t.tb.Helper()
	schema := table.PositionalDeleteArrowSchema
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	for _, r := range rows {
		for i, f := range schema.Fields() {
			switch col := b.Field(i).(type) {
			case *array.StringBuilder:
				col.Append(r.Path)
			case *array.Int64Builder:
				col.Append(r.Pos)
			default:
				t.tb.Fatalf("column %s has type %s", f.Name, f.Type)
			}
		}
	}
	batch := b.NewRecordBatch()
	defer batch.Release()
	var buf bytes.Buffer
	w, err := pqarrow.NewFileWriter(schema, &buf, nil, pqarrow.DefaultWriterProps())
	if err != nil {
		t.tb.Fatal(err)
	}
	if err := errors.Join(w.Write(batch), w.Close()); err != nil {
		t.tb.Fatal(err)
	}
	path := t.Location() + "/data/" + name + "-deletes.parquet"
	out, ok := t.fs.(iceio.WriteFileIO)
	if !ok {
		t.tb.Fatal("the table cannot be written")
	}
	if err := out.WriteFile(path, buf.Bytes()); err != nil {
		t.tb.Fatal(err)
	}
	f, err := iceberg.NewDataFileBuilder(*iceberg.UnpartitionedSpec, iceberg.EntryContentPosDeletes, path, iceberg.ParquetFile, nil, nil, nil,
		int64(len(rows)), int64(buf.Len()))
	if err != nil {
		t.tb.Fatal(err)
	}
	return f.Build()
}
