package changes

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"
	"math/big"
	"strings"

	"github.com/apache/iceberg-go"
	"github.com/google/uuid"
)

// Compare orders two values in the form that [plan.Range] describes. It is not ok if they have no order: one is nil (an open
// end), or they belong to columns of different types.
func Compare(a, b any) (order int, ok bool) {
	switch x := a.(type) {
	case int64:
		return ordered(x, b, cmp.Compare[int64])
	case *big.Int:
		return ordered(x, b, (*big.Int).Cmp)
	case string:
		return ordered(x, b, strings.Compare)
	case []byte:
		return ordered(x, b, bytes.Compare)
	case bool:
		return ordered(x, b, func(x, y bool) int { return bit(x) - bit(y) })
	case [16]byte:
		return ordered(x, b, func(x, y [16]byte) int { return bytes.Compare(x[:], y[:]) })
	default:
		return 0, false
	}
}

func ordered[T any](x T, b any, compare func(x, y T) int) (int, bool) {
	y, ok := b.(T)
	if !ok {
		return 0, false
	}
	return compare(x, y), true
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

const (
	dayMicros = 86_400_000_000
	dayNanos  = dayMicros * 1000
)

// unitsPerDay is how many units of a date or timestamp type a day has, 0 for others.
func unitsPerDay(typ iceberg.Type) int64 {
	switch typ.(type) {
	case iceberg.DateType:
		return 1
	case iceberg.TimestampType, iceberg.TimestampTzType:
		return dayMicros
	case iceberg.TimestampNsType, iceberg.TimestampTzNsType:
		return dayNanos
	default:
		return 0
	}
}

// hasBounds reports whether the bounds of a column of this type can be trusted. NaN lies
// outside the bounds of floats; older Java writers ordered uuids as signed numbers.
func hasBounds(typ iceberg.Type) bool {
	switch typ.(type) {
	case iceberg.Int32Type, iceberg.Int64Type, iceberg.DateType, iceberg.TimeType, iceberg.TimestampType, iceberg.TimestampTzType,
		iceberg.TimestampNsType, iceberg.TimestampTzNsType, iceberg.StringType, iceberg.BinaryType, iceberg.FixedType,
		iceberg.DecimalType, iceberg.BooleanType:
		return true
	default:
		return false
	}
}

// decode reads a bound in Iceberg's single-value form. A bound that was written before
// the column's type was widened has the size of the old type.
func decode(typ iceberg.Type, b []byte) (any, bool) {
	if b == nil {
		return nil, false
	}
	switch typ.(type) {
	case iceberg.StringType:
		return string(b), true
	case iceberg.BinaryType, iceberg.FixedType:
		return bytes.Clone(b), true
	case iceberg.BooleanType:
		return len(b) == 1 && b[0] != 0, len(b) == 1
	case iceberg.DecimalType:
		return bigEndian(b), len(b) > 0
	case iceberg.UUIDType:
		u, err := uuid.FromBytes(b)
		return [16]byte(u), err == nil
	case iceberg.Int32Type, iceberg.Int64Type, iceberg.DateType, iceberg.TimeType:
		return littleEndian(b)
	case iceberg.TimestampType, iceberg.TimestampTzType, iceberg.TimestampNsType, iceberg.TimestampTzNsType:
		n, ok := littleEndian(b)
		if ok && len(b) == 4 { // a date that became a timestamp
			return times(n, unitsPerDay(typ))
		}
		return n, ok
	default:
		return nil, false
	}
}

func littleEndian(b []byte) (any, bool) {
	switch len(b) {
	case 4:
		return int64(int32(binary.LittleEndian.Uint32(b))), true
	case 8:
		return int64(binary.LittleEndian.Uint64(b)), true
	default:
		return nil, false
	}
}

func bigEndian(b []byte) *big.Int {
	n := new(big.Int).SetBytes(b)
	if len(b) > 0 && b[0]&0x80 != 0 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(len(b)*8)))
	}
	return n
}

// times multiplies; not ok on overflow.
func times(n any, by int64) (any, bool) {
	x, ok := n.(int64)
	if !ok || by == 0 || x > math.MaxInt64/by || x < math.MinInt64/by {
		return nil, false
	}
	return x * by, true
}

// Value turns a partition value, as iceberg-go hands it out, into the form that [Compare]
// orders; not ok for floats and what else has no such form.
func Value(v any) (value any, ok bool) {
	value, _, ok = normal(v)
	return value, ok
}

// normal turns a partition value, as iceberg-go hands it out, into a value. date tells
// whether it counts days.
func normal(v any) (value any, date, ok bool) {
	switch x := v.(type) {
	case int:
		return int64(x), false, true
	case int32:
		return int64(x), false, true
	case int64:
		return x, false, true
	case iceberg.Date:
		return int64(x), true, true
	case iceberg.Time:
		return int64(x), false, true
	case iceberg.Timestamp:
		return int64(x), false, true
	case iceberg.TimestampNano:
		return int64(x), false, true
	case string:
		return x, false, true
	case []byte:
		return x, false, true
	case bool:
		return x, false, true
	case uuid.UUID:
		return [16]byte(x), false, true
	case [16]byte:
		return x, false, true
	case iceberg.DecimalLiteral:
		return x.Val.BigInt(), false, true
	case iceberg.Decimal:
		return x.Val.BigInt(), false, true
	default:
		return nil, false, false
	}
}
