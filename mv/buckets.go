package mv

import (
	"math"

	"github.com/catalogd/catalogd/mv/plan"
	"github.com/catalogd/catalogd/mv/sqltext"
)

// maxBuckets bounds the counting of buckets; more is reported as this many.
const maxBuckets = 1_000_000

// cover returns the smallest set of whole buckets of the source column that holds every
// touched value; not ok if the ranges have no such set.
func (b *bucketing) cover(t Touched) (plan.Set, bool) {
	set := plan.Set{Null: t.Null}
	if !sqltext.HasTicks(b.sourceType) {
		if b.bucket.Kind != sqltext.Identity {
			return plan.Set{}, false
		}
		for _, r := range t.Ranges {
			set.Intervals = append(set.Intervals, plan.Interval{Lo: r.Lo, Hi: r.Hi, Closed: true})
		}
		return set, true
	}
	var list []sqltext.Interval
	for _, r := range t.Ranges {
		lo, loOpen, ok := tick(r.Lo, math.MinInt64)
		hi, hiOpen, ok2 := tick(r.Hi, math.MaxInt64)
		if !ok || !ok2 {
			return plan.Set{}, false
		}
		i := b.bucket.Cover(lo, hi)
		i.NoLo, i.NoHi = i.NoLo || loOpen, i.NoHi || hiOpen
		list = append(list, i)
	}
	set.Intervals = fromTicks(sqltext.Merge(list))
	return set, true
}

// tick reads a range's end; an open one is as far as ticks can count.
func tick(v any, open int64) (t int64, isOpen, ok bool) {
	if v == nil {
		return open, true, true
	}
	t, ok = v.(int64)
	return t, false, ok
}

func fromTicks(list []sqltext.Interval) []plan.Interval {
	out := make([]plan.Interval, len(list))
	for n, i := range list {
		if !i.NoLo {
			out[n].Lo = i.Lo
		}
		if !i.NoHi {
			out[n].Hi = i.Hi
		}
	}
	return out
}

func toTicks(set plan.Set) []sqltext.Interval {
	out := make([]sqltext.Interval, len(set.Intervals))
	for n, i := range set.Intervals {
		lo, noLo, _ := tick(i.Lo, 0)
		hi, noHi, _ := tick(i.Hi, 0)
		out[n] = sqltext.Interval{Lo: lo, Hi: hi, NoLo: noLo, NoHi: noHi}
	}
	return out
}

// storedSet maps buckets of the source column to the values that the view's column holds
// for them; not ok if the column's type does not hold them exactly.
func (b *bucketing) storedSet(set plan.Set) (plan.Set, bool) {
	if !sqltext.HasTicks(b.sourceType) {
		return set, true
	}
	out := make([]sqltext.Interval, 0, len(set.Intervals))
	for _, i := range toTicks(set) {
		i = b.bucket.Output(i)
		var ok, ok2 bool
		i.Lo, ok = b.retype(i.Lo)
		i.Hi, ok2 = b.retype(i.Hi)
		if !ok || !ok2 {
			return plan.Set{}, false
		}
		out = append(out, i)
	}
	return plan.Set{Intervals: fromTicks(out), Null: set.Null}, true
}

// retype converts a bucket's value to the type of the view's column.
func (b *bucketing) retype(v int64) (int64, bool) {
	from, to := ticksPerDay(b.bucket.Result), ticksPerDay(b.outType)
	switch {
	case from == to:
		return v, true
	case from == 0 || to == 0:
		return 0, false
	case from > to:
		return v / (from / to), v%(from/to) == 0
	}
	scale := to / from
	return v * scale, v <= math.MaxInt64/scale && v >= math.MinInt64/scale
}

// ticksPerDay is 0 for numbers, which have the same ticks in every type.
func ticksPerDay(typ string) int64 {
	const micros = 86_400_000_000
	switch typ {
	case "date":
		return 1
	case "timestamp", "timestamptz":
		return micros
	case "timestamp_ns", "timestamptz_ns":
		return micros * 1000
	}
	return 0
}

// fits reports whether the view's column holds the bucket's values as they are.
func (b *bucketing) fits() bool {
	if sameType(b.outType, b.bucket.Result) {
		return true
	}
	number := func(t string) bool { return t == "int" || t == "long" }
	if number(b.outType) && number(b.bucket.Result) {
		return true
	}
	// Days and coarser units are midnights, which every local time type can hold.
	local := func(t string) bool { return t == "date" || t == "timestamp" || t == "timestamp_ns" }
	return local(b.outType) && local(b.bucket.Result) && (b.outType != "date" || b.coarse())
}

func (b *bucketing) coarse() bool {
	switch b.bucket.Unit {
	case sqltext.Day, sqltext.Week, sqltext.Month, sqltext.Quarter, sqltext.Year, sqltext.Decade, sqltext.Century, sqltext.Millennium:
		return b.bucket.Kind == sqltext.Trunc
	}
	return false
}

// unitsOf widens stored values to whole partitions of the storage table: a partition that
// is touched is written as one file again, so that small refreshes leave no small files.
func (b *bucketing) unitsOf(set plan.Set) plan.Set {
	unit := b.partitionUnit()
	if unit == "" || ticksPerDay(b.outType) == 0 {
		return set
	}
	p := sqltext.Bucket{Kind: sqltext.Trunc, Unit: unit, Type: b.outType, Result: b.outType}
	list := toTicks(set)
	for n, i := range list {
		if i.NoLo || i.NoHi {
			continue
		}
		list[n] = p.Cover(i.Lo, i.Hi-1)
	}
	return plan.Set{Intervals: fromTicks(sqltext.Merge(list)), Null: set.Null}
}

// count is the number of buckets in set, the NULL bucket included.
func (b *bucketing) count(set plan.Set) int64 {
	var n int64
	if set.Null {
		n++
	}
	if !sqltext.HasTicks(b.sourceType) {
		return n + int64(len(set.Intervals))
	}
	for _, i := range toTicks(set) {
		n += int64(b.bucket.Count(i, maxBuckets))
	}
	return min(n, maxBuckets)
}
