package metadata

import (
	"encoding/json"
)

// freshIDs gives the fields of a new table's schema ids of their own, 1, 2, 3, …, in
// Java's order: all fields of a struct first, then the insides of each. Only the ids in
// the raw schema change.
type freshIDs struct {
	last int
	byID map[int]int // what the client called it → what it is called now
}

// freshSchema returns raw, which parseSchema has accepted, with fresh ids.
func freshSchema(raw json.RawMessage) (json.RawMessage, *freshIDs, error) {
	a := &freshIDs{byID: map[int]int{}}
	o, err := parseObject(raw)
	if err != nil {
		return nil, nil, err
	}
	if err := a.structure(&o); err != nil {
		return nil, nil, err
	}
	if o.raw("identifier-field-ids") != nil {
		ids, err := o.ints("identifier-field-ids")
		if err != nil {
			return nil, nil, err
		}
		if fresh := a.mapAll(ids); fresh != nil {
			o.set("identifier-field-ids", intsJSON(fresh))
		}
	}
	o.set("schema-id", intJSON(0))
	return o.bytes(), a, nil
}

// assign renames the id in one member.
func (a *freshIDs) assign(o *object, name string) error {
	old, err := o.integer(name)
	if err != nil {
		return err
	}
	a.last++
	a.byID[old] = a.last
	if old != a.last {
		o.set(name, intJSON(a.last))
	}
	return nil
}

func (a *freshIDs) structure(o *object) error {
	list, err := o.array("fields")
	if err != nil {
		return err
	}
	before := a.last
	fields := make([]object, len(list))
	for i, raw := range list {
		if fields[i], err = parseObject(raw); err != nil {
			return err
		}
		if err := a.assign(&fields[i], "id"); err != nil {
			return err
		}
	}
	for i := range fields {
		if err := a.inside(&fields[i], "type"); err != nil {
			return err
		}
		list[i] = fields[i].bytes()
	}
	if a.last > before {
		o.set("fields", joinArray(list))
	}
	return nil
}

// inside renames the ids within the type in one member.
func (a *freshIDs) inside(o *object, name string) error {
	raw := o.raw(name)
	if len(raw) == 0 || raw[0] != '{' {
		return nil
	}
	t, err := parseObject(raw)
	if err != nil {
		return err
	}
	kind, err := t.str("type")
	if err != nil {
		return err
	}
	switch kind {
	case "struct":
		err = a.structure(&t)
	case "list":
		err = a.container(&t, "element")
	case "map":
		err = a.container(&t, "key", "value")
	}
	if err != nil {
		return err
	}
	o.set(name, t.bytes())
	return nil
}

func (a *freshIDs) container(t *object, parts ...string) error {
	for _, part := range parts {
		if err := a.assign(t, part+"-id"); err != nil {
			return err
		}
	}
	for _, part := range parts {
		if err := a.inside(t, part); err != nil {
			return err
		}
	}
	return nil
}

// mapAll translates ids, nil if none of them changes.
func (a *freshIDs) mapAll(ids []int) []int {
	out := make([]int, len(ids))
	changed := false
	for i, id := range ids {
		out[i] = a.byID[id]
		changed = changed || out[i] != id
	}
	if !changed {
		return nil
	}
	return out
}

// sources translates the source ids of a partition or sort field in place.
func (a *freshIDs) sources(o *object) error {
	if o.raw("source-ids") != nil {
		ids, err := o.ints("source-ids")
		if err != nil {
			return err
		}
		for _, id := range ids {
			if _, ok := a.byID[id]; !ok {
				return invalid("Cannot find source column for id: %d", id)
			}
		}
		if fresh := a.mapAll(ids); fresh != nil {
			o.set("source-ids", intsJSON(fresh))
		}
		return nil
	}
	id, err := o.integer("source-id")
	if err != nil {
		return err
	}
	fresh, ok := a.byID[id]
	if !ok {
		return invalid("Cannot find source column for id: %d", id)
	}
	if fresh != id {
		o.set("source-id", intJSON(fresh))
	}
	return nil
}

func intsJSON(list []int) json.RawMessage {
	out := make([]json.RawMessage, len(list))
	for i, n := range list {
		out[i] = intJSON(n)
	}
	return joinArray(out)
}
