package metadata

import (
	"encoding/json"
	"slices"
)

// currentSchema decodes the current schema for checks against it.
func (e *edit) currentSchema(what string) (*schema, error) {
	raw, ok := find(e.t.schemas, e.t.currentSchemaID)
	if !ok {
		return nil, invalid("Cannot add %s before a schema is added", what)
	}
	return parseSchema(raw)
}

// addSchema reuses a schema that is there already; else the id is one more than the
// highest. Unlike Java, a reused schema counts as the last added one, so that a client
// which goes back to an earlier schema may still say "set the last added".
func (e *edit) addSchema(u *object) error {
	raw := u.raw("schema")
	if raw == nil {
		return invalid("Cannot parse missing field: schema")
	}
	s, err := parseSchema(raw)
	if err != nil {
		return err
	}
	t := e.t
	if err := s.checkVersion(t.formatVersion); err != nil {
		return err
	}
	if last := max(t.lastColumnID, s.highest); last != t.lastColumnID {
		t.lastColumnID, e.dirty.scalars = last, true
	}
	id := t.currentSchemaID
	for i := range t.schemas {
		old, err := parseSchema(t.schemas[i].raw)
		if err == nil && old.covers(s) {
			id = int(t.schemas[i].id)
			e.lastSchema = &id
			return nil
		}
		id = max(id, int(t.schemas[i].id)+1)
	}
	t.schemas = append(t.schemas, element{id: int64(id), raw: withID(raw, "schema-id", id)})
	e.lastSchema, e.dirty.schemas = &id, true
	return nil
}

// withID returns the object raw, already parsed once, with one id set. The bytes stay as
// they are if the id is right.
func withID(raw json.RawMessage, name string, id int) json.RawMessage {
	o, err := parseObject(raw)
	if err != nil {
		return raw
	}
	if old, err := o.integer(name); err == nil && old == id {
		return raw
	}
	o.set(name, intJSON(id))
	return o.bytes()
}

// lastAdded resolves the id -1, which stands for the element that was added last.
func lastAdded(id int, last *int, message string) (int, error) {
	if id != -1 {
		return id, nil
	}
	if last == nil {
		return 0, invalid("%s", message)
	}
	return *last, nil
}

func (e *edit) setCurrentSchema(u *object) error {
	id, err := u.integer("schema-id")
	if err != nil {
		return err
	}
	if id, err = lastAdded(id, e.lastSchema, "Cannot set last added schema: no schema has been added"); err != nil {
		return err
	}
	if _, ok := find(e.t.schemas, id); !ok {
		return invalid("Cannot set current schema to unknown schema: %d", id)
	}
	if id != e.t.currentSchemaID {
		e.t.currentSchemaID, e.dirty.schemas = id, true
	}
	return nil
}

func (e *edit) removeSchemas(u *object) error {
	ids, err := u.ints("schema-ids")
	if err != nil {
		return err
	}
	if slices.Contains(ids, e.t.currentSchemaID) {
		return invalid("Cannot remove the current schema")
	}
	e.t.schemas, e.dirty.schemas = removeElements(e.t.schemas, ids, e.dirty.schemas)
	return nil
}

func removeElements(list []element, ids []int, dirty bool) ([]element, bool) {
	rest := slices.DeleteFunc(slices.Clone(list), func(el element) bool { return slices.Contains(ids, int(el.id)) })
	return rest, dirty || len(rest) != len(list)
}

// addSpec reuses a spec with the same fields. Field ids that the client left out are
// taken from an earlier spec with the same field, as the format asks from version 2 on,
// or assigned.
func (e *edit) addSpec(u *object) error {
	raw := u.raw("spec")
	if raw == nil {
		return invalid("Cannot parse missing field: spec")
	}
	p, err := parseSpec(raw)
	if err != nil {
		return err
	}
	t := e.t
	s, err := e.currentSchema("a partition spec")
	if err != nil {
		return err
	}
	if err := p.checkNames(s); err != nil {
		return err
	}
	if err := p.checkSources(s); err != nil {
		return err
	}
	id := 0
	for i := range t.specs {
		old, err := parseSpec(t.specs[i].raw)
		if err == nil && old.covers(p) {
			id = int(t.specs[i].id)
			e.lastSpec = &id
			return nil
		}
		id = max(id, int(t.specs[i].id)+1)
	}
	e.assignFieldIDs(p)
	p.id = id
	if t.formatVersion == 1 && !p.sequential() {
		return invalid("Spec does not use sequential IDs that are required in v1: %s", quoted(raw))
	}
	if raw, err = p.withIDs(raw); err != nil {
		return err
	}
	t.lastPartitionID = max(t.lastPartitionID, p.lastID())
	t.specs = append(t.specs, element{id: int64(id), raw: raw})
	e.lastSpec, e.dirty.specs = &id, true
	return nil
}

