// Package tabletest makes real Iceberg tables for tests: their files are written, and
// their rows read back, by iceberg-go.
package tabletest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"

	"github.com/apache/iceberg-go"
	iceio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"
)

// The field ids of the schema of [New].
const (
	FieldID    = 1 // id long, required
	FieldTS    = 2 // ts timestamp
	FieldKey   = 3 // k string
	FieldValue = 4 // v long
)

// Row is a row of a test table. TS in microseconds; nil is NULL.
type Row struct {
	ID int64
	TS *int64
	K  string
	V  int64
}

// At is a row with a timestamp of the given hour since 1970.
func At(id, hour int64) Row {
	ts := hour * 3_600_000_000
	return Row{ID: id, TS: &ts, K: "k" + strconv.FormatInt(id%3, 10), V: id * 10}
}

// Null is a row whose ts is NULL.
func Null(id int64) Row { return Row{ID: id, K: "null", V: id} }

// Options choose the kind of table.
type Options struct {
	Version    int // 2 or 3; default 2
	Day        bool
	Bucket     bool // partition by bucket[4](id)
	Properties iceberg.Properties
	NoStats    bool
	Location   string   // default: a temporary folder
	FS         iceio.IO // default: iceberg-go's own local IO
}

// Table is a table with its one-row catalog.
type Table struct {
	*table.Table
	tb  testing.TB
	cat *catalog
	fs  iceio.IO
}

// New makes an empty table.
func New(tb testing.TB, o Options) *Table {
	tb.Helper()
	schema := iceberg.NewSchema(0,
		iceberg.NestedField{ID: FieldID, Name: "id", Type: iceberg.PrimitiveTypes.Int64, Required: true},
		iceberg.NestedField{ID: FieldTS, Name: "ts", Type: iceberg.PrimitiveTypes.Timestamp},
		iceberg.NestedField{ID: FieldKey, Name: "k", Type: iceberg.PrimitiveTypes.String},
		iceberg.NestedField{ID: FieldValue, Name: "v", Type: iceberg.PrimitiveTypes.Int64},
	)
	props := iceberg.Properties{table.PropertyFormatVersion: strconv.Itoa(max(o.Version, 2))}
	if o.NoStats {
		props["write.metadata.metrics.default"] = "none"
	}
	maps.Copy(props, o.Properties)
	if o.Location == "" {
		o.Location = "file://" + tb.TempDir()
	}
	if o.FS == nil {
		o.FS = iceio.LocalFS{}
	}
	meta, err := table.NewMetadata(schema, spec(o), table.UnsortedSortOrder, o.Location, props)
	if err != nil {
		tb.Fatal(err)
	}
	t := &Table{tb: tb, fs: o.FS, cat: &catalog{meta: meta, fs: o.FS}}
	t.reload()
	return t
}

func spec(o Options) *iceberg.PartitionSpec {
	var fields []iceberg.PartitionField
	if o.Day {
		fields = append(fields, iceberg.PartitionField{SourceIDs: []int{FieldTS}, FieldID: 1000, Name: "ts_day", Transform: iceberg.DayTransform{}})
	}
	if o.Bucket {
		fields = append(fields, iceberg.PartitionField{
			SourceIDs: []int{FieldID}, FieldID: 1001, Name: "id_bucket", Transform: iceberg.BucketTransform{NumBuckets: 4},
		})
	}
	if fields == nil {
		return iceberg.UnpartitionedSpec
	}
	s := iceberg.NewPartitionSpec(fields...)
	return &s
}

// catalog holds the metadata of one table.
type catalog struct {
	meta table.Metadata
	fs   iceio.IO
}

// LoadTable implements table.CatalogIO.
func (c *catalog) LoadTable(_ context.Context, id table.Identifier) (*table.Table, error) {
	return table.New(id, c.meta, c.meta.Location()+"/metadata/v.json", func(context.Context) (iceio.IO, error) { return c.fs, nil }, c), nil
}

// CommitTable implements table.CatalogIO.
func (c *catalog) CommitTable(_ context.Context, _ table.Identifier, reqs []table.Requirement, updates []table.Update) (table.Metadata, string, error) {
	for _, r := range reqs {
		if err := r.Validate(c.meta); err != nil {
			return nil, "", errors.Join(table.ErrCommitFailed, err)
		}
	}
	meta, err := table.UpdateTableMetadata(c.meta, updates, "")
	if err != nil {
		return nil, "", err
	}
	c.meta = meta
	return meta, meta.Location() + "/metadata/v.json", nil
}

func (t *Table) reload() {
	var err error
	if t.Table, err = t.cat.LoadTable(context.Background(), table.Identifier{"db", "t"}); err != nil {
		t.tb.Fatal(err)
	}
}

