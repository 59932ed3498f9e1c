package metadata

import (
	"encoding/json"
	"iter"
)

// Bytes returns the document: the very bytes that were parsed if nothing has changed.
func (t *Table) Bytes() []byte { return t.src }

// Changed reports whether [Table.Apply] has changed the document since it was parsed. A
// new table has changed.
func (t *Table) Changed() bool { return t.changed }

// RefsBytes returns the snapshots=refs form of the document: only the snapshots that a
// branch or tag points at. Nothing else differs; if no snapshot falls away the very
// bytes of [Table.Bytes] are returned.
func (t *Table) RefsBytes() []byte {
	keep := make(map[int64]bool, len(t.refs))
	for i := range t.refs {
		keep[t.refs[i].ref.SnapshotID] = true
	}
	list := make(snapshotList, 0, len(keep))
	for i := range t.snapshots {
		if keep[t.snapshots[i].id] {
			list = append(list, t.snapshots[i])
		}
	}
	if len(list) == len(t.snapshots) {
		return t.src
	}
	doc := t.doc.clone()
	i := doc.index("snapshots")
	doc.members[i].raw, doc.members[i].list = nil, list
	return doc.bytes()
}

// UUID is the table's uuid, empty in version 1 documents that never got one.
func (t *Table) UUID() string { return t.uuid }

// Location is the table's base location.
func (t *Table) Location() string { return t.location }

// FormatVersion is 1, 2 or 3.
func (t *Table) FormatVersion() int { return t.formatVersion }

// LastSequenceNumber is the highest sequence number ever assigned, 0 in version 1.
func (t *Table) LastSequenceNumber() int64 { return t.lastSequenceNumber }

// LastUpdatedMS is the time of the last change in milliseconds since 1970.
func (t *Table) LastUpdatedMS() int64 { return t.lastUpdatedMS }

// LastColumnID is the highest field id ever assigned.
func (t *Table) LastColumnID() int { return t.lastColumnID }

// LastPartitionID is the highest partition field id ever assigned, 999 if none was.
func (t *Table) LastPartitionID() int { return t.lastPartitionID }

// NextRowID is the first row id not yet assigned; 0 below version 3.
func (t *Table) NextRowID() int64 { return t.nextRowID }

// CurrentSnapshotID is the head of the main branch, -1 if there is none.
func (t *Table) CurrentSnapshotID() int64 {
	if t.currentSnapshotID < 0 {
		return -1
	}
	return t.currentSnapshotID
}

// CurrentSchemaID is the id of the current schema.
func (t *Table) CurrentSchemaID() int { return t.currentSchemaID }

// CurrentSchema is the current schema as its writer wrote it.
func (t *Table) CurrentSchema() json.RawMessage {
	raw, _ := find(t.schemas, t.currentSchemaID)
	return raw
}

// Schema returns a schema by id.
func (t *Table) Schema(id int) (json.RawMessage, bool) { return find(t.schemas, id) }

// Schemas returns all schemas in document order.
func (t *Table) Schemas() []json.RawMessage { return raws(t.schemas) }

// DefaultSpecID is the id of the default partition spec.
func (t *Table) DefaultSpecID() int { return t.defaultSpecID }

// DefaultSpec is the default partition spec.
func (t *Table) DefaultSpec() json.RawMessage {
	raw, _ := find(t.specs, t.defaultSpecID)
	return raw
}

// Spec returns a partition spec by id.
func (t *Table) Spec(id int) (json.RawMessage, bool) { return find(t.specs, id) }

// Specs returns all partition specs in document order.
func (t *Table) Specs() []json.RawMessage { return raws(t.specs) }

// DefaultSortOrderID is the id of the default sort order.
func (t *Table) DefaultSortOrderID() int { return t.defaultOrderID }

// SortOrder returns a sort order by id.
func (t *Table) SortOrder(id int) (json.RawMessage, bool) { return find(t.orders, id) }

func raws(list []element) []json.RawMessage {
	out := make([]json.RawMessage, len(list))
	for i := range list {
		out[i] = list[i].raw
	}
	return out
}

// Properties returns a copy of the table's properties.
func (t *Table) Properties() map[string]string { return t.props.decodeStrings() }

// Property returns one property.
func (t *Table) Property(key string) (string, bool) { return stringMember(&t.props, key) }

