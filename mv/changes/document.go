package changes

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/apache/iceberg-go"

	"github.com/catalogd/catalogd/catalog"
	"github.com/catalogd/catalogd/mv"
)

const nameMappingProperty = "schema.name-mapping.default"

// document is the part of a metadata file that planning needs. It is read leniently and
// never written: unknown members, types and transforms of other columns do not matter.
type document struct {
	FormatVersion     int               `json:"format-version"`
	UUID              string            `json:"table-uuid"`
	CurrentSchemaID   int               `json:"current-schema-id"`
	CurrentSnapshotID *int64            `json:"current-snapshot-id"`
	Schema            json.RawMessage   `json:"schema"` // version 1
	Schemas           []json.RawMessage `json:"schemas"`
	Spec              json.RawMessage   `json:"partition-spec"` // version 1
	Specs             []json.RawMessage `json:"partition-specs"`
	Properties        map[string]string `json:"properties"`
	Snapshots         []*snapshot       `json:"snapshots"`

	byID    map[int64]*snapshot
	schemas []*iceberg.Schema
	specs   map[int]*spec
}

type snapshot struct {
	ID           int64    `json:"snapshot-id"`
	Parent       *int64   `json:"parent-snapshot-id"`
	ManifestList string   `json:"manifest-list"`
	Manifests    []string `json:"manifests"` // version 1
	SchemaID     *int     `json:"schema-id"`
	Summary      summary  `json:"summary"`
}

type summary struct {
	Operation string `json:"operation"`
	TotalSize any    `json:"total-files-size"` // text; some writers put a number
}

func (s summary) totalBytes() int64 {
	text, ok := s.TotalSize.(string)
	if !ok {
		return 0
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// spec is a partition spec with the result types of its fields.
type spec struct {
	id            int
	unpartitioned bool
	fields        []specField
}

type specField struct {
	id        int
	source    int
	multi     bool // several source columns
	transform iceberg.Transform
	typ       iceberg.Type // result type; nil if the source column is unknown
}

func parseDocument(doc []byte) (*document, error) {
	d := &document{byID: make(map[int64]*snapshot), specs: make(map[int]*spec)}
	if err := json.Unmarshal(doc, d); err != nil {
		return nil, catalog.Errorf(catalog.KindUnprocessable, "table metadata cannot be read").Because(err)
	}
	for _, s := range d.Snapshots {
		if s == nil {
			return nil, catalog.Errorf(catalog.KindUnprocessable, "table metadata lists a null snapshot")
		}
		d.byID[s.ID] = s
	}
	if len(d.Schemas) == 0 && d.Schema != nil {
		d.Schemas = []json.RawMessage{d.Schema}
	}
	for _, raw := range d.Schemas {
		// A schema with a type that we do not know may still be skipped: it is needed only
		// if nothing else describes a column.
		sc := new(iceberg.Schema)
		if err := json.Unmarshal(raw, sc); err == nil {
			d.schemas = append(d.schemas, sc)
		}
	}
	return d, d.parseSpecs()
}

func (d *document) parseSpecs() error {
	raws := d.Specs
	if len(raws) == 0 && d.Spec != nil {
		raws = []json.RawMessage{json.RawMessage(fmt.Sprintf(`{"spec-id":0,"fields":%s}`, d.Spec))}
	}
	for _, raw := range raws {
		ps := new(iceberg.PartitionSpec)
		if err := json.Unmarshal(raw, ps); err != nil {
			return catalog.Errorf(catalog.KindUnprocessable, "a partition spec of the table cannot be read").Because(err)
		}
		s := &spec{id: ps.ID(), unpartitioned: ps.IsUnpartitioned()}
		for _, f := range ps.Fields() {
			field := specField{id: f.FieldID, source: f.SourceID(), multi: len(f.SourceIDs) > 1, transform: f.Transform}
			if typ := d.columnType(f.SourceID()); typ != nil {
				field.typ = f.Transform.ResultType(typ)
			}
			s.fields = append(s.fields, field)
		}
		d.specs[s.id] = s
	}
	return nil
}

// columnType finds the newest type of a column: in the current schema, else in an older
// one. Bounds that were written under an older, narrower type still decode.
func (d *document) columnType(fieldID int) iceberg.Type {
	var found iceberg.Type
	for _, sc := range d.schemas {
		f, ok := sc.FindFieldByID(fieldID)
		if !ok {
			continue
		}
		if sc.ID == d.CurrentSchemaID {
			return f.Type
		}
		found = f.Type
	}
	return found
}

// schema returns the raw JSON of a schema.
func (d *document) schema(id int) (json.RawMessage, error) {
	for _, raw := range d.Schemas {
		var head struct {
			ID int `json:"schema-id"`
		}
		if err := json.Unmarshal(raw, &head); err == nil && head.ID == id {
			return raw, nil
		}
	}
	return nil, catalog.Errorf(catalog.KindUnprocessable, "table metadata has no schema %d", id)
}

// snapshot returns nil for [mv.NoSnapshot].
func (d *document) snapshot(id int64) (*snapshot, error) {
	if id == mv.NoSnapshot {
		return nil, nil
	}
	s, ok := d.byID[id]
	if !ok {
		return nil, catalog.Errorf(catalog.KindNotFound, "table %s has no snapshot %d", d.UUID, id)
	}
	return s, nil
}

// chain lists the snapshots after from up to to, oldest first. reason is not empty if
// from is no ancestor of to, or if the path between them is not known.
func (d *document) chain(from, to *int64) (path []*snapshot, reason string) {
	seen := make(map[int64]bool)
	for at := to; ; {
		if at == nil {
			if from == nil {
				break
			}
			return nil, ReasonRolledBack // the walk ended at a first snapshot
		}
		if from != nil && *at == *from {
			break
		}
		s, ok := d.byID[*at]
		if !ok || seen[*at] {
			return nil, ReasonChainBroken
		}
		seen[*at] = true
		path = append(path, s)
		at = s.Parent
	}
	slices.Reverse(path)
	return path, ""
}

// id gives the pointer form of a snapshot id, nil for [mv.NoSnapshot].
func id(snapshotID int64) *int64 {
	if snapshotID == mv.NoSnapshot {
		return nil
	}
	return &snapshotID
}

// repeated reports whether a column lies inside a list or a map, where one row has many
// values and bounds say nothing about empty ones.
func (d *document) repeated(fieldID int) bool {
	for _, sc := range d.schemas {
		for _, f := range sc.Fields() {
			if within(f, fieldID, false) {
				return true
			}
		}
	}
	return false
}

func within(f iceberg.NestedField, fieldID int, inside bool) bool {
	if f.ID == fieldID {
		return inside
	}
	switch t := f.Type.(type) {
	case *iceberg.StructType:
		return slices.ContainsFunc(t.FieldList, func(g iceberg.NestedField) bool { return within(g, fieldID, inside) })
	case *iceberg.ListType:
		return within(t.ElementField(), fieldID, true)
	case *iceberg.MapType:
		return within(t.KeyField(), fieldID, true) || within(t.ValueField(), fieldID, true)
	default:
		return false
	}
}
