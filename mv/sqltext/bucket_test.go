package sqltext_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/mv/sqltext"
)

const (
	microsPerDay = 86_400_000_000
	year12000    = 316516204800 * 1_000_000 // 12000-01-01, beyond the four-digit years
)

var units = []sqltext.Unit{
	sqltext.Microsecond, sqltext.Millisecond, sqltext.Second, sqltext.Minute, sqltext.Hour, sqltext.Day,
	sqltext.Week, sqltext.Month, sqltext.Quarter, sqltext.Year, sqltext.Decade, sqltext.Century, sqltext.Millennium,
}

// timestamps returns points in time that are random, on the edges of calendar units, and
// one microsecond beside them.
func timestamps(r *rand.Rand) []int64 {
	var list []int64
	for range 150 {
		list = append(list, r.Int64N(2*year12000)-year12000, r.Int64N(4_000_000_000_000_000)-2_000_000_000_000_000)
	}
	for _, day := range []int64{0, -1, 1, 19723, -719528, -719162, 2932896, 2932897, -723180, -722815, 11016, -25509, 59, 60, 789, -135140} {
		for _, d := range []int64{-1, 0, 1} {
			list = append(list, day*microsPerDay+d)
		}
	}
	return list
}

// TestBucket_truncIsDuckDBs checks buckets of date_trunc against DuckDB: the value of a
// bucket, and that its first and last ticks and the ticks beside them fall where they
// should.
func TestBucket_truncIsDuckDBs(t *testing.T) {
	t.Parallel()
	db := duckdb(t)
	ts := timestamps(rand.New(rand.NewPCG(1, 2)))
	for _, typ := range []string{"timestamp", "timestamptz", "date"} {
		for _, u := range units {
			if typ == "timestamptz" && slices.Index(units, u) > slices.Index(units, sqltext.Year) {
				continue // never a bucket
			}
			b := sqltext.Bucket{Kind: sqltext.Trunc, Unit: u, Type: typ, Result: typ}
			if typ == "date" {
				b.Result = "timestamp"
			}
			var ticks []int64
			for _, v := range ts {
				if typ == "date" {
					v /= microsPerDay
				}
				next, ok := b.Next(v)
				if !ok {
					t.Fatalf("%s %s: no bucket after %d", typ, u, v)
				}
				floor := b.Floor(v)
				if floor > v || next <= v {
					t.Fatalf("%s %s: bucket of %d is [%d, %d)", typ, u, v, floor, next)
				}
				ticks = append(ticks, v, floor, next-1, floor-1, next)
			}
			values := duckTrunc(t, db, typ, u, ticks)
			for i := 0; i < len(ticks); i += 5 {
				if got := b.Value(ticks[i]); got != values[i] {
					t.Fatalf("%s %s: value of %d is %d, DuckDB has %d", typ, u, ticks[i], got, values[i])
				}
				if values[i+1] != values[i] || values[i+2] != values[i] || values[i+3] == values[i] || values[i+4] == values[i] {
					t.Fatalf("%s %s: bucket of %d is [%d, %d), DuckDB's values are %v", typ, u, ticks[i], ticks[i+1], ticks[i+4], values[i:i+5])
				}
			}
		}
	}
}

// duckTrunc returns date_trunc of ticks as microseconds since 1970.
func duckTrunc(t *testing.T, db querier, typ string, u sqltext.Unit, ticks []int64) []int64 {
	t.Helper()
	expr := map[string]string{
		"timestamp":   "make_timestamp(v)",
		"timestamptz": "(make_timestamp(v) AT TIME ZONE 'UTC')",
		"date":        "(DATE '1970-01-01' + v::INTEGER)",
	}[typ]
	return queryInts(t, db, fmt.Sprintf("SELECT epoch_us(date_trunc('%s', %s)) FROM (SELECT unnest(%s::BIGINT[]) AS v)", u, expr, list(ticks)))
}

func list(v []int64) string {
	return strings.ReplaceAll(fmt.Sprint(v), " ", ", ")
}

func TestBucket_castToDateIsDuckDBs(t *testing.T) {
	t.Parallel()
	db := duckdb(t)
	b := sqltext.Bucket{Kind: sqltext.Trunc, Unit: sqltext.Day, Type: "timestamp", Result: "date"}
	ts := timestamps(rand.New(rand.NewPCG(3, 4)))
	want := queryInts(t, db, fmt.Sprintf("SELECT CAST(make_timestamp(v) AS DATE) - DATE '1970-01-01' FROM (SELECT unnest(%s::BIGINT[]) AS v)", list(ts)))
	for i, v := range ts {
		if got := b.Value(v); got != want[i] {
			t.Fatalf("date of %d is day %d, DuckDB has %d", v, got, want[i])
		}
	}
}

