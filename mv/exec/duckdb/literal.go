package duckdb

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

var (
	integerRE = regexp.MustCompile(`^[+-]?\d+$`)
	numberRE  = regexp.MustCompile(`^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$`)
	plainNum  = regexp.MustCompile(`^[+-]?\d+(?:\.(\d+))?$`)
	uuidRE    = regexp.MustCompile(`^[0-9a-fA-F]{8}(-?[0-9a-fA-F]{4}){3}-?[0-9a-fA-F]{12}$`)
)

// literal renders a value in Iceberg's single-value JSON form as a DuckDB expression of
// exactly the type t. Dates and times may also be the integers that Iceberg stores.
func literal(t icebergType, raw json.RawMessage) (string, error) {
	raw = bytes.TrimSpace(raw)
	if present(raw) == nil || t.kind == kUnknown {
		return "CAST(NULL AS " + t.duck() + ")", nil
	}
	switch t.kind {
	case kStruct, kList, kMap:
		return nestedLiteral(t, raw)
	}
	text := string(raw)
	if raw[0] == '"' {
		if err := json.Unmarshal(raw, &text); err != nil {
			return "", fmt.Errorf("value %s: %w", raw, err)
		}
	}
	expr, err := primitiveLiteral(t, text)
	if err != nil {
		return "", fmt.Errorf("value %s is not a %s: %w", raw, t.text, err)
	}
	return "CAST(" + expr + " AS " + t.duck() + ")", nil
}

func primitiveLiteral(t icebergType, text string) (string, error) {
	switch t.kind {
	case kBoolean:
		if text == "true" || text == "false" {
			return text, nil
		}
	case kInt, kLong:
		bits := 64
		if t.kind == kInt {
			bits = 32
		}
		n, err := strconv.ParseInt(text, 10, bits)
		return quoteString(strconv.FormatInt(n, 10)), err
	case kFloat, kDouble:
		switch text {
		case "NaN", "Infinity", "-Infinity":
			return quoteString(text), nil
		}
		if numberRE.MatchString(text) {
			return quoteString(text), nil
		}
	case kDecimal:
		if m := plainNum.FindStringSubmatch(text); m != nil && len(m[1]) <= t.scale {
			return quoteString(text), nil
		}
	case kString:
		return quoteString(text), nil
	case kUUID:
		if uuidRE.MatchString(text) {
			return quoteString(text), nil
		}
	case kFixed, kBinary:
		if _, err := hex.DecodeString(text); err != nil {
			return "", err
		}
		return "unhex('" + text + "')", nil
	default:
		return temporalLiteral(t, text)
	}
	return "", fmt.Errorf("%q has the wrong form", text)
}

func temporalLiteral(t icebergType, text string) (string, error) {
	stored, err := storedTime(t.kind, text)
	if err != nil {
		return "", err
	}
	switch t.kind {
	case kDate:
		return fmt.Sprintf("(DATE '1970-01-01' + (%d)::INTEGER)", stored), nil
	case kTime:
		return fmt.Sprintf("(TIME '00:00:00' + to_microseconds(%d))", stored), nil
	case kTimestamp:
		return fmt.Sprintf("make_timestamp((%d)::BIGINT)", stored), nil
	case kTimestamptz:
		return fmt.Sprintf("make_timestamptz((%d)::BIGINT)", stored), nil
	case kTimestampNS:
		return fmt.Sprintf("make_timestamp_ns((%d)::BIGINT)", stored), nil
	case kTimestamptzNS:
		if stored%1000 != 0 {
			return "", fmt.Errorf("%s", finerThanMicros)
		}
		return fmt.Sprintf("make_timestamptz((%d)::BIGINT)", stored/1000), nil
	}
	return "", errors.New("no value of this type can be written")
}

// finerThanMicros explains the one refusal that a value and not a type causes.
const finerThanMicros = "it has nanoseconds below the microsecond, which DuckDB's TIMESTAMP WITH TIME ZONE cannot hold"

var timeLayouts = map[kind]string{
	kDate:          "2006-01-02",
	kTime:          "15:04:05.999999999",
	kTimestamp:     "2006-01-02T15:04:05.999999999",
	kTimestampNS:   "2006-01-02T15:04:05.999999999",
	kTimestamptz:   "2006-01-02T15:04:05.999999999Z07:00",
	kTimestamptzNS: "2006-01-02T15:04:05.999999999Z07:00",
}

// storedTime returns the integer that Iceberg stores for a date or a time: days,
// microseconds or nanoseconds.
func storedTime(k kind, text string) (int64, error) {
	if integerRE.MatchString(text) {
		return strconv.ParseInt(text, 10, 64)
	}
	layout := timeLayouts[k]
	at, err := time.Parse(layout, text)
	if err != nil && strings.Count(text, ":") == 1 {
		at, err = time.Parse(strings.Replace(layout, ":05.999999999", "", 1), text)
	}
	if err != nil {
		return 0, err
	}
	switch k {
	case kDate:
		return at.Unix() / 86400, nil
	case kTime:
		return at.Sub(time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)).Microseconds(), nil
	case kTimestampNS, kTimestamptzNS:
		return at.UnixNano(), nil
	}
	if at.Nanosecond()%1000 != 0 {
		return 0, fmt.Errorf("%q is finer than a microsecond", text)
	}
	return at.UnixMicro(), nil
}

func nestedLiteral(t icebergType, raw json.RawMessage) (string, error) {
	switch t.kind {
	case kStruct:
		var byID map[string]json.RawMessage
		if err := json.Unmarshal(raw, &byID); err != nil {
			return "", fmt.Errorf("value %s is not a struct: %w", raw, err)
		}
		parts := make([]string, len(t.fields))
		for i, f := range t.fields {
			v, ok := byID[strconv.Itoa(f.id)]
			if !ok {
				v = f.initial
			}
			expr, err := literal(f.typ, v)
			if err != nil {
				return "", err
			}
			parts[i] = quoteIdent(f.name) + " := " + expr
		}
		return "struct_pack(" + strings.Join(parts, ", ") + ")", nil
	case kList:
		return listLiteral(t.fields[0].typ, raw)
	default:
		var m struct {
			Keys   json.RawMessage `json:"keys"`
			Values json.RawMessage `json:"values"`
		}
		if err := json.Unmarshal(raw, &m); err != nil {
			return "", fmt.Errorf("value %s is not a map: %w", raw, err)
		}
		keys, err := listLiteral(t.fields[0].typ, m.Keys)
		if err != nil {
			return "", err
		}
		values, err := listLiteral(t.fields[1].typ, m.Values)
		return "map(" + keys + ", " + values + ")", err
	}
}

func listLiteral(elem icebergType, raw json.RawMessage) (string, error) {
	var items []json.RawMessage
	if err := json.Unmarshal(raw, &items); err != nil {
		return "", fmt.Errorf("value %s is not a list: %w", raw, err)
	}
	parts := make([]string, len(items))
	for i, item := range items {
		expr, err := literal(elem, item)
		if err != nil {
			return "", err
		}
		parts[i] = expr
	}
	return "CAST(list_value(" + strings.Join(parts, ", ") + ") AS " + elem.duck() + "[])", nil
}
