package metadata

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

const (
	dropDialectProperty    = "replace.drop-dialect.allowed"
	historySizeProperty    = "version.history.num-entries"
	historySizeDefault     = 10
	lastAddedSchemaMessage = "Cannot set last added schema: no schema has been added"
)

// viewEdit is the state of one Apply.
type viewEdit struct {
	v     *View
	now   int64
	isNew bool

	before      *Version // the current version when the commit began
	lastSchema  *int
	newSchema   bool // the commit added a schema that was not there
	lastVersion *int
	added       map[int]bool
	logged      json.RawMessage // the version-log entry of the last change of version
}

// viewFunc carries out one update.
type viewFunc func(e *viewEdit, u *object) error

var viewUpdates = map[string]viewFunc{
	"assign-uuid":              (*viewEdit).assignUUID,
	"upgrade-format-version":   (*viewEdit).upgradeFormatVersion,
	"add-schema":               (*viewEdit).addSchemaUpdate,
	"set-location":             (*viewEdit).setLocation,
	"set-properties":           (*viewEdit).setProperties,
	"remove-properties":        (*viewEdit).removeProperties,
	"add-view-version":         (*viewEdit).addVersionUpdate,
	"set-current-view-version": (*viewEdit).setCurrentUpdate,
}

// Check tests the requirements of a commit and returns the first failure.
func (v *View) Check(reqs []json.RawMessage) error {
	for _, raw := range reqs {
		o, typ, err := requirement(raw)
		if err != nil {
			return err
		}
		if typ != "assert-view-uuid" {
			return invalid("Unknown view requirement type: %s", quoted([]byte(typ)))
		}
		uuid, err := o.str("uuid")
		if err != nil {
			return err
		}
		if !strings.EqualFold(uuid, v.uuid) {
			return conflict("Requirement failed: view UUID does not match: expected %s != %s", v.uuid, quoted([]byte(uuid)))
		}
	}
	return nil
}

// Apply carries out the updates of one commit in order. v must be the caller's own (see
// [View.Clone]): after an error it is half changed and has to be dropped. Updates that
// change nothing leave the document and its bytes as they are.
func (v *View) Apply(updates []json.RawMessage, ctx ApplyContext) error {
	before := v.CurrentVersion()
	e := &viewEdit{v: v, now: ctx.Now.UnixMilli(), before: &before}
	for i, raw := range updates {
		u, err := parseObject(raw)
		if err != nil {
			return at(err, "Cannot parse update %d", i)
		}
		action, err := u.str("action")
		if err != nil {
			return at(err, "Cannot parse update %d", i)
		}
		name := strings.ToLower(action)
		apply, ok := viewUpdates[name]
		if _, tableOnly := tableUpdates[name]; !ok && tableOnly {
			return invalid("Cannot apply update %s to a view", name)
		}
		if !ok {
			return invalid("Unknown view update action: %s", quoted([]byte(action)))
		}
		if err := apply(e, &u); err != nil {
			return err
		}
	}
	return e.finish()
}

func (e *viewEdit) assignUUID(u *object) error {
	uuid, err := u.str("uuid")
	if err == nil && !strings.EqualFold(uuid, e.v.uuid) {
		err = invalid("Cannot reassign uuid: %s is assigned, got %s", e.v.uuid, quoted([]byte(uuid)))
	}
	return err
}

func (e *viewEdit) upgradeFormatVersion(u *object) error {
	version, err := u.integer("format-version")
	switch {
	case err != nil:
		return err
	case version < 1:
		return invalid("Cannot downgrade v1 view to v%d", version)
	case version > 1:
		return invalid("Unsupported format version: %d", version)
	}
	return nil
}

func (e *viewEdit) setLocation(u *object) error {
	location, err := u.str("location")
	if err != nil {
		return err
	}
	if strings.TrimSpace(location) == "" {
		return invalid("Invalid location: it must not be empty")
	}
	e.v.location = location
	return nil
}

