package scan

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/apache/iceberg-go"

	"github.com/catalogd/catalogd/catalog"
)

// document is the part of a metadata file that planning needs. It is read leniently and
// never written: unknown members, types and transforms of other columns do not matter.
type document struct {
	UUID              string            `json:"table-uuid"`
	CurrentSchemaID   int               `json:"current-schema-id"`
	CurrentSnapshotID *int64            `json:"current-snapshot-id"`
	Schema            json.RawMessage   `json:"schema"` // version 1
	Schemas           []json.RawMessage `json:"schemas"`
	Spec              json.RawMessage   `json:"partition-spec"` // version 1
	Specs             []json.RawMessage `json:"partition-specs"`
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
	Summary      struct {
		Operation string `json:"operation"`
	} `json:"summary"`
}

// operationAppend is the operation of a snapshot that only adds data files.
const operationAppend = "append"

// spec is a partition spec with what its fields mean.
type spec struct {
	id            int
	unpartitioned bool
	fields        []specField
}

type specField struct {
	id     int
	source int
	transform
	typ iceberg.Type // result type; nil if the source column is unknown
}

// unplannable is the error of a table whose metadata this server does not understand.
func unplannable(format string, args ...any) *catalog.Error {
	return catalog.Errorf(catalog.KindInvalid, "The server cannot plan a scan of this table, the client may: "+format, args...)
}

func parseDocument(doc []byte) (*document, error) {
	d := &document{byID: make(map[int64]*snapshot), specs: make(map[int]*spec)}
	if err := json.Unmarshal(doc, d); err != nil {
		return nil, unplannable("its metadata cannot be read").Because(err)
	}
	for _, s := range d.Snapshots {
		if s == nil {
			return nil, unplannable("its metadata lists a null snapshot")
		}
		d.byID[s.ID] = s
	}
	if len(d.Schemas) == 0 && d.Schema != nil {
		d.Schemas = []json.RawMessage{d.Schema}
	}
	for _, raw := range d.Schemas {
		// A schema with a type that we do not know may be skipped unless it is the one
		// that the scan reads with.
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
		var ps struct {
			ID     int             `json:"spec-id"`
			Fields []partitionJSON `json:"fields"`
		}
		if err := json.Unmarshal(raw, &ps); err != nil {
			return unplannable("a partition spec cannot be read").Because(err)
		}
		s := &spec{id: ps.ID, unpartitioned: true}
		for i, f := range ps.Fields {
			field := d.field(f, i)
			s.unpartitioned = s.unpartitioned && f.Transform == "void"
			s.fields = append(s.fields, field)
		}
		d.specs[s.id] = s
	}
	return nil
}

type partitionJSON struct {
	ID        *int   `json:"field-id"`
	Source    int    `json:"source-id"`
	Sources   []int  `json:"source-ids"`
	Transform string `json:"transform"`
}

// field understands a partition field as far as it can.
func (d *document) field(f partitionJSON, position int) specField {
	const firstID = 1000 // of the fields that version 1 did not number
	out := specField{id: firstID + position, source: f.Source}
	if f.ID != nil {
		out.id = *f.ID
	}
	if len(f.Sources) == 1 {
		out.source = f.Sources[0]
	}
	typ := d.columnType(out.source)
	t, err := iceberg.ParseTransform(f.Transform)
	if typ == nil || err != nil || len(f.Sources) > 1 { // one of several columns says nothing about its own values
		return out
	}
	out.typ, out.transform = t.ResultType(typ), transformOf(t, typ)
	return out
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

func (d *document) schema(id int) (*iceberg.Schema, error) {
	for _, sc := range d.schemas {
		if sc.ID == id {
			return sc, nil
		}
	}
	return nil, unplannable("its schema %d cannot be read", id)
}

// column is a column of a schema, as a filter refers to it.
type column struct {
	id       int
	name     string
	typ      iceberg.Type
	repeated bool // inside a list or a map: one row has many values
	nested   bool // inside a struct that may be NULL
}

// find looks up a column by its full name.
func find(sc *iceberg.Schema, name string, caseSensitive bool) (column, bool) {
	f, ok := sc.FindFieldByName(name)
	if !ok && !caseSensitive {
		f, ok = sc.FindFieldByNameCaseInsensitive(name)
	}
	if !ok {
		return column{}, false
	}
	return describe(sc, f.ID)
}

// describe finds a column by id and tells how it is nested.
func describe(sc *iceberg.Schema, id int) (column, bool) {
	for _, f := range sc.Fields() {
		if c, ok := within(f, id, column{}); ok {
			if name, found := sc.FindColumnName(id); found {
				c.name = name
			}
			return c, true
		}
	}
	return column{}, false
}

func within(f iceberg.NestedField, id int, outer column) (column, bool) {
	if f.ID == id {
		outer.id, outer.name, outer.typ = id, f.Name, f.Type
		return outer, true
	}
	var inner []iceberg.NestedField
	switch t := f.Type.(type) {
	case *iceberg.StructType:
		inner, outer.nested = t.FieldList, outer.nested || !f.Required
	case *iceberg.ListType:
		inner, outer.repeated = []iceberg.NestedField{t.ElementField()}, true
	case *iceberg.MapType:
		inner, outer.repeated = []iceberg.NestedField{t.KeyField(), t.ValueField()}, true
	}
	for _, g := range inner {
		if c, ok := within(g, id, outer); ok {
			return c, true
		}
	}
	return column{}, false
}

// leaves adds the ids of a field and of everything inside it.
func leaves(f iceberg.NestedField, into map[int]bool) {
	into[f.ID] = true
	switch t := f.Type.(type) {
	case *iceberg.StructType:
		for _, g := range t.FieldList {
			leaves(g, into)
		}
	case *iceberg.ListType:
		leaves(t.ElementField(), into)
	case *iceberg.MapType:
		leaves(t.KeyField(), into)
		leaves(t.ValueField(), into)
	}
}

// appends lists the append snapshots after from up to to. ok is false if from is no
// ancestor of to.
func (d *document) appends(from, to int64) (found []*snapshot, ok bool) {
	seen := make(map[int64]bool)
	for at := to; at != from; {
		s, known := d.byID[at]
		if !known || seen[at] || s.Parent == nil {
			return nil, false
		}
		seen[at] = true
		if s.Summary.Operation == operationAppend {
			found = append(found, s)
		}
		at = *s.Parent
	}
	slices.Reverse(found)
	return found, true
}
