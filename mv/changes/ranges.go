package changes

import (
	"math"
	"slices"

	"github.com/catalogd/catalogd/mv/plan"
)

// overlaps reports whether the inclusive range r may hold a value of i.
func overlaps(i plan.Interval, r plan.Range) bool {
	if c, ok := Compare(r.Hi, i.Lo); ok && c < 0 {
		return false
	}
	c, ok := Compare(r.Lo, i.Hi)
	return !ok || c < 0 || (c == 0 && i.Closed)
}

// contains reports whether every value of r provably lies in i.
func contains(i plan.Interval, r plan.Range) bool {
	if c, ok := Compare(i.Lo, r.Lo); i.Lo != nil && (!ok || c > 0) {
		return false
	}
	c, ok := Compare(r.Hi, i.Hi)
	return i.Hi == nil || (ok && (c < 0 || (c == 0 && i.Closed)))
}

// merge sorts ranges and joins those that overlap or, for whole numbers, touch. It never
// bridges a gap: a hull would make a view recompute what did not change.
func merge(ranges []plan.Range) []plan.Range {
	slices.SortFunc(ranges, func(a, b plan.Range) int {
		if a.Lo == nil || b.Lo == nil {
			return bit(b.Lo == nil) - bit(a.Lo == nil)
		}
		c, _ := Compare(a.Lo, b.Lo)
		return c
	})
	var out []plan.Range
	for _, r := range ranges {
		if len(out) == 0 || !touches(out[len(out)-1], r) {
			out = append(out, r)
			continue
		}
		last := &out[len(out)-1]
		if c, ok := Compare(r.Hi, last.Hi); r.Hi == nil || (ok && c > 0) {
			last.Hi = r.Hi
		}
	}
	return out
}

// touches reports whether b, which starts no earlier than a, continues a.
func touches(a, b plan.Range) bool {
	if c, ok := Compare(b.Lo, a.Hi); !ok || c <= 0 {
		return true
	}
	hi, ok := a.Hi.(int64)
	lo, ok2 := b.Lo.(int64)
	return ok && ok2 && hi < math.MaxInt64 && lo == hi+1
}