func (e *viewEdit) setProperties(u *object) error {
	m, err := u.stringMap(eitherOf(u, "updates", "updated"))
	if err != nil {
		return err
	}
	mergeProperties(&e.v.props, &m)
	if m.has(maxStalenessMember) {
		return e.v.syncStaleness()
	}
	return nil
}

func (e *viewEdit) removeProperties(u *object) error {
	keys, err := u.strings(eitherOf(u, "removals", "removed"))
	if err != nil {
		return err
	}
	dropProperties(&e.v.props, keys)
	if slices.Contains(keys, maxStalenessMember) {
		return e.v.syncStaleness()
	}
	return nil
}

func (e *viewEdit) addSchemaUpdate(u *object) error {
	raw := u.raw("schema")
	if raw == nil {
		return invalid("Cannot parse missing field: schema")
	}
	before := len(e.v.schemas)
	id, err := e.addSchema(raw)
	isNew := len(e.v.schemas) > before
	// The last added schema is a new one, as for Java, if the commit has any.
	if isNew || !e.newSchema {
		e.lastSchema = &id
	}
	e.newSchema = e.newSchema || isNew
	return err
}

// addSchema reuses a schema that is there already; else the id is one more than the highest.
func (e *viewEdit) addSchema(raw json.RawMessage) (int, error) {
	s, err := parseSchema(raw)
	if err != nil {
		return 0, err
	}
	id := 0
	for i := range e.v.schemas {
		old, err := parseSchema(e.v.schemas[i].raw)
		if err == nil && old.covers(s) {
			return int(e.v.schemas[i].id), nil
		}
		id = max(id, int(e.v.schemas[i].id)+1)
	}
	e.v.schemas = append(e.v.schemas, element{id: int64(id), raw: withID(raw, "schema-id", id)})
	return id, nil
}

func (e *viewEdit) addVersionUpdate(u *object) error {
	raw := u.raw("view-version")
	if raw == nil {
		return invalid("Cannot parse missing field: view-version")
	}
	return at(e.addVersion(raw), "view-version")
}

// addVersion reuses a version that says the same; else it keeps the client's id or, if
// that is taken, uses one more than the highest.
func (e *viewEdit) addVersion(raw json.RawMessage) error {
	ver, err := parseVersion(raw)
	if err != nil {
		return err
	}
	if ver.SchemaID, err = lastAdded(ver.SchemaID, e.lastSchema, lastAddedSchemaMessage); err != nil {
		return err
	}
	if _, ok := find(e.v.schemas, ver.SchemaID); !ok {
		return invalid("Cannot add version with unknown schema: %d", ver.SchemaID)
	}
	if err := ver.checkNew(); err != nil {
		return err
	}
	id := max(ver.ID, 1)
	for i := range e.v.versions {
		old, err := parseVersion(e.v.versions[i].raw)
		if err == nil && old.covers(&ver) {
			e.lastVersion = &old.ID
			return nil
		}
		if int(e.v.versions[i].id) >= id {
			id = int(e.v.versions[i].id) + 1
		}
	}
	raw = withID(withID(raw, "schema-id", ver.SchemaID), "version-id", id)
	e.v.versions = append(e.v.versions, element{id: int64(id), raw: raw})
	if e.added == nil {
		e.added = map[int]bool{}
	}
	e.added[id], e.lastVersion = true, &id
	return nil
}

func (e *viewEdit) setCurrentUpdate(u *object) error {
	id, err := u.integer("view-version-id")
	if err != nil {
		return err
	}
	if id, err = lastAdded(id, e.lastVersion, "Cannot set last version id: no current version id has been set"); err != nil {
		return err
	}
	return e.setCurrent(id)
}

func (e *viewEdit) setCurrent(id int) error {
	v := e.v
	if id == v.currentVersionID && !e.isNew {
		return nil
	}
	ver, ok := v.Version(id)
	if !ok {
		return invalid("Cannot set current version to unknown version: %d", id)
	}
	v.currentVersionID = id
	when := e.now
	if e.added[id] { // else an older version becomes current again, and that happens now
		when = ver.TimestampMS
	}
	var entry object
	entry.set("timestamp-ms", longJSON(when))
	entry.set("version-id", intJSON(id))
	e.logged = entry.bytes()
	return nil
}

