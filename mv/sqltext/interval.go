package sqltext

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Values of a column are counted in ticks: days since 1970 for date, microseconds since
// 1970 for timestamp and timestamptz, nanoseconds for their _ns forms, and the number
// itself for int and long. Other types have no ticks; their buckets are single values.

const microsPerDay = 86_400_000_000

// HasTicks reports whether values of an Iceberg type are counted in ticks.
func HasTicks(typ string) bool {
	return timeType(typ) || typ == "int" || typ == "long"
}

// ticksPerDay returns how many ticks of a time type make a day.
func ticksPerDay(typ string) int64 {
	switch {
	case typ == "date":
		return 1
	case strings.HasSuffix(typ, "_ns"):
		return microsPerDay * 1000
	}
	return microsPerDay
}

// Interval is the half-open range [Lo, Hi) of ticks. NoLo and NoHi leave a side open.
type Interval struct {
	Lo, Hi     int64
	NoLo, NoHi bool
}

// Contains reports whether v lies in the interval.
func (i Interval) Contains(v int64) bool {
	return (i.NoLo || v >= i.Lo) && (i.NoHi || v < i.Hi)
}

// unitTicks returns the ticks of a unit below a day for a column type.
func unitTicks(u Unit, typ string) int64 {
	micros := map[Unit]int64{Microsecond: 1, Millisecond: 1000, Second: 1_000_000, Minute: 60_000_000, Hour: 3_600_000_000}[u]
	return micros * (ticksPerDay(typ) / microsPerDay)
}

// span returns the bucket of v: its first tick, the first tick after it (false if that
// is beyond what ticks can count) and the value of the bucket, in days since 1970 for
// units of a day and more and in ticks of the column else.
func (b Bucket) span(v int64) (lo, hi int64, bounded bool, value int64) {
	day := ticksPerDay(b.Type)
	switch {
	case b.Kind == Identity || b.Kind == Trunc && day == 1 && unitRank[b.Unit] <= unitRank[Day]:
		return v, v + 1, v < math.MaxInt64, v
	case b.Kind == Trunc && unitRank[b.Unit] < unitRank[Day]:
		return fixed(v, unitTicks(b.Unit, b.Type), 0)
	case b.Kind == Width && !b.Months:
		scale := day / microsPerDay
		return fixed(v, b.Width*scale, b.Origin*scale)
	}
	var first, next, start int64
	if b.Kind == Width {
		first, next = monthWidth(floorDiv(v, day), b.Width, floorDiv(b.Origin, microsPerDay))
		start = first
	} else {
		first, next, start = calendar(floorDiv(v, day), b.Unit)
	}
	lo, okLo := mul(first, day)
	if !okLo {
		lo = math.MinInt64
	}
	hi, bounded = mul(next, day)
	value, ok := mul(start, day)
	if !ok {
		value = lo
	}
	return lo, hi, bounded, value
}

// Floor returns the first tick of the bucket that holds v.
func (b Bucket) Floor(v int64) int64 {
	lo, _, _, _ := b.span(v)
	return lo
}

// Next returns the first tick after the bucket that holds v. It is false if the bucket
// reaches to the end of what ticks can count.
func (b Bucket) Next(v int64) (int64, bool) {
	_, hi, ok, _ := b.span(v)
	return hi, ok
}

// Value returns what the query makes of v, in ticks of [Bucket.Result].
func (b Bucket) Value(v int64) int64 {
	_, _, _, value := b.span(v)
	from, to := ticksPerDay(b.Type), ticksPerDay(b.Result)
	switch {
	case !timeType(b.Type) || from == to:
		return value
	case from > to:
		return floorDiv(value, from/to)
	}
	if r, ok := mul(value, to/from); ok {
		return r
	}
	return math.MaxInt64
}

// Cover returns the smallest interval of whole buckets that holds all values from lo to
// hi, both included.
func (b Bucket) Cover(lo, hi int64) Interval {
	i := Interval{Lo: b.Floor(lo)}
	i.NoLo = i.Lo == math.MinInt64
	next, ok := b.Next(hi)
	i.Hi, i.NoHi = next, !ok
	if i.NoHi {
		i.Hi = 0
	}
	return i
}

// Output maps an interval of whole buckets of the column to the interval of their values.
func (b Bucket) Output(i Interval) Interval {
	if !i.NoLo {
		i.Lo = b.Value(i.Lo)
	}
	if !i.NoHi {
		i.Hi = b.Value(i.Hi)
	}
	return i
}

