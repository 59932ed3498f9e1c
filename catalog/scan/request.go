package scan

import (
	"encoding/json"
	"slices"

	"github.com/apache/iceberg-go"

	"github.com/catalogd/catalogd/catalog"
)

// Request asks for the plan of a scan. It is stored beside the plan, hence the tags.
type Request struct {
	SnapshotID      *int64          `json:"snapshot-id,omitempty"` // nil: the current one
	StartSnapshotID *int64          `json:"start-snapshot-id,omitempty"`
	EndSnapshotID   *int64          `json:"end-snapshot-id,omitempty"`
	Select          []string        `json:"select,omitempty"`
	Filter          json.RawMessage `json:"filter,omitempty"` // nil: every row
	StatsFields     []string        `json:"stats-fields,omitempty"`
	// MinRows is how many rows are wanted at least, if there are so many; 0 means all.
	MinRows           int64 `json:"min-rows,omitempty"`
	CaseInsensitive   bool  `json:"case-insensitive,omitempty"`
	UseSnapshotSchema bool  `json:"use-snapshot-schema,omitempty"`
	// SchemaID is what a plan has settled on; clients do not set it.
	SchemaID *int `json:"schema-id,omitempty"`
}

func (r Request) incremental() bool { return r.StartSnapshotID != nil || r.EndSnapshotID != nil }

func invalid(format string, args ...any) *catalog.Error {
	return catalog.Errorf(catalog.KindInvalid, format, args...)
}

// check refuses what cannot be, whatever the table is.
func (r Request) check() error {
	switch {
	case r.incremental() && r.SnapshotID != nil:
		return invalid("Invalid scan: snapshot-id cannot be given together with start-snapshot-id and end-snapshot-id")
	case r.incremental() && (r.StartSnapshotID == nil || r.EndSnapshotID == nil):
		return invalid("Invalid scan: an incremental scan needs both start-snapshot-id and end-snapshot-id")
	case r.MinRows < 0:
		return invalid("Invalid member min-rows-requested: it is negative")
	default:
		return nil
	}
}

// metadataColumns can be selected from every table.
var metadataColumns = []string{
	"_file", "_pos", "_deleted", "_spec_id", "_partition", "_row_id", "_last_updated_sequence_number",
	"_change_type", "_change_ordinal", "_commit_snapshot_id",
}

// columns checks the names of a request against the schema and finds the columns whose
// statistics are wanted.
func (r Request) columns(sc *iceberg.Schema) (wanted map[int]bool, err error) {
	for _, name := range r.Select {
		if _, ok := find(sc, name, !r.CaseInsensitive); !ok && !slices.Contains(metadataColumns, name) {
			return nil, invalid("Invalid member select: the schema has no column %q", name)
		}
	}
	wanted = make(map[int]bool)
	for _, name := range r.StatsFields {
		c, ok := find(sc, name, !r.CaseInsensitive)
		if !ok {
			if slices.Contains(metadataColumns, name) {
				continue
			}
			return nil, invalid("Invalid member stats-fields: the schema has no column %q", name)
		}
		leaves(iceberg.NestedField{ID: c.id, Type: c.typ}, wanted)
	}
	return wanted, nil
}