// finish validates the outcome as a whole and renders what changed.
func (e *viewEdit) finish() error {
	v := e.v
	if e.before != nil {
		if err := e.checkDialects(); err != nil {
			return err
		}
	}
	if e.logged != nil {
		v.touch(v.doc.set("version-log", appendElement(v.doc.raw("version-log"), e.logged)))
	}
	if err := e.expire(); err != nil {
		return err
	}
	v.render()
	return nil
}

// checkDialects keeps a replacement from taking the view away from the users of another
// engine, unless the view says that it may.
func (e *viewEdit) checkDialects() error {
	v := e.v
	if allowed, _ := v.Property(dropDialectProperty); strings.EqualFold(allowed, "true") || e.before.ID == v.currentVersionID {
		return nil
	}
	current := v.CurrentVersion()
	before, after := e.before.dialects(), current.dialects()
	for _, dialect := range before {
		if !slices.Contains(after, dialect) {
			return invalid("Cannot replace view due to loss of view dialects (%s=false):\nPrevious dialects: [%s]\nNew dialects: [%s]",
				dropDialectProperty, strings.Join(before, ", "), strings.Join(after, ", "))
		}
	}
	return nil
}

// expire drops the oldest versions over the limit, never the current one or one that
// this commit added, and the history before any dropped one.
func (e *viewEdit) expire() error {
	v := e.v
	size := historySizeDefault
	if text, ok := v.Property(historySizeProperty); ok {
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil || n <= 0 {
			return invalid("%s must be positive but was %s", historySizeProperty, quoted([]byte(text)))
		}
		size = int(n)
	}
	needed := len(e.added)
	if !e.added[v.currentVersionID] {
		needed++
	}
	keep := max(needed, size)
	if len(v.versions) <= keep {
		return nil
	}
	ids := make([]int, 0, len(v.versions))
	for i := range v.versions {
		if id := int(v.versions[i].id); id != v.currentVersionID {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	dropped := ids[:len(ids)-(keep-1)]
	v.versions = slices.DeleteFunc(slices.Clone(v.versions), func(el element) bool { return slices.Contains(dropped, int(el.id)) })
	log, err := parseElements(v.doc.raw("version-log"), "version-id")
	if err != nil {
		return at(err, "version-log")
	}
	for i, l := range slices.Backward(log) {
		if _, kept := find(v.versions, int(l.id)); !kept {
			log = log[i+1:]
			break
		}
	}
	v.touch(v.doc.set("version-log", joinArray(raws(log))))
	return nil
}

// touch notes that a member was changed in the document directly.
func (v *View) touch(changed bool) {
	if changed {
		v.changed = true
		v.src = nil
	}
}

// render writes the decoded parts back. Parts that are as they were keep their bytes.
func (v *View) render() {
	if raw := stringJSON(v.location); v.location != unquote(v.doc.raw("location")) {
		v.touch(v.doc.set("location", raw))
	}
	v.renderList("schemas", "schema-id", v.schemas)
	v.touch(v.doc.set("current-version-id", intJSON(v.currentVersionID)))
	v.renderList("versions", "version-id", v.versions)
	if v.doc.raw("properties") != nil || len(v.props.members) > 0 {
		if props := v.props.bytes(); !equalJSON(v.doc.raw("properties"), props) {
			v.touch(v.doc.set("properties", props))
		}
	}
	if v.src == nil {
		v.src = v.doc.bytes()
	}
}

// renderList replaces an array only if one of its elements is another now.
func (v *View) renderList(name, idName string, list []element) {
	old, err := parseElements(v.doc.raw(name), idName)
	same := err == nil && len(v.doc.raw(name)) > 2 && slices.EqualFunc(old, list, func(a, b element) bool {
		return a.id == b.id && string(a.raw) == string(b.raw)
	})
	if !same {
		v.touch(v.doc.set(name, joinArray(raws(list))))
	}
}
