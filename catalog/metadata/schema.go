package metadata

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// typeKind tells the four shapes of a type apart.
type typeKind uint8

const (
	kindPrimitive typeKind = iota
	kindStruct
	kindList
	kindMap
)

// dataType is a type as far as the catalog has to understand it. The children of a list
// are its element, those of a map its key and value.
type dataType struct {
	kind     typeKind
	prim     primitive
	children []*field
	extra    []member // members the format does not define
}

// field is a column, a nested field, a list element, or a map key or value.
type field struct {
	id       int
	name     string
	required bool
	doc      string
	typ      dataType
	initial  json.RawMessage // nil if absent or null
	write    json.RawMessage
	extra    []member

	parent *field
	path   string // dotted name from the root
}

// schema is the decoded view of one schema; the document keeps the raw one.
type schema struct {
	id          int
	root        dataType
	identifiers []int

	byID    map[int]*field
	byName  map[string]*field
	highest int
}

// parseSchema reads and validates a schema that a client sent.
func parseSchema(raw json.RawMessage) (*schema, error) {
	o, err := parseObject(raw)
	if err != nil {
		return nil, at(err, "schema")
	}
	s := &schema{byID: map[int]*field{}, byName: map[string]*field{}}
	if s.id, err = o.optInt("schema-id", 0); err != nil {
		return nil, err
	}
	if o.raw("identifier-field-ids") != nil {
		if s.identifiers, err = o.ints("identifier-field-ids"); err != nil {
			return nil, err
		}
	}
	if typ, err := o.str("type"); err != nil || typ != "struct" {
		return nil, invalid("Cannot create schema, not a struct type: %s", quoted(raw))
	}
	if s.root, err = parseStruct(&o, "schema-id", "identifier-field-ids"); err != nil {
		return nil, err
	}
	if err := s.index(s.root.children, nil); err != nil {
		return nil, err
	}
	s.indexShortNames()
	return s, s.checkIdentifiers()
}

func parseStruct(o *object, known ...string) (dataType, error) {
	list, err := o.array("fields")
	if err != nil {
		return dataType{}, err
	}
	t := dataType{kind: kindStruct, extra: o.without(append(known, "type", "fields")...)}
	for _, raw := range list {
		f, err := parseField(raw)
		if err != nil {
			return t, err
		}
		t.children = append(t.children, f)
	}
	return t, nil
}

func parseField(raw json.RawMessage) (*field, error) {
	o, err := parseObject(raw)
	if err != nil {
		return nil, at(err, "struct field")
	}
	f := &field{initial: o.raw("initial-default"), write: o.raw("write-default")}
	if f.id, err = o.integer("id"); err != nil {
		return nil, err
	}
	if f.name, err = o.str("name"); err != nil {
		return nil, err
	}
	if f.required, err = o.boolean("required"); err != nil {
		return nil, err
	}
	if f.doc, err = o.optStr("doc"); err != nil {
		return nil, err
	}
	if f.typ, err = parseType(o.raw("type")); err != nil {
		return nil, at(err, "field %s", f.name)
	}
	f.extra = o.without("id", "name", "required", "doc", "type", "initial-default", "write-default")
	return f, f.check()
}

// check validates what concerns the field alone.
func (f *field) check() error {
	if f.typ.kind != kindPrimitive {
		return nil
	}
	if f.typ.prim.base == "unknown" && f.required {
		return invalid("Cannot create required field with unknown type: %s", f.name)
	}
	for _, raw := range []json.RawMessage{f.initial, f.write} {
		if raw != nil && !f.typ.prim.checkDefault(raw) {
			return invalid("Cannot parse default as a %s value: %s: %s", f.typ.prim.text, f.name, quoted(raw))
		}
	}
	return nil
}

func parseType(raw json.RawMessage) (dataType, error) {
	if len(raw) == 0 {
		return dataType{}, invalid("Cannot parse missing field: type")
	}
	if raw[0] == '"' {
		p, err := parsePrimitive(unquote(raw))
		return dataType{prim: p}, err
	}
	if raw[0] != '{' {
		return dataType{}, invalid("Cannot parse type from json: %s", quoted(raw))
	}
	o, err := parseObject(raw)
	if err != nil {
		return dataType{}, err
	}
	name, err := o.str("type")
	if err != nil {
		return dataType{}, err
	}
	switch name {
	case "struct":
		return parseStruct(&o)
	case "list":
		return parseContainer(&o, kindList, "element")
	case "map":
		return parseContainer(&o, kindMap, "key", "value")
	}
	return dataType{}, invalid("Cannot parse type from json: %s", quoted(raw))
}

