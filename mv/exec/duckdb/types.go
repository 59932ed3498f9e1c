package duckdb

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// kind is the name of an Iceberg type without its parameters.
type kind string

const (
	kBoolean       kind = "boolean"
	kInt           kind = "int"
	kLong          kind = "long"
	kFloat         kind = "float"
	kDouble        kind = "double"
	kDecimal       kind = "decimal"
	kDate          kind = "date"
	kTime          kind = "time"
	kTimestamp     kind = "timestamp"
	kTimestamptz   kind = "timestamptz"
	kTimestampNS   kind = "timestamp_ns"
	kTimestamptzNS kind = "timestamptz_ns"
	kString        kind = "string"
	kUUID          kind = "uuid"
	kFixed         kind = "fixed"
	kBinary        kind = "binary"
	kUnknown       kind = "unknown"
	kStruct        kind = "struct"
	kList          kind = "list"
	kMap           kind = "map"
	// kOpaque stands for a type that DuckDB has no exact counterpart of (variant,
	// geometry, geography, a struct without fields). Such a column may exist, and a query
	// may leave it alone; reading it is refused.
	kOpaque kind = "opaque"
)

// icebergType is a parsed Iceberg type. A list has one field ("element"), a map has two
// ("key", "value").
type icebergType struct {
	kind      kind
	text      string // as the schema spells it, for messages
	precision int
	scale     int
	length    int
	fields    []field
}

// field is a column or a nested field.
type field struct {
	id       int
	name     string
	required bool
	typ      icebergType
	// initial is the v3 initial-default as raw JSON: decoding it to a Go number would
	// lose digits of longs beyond 2^53.
	initial json.RawMessage
}

var plainTypes = map[string]kind{
	"boolean": kBoolean, "int": kInt, "long": kLong, "float": kFloat, "double": kDouble,
	"date": kDate, "time": kTime, "timestamp": kTimestamp, "timestamptz": kTimestamptz,
	"timestamp_ns": kTimestampNS, "timestamptz_ns": kTimestamptzNS, "string": kString,
	"uuid": kUUID, "binary": kBinary, "unknown": kUnknown,
}

var (
	decimalRE = regexp.MustCompile(`^decimal\(\s*(\d+)\s*,\s*(\d+)\s*\)$`)
	fixedRE   = regexp.MustCompile(`^fixed\[\s*(\d+)\s*\]$`)
	opaqueRE  = regexp.MustCompile(`^(variant|geometry|geography)\b`)
)

// parseTypeText reads a type as [mv.Column] spells it: a primitive's name or the JSON of
// a nested type.
func parseTypeText(s string) (icebergType, error) {
	s = strings.TrimSpace(s)
	if strings.HasPrefix(s, "{") || strings.HasPrefix(s, `"`) {
		return parseType(json.RawMessage(s))
	}
	return parsePrimitive(s)
}

// parseType reads the JSON form of a type in an Iceberg schema.
func parseType(raw json.RawMessage) (icebergType, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) > 0 && raw[0] == '"' {
		var s string
		if err := json.Unmarshal(raw, &s); err != nil {
			return icebergType{}, fmt.Errorf("type %s: %w", raw, err)
		}
		return parsePrimitive(s)
	}
	var head struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		return icebergType{}, fmt.Errorf("type %s: %w", raw, err)
	}
	switch head.Type {
	case "struct":
		fields, err := parseStruct(raw)
		if err == nil && len(fields) == 0 {
			return icebergType{kind: kOpaque, text: "struct without fields"}, nil
		}
		return icebergType{kind: kStruct, text: "struct", fields: fields}, err
	case "list":
		return parseList(raw)
	case "map":
		return parseMap(raw)
	}
	return icebergType{}, fmt.Errorf("type %s is not an Iceberg type", raw)
}

func parsePrimitive(s string) (icebergType, error) {
	if k, ok := plainTypes[s]; ok {
		return icebergType{kind: k, text: s}, nil
	}
	if m := decimalRE.FindStringSubmatch(s); m != nil {
		p, _ := strconv.Atoi(m[1])
		sc, _ := strconv.Atoi(m[2])
		if p < 1 || p > 38 || sc > p {
			return icebergType{}, fmt.Errorf("type %s: precision goes from 1 to 38 and scale from 0 to the precision", s)
		}
		return icebergType{kind: kDecimal, text: s, precision: p, scale: sc}, nil
	}
	if m := fixedRE.FindStringSubmatch(s); m != nil {
		n, err := strconv.Atoi(m[1])
		return icebergType{kind: kFixed, text: s, length: n}, err
	}
	if opaqueRE.MatchString(s) {
		return icebergType{kind: kOpaque, text: s}, nil
	}
	return icebergType{}, fmt.Errorf("type %q is not an Iceberg type", s)
}