func stringMember(o *object, key string) (string, bool) {
	i := o.index(key)
	if i < 0 {
		return "", false
	}
	return unquote(o.members[i].raw), true
}

// Refs returns the branches and tags by name. A version 1 document without refs has the
// branch main, if it has a current snapshot.
func (t *Table) Refs() map[string]Ref {
	out := make(map[string]Ref, len(t.refs))
	for i := range t.refs {
		out[t.refs[i].name] = t.refs[i].ref
	}
	return out
}

// Ref returns one branch or tag.
func (t *Table) Ref(name string) (Ref, bool) {
	if r := t.ref(name); r != nil {
		return r.ref, true
	}
	return Ref{}, false
}

// SnapshotIDs returns the ids of all snapshots in document order.
func (t *Table) SnapshotIDs() []int64 {
	out := make([]int64, len(t.snapshots))
	for i := range t.snapshots {
		out[i] = t.snapshots[i].id
	}
	return out
}

// HasSnapshot reports whether the document holds the snapshot, without decoding it.
func (t *Table) HasSnapshot(id int64) bool { return t.hasSnapshot(id) }

// Snapshot decodes one snapshot. It reports false if there is none of that id or if it
// can't be decoded, which only a foreign writer can have caused.
func (t *Table) Snapshot(id int64) (Snapshot, bool) {
	i, ok := t.snapshotIndex[id]
	if !ok {
		return Snapshot{}, false
	}
	s, err := parseSnapshot(t.snapshots[i].raw)
	return s, err == nil
}

// CurrentSnapshot decodes the current snapshot, if there is one.
func (t *Table) CurrentSnapshot() (Snapshot, bool) { return t.Snapshot(t.currentSnapshotID) }

// Snapshots decodes the snapshots one after the other, in document order, with the error
// of each that can't be decoded.
func (t *Table) Snapshots() iter.Seq2[Snapshot, error] {
	return func(yield func(Snapshot, error) bool) {
		for i := range t.snapshots {
			if !yield(parseSnapshot(t.snapshots[i].raw)) {
				return
			}
		}
	}
}

// LogEntry names an earlier metadata file of the table.
type LogEntry struct {
	TimestampMS  int64
	MetadataFile string
}

// MetadataLog returns the earlier metadata files, oldest first.
func (t *Table) MetadataLog() ([]LogEntry, error) {
	list, err := parseElements(t.arrayOf("metadata-log"), "timestamp-ms")
	if err != nil {
		return nil, at(err, "metadata-log")
	}
	out := make([]LogEntry, len(list))
	for i := range list {
		o, err := parseObject(list[i].raw)
		if err != nil {
			return nil, err
		}
		file, err := o.str("metadata-file")
		if err != nil {
			return nil, at(err, "metadata-log")
		}
		out[i] = LogEntry{TimestampMS: list[i].id, MetadataFile: file}
	}
	return out, nil
}

// TrimmedLog returns the metadata files that left the log by [Table.Apply], oldest first.
func (t *Table) TrimmedLog() []string { return t.trimmed }

// StatisticsFile names a file of statistics that belongs to a snapshot.
type StatisticsFile struct {
	SnapshotID int64
	Path       string
	Partition  bool // from partition-statistics
	Raw        json.RawMessage
}

// Statistics returns the table's statistics files, then its partition statistics files.
func (t *Table) Statistics() ([]StatisticsFile, error) {
	var out []StatisticsFile
	for _, name := range []string{"statistics", "partition-statistics"} {
		list, err := parseElements(t.arrayOf(name), "snapshot-id")
		if err != nil {
			return nil, at(err, "%s", name)
		}
		for i := range list {
			o, err := parseObject(list[i].raw)
			if err != nil {
				return nil, err
			}
			path, err := o.str("statistics-path")
			if err != nil {
				return nil, at(err, "%s", name)
			}
			out = append(out, StatisticsFile{SnapshotID: list[i].id, Path: path, Partition: name != "statistics", Raw: list[i].raw})
		}
	}
	return out, nil
}

// arrayOf returns an array member, an empty array if it is missing or null.
func (t *Table) arrayOf(name string) json.RawMessage {
	if raw := t.doc.raw(name); raw != nil {
		return raw
	}
	return json.RawMessage("[]")
}
