package mv

import (
	"context"
	"encoding/json"

	"github.com/catalogd/catalogd/catalog"
)

// Engine turns a pinned, restricted query into data files. It never commits.
// mv/exec/duckdb implements it; suite mv/exec/exectest is its contract in code.
type Engine interface {
	// Name is recorded with every refresh ("duckdb").
	Name() string
	// Describe binds a query against empty tables of the given schemas. A query that does
	// not parse, names a missing column, uses an unknown function or could reach outside
	// fails with catalog.KindInvalid and a message that names the position or the name.
	Describe(ctx context.Context, q DescribeRequest) ([]EngineColumn, error)
	// Run executes a task. Every failure that running again cannot cure (a cast that
	// overflows, a file format it cannot read) is catalog.KindUnprocessable; a crash, a
	// kill or a full disk is any other kind. onProgress may be nil.
	Run(ctx context.Context, t Task, onProgress func(Progress)) (Result, error)
}

// DescribeRequest is a query over relations that exist only as schemas.
type DescribeRequest struct {
	SQL       string     `json:"sql"` // DuckDB text whose table references are the Relations' names
	TimeZone  string     `json:"time-zone"`
	Relations []Relation `json:"relations"`
}

// Relation is a name that the SQL may reference and the Iceberg schema behind it.
type Relation struct {
	Name   string          `json:"name"`
	Schema json.RawMessage `json:"schema"` // Iceberg schema JSON ({"type":"struct","fields":[…]})
}

// EngineColumn is an output column as the engine sees it.
type EngineColumn struct {
	Name     string `json:"name"`
	Type     string `json:"type"`    // Iceberg type as in [Column]
	Coerced  bool   `json:"coerced"` // Type is narrower than what the engine computes (HUGEINT → long); the cast is checked
	Nullable bool   `json:"nullable"`
}

// Task is one run of a query over pinned files.
type Task struct {
	RefreshID string          `json:"refresh-id"`
	SQL       string          `json:"sql"` // references the Inputs' names only
	TimeZone  string          `json:"time-zone"`
	Inputs    []Input         `json:"inputs"`
	Columns   []Column        `json:"columns"` // output: the query's columns are cast to these, by position
	Output    string          `json:"output"`  // folder location that the data files go to
	Partition []PartitionExpr `json:"partition"`
	Limits    Limits          `json:"limits"`
}

// Input is a relation and the files that make it up at a pinned snapshot.
type Input struct {
	Relation
	Files []InputFile `json:"files"`
	// NameMapping is the table's schema.name-mapping.default, for files without field ids.
	NameMapping json.RawMessage `json:"name-mapping,omitempty"`
}

// InputFile is a data file with the deletes that apply to it.
type InputFile struct {
	Path            string                     `json:"path"`
	Format          string                     `json:"format"` // PARQUET, ORC, AVRO
	Bytes           int64                      `json:"bytes"`
	Records         int64                      `json:"records"`
	FirstRowID      *int64                     `json:"first-row-id,omitempty"`
	Partition       map[string]json.RawMessage `json:"partition,omitempty"` // identity partition values by source field id
	PositionDeletes []DeleteFile               `json:"position-deletes,omitempty"`
	EqualityDeletes []DeleteFile               `json:"equality-deletes,omitempty"`
	DeletionVector  *DeleteFile                `json:"deletion-vector,omitempty"`
}

// DeleteFile is a position delete file, an equality delete file or a deletion vector.
type DeleteFile struct {
	Path        string `json:"path"`
	Bytes       int64  `json:"bytes"`
	EqualityIDs []int  `json:"equality-ids,omitempty"`
	Offset      int64  `json:"offset,omitempty"` // deletion vector: blob position in the puffin file
	Length      int64  `json:"length,omitempty"`
}

// PartitionExpr is one partition field of the storage table: files never straddle it.
type PartitionExpr struct {
	FieldID   int    `json:"field-id"` // partition field id
	Column    string `json:"column"`
	Transform string `json:"transform"` // identity, year, month, day, hour, bucket[N], truncate[N]
}

// Limits bound one run.
type Limits struct {
	MemoryBytes int64  `json:"memory-bytes"`
	Threads     int    `json:"threads"`
	SpillDir    string `json:"spill-dir"`
}

// Progress is reported while a task runs.
type Progress struct {
	Percent float64 `json:"percent"`
	Rows    int64   `json:"rows"`
}

// Result is what a run produced.
type Result struct {
	Files     []OutputFile `json:"files"`
	Rows      int64        `json:"rows"`
	BytesRead int64        `json:"bytes-read"` // column chunk bytes of the files that were opened
	CPU       float64      `json:"cpu-seconds"`
}

// OutputFile is a Parquet file with the field ids of [Task.Columns].
type OutputFile struct {
	Path    string `json:"path"`
	Records int64  `json:"records"`
	Bytes   int64  `json:"bytes"`
	// Partition is the file's partition tuple by partition field id: Iceberg's
	// single-value JSON, but dates and times as the integers that Iceberg stores.
	Partition map[string]json.RawMessage `json:"partition,omitempty"`
}

// ErrInput builds the error of a query that an engine refuses.
func ErrInput(format string, args ...any) *catalog.Error {
	return catalog.Errorf(catalog.KindInvalid, format, args...)
}
