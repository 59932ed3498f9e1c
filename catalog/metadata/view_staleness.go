package metadata

import (
	"encoding/json"
	"strconv"
	"strings"
)

// MaxStaleness returns the member max-staleness-ms as a JSON number or null, nil if it is
// absent. Writers that don't know the member drop it and keep the property, so the
// property answers for a missing member.
func (v *View) MaxStaleness() json.RawMessage {
	if raw := v.Member(maxStalenessMember); raw != nil {
		return raw
	}
	if text, ok := v.Property(maxStalenessMember); ok {
		if raw, err := stalenessFromProperty(text); err == nil {
			return raw
		}
	}
	return nil
}

// CheckMaxStaleness refuses a document whose member and property contradict each other,
// or whose member is no age. Registering a view needs it; commits keep the two in step.
func (v *View) CheckMaxStaleness() error {
	member := v.Member(maxStalenessMember)
	if err := checkStaleness(member); err != nil {
		return err
	}
	text, ok := v.Property(maxStalenessMember)
	if !ok {
		return nil
	}
	raw, err := stalenessFromProperty(text)
	if err != nil || member == nil {
		return err
	}
	if string(raw) != string(member) {
		return stalenessConflict(member, text)
	}
	return nil
}

func stalenessConflict(member json.RawMessage, property string) error {
	return invalid("Conflicting max-staleness-ms: the member is %s, the property is %q; send one of them or the same value in both",
		quoted(member), property)
}

// checkStaleness accepts null and a whole number of milliseconds; nil stands for absent.
func checkStaleness(raw json.RawMessage) error {
	if isNull(raw) {
		return nil
	}
	if n, ok := parseLong(raw); !ok || n < 0 {
		return invalid("Invalid max-staleness-ms: %s is neither null nor a number of milliseconds from 0 up", quoted(raw))
	}
	return nil
}

// stalenessFromProperty turns the property's text into the member's value.
func stalenessFromProperty(text string) (json.RawMessage, error) {
	if strings.EqualFold(text, unbounded) || text == "null" {
		return json.RawMessage("null"), nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return nil, invalid("Invalid view property max-staleness-ms: %q is neither %q nor a number of milliseconds from 0 up",
			quoted([]byte(text)), unbounded)
	}
	return longJSON(n), nil
}

func stalenessProperty(raw json.RawMessage) string {
	if isNull(raw) {
		return unbounded
	}
	return string(raw)
}

// SetMaxStaleness sets the member and the property; nil means any age.
func (v *View) SetMaxStaleness(ms *int64) error {
	raw := json.RawMessage("null")
	if ms != nil {
		raw = longJSON(*ms)
	}
	if err := checkStaleness(raw); err != nil {
		return err
	}
	v.putStaleness(raw)
	v.render()
	return nil
}

func (v *View) putStaleness(raw json.RawMessage) {
	v.touch(v.doc.set(maxStalenessMember, raw))
	if text, ok := v.Property(maxStalenessMember); ok {
		if old, err := stalenessFromProperty(text); err == nil && string(old) == string(raw) {
			return
		}
	}
	v.props.set(maxStalenessMember, stringJSON(stalenessProperty(raw)))
}

// RemoveMaxStaleness removes the member and the property.
func (v *View) RemoveMaxStaleness() {
	v.touch(v.doc.remove(maxStalenessMember))
	v.props.remove(maxStalenessMember)
	v.render()
}

// syncStaleness makes the member follow the property after properties were updated.
func (v *View) syncStaleness() error {
	text, ok := v.Property(maxStalenessMember)
	if !ok {
		v.touch(v.doc.remove(maxStalenessMember))
		return nil
	}
	raw, err := stalenessFromProperty(text)
	if err != nil {
		return err
	}
	v.touch(v.doc.set(maxStalenessMember, raw))
	return nil
}

// SetProperty sets one property; max-staleness-ms sets the member too.
func (v *View) SetProperty(key, value string) error {
	if old, ok := v.Property(key); ok && old == value {
		return nil
	}
	v.props.set(key, stringJSON(value))
	if key == maxStalenessMember {
		if err := v.syncStaleness(); err != nil {
			return err
		}
	}
	v.render()
	return nil
}

// RemoveProperty removes one property; max-staleness-ms removes the member too.
func (v *View) RemoveProperty(key string) {
	if key == maxStalenessMember {
		v.RemoveMaxStaleness()
		return
	}
	v.props.remove(key)
	v.render()
}

// SetStorageTable makes one version name st as its storage table, which turns the view
// into a materialized one as far as that version goes. Members of an existing storage
// table that this package does not know are kept.
func (v *View) SetStorageTable(versionID int, st StorageTable) error {
	if st.Name == "" {
		return invalid("Invalid storage table: its name is empty")
	}
	for i := range v.versions {
		if v.versions[i].id != int64(versionID) {
			continue
		}
		o, err := parseObject(v.versions[i].raw)
		if err != nil {
			return err
		}
		var table object
		if raw := o.raw("storage-table"); raw != nil {
			if table, err = parseObject(raw); err != nil {
				return err
			}
		}
		table.set("namespace", stringsJSON(st.Namespace))
		table.set("name", stringJSON(st.Name))
		if st.Catalog == "" {
			table.remove("catalog")
		} else {
			table.set("catalog", stringJSON(st.Catalog))
		}
		o.set("storage-table", table.bytes())
		v.versions[i].raw = o.bytes()
		v.render()
		return nil
	}
	return invalid("Cannot set the storage table of unknown version: %d", versionID)
}

func stringsJSON(list []string) json.RawMessage {
	out := make([]json.RawMessage, len(list))
	for i, s := range list {
		out[i] = stringJSON(s)
	}
	return joinArray(out)
}
