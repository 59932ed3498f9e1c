package metadata

import (
	"encoding/json"
	"strings"
)

// requirement reads one requirement and its type.
func requirement(raw json.RawMessage) (object, string, error) {
	o, err := parseObject(raw)
	if err != nil {
		return o, "", at(err, "Cannot parse update requirement")
	}
	if o.raw("type") == nil {
		return o, "", invalid("Cannot parse update requirement. Missing field: type")
	}
	typ, err := o.str("type")
	return o, strings.ToLower(typ), err
}

// checkFunc tests one requirement against a table.
type checkFunc func(t *Table, o *object) error

var tableRequirements = map[string]checkFunc{
	"assert-create": func(*Table, *object) error { return conflict("Requirement failed: table already exists") },
	"assert-table-uuid": func(t *Table, o *object) error {
		uuid, err := o.str("uuid")
		if err == nil && !strings.EqualFold(uuid, t.uuid) {
			err = conflict("Requirement failed: UUID does not match: expected %s != %s", t.uuid, quoted([]byte(uuid)))
		}
		return err
	},
	"assert-ref-snapshot-id": (*Table).checkRef,
	"assert-last-assigned-field-id": func(t *Table, o *object) error {
		return checkNumber(o, "last-assigned-field-id", t.lastColumnID, "last assigned field id")
	},
	"assert-current-schema-id": func(t *Table, o *object) error {
		return checkNumber(o, "current-schema-id", t.currentSchemaID, "current schema")
	},
	"assert-last-assigned-partition-id": func(t *Table, o *object) error {
		return checkNumber(o, "last-assigned-partition-id", t.lastPartitionID, "last assigned partition id")
	},
	"assert-default-spec-id": func(t *Table, o *object) error {
		return checkNumber(o, "default-spec-id", t.defaultSpecID, "default partition spec")
	},
	"assert-default-sort-order-id": func(t *Table, o *object) error {
		return checkNumber(o, "default-sort-order-id", t.defaultOrderID, "default sort order")
	},
}

// Check tests the requirements of a commit and returns the first failure. A nil table
// means that there is none yet.
func (t *Table) Check(reqs []json.RawMessage) error {
	if t == nil {
		return CheckCreate(reqs)
	}
	for _, raw := range reqs {
		o, typ, err := requirement(raw)
		if err != nil {
			return err
		}
		check, ok := tableRequirements[typ]
		if !ok {
			return invalid("Unknown table requirement type: %s", quoted([]byte(typ)))
		}
		if err := check(t, &o); err != nil {
			return err
		}
	}
	return nil
}

func checkNumber(o *object, name string, actual int, what string) error {
	want, err := o.integer(name)
	if err != nil {
		return err
	}
	if want != actual {
		return conflict("Requirement failed: %s changed: expected id %d != %d", what, want, actual)
	}
	return nil
}

// checkRef treats an absent snapshot-id like null: some clients leave it out to say that
// the ref must not exist.
func (t *Table) checkRef(o *object) error {
	name, err := o.str("ref")
	if err != nil {
		return err
	}
	want, err := o.optLong("snapshot-id")
	if err != nil {
		return err
	}
	r := t.ref(name)
	switch {
	case r == nil && want != nil:
		return conflict("Requirement failed: branch or tag %s is missing, expected %d", name, *want)
	case r != nil && want == nil:
		return conflict("Requirement failed: %s %s was created concurrently", r.ref.Type, name)
	case r != nil && *want != r.ref.SnapshotID:
		return conflict("Requirement failed: %s %s has changed: expected id %d != %d", r.ref.Type, name, *want, r.ref.SnapshotID)
	}
	return nil
}

// IsCreate reports whether the requirements say that the commit creates the table.
func IsCreate(reqs []json.RawMessage) (bool, error) {
	for _, raw := range reqs {
		_, typ, err := requirement(raw)
		if err != nil {
			return false, err
		}
		if typ == "assert-create" {
			return true, nil
		}
	}
	return false, nil
}

// CheckCreate tests the requirements of a commit to a table that does not exist: all
// that can hold is that it has to be created.
func CheckCreate(reqs []json.RawMessage) error {
	for _, raw := range reqs {
		_, typ, err := requirement(raw)
		if err != nil {
			return err
		}
		if typ == "assert-create" {
			continue
		}
		if _, ok := tableRequirements[typ]; !ok {
			return invalid("Unknown table requirement type: %s", quoted([]byte(typ)))
		}
		return invalid("Invalid create requirements: %s can't hold for a table that does not exist", typ)
	}
	return nil
}