// Count returns the number of buckets in an interval, up to limit.
func (b Bucket) Count(i Interval, limit int) int {
	if i.NoLo || i.NoHi {
		return limit
	}
	n := 0
	for v := i.Lo; v < i.Hi && n < limit; n++ {
		next, ok := b.Next(v)
		if !ok {
			return n + 1
		}
		v = next
	}
	return n
}

// Merge sorts intervals and joins those that touch or overlap.
func Merge(list []Interval) []Interval {
	sorted := slices.Clone(list)
	slices.SortFunc(sorted, func(x, y Interval) int {
		if x.NoLo != y.NoLo {
			return map[bool]int{true: -1, false: 1}[x.NoLo]
		}
		return cmp.Compare(x.Lo, y.Lo)
	})
	var out []Interval
	for _, i := range sorted {
		if !i.NoLo && !i.NoHi && i.Lo >= i.Hi {
			continue
		}
		if n := len(out); n > 0 && (out[n-1].NoHi || i.NoLo || i.Lo <= out[n-1].Hi) {
			last := &out[n-1]
			last.NoHi = last.NoHi || i.NoHi
			last.Hi = max(last.Hi, i.Hi)
			if last.NoHi {
				last.Hi = 0
			}
			continue
		}
		out = append(out, i)
	}
	return out
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b != 0 && (a < 0) != (b < 0) {
		q--
	}
	return q
}

// mul multiplies unless the product is too big.
func mul(a, b int64) (int64, bool) {
	p := a * b
	if a != 0 && (p/a != b || a == -1 && b == math.MinInt64) {
		return 0, false
	}
	return p, true
}

// fixed returns the bucket of v among those of a fixed width.
func fixed(v, width, origin int64) (lo, hi int64, bounded bool, value int64) {
	shift := origin % width
	if shift < 0 {
		shift += width
	}
	rest := v % width // in (-width, width), so that no step can overflow
	rest -= shift
	for rest < 0 {
		rest += width
	}
	if v < math.MinInt64+rest {
		lo = math.MinInt64
	} else {
		lo = v - rest
	}
	hi = v + (width - rest)
	return lo, hi, hi > v, lo
}

// calendar returns the first day of the bucket of a day, the first day after it and the
// day that date_trunc gives.
func calendar(day int64, u Unit) (first, next, value int64) {
	if u == Day {
		return day, day + 1, day
	}
	if u == Week {
		monday := floorDiv(day+3, 7)*7 - 3 // 1970-01-01 was a Thursday
		return monday, monday + 7, monday
	}
	y, m := civil(day)
	switch u {
	case Month:
		return days(y, m), days(y, m+1), days(y, m)
	case Quarter:
		m -= (m - 1) % 3
		return days(y, m), days(y, m+3), days(y, m)
	case Year:
		return days(y, 1), days(y+1, 1), days(y, 1)
	}
	// DuckDB divides the year and rounds towards zero, so that the years around zero and
	// those before it belong to the bucket whose value comes after them.
	n := map[Unit]int64{Decade: 10, Century: 100, Millennium: 1000}[u]
	k := y / n * n
	from, to := k, k+n
	if k <= 0 {
		from = k - n + 1
	}
	if k < 0 {
		to = k + 1
	}
	return days(from, 1), days(to, 1), days(k, 1)
}

// monthWidth returns the bucket of a day among those that are width months long.
func monthWidth(day, width, origin int64) (first, next int64) {
	y, m := civil(day)
	oy, om := civil(origin)
	months := (y*12 + m - 1) - (oy*12 + om - 1)
	start := floorDiv(months, width)*width + oy*12 + om - 1
	return days(floorDiv(start, 12), start-floorDiv(start, 12)*12+1), days(floorDiv(start+width, 12), (start+width)-floorDiv(start+width, 12)*12+1)
}

// civil returns the year and month of a day since 1970 in the proleptic Gregorian
// calendar with a year zero.
func civil(day int64) (year, month int64) {
	z := day + 719468 // days since 0000-03-01
	era := floorDiv(z, 146097)
	doe := z - era*146097
	yoe := (doe - doe/1460 + doe/36524 - doe/146096) / 365
	doy := doe - (365*yoe + yoe/4 - yoe/100)
	month = (5*doy + 2) / 153
	year = yoe + era*400
	if month < 10 {
		return year, month + 3
	}
	return year + 1, month - 9
}

