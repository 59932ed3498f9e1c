package metadata

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
)

// member is one member of an object: the name as decoded and as written, and the bytes
// of its value.
type member struct {
	name string
	key  []byte // with quotes, as its writer spelled it
	raw  json.RawMessage
	list snapshotList // takes the place of raw in the one member too big to be copied twice
}

// object is an ordered list of members. Editing one member leaves the bytes and the
// order of the others alone. The zero value is an empty object.
type object struct {
	members []member
	byName  map[string]int // made on demand once there are many members
}

// mapThreshold is the number of members from which looking for duplicates is worth a map.
const mapThreshold = 24

// parseObject reads one JSON object. Two members of the same name are refused: readers
// disagree about which of them counts.
func parseObject(raw []byte) (object, error) {
	if len(raw) == 0 {
		return object{}, invalid("Cannot parse JSON: expected an object, got nothing")
	}
	if err := validText(raw); err != nil {
		return object{}, err
	}
	c := cursor{b: raw}
	var o object
	more, err := c.open('{', '}')
	if err != nil {
		return o, invalid("Cannot parse a non-object: %s", quoted(raw))
	}
	for more {
		key, err := c.key()
		if err != nil {
			return o, err
		}
		val, err := c.value()
		if err != nil {
			return o, err
		}
		o.members = append(o.members, member{name: unquote(key), key: key, raw: val})
		if more, err = c.more('}'); err != nil {
			return o, err
		}
	}
	if err := c.end(); err != nil {
		return o, err
	}
	return o, o.unique()
}

// unique reports a repeated member name.
func (o *object) unique() error {
	for i := range o.members {
		// In a map the last one of a name wins, in a scan the first: either way a
		// repeated name does not lead back to all of its members.
		if o.index(o.members[i].name) != i {
			return invalid("Cannot parse an object with duplicate member %q", quoted([]byte(o.members[i].name)))
		}
	}
	return nil
}

func (o *object) index(name string) int {
	if len(o.members) >= mapThreshold {
		if o.byName == nil {
			o.byName = make(map[string]int, len(o.members))
			for i := range o.members {
				o.byName[o.members[i].name] = i
			}
		}
		if i, ok := o.byName[name]; ok {
			return i
		}
		return -1
	}
	for i := range o.members {
		if o.members[i].name == name {
			return i
		}
	}
	return -1
}

// has reports whether the member exists, be it null.
func (o *object) has(name string) bool { return o.index(name) >= 0 }

// raw returns the member's value, nil if it is missing or null.
func (o *object) raw(name string) json.RawMessage {
	if i := o.index(name); i >= 0 && !isNull(o.members[i].raw) {
		return o.members[i].raw
	}
	return nil
}

// set replaces or appends a member and reports whether any byte changed.
func (o *object) set(name string, raw []byte) bool {
	if i := o.index(name); i >= 0 {
		if bytes.Equal(o.members[i].raw, raw) {
			return false
		}
		o.members[i].raw = raw
		return true
	}
	if o.byName != nil {
		o.byName[name] = len(o.members)
	}
	o.members = append(o.members, member{name: name, key: appendQuoted(nil, name), raw: raw})
	return true
}

// remove deletes a member and reports whether it was there.
func (o *object) remove(name string) bool {
	i := o.index(name)
	if i < 0 {
		return false
	}
	o.members = slices.Delete(o.members, i, i+1)
	o.byName = nil
	return true
}

// clone returns an object that can be edited without touching o.
func (o *object) clone() object { return object{members: slices.Clone(o.members)} }

// bytes renders the object in one allocation.
func (o *object) bytes() json.RawMessage {
	size := 2
	for i := range o.members {
		size += len(o.members[i].key) + 2 + len(o.members[i].raw) + o.members[i].list.size()
	}
	out := append(make([]byte, 0, size), '{')
	for i := range o.members {
		m := &o.members[i]
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(out, m.key...), ':')
		if m.list != nil {
			out = m.list.appendTo(out)
			continue
		}
		out = append(out, m.raw...)
	}
	return append(out, '}')
}

// str returns a required string member.
func (o *object) str(name string) (string, error) {
	i := o.index(name)
	if i < 0 {
		return "", invalid("Cannot parse missing string: %s", name)
	}
	raw := o.members[i].raw
	if len(raw) == 0 || raw[0] != '"' {
		return "", invalid("Cannot parse to a string value: %s: %s", name, quoted(raw))
	}
	return unquote(raw), nil
}

// optStr returns an optional string member.
func (o *object) optStr(name string) (string, error) {
	if o.raw(name) == nil {
		return "", nil
	}
	return o.str(name)
}

