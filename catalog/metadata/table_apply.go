package metadata

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// ApplyContext is what a commit knows besides its updates.
type ApplyContext struct {
	// Now stamps the new document. last-updated-ms never goes back, whatever it says.
	Now time.Time
	// PreviousLocation is the metadata file that the document came from; it is appended
	// to the metadata log. Empty for a new table.
	PreviousLocation string
}

// edit is the state of one Apply.
type edit struct {
	t   *Table
	now int64 // last-updated-ms of the new document

	lastSchema, lastSpec, lastOrder *int
	added                           map[int64]int64 // snapshot id → its timestamp
	mainSets                        []int64         // snapshots that main was moved to, in order
	removedSnapshots                bool
	logged                          []element // new snapshot-log entries: id is the timestamp
	statistics                      []int64   // snapshots that got statistics
	written                         bool      // a member was changed in the document directly
	dirty                           dirtyParts
}

// dirtyParts says which parts must be rendered again.
type dirtyParts struct {
	scalars, schemas, specs, orders, props, refs, snapshots, upgraded bool
}

// applyFunc carries out one update.
type applyFunc func(e *edit, u *object) error

// tableUpdates are the updates of the REST specification.
var tableUpdates = map[string]applyFunc{
	"assign-uuid":                 (*edit).assignUUID,
	"upgrade-format-version":      (*edit).upgradeFormatVersion,
	"add-schema":                  (*edit).addSchema,
	"set-current-schema":          (*edit).setCurrentSchema,
	"remove-schemas":              (*edit).removeSchemas,
	"add-spec":                    (*edit).addSpec,
	"set-default-spec":            (*edit).setDefaultSpec,
	"remove-partition-specs":      (*edit).removeSpecs,
	"add-sort-order":              (*edit).addSortOrder,
	"set-default-sort-order":      (*edit).setDefaultSortOrder,
	"add-snapshot":                (*edit).addSnapshot,
	"set-snapshot-ref":            (*edit).setSnapshotRef,
	"remove-snapshots":            (*edit).removeSnapshots,
	"remove-snapshot-ref":         (*edit).removeSnapshotRef,
	"set-location":                (*edit).setLocation,
	"set-properties":              (*edit).setProperties,
	"remove-properties":           (*edit).removeProperties,
	"set-statistics":              (*edit).setStatistics,
	"remove-statistics":           (*edit).removeStatistics,
	"set-partition-statistics":    (*edit).setPartitionStatistics,
	"remove-partition-statistics": (*edit).removePartitionStatistics,
	"add-encryption-key":          (*edit).addEncryptionKey,
	"remove-encryption-key":       (*edit).removeEncryptionKey,
}

// Apply carries out the updates of one commit in order. t must be the caller's own (see
// [Table.Clone]): after an error it is half changed and has to be dropped. Updates that
// change nothing leave the document and its bytes as they are.
func (t *Table) Apply(updates []json.RawMessage, ctx ApplyContext) error {
	if t.created && len(t.doc.members) == 0 {
		if err := t.startFrom(updates); err != nil {
			return err
		}
	}
	e := &edit{t: t, now: max(ctx.Now.UnixMilli(), t.lastUpdatedMS), added: map[int64]int64{}}
	for i, raw := range updates {
		u, err := parseObject(raw)
		if err != nil {
			return at(err, "Cannot parse update %d", i)
		}
		action, err := u.str("action")
		if err != nil {
			return at(err, "Cannot parse update %d", i)
		}
		apply, ok := tableUpdates[strings.ToLower(action)]
		if !ok {
			return invalid("Unknown table update action: %s", quoted([]byte(action)))
		}
		if err := apply(e, &u); err != nil {
			return err
		}
	}
	return e.finish(ctx)
}

// finish validates the outcome as a whole and renders what changed.
func (e *edit) finish(ctx ApplyContext) error {
	t := e.t
	if err := e.checkDefaults(); err != nil {
		return err
	}
	if err := e.checkStatistics(); err != nil {
		return err
	}
	changed, err := e.renderSnapshotLog()
	if err != nil {
		return err
	}
	changed = e.render() || changed
	isNew := t.created && t.src == nil
	if !changed && !isNew && !e.written {
		return nil
	}
	if ctx.PreviousLocation != "" {
		if err := e.appendMetadataLog(ctx.PreviousLocation); err != nil {
			return err
		}
	}
	t.lastUpdatedMS = e.now
	t.doc.set("last-updated-ms", longJSON(t.lastUpdatedMS))
	t.src = t.doc.bytes()
	t.changed = true
	return nil
}

// checkDefaults tests that the current schema still has what the default spec and the
// default order refer to, if any of the three may have changed.
func (e *edit) checkDefaults() error {
	t := e.t
	if !e.dirty.schemas && !e.dirty.specs && !e.dirty.orders && t.src != nil {
		return nil
	}
	raw, ok := find(t.schemas, t.currentSchemaID)
	if !ok {
		return invalid("Invalid table metadata: no current schema was set")
	}
	s, err := parseSchema(raw)
	if err != nil {
		return err
	}
	if raw, ok = find(t.specs, t.defaultSpecID); !ok {
		return invalid("Cannot set default partition spec to unknown spec: %d", t.defaultSpecID)
	}
	p, err := parseSpec(raw)
	if err != nil {
		return err
	}
	if err := p.checkSources(s); err != nil {
		return err
	}
	if raw, ok = find(t.orders, t.defaultOrderID); !ok {
		return invalid("Cannot set default sort order to unknown sort order: %d", t.defaultOrderID)
	}
	o, err := parseSortOrder(raw)
	if err != nil {
		return err
	}
	if t.location == "" {
		return invalid("Table location is required in format v%d", t.formatVersion)
	}
	if t.uuid == "" && t.formatVersion > 1 {
		return invalid("UUID is required in format v%d", t.formatVersion)
	}
	return o.checkSources(s)
}

