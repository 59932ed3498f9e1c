package scan

import (
	"encoding/binary"
	"math"
	"math/big"
	"testing"

	"github.com/apache/iceberg-go"
)

// TestDecode_widened checks bounds that were written before a column's type was widened.
func TestDecode_widened(t *testing.T) {
	t.Parallel()
	four := func(n uint32) []byte { return binary.LittleEndian.AppendUint32(nil, n) }
	eight := func(n uint64) []byte { return binary.LittleEndian.AppendUint64(nil, n) }
	minus := uint32(0xffffffff)
	for _, c := range []struct {
		typ  iceberg.Type
		b    []byte
		want any // nil: not known
	}{
		{iceberg.PrimitiveTypes.Int64, four(minus), int64(-1)},
		{iceberg.PrimitiveTypes.Int64, eight(math.MaxUint64), int64(-1)},
		{iceberg.PrimitiveTypes.Int64, []byte{1, 2, 3}, nil},
		{iceberg.PrimitiveTypes.Float64, four(math.Float32bits(1.5)), 1.5},
		{iceberg.PrimitiveTypes.Float64, eight(math.Float64bits(math.NaN())), nil},
		{iceberg.PrimitiveTypes.Timestamp, four(minus), int64(-86_400_000_000)},
		{iceberg.PrimitiveTypes.TimestampNs, four(1), int64(86_400_000_000_000)},
		{iceberg.PrimitiveTypes.Date, eight(5), nil},
		{iceberg.PrimitiveTypes.Bool, []byte{}, nil},
		{iceberg.DecimalTypeOf(20, 2), []byte{0xff, 0x38}, big.NewInt(-200)},
	} {
		got, ok := decode(c.typ, c.b)
		if !ok {
			got = nil
		}
		order, ok2 := compare(got, c.want)
		if (c.want == nil) != (got == nil) || (c.want != nil && (!ok2 || order != 0)) {
			t.Errorf("decode(%s, %x) = %v, %v, want %v", c.typ, c.b, got, ok, c.want)
		}
	}
}

// TestBucket checks hashes with the values of the specification's appendix B.
func TestBucket(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		typ  iceberg.Type
		v    any
		hash int32
	}{
		{iceberg.PrimitiveTypes.Int32, int64(34), 2017239379},
		{iceberg.PrimitiveTypes.Int64, int64(34), 2017239379},
		{iceberg.DecimalTypeOf(9, 2), big.NewInt(1420), -500754589},
		{iceberg.PrimitiveTypes.Date, int64(17486), -653330422},
		{iceberg.PrimitiveTypes.Time, int64(81_068_000_000), -662762989},
		{iceberg.PrimitiveTypes.Timestamp, int64(1_510_871_468_000_000), -2047944441},
		{iceberg.PrimitiveTypes.TimestampNs, int64(1_510_871_468_000_001_001), -1207196810},
		{iceberg.PrimitiveTypes.String, "iceberg", 1210000089},
		{iceberg.PrimitiveTypes.Binary, []byte{0, 1, 2, 3}, -188683207},
	} {
		const n = 1 << 20
		got, ok := transform{form: formBucket, width: n, from: c.typ}.apply(c.v)
		if want := int64((c.hash & math.MaxInt32) % n); !ok || got != want {
			t.Errorf("bucket(%s %v) = %v, %v, want %d", c.typ, c.v, got, ok, want)
		}
	}
}

// TestAppendValue checks the JSON that clients parse.
func TestAppendValue(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		typ  iceberg.Type
		v    any
		want string
	}{
		{iceberg.PrimitiveTypes.Float64, 5.0, "5.0"}, // Java reads no 5 as a double
		{iceberg.PrimitiveTypes.Float32, float64(float32(0.1)), "0.1"},
		{iceberg.PrimitiveTypes.Float64, 1e300, "1e+300"},
		{iceberg.PrimitiveTypes.Float64, math.Inf(-1), `"-Infinity"`},
		{iceberg.DecimalTypeOf(9, 3), big.NewInt(-5), `"-0.005"`},
		{iceberg.DecimalTypeOf(9, 0), big.NewInt(12), `"12"`},
		{iceberg.PrimitiveTypes.Date, int64(-1), `"1969-12-31"`},
		{iceberg.PrimitiveTypes.Time, int64(1), `"00:00:00.000001"`},
		{iceberg.PrimitiveTypes.Timestamp, int64(-1), `"1969-12-31T23:59:59.999999"`},
		{iceberg.PrimitiveTypes.TimestampTz, int64(0), `"1970-01-01T00:00:00.000000+00:00"`},
		{iceberg.PrimitiveTypes.TimestampNs, int64(1), `"1970-01-01T00:00:00.000000001"`},
		{iceberg.PrimitiveTypes.Binary, []byte{0xab, 1}, `"AB01"`},
		{iceberg.PrimitiveTypes.String, "a\"\x01é", `"a\"\u0001é"`},
		{iceberg.PrimitiveTypes.Int64, int64(math.MaxInt64), "9223372036854775807"},
		{iceberg.PrimitiveTypes.Int64, nil, "null"},
	} {
		if got := string(appendValue(nil, c.typ, c.v)); got != c.want {
			t.Errorf("%s %v is written %s, want %s", c.typ, c.v, got, c.want)
		}
	}
}
