package metadata

import (
	"bytes"
	"encoding/json"
)

// replaceArray sets an array member that is not decoded into the table.
func (e *edit) replaceArray(name string, list []json.RawMessage) {
	if e.t.doc.set(name, joinArray(list)) {
		e.written = true
	}
}

// render writes every dirty part back into the document and reports whether any byte
// changed. Parts that end as they began stay as they were.
func (e *edit) render() bool {
	t, d := e.t, &e.t.doc
	changed := false
	put := func(name string, raw json.RawMessage) { changed = d.set(name, raw) || changed }
	drop := func(name string) { changed = d.remove(name) || changed }
	all := t.src == nil // a new table has everything to write
	if e.dirty.scalars || all {
		e.renderScalars(put)
	}
	if e.dirty.schemas || all {
		put("current-schema-id", intJSON(t.currentSchemaID))
		put("schemas", joinArray(raws(t.schemas)))
	}
	if e.dirty.specs || all {
		put("default-spec-id", intJSON(t.defaultSpecID))
		put("partition-specs", joinArray(raws(t.specs)))
		put("last-partition-id", intJSON(t.lastPartitionID))
	}
	if e.dirty.orders || all {
		put("default-sort-order-id", intJSON(t.defaultOrderID))
		put("sort-orders", joinArray(raws(t.orders)))
	}
	if e.dirty.props {
		// A property that was set and removed again in one commit is no change.
		if raw := t.props.bytes(); !equalJSON(d.raw("properties"), raw) {
			put("properties", raw)
		}
	}
	if e.dirty.refs || all {
		put("refs", t.refsJSON())
		put("current-snapshot-id", t.currentSnapshotJSON())
	}
	if e.dirty.snapshots || all {
		changed = e.renderSnapshots() || changed
	}
	if t.formatVersion == 1 {
		e.renderVersion1(put, all)
	} else if all || e.dirty.upgraded {
		drop("schema")
		drop("partition-spec")
	}
	for _, name := range []string{"last-sequence-number", "next-row-id"} {
		if all && d.raw(name) == nil { // a member that this version does not have
			drop(name)
		}
	}
	return changed
}

func (e *edit) renderScalars(put func(string, json.RawMessage)) {
	t := e.t
	put("format-version", intJSON(t.formatVersion))
	if t.uuid != "" {
		put("table-uuid", stringJSON(t.uuid))
	}
	put("location", stringJSON(t.location))
	put("last-column-id", intJSON(t.lastColumnID))
	if t.formatVersion > 1 {
		put("last-sequence-number", longJSON(t.lastSequenceNumber))
	}
	if t.formatVersion > 2 {
		put("next-row-id", longJSON(t.nextRowID))
	}
}

// renderVersion1 keeps the two members that readers of version 1 look at first.
func (e *edit) renderVersion1(put func(string, json.RawMessage), all bool) {
	t := e.t
	if e.dirty.schemas || all {
		put("schema", t.CurrentSchema())
	}
	if e.dirty.specs || all {
		if o, err := parseObject(t.DefaultSpec()); err == nil {
			put("partition-spec", o.raw("fields"))
		}
	}
}

func (e *edit) renderSnapshots() bool {
	d := &e.t.doc
	i := d.index("snapshots")
	if i < 0 {
		d.set("snapshots", json.RawMessage("[]"))
		i = d.index("snapshots")
	}
	m := &d.members[i]
	if len(e.added) == 0 && !e.removedSnapshots && m.list == nil && bytes.Equal(m.raw, []byte("[]")) {
		return false
	}
	m.raw, m.list = nil, e.t.snapshots
	return true
}

func (t *Table) refsJSON() json.RawMessage {
	var o object
	for i := range t.refs {
		o.set(t.refs[i].name, t.refs[i].raw)
	}
	return o.bytes()
}

// currentSnapshotJSON spells "none" as each version does: -1, and null from version 3 on.
func (t *Table) currentSnapshotJSON() json.RawMessage {
	if t.currentSnapshotID >= 0 {
		return longJSON(t.currentSnapshotID)
	}
	if t.formatVersion >= 3 {
		return json.RawMessage("null")
	}
	return longJSON(-1)
}
