package scan

import (
	"bytes"
	"slices"
	"strings"

	"github.com/apache/iceberg-go"
)

// know is what is known about the values of a column, or of a transform of it, in a set
// of rows. Each part says what may occur; nothing says that it does.
type know struct {
	values bool // values that are neither NULL nor NaN
	lo, hi any  // they lie between these; nil is an open end
	null   bool
	nan    bool
}

// view is how a predicate's literals look in the domain that something is known in: the
// column itself, or a partition field's transform of it.
type view struct {
	through transform // from what the predicate compares to that domain
	exact   bool      // the domain is what the predicate compares
	ordered bool
	sized   bool  // truncation: a value is at least what it is truncated to
	lits    []any // in order, transformed
	edge    any   // transformed
	next    any   // the value after the edge, transformed; nil if there is none
	last    any   // the value before it
}

// look prepares a predicate for a domain. It is not ok if nothing can be concluded.
func (p *predicate) look(t transform) (view, bool) {
	v := view{through: t, exact: t.form == formIdentity, ordered: t.ordered(), sized: t.form == formTruncate}
	if t.form == formUnknown || t.form == formVoid {
		return v, false
	}
	if p.op.unary() || len(p.lits) == 0 {
		return v, true
	}
	if !v.ordered && p.op != opEqual && p.op != opNotEqual && !p.op.set() {
		return v, true // NULLs are still told apart
	}
	v.lits = make([]any, 0, len(p.lits))
	for _, l := range p.lits {
		x, ok := t.apply(l)
		if !ok {
			return v, false
		}
		v.lits = append(v.lits, x)
	}
	if !v.ordered {
		slices.SortFunc(v.lits, func(a, b any) int {
			order, _ := compare(a, b)
			return order
		})
	}
	var ok bool
	if v.edge, ok = t.apply(p.edge); !ok {
		return v, false
	}
	v.next, v.last = t.beside(p, 1), t.beside(p, -1)
	return v, true
}

// beside transforms the neighbour of a predicate's edge; nil if there is none.
func (t transform) beside(p *predicate, by int64) any {
	if !discrete(p.typ) {
		return nil
	}
	n, ok := step(p.edge, by)
	if !ok {
		return nil
	}
	x, ok := t.apply(n)
	if !ok {
		return nil
	}
	return x
}

// judge says for how many rows a predicate holds.
func (k know) judge(p *predicate, v view) verdict {
	var parts [3]verdict
	n := 0
	if k.values {
		parts[n] = k.ofValues(p, v)
		n++
	}
	if k.null {
		parts[n] = ofNull[p.op]
		n++
	}
	if k.nan {
		parts[n] = ofNaN[p.op]
		n++
	}
	if n == 0 {
		return never // no row at all
	}
	for _, part := range parts[1:n] {
		if part != parts[0] {
			return maybe
		}
	}
	return parts[0]
}

// ofNull is what a predicate comes to for NULL. Whether x <> 5 holds for it is not the
// same in all clients.
var ofNull = [numOps]verdict{
	opIsNull: always, opNotNull: never, opIsNaN: never,
	opLess: never, opLessEqual: never, opGreater: never, opGreaterEqual: never, opEqual: never, opIn: never, opStartsWith: never,
}

// ofNaN is what a predicate comes to for NaN, which some engines take for the greatest
// number.
var ofNaN = [numOps]verdict{
	opIsNull: never, opNotNull: always, opIsNaN: always, opNotNaN: never,
	opLess: never, opLessEqual: never, opEqual: never, opIn: never,
}

// ofValues judges the values that are neither NULL nor NaN.
func (k know) ofValues(p *predicate, v view) verdict {
	switch p.op {
	case opIsNull, opIsNaN:
		return never
	case opNotNull, opNotNaN:
		return always
	case opEqual, opIn:
		return k.member(v)
	case opNotEqual, opNotIn:
		return opposite[k.member(v)]
	}
	if !v.ordered || v.lits == nil {
		return maybe
	}
	switch p.strict {
	case opLess:
		return k.below(v, false)
	case opLessEqual:
		return k.below(v, true)
	case opGreater:
		return opposite[k.below(v, true)]
	case opGreaterEqual:
		return opposite[k.below(v, false)]
	case opStartsWith:
		return k.starts(p.edge, v)
	case opNotStartsWith:
		return opposite[k.starts(p.edge, v)]
	default:
		return maybe
	}
}

