package sqltext

import (
	"fmt"
	"strings"
)

// BucketKind is the kind of a [Bucket].
type BucketKind string

// The kinds of bucket.
const (
	Identity BucketKind = "identity" // the column itself
	Trunc    BucketKind = "trunc"    // date_trunc of a unit, or a cast to date (unit day)
	Width    BucketKind = "width"    // fixed width counted from an origin
)

// Unit is a unit of date_trunc.
type Unit string

// The units, from fine to coarse.
const (
	Microsecond Unit = "microsecond"
	Millisecond Unit = "millisecond"
	Second      Unit = "second"
	Minute      Unit = "minute"
	Hour        Unit = "hour"
	Day         Unit = "day"
	Week        Unit = "week" // starts on Monday
	Month       Unit = "month"
	Quarter     Unit = "quarter"
	Year        Unit = "year"
	Decade      Unit = "decade"
	Century     Unit = "century"
	Millennium  Unit = "millennium"
)

// Bucket is a function of one column that cuts its values into buckets. Values of one
// bucket lie side by side: the function is monotonic.
type Bucket struct {
	Kind   BucketKind
	Unit   Unit   // of Trunc
	Width  int64  // of Width: microseconds, or months if Months
	Months bool   // of Width
	Origin int64  // of Width: microseconds since 1970, a start of some bucket
	Type   string // Iceberg type of the column
	Result string // Iceberg type of the bucket's value
}

// String describes the bucket for a person.
func (b Bucket) String() string {
	switch {
	case b.Kind == Trunc && b.Result == "date":
		return "date of " + string(b.Unit)
	case b.Kind == Trunc:
		return string(b.Unit)
	case b.Kind == Width && b.Months:
		return fmt.Sprintf("every %d months", b.Width)
	case b.Kind == Width:
		return fmt.Sprintf("every %d µs", b.Width)
	}
	return string(b.Kind)
}

// unitRank orders the units that divide one another; week stands aside.
var unitRank = map[Unit]int{
	Microsecond: 1, Millisecond: 2, Second: 3, Minute: 4, Hour: 5, Day: 6, Week: 7, Month: 8,
	Quarter: 9, Year: 10, Decade: 11, Century: 12, Millennium: 13,
}

// divides reports whether every bucket of unit b is made of whole buckets of unit a.
func divides(a, b Unit) bool {
	if a == b {
		return true
	}
	return a != Week && unitRank[a] < unitRank[b]
}

// Refines reports whether every bucket of g is made of whole buckets of b.
func (b Bucket) Refines(g Bucket) bool {
	switch {
	case b.Type != g.Type:
		return false
	case b.Kind == Identity:
		return true
	case b.Kind == Trunc && g.Kind == Trunc:
		return divides(b.Unit, g.Unit)
	case b.Kind == Width && g.Kind == Width:
		return b.Width == g.Width && b.Months == g.Months && b.Origin == g.Origin
	}
	return false
}

// timeType reports whether an Iceberg type is a date or a point in time.
func timeType(t string) bool {
	switch t {
	case "date", "timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns":
		return true
	}
	return false
}

// zoned reports whether values of an Iceberg type are instants that a session's time
// zone turns into dates.
func zoned(t string) bool { return strings.HasPrefix(t, "timestamptz") }

// nanos reports whether a type counts nanoseconds. DuckDB rounds these to microseconds
// towards zero before it truncates, so that buckets before 1970 are not monotonic.
func nanos(t string) bool { return strings.HasSuffix(t, "_ns") }

