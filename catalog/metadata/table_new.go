package metadata

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	unsortedOrder = `{"order-id":0,"fields":[]}`
	unpartitioned = `{"spec-id":0,"fields":[]}`

	formatVersionProperty = "format-version"
)

// reservedProperties steer a create but are never stored, as in Java.
var reservedProperties = []string{
	formatVersionProperty, "uuid", "snapshot-count", "current-snapshot-id", "current-snapshot-summary",
	"current-snapshot-timestamp-ms", "current-schema", "default-partition-spec", "default-sort-order",
}

// NewTableRequest is what createTable was asked for.
type NewTableRequest struct {
	UUID          string
	Location      string
	Schema        json.RawMessage
	PartitionSpec json.RawMessage // nil or null: unpartitioned
	WriteOrder    json.RawMessage // nil or null: unsorted
	Properties    map[string]string
	Now           time.Time
}

// NewTable makes the first document of a table: field ids are assigned afresh from 1,
// the spec and the order follow them, and every member that readers may expect is there.
func NewTable(req NewTableRequest) (*Table, error) {
	version, err := requestedVersion(req.Properties)
	if err != nil {
		return nil, err
	}
	s, err := parseSchema(req.Schema)
	if err != nil {
		return nil, err
	}
	t, err := NewEmptyTable(version, req.UUID)
	if err != nil {
		return nil, err
	}
	props := newProperties(req.Properties)
	if err := checkNewProperties(props, s, version); err != nil {
		return nil, err
	}
	updates, err := createUpdates(req, props)
	if err != nil {
		return nil, err
	}
	return t, t.Apply(updates, ApplyContext{Now: req.Now})
}

// createUpdates turns a request into the updates that build the same table.
func createUpdates(req NewTableRequest, props map[string]string) ([]json.RawMessage, error) {
	schemaRaw, ids, err := freshSchema(req.Schema)
	if err != nil {
		return nil, err
	}
	specRaw, err := freshSpec(req.PartitionSpec, ids)
	if err != nil {
		return nil, err
	}
	orderRaw, err := freshOrder(req.WriteOrder, ids)
	if err != nil {
		return nil, err
	}
	update := func(action, name string, val json.RawMessage) json.RawMessage {
		var o object
		o.set("action", stringJSON(action))
		o.set(name, val)
		return o.bytes()
	}
	var properties object
	for _, key := range slices.Sorted(maps.Keys(props)) {
		properties.set(key, stringJSON(props[key]))
	}
	return []json.RawMessage{
		update("add-schema", "schema", schemaRaw),
		update("set-current-schema", "schema-id", intJSON(-1)),
		update("add-spec", "spec", specRaw),
		update("set-default-spec", "spec-id", intJSON(-1)),
		update("add-sort-order", "sort-order", orderRaw),
		update("set-default-sort-order", "sort-order-id", intJSON(-1)),
		update("set-location", "location", stringJSON(req.Location)),
		update("set-properties", "updates", properties.bytes()),
	}, nil
}

// freshSpec renames the sources of a new table's spec and numbers its fields from 1000.
func freshSpec(raw json.RawMessage, ids *freshIDs) (json.RawMessage, error) {
	if isNull(raw) {
		return json.RawMessage(unpartitioned), nil
	}
	p, err := parseSpec(raw)
	if err != nil {
		return nil, err
	}
	for i := range p.fields {
		p.fields[i].id = firstPartitionID + i
	}
	p.id = 0
	o, err := parseObject(raw)
	if err != nil {
		return nil, err
	}
	if err := renameSources(&o, ids); err != nil {
		return nil, at(err, "partition spec")
	}
	return p.withIDs(o.bytes())
}

// freshOrder renames the sources of a new table's sort order; a sorted one gets id 1.
func freshOrder(raw json.RawMessage, ids *freshIDs) (json.RawMessage, error) {
	if isNull(raw) {
		return json.RawMessage(unsortedOrder), nil
	}
	s, err := parseSortOrder(raw)
	if err != nil {
		return nil, err
	}
	o, err := parseObject(raw)
	if err != nil {
		return nil, err
	}
	if err := renameSources(&o, ids); err != nil {
		return nil, at(err, "sort order")
	}
	o.set("order-id", intJSON(min(len(s.fields), 1)))
	return o.bytes(), nil
}

