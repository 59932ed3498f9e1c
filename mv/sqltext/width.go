package sqltext

import (
	"strconv"
	"strings"
)

// Origins of DuckDB's time_bucket in microseconds since 1970: a Monday, so that weeks
// start on Monday, and the start of a year for widths in months.
const (
	weekOrigin  = 946_857_600_000_000 // 2000-01-03
	monthOrigin = 946_684_800_000_000 // 2000-01-01
)

// fixedUnits are the microseconds of units that always have the same length.
var fixedUnits = map[string]int64{
	"microsecond": 1, "millisecond": 1000, "second": 1_000_000, "minute": 60_000_000,
	"hour": 3_600_000_000, "day": microsPerDay, "week": 7 * microsPerDay,
}

// monthUnits are the months of units that are made of months.
var monthUnits = map[string]int64{"month": 1, "quarter": 3, "year": 12}

// intervalWidth returns the length of a constant interval of one unit, in microseconds or
// in months.
func intervalWidth(e *expr) (width int64, months, ok bool) {
	if e.kind != exInterval || len(e.args) != 1 || e.args[0].kind != exNumber && e.args[0].kind != exString {
		return 0, false, false
	}
	count, unit := e.args[0].name, e.name
	if unit == "" { // INTERVAL '5 minutes'
		var both bool
		if count, unit, both = strings.Cut(strings.TrimSpace(count), " "); !both {
			return 0, false, false
		}
		unit = strings.TrimSuffix(strings.ToLower(strings.TrimSpace(unit)), "s")
	}
	n, err := strconv.ParseInt(count, 10, 32)
	if err != nil || n < 1 {
		return 0, false, false
	}
	if m, ok := monthUnits[unit]; ok {
		return n * m, true, true
	}
	w, ok := mul(n, fixedUnits[unit])
	return w, false, ok && w > 0
}

// timeBucket returns the bucket of DuckDB's time_bucket(interval, x) where x carries b.
func (b Bucket) timeBucket(interval *expr) (Bucket, bool) {
	width, months, ok := intervalWidth(interval)
	if !ok || b.Kind != Identity || b.Result != b.Type || b.Type != "timestamp" && b.Type != "timestamptz" {
		return Bucket{}, false
	}
	g := Bucket{Kind: Width, Width: width, Months: months, Origin: weekOrigin, Type: b.Type, Result: b.Type}
	if months {
		g.Origin = monthOrigin
	}
	return g, true
}

// steppedCarrier recognises the usual way to write buckets of n minutes without
// time_bucket: date_trunc('minute', x) - (extract(minute FROM x) % n) * INTERVAL '1' MINUTE.
// n must divide the next coarser unit; the same goes for seconds and hours.
func (s *selection) steppedCarrier(e *expr) *carrier {
	trunc, product := e.args[0], e.args[1]
	if trunc.kind != exCall || trunc.name != "date_trunc" || len(trunc.args) != 2 || trunc.args[0].kind != exString ||
		product.kind != exBinary || product.name != "*" {
		return nil
	}
	in, whole := s.carrier(trunc.args[1]), s.carrier(trunc)
	if in == nil || whole == nil || in.bucket.Kind != Identity || in.bucket.Type != "timestamp" || whole.bucket.Kind != Trunc {
		return nil
	}
	unit := whole.bucket.Unit
	limit := map[Unit]int64{Second: 60, Minute: 60, Hour: 24}[unit]
	mod, step := product.args[0], product.args[1]
	if mod.kind == exInterval {
		mod, step = step, mod
	}
	width, months, ok := intervalWidth(step)
	if !ok || months || limit == 0 || width != fixedUnits[string(unit)] || mod.kind != exBinary || mod.name != "%" || mod.args[1].kind != exNumber {
		return nil
	}
	n, err := strconv.ParseInt(mod.args[1].name, 10, 32)
	if err != nil || n < 1 || limit%n != 0 || !s.extracts(mod.args[0], unit, trunc.args[1]) {
		return nil
	}
	return &carrier{Bucket{Kind: Width, Width: n * width, Type: "timestamp", Result: "timestamp"}, in.drivers, in.fixed}
}

// extracts reports whether e is the given unit of x: extract(minute FROM x) or minute(x).
func (s *selection) extracts(e *expr, unit Unit, x *expr) bool {
	if e.kind != exCall || e.window || len(e.parts) != 1 {
		return false
	}
	switch {
	case e.name == "extract" && s.a.q.Dialect != Spark, e.name == "date_part" && s.a.q.Dialect == DuckDB:
		// Spark's seconds have a fraction.
		return len(e.args) == 2 && e.args[0].kind == exString && strings.EqualFold(e.args[0].name, string(unit)) && s.same(e.args[1], x)
	case e.name == string(unit):
		return len(e.args) == 1 && s.same(e.args[0], x)
	}
	return false
}