var opposite = [...]verdict{maybe: maybe, never: always, always: never}

// below judges x < edge, or x <= edge, for values between lo and hi. Where a domain is
// not exact, a value can be on either side of an edge with the same image.
func (k know) below(v view, orEqual bool) verdict {
	low, high := v.edge, v.edge // images from which on no value is below, and below which all are
	switch {
	case orEqual && v.next != nil:
		high = v.next
	case !orEqual && v.last != nil:
		low = v.last
	}
	if order, ok := compare(k.lo, low); ok && (order > 0 || (order == 0 && v.exact && !orEqual && v.last == nil)) {
		return never
	}
	if order, ok := compare(k.hi, high); ok && (order < 0 || (order == 0 && v.exact && orEqual && v.next == nil)) {
		return always
	}
	return maybe
}

// member judges whether values are among the literals.
func (k know) member(v view) verdict {
	if v.lits == nil {
		return never // of an empty set
	}
	i := 0
	if k.lo != nil {
		i, _ = slices.BinarySearchFunc(v.lits, k.lo, func(l, lo any) int {
			if order, ok := compare(l, lo); ok {
				return order
			}
			return 0
		})
	}
	if i == len(v.lits) {
		return never
	}
	above, known := compare(v.lits[i], k.hi)
	if known && above > 0 {
		return never
	}
	if width, ok := compare(k.lo, k.hi); ok && width == 0 && v.exact && known {
		return always
	}
	return maybe
}

// starts judges whether values begin with a text.
func (k know) starts(text any, v view) verdict {
	want, ok := text.(string)
	if !ok {
		return maybe
	}
	whole := true // the image shows the whole of the wanted prefix
	if v.sized {
		cut := prefix(want, v.through.width)
		whole, want = len(cut) == len(want), cut
	} else if !v.exact {
		return maybe
	}
	lo, okLo := k.lo.(string)
	hi, okHi := k.hi.(string)
	if okHi && hi < want && !strings.HasPrefix(hi, want) {
		return never
	}
	if okLo && lo > want && !strings.HasPrefix(lo, want) {
		return never
	}
	if whole && okLo && okHi && strings.HasPrefix(lo, want) && strings.HasPrefix(hi, want) {
		return always
	}
	return maybe
}

// through turns what is known about a column into what is known about a transform of it.
func (k know) through(t transform) know {
	if t.form == formIdentity {
		return k
	}
	if width, ok := compare(k.lo, k.hi); !t.ordered() && (!ok || width != 0) {
		k.lo, k.hi = nil, nil
		return k
	}
	k.lo, k.hi = image(t, k.lo), image(t, k.hi)
	return k
}

func image(t transform, v any) any {
	if v == nil {
		return nil
	}
	x, ok := t.apply(v)
	if !ok {
		return nil
	}
	return x
}

// single reports whether two encoded bounds are the same.
func single(lo, hi []byte) bool { return lo != nil && bytes.Equal(lo, hi) }

// within adds the range of values from encoded bounds. Bounds that contradict each other
// say nothing.
func (k know) within(typ iceberg.Type, lo, hi []byte) know {
	if !hasBounds(typ) {
		if _, isUUID := typ.(iceberg.UUIDType); !isUUID || !single(lo, hi) {
			return k
		}
	}
	if v, ok := decode(typ, lo); ok {
		k.lo = v
	}
	if v, ok := decode(typ, hi); ok {
		k.hi = v
	}
	if order, ok := compare(k.lo, k.hi); ok && order > 0 {
		k.lo, k.hi = nil, nil
	}
	return k
}