// TestBucket_timeBucketIsDuckDBs checks time_bucket as [sqltext.Closed] reads it from a
// query.
func TestBucket_timeBucketIsDuckDBs(t *testing.T) {
	t.Parallel()
	db := duckdb(t)
	r := rand.New(rand.NewPCG(13, 14))
	ts := timestamps(r)
	for _, unit := range []string{"second", "minute", "hour", "day", "week", "month", "quarter", "year"} {
		for _, col := range []string{"ts", "tz"} {
			width := fmt.Sprintf("INTERVAL %d %s", 1+r.IntN(90), unit)
			q := parse(t, sqltext.DuckDB, "SELECT time_bucket("+width+", "+col+") FROM t GROUP BY 1")
			proofs, reason := sqltext.Closed(q, sqltext.Options{Columns: schemaOf, TimeZone: "UTC"})
			if reason != nil {
				t.Fatal(reason)
			}
			var ticks []int64
			for _, v := range ts {
				next, _ := proofs[0].Bucket.Next(v)
				ticks = append(ticks, v, proofs[0].Bucket.Floor(v), next-1, next)
			}
			expr := map[string]string{"ts": "make_timestamp(v)", "tz": "(make_timestamp(v) AT TIME ZONE 'UTC')"}[col]
			want := queryInts(t, db, fmt.Sprintf("SELECT epoch_us(time_bucket(%s, %s)) FROM (SELECT unnest(%s::BIGINT[]) AS v)", width, expr, list(ticks)))
			for i, v := range ticks {
				if got := proofs[0].Bucket.Value(v); got != want[i] {
					t.Fatalf("time_bucket(%s, %s) of %d is %d, DuckDB has %d", width, col, v, got, want[i])
				}
			}
		}
	}
}

// TestBucket_cover checks that a covering interval holds the range, is made of whole
// buckets and is no wider than needed.
func TestBucket_cover(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 6))
	for range 20_000 {
		b := randomBucket(r)
		lo := r.Int64N(2*year12000) - year12000
		if b.Type == "date" || b.Type == "long" {
			lo /= microsPerDay
		}
		hi := lo + r.Int64N(1<<r.IntN(45))
		if b.Type == "date" {
			hi = lo + r.Int64N(1<<r.IntN(22))
		}
		i := b.Cover(lo, hi)
		switch {
		case !i.Contains(lo) || !i.Contains(hi):
			t.Fatalf("%v: %v does not hold %d to %d", b, i, lo, hi)
		case b.Floor(i.Lo) != i.Lo || b.Floor(i.Hi) != i.Hi:
			t.Fatalf("%v: %v is not aligned", b, i)
		case b.Floor(lo) != i.Lo || b.Floor(i.Hi-1) != b.Floor(hi):
			t.Fatalf("%v: %v is wider than %d to %d needs", b, i, lo, hi)
		}
		out := b.Output(i)
		for range 5 {
			v := lo + r.Int64N(max(2*(hi-lo), 10)) - (hi-lo)/2
			if i.Contains(v) != out.Contains(b.Value(v)) {
				t.Fatalf("%v: %d lies in %v: %v, but its value %d in %v: %v", b, v, i, i.Contains(v), b.Value(v), out, out.Contains(b.Value(v)))
			}
		}
	}
}

func randomBucket(r *rand.Rand) sqltext.Bucket {
	typ := []string{"timestamp", "timestamptz", "date", "timestamp", "long"}[r.IntN(5)]
	b := sqltext.Bucket{Kind: sqltext.Trunc, Unit: units[r.IntN(len(units))], Type: typ, Result: typ}
	switch {
	case typ == "long" || r.IntN(6) == 0:
		b.Kind, b.Unit = sqltext.Identity, ""
	case typ == "timestamp" && r.IntN(3) == 0:
		b = sqltext.Bucket{Kind: sqltext.Width, Width: 1 + r.Int64N(5*microsPerDay), Origin: r.Int64N(1 << 50), Type: typ, Result: typ}
	case typ == "timestamp" && r.IntN(4) == 0:
		b = sqltext.Bucket{Kind: sqltext.Width, Width: 1 + r.Int64N(40), Months: true, Origin: 946684800000000, Type: typ, Result: typ}
	case typ == "timestamp" && r.IntN(2) == 0:
		b.Unit, b.Result = sqltext.Day, "date"
	case typ == "date":
		b.Result = "timestamp"
	}
	return b
}

func TestBucket_extremes(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 8))
	for range 2000 {
		b := randomBucket(r)
		for _, v := range []int64{math.MaxInt64, math.MinInt64, math.MaxInt64 - 1, math.MinInt64 + 1} {
			if b.Type == "date" {
				v = int64(int32(v >> 32))
			}
			i := b.Cover(v, v)
			if !i.Contains(v) {
				t.Fatalf("%v: %v does not hold %d", b, i, v)
			}
		}
	}
}