// duckUnits are DuckDB's names of the units.
var duckUnits = map[string]Unit{
	"microsecond": Microsecond, "microseconds": Microsecond, "us": Microsecond, "usec": Microsecond, "usecs": Microsecond, "usecond": Microsecond, "useconds": Microsecond,
	"millisecond": Millisecond, "milliseconds": Millisecond, "ms": Millisecond, "msec": Millisecond, "msecs": Millisecond, "msecond": Millisecond, "mseconds": Millisecond,
	"second": Second, "seconds": Second, "sec": Second, "secs": Second, "s": Second,
	"minute": Minute, "minutes": Minute, "min": Minute, "mins": Minute, "m": Minute,
	"hour": Hour, "hours": Hour, "hr": Hour, "hrs": Hour, "h": Hour,
	"day": Day, "days": Day, "d": Day, "week": Week, "weeks": Week, "w": Week,
	"month": Month, "months": Month, "mon": Month, "mons": Month, "quarter": Quarter, "quarters": Quarter,
	"year": Year, "years": Year, "yr": Year, "yrs": Year, "y": Year,
	"decade": Decade, "decades": Decade, "dec": Decade, "decs": Decade,
	"century": Century, "centuries": Century, "cent": Century, "c": Century,
	"millennium": Millennium, "millenniums": Millennium, "millennia": Millennium, "mil": Millennium, "mils": Millennium,
}

// sparkUnits are Spark's further names of the units.
var sparkUnits = map[string]Unit{"yyyy": Year, "yy": Year, "mon": Month, "mm": Month, "dd": Day}

// truncUnit maps the unit of date_trunc as a dialect writes it.
func truncUnit(d Dialect, s string) (Unit, bool) {
	s = strings.ToLower(s)
	if d == DuckDB {
		u, ok := duckUnits[s]
		return u, ok
	}
	if u, ok := sparkUnits[s]; ok && d == Spark {
		return u, ok
	}
	u := Unit(s)
	if r := unitRank[u]; r > unitRank[Year] || r == 0 || d == Trino && u == Microsecond {
		return "", false
	}
	return u, true
}

// truncate returns the bucket of date_trunc(unit, x) where x carries b.
func (b Bucket) truncate(d Dialect, unit Unit) (Bucket, bool) {
	source := b.Result
	if !timeType(source) || nanos(source) {
		return Bucket{}, false
	}
	if zoned(source) && unitRank[unit] > unitRank[Year] {
		return Bucket{}, false // DuckDB counts the years before 1 in another way than for timestamps
	}
	g := Bucket{Kind: Trunc, Unit: unit, Type: b.Type, Result: source}
	if source == "date" {
		switch {
		case d == Trino && unitRank[unit] < unitRank[Day]:
			return Bucket{}, false
		case d == DuckDB:
			g.Result = "timestamp"
		case d == Spark:
			g.Result = "timestamptz"
		}
	}
	// A fine unit of a coarser bucket changes nothing: date_trunc('hour', CAST(ts AS DATE)).
	if b.Kind == Trunc && divides(unit, b.Unit) {
		g.Unit = b.Unit
		return g, true
	}
	if b.Type == "date" && b.Kind == Identity && unitRank[unit] <= unitRank[Day] {
		g.Unit = Day
		return g, true
	}
	if b.Kind == Width {
		return Bucket{}, false
	}
	return g, b.Refines(g)
}

// toDate returns the bucket of CAST(x AS DATE) where x carries b.
func (b Bucket) toDate() (Bucket, bool) {
	if !timeType(b.Result) || nanos(b.Result) {
		return Bucket{}, false
	}
	if b.Result == "date" {
		return b, true
	}
	g := Bucket{Kind: Trunc, Unit: Day, Type: b.Type, Result: "date"}
	if b.Kind == Trunc && divides(Day, b.Unit) {
		g.Unit = b.Unit
	}
	return g, b.Kind != Width && b.Refines(g)
}

// toTimestamp returns the bucket of CAST(x AS TIMESTAMP) where x carries b.
func (b Bucket) toTimestamp() (Bucket, bool) {
	if b.Result != "date" && b.Result != "timestamp" {
		return Bucket{}, false
	}
	b.Result = "timestamp"
	return b, true
}
