package metadata

import (
	"encoding/json"
	"math"
	"regexp"
	"strconv"
	"strings"
)

var (
	decimalType   = regexp.MustCompile(`^decimal\(\s*(\d+)\s*,\s*(\d+)\s*\)$`)
	fixedType     = regexp.MustCompile(`^fixed\[\s*(\d+)\s*\]$`)
	geoType       = regexp.MustCompile(`(?i)^(geometry|geography)\s*(\(.*\))?$`)
	widthFunction = regexp.MustCompile(`^(\w+)\[(\d+)\]$`)
	hexText       = regexp.MustCompile(`^([0-9a-fA-F]{2})*$`)
	uuidText      = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)
	decimalText   = regexp.MustCompile(`^[+-]?\d+(\.\d*)?([eE][+-]?\d+)?$`)
	dateText      = regexp.MustCompile(`^[+-]?\d{4,6}-\d{2}-\d{2}$`)
	timeText      = regexp.MustCompile(`^\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?$`)
	stampText     = regexp.MustCompile(`^[+-]?\d{4,6}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?$`)
	stampZoneText = regexp.MustCompile(`^[+-]?\d{4,6}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2})$`)
)

// minVersions holds the first format version that allows a primitive type, for the
// types that version 1 did not have.
var minVersions = map[string]int{
	"timestamp_ns": 3, "timestamptz_ns": 3, "variant": 3, "unknown": 3, "geometry": 3, "geography": 3,
}

var plainTypes = map[string]bool{
	"boolean": true, "int": true, "long": true, "float": true, "double": true, "date": true, "time": true,
	"timestamp": true, "timestamptz": true, "timestamp_ns": true, "timestamptz_ns": true, "string": true,
	"uuid": true, "binary": true, "unknown": true, "variant": true,
}

// primitive is a primitive type: its family without parameters, and a spelling that two
// equal types share.
type primitive struct {
	base  string
	text  string
	scale int // decimal: digits after the point; fixed: length in bytes
}

// parsePrimitive reads a type name. A type this server does not know is refused: other
// readers would not be able to open the table.
func parsePrimitive(text string) (primitive, error) {
	lower := strings.ToLower(text)
	if plainTypes[lower] {
		return primitive{base: lower, text: lower}, nil
	}
	if m := decimalType.FindStringSubmatch(lower); m != nil {
		p, errP := strconv.Atoi(m[1])
		s, errS := strconv.Atoi(m[2])
		if errP != nil || errS != nil || p > 38 || p == 0 {
			return primitive{}, invalid("Decimals with precision larger than 38 are not supported: %s", quoted([]byte(text)))
		}
		return primitive{base: "decimal", text: "decimal(" + m[1] + "," + m[2] + ")", scale: s}, nil
	}
	if m := fixedType.FindStringSubmatch(lower); m != nil {
		n, err := strconv.Atoi(m[1])
		if err != nil || n > math.MaxInt32 {
			return primitive{}, invalid("Cannot parse type string to primitive: %s", quoted([]byte(text)))
		}
		return primitive{base: "fixed", text: "fixed[" + m[1] + "]", scale: n}, nil
	}
	if m := geoType.FindStringSubmatch(text); m != nil {
		base := strings.ToLower(m[1])
		return primitive{base: base, text: base + strings.ReplaceAll(m[2], " ", "")}, nil
	}
	return primitive{}, invalid("Cannot parse type string to primitive: %s", quoted([]byte(text)))
}

// checkDefault tests that a default value can be read back as a value of type p.
func (p primitive) checkDefault(raw json.RawMessage) bool {
	switch p.base {
	case "boolean":
		return string(raw) == "true" || string(raw) == "false"
	case "int":
		n, ok := parseLong(raw)
		return ok && n >= math.MinInt32 && n <= math.MaxInt32
	case "long":
		_, ok := parseLong(raw)
		return ok
	case "float", "double":
		return raw[0] == '-' || (raw[0] >= '0' && raw[0] <= '9')
	case "unknown", "variant", "geometry", "geography":
		return false // only null, which the caller has dealt with
	}
	return raw[0] == '"' && p.checkTextDefault(unquote(raw))
}

func (p primitive) checkTextDefault(s string) bool {
	switch p.base {
	case "decimal":
		return decimalText.MatchString(s)
	case "date":
		return dateText.MatchString(s)
	case "time":
		return timeText.MatchString(s)
	case "timestamp", "timestamp_ns":
		return stampText.MatchString(s)
	case "timestamptz", "timestamptz_ns":
		return stampZoneText.MatchString(s)
	case "uuid":
		return uuidText.MatchString(s)
	case "fixed":
		return hexText.MatchString(s) && len(s) == 2*p.scale
	case "binary":
		return hexText.MatchString(s)
	}
	return true // string
}

// normalTransform spells a transform so that two equal ones compare equal. Names this
// package does not know are legal and kept as they are.
func normalTransform(text string) string {
	lower := strings.ToLower(text)
	switch lower {
	case "identity", "year", "month", "day", "hour", "void":
		return lower
	}
	if m := widthFunction.FindStringSubmatch(lower); m != nil && (m[1] == "bucket" || m[1] == "truncate") {
		return lower
	}
	return text
}

const voidTransform = "void"

// checkTransform tests whether a transform can be applied to a primitive type.
func checkTransform(transform string, p primitive) error {
	name := normalTransform(transform)
	if m := widthFunction.FindStringSubmatch(name); m != nil && (m[1] == "bucket" || m[1] == "truncate") {
		if n, err := strconv.ParseInt(m[2], 10, 32); err != nil || n <= 0 {
			return invalid("Invalid transform, its parameter must be a positive int: %s", quoted([]byte(transform)))
		}
		name = m[1]
	}
	ok := true
	switch name {
	case "identity":
		ok = p.base != "variant" && p.base != "geometry" && p.base != "geography"
	case "year", "month", "day":
		ok = p.base == "date" || strings.HasPrefix(p.base, "timestamp")
	case "hour":
		ok = strings.HasPrefix(p.base, "timestamp")
	case "bucket":
		switch p.base {
		case "boolean", "float", "double", "unknown", "variant", "geometry", "geography":
			ok = false
		}
	case "truncate":
		switch p.base {
		case "int", "long", "decimal", "string", "binary":
		default:
			ok = false
		}
	}
	if !ok {
		return invalid("Invalid source type %s for transform: %s", p.text, quoted([]byte(transform)))
	}
	return nil
}
