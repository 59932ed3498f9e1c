package changes

import (
	"math"
	"slices"

	"github.com/apache/iceberg-go"

	"github.com/catalogd/catalogd/mv"
	"github.com/catalogd/catalogd/mv/plan"
)

// filter is a restriction on a column whose type is known.
type filter struct {
	column column
	want   *mv.Restriction // nil: everything
}

func (d *document) filter(r *mv.Restriction) filter {
	if r == nil {
		return filter{}
	}
	typ := d.columnType(r.FieldID)
	if typ == nil || d.repeated(r.FieldID) { // nothing can be ruled out
		return filter{want: r}
	}
	return filter{column: column{id: r.FieldID, typ: typ, bounded: hasBounds(typ)}, want: r}
}

// mayMatch reports whether a piece may hold a wanted row.
func (f filter) mayMatch(p piece) bool {
	if f.want == nil || p.unknown || (p.null && f.want.Set.Null) {
		return true
	}
	return p.ranges != nil && slices.ContainsFunc(f.want.Set.Intervals, func(i plan.Interval) bool { return overlaps(i, *p.ranges) })
}

// contains reports whether a piece provably holds wanted rows only.
func (f filter) contains(p piece) bool {
	if f.want == nil {
		return true
	}
	if p.unknown || (p.null && !f.want.Set.Null) {
		return false
	}
	return p.ranges == nil || slices.ContainsFunc(f.want.Set.Intervals, func(i plan.Interval) bool { return contains(i, *p.ranges) })
}

// manifest reports whether a manifest may list files with wanted rows, by its summaries
// of partition values.
func (f filter) manifest(d *document, m iceberg.ManifestFile) bool {
	s, ok := d.specs[int(m.PartitionSpecID())]
	summaries := m.Partitions()
	if f.want == nil || !f.column.bucketable() || !ok || len(summaries) != len(s.fields) {
		return true
	}
	for i, field := range s.fields {
		if field.source == f.column.id && !field.multi && !f.mayMatch(f.column.ofSummary(field, summaries[i])) {
			return false
		}
	}
	return true
}

// ofSummary is the piece that a manifest's partition summary stands for.
func (c column) ofSummary(field specField, sum iceberg.FieldSummary) piece {
	if !rangeTransform(field.transform) || field.typ == nil || sum.LowerBound == nil || sum.UpperBound == nil {
		return piece{unknown: field.typ == nil || !rangeTransform(field.transform) || !allNull(sum), null: sum.ContainsNull}
	}
	lo, ok := c.summaryEnd(field, *sum.LowerBound)
	hi, ok2 := c.summaryEnd(field, *sum.UpperBound)
	if !ok || !ok2 {
		return piece{unknown: true}
	}
	return piece{ranges: &plan.Range{Lo: lo.Lo, Hi: hi.Hi}, null: sum.ContainsNull}
}

// allNull reports whether a summary without bounds says that every value is NULL.
func allNull(sum iceberg.FieldSummary) bool {
	return sum.ContainsNull && sum.LowerBound == nil && sum.UpperBound == nil && (sum.ContainsNaN == nil || !*sum.ContainsNaN)
}

func (c column) summaryEnd(field specField, bound []byte) (plan.Range, bool) {
	v, ok := decode(field.typ, bound)
	if !ok {
		return plan.Range{}, false
	}
	if _, isDate := field.typ.(iceberg.DateType); isDate {
		n, isInt := v.(int64)
		if !isInt || n < math.MinInt32 || n > math.MaxInt32 {
			return plan.Range{}, false
		}
		return c.preimage(field.transform, iceberg.Date(n))
	}
	return c.preimage(field.transform, v)
}

// ofFile is what a data file's metrics, or else its partition, say about the column.
func (c column) ofFile(e *entry) piece {
	records := e.file.Count()
	switch {
	case records == 0:
		return piece{}
	case c.typ == nil:
		return piece{unknown: true}
	}
	nulls, counted := e.file.NullValueCounts()[c.id]
	if counted && nulls >= records {
		return piece{null: true}
	}
	null := !counted || nulls > 0
	if c.bounded {
		lo, okLo := decode(c.typ, e.file.LowerBoundValues()[c.id])
		hi, okHi := decode(c.typ, e.file.UpperBoundValues()[c.id])
		if okLo || okHi {
			if order, ok := Compare(lo, hi); !ok || order <= 0 {
				return piece{ranges: &plan.Range{Lo: lo, Hi: hi}, null: null}
			}
		}
	}
	p := c.ofPartition(e.spec, e.file.Partition())
	if p.unknown {
		return piece{unknown: true}
	}
	return p
}
