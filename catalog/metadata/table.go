package metadata

import (
	"encoding/json"
	"maps"
)

// The format versions of tables this package reads and writes.
const (
	minFormatVersion     = 1
	maxFormatVersion     = 3
	defaultFormatVersion = 2
)

// mainBranch is the branch whose head is the current snapshot.
const mainBranch = "main"

// element is an entry of an array, with the id it goes by.
type element struct {
	id  int64
	raw json.RawMessage
}

// refEntry is a named branch or tag.
type refEntry struct {
	name string
	ref  Ref
	raw  json.RawMessage
}

// Ref is a branch or a tag.
type Ref struct {
	SnapshotID         int64
	Type               string // "branch" or "tag"
	MinSnapshotsToKeep *int64
	MaxSnapshotAgeMS   *int64
	MaxRefAgeMS        *int64
}

// Table is one table metadata document. Small members are decoded once; snapshots are
// kept as spans of the document, logs and statistics as raw arrays.
//
// A Table is not safe for concurrent use while [Table.Apply] runs; reading is.
type Table struct {
	src     []byte // the document as parsed or last rendered
	doc     object
	changed bool
	created bool // made by NewEmptyTable: a uuid may be assigned once

	formatVersion      int
	uuid, location     string
	lastSequenceNumber int64
	lastUpdatedMS      int64
	lastColumnID       int
	schemas            []element
	currentSchemaID    int
	specs              []element
	defaultSpecID      int
	lastPartitionID    int
	orders             []element
	defaultOrderID     int
	props              object
	currentSnapshotID  int64
	nextRowID          int64
	snapshots          snapshotList
	snapshotIndex      map[int64]int
	refs               []refEntry
	trimmed            []string // metadata files that left the log since the document was cloned
}