// long returns a required 64-bit integer member.
func (o *object) long(name string) (int64, error) {
	i := o.index(name)
	if i < 0 {
		return 0, invalid("Cannot parse missing long: %s", name)
	}
	n, ok := parseLong(o.members[i].raw)
	if !ok {
		return 0, invalid("Cannot parse to a long value: %s: %s", name, quoted(o.members[i].raw))
	}
	return n, nil
}

// optLong returns an optional 64-bit integer member, nil if missing or null.
func (o *object) optLong(name string) (*int64, error) {
	if o.raw(name) == nil {
		return nil, nil //nolint:nilnil // absent is a value here
	}
	n, err := o.long(name)
	return &n, err
}

// integer returns a required 32-bit integer member.
func (o *object) integer(name string) (int, error) {
	i := o.index(name)
	if i < 0 {
		return 0, invalid("Cannot parse missing int: %s", name)
	}
	n, ok := parseLong(o.members[i].raw)
	if !ok || n < math.MinInt32 || n > math.MaxInt32 {
		return 0, invalid("Cannot parse to an integer value: %s: %s", name, quoted(o.members[i].raw))
	}
	return int(n), nil
}

// optInt returns an optional 32-bit integer member, or otherwise if missing or null.
func (o *object) optInt(name string, otherwise int) (int, error) {
	if o.raw(name) == nil {
		return otherwise, nil
	}
	return o.integer(name)
}

// boolean returns a required boolean member.
func (o *object) boolean(name string) (bool, error) {
	i := o.index(name)
	if i < 0 {
		return false, invalid("Cannot parse missing boolean: %s", name)
	}
	switch string(o.members[i].raw) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, invalid("Cannot parse to a boolean value: %s: %s", name, quoted(o.members[i].raw))
}

// sub returns a required object member.
func (o *object) sub(name string) (object, error) {
	raw := o.raw(name)
	if raw == nil {
		return object{}, invalid("Cannot parse missing field: %s", name)
	}
	s, err := parseObject(raw)
	return s, at(err, "%s", name)
}

// array returns the elements of a required array member.
func (o *object) array(name string) ([]json.RawMessage, error) {
	raw := o.raw(name)
	if raw == nil {
		return nil, invalid("Cannot parse missing list: %s", name)
	}
	list, err := parseArray(raw)
	return list, at(err, "%s", name)
}

// longs returns a required array of 64-bit integers.
func (o *object) longs(name string) ([]int64, error) {
	list, err := o.array(name)
	if err != nil {
		return nil, err
	}
	out := make([]int64, len(list))
	for i, raw := range list {
		n, ok := parseLong(raw)
		if !ok {
			return nil, invalid("Cannot parse long from non-long value in %s: %s", name, quoted(raw))
		}
		out[i] = n
	}
	return out, nil
}

// ints returns a required array of 32-bit integers.
func (o *object) ints(name string) ([]int, error) {
	longs, err := o.longs(name)
	if err != nil {
		return nil, err
	}
	out := make([]int, len(longs))
	for i, n := range longs {
		if n < math.MinInt32 || n > math.MaxInt32 {
			return nil, invalid("Cannot parse integer from non-int value in %s: %d", name, n)
		}
		out[i] = int(n)
	}
	return out, nil
}

// strings returns a required array of strings.
func (o *object) strings(name string) ([]string, error) {
	list, err := o.array(name)
	if err != nil {
		return nil, err
	}
	out := make([]string, len(list))
	for i, raw := range list {
		if raw[0] != '"' {
			return nil, invalid("Cannot parse string from non-text value in %s: %s", name, quoted(raw))
		}
		out[i] = unquote(raw)
	}
	return out, nil
}

// stringMap returns a required object member whose values are all strings.
func (o *object) stringMap(name string) (object, error) {
	i := o.index(name)
	if i < 0 {
		return object{}, invalid("Cannot parse missing map: %s", name)
	}
	if raw := o.members[i].raw; len(raw) == 0 || raw[0] != '{' {
		return object{}, invalid("Cannot parse string map from non-object value: %s: %s", name, quoted(raw))
	}
	m, err := parseObject(o.members[i].raw)
	if err != nil {
		return m, at(err, "%s", name)
	}
	for i := range m.members {
		if m.members[i].raw[0] != '"' {
			return m, at(invalid("Cannot parse to a string value: %s: %s", m.members[i].name, quoted(m.members[i].raw)), "%s", name)
		}
	}
	return m, nil
}

// decodeStrings turns a string map into Go strings.
func (o *object) decodeStrings() map[string]string {
	out := make(map[string]string, len(o.members))
	for i := range o.members {
		out[o.members[i].name] = unquote(o.members[i].raw)
	}
	return out
}

// without returns the members whose names are not listed.
func (o *object) without(known ...string) []member {
	var rest []member
	for _, m := range o.members {
		if !slices.Contains(known, m.name) {
			rest = append(rest, m)
		}
	}
	return rest
}