// parseSchema reads the top-level fields of an Iceberg schema.
func parseSchema(raw json.RawMessage) ([]field, error) {
	fields, err := parseStruct(raw)
	if err != nil {
		return nil, err
	}
	seen := make(map[string]string, len(fields))
	for _, f := range fields {
		fold := strings.ToLower(f.name)
		if prev, dup := seen[fold]; dup {
			return nil, fmt.Errorf("columns %q and %q differ only by case: DuckDB cannot tell them apart", prev, f.name)
		}
		seen[fold] = f.name
	}
	return fields, nil
}

func parseStruct(raw json.RawMessage) ([]field, error) {
	var s struct {
		Fields []struct {
			ID       int             `json:"id"`
			Name     string          `json:"name"`
			Required bool            `json:"required"`
			Type     json.RawMessage `json:"type"`
			Initial  json.RawMessage `json:"initial-default"`
		} `json:"fields"`
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	out := make([]field, 0, len(s.Fields))
	for _, f := range s.Fields {
		typ, err := parseType(f.Type)
		if err != nil {
			return nil, fmt.Errorf("column %q: %w", f.Name, err)
		}
		out = append(out, field{id: f.ID, name: f.Name, required: f.Required, typ: typ, initial: present(f.Initial)})
	}
	return out, nil
}

func parseList(raw json.RawMessage) (icebergType, error) {
	var l struct {
		ID       int             `json:"element-id"`
		Element  json.RawMessage `json:"element"`
		Required bool            `json:"element-required"`
	}
	if err := json.Unmarshal(raw, &l); err != nil {
		return icebergType{}, fmt.Errorf("list: %w", err)
	}
	elem, err := parseType(l.Element)
	if err != nil {
		return icebergType{}, err
	}
	f := field{id: l.ID, name: "element", required: l.Required, typ: elem}
	return icebergType{kind: kList, text: "list", fields: []field{f}}, nil
}

func parseMap(raw json.RawMessage) (icebergType, error) {
	var m struct {
		KeyID    int             `json:"key-id"`
		Key      json.RawMessage `json:"key"`
		ValueID  int             `json:"value-id"`
		Value    json.RawMessage `json:"value"`
		Required bool            `json:"value-required"`
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		return icebergType{}, fmt.Errorf("map: %w", err)
	}
	key, err := parseType(m.Key)
	if err != nil {
		return icebergType{}, err
	}
	value, err := parseType(m.Value)
	if err != nil {
		return icebergType{}, err
	}
	return icebergType{kind: kMap, text: "map", fields: []field{
		{id: m.KeyID, name: "key", required: true, typ: key},
		{id: m.ValueID, name: "value", required: m.Required, typ: value},
	}}, nil
}

// present maps an explicit JSON null to nothing.
func present(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 || string(bytes.TrimSpace(raw)) == "null" {
		return nil
	}
	return raw
}

// opaqueDuckType is what a column of an unreadable type looks like to a query: a type
// that no result column may have, so that DESCRIBE refuses it by name.
const opaqueDuckType = `UNION("unreadable" BOOLEAN)`

var duckNames = map[kind]string{
	kBoolean: "BOOLEAN", kInt: "INTEGER", kLong: "BIGINT", kFloat: "FLOAT", kDouble: "DOUBLE",
	kDate: "DATE", kTime: "TIME", kTimestamp: "TIMESTAMP", kTimestamptz: "TIMESTAMP WITH TIME ZONE",
	kTimestampNS: "TIMESTAMP_NS", kTimestamptzNS: "TIMESTAMP WITH TIME ZONE", kString: "VARCHAR",
	kUUID: "UUID", kFixed: "BLOB", kBinary: "BLOB", kUnknown: "INTEGER", kOpaque: opaqueDuckType,
}

// duck returns the DuckDB type that t is read as.
func (t icebergType) duck() string {
	switch t.kind {
	case kDecimal:
		return fmt.Sprintf("DECIMAL(%d,%d)", t.precision, t.scale)
	case kStruct:
		parts := make([]string, len(t.fields))
		for i, f := range t.fields {
			parts[i] = quoteIdent(f.name) + " " + f.typ.duck()
		}
		return "STRUCT(" + strings.Join(parts, ", ") + ")"
	case kList:
		return t.fields[0].typ.duck() + "[]"
	case kMap:
		return "MAP(" + t.fields[0].typ.duck() + ", " + t.fields[1].typ.duck() + ")"
	default:
		return duckNames[t.kind]
	}
}

// opaque reports whether t holds a type that cannot be read.
func (t icebergType) opaque() (string, bool) {
	if t.kind == kOpaque {
		return t.text, true
	}
	for _, f := range t.fields {
		if s, ok := f.typ.opaque(); ok {
			return s, true
		}
	}
	return "", false
}

func quoteIdent(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }

// quoteString renders a VARCHAR literal. A NUL cannot be written in SQL text, so such a
// string travels as hexadecimal.
func quoteString(s string) string {
	if strings.IndexByte(s, 0) >= 0 {
		return fmt.Sprintf("decode(unhex('%x'))", s)
	}
	return "'" + strings.ReplaceAll(s, "'", "''") + "'"
}
