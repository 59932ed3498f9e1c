package duckdb

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/catalogd/catalogd/mv"
)

// mappedField is an entry of schema.name-mapping.default.
type mappedField struct {
	ID     *int          `json:"field-id"`
	Names  []string      `json:"names"`
	Fields []mappedField `json:"fields"`
}

// nameMapping returns the table's mapping, or without one a mapping of the current names,
// which is how Iceberg readers treat files without field ids.
func nameMapping(raw json.RawMessage, fields []field) ([]mappedField, error) {
	if present(raw) == nil {
		return mappingOf(fields), nil
	}
	var text string
	if raw[0] == '"' { // a table property is a string that holds JSON
		if err := json.Unmarshal(raw, &text); err != nil {
			return nil, fmt.Errorf("name mapping: %w", err)
		}
		raw = json.RawMessage(text)
	}
	var m []mappedField
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, fmt.Errorf("name mapping: %w", err)
	}
	return m, nil
}

func mappingOf(fields []field) []mappedField {
	out := make([]mappedField, len(fields))
	for i, f := range fields {
		out[i] = mappedField{ID: &f.id, Names: []string{f.name}, Fields: mappingOf(f.typ.fields)}
	}
	return out
}

// assignIDs gives field ids by name to the columns of a file that has none.
func assignIDs(cols []*column, parent shape, mapping []mappedField) {
	for i, c := range cols {
		name := c.name
		switch parent { // the wrapper fields of lists and maps have fixed names in a mapping
		case shapeList:
			name = "element"
		case shapeMap:
			name = [...]string{"key", "value"}[i]
		}
		for _, m := range mapping {
			if m.has(name) {
				if m.ID != nil {
					c.id = *m.ID
				}
				assignIDs(c.children, c.shape, m.Fields)
				break
			}
		}
	}
}

func (m mappedField) has(name string) bool {
	return slices.Contains(m.Names, name)
}

// source is a data file with its footer.
type source struct {
	mv.InputFile
	plain string // the path that DuckDB reads
	foot  *footer
	// nanos names the columns (by index) that hold values finer than a microsecond.
	nanos map[int]bool
}

// resolver renders the columns of one file as the table wants them. prefix+index is the
// alias of a file's column.
type resolver struct {
	file   *source
	prefix string
}

func (r resolver) alias(i int) string { return r.prefix + strconv.Itoa(i) }

// column renders f in r's file as an expression of exactly f's type.
func (r resolver) column(f field) (string, error) {
	if name, bad := f.typ.opaque(); bad {
		return refusal(f.typ, fmt.Sprintf("column %q has the Iceberg type %s, which DuckDB cannot read exactly: leave it out of the query", f.name, name)), nil
	}
	if i := byID(r.file.foot.columns, f.id); i >= 0 {
		c := r.file.foot.columns[i]
		if r.file.nanos[i] {
			return refusal(f.typ, fmt.Sprintf("column %q of %s: %s", f.name, r.file.Path, finerThanMicros)), nil
		}
		expr, err := convert(c, f.typ, r.alias(i), 0)
		if err != nil {
			return "", fmt.Errorf("column %q (field %d): %w", f.name, f.id, err)
		}
		return expr, nil
	}
	return r.absent(f)
}

// absent renders a column that the file does not have.
func (r resolver) absent(f field) (string, error) {
	raw, ok := r.file.Partition[strconv.Itoa(f.id)]
	if !ok {
		raw = f.initial
		if raw == nil && f.required {
			return "", fmt.Errorf("required column %q (field %d) is missing and has no initial default", f.name, f.id)
		}
	}
	expr, err := literal(f.typ, raw)
	if err != nil {
		return "", fmt.Errorf("column %q (field %d): %w", f.name, f.id, err)
	}
	return expr, nil
}

