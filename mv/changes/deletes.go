package changes

import (
	"context"
	"slices"
	"strings"

	"github.com/apache/iceberg-go"
)

const filePathFieldID = 2147483546 // of a position delete file

// isVector tells a deletion vector from a position delete file.
func isVector(file iceberg.DataFile) bool { return file.FileFormat() == iceberg.PuffinFile }

// Target returns the one data file that a position delete file or deletion vector names;
// empty if it may name several, or is an equality delete.
func Target(file iceberg.DataFile) string {
	if file.ContentType() != iceberg.EntryContentPosDeletes {
		return ""
	}
	return target(file)
}

func target(file iceberg.DataFile) string {
	if ref := file.ReferencedDataFile(); ref != nil && *ref != "" {
		return *ref
	}
	lo, hi := file.LowerBoundValues()[filePathFieldID], file.UpperBoundValues()[filePathFieldID]
	if len(lo) > 0 && string(lo) == string(hi) { // a truncated upper bound is rounded up, so equal bounds are whole
		return string(lo)
	}
	return ""
}

// mayName reports whether the rows of a position delete file may name path.
func mayName(file iceberg.DataFile, path string) bool {
	lo, hi := file.LowerBoundValues()[filePathFieldID], file.UpperBoundValues()[filePathFieldID]
	return (lo == nil || strings.Compare(string(lo), path) <= 0) && (hi == nil || strings.Compare(string(hi), path) >= 0)
}

// applies is the scoping rule of the specification for deletes that name no single file.
func applies(del, data *entry) bool {
	unknown := del.seq < 0 || data.seq < 0
	if del.file.ContentType() == iceberg.EntryContentEqDeletes {
		return (unknown || data.seq < del.seq) && (del.spec.unpartitioned || del.key == data.key)
	}
	return (unknown || data.seq <= del.seq) && del.key == data.key && mayName(del.file, data.file.FilePath())
}

// matches is applies with the key bounds of equality deletes: a file that holds none of
// the deleted keys is not hit, although the delete is in its scope.
func (d *document) matches(del, data *entry) bool {
	if !applies(del, data) {
		return false
	}
	if del.file.ContentType() != iceberg.EntryContentEqDeletes {
		return true
	}
	for _, id := range del.file.EqualityFieldIDs() {
		typ := d.columnType(id)
		if typ == nil || !hasBounds(typ) {
			continue
		}
		c := column{id: id, typ: typ, bounded: true}
		if keys, values := c.ofFile(del), c.ofFile(data); !keys.meets(values) {
			return false
		}
	}
	return true
}

// meets reports whether two pieces of a column may share a value; NULL equals NULL here.
func (p piece) meets(o piece) bool {
	if p.unknown || o.unknown || (p.null && o.null) {
		return true
	}
	if p.ranges == nil || o.ranges == nil {
		return false
	}
	before, ok := Compare(p.ranges.Hi, o.ranges.Lo)
	after, ok2 := Compare(p.ranges.Lo, o.ranges.Hi)
	return (!ok || before >= 0) && (!ok2 || after <= 0)
}

// touchDelete touches the rows that a delete removes, or gave back when it went.
func (w *walk) touchDelete(ctx context.Context, d *delta, del *entry) error {
	var open []*collector // columns for which the delete itself does not say enough
	for _, c := range w.columns {
		if c.all == "" && !c.ownBounds(del) {
			open = append(open, c)
		}
	}
	if len(open) == 0 && w.touched {
		return nil
	}
	files, found, err := w.targets(ctx, d, del)
	if err != nil {
		return err
	}
	if !found && del.Status() == iceberg.EntryStatusDELETED {
		return nil // it named a file that had gone before: nothing comes back
	}
	w.touched = w.touched || !found || len(files) > 0
	for _, c := range open {
		for _, e := range files {
			c.file(e)
		}
		if !found {
			c.dangling(del)
		}
	}
	return nil
}