// Document is the table's metadata file.
func (t *Table) Document() []byte {
	doc, err := json.Marshal(t.cat.meta)
	if err != nil {
		t.tb.Fatal(err)
	}
	return doc
}

// Commit applies a commit in its wire form, as a catalog does.
func (t *Table) Commit(requirements, updates []json.RawMessage) error {
	var reqs table.Requirements
	var ups table.Updates
	rawReqs, err := json.Marshal(requirements)
	if err != nil {
		return err
	}
	rawUps, err := json.Marshal(updates)
	if err != nil {
		return err
	}
	if err := errors.Join(json.Unmarshal(rawReqs, &reqs), json.Unmarshal(rawUps, &ups)); err != nil {
		return err
	}
	if _, _, err := t.cat.CommitTable(context.Background(), nil, reqs, ups); err != nil {
		return err
	}
	t.reload()
	return nil
}

// Update applies metadata updates.
func (t *Table) Update(updates ...table.Update) {
	t.tb.Helper()
	if _, _, err := t.cat.CommitTable(context.Background(), nil, nil, updates); err != nil {
		t.tb.Fatal(err)
	}
	t.reload()
}

// Head is the current snapshot, -1 if there is none.
func (t *Table) Head() int64 {
	if s := t.CurrentSnapshot(); s != nil {
		return s.SnapshotID
	}
	return -1
}

// Tx runs one transaction.
func (t *Table) Tx(work func(ctx context.Context, tx *table.Transaction) error) int64 {
	t.tb.Helper()
	ctx := context.Background()
	tx := t.NewTransaction()
	if err := work(ctx, tx); err != nil {
		t.tb.Fatal(err)
	}
	if _, err := tx.Commit(ctx); err != nil {
		t.tb.Fatal(err)
	}
	t.reload()
	return t.Head()
}

// SetOperation rewrites what the newest snapshot calls itself.
func (t *Table) SetOperation(op table.Operation) {
	t.tb.Helper()
	t.editHead(func(s map[string]any) {
		summary, ok := s["summary"].(map[string]any)
		if !ok {
			t.tb.Fatal("the head has no summary")
		}
		summary["operation"] = string(op)
	})
}

// SetTimestamp rewrites when the newest snapshot says it was made.
func (t *Table) SetTimestamp(ms int64) {
	t.tb.Helper()
	t.editHead(func(s map[string]any) { s["timestamp-ms"] = json.Number(strconv.FormatInt(ms, 10)) })
}

func (t *Table) editHead(edit func(map[string]any)) {
	doc := map[string]json.RawMessage{}
	var snapshots []map[string]json.RawMessage
	if err := json.Unmarshal(t.Document(), &doc); err != nil {
		t.tb.Fatal(err)
	}
	if err := json.Unmarshal(doc["snapshots"], &snapshots); err != nil {
		t.tb.Fatal(err)
	}
	head := strconv.FormatInt(t.Head(), 10)
	i := slices.IndexFunc(snapshots, func(s map[string]json.RawMessage) bool { return string(s["snapshot-id"]) == head })
	fields := map[string]any{}
	for k, v := range snapshots[i] {
		fields[k] = v
	}
	var summary map[string]any
	if err := json.Unmarshal(snapshots[i]["summary"], &summary); err != nil {
		t.tb.Fatal(err)
	}
	fields["summary"] = summary
	edit(fields)
	for k, v := range fields {
		raw, err := json.Marshal(v)
		if err != nil {
			t.tb.Fatal(err)
		}
		snapshots[i][k] = raw
	}
	var err error
	if doc["snapshots"], err = json.Marshal(snapshots); err != nil {
		t.tb.Fatal(err)
	}
	raw, err := json.Marshal(doc)
	if err != nil {
		t.tb.Fatal(err)
	}
	meta, err := table.ParseMetadataBytes(raw)
	if err != nil {
		t.tb.Fatal(fmt.Errorf("edited metadata: %w", err))
	}
	t.cat.meta = meta
	t.reload()
}

// Reset puts the table back to older metadata.
func (t *Table) Reset(meta table.Metadata) {
	t.cat.meta = meta
	t.reload()
}

// NewFrom makes an empty version 2 table of any schema. Its rows cannot be written with
// [Table.Write].
func NewFrom(tb testing.TB, schema *iceberg.Schema, spec *iceberg.PartitionSpec, location string) *Table {
	tb.Helper()
	meta, err := table.NewMetadata(schema, spec, table.UnsortedSortOrder, location, iceberg.Properties{table.PropertyFormatVersion: "2"})
	if err != nil {
		tb.Fatal(err)
	}
	t := &Table{tb: tb, fs: iceio.LocalFS{}, cat: &catalog{meta: meta, fs: iceio.LocalFS{}}}
	t.reload()
	return t
}
