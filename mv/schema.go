package mv

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// field is a column of an Iceberg schema.
type field struct {
	ID       int             `json:"id"`
	Name     string          `json:"name"`
	Type     json.RawMessage `json:"type"`
	Required bool            `json:"required"`
	Doc      string          `json:"doc,omitempty"`
}

func schemaFields(raw json.RawMessage) ([]field, error) {
	var s struct {
		Fields []field `json:"fields"`
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, ErrInput("the schema cannot be read: %v", err)
	}
	return s.Fields, nil
}

// typeText is the text form of an Iceberg type: a name for a primitive, JSON for a nested
// type.
func typeText(raw json.RawMessage) string {
	var name string
	if json.Unmarshal(raw, &name) == nil {
		return name
	}
	return string(raw)
}

// typeJSON is the inverse of typeText.
func typeJSON(t string) (json.RawMessage, error) {
	if strings.HasPrefix(t, "{") {
		return json.RawMessage(t), nil
	}
	return json.Marshal(t)
}

// sameType compares two types in text form, nested ones without their field ids.
func sameType(a, b string) bool {
	return normalType(a) == normalType(b)
}

func normalType(t string) string {
	if len(t) == 0 || t[0] != '{' {
		return compact(t)
	}
	var v any
	if json.Unmarshal([]byte(t), &v) != nil {
		return t
	}
	out, err := json.Marshal(withoutIDs(v))
	if err != nil {
		return t
	}
	return string(out)
}

// withoutIDs drops the ids of nested fields: they belong to a table, not to a type.
func withoutIDs(v any) any {
	switch x := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, e := range x {
			if !slices.Contains([]string{"id", "element-id", "key-id", "value-id", "doc"}, k) {
				out[k] = withoutIDs(e)
			}
		}
		return out
	case []any:
		out := make([]any, len(x))
		for i, e := range x {
			out[i] = withoutIDs(e)
		}
		return out
	case string:
		return compact(x)
	}
	return v
}

// compact drops the spaces of "decimal(38, 0)".
func compact(t string) string {
	return strings.ReplaceAll(t, " ", "")
}

// castable reports whether values that the engine computes as one type can be stored as
// another without ever changing one: a checked cast keeps a value or fails.
func castable(from, to string) bool {
	if sameType(from, to) {
		return true
	}
	switch compact(from) + ">" + compact(to) {
	case "float>double", "int>double", "date>timestamp", "date>timestamp_ns", "timestamp>timestamp_ns", "timestamptz>timestamptz_ns":
		return true
	}
	scaleFrom, okFrom := exactScale(from)
	scaleTo, okTo := exactScale(to)
	if okFrom && okTo {
		return scaleTo >= scaleFrom // a smaller scale would round
	}
	return bytesType(from) && bytesType(to)
}

// exactScale is the number of decimals of an exact number type.
func exactScale(t string) (scale int, ok bool) {
	if t == "int" || t == "long" {
		return 0, true
	}
	var precision int
	n, err := fmt.Sscanf(compact(t), "decimal(%d,%d)", &precision, &scale)
	return scale, err == nil && n == 2
}

func bytesType(t string) bool { return t == "binary" || strings.HasPrefix(t, "fixed") }