// ParseTable reads a table metadata document. doc is retained and never modified, so the
// caller must not modify it either.
func ParseTable(doc []byte) (*Table, error) {
	if err := validText(doc); err != nil {
		return nil, err
	}
	t := &Table{src: doc}
	if err := t.scan(); err != nil {
		return nil, err
	}
	for _, load := range []func() error{
		t.loadScalars, t.loadSchemas, t.loadSpecs, t.loadOrders, t.loadProperties, t.loadRefs, t.loadSnapshots,
	} {
		if err := load(); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// scan is the one pass over the whole document.
func (t *Table) scan() error {
	c := cursor{b: t.src}
	more, err := c.open('{', '}')
	if err != nil {
		// Not quoted: register reads files that need not be metadata, nor the client's to see.
		return invalid("Cannot parse metadata from a non-object")
	}
	for more {
		key, err := c.key()
		if err != nil {
			return err
		}
		m := member{name: unquote(key), key: key}
		c.space()
		start := c.i
		if m.name == "snapshots" && c.peek() != 'n' {
			if t.snapshots, err = scanSnapshots(&c); err != nil {
				return err
			}
		} else if _, err = c.value(); err != nil {
			return err
		}
		m.raw = c.b[start:c.i:c.i]
		t.doc.members = append(t.doc.members, m)
		if more, err = c.more('}'); err != nil {
			return err
		}
	}
	if err := c.end(); err != nil {
		return err
	}
	return t.doc.unique()
}

func (t *Table) loadScalars() (err error) {
	d := &t.doc
	if t.formatVersion, err = d.integer("format-version"); err != nil {
		return err
	}
	if t.formatVersion < minFormatVersion || t.formatVersion > maxFormatVersion {
		return invalid("Cannot read unsupported version %d", t.formatVersion)
	}
	if t.uuid, err = d.optStr("table-uuid"); err != nil {
		return err
	}
	if t.uuid == "" && t.formatVersion > 1 {
		return invalid("UUID is required in format v%d", t.formatVersion)
	}
	if t.location, err = d.str("location"); err != nil {
		return err
	}
	if t.formatVersion > 1 {
		if t.lastSequenceNumber, err = d.long("last-sequence-number"); err != nil {
			return err
		}
	}
	if t.lastUpdatedMS, err = d.long("last-updated-ms"); err != nil {
		return err
	}
	if t.lastColumnID, err = d.integer("last-column-id"); err != nil {
		return err
	}
	t.currentSnapshotID = -1
	if id, err := d.optLong("current-snapshot-id"); err != nil {
		return err
	} else if id != nil {
		t.currentSnapshotID = *id
	}
	if t.formatVersion >= 3 {
		t.nextRowID, err = d.long("next-row-id")
	}
	return err
}

// loadList reads an array member whose elements have an integer id. ok is false if the
// member is missing, which only old version 1 documents may do.
func (t *Table) loadList(name, idName string) (list []element, ok bool, err error) {
	raw := t.doc.raw(name)
	if raw == nil {
		if t.formatVersion > 1 {
			return nil, false, invalid("%s must exist in format v%d", name, t.formatVersion)
		}
		return nil, false, nil
	}
	list, err = parseElements(raw, idName)
	if err != nil {
		return nil, false, at(err, "%s", name)
	}
	seen := make(map[int64]bool, len(list))
	for i := range list {
		if seen[list[i].id] {
			return nil, false, invalid("Cannot parse %s: duplicate %s %d", name, idName, list[i].id)
		}
		seen[list[i].id] = true
	}
	return list, true, nil
}

// parseElements splits an array of objects and reads the id of each.
func parseElements(raw json.RawMessage, idName string) ([]element, error) {
	list, err := parseArray(raw)
	if err != nil {
		return nil, err
	}
	out := make([]element, len(list))
	for i, raw := range list {
		o, err := parseObject(raw)
		if err != nil {
			return nil, err
		}
		id, err := o.long(idName)
		if err != nil {
			return nil, err
		}
		out[i] = element{id: id, raw: raw}
	}
	return out, nil
}

func find(list []element, id int) (json.RawMessage, bool) {
	for i := range list {
		if list[i].id == int64(id) {
			return list[i].raw, true
		}
	}
	return nil, false
}

func (t *Table) loadSchemas() error {
	list, ok, err := t.loadList("schemas", "schema-id")
	if err != nil {
		return err
	}
	if ok {
		t.schemas = list
		if t.currentSchemaID, err = t.doc.integer("current-schema-id"); err != nil {
			return err
		}
	} else { // version 1 before schemas had ids
		o, err := t.doc.sub("schema")
		if err != nil {
			return err
		}
		if t.currentSchemaID, err = o.optInt("schema-id", 0); err != nil {
			return err
		}
		o.set("schema-id", intJSON(t.currentSchemaID))
		t.schemas = []element{{id: int64(t.currentSchemaID), raw: o.bytes()}}
	}
	if _, ok := find(t.schemas, t.currentSchemaID); !ok {
		return invalid("Cannot find schema with current-schema-id=%d from schemas", t.currentSchemaID)
	}
	return nil
}

func (t *Table) loadSpecs() error {
	list, ok, err := t.loadList("partition-specs", "spec-id")
	if err != nil {
		return err
	}
	if ok {
		t.specs = list
		if t.defaultSpecID, err = t.doc.integer("default-spec-id"); err != nil {
			return err
		}
	} else if t.specs, err = t.oldSpecs(); err != nil {
		return err
	}
	if _, ok := find(t.specs, t.defaultSpecID); !ok {
		return invalid("Cannot find partition spec with default-spec-id=%d from partition-specs", t.defaultSpecID)
	}
	if t.doc.raw("last-partition-id") == nil {
		if t.formatVersion > 1 {
			return invalid("last-partition-id must exist in format v%d", t.formatVersion)
		}
		t.lastPartitionID = firstPartitionID - 1
		for i := range t.specs {
			if p, err := parseSpec(t.specs[i].raw); err == nil {
				t.lastPartitionID = max(t.lastPartitionID, p.lastID())
			}
		}
		return nil
	}
	t.lastPartitionID, err = t.doc.integer("last-partition-id")
	return err
}

// oldSpecs makes spec 0 of the member that version 1 documents had before specs had ids.
func (t *Table) oldSpecs() ([]element, error) {
	raw := t.doc.raw("partition-spec")
	if raw == nil {
		return nil, invalid("Cannot parse missing field: partition-spec")
	}
	var o object
	o.set("spec-id", intJSON(0))
	o.set("fields", raw)
	p, err := parseSpec(o.bytes())
	if err != nil {
		return nil, err
	}
	for i := range p.fields {
		if p.fields[i].id < 0 {
			p.fields[i].id = firstPartitionID + i
		}
	}
	spec, err := p.withIDs(o.bytes())
	return []element{{raw: spec}}, err
}

func (t *Table) loadOrders() error {
	list, ok, err := t.loadList("sort-orders", "order-id")
	if err != nil {
		return err
	}
	if !ok {
		t.orders = []element{{raw: json.RawMessage(unsortedOrder)}}
		return nil
	}
	t.orders = list
	if t.defaultOrderID, err = t.doc.integer("default-sort-order-id"); err != nil {
		return err
	}
	if _, ok := find(t.orders, t.defaultOrderID); !ok {
		return invalid("Cannot find sort order with default-sort-order-id=%d from sort-orders", t.defaultOrderID)
	}
	return nil
}

func (t *Table) loadProperties() (err error) {
	if t.doc.raw("properties") != nil {
		t.props, err = t.doc.stringMap("properties")
	}
	return err
}

func (t *Table) loadRefs() error {
	if t.doc.raw("refs") == nil {
		if !t.doc.has("refs") && t.currentSnapshotID >= 0 {
			ref := Ref{SnapshotID: t.currentSnapshotID, Type: "branch"}
			t.refs = []refEntry{{name: mainBranch, ref: ref, raw: refJSON(ref)}}
		}
		return nil
	}
	o, err := t.doc.sub("refs")
	if err != nil {
		return err
	}
	for i := range o.members {
		m := &o.members[i]
		ref, err := parseRef(m.raw)
		if err != nil {
			return at(err, "ref %s", m.name)
		}
		t.refs = append(t.refs, refEntry{name: m.name, ref: ref, raw: m.raw})
	}
	return nil
}

// loadSnapshots indexes the snapshots and checks what points at them.
func (t *Table) loadSnapshots() error {
	t.snapshotIndex = make(map[int64]int, len(t.snapshots)+1)
	for i := range t.snapshots {
		s := &t.snapshots[i]
		if s.seq > t.lastSequenceNumber && t.formatVersion > 1 {
			return invalid("Invalid snapshot with sequence number %d greater than last sequence number %d", s.seq, t.lastSequenceNumber)
		}
		if _, dup := t.snapshotIndex[s.id]; dup {
			return invalid("Cannot parse snapshots: duplicate snapshot-id %d", s.id)
		}
		t.snapshotIndex[s.id] = i
	}
	if t.currentSnapshotID >= 0 && !t.hasSnapshot(t.currentSnapshotID) {
		return invalid("Invalid table metadata: Cannot find current version")
	}
	for _, r := range t.refs {
		if !t.hasSnapshot(r.ref.SnapshotID) {
			return invalid("Snapshot for reference %s does not exist in the existing snapshots list", r.name)
		}
		if r.name == mainBranch && r.ref.SnapshotID != t.currentSnapshotID {
			return invalid("Current snapshot ID does not match main branch (%d != %d)", t.currentSnapshotID, r.ref.SnapshotID)
		}
	}
	return nil
}

func (t *Table) hasSnapshot(id int64) bool {
	_, ok := t.snapshotIndex[id]
	return ok
}

func (t *Table) ref(name string) *refEntry {
	for i := range t.refs {
		if t.refs[i].name == name {
			return &t.refs[i]
		}
	}
	return nil
}

// Clone returns an independent copy that can be changed by [Table.Apply] while t is
// still read. It costs a few slices, not the document.
func (t *Table) Clone() *Table {
	c := *t
	c.doc = t.doc.clone()
	c.props = t.props.clone()
	c.schemas = append([]element(nil), t.schemas...)
	c.specs = append([]element(nil), t.specs...)
	c.orders = append([]element(nil), t.orders...)
	c.refs = append([]refEntry(nil), t.refs...)
	c.snapshots = append(snapshotList(nil), t.snapshots...)
	c.snapshotIndex = maps.Clone(t.snapshotIndex)
	c.trimmed = nil
	c.changed, c.created = false, false
	return &c
}
