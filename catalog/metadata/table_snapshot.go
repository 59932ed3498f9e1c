package metadata

import (
	"encoding/json"
	"math"
	"slices"
)

// clockSkew is how far two writers' clocks may be apart before logs count as unsorted.
const clockSkew = 60_000

func (e *edit) addSnapshot(u *object) error {
	raw := u.raw("snapshot")
	if raw == nil {
		return invalid("Cannot parse missing field: snapshot")
	}
	o, err := parseObject(raw)
	if err != nil {
		return at(err, "snapshot")
	}
	if withoutNulls(&o) {
		raw = o.bytes()
	}
	s, err := parseSnapshot(raw)
	if err != nil {
		return at(err, "snapshot")
	}
	t := e.t
	if err := s.checkNew(&o, t.formatVersion); err != nil {
		return err
	}
	if err := e.admit(&s); err != nil {
		return err
	}
	if t.formatVersion > 1 {
		// Never back: Java readers refuse a document in which a snapshot is ahead of it.
		t.lastSequenceNumber = max(t.lastSequenceNumber, s.SequenceNumber)
	}
	t.snapshotIndex[s.ID] = len(t.snapshots)
	t.snapshots = append(t.snapshots, snapshotEntry{id: s.ID, seq: s.SequenceNumber, raw: raw})
	e.added[s.ID] = s.TimestampMS
	e.dirty.snapshots, e.dirty.scalars = true, true
	return nil
}

// admit checks a new snapshot against the table. What only a stale client gets wrong is
// a conflict: the same commit, rebased, will succeed.
func (e *edit) admit(s *Snapshot) error {
	t := e.t
	switch {
	case len(t.schemas) == 0:
		return invalid("Attempting to add a snapshot before a schema is added")
	case len(t.specs) == 0:
		return invalid("Attempting to add a snapshot before a partition spec is added")
	case len(t.orders) == 0:
		return invalid("Attempting to add a snapshot before a sort order is added")
	case t.hasSnapshot(s.ID):
		return invalid("Snapshot already exists for id: %d", s.ID)
	case t.formatVersion == 1 && s.SequenceNumber != 0:
		return invalid("Sequence number must be 0 in v1: %d", s.SequenceNumber)
	case t.formatVersion > 1 && s.SequenceNumber <= t.lastSequenceNumber && s.ParentID != nil:
		// Without a parent it replaces the table's data and orders nothing that was there
		// before: a replacement wins over the commits it did not see.
		return conflict("Validation failed, please retry: Cannot add snapshot with sequence number %d older than last sequence number %d",
			s.SequenceNumber, t.lastSequenceNumber)
	}
	if t.formatVersion < 3 {
		return nil
	}
	if s.FirstRowID == nil {
		return invalid("Cannot add a snapshot: first-row-id is null")
	}
	if *s.FirstRowID < t.nextRowID {
		return conflict("Validation failed, please retry: Cannot add a snapshot, first-row-id is behind table next-row-id: %d < %d",
			*s.FirstRowID, t.nextRowID)
	}
	if *s.AddedRows > math.MaxInt64-*s.FirstRowID {
		return invalid("Cannot add a snapshot: first-row-id %d + added-rows %d overflows", *s.FirstRowID, *s.AddedRows)
	}
	// A snapshot that left a gap has used ids up to the end of its own range.
	t.nextRowID = *s.FirstRowID + *s.AddedRows
	return nil
}

func (e *edit) setSnapshotRef(u *object) error {
	name, err := u.str("ref-name")
	if err != nil {
		return err
	}
	ref, err := refFrom(u)
	if err != nil {
		return err
	}
	if err := ref.check(); err != nil {
		return err
	}
	t := e.t
	extra := u.without("action", "ref-name", "snapshot-id", "type", "min-snapshots-to-keep", "max-snapshot-age-ms", "max-ref-age-ms")
	old := t.ref(name)
	var o object
	if old != nil {
		if o, err = parseObject(old.raw); err != nil {
			return err
		}
		if old.ref.equal(&ref) && coveredBy(extra, &o) {
			return nil
		}
	}
	if !t.hasSnapshot(ref.SnapshotID) {
		return invalid("Cannot set %s to unknown snapshot: %d", name, ref.SnapshotID)
	}
	if name == mainBranch && ref.Type != "branch" {
		return invalid("Cannot set %s to a tag, it must be a branch", mainBranch)
	}
	if name == mainBranch && (old == nil || !old.ref.equal(&ref)) {
		e.moveMain(ref.SnapshotID)
	}
	// Members of the old ref that we don't know stay: a writer that does not know them
	// either must not take them away by moving the branch.
	ref.write(&o)
	for _, m := range extra {
		o.set(m.name, m.raw)
	}
	if old != nil {
		old.ref, old.raw = ref, o.bytes()
	} else {
		t.refs = append(t.refs, refEntry{name: name, ref: ref, raw: o.bytes()})
	}
	e.dirty.refs = true
	return nil
}

// moveMain makes a snapshot current and notes it for the snapshot log. Going back to an
// older snapshot happens now, not when that snapshot was made.
func (e *edit) moveMain(id int64) {
	e.t.currentSnapshotID = id
	e.dirty.scalars = true
	e.mainSets = append(e.mainSets, id)
	when, isNew := e.added[id]
	if !isNew {
		when = e.now
	}
	var entry object
	entry.set("timestamp-ms", longJSON(when))
	entry.set("snapshot-id", longJSON(id))
	e.logged = append(e.logged, element{id: when, raw: entry.bytes()})
}

