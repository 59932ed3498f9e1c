package metadata

import (
	"encoding/json"
	"math"
	"strings"
)

// parseRef reads a branch or tag; Java's limits on retention apply.
func parseRef(raw json.RawMessage) (Ref, error) {
	o, err := parseObject(raw)
	if err != nil {
		return Ref{}, err
	}
	return refFrom(&o)
}

// refFrom reads the members of a ref out of a ref or a set-snapshot-ref update.
func refFrom(o *object) (r Ref, err error) {
	if r.SnapshotID, err = o.long("snapshot-id"); err != nil {
		return r, err
	}
	if r.Type, err = o.str("type"); err != nil {
		return r, err
	}
	if r.Type = strings.ToLower(r.Type); r.Type != "branch" && r.Type != "tag" {
		return r, invalid("Invalid snapshot ref type: %s", quoted([]byte(r.Type)))
	}
	if r.MinSnapshotsToKeep, err = o.optLong("min-snapshots-to-keep"); err != nil {
		return r, err
	}
	if r.MaxSnapshotAgeMS, err = o.optLong("max-snapshot-age-ms"); err != nil {
		return r, err
	}
	r.MaxRefAgeMS, err = o.optLong("max-ref-age-ms")
	return r, err
}

// check validates a ref that is being set.
func (r *Ref) check() error {
	tag := r.Type == "tag"
	switch {
	case tag && r.MinSnapshotsToKeep != nil:
		return invalid("Tags do not support setting minSnapshotsToKeep")
	case tag && r.MaxSnapshotAgeMS != nil:
		return invalid("Tags do not support setting maxSnapshotAgeMs")
	case r.MinSnapshotsToKeep != nil && (*r.MinSnapshotsToKeep <= 0 || *r.MinSnapshotsToKeep > math.MaxInt32):
		return invalid("Min snapshots to keep must be greater than 0")
	case r.MaxSnapshotAgeMS != nil && *r.MaxSnapshotAgeMS <= 0:
		return invalid("Max snapshot age must be greater than 0 ms")
	case r.MaxRefAgeMS != nil && *r.MaxRefAgeMS <= 0:
		return invalid("Max reference age must be greater than 0")
	}
	return nil
}

// equal compares two refs by what the format defines.
func (r *Ref) equal(o *Ref) bool {
	same := func(a, b *int64) bool { return a == b || (a != nil && b != nil && *a == *b) }
	return r.SnapshotID == o.SnapshotID && r.Type == o.Type && same(r.MinSnapshotsToKeep, o.MinSnapshotsToKeep) &&
		same(r.MaxSnapshotAgeMS, o.MaxSnapshotAgeMS) && same(r.MaxRefAgeMS, o.MaxRefAgeMS)
}

func refJSON(r Ref) json.RawMessage {
	var o object
	r.write(&o)
	return o.bytes()
}

// write puts the members of r into o, leaving members it does not know in place.
func (r *Ref) write(o *object) {
	o.set("snapshot-id", longJSON(r.SnapshotID))
	o.set("type", stringJSON(r.Type))
	for _, m := range []struct {
		name string
		val  *int64
	}{
		{"min-snapshots-to-keep", r.MinSnapshotsToKeep},
		{"max-snapshot-age-ms", r.MaxSnapshotAgeMS},
		{"max-ref-age-ms", r.MaxRefAgeMS},
	} {
		if m.val == nil {
			o.remove(m.name)
		} else {
			o.set(m.name, longJSON(*m.val))
		}
	}
}