// days returns the first day of a month, counted since 1970. The month may be beyond 12.
func days(year, month int64) int64 {
	year += (month - 1) / 12
	month = (month-1)%12 + 1
	y := year
	if month <= 2 {
		y--
	}
	era := floorDiv(y, 400)
	yoe := y - era*400
	shifted := month - 3
	if month <= 2 {
		shifted = month + 9
	}
	doy := (153*shifted + 2) / 5
	doe := yoe*365 + yoe/4 - yoe/100 + doy
	return era*146097 + doe - 719468
}

// dayOfMonth returns the day within its month, from 1.
func dayOfMonth(day int64) int64 {
	y, m := civil(day)
	return day - days(y, m) + 1
}

// Literal writes a value as a literal of its Iceberg type. It fails for a value that the
// dialect has no literal for, such as the year 10000 in Trino.
func Literal(d Dialect, typ string, ticks int64) (string, error) {
	switch typ {
	case "int", "long":
		switch {
		case ticks == math.MinInt64:
			return "CAST('-9223372036854775808' AS BIGINT)", nil
		case ticks < 0:
			return "(" + strconv.FormatInt(ticks, 10) + ")", nil
		}
		return strconv.FormatInt(ticks, 10), nil
	}
	if !timeType(typ) {
		return "", fmt.Errorf("no literal of type %s", typ)
	}
	perDay := ticksPerDay(typ)
	day := floorDiv(ticks, perDay)
	rest := ticks - day*perDay
	y, m := civil(day)
	if d != DuckDB && (y < 1 || y > 9999) {
		return "", fmt.Errorf("no %s literal for the year %d", d, y)
	}
	if y < -290000 || y > 290000 { // DuckDB's infinity lies beyond
		return "", fmt.Errorf("no %s literal for the year %d", d, y)
	}
	suffix := ""
	if y < 1 {
		y, suffix = 1-y, " (BC)"
	}
	date := fmt.Sprintf("%04d-%02d-%02d", y, m, dayOfMonth(day))
	if typ == "date" {
		return "DATE '" + date + suffix + "'", nil
	}
	second := perDay / 86400
	s := rest / second
	clock := fmt.Sprintf("%02d:%02d:%02d.%0*d", s/3600, s/60%60, s%60, len(strconv.FormatInt(second, 10))-1, rest%second)
	return timestampLiteral(d, typ, date+suffix+" "+clock)
}

// timestampLiteral writes the literal of a time of day on a date.
func timestampLiteral(d Dialect, typ, text string) (string, error) {
	type form struct {
		d   Dialect
		typ string
	}
	f, ok := map[form]string{
		{DuckDB, "timestamp"}: "TIMESTAMP '%s'", {DuckDB, "timestamptz"}: "TIMESTAMPTZ '%s+00'", {DuckDB, "timestamp_ns"}: "TIMESTAMP_NS '%s'",
		{Trino, "timestamp"}: "TIMESTAMP '%s'", {Trino, "timestamptz"}: "TIMESTAMP '%s UTC'",
		{Trino, "timestamp_ns"}: "TIMESTAMP '%s'", {Trino, "timestamptz_ns"}: "TIMESTAMP '%s UTC'",
		{Spark, "timestamp"}: "TIMESTAMP_NTZ '%s'", {Spark, "timestamptz"}: "TIMESTAMP '%sZ'",
	}[form{d, typ}]
	if !ok {
		return "", fmt.Errorf("no %s literal of type %s", d, typ)
	}
	return fmt.Sprintf(f, text), nil
}

// Predicate writes the condition that a column lies in one of the intervals, or is NULL
// if null is set. Without intervals and null it is FALSE.
func Predicate(d Dialect, column, typ string, list []Interval, null bool) (string, error) {
	col := Quote(d, column)
	var terms []string
	for _, i := range Merge(list) {
		var bounds []string
		if !i.NoLo {
			lo, err := Literal(d, typ, i.Lo)
			if err != nil {
				return "", err
			}
			bounds = append(bounds, col+" >= "+lo)
		}
		if !i.NoHi {
			hi, err := Literal(d, typ, i.Hi)
			if err != nil {
				return "", err
			}
			bounds = append(bounds, col+" < "+hi)
		}
		if len(bounds) == 0 {
			bounds = []string{col + " IS NOT NULL"}
		}
		terms = append(terms, "("+strings.Join(bounds, " AND ")+")")
	}
	if null {
		terms = append(terms, col+" IS NULL")
	}
	if len(terms) == 0 {
		return "FALSE", nil
	}
	return strings.Join(terms, " OR "), nil
}