func TestMerge(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(9, 10))
	for range 5000 {
		var in []sqltext.Interval
		for range r.IntN(6) {
			lo := r.Int64N(40)
			in = append(in, sqltext.Interval{Lo: lo, Hi: lo + r.Int64N(8), NoLo: r.IntN(12) == 0, NoHi: r.IntN(12) == 0})
		}
		out := sqltext.Merge(in)
		for v := int64(-2); v < 50; v++ {
			holds := func(list []sqltext.Interval) bool {
				return slices.ContainsFunc(list, func(i sqltext.Interval) bool { return i.Contains(v) })
			}
			if holds(in) != holds(out) {
				t.Fatalf("Merge(%v) = %v: differs at %d", in, out, v)
			}
		}
		for i := 1; i < len(out); i++ {
			if out[i-1].NoHi || out[i].NoLo || out[i-1].Hi >= out[i].Lo {
				t.Fatalf("Merge(%v) = %v: not apart", in, out)
			}
		}
	}
}

// TestLiteral_isDuckDBs checks that DuckDB reads a literal back as the same value.
func TestLiteral_isDuckDBs(t *testing.T) {
	t.Parallel()
	db := duckdb(t)
	for typ, back := range map[string]string{"timestamp": "epoch_us(%s)", "timestamptz": "epoch_us(%s)", "date": "%s - DATE '1970-01-01'", "long": "%s", "timestamp_ns": "epoch_ns(%s)"} {
		var exprs []string
		var want []int64
		values := timestamps(rand.New(rand.NewPCG(11, 12)))
		values = append(values, math.MinInt64, math.MaxInt64)
		for _, v := range values {
			switch typ {
			case "date":
				v /= microsPerDay
			case "timestamp_ns":
				v %= 9_000_000_000_000_000_000
			}
			lit, err := sqltext.Literal(sqltext.DuckDB, typ, v)
			if err != nil {
				continue
			}
			want = append(want, v)
			exprs = append(exprs, "("+fmt.Sprintf(back, lit)+")")
		}
		got := queryInts(t, db, "SELECT unnest(["+strings.Join(exprs, ", ")+"]::BIGINT[])")
		if !slices.Equal(got, want) || len(want) < 300 {
			t.Errorf("%s: %d literals read back as other values", typ, len(want))
		}
	}
}

func TestLiteral_refused(t *testing.T) {
	t.Parallel()
	if s, err := sqltext.Literal(sqltext.Trino, "timestamp", year12000); err == nil {
		t.Errorf("Literal of the year 12000 in Trino = %s, want an error", s)
	}
	if s, err := sqltext.Literal(sqltext.Spark, "timestamp_ns", 0); err == nil {
		t.Errorf("Literal of nanoseconds in Spark = %s, want an error", s)
	}
	if s, err := sqltext.Literal(sqltext.DuckDB, "double", 0); err == nil {
		t.Errorf("Literal of a double = %s, want an error", s)
	}
}

func TestPredicate(t *testing.T) {
	t.Parallel()
	day := sqltext.Bucket{Kind: sqltext.Trunc, Unit: sqltext.Day, Type: "timestamp", Result: "timestamp"}
	iv := []sqltext.Interval{day.Cover(microsPerDay, microsPerDay), day.Cover(0, 5), {NoHi: true, Lo: 3 * microsPerDay}}
	for _, c := range []struct {
		d    sqltext.Dialect
		null bool
		want string
	}{
		{sqltext.DuckDB, false, `("t s" >= TIMESTAMP '1970-01-01 00:00:00.000000' AND "t s" < TIMESTAMP '1970-01-03 00:00:00.000000') OR ("t s" >= TIMESTAMP '1970-01-04 00:00:00.000000')`},
		{sqltext.Spark, true, "(`t s` >= TIMESTAMP_NTZ '1970-01-01 00:00:00.000000' AND `t s` < TIMESTAMP_NTZ '1970-01-03 00:00:00.000000') OR (`t s` >= TIMESTAMP_NTZ '1970-01-04 00:00:00.000000') OR `t s` IS NULL"},
	} {
		got, err := sqltext.Predicate(c.d, "t s", "timestamp", iv, c.null)
		if err != nil || got != c.want {
			t.Errorf("Predicate(%s) = %s, %v, want %s", c.d, got, err, c.want)
		}
	}
	if got, _ := sqltext.Predicate(sqltext.DuckDB, "x", "long", nil, false); got != "FALSE" {
		t.Errorf("Predicate of nothing = %s, want FALSE", got)
	}
}