// ownBounds uses the bounds of an equality delete on a column that it compares: rows it
// deletes have one of its values.
func (c *collector) ownBounds(del *entry) bool {
	if c.never != "" {
		c.widen(c.never)
		return true
	}
	if del.file.ContentType() != iceberg.EntryContentEqDeletes || !slices.Contains(del.file.EqualityFieldIDs(), c.column.id) {
		return false
	}
	p := c.column.ofFile(del)
	if p.unknown {
		return false
	}
	c.add(p)
	return true
}

// dangling covers a delete whose data file was not found: its partition, else everything.
func (c *collector) dangling(del *entry) {
	p := c.column.ofPartition(del.spec, del.file.Partition())
	if p.unknown {
		c.widen(ReasonDeleteTarget)
		return
	}
	c.add(p)
}

// targets lists the data files that a delete can hit. found is false if it names a file
// that is neither live nor removed in the same snapshot.
func (w *walk) targets(ctx context.Context, d *delta, del *entry) (files []*entry, found bool, err error) {
	if del.file.ContentType() != iceberg.EntryContentEqDeletes {
		if path := target(del.file); path != "" {
			e, err := w.dataFile(ctx, d, del, path)
			if e == nil || err != nil {
				return nil, false, err
			}
			return []*entry{e}, true, nil
		}
	}
	err = w.eachData(ctx, d.list, func(m iceberg.ManifestFile) bool { return del.spec.unpartitioned || w.mayHold(m, del) },
		func(e *entry) bool {
			if w.doc.matches(del, e) {
				files = append(files, e)
			}
			return true
		})
	return files, true, err
}

// dataFile finds a data file by path: first where its partition says that it is listed,
// then everywhere, since some writers give a vector another partition than its file.
func (w *walk) dataFile(ctx context.Context, d *delta, del *entry, path string) (*entry, error) {
	for _, e := range slices.Concat(d.removed, d.added) {
		if e.file.FilePath() == path {
			return e, nil
		}
	}
	var found *entry
	match := func(e *entry) bool {
		if e.file.FilePath() == path {
			found = e
		}
		return found == nil
	}
	likely := func(m iceberg.ManifestFile) bool { return w.mayHold(m, del) }
	if err := w.eachData(ctx, d.list, likely, match); err != nil || found != nil {
		return found, err
	}
	return found, w.eachData(ctx, d.list, func(m iceberg.ManifestFile) bool { return !likely(m) }, match)
}

// eachData calls visit with the live data files of the manifests that pass, until it
// returns false.
func (w *walk) eachData(ctx context.Context, list []iceberg.ManifestFile, pass func(iceberg.ManifestFile) bool, visit func(*entry) bool) error {
	for _, m := range list {
		if m.ManifestContent() != iceberg.ManifestContentData || !pass(m) {
			continue
		}
		entries, err := w.live(ctx, m)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if !visit(e) {
				return nil
			}
		}
	}
	return nil
}

// mayHold reports whether a manifest may list files of the partition of e.
func (s *session) mayHold(m iceberg.ManifestFile, e *entry) bool {
	if int(m.PartitionSpecID()) != e.spec.id {
		return false
	}
	summaries := m.Partitions()
	if len(summaries) != len(e.spec.fields) {
		return true
	}
	partition := e.file.Partition()
	for i, f := range e.spec.fields {
		if !f.mayHold(summaries[i], partition[f.id]) {
			return false
		}
	}
	return true
}

func (f specField) mayHold(sum iceberg.FieldSummary, v any) bool {
	if v == nil {
		return sum.ContainsNull
	}
	x, _, ok := normal(v)
	if !ok || f.typ == nil || sum.LowerBound == nil || sum.UpperBound == nil || !hasBounds(f.typ) {
		return true
	}
	lo, _ := decode(f.typ, *sum.LowerBound)
	hi, _ := decode(f.typ, *sum.UpperBound)
	if c, ok := Compare(x, lo); ok && c < 0 {
		return false
	}
	c, ok := Compare(x, hi)
	return !ok || c <= 0
}
