package metadata

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
)

// parseArray returns the elements of one JSON array.
func parseArray(raw []byte) ([]json.RawMessage, error) {
	c := cursor{b: raw}
	more, err := c.open('[', ']')
	if err != nil {
		return nil, invalid("Cannot parse a non-array: %s", quoted(raw))
	}
	var list []json.RawMessage
	for more {
		val, err := c.value()
		if err != nil {
			return nil, err
		}
		list = append(list, val)
		if more, err = c.more(']'); err != nil {
			return nil, err
		}
	}
	return list, c.end()
}

// joinArray renders elements as an array.
func joinArray(list []json.RawMessage) json.RawMessage {
	out := append(make([]byte, 0, 64), '[')
	for i, raw := range list {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, raw...)
	}
	return append(out, ']')
}

// appendElement returns the array raw with one more element, copying its text as it is.
func appendElement(raw, element []byte) json.RawMessage {
	body := bytes.TrimRight(raw, " \t\r\n")
	body = bytes.TrimRight(body[:len(body)-1], " \t\r\n") // without the closing bracket
	out := append(make([]byte, 0, len(body)+len(element)+2), body...)
	if len(body) > 1 {
		out = append(out, ',')
	}
	return append(append(out, element...), ']')
}

func isNull(raw []byte) bool { return len(raw) == 0 || string(raw) == "null" }

// parseLong reads an integer exactly; fractions and exponents are refused.
func parseLong(raw []byte) (int64, bool) {
	n, err := strconv.ParseInt(string(raw), 10, 64)
	return n, err == nil && raw[0] != '+'
}

func longJSON(n int64) json.RawMessage { return strconv.AppendInt(nil, n, 10) }

func intJSON(n int) json.RawMessage { return longJSON(int64(n)) }

func stringJSON(s string) json.RawMessage { return appendQuoted(nil, s) }

// unquote decodes a JSON string that the cursor has validated.
func unquote(raw []byte) string {
	if len(raw) < 2 {
		return ""
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1])
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return string(raw[1 : len(raw)-1]) // unreachable: the text was validated
	}
	return s
}

// appendQuoted writes s as a JSON string, leaving everything that need not be escaped.
func appendQuoted(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for _, r := range s { // invalid UTF-8 comes out as U+FFFD
		switch {
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r == '\n':
			dst = append(dst, '\\', 'n')
		case r == '\t':
			dst = append(dst, '\\', 't')
		case r == '\r':
			dst = append(dst, '\\', 'r')
		case r < 0x20:
			dst = append(dst, '\\', 'u', '0', '0', hex[r>>4], hex[r&0xF])
		default:
			dst = append(dst, string(r)...)
		}
	}
	return append(dst, '"')
}

// equalJSON compares two values as JSON, with numbers compared as written: 1 and 1.0
// differ, which at worst keeps a second copy of something equal.
func equalJSON(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	if len(a) == 0 || len(b) == 0 || a[0] != b[0] {
		return false
	}
	switch a[0] {
	case '"':
		return unquote(a) == unquote(b)
	case '[':
		x, errX := parseArray(a)
		y, errY := parseArray(b)
		return errX == nil && errY == nil && slices.EqualFunc(x, y, func(p, q json.RawMessage) bool { return equalJSON(p, q) })
	case '{':
		x, errX := parseObject(a)
		y, errY := parseObject(b)
		return errX == nil && errY == nil && len(x.members) == len(y.members) && coveredBy(x.members, &y)
	}
	return false
}

// coveredBy reports whether o has every member of list with an equal value. It decides
// whether an existing element may stand in for one that a client sent: only if nothing
// the client said, known to us or not, would be lost.
func coveredBy(list []member, o *object) bool {
	for i := range list {
		j := o.index(list[i].name)
		if j < 0 || !equalJSON(list[i].raw, o.members[j].raw) {
			return false
		}
	}
	return true
}
