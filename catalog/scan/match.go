package scan

import (
	"math"

	"github.com/apache/iceberg-go"
)

// matcher decides which manifests and files may hold rows that pass a filter.
type matcher struct {
	filter *expr
	column map[*predicate]view // how predicates look at the values of their column
	specs  map[int]*specMatcher
}

// specMatcher is what the partition tuples of a spec say about a filter.
type specMatcher struct {
	spec   *spec
	clues  map[*predicate][]clue
	filter *expr
}

// clue is a partition field that says something about a predicate.
type clue struct {
	field   int // position in the spec
	through transform
	typ     iceberg.Type // of the partition values
	// old tells that writers of old rounded times before 1970 towards zero, one too far.
	old   bool
	width int // of a truncation
	view  view
}

// partition is what a partition tuple leaves of a filter.
type partition struct {
	residual *expr
	json     []byte
}

func newMatcher(d *document, filter *expr) *matcher {
	m := &matcher{filter: filter, column: make(map[*predicate]view), specs: make(map[int]*specMatcher)}
	preds := filter.predicates()
	for _, p := range preds {
		if p.op == opOpaque {
			continue
		}
		if v, ok := p.look(transform{form: formIdentity, from: p.typ}); ok {
			m.column[p] = v
		}
	}
	for id, s := range d.specs {
		sm := &specMatcher{spec: s, filter: filter, clues: make(map[*predicate][]clue)}
		for _, p := range preds {
			sm.clues[p] = m.cluesOf(p, s)
		}
		m.specs[id] = sm
	}
	return m
}

// cluesOf finds the partition fields that say something about a predicate.
func (m *matcher) cluesOf(p *predicate, s *spec) []clue {
	if p.op == opOpaque {
		return nil
	}
	var found []clue
	for i, f := range s.fields {
		if f.source != p.col.id || f.form == formUnknown || f.form == formVoid {
			continue
		}
		t := f.transform
		t.from = p.col.typ // the schema of the scan may not be the current one
		c := clue{field: i, typ: valueType(t), old: t.temporal() && unitsPerDay(t.from) > 1}
		if t.form == formTruncate {
			c.width = t.width
		}
		switch {
		case p.term.form == formIdentity:
			v, ok := p.look(t)
			if !ok {
				continue
			}
			c.through, c.view = transform{form: formIdentity}, v
		case p.term.same(t), t.form == formIdentity:
			v, ok := m.column[p]
			if !ok {
				continue
			}
			c.through, c.view = transform{form: formIdentity}, v
			if t.form == formIdentity {
				c.through = p.term
			}
		default:
			continue
		}
		found = append(found, c)
	}
	return found
}

// valueType is the type of a transform's values.
func valueType(t transform) iceberg.Type {
	switch t.form {
	case formIdentity, formTruncate:
		return t.from
	case formDay:
		return iceberg.PrimitiveTypes.Date
	default:
		return iceberg.PrimitiveTypes.Int32
	}
}

// manifest reports whether a manifest may list files with wanted rows.
func (m *matcher) manifest(mf iceberg.ManifestFile) bool {
	sm, ok := m.specs[int(mf.PartitionSpecID())]
	summaries := mf.Partitions()
	if !ok || len(summaries) != len(sm.spec.fields) {
		return m.filter.op != opFalse
	}
	return m.filter.judge(func(p *predicate) verdict {
		return sm.leaf(p, func(c clue) (know, bool) { return c.ofSummary(summaries[c.field]), true })
	}) != never
}

// leaf judges a predicate by what is known about partition fields.
func (sm *specMatcher) leaf(p *predicate, about func(clue) (know, bool)) verdict {
	for _, c := range sm.clues[p] {
		k, ok := about(c)
		if !ok {
			continue
		}
		if v := k.through(c.through).judge(p, c.view); v != maybe {
			return v
		}
	}
	return maybe
}

func (c clue) ofSummary(sum iceberg.FieldSummary) know {
	k := know{values: true, null: sum.ContainsNull}
	k.nan = isFloat(c.typ) && (sum.ContainsNaN == nil || *sum.ContainsNaN)
	if sum.LowerBound == nil || sum.UpperBound == nil {
		// Without bounds there are only NULLs, if there are any at all.
		k.values = !sum.ContainsNull || sum.LowerBound != nil || sum.UpperBound != nil || k.nan
		return k
	}
	return c.widen(k.within(c.typ, *sum.LowerBound, *sum.UpperBound))
}

