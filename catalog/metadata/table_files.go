package metadata

import (
	"encoding/json"
	"slices"
)

// Statistics and encryption keys: the arrays whose elements clients replace whole.

func (e *edit) setStatistics(u *object) error {
	o, err := u.sub("statistics")
	if err != nil {
		return err
	}
	for _, name := range []string{"file-size-in-bytes", "file-footer-size-in-bytes"} {
		if _, err := o.long(name); err != nil {
			return at(err, "statistics")
		}
	}
	blobs, err := o.array("blob-metadata")
	if err != nil {
		return at(err, "statistics")
	}
	for _, raw := range blobs {
		if err := checkBlob(raw); err != nil {
			return at(err, "blob-metadata")
		}
	}
	return e.putStatistics("statistics", &o, u.raw("statistics"))
}

func checkBlob(raw json.RawMessage) error {
	o, err := parseObject(raw)
	if err != nil {
		return err
	}
	if _, err := o.str("type"); err != nil {
		return err
	}
	if _, err := o.long("snapshot-id"); err != nil {
		return err
	}
	if _, err := o.long("sequence-number"); err != nil {
		return err
	}
	if _, err := o.ints("fields"); err != nil {
		return err
	}
	if o.has("properties") {
		_, err = o.stringMap("properties")
	}
	return err
}

func (e *edit) setPartitionStatistics(u *object) error {
	o, err := u.sub("partition-statistics")
	if err != nil {
		return err
	}
	if _, err := o.long("file-size-in-bytes"); err != nil {
		return at(err, "partition-statistics")
	}
	return e.putStatistics("partition-statistics", &o, u.raw("partition-statistics"))
}

// putStatistics replaces the file of a snapshot or adds it. That the snapshot exists is
// checked at the end, because clients may send the two updates in either order.
func (e *edit) putStatistics(name string, o *object, raw json.RawMessage) error {
	id, err := o.long("snapshot-id")
	if err != nil {
		return at(err, "%s", name)
	}
	if _, err := o.str("statistics-path"); err != nil {
		return at(err, "%s", name)
	}
	list, err := parseElements(e.t.arrayOf(name), "snapshot-id")
	if err != nil {
		return at(err, "%s", name)
	}
	e.statistics = append(e.statistics, id)
	if i := slices.IndexFunc(list, func(el element) bool { return el.id == id }); i >= 0 {
		if equalJSON(list[i].raw, raw) {
			return nil
		}
		list[i].raw = raw
	} else {
		list = append(list, element{id: id, raw: raw})
	}
	e.replaceArray(name, raws(list))
	return nil
}

// checkStatistics refuses statistics that would outlive any snapshot.
func (e *edit) checkStatistics() error {
	for _, id := range e.statistics {
		if _, isNew := e.added[id]; !isNew && !e.t.hasSnapshot(id) && !e.removedSnapshots {
			return invalid("Cannot set statistics for unknown snapshot: %d", id)
		}
	}
	if !e.removedSnapshots {
		return nil
	}
	for _, name := range []string{"statistics", "partition-statistics"} {
		list, err := parseElements(e.t.arrayOf(name), "snapshot-id")
		if err != nil {
			return at(err, "%s", name)
		}
		for _, el := range list {
			if slices.Contains(e.statistics, el.id) && !e.t.hasSnapshot(el.id) {
				return invalid("Cannot set statistics for unknown snapshot: %d", el.id)
			}
		}
	}
	return nil
}

func (e *edit) removeStatistics(u *object) error { return e.removeStatisticsOf("statistics", u) }

func (e *edit) removePartitionStatistics(u *object) error {
	return e.removeStatisticsOf("partition-statistics", u)
}

func (e *edit) removeStatisticsOf(name string, u *object) error {
	id, err := u.long("snapshot-id")
	if err != nil {
		return err
	}
	return e.dropStatistics(name, map[int64]bool{id: true})
}

// dropStatistics removes the files of the given snapshots; there need not be any.
func (e *edit) dropStatistics(name string, snapshots map[int64]bool) error {
	list, err := parseElements(e.t.arrayOf(name), "snapshot-id")
	if err != nil {
		return at(err, "%s", name)
	}
	rest := slices.DeleteFunc(list, func(el element) bool { return snapshots[el.id] })
	if len(rest) != len(list) {
		e.replaceArray(name, raws(rest))
	}
	return nil
}

func (e *edit) addEncryptionKey(u *object) error {
	o, err := u.sub("encryption-key")
	if err != nil {
		return err
	}
	if e.t.formatVersion < 3 {
		return invalid("Cannot add an encryption key: not supported until v3")
	}
	id, err := o.str("key-id")
	if err != nil {
		return at(err, "encryption-key")
	}
	if err := checkKey(&o); err != nil {
		return at(err, "encryption-key")
	}
	list, at, err := e.findKey(id)
	if err != nil || at >= 0 {
		return err
	}
	e.replaceArray("encryption-keys", append(list, u.raw("encryption-key")))
	return nil
}

func checkKey(o *object) error {
	if _, err := o.str("encrypted-key-metadata"); err != nil {
		return err
	}
	if _, err := o.optStr("encrypted-by-id"); err != nil {
		return err
	}
	if o.has("properties") {
		_, err := o.stringMap("properties")
		return err
	}
	return nil
}

func (e *edit) removeEncryptionKey(u *object) error {
	id, err := u.str("key-id")
	if err != nil {
		return err
	}
	list, at, err := e.findKey(id)
	if err != nil || at < 0 {
		return err
	}
	e.replaceArray("encryption-keys", slices.Delete(list, at, at+1))
	return nil
}

// findKey returns all keys and the position of one of them, -1 if it is not there.
func (e *edit) findKey(id string) ([]json.RawMessage, int, error) {
	list, err := parseArray(e.t.arrayOf("encryption-keys"))
	if err != nil {
		return nil, -1, at(err, "encryption-keys")
	}
	for i, raw := range list {
		o, err := parseObject(raw)
		if err != nil {
			return nil, -1, at(err, "encryption-keys")
		}
		if key, err := o.str("key-id"); err == nil && key == id {
			return list, i, nil
		}
	}
	return list, -1, nil
}
