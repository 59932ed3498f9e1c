package scan

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/apache/iceberg-go"
	"github.com/google/uuid"
)

// literals reads what a predicate compares its column with.
func (p parser) literals(o op, t operand, raw json.RawMessage) ([]any, error) {
	if o.unary() {
		return nil, nil
	}
	raws := []json.RawMessage{raw}
	if o.set() {
		var err error
		if raws, err = elements(t, raw); err != nil {
			return nil, err
		}
	}
	lits := make([]any, 0, len(raws))
	for _, r := range raws {
		v, err := literal(t, r)
		if err != nil {
			return nil, err
		}
		lits = append(lits, v)
	}
	return lits, nil
}

// elements splits the values of a set: an array, or an object that gives them a type.
func elements(t operand, raw json.RawMessage) (raws []json.RawMessage, err error) {
	if raw = bytes.TrimSpace(raw); len(raw) > 0 && raw[0] == '{' {
		var n node
		if err := json.Unmarshal(raw, &n); err != nil || n.Type != "literals" {
			return nil, badFilter("values of %q are no array: %s", t.col.name, short(raw))
		}
		if err := checkDataType(t, n.DataType); err != nil {
			return nil, err
		}
		raw = n.Values
	}
	if err := json.Unmarshal(raw, &raws); err != nil || raws == nil {
		return nil, badFilter("values of %q are no array: %s", t.col.name, short(raw))
	}
	return raws, nil
}

// literal reads one value, bare or inside an object.
func literal(t operand, raw json.RawMessage) (any, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) > 0 && raw[0] == '{' {
		var n node
		if err := json.Unmarshal(raw, &n); err != nil || !strings.EqualFold(n.Type, "literal") {
			return nil, badFilter("%s is no literal", short(raw))
		}
		if err := checkDataType(t, n.DataType); err != nil {
			return nil, err
		}
		raw = n.Value
	}
	v, ok := parseValue(t.typ, raw)
	if !ok {
		return nil, badFilter("%s is no value of %q, which is %s", short(raw), t.col.name, t.typ)
	}
	return v, nil
}

// checkDataType refuses a literal whose own type is of another family than the column's,
// since its text would then mean something else.
func checkDataType(t operand, raw json.RawMessage) error {
	if absent(raw) {
		return nil
	}
	var name string
	if json.Unmarshal(raw, &name) == nil && family(name) == family(t.typ.String()) {
		return nil
	}
	return badFilter("a literal of type %s cannot be compared with %q, which is %s", short(raw), t.col.name, t.typ)
}

// family groups the types whose values compare with each other.
func family(name string) string {
	base, _, _ := strings.Cut(name, "(")
	base, _, _ = strings.Cut(base, "[")
	switch base {
	case "int", "long", "float", "double", "decimal":
		return "number"
	case "fixed", "binary":
		return "binary"
	default:
		return base
	}
}

// parseValue reads a value in Iceberg's JSON single-value form, and in the others that
// clients send.
func parseValue(typ iceberg.Type, raw json.RawMessage) (any, bool) {
	var text string
	quoted := len(raw) > 0 && raw[0] == '"'
	if quoted {
		if json.Unmarshal(raw, &text) != nil {
			return nil, false
		}
	} else {
		text = string(raw)
	}
	switch typ := typ.(type) {
	case iceberg.BooleanType:
		return text == "true", !quoted && (text == "true" || text == "false")
	case iceberg.Int32Type, iceberg.Int64Type:
		return parseInt(text)
	case iceberg.Float32Type, iceberg.Float64Type:
		return parseFloat(typ, text)
	case iceberg.DecimalType:
		return parseDecimal(text, typ.Scale())
	case iceberg.StringType:
		return text, quoted
	case iceberg.UUIDType:
		u, err := uuid.Parse(text)
		return [16]byte(u), quoted && err == nil && len(text) == 36
	case iceberg.FixedType:
		b, err := hex.DecodeString(text)
		return b, quoted && err == nil && len(b) == typ.Len()
	case iceberg.BinaryType:
		b, err := hex.DecodeString(text)
		return b, quoted && err == nil
	default:
		return parseTemporal(typ, text, quoted)
	}
}