// key renders the equality key with field id f.id, which may lie inside structs.
func (r resolver) key(f field, schema []field) (string, error) {
	for i, c := range r.file.foot.columns {
		found, expr := findLeaf(c, f.id, r.alias(i))
		if found == nil {
			continue
		}
		if r.file.nanos[i] {
			return "", fmt.Errorf("equality key %q: %s", f.name, finerThanMicros)
		}
		return convert(found, f.typ, expr, 0)
	}
	if top, nested := parentOf(schema, f.id); nested && byID(r.file.foot.columns, top.id) < 0 && top.initial != nil {
		return "", fmt.Errorf("equality key %q lies inside column %q, which the file lacks and which has a default", f.name, top.name)
	}
	f.required = false // a key that the file lacks is NULL in every row
	return r.absent(f)
}

// findLeaf looks for a field id in c and the structs below it.
func findLeaf(c *column, id int, expr string) (*column, string) {
	if c.id == id {
		return c, expr
	}
	if c.shape != shapeStruct {
		return nil, ""
	}
	for i, child := range c.children {
		if found, e := findLeaf(child, id, fmt.Sprintf("struct_extract_at(%s, %d)", expr, i+1)); found != nil {
			return found, e
		}
	}
	return nil, ""
}

// fieldByID finds a field at the top level or inside structs.
func fieldByID(fields []field, id int) (field, bool) {
	for _, f := range fields {
		if f.id == id {
			return f, true
		}
		if f.typ.kind == kStruct {
			if g, ok := fieldByID(f.typ.fields, id); ok {
				return g, true
			}
		}
	}
	return field{}, false
}

// parentOf returns the top-level column that holds field id somewhere below.
func parentOf(fields []field, id int) (field, bool) {
	for _, f := range fields {
		if f.typ.kind == kStruct {
			if _, ok := fieldByID(f.typ.fields, id); ok {
				return f, true
			}
		}
	}
	return field{}, false
}

// refusal is an expression that fails when, and only when, it is evaluated.
func refusal(t icebergType, msg string) string {
	return fmt.Sprintf("CASE WHEN error(%s) IS NULL THEN CAST(NULL AS %s) END", quoteString(msg), t.duck())
}

// convert renders the file's column c, which x refers to, as a value of type t. It
// returns x itself when DuckDB already reads exactly that.
func convert(c *column, t icebergType, x string, depth int) (string, error) {
	switch {
	case t.kind == kUnknown:
		return "CAST(NULL AS " + t.duck() + ")", nil
	case t.kind == kStruct && c.shape == shapeStruct:
		return convertStruct(c, t, x, depth)
	case t.kind == kList && c.shape == shapeList:
		e := "e" + strconv.Itoa(depth)
		elem, err := convert(c.children[0], t.fields[0].typ, e, depth+1)
		if err != nil || elem == e {
			return x, err
		}
		return fmt.Sprintf("list_transform(%s, lambda %s: %s)", x, e, elem), nil
	case t.kind == kMap && c.shape == shapeMap:
		return convertMap(c, t, x, depth)
	case c.shape == shapeLeaf:
		if expr, ok := convertLeaf(c.duck, t, x); ok {
			return expr, nil
		}
		return "", fmt.Errorf("the file holds %s, which is not a %s nor promotable to it", c.duck, t.text)
	}
	return "", fmt.Errorf("the file holds another structure than %s", t.text)
}

// convertStruct matches fields by id. DuckDB's own schema mapping works by id at the top
// level only, so renamed or swapped nested fields are rebuilt here by position.
func convertStruct(c *column, t icebergType, x string, depth int) (string, error) {
	same := len(c.children) == len(t.fields)
	parts := make([]string, len(t.fields))
	for i, f := range t.fields {
		j := byID(c.children, f.id)
		if j < 0 {
			if f.initial == nil && f.required {
				return "", fmt.Errorf("required field %q (field %d) is missing and has no initial default", f.name, f.id)
			}
			lit, err := literal(f.typ, f.initial)
			if err != nil {
				return "", fmt.Errorf("field %q: %w", f.name, err)
			}
			parts[i], same = quoteIdent(f.name)+" := "+lit, false
			continue
		}
		in := fmt.Sprintf("struct_extract_at(%s, %d)", x, j+1)
		out, err := convert(c.children[j], f.typ, in, depth)
		if err != nil {
			return "", fmt.Errorf("field %q: %w", f.name, err)
		}
		same = same && i == j && out == in && c.children[j].name == f.name
		parts[i] = quoteIdent(f.name) + " := " + out
	}
	if same {
		return x, nil
	}
	return fmt.Sprintf("CASE WHEN %s IS NULL THEN NULL ELSE struct_pack(%s) END", x, strings.Join(parts, ", ")), nil
}

