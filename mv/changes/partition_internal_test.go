package changes

import (
	"bytes"
	"math"
	"math/big"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/iceberg-go"
	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/catalogd/catalogd/mv/plan"
)

// sample is a column type with a generator of its literals.
type sample struct {
	typ     iceberg.Type
	literal func(n int64) iceberg.Literal
	step    bool // values have neighbours
}

var samples = []sample{
	{iceberg.PrimitiveTypes.Int32, func(n int64) iceberg.Literal { return iceberg.NewLiteral(int32(n)) }, true},
	{iceberg.PrimitiveTypes.Int64, iceberg.NewLiteral[int64], true},
	{iceberg.PrimitiveTypes.Date, func(n int64) iceberg.Literal { return iceberg.NewLiteral(iceberg.Date(n % 3_000_000)) }, true},
	{iceberg.PrimitiveTypes.Timestamp, func(n int64) iceberg.Literal { return iceberg.NewLiteral(iceberg.Timestamp(n)) }, true},
	{iceberg.PrimitiveTypes.TimestampTz, func(n int64) iceberg.Literal { return iceberg.NewLiteral(iceberg.Timestamp(n)) }, true},
	{iceberg.PrimitiveTypes.TimestampNs, func(n int64) iceberg.Literal { return iceberg.NewLiteral(iceberg.TimestampNano(n)) }, true},
}

// TestPreimageInvertsTransform holds preimages against iceberg-go's transforms: a value
// lies in the preimage of its own partition value, its neighbours outside do not.
func TestPreimageInvertsTransform(t *testing.T) {
	t.Parallel()
	transforms := []iceberg.Transform{
		iceberg.IdentityTransform{},
		iceberg.YearTransform{},
		iceberg.MonthTransform{},
		iceberg.DayTransform{},
		iceberg.HourTransform{},
		iceberg.TruncateTransform{Width: 10},
	}
	rapid.Check(t, func(rt *rapid.T) {
		s := rapid.SampledFrom(samples).Draw(rt, "type")
		tr := rapid.SampledFrom(transforms).Draw(rt, "transform")
		if !tr.CanTransform(s.typ) {
			return
		}
		// iceberg-go's month and year lose the order of times far from now.
		n := rapid.Int64Range(-1<<55, 1<<55).Draw(rt, "value")
		c := column{typ: s.typ, bounded: true}
		v := s.literal(n)
		part := tr.Apply(iceberg.Optional[iceberg.Literal]{Valid: true, Val: v})
		r, ok := c.preimage(tr, part.Val.Any())
		if !ok {
			rt.Fatalf("%s of %s has no preimage", tr, s.typ)
		}
		x, _, _ := normal(v.Any())
		if !contains(plan.Interval{Lo: r.Lo, Hi: r.Hi, Closed: true}, plan.Range{Lo: x, Hi: x}) {
			rt.Fatalf("%s(%s %v) = %v, whose preimage is %+v", tr, s.typ, x, part.Val, r)
		}
		for _, end := range []struct {
			at    any
			shift int64
		}{{r.Lo, -1}, {r.Hi, 1}} {
			edge, ok := end.at.(int64)
			if !ok {
				continue
			}
			inside := tr.Apply(iceberg.Optional[iceberg.Literal]{Valid: true, Val: exact(s.typ, edge)})
			outside := tr.Apply(iceberg.Optional[iceberg.Literal]{Valid: true, Val: exact(s.typ, edge+end.shift)})
			if !inside.Val.Equals(part.Val) || outside.Val.Equals(part.Val) {
				rt.Fatalf("%s of %s: preimage %+v of %v is not tight at %d", tr, s.typ, r, part.Val, edge)
			}
		}
	})
}

// exact is the literal of a value without the folding that generators do.
func exact(typ iceberg.Type, n int64) iceberg.Literal {
	switch typ.(type) {
	case iceberg.Int32Type:
		return iceberg.NewLiteral(int32(n))
	case iceberg.DateType:
		return iceberg.NewLiteral(iceberg.Date(n))
	case iceberg.TimestampNsType:
		return iceberg.NewLiteral(iceberg.TimestampNano(n))
	case iceberg.TimestampType, iceberg.TimestampTzType:
		return iceberg.NewLiteral(iceberg.Timestamp(n))
	default:
		return iceberg.NewLiteral(n)
	}
}

