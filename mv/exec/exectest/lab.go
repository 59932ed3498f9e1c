package exectest

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	iceio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"
	"github.com/google/uuid"

	"github.com/catalogd/catalogd/mv"
)

// memCatalog keeps the tables of one test: just enough of a catalog for iceberg-go's
// transactions.
type memCatalog struct {
	mu   sync.Mutex
	meta map[string]table.Metadata
}

func fsOf(context.Context) (iceio.IO, error) { return iceio.LocalFS{}, nil }

func (c *memCatalog) LoadTable(_ context.Context, id table.Identifier) (*table.Table, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	meta, ok := c.meta[strings.Join(id, ".")]
	if !ok {
		return nil, fmt.Errorf("no table %v", id)
	}
	return table.New(id, meta, meta.Location()+"/metadata/v.json", fsOf, c), nil
}

func (c *memCatalog) CommitTable(_ context.Context, id table.Identifier, reqs []table.Requirement, updates []table.Update) (table.Metadata, string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	name := strings.Join(id, ".")
	for _, r := range reqs {
		if err := r.Validate(c.meta[name]); err != nil {
			return nil, "", fmt.Errorf("%w: %w", table.ErrCommitFailed, err)
		}
	}
	meta, err := table.UpdateTableMetadata(c.meta[name], updates, c.meta[name].Location()+"/metadata/v.json")
	if err != nil {
		return nil, "", err
	}
	c.meta[name] = meta
	return meta, meta.Location() + "/metadata/v.json", nil
}

// source is a table under test.
type source struct {
	t   *testing.T
	tbl *table.Table
}

// tableSpec says how a table is made.
type tableSpec struct {
	version   int
	schema    *iceberg.Schema
	partition *iceberg.PartitionSpec
	props     iceberg.Properties
}

func newSource(t *testing.T, spec tableSpec) *source {
	t.Helper()
	if spec.partition == nil {
		spec.partition = iceberg.UnpartitionedSpec
	}
	props := iceberg.Properties{table.PropertyFormatVersion: strconv.Itoa(spec.version), "write.delete.mode": "merge-on-read"}
	maps.Copy(props, spec.props)
	dir := t.TempDir()
	meta := newMetadata(t, spec, dir, props)
	cat := &memCatalog{meta: map[string]table.Metadata{"db.t": meta}}
	return &source{t: t, tbl: table.New(table.Identifier{"db", "t"}, meta, dir+"/metadata/v.json", fsOf, cat)}
}