func (c clue) ofValue(v any) (know, bool) {
	v, ok := partitionValue(c.typ, v)
	if !ok {
		return know{}, false
	}
	if f, isFloat := v.(float64); isFloat && math.IsNaN(f) {
		return know{nan: true}, true
	}
	if v == nil {
		return know{null: true}, true
	}
	return c.widen(know{values: true, lo: v, hi: v}), true
}

// widen allows for what writers do at the edges: see old; and truncating the least
// numbers of a type overflows to its greatest.
func (c clue) widen(k know) know {
	lo, ok := k.lo.(int64)
	hi, ok2 := k.hi.(int64)
	switch {
	case !ok || !ok2:
	case c.old && lo <= 0 && lo > math.MinInt64:
		k.lo = lo - 1
	case c.width > 0 && (hi > math.MaxInt64-int64(c.width) || (hi > math.MaxInt32-int64(c.width) && lo <= math.MaxInt32)):
		k.lo = nil
	}
	return k
}

// partition tells what a partition tuple leaves of the filter.
func (sm *specMatcher) partition(tuple map[int]any) *partition {
	p := &partition{residual: sm.filter.simplify(func(p *predicate) verdict {
		return sm.leaf(p, func(c clue) (know, bool) { return c.ofValue(tuple[sm.spec.fields[c.field].id]) })
	})}
	p.json = p.residual.appendJSON(nil)
	return p
}

// stats are the metrics of a file. Each map is a copy that costs, so it is taken when it
// is needed.
type stats struct {
	records             int64
	file                iceberg.DataFile // nil: the maps are complete
	lower, upper        map[int][]byte
	nulls, values, nans map[int]int64
}

func statsOf(f iceberg.DataFile) *stats { return &stats{records: f.Count(), file: f} }

func (s *stats) bounds(id int) (lower, upper []byte) {
	if s.lower == nil && s.file != nil {
		s.lower, s.upper = orEmpty(s.file.LowerBoundValues()), orEmpty(s.file.UpperBoundValues())
	}
	return s.lower[id], s.upper[id]
}

func (s *stats) nullCount(id int) (n int64, ok bool) {
	if s.nulls == nil && s.file != nil {
		s.nulls = orEmpty(s.file.NullValueCounts())
	}
	n, ok = s.nulls[id]
	return n, ok
}

func (s *stats) nanCount(id int) (n int64, ok bool) {
	if s.nans == nil && s.file != nil {
		s.nans = orEmpty(s.file.NaNValueCounts())
	}
	n, ok = s.nans[id]
	return n, ok
}

// count is how many values a column has, NULLs included.
func (s *stats) count(id int) int64 {
	if s.values == nil && s.file != nil {
		s.values = orEmpty(s.file.ValueCounts())
	}
	if n, ok := s.values[id]; ok {
		return n
	}
	return s.records
}

func orEmpty[V any](m map[int]V) map[int]V {
	if m == nil {
		return map[int]V{}
	}
	return m
}

// file reports whether a file may hold rows that pass what its partition left of the
// filter.
func (m *matcher) file(residual *expr, s *stats) bool {
	return residual.judge(func(p *predicate) verdict {
		v, ok := m.column[p]
		if !ok {
			return maybe
		}
		return s.about(p.col, !p.op.unary()).through(p.term).judge(p, v)
	}) != never
}

// about is what the metrics say about a column. The range is left open unless it is asked
// for.
func (s *stats) about(c column, ranges bool) know {
	if s.records == 0 {
		return know{}
	}
	k := know{values: true, null: true, nan: isFloat(c.typ)}
	nulls, counted := s.nullCount(c.id)
	counted = counted && nulls >= 0
	var nans int64
	if k.nan {
		var known bool
		if nans, known = s.nanCount(c.id); known && nans >= 0 {
			k.nan = nans > 0
		} else {
			nans = 0
		}
	}
	// A NULL struct may hide the NULLs of its members from the count.
	k.null = !counted || nulls > 0 || c.nested
	if nulls+nans > 0 && counted {
		all := s.count(c.id)
		k.values = all <= 0 || nulls+nans < all
	}
	if !ranges && !k.null && s.count(c.id) == 0 {
		k.null = true // a column that has no values at all was not counted
	}
	if ranges && k.values {
		lower, upper := s.bounds(c.id)
		k = k.within(c.typ, lower, upper)
	}
	return k
}
