package metadata

import (
	"encoding/json"
	"slices"
)

// firstPartitionID is the id of the first partition field of a table.
const firstPartitionID = 1000

// partitionField is one field of a partition spec. Transforms of several arguments have
// several sources.
type partitionField struct {
	sources   []int
	id        int // -1 if the client left it to the server
	name      string
	transform string
	extra     []member
}

type partitionSpec struct {
	id     int
	fields []partitionField
	extra  []member
}

// parseSpec reads a partition spec. A client may leave all field ids out, but not some.
func parseSpec(raw json.RawMessage) (*partitionSpec, error) {
	o, err := parseObject(raw)
	if err != nil {
		return nil, at(err, "partition spec")
	}
	p := &partitionSpec{extra: o.without("spec-id", "fields")}
	if p.id, err = o.optInt("spec-id", 0); err != nil {
		return nil, err
	}
	list, err := o.array("fields")
	if err != nil {
		return nil, err
	}
	missing := 0
	for _, raw := range list {
		f, err := parsePartitionField(raw)
		if err != nil {
			return nil, at(err, "partition field")
		}
		if f.id < 0 {
			missing++
		}
		p.fields = append(p.fields, f)
	}
	if missing != 0 && missing != len(list) {
		return nil, invalid("Cannot parse spec with missing field IDs: %d missing of %d fields.", missing, len(list))
	}
	return p, nil
}

func parsePartitionField(raw json.RawMessage) (partitionField, error) {
	o, err := parseObject(raw)
	if err != nil {
		return partitionField{}, err
	}
	f := partitionField{extra: o.without("source-id", "source-ids", "field-id", "name", "transform")}
	if f.sources, err = parseSources(&o); err != nil {
		return f, err
	}
	if f.name, err = o.str("name"); err != nil {
		return f, err
	}
	if f.transform, err = o.str("transform"); err != nil {
		return f, err
	}
	f.transform = normalTransform(f.transform)
	if f.id, err = o.optInt("field-id", -1); err == nil && o.raw("field-id") != nil && f.id < 0 {
		err = invalid("Invalid partition field id: %d", f.id)
	}
	return f, err
}

// parseSources reads source-id or source-ids. Readers refuse a field that has both.
func parseSources(o *object) ([]int, error) {
	if o.raw("source-ids") == nil {
		id, err := o.integer("source-id")
		return []int{id}, err
	}
	if o.raw("source-id") != nil {
		return nil, invalid("Cannot use both source-id and source-ids")
	}
	ids, err := o.ints("source-ids")
	if err == nil && len(ids) == 0 {
		err = invalid("Cannot use empty source-ids")
	}
	return ids, err
}

// covers reports whether p may stand in for other: Java's compatibleWith (field ids and
// spec id aside), and nothing else that other says would be lost.
func (p *partitionSpec) covers(other *partitionSpec) bool {
	return coveredBy(other.extra, &object{members: p.extra}) &&
		slices.EqualFunc(p.fields, other.fields, func(a, b partitionField) bool {
			return slices.Equal(a.sources, b.sources) && a.name == b.name && a.transform == b.transform &&
				coveredBy(b.extra, &object{members: a.extra})
		})
}

// lastID is the highest field id of the spec, 999 if it has no fields.
func (p *partitionSpec) lastID() int {
	last := firstPartitionID - 1
	for i := range p.fields {
		last = max(last, p.fields[i].id)
	}
	return last
}

// checkNames applies Java's rules for the names of partition fields.
func (p *partitionSpec) checkNames(s *schema) error {
	names := map[string]bool{}
	ids := map[int]bool{}
	for _, f := range p.fields {
		if f.name == "" {
			return invalid("Cannot use empty partition name: %s", f.name)
		}
		if names[f.name] {
			return invalid("Cannot use partition name more than once: %s", f.name)
		}
		names[f.name] = true
		if f.id >= 0 && ids[f.id] {
			return invalid("Cannot use partition field id more than once: %d", f.id)
		}
		ids[f.id] = true
		column := s.byName[f.name]
		if column != nil && !slices.Contains(f.sources, column.id) && s.byID[f.sources[0]] != nil {
			return invalid("Cannot create identity partition sourced from different field in schema: %s", f.name)
		}
	}
	return nil
}

// checkSources tests that every field can be computed from the schema.
func (p *partitionSpec) checkSources(s *schema) error {
	for _, f := range p.fields {
		if f.transform == voidTransform {
			continue // its source may be gone
		}
		for _, id := range f.sources {
			column := s.byID[id]
			if column == nil {
				return invalid("Cannot find source column for partition field: %s: %s(%d)", f.name, f.transform, id)
			}
			if column.typ.kind != kindPrimitive {
				return invalid("Cannot partition by non-primitive source field: %s", column.path)
			}
			if err := checkTransform(f.transform, column.typ.prim); err != nil {
				return err
			}
			for up := column.parent; up != nil; up = up.parent {
				if up.typ.kind != kindStruct {
					return invalid("Invalid partition field parent: %s", up.path)
				}
			}
		}
	}
	return nil
}

// sequential reports whether the ids are 1000, 1001, …, as format version 1 needs.
func (p *partitionSpec) sequential() bool {
	for i := range p.fields {
		if p.fields[i].id != firstPartitionID+i {
			return false
		}
	}
	return true
}

// withIDs returns raw with the spec id and the field ids of p.
func (p *partitionSpec) withIDs(raw json.RawMessage) (json.RawMessage, error) {
	o, err := parseObject(raw)
	if err != nil {
		return nil, err
	}
	list, err := o.array("fields")
	if err != nil {
		return nil, err
	}
	changed := false
	for i := range list {
		f, err := parseObject(list[i])
		if err != nil {
			return nil, err
		}
		if old, err := f.optInt("field-id", -1); err != nil || old != p.fields[i].id {
			f.set("field-id", intJSON(p.fields[i].id))
			list[i], changed = f.bytes(), true
		}
	}
	if changed {
		o.set("fields", joinArray(list))
	}
	if old, err := o.optInt("spec-id", -1); err == nil && old == p.id {
		return o.bytes(), nil
	}
	o.set("spec-id", intJSON(p.id))
	return o.bytes(), nil
}
