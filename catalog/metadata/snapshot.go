package metadata

import (
	"encoding/json"
	"slices"
)

// snapshotEntry is a snapshot as the document scan leaves it: its bytes and the two
// numbers that every commit needs. The rest is decoded on demand.
type snapshotEntry struct {
	id  int64
	seq int64
	raw json.RawMessage
}

// snapshotList renders as the member "snapshots"; nil means that there is none.
type snapshotList []snapshotEntry

func (l snapshotList) size() int {
	n := 2
	for i := range l {
		n += len(l[i].raw) + 1
	}
	return n
}

func (l snapshotList) appendTo(dst []byte) []byte {
	dst = append(dst, '[')
	for i := range l {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, l[i].raw...)
	}
	return append(dst, ']')
}

// scanSnapshots walks the array under the cursor once, validating it and picking the
// header fields out on the way.
func scanSnapshots(c *cursor) (snapshotList, error) {
	list := snapshotList{}
	more, err := c.open('[', ']')
	if err != nil {
		return nil, invalid("Cannot parse snapshots from non-array")
	}
	for more {
		e, err := scanSnapshot(c)
		if err != nil {
			return nil, err
		}
		list = append(list, e)
		if more, err = c.more(']'); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func scanSnapshot(c *cursor) (snapshotEntry, error) {
	c.space()
	start := c.i
	var e snapshotEntry
	hasID := false
	more, err := c.open('{', '}')
	if err != nil {
		return e, err
	}
	for more {
		key, err := c.key()
		if err != nil {
			return e, err
		}
		val, err := c.value()
		if err != nil {
			return e, err
		}
		switch headerName(key) {
		case "snapshot-id":
			if e.id, hasID = parseLong(val); !hasID {
				return e, invalid("Cannot parse to a long value: snapshot-id: %s", quoted(val))
			}
		case "sequence-number":
			seq, ok := parseLong(val)
			if !ok && !isNull(val) {
				return e, invalid("Cannot parse to a long value: sequence-number: %s", quoted(val))
			}
			e.seq = seq
		}
		if more, err = c.more('}'); err != nil {
			return e, err
		}
	}
	if !hasID {
		return e, invalid("Cannot parse missing long: snapshot-id")
	}
	e.raw = c.b[start:c.i:c.i]
	return e, nil
}

// headerName decodes a member name; names without escapes, which is all of them in
// practice, are compared without an allocation.
func headerName(key []byte) string {
	switch string(key) {
	case `"snapshot-id"`:
		return "snapshot-id"
	case `"sequence-number"`:
		return "sequence-number"
	}
	if slices.Contains(key, '\\') {
		return unquote(key)
	}
	return ""
}

// Snapshot is one decoded snapshot.
type Snapshot struct {
	ID             int64
	ParentID       *int64
	SequenceNumber int64
	TimestampMS    int64
	ManifestList   string
	SchemaID       *int
	FirstRowID     *int64
	AddedRows      *int64
	Summary        map[string]string // with "operation"
	Raw            json.RawMessage
}

// Operation is the summary's operation, "overwrite" if there is none, as Java reads it.
func (s *Snapshot) Operation() string {
	if op, ok := s.Summary["operation"]; ok {
		return op
	}
	return "overwrite"
}

// parseSnapshot decodes a snapshot and checks what Java checks.
func parseSnapshot(raw json.RawMessage) (Snapshot, error) {
	s := Snapshot{Raw: raw}
	o, err := parseObject(raw)
	if err != nil {
		return s, err
	}
	if s.ID, err = o.long("snapshot-id"); err != nil {
		return s, err
	}
	if s.TimestampMS, err = o.long("timestamp-ms"); err != nil {
		return s, err
	}
	if seq, err := o.optLong("sequence-number"); err != nil {
		return s, err
	} else if seq != nil {
		s.SequenceNumber = *seq
	}
	if s.ManifestList, err = o.optStr("manifest-list"); err != nil {
		return s, err
	}
	if o.raw("schema-id") != nil {
		id, err := o.integer("schema-id")
		if err != nil {
			return s, err
		}
		s.SchemaID = &id
	}
	for name, to := range map[string]**int64{"parent-snapshot-id": &s.ParentID, "first-row-id": &s.FirstRowID, "added-rows": &s.AddedRows} {
		if *to, err = o.optLong(name); err != nil {
			return s, err
		}
	}
	if o.raw("summary") != nil {
		m, err := o.stringMap("summary")
		if err != nil {
			return s, err
		}
		s.Summary = m.decodeStrings()
	}
	return s, nil
}

// checkNew validates what only a snapshot that is being added must satisfy.
func (s *Snapshot) checkNew(o *object, formatVersion int) error {
	if s.ID < 0 {
		return invalid("Invalid snapshot id (cannot be negative): %d", s.ID)
	}
	if s.SequenceNumber < 0 {
		return invalid("Invalid sequence number (cannot be negative): %d", s.SequenceNumber)
	}
	if s.FirstRowID != nil && *s.FirstRowID < 0 {
		return invalid("Invalid first-row-id (cannot be negative): %d", *s.FirstRowID)
	}
	if s.AddedRows != nil && *s.AddedRows < 0 {
		return invalid("Invalid added-rows (cannot be negative): %d", *s.AddedRows)
	}
	if s.FirstRowID != nil && s.AddedRows == nil {
		return invalid("Invalid added-rows (required when first-row-id is set): null")
	}
	if s.ManifestList == "" {
		if formatVersion > 1 {
			return invalid("Cannot add snapshot %d: manifest-list is missing", s.ID)
		}
		if _, err := o.strings("manifests"); err != nil {
			return err
		}
	}
	if s.Summary != nil && s.Summary["operation"] == "" && len(s.Summary) > 0 {
		return invalid("Cannot add snapshot %d: its summary has no operation", s.ID)
	}
	if _, err := o.optStr("key-id"); err != nil {
		return err
	}
	return nil
}

// withoutNulls drops optional members that are null: Java reads a null
// parent-snapshot-id as an error, not as absent, so the table could no longer be opened.
func withoutNulls(o *object) bool {
	dropped := false
	for _, name := range []string{
		"parent-snapshot-id", "sequence-number", "summary", "manifest-list", "manifests",
		"schema-id", "first-row-id", "added-rows", "key-id",
	} {
		if o.has(name) && o.raw(name) == nil {
			dropped = o.remove(name) || dropped
		}
	}
	return dropped
}