// parseContainer reads a list or a map, whose parts are described by members such as
// element-id, element-required and element.
func parseContainer(o *object, kind typeKind, parts ...string) (dataType, error) {
	t := dataType{kind: kind}
	known := []string{"type"}
	for _, part := range parts {
		f := &field{name: part, required: part == "key"}
		var err error
		if f.id, err = o.integer(part + "-id"); err != nil {
			return t, err
		}
		if part != "key" {
			if f.required, err = o.boolean(part + "-required"); err != nil {
				return t, err
			}
		}
		if f.typ, err = parseType(o.raw(part)); err != nil {
			return t, err
		}
		if err := f.check(); err != nil {
			return t, err
		}
		t.children = append(t.children, f)
		known = append(known, part, part+"-id", part+"-required")
	}
	t.extra = o.without(known...)
	return t, nil
}

// index fills the lookup tables and refuses two fields of one id or one full name.
func (s *schema) index(fields []*field, parent *field) error {
	for _, f := range fields {
		f.parent, f.path = parent, f.name
		if parent != nil {
			f.path = parent.path + "." + f.name
		}
		if other, dup := s.byID[f.id]; dup {
			return invalid("Invalid schema: multiple fields for id %d: %s and %s", f.id, other.path, f.path)
		}
		if other, dup := s.byName[f.path]; dup {
			return invalid("Invalid schema: multiple fields for name %s: %d and %d", f.path, other.id, f.id)
		}
		s.byID[f.id], s.byName[f.path] = f, f
		s.highest = max(s.highest, f.id)
	}
	for _, f := range fields {
		if err := s.index(f.typ.children, f); err != nil {
			return err
		}
	}
	return nil
}

// indexShortNames lets a field inside a list of structs be found without "element" and
// one inside a map of structs without "value", where that is not ambiguous.
func (s *schema) indexShortNames() {
	for _, id := range slices.Sorted(maps.Keys(s.byID)) {
		f := s.byID[id]
		names := []string{f.name}
		for p := f.parent; p != nil; p = p.parent {
			hidden := p.parent != nil && p.typ.kind == kindStruct &&
				(p.parent.typ.kind == kindList || (p.parent.typ.kind == kindMap && p.name == "value"))
			if !hidden {
				names = append(names, p.name)
			}
		}
		slices.Reverse(names)
		short := strings.Join(names, ".")
		if _, taken := s.byName[short]; !taken {
			s.byName[short] = f
		}
	}
}

func (s *schema) checkIdentifiers() error {
	for _, id := range s.identifiers {
		f := s.byID[id]
		switch {
		case f == nil:
			return invalid("Cannot add fieldId %d as an identifier field: field does not exist", id)
		case f.typ.kind != kindPrimitive:
			return invalid("Cannot add field %s as an identifier field: not a primitive type field", f.name)
		case !f.required:
			return invalid("Cannot add field %s as an identifier field: not a required field", f.name)
		case f.typ.prim.base == "float" || f.typ.prim.base == "double":
			return invalid("Cannot add field %s as an identifier field: must not be float or double field", f.name)
		}
		for p := f.parent; p != nil; p = p.parent {
			if p.typ.kind != kindStruct {
				return invalid("Cannot add field %s as an identifier field: must not be nested in %s", f.name, p.path)
			}
			if !p.required {
				return invalid("Cannot add field %s as an identifier field: must not be nested in an optional field %s", f.name, p.path)
			}
		}
	}
	return nil
}

// checkVersion refuses types and defaults that the format version does not have.
func (s *schema) checkVersion(formatVersion int) error {
	var problems []string
	for _, id := range slices.Sorted(maps.Keys(s.byID)) {
		f := s.byID[id]
		if need := minVersions[f.typ.prim.base]; formatVersion < need {
			problems = append(problems, fmt.Sprintf("Invalid type for %s: %s is not supported until v%d", f.path, f.typ.prim.text, need))
		}
		if f.initial != nil && formatVersion < 3 {
			problems = append(problems, fmt.Sprintf("Invalid initial default for %s: non-null default (%s) is not supported until v3", f.path, quoted(f.initial)))
		}
	}
	if problems != nil {
		return invalid("Invalid schema for v%d:\n- %s", formatVersion, strings.Join(problems, "\n- "))
	}
	return nil
}

// covers reports whether s may stand in for other: equal in everything the format
// defines but the schema id, and holding every other member that other holds.
func (s *schema) covers(other *schema) bool {
	return len(s.identifiers) == len(other.identifiers) &&
		slices.Equal(sortedCopy(s.identifiers), sortedCopy(other.identifiers)) &&
		s.root.covers(&other.root)
}

func (t *dataType) covers(other *dataType) bool {
	if t.kind != other.kind || t.prim.text != other.prim.text || !coveredBy(other.extra, &object{members: t.extra}) {
		return false
	}
	return slices.EqualFunc(t.children, other.children, (*field).covers)
}

func (f *field) covers(other *field) bool {
	return f.id == other.id && f.name == other.name && f.required == other.required && f.doc == other.doc &&
		equalJSON(f.initial, other.initial) && equalJSON(f.write, other.write) &&
		coveredBy(other.extra, &object{members: f.extra}) && f.typ.covers(&other.typ)
}

func sortedCopy(list []int) []int {
	out := slices.Clone(list)
	slices.Sort(out)
	return out
}