func (e *edit) removeSnapshotRef(u *object) error {
	name, err := u.str("ref-name")
	if err != nil {
		return err
	}
	e.dropRef(name)
	return nil
}

func (e *edit) dropRef(name string) {
	t := e.t
	i := slices.IndexFunc(t.refs, func(r refEntry) bool { return r.name == name })
	if i < 0 {
		return
	}
	t.refs = slices.Delete(slices.Clone(t.refs), i, i+1)
	e.dirty.refs = true
	if name == mainBranch {
		t.currentSnapshotID, e.dirty.scalars = -1, true
	}
}

// removeSnapshots drops snapshots, and with them their statistics and every ref that
// points at one. Ids that are gone already are no error.
func (e *edit) removeSnapshots(u *object) error {
	if u.raw("snapshot-ids") == nil {
		return invalid("Invalid set of snapshot ids to remove: must be non-null")
	}
	ids, err := u.longs("snapshot-ids")
	if err != nil {
		return err
	}
	t := e.t
	gone := make(map[int64]bool, len(ids))
	for _, id := range ids {
		if t.hasSnapshot(id) {
			gone[id] = true
		}
	}
	if len(gone) == 0 {
		return nil
	}
	rest := make(snapshotList, 0, len(t.snapshots))
	index := make(map[int64]int, len(t.snapshots))
	for i := range t.snapshots {
		if s := t.snapshots[i]; !gone[s.id] {
			index[s.id] = len(rest)
			rest = append(rest, s)
		}
	}
	t.snapshots, t.snapshotIndex = rest, index
	e.removedSnapshots, e.dirty.snapshots = true, true
	for _, name := range []string{"statistics", "partition-statistics"} {
		if err := e.dropStatistics(name, gone); err != nil {
			return err
		}
	}
	for _, r := range slices.Clone(t.refs) {
		if gone[r.ref.SnapshotID] {
			e.dropRef(r.name)
		}
	}
	return nil
}

// renderSnapshotLog appends the moves of main and rewrites history where Java does:
// snapshots that this commit passed through without ending on are not history, and a
// removed snapshot takes everything before it along, because a gap would make time
// travel answer wrongly.
func (e *edit) renderSnapshotLog() (bool, error) {
	t := e.t
	if len(e.logged) == 0 && !e.removedSnapshots {
		return false, nil
	}
	passing := map[int64]bool{}
	for _, id := range e.mainSets {
		if _, isNew := e.added[id]; isNew && id != t.currentSnapshotID {
			passing[id] = true
		}
	}
	raw := t.arrayOf("snapshot-log")
	if len(passing) == 0 && !e.removedSnapshots {
		return e.appendSnapshotLog(raw)
	}
	log, err := parseElements(raw, "timestamp-ms")
	if err != nil {
		return false, at(err, "snapshot-log")
	}
	log = append(log, e.logged...)
	var kept []element
	last := int64(-1)
	for _, entry := range log {
		o, err := parseObject(entry.raw)
		if err != nil {
			return false, err
		}
		id, err := o.long("snapshot-id")
		if err != nil {
			return false, at(err, "snapshot-log")
		}
		switch {
		case t.hasSnapshot(id) && !passing[id]:
			kept, last = append(kept, entry), id
		case !t.hasSnapshot(id) && e.removedSnapshots:
			kept, last = kept[:0], -1
		}
	}
	if len(kept) > 0 && t.hasSnapshot(t.currentSnapshotID) && last != t.currentSnapshotID {
		return false, invalid("Cannot set invalid snapshot log: latest entry is not the current snapshot")
	}
	if err := e.checkLogTimes(kept); err != nil {
		return false, err
	}
	return t.doc.set("snapshot-log", joinArray(raws(kept))), nil
}

// appendSnapshotLog adds the new entries without decoding the old ones, but for the last.
func (e *edit) appendSnapshotLog(raw json.RawMessage) (bool, error) {
	times := e.logged
	if last := lastElement(raw); last != nil {
		list, err := parseElements(joinArray([]json.RawMessage{last}), "timestamp-ms")
		if err != nil {
			return false, at(err, "snapshot-log")
		}
		times = slices.Concat(list, e.logged)
	}
	if err := e.checkLogTimes(times); err != nil {
		return false, err
	}
	for _, entry := range e.logged {
		raw = appendElement(raw, entry.raw)
	}
	return e.t.doc.set("snapshot-log", raw), nil
}

// lastElement finds the last object of an array of flat objects, nil if it is empty. A
// brace inside a string of an unknown member makes the caller parse the whole array.
func lastElement(raw json.RawMessage) json.RawMessage {
	for i, r := range slices.Backward(raw) {
		if r != '{' {
			continue
		}
		c := cursor{b: raw, i: i}
		if val, err := c.value(); err == nil && c.peek() == ']' {
			c.i++
			if c.end() == nil {
				return val
			}
		}
		list, err := parseArray(raw)
		if err != nil || len(list) == 0 {
			return nil
		}
		return list[len(list)-1]
	}
	return nil
}

// checkLogTimes keeps out entries that Java readers would take for a broken document.
func (e *edit) checkLogTimes(log []element) error {
	for i := 1; i < len(log); i++ {
		if log[i].id-log[i-1].id < -clockSkew {
			return invalid("Invalid snapshot timestamp %d: before last snapshot log entry at %d", log[i].id, log[i-1].id)
		}
	}
	if n := len(log); n > 0 && e.now-log[n-1].id < -clockSkew {
		return invalid("Invalid update timestamp %d: before last snapshot log entry at %d", e.now, log[n-1].id)
	}
	return nil
}