// previousVersions is the property that bounds the metadata log.
const (
	previousVersions        = "write.metadata.previous-versions-max"
	previousVersionsDefault = 100
)

// appendMetadataLog records where the document came from and drops the oldest entries.
func (e *edit) appendMetadataLog(location string) error {
	t := e.t
	keep := previousVersionsDefault
	if text, ok := t.Property(previousVersions); ok {
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil {
			return invalid("Invalid table property %s: %q is not a number", previousVersions, quoted([]byte(text)))
		}
		keep = max(int(n), 1)
	}
	log, err := parseArray(t.arrayOf("metadata-log"))
	if err != nil {
		return at(err, "metadata-log")
	}
	if len(log) >= keep {
		if err := e.trim(log[:len(log)-keep+1]); err != nil {
			return err
		}
		log = log[len(log)-keep+1:]
	}
	var entry object
	entry.set("timestamp-ms", longJSON(t.lastUpdatedMS))
	entry.set("metadata-file", stringJSON(location))
	t.doc.set("metadata-log", joinArray(append(log, entry.bytes())))
	return nil
}

// trim notes the files of entries that leave the metadata log.
func (e *edit) trim(entries []json.RawMessage) error {
	for _, raw := range entries {
		o, err := parseObject(raw)
		if err != nil {
			return at(err, "metadata-log")
		}
		file, err := o.str("metadata-file")
		if err != nil {
			return at(err, "metadata-log")
		}
		e.t.trimmed = append(e.t.trimmed, file)
	}
	return nil
}

func (e *edit) assignUUID(u *object) error {
	uuid, err := u.str("uuid")
	if err != nil {
		return err
	}
	t := e.t
	// The uuid that NewEmptyTable got is only a default, until the updates assign one.
	isDefault := t.src == nil && t.doc.raw("table-uuid") == nil
	if !isDefault && strings.EqualFold(uuid, t.uuid) {
		return nil
	}
	if !uuidText.MatchString(uuid) {
		return invalid("Cannot assign uuid, not a UUID: %s", quoted([]byte(uuid)))
	}
	if !isDefault && t.uuid != "" {
		return invalid("Cannot reassign uuid: %s is assigned, got %s", t.uuid, uuid)
	}
	t.uuid = uuid
	t.doc.set("table-uuid", stringJSON(uuid))
	e.dirty.scalars, e.written = true, true
	return nil
}

func (e *edit) upgradeFormatVersion(u *object) error {
	version, err := u.integer("format-version")
	if err != nil {
		return err
	}
	t := e.t
	switch {
	case version > maxFormatVersion:
		return invalid("Cannot upgrade table to unsupported format version: v%d (supported: v%d)", version, maxFormatVersion)
	case version < t.formatVersion:
		return invalid("Cannot downgrade v%d table to v%d", t.formatVersion, version)
	case version == t.formatVersion:
		return nil
	}
	if t.uuid == "" && !t.created {
		return invalid("UUID is required in format v%d: assign one before the upgrade", version)
	}
	t.formatVersion = version
	// Version 2 and later need members that old version 1 documents lack.
	e.dirty = dirtyParts{
		scalars: true, schemas: true, specs: true, orders: true, refs: true, upgraded: true,
		props: e.dirty.props, snapshots: e.dirty.snapshots,
	}
	return nil
}

func (e *edit) setLocation(u *object) error {
	location, err := u.str("location")
	if err != nil {
		return err
	}
	stripped := strings.TrimRight(location, "/")
	if strings.HasSuffix(stripped, ":") { // the slashes belong to the scheme
		stripped = location
	}
	if strings.TrimSpace(stripped) == "" {
		return invalid("Cannot set location: it must not be empty")
	}
	if stripped != e.t.location {
		e.t.location = stripped
		e.dirty.scalars = true
	}
	return nil
}

// eitherOf returns a string map or list under its name in the specification or, for old
// clients, its first name.
func eitherOf(u *object, name, old string) string {
	if !u.has(name) && u.has(old) {
		return old
	}
	return name
}

func (e *edit) setProperties(u *object) error {
	m, err := u.stringMap(eitherOf(u, "updates", "updated"))
	if err != nil {
		return err
	}
	e.dirty.props = mergeProperties(&e.t.props, &m) || e.dirty.props
	return nil
}

func (e *edit) removeProperties(u *object) error {
	keys, err := u.strings(eitherOf(u, "removals", "removed"))
	if err != nil {
		return err
	}
	e.dirty.props = dropProperties(&e.t.props, keys) || e.dirty.props
	return nil
}

// mergeProperties copies the values that differ, in the bytes the client sent.
func mergeProperties(props, updates *object) bool {
	changed := false
	for i := range updates.members {
		m := &updates.members[i]
		if old, ok := stringMember(props, m.name); ok && old == unquote(m.raw) {
			continue
		}
		changed = props.set(m.name, m.raw) || changed
	}
	return changed
}

func dropProperties(props *object, keys []string) bool {
	changed := false
	for _, key := range keys {
		changed = props.remove(key) || changed
	}
	return changed
}