// TestDecodeReadsWhatIcebergWrites holds decoded bounds against iceberg-go's encoding.
func TestDecodeReadsWhatIcebergWrites(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.Int64().Draw(rt, "n")
		text := rapid.StringN(1, -1, -1).Draw(rt, "text") // an empty bound counts as none
		dec := iceberg.Decimal{Scale: 2, Val: decimal128.FromI64(n)}
		for _, c := range []struct {
			typ  iceberg.Type
			lit  iceberg.Literal
			want any
		}{
			{iceberg.PrimitiveTypes.Int32, iceberg.NewLiteral(int32(n)), int64(int32(n))},
			{iceberg.PrimitiveTypes.Int64, iceberg.NewLiteral(n), n},
			{iceberg.PrimitiveTypes.Int64, iceberg.NewLiteral(int32(n)), int64(int32(n))}, // widened since
			{iceberg.PrimitiveTypes.Date, iceberg.NewLiteral(iceberg.Date(n)), int64(int32(n))},
			{iceberg.PrimitiveTypes.Time, iceberg.NewLiteral(iceberg.Time(n)), n},
			{iceberg.PrimitiveTypes.Timestamp, iceberg.NewLiteral(iceberg.Timestamp(n)), n},
			{iceberg.PrimitiveTypes.Timestamp, iceberg.NewLiteral(iceberg.Date(n % 1e6)), n % 1e6 * dayMicros}, // a date once
			{iceberg.PrimitiveTypes.String, iceberg.NewLiteral(text), text},
			{iceberg.PrimitiveTypes.Binary, iceberg.NewLiteral([]byte(text)), []byte(text)},
			{iceberg.PrimitiveTypes.Bool, iceberg.NewLiteral(n > 0), n > 0},
			{iceberg.DecimalTypeOf(20, 2), iceberg.NewLiteral(dec), big.NewInt(n)},
			{iceberg.PrimitiveTypes.UUID, iceberg.NewLiteral(uuid.NewSHA1(uuid.Nil, []byte(text))), [16]byte(uuid.NewSHA1(uuid.Nil, []byte(text)))},
		} {
			raw, err := c.lit.MarshalBinary()
			if err != nil {
				rt.Fatal(err)
			}
			got, ok := decode(c.typ, raw)
			if order, same := Compare(got, c.want); !ok || !same || order != 0 {
				rt.Fatalf("decode(%s, %x) = %v, %v, want %v", c.typ, raw, got, ok, c.want)
			}
		}
	})
}

func TestDecodeRefusesOddSizes(t *testing.T) {
	t.Parallel()
	for _, typ := range []iceberg.Type{iceberg.PrimitiveTypes.Int32, iceberg.PrimitiveTypes.Timestamp, iceberg.PrimitiveTypes.Bool, iceberg.PrimitiveTypes.UUID} {
		for _, raw := range [][]byte{nil, {}, {1, 2, 3}, bytes.Repeat([]byte{1}, 17)} {
			if v, ok := decode(typ, raw); ok {
				t.Errorf("decode(%s, %x) = %v", typ, raw, v)
			}
		}
	}
}

// TestMergeIsExact compares merged ranges with the set of values that they stand for.
func TestMergeIsExact(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		var in []plan.Range
		for range rapid.IntRange(0, 8).Draw(rt, "ranges") {
			lo := rapid.Int64Range(0, 40).Draw(rt, "lo")
			in = append(in, plan.Range{Lo: lo, Hi: lo + rapid.Int64Range(0, 6).Draw(rt, "width")})
		}
		if rapid.IntRange(0, 5).Draw(rt, "open") == 0 {
			in = append(in, plan.Range{Hi: int64(1)}, plan.Range{Lo: int64(45)})
		}
		holds := func(set []plan.Range, v int64) bool {
			for _, r := range set {
				if contains(plan.Interval{Lo: r.Lo, Hi: r.Hi, Closed: true}, plan.Range{Lo: v, Hi: v}) {
					return true
				}
			}
			return false
		}
		before := append([]plan.Range(nil), in...)
		out := merge(in)
		for v := int64(-2); v < 55; v++ {
			if holds(before, v) != holds(out, v) {
				rt.Fatalf("merge(%v) = %v, which differs at %d", before, out, v)
			}
		}
	})
	if got := merge([]plan.Range{{Lo: int64(math.MaxInt64), Hi: int64(math.MaxInt64)}, {Lo: int64(5), Hi: int64(6)}}); len(got) != 2 {
		t.Errorf("merge = %v", got)
	}
}