// assignFieldIDs numbers the fields of a spec whose client left that to us.
func (e *edit) assignFieldIDs(p *partitionSpec) {
	next := e.t.lastPartitionID
	if e.t.formatVersion == 1 {
		next = firstPartitionID - 1
	}
	for i := range p.fields {
		f := &p.fields[i]
		if f.id >= 0 {
			continue
		}
		if e.t.formatVersion > 1 {
			f.id = e.knownFieldID(f)
		}
		if f.id < 0 {
			next++
			f.id = next
		}
	}
}

// knownFieldID returns the id under which an existing spec has the same field, or -1.
func (e *edit) knownFieldID(f *partitionField) int {
	for i := range e.t.specs {
		old, err := parseSpec(e.t.specs[i].raw)
		if err != nil {
			continue
		}
		for _, g := range old.fields {
			if slices.Equal(f.sources, g.sources) && f.transform == g.transform {
				return g.id
			}
		}
	}
	return -1
}

func (e *edit) setDefaultSpec(u *object) error {
	id, err := u.integer("spec-id")
	if err != nil {
		return err
	}
	if id, err = lastAdded(id, e.lastSpec, "Cannot set last added spec: no spec has been added"); err != nil {
		return err
	}
	if _, ok := find(e.t.specs, id); !ok {
		return invalid("Cannot set default partition spec to unknown spec: %d", id)
	}
	if id != e.t.defaultSpecID {
		e.t.defaultSpecID, e.dirty.specs = id, true
	}
	return nil
}

func (e *edit) removeSpecs(u *object) error {
	ids, err := u.ints("spec-ids")
	if err != nil {
		return err
	}
	if slices.Contains(ids, e.t.defaultSpecID) {
		return invalid("Cannot remove the default partition spec")
	}
	e.t.specs, e.dirty.specs = removeElements(e.t.specs, ids, e.dirty.specs)
	return nil
}

func (e *edit) addSortOrder(u *object) error {
	raw := u.raw("sort-order")
	if raw == nil {
		return invalid("Cannot parse missing field: sort-order")
	}
	o, err := parseSortOrder(raw)
	if err != nil {
		return err
	}
	t := e.t
	s, err := e.currentSchema("a sort order")
	if err != nil {
		return err
	}
	if err := o.checkSources(s); err != nil {
		return err
	}
	id := 1
	if len(o.fields) == 0 {
		id = 0
	}
	for i := range t.orders {
		old, err := parseSortOrder(t.orders[i].raw)
		if err == nil && (old.covers(o) || (len(old.fields) == 0 && len(o.fields) == 0)) {
			id = int(t.orders[i].id)
			e.lastOrder = &id
			return nil
		}
		if len(o.fields) > 0 {
			id = max(id, int(t.orders[i].id)+1)
		}
	}
	t.orders = append(t.orders, element{id: int64(id), raw: withID(raw, "order-id", id)})
	e.lastOrder, e.dirty.orders = &id, true
	return nil
}

func (e *edit) setDefaultSortOrder(u *object) error {
	id, err := u.integer("sort-order-id")
	if err != nil {
		return err
	}
	if id, err = lastAdded(id, e.lastOrder, "Cannot set last added sort order: no sort order has been added"); err != nil {
		return err
	}
	if _, ok := find(e.t.orders, id); !ok {
		return invalid("Cannot set default sort order to unknown sort order: %d", id)
	}
	if id != e.t.defaultOrderID {
		e.t.defaultOrderID, e.dirty.orders = id, true
	}
	return nil
}