func convertMap(c *column, t icebergType, x string, depth int) (string, error) {
	e := "e" + strconv.Itoa(depth)
	k, err := convert(c.children[0], t.fields[0].typ, e+".key", depth+1)
	if err != nil {
		return "", err
	}
	v, err := convert(c.children[1], t.fields[1].typ, e+".value", depth+1)
	if err != nil {
		return "", err
	}
	if k == e+".key" && v == e+".value" {
		return x, nil
	}
	return fmt.Sprintf("map_from_entries(list_transform(map_entries(%s), lambda %s: struct_pack(k := %s, v := %s)))", x, e, k, v), nil
}

// convertLeaf renders x of DuckDB type duck as t, if Iceberg allows to read one as the
// other. Conversions between the two timestamp types go through the stored microseconds,
// since a cast would depend on the session's time zone.
func convertLeaf(duck string, t icebergType, x string) (string, bool) {
	want := t.duck()
	if t.kind == kTimestamptzNS || t.kind == kTimestamptz || t.kind == kTimestamp || t.kind == kTimestampNS {
		return convertTimestamp(duck, t, x)
	}
	if duck == want {
		return x, true
	}
	cast := "CAST(" + x + " AS " + want + ")"
	switch t.kind {
	case kInt:
		return cast, oneOf(duck, "TINYINT", "SMALLINT", "UTINYINT", "USMALLINT")
	case kLong:
		return cast, oneOf(duck, "TINYINT", "SMALLINT", "INTEGER", "UTINYINT", "USMALLINT", "UINTEGER")
	case kDouble:
		return cast, duck == "FLOAT"
	case kDecimal:
		var p, s int
		_, err := fmt.Sscanf(duck, "DECIMAL(%d,%d)", &p, &s)
		return cast, err == nil && s == t.scale
	case kTime:
		return cast, duck == "TIME WITH TIME ZONE"
	case kString:
		if duck == "BLOB" {
			return "decode(" + x + ")", true
		}
		return cast, duck == "JSON"
	case kUUID:
		return "CAST(hex(" + x + ") AS UUID)", duck == "BLOB"
	case kBinary, kFixed:
		return "encode(" + x + ")", duck == "VARCHAR"
	}
	return "", false
}

func convertTimestamp(duck string, t icebergType, x string) (string, bool) {
	zoned := t.kind == kTimestamptz || t.kind == kTimestamptzNS
	if duck == t.duck() {
		return x, true
	}
	switch duck {
	case "TIMESTAMP", "TIMESTAMP WITH TIME ZONE":
		switch {
		case zoned:
			return "make_timestamptz(epoch_us(" + x + "))", true
		case t.kind == kTimestamp:
			return "make_timestamp(epoch_us(" + x + "))", true
		}
		return "CAST(make_timestamp(epoch_us(" + x + ")) AS TIMESTAMP_NS)", true
	case "DATE":
		return "CAST(" + x + " AS " + t.duck() + ")", !zoned
	case "TIMESTAMP_NS":
		if zoned || t.kind == kTimestamp {
			return exactMicros(t, x), true
		}
	}
	return "", false
}

// exactMicros cuts nanoseconds to microseconds where nothing is lost, else fails.
func exactMicros(t icebergType, x string) string {
	maker := "make_timestamp"
	if t.kind != kTimestamp {
		maker = "make_timestamptz"
	}
	return fmt.Sprintf("CASE WHEN %[1]s IS NULL THEN NULL WHEN epoch_ns(%[1]s) %% 1000 = 0 THEN %[2]s(epoch_ns(%[1]s) // 1000) ELSE CAST(error('a timestamp is finer than a microsecond: ' || %[1]s::VARCHAR) AS %[3]s) END",
		x, maker, t.duck())
}

func oneOf(s string, set ...string) bool {
	return slices.Contains(set, s)
}