// renameSources applies ids to every field of a spec or an order.
func renameSources(o *object, ids *freshIDs) error {
	list, err := o.array("fields")
	if err != nil {
		return err
	}
	for i := range list {
		f, err := parseObject(list[i])
		if err != nil {
			return err
		}
		if err := ids.sources(&f); err != nil {
			return err
		}
		list[i] = f.bytes()
	}
	o.set("fields", joinArray(list))
	return nil
}

// requestedVersion reads the property that chooses a new table's format version.
func requestedVersion(props map[string]string) (int, error) {
	text, ok := props[formatVersionProperty]
	if !ok {
		return defaultFormatVersion, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, invalid("Invalid table property %s: %q is not a number", formatVersionProperty, text)
	}
	if n < minFormatVersion || n > maxFormatVersion {
		return 0, invalid("Unsupported format version: v%d (supported: v%d)", n, maxFormatVersion)
	}
	return n, nil
}

// newProperties drops what is not stored and adds the default that new tables get.
func newProperties(props map[string]string) map[string]string {
	out := map[string]string{"write.parquet.compression-codec": "zstd"}
	maps.Copy(out, props)
	for _, key := range reservedProperties {
		delete(out, key)
	}
	return out
}

// checkNewProperties refuses, on new tables only, properties that contradict the schema
// or that a writer could not use.
func checkNewProperties(props map[string]string, s *schema, version int) error {
	for _, key := range slices.Sorted(maps.Keys(props)) {
		if column, ok := strings.CutPrefix(key, "write.metadata.metrics.column."); ok && s.byName[column] == nil {
			return invalid("Invalid metrics config, could not find column %s from table prop %s in schema", column, key)
		}
		if version < 3 && (key == "encryption.key-id" || key == "encryption.data-key-length") {
			return invalid("Invalid properties for v%d: [%s]", version, key)
		}
	}
	for _, key := range []string{
		"commit.retry.num-retries", "commit.retry.min-wait-ms", "commit.retry.max-wait-ms", "commit.retry.total-timeout-ms",
	} {
		text, ok := props[key]
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil {
			return invalid("Table property %s must have integer value", key)
		}
		if n < 0 {
			return invalid("Table property %s must have non negative integer value", key)
		}
	}
	return nil
}

// NewEmptyTable begins a table that is created by a commit: assert-create and the updates
// that build it up, in the client's order. formatVersion 0 takes the version from the
// first upgrade-format-version update, as Java does, else 2. uuid is used unless the
// updates assign one.
func NewEmptyTable(formatVersion int, uuid string) (*Table, error) {
	if formatVersion != 0 && (formatVersion < minFormatVersion || formatVersion > maxFormatVersion) {
		return nil, invalid("Unsupported format version: v%d (supported: v%d)", formatVersion, maxFormatVersion)
	}
	return &Table{
		created:           true,
		formatVersion:     formatVersion,
		uuid:              uuid,
		lastPartitionID:   firstPartitionID - 1,
		currentSnapshotID: -1,
		snapshots:         snapshotList{},
		snapshotIndex:     map[int64]int{},
	}, nil
}

// startFrom settles the format version of an empty table and lays out its members in
// Java's order, so that a new document reads like one that Java wrote.
func (t *Table) startFrom(updates []json.RawMessage) error {
	if t.formatVersion == 0 {
		t.formatVersion = defaultFormatVersion
		for _, raw := range updates {
			o, err := parseObject(raw)
			if err != nil {
				return err
			}
			if action, err := o.str("action"); err != nil || !strings.EqualFold(action, "upgrade-format-version") {
				continue
			}
			if t.formatVersion, err = o.integer("format-version"); err != nil {
				return err
			}
			break
		}
		if t.formatVersion < minFormatVersion || t.formatVersion > maxFormatVersion {
			return invalid("Unsupported format version: v%d (supported: v%d)", t.formatVersion, maxFormatVersion)
		}
	}
	for _, name := range []string{
		"format-version", "table-uuid", "location", "last-sequence-number", "last-updated-ms", "last-column-id", "schema",
		"current-schema-id", "schemas", "partition-spec", "default-spec-id", "partition-specs", "last-partition-id",
		"default-sort-order-id", "sort-orders", "properties", "current-snapshot-id", "next-row-id", "refs", "snapshots",
	} {
		t.doc.set(name, json.RawMessage("null"))
	}
	for _, name := range []string{"statistics", "partition-statistics", "snapshot-log", "metadata-log"} {
		t.doc.set(name, json.RawMessage("[]"))
	}
	t.doc.set("properties", json.RawMessage("{}"))
	return nil
}
