package changes

import (
	"fmt"
	"math"
	"math/big"
	"strings"
	"time"

	"github.com/apache/iceberg-go"

	"github.com/catalogd/catalogd/mv/plan"
)

// column is a wanted column.
type column struct {
	id      int
	typ     iceberg.Type
	bounded bool // bounds of files can be trusted
}

// bucketable reports whether ranges of the column mean anything at all.
func (c column) bucketable() bool { return c.typ != nil && (hasBounds(c.typ) || isUUID(c.typ)) }

func isUUID(typ iceberg.Type) bool {
	_, ok := typ.(iceberg.UUIDType)
	return ok
}

// piece is what is known about a column's values in one file or partition.
type piece struct {
	ranges  *plan.Range // of the values that are not NULL; nil if there are none
	null    bool        // NULL may occur
	unknown bool        // nothing is known; ranges and null do not count
}

// ofPartition derives a piece from a partition tuple. Only transforms whose values stand
// for a range of the column say anything.
func (c column) ofPartition(s *spec, partition map[int]any) piece {
	best := piece{unknown: true}
	if !c.bucketable() {
		return best
	}
	for _, f := range s.fields {
		if f.source != c.id || f.multi {
			continue
		}
		p := c.ofField(f, partition[f.id])
		if best.unknown || (!p.unknown && p.ranges != nil && best.ranges != nil && inside(*p.ranges, *best.ranges)) {
			best = p
		}
	}
	return best
}

func inside(a, b plan.Range) bool {
	lo, ok := Compare(a.Lo, b.Lo)
	hi, ok2 := Compare(a.Hi, b.Hi)
	return ok && ok2 && lo >= 0 && hi <= 0
}

func (c column) ofField(f specField, v any) piece {
	r, ok := c.preimage(f.transform, v)
	switch {
	case !rangeTransform(f.transform):
		return piece{unknown: true}
	case v == nil: // these transforms give NULL for NULL and for nothing else
		return piece{null: true}
	case !ok:
		return piece{unknown: true}
	default:
		return piece{ranges: &r}
	}
}

func rangeTransform(t iceberg.Transform) bool {
	switch t.(type) {
	case iceberg.IdentityTransform, iceberg.YearTransform, iceberg.MonthTransform, iceberg.DayTransform, iceberg.HourTransform,
		iceberg.TruncateTransform:
		return true
	default:
		return false
	}
}

// preimage is the range of column values that the transform maps to v.
func (c column) preimage(t iceberg.Transform, v any) (plan.Range, bool) {
	x, isDate, ok := normal(v)
	if !ok {
		return plan.Range{}, false
	}
	if _, ok := t.(iceberg.IdentityTransform); ok {
		if perDay := unitsPerDay(c.typ); isDate && perDay > 1 { // a date that became a timestamp
			if x, ok = times(x, perDay); !ok {
				return plan.Range{}, false
			}
		}
		return plan.Range{Lo: x, Hi: x}, true
	}
	n, ok := x.(int64)
	if !ok {
		return plan.Range{}, false
	}
	switch t := t.(type) {
	case iceberg.YearTransform:
		return c.days(monthStart(n*12), monthStart((n+1)*12))
	case iceberg.MonthTransform:
		return c.days(monthStart(n), monthStart(n+1))
	case iceberg.DayTransform:
		return c.days(n, n+1)
	case iceberg.HourTransform:
		perHour := unitsPerDay(c.typ) / 24
		return plan.Range{Lo: scaled(n, perHour), Hi: before(scaled(n+1, perHour))}, perHour > 0
	case iceberg.TruncateTransform:
		return c.truncated(n, int64(t.Width))
	default:
		return plan.Range{}, false
	}
}

// monthStart is the day on which the n-th month since 1970-01 begins.
func monthStart(n int64) int64 {
	const limit = 12 * 1_000_000 // far beyond every timestamp, and safe for package time
	n = min(max(n, -limit), limit)
	return time.Date(1970, time.Month(1+n), 1, 0, 0, 0, 0, time.UTC).Unix() / 86_400
}

// days is the range from one day to the one before another.
func (c column) days(from, to int64) (plan.Range, bool) {
	perDay := unitsPerDay(c.typ)
	if perDay == 0 {
		return plan.Range{}, false
	}
	return plan.Range{Lo: scaled(from, perDay), Hi: before(scaled(to, perDay))}, true
}

// scaled multiplies; an overflow is an open end.
func scaled(n, by int64) any {
	v, ok := times(n, by)
	if !ok {
		return nil
	}
	return v
}

func before(v any) any {
	n, ok := v.(int64)
	if !ok || n == math.MinInt64 {
		return nil
	}
	return n - 1
}

func (c column) truncated(n, width int64) (plan.Range, bool) {
	switch c.typ.(type) {
	case iceberg.Int32Type, iceberg.Int64Type:
	default:
		return plan.Range{}, false
	}
	if width <= 0 || n > math.MaxInt64-width {
		return plan.Range{Lo: n}, width > 0
	}
	return plan.Range{Lo: n, Hi: n + width - 1}, true
}

// partitionKey identifies a partition across manifests: a spec and the values of all its
// fields. A value that was written before its column's type was widened is the same.
func partitionKey(s *spec, partition map[int]any) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d", s.id)
	for _, f := range s.fields {
		b.WriteByte('\x00')
		b.WriteString(keyOf(partition[f.id]))
	}
	return b.String()
}

func keyOf(v any) string {
	if v == nil {
		return "-"
	}
	switch x := v.(type) {
	case float32:
		return fmt.Sprintf("f%x", math.Float64bits(float64(x)))
	case float64:
		return fmt.Sprintf("f%x", math.Float64bits(x))
	}
	n, _, ok := normal(v)
	if !ok {
		return fmt.Sprintf("?%T%v", v, v)
	}
	switch x := n.(type) {
	case *big.Int:
		return "d" + x.String()
	case string:
		return fmt.Sprintf("s%q", x)
	case int64:
		return fmt.Sprintf("n%d", x)
	case bool:
		return fmt.Sprintf("b%t", x)
	default:
		return fmt.Sprintf("x%x", x)
	}
}