// newMetadata keeps the field ids of the schema, which table.NewMetadata would not.
func newMetadata(t *testing.T, spec tableSpec, dir string, props iceberg.Properties) table.Metadata {
	t.Helper()
	b, err := table.NewMetadataBuilder(spec.version)
	if err != nil {
		t.Fatal(err)
	}
	delete(props, table.PropertyFormatVersion)
	unsorted := table.UnsortedSortOrder
	for _, err := range []error{
		b.AddSchema(spec.schema), b.SetCurrentSchemaID(-1), b.AddPartitionSpec(spec.partition, true), b.SetDefaultSpecID(-1),
		b.AddSortOrder(&unsorted), b.SetDefaultSortOrderID(-1), b.SetLoc(dir), b.SetUUID(uuid.New()), b.SetProperties(props),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	meta, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return meta
}

// change runs a transaction.
func (s *source) change(f func(*table.Transaction) error) {
	s.t.Helper()
	tx := s.tbl.NewTransaction()
	if err := f(tx); err != nil {
		s.t.Fatal(err)
	}
	tbl, err := tx.Commit(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	s.tbl = tbl
}

// append adds one data file (per partition) with rows in JSON.
func (s *source) append(rows string) {
	s.t.Helper()
	rec := records(s.t, s.tbl.Schema(), rows)
	defer rec.Release()
	s.change(func(tx *table.Transaction) error {
		rdr, err := array.NewRecordReader(rec.Schema(), []arrow.RecordBatch{rec})
		if err != nil {
			return err
		}
		defer rdr.Release()
		return tx.Append(s.t.Context(), rdr, nil)
	})
}

func (s *source) evolve(f func(*table.UpdateSchema) *table.UpdateSchema) {
	s.t.Helper()
	s.change(func(tx *table.Transaction) error { return f(tx.UpdateSchema(true, true)).Commit() })
}

func (s *source) delete(filter iceberg.BooleanExpression) {
	s.t.Helper()
	s.change(func(tx *table.Transaction) error { return tx.Delete(s.t.Context(), filter, nil) })
}

// deleteEqual commits equality deletes with the given key columns.
func (s *source) deleteEqual(ids []int, rows string) {
	s.t.Helper()
	var fields []iceberg.NestedField
	for _, id := range ids {
		f, ok := s.tbl.Schema().FindFieldByID(id)
		if !ok {
			s.t.Fatalf("no field %d", id)
		}
		fields = append(fields, f)
	}
	rec := records(s.t, iceberg.NewSchema(0, fields...), rows)
	defer rec.Release()
	var seq iter.Seq2[arrow.RecordBatch, error] = func(yield func(arrow.RecordBatch, error) bool) {
		rec.Retain()
		yield(rec, nil)
	}
	s.change(func(tx *table.Transaction) error { return tx.CommitEqualityDeletes(s.t.Context(), ids, seq, nil) })
}

func records(t *testing.T, schema *iceberg.Schema, rows string) arrow.RecordBatch {
	t.Helper()
	sc, err := table.SchemaToArrowSchema(schema, nil, true, false)
	if err != nil {
		t.Fatal(err)
	}
	rec, _, err := array.RecordFromJSON(memory.DefaultAllocator, sc, strings.NewReader(rows))
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

// input plans the table's current snapshot, as the refresher does.
func (s *source) input(name string) mv.Input {
	s.t.Helper()
	schema, err := json.Marshal(s.tbl.Schema())
	if err != nil {
		s.t.Fatal(err)
	}
	in := mv.Input{Relation: mv.Relation{Name: name, Schema: schema}}
	if m, ok := s.tbl.Properties()["schema.name-mapping.default"]; ok {
		in.NameMapping = json.RawMessage(m)
	}
	tasks, err := s.tbl.Scan().PlanFiles(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	for _, task := range tasks {
		in.Files = append(in.Files, inputFile(task))
	}
	return in
}

func inputFile(task table.FileScanTask) mv.InputFile {
	f := mv.InputFile{
		Path: task.File.FilePath(), Format: string(task.File.FileFormat()),
		Bytes: task.File.FileSizeBytes(), Records: task.File.Count(),
	}
	for _, d := range task.DeleteFiles {
		f.PositionDeletes = append(f.PositionDeletes, mv.DeleteFile{Path: d.FilePath(), Bytes: d.FileSizeBytes()})
	}
	for _, d := range task.EqualityDeleteFiles {
		f.EqualityDeletes = append(f.EqualityDeletes, mv.DeleteFile{Path: d.FilePath(), Bytes: d.FileSizeBytes(), EqualityIDs: d.EqualityFieldIDs()})
	}
	for _, d := range task.DeletionVectorFiles {
		f.DeletionVector = &mv.DeleteFile{Path: d.FilePath(), Bytes: d.FileSizeBytes(), Offset: *d.ContentOffset(), Length: *d.ContentSizeInBytes()}
	}
	return f
}

// columns are the table's own columns as an output definition.
func (s *source) columns() []mv.Column {
	s.t.Helper()
	var out []mv.Column
	for _, f := range s.tbl.Schema().Fields() {
		out = append(out, mv.Column{Name: f.Name, ID: f.ID, Type: typeText(s.t, f.Type)})
	}
	return out
}

func typeText(t *testing.T, typ iceberg.Type) string {
	t.Helper()
	if _, nested := typ.(iceberg.NestedType); !nested {
		return typ.String()
	}
	b, err := json.Marshal(iceberg.NestedField{ID: 1, Name: "x", Type: typ})
	if err != nil {
		t.Fatal(err)
	}
	var f struct {
		Type json.RawMessage `json:"type"`
	}
	if err := json.Unmarshal(b, &f); err != nil {
		t.Fatal(err)
	}
	return string(f.Type)
}

// rows are what iceberg-go reads, each as one line of JSON, sorted.
func (s *source) rows(opts ...table.ScanOption) []string {
	s.t.Helper()
	return scanRows(s.t, s.tbl.Scan(opts...))
}

// task selects from the inputs into a fresh folder.
func task(t *testing.T, sql string, columns []mv.Column, inputs ...mv.Input) mv.Task {
	t.Helper()
	return mv.Task{
		RefreshID: "refresh-1", SQL: sql, Inputs: inputs, Columns: columns,
		Output: filepath.Join(t.TempDir(), "data"),
	}
}