func parseInt(text string) (any, bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err == nil {
		return n, true
	}
	r, ok := rational(text) // 5.0, 1e3
	if !ok || !r.IsInt() || !r.Num().IsInt64() {
		return nil, false
	}
	return r.Num().Int64(), true
}

// rational reads a decimal number exactly. The exponent is bounded, since it costs memory.
func rational(text string) (*big.Rat, bool) {
	const maxExponent = 400
	if strings.ContainsAny(text, "/xXpPbBoO_") {
		return nil, false
	}
	if _, exp, found := strings.Cut(strings.ToLower(text), "e"); found {
		n, err := strconv.Atoi(exp)
		if err != nil || n < -maxExponent || n > maxExponent {
			return nil, false
		}
	}
	return new(big.Rat).SetString(text)
}

// parseFloat rounds to the column's precision, as clients do before they compare.
func parseFloat(typ iceberg.Type, text string) (any, bool) {
	if _, ok := rational(text); !ok {
		return nil, false // NaN, infinity, hexadecimal
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, false
	}
	if _, single := typ.(iceberg.Float32Type); single && !math.IsInf(float64(float32(f)), 0) {
		f = float64(float32(f))
	}
	return f, true
}

func parseDecimal(text string, scale int) (any, bool) {
	r, ok := rational(text)
	if !ok {
		return nil, false
	}
	r.Mul(r, new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil)))
	return r.Num(), r.IsInt()
}

// parseTemporal reads dates and times: a text, or a number in the unit of the type. For
// nanoseconds a number is refused, since clients do not agree on its unit.
func parseTemporal(typ iceberg.Type, text string, quoted bool) (any, bool) {
	if !quoted {
		switch typ.(type) {
		case iceberg.DateType, iceberg.TimeType, iceberg.TimestampType, iceberg.TimestampTzType:
			n, err := strconv.ParseInt(text, 10, 64)
			return n, err == nil
		default:
			return nil, false
		}
	}
	switch typ.(type) {
	case iceberg.DateType:
		at, err := time.Parse(time.DateOnly, text)
		return floorDiv(at.Unix(), 86_400), err == nil
	case iceberg.TimeType:
		at, ok := parseTime([]string{"15:04:05", "15:04"}, text)
		return at.Sub(at.Truncate(24 * time.Hour)).Microseconds(), ok && at.Nanosecond()%1000 == 0
	case iceberg.TimestampType, iceberg.TimestampNsType:
		at, ok := parseTime(localStamps, text)
		return instant(typ, at, ok)
	case iceberg.TimestampTzType, iceberg.TimestampTzNsType:
		at, ok := parseTime(zonedStamps, text)
		if !ok { // PyIceberg leaves the offset out and means UTC
			at, ok = parseTime(localStamps, text)
		}
		return instant(typ, at, ok)
	default:
		return nil, false
	}
}

// Go's parser takes a fraction of a second after the seconds of every layout.
var (
	localStamps = []string{"2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05"}
	zonedStamps = []string{"2006-01-02T15:04:05Z07:00", "2006-01-02T15:04Z07:00", "2006-01-02 15:04:05Z07:00"}
)

func parseTime(layouts []string, text string) (time.Time, bool) {
	for _, l := range layouts {
		if at, err := time.Parse(l, text); err == nil {
			return at, true
		}
	}
	return time.Time{}, false
}

// instant counts the units of a timestamp type. A text that is finer than the type is
// refused: rounding would change what it selects.
func instant(typ iceberg.Type, at time.Time, ok bool) (any, bool) {
	if !ok {
		return nil, false
	}
	switch typ.(type) {
	case iceberg.TimestampType, iceberg.TimestampTzType:
		return at.UnixMicro(), at.Nanosecond()%1000 == 0
	default:
		const limit = 9_000_000_000 // seconds that fit as nanoseconds
		return at.UnixNano(), at.Unix() < limit && at.Unix() > -limit
	}
}
