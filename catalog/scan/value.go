package scan

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

// Values are kept as bool, int64 (integers, dates, times and timestamps in the unit of
// their type), float64 (floats, too), *big.Int (decimals, without their point), string,
// []byte and [16]byte (uuids).

// compare orders two values. It is not ok if they have no order that all engines share:
// their types differ, one is NaN, or they are zeros of different sign.
func compare(a, b any) (order int, ok bool) {
	switch x := a.(type) {
	case int64:
		return ordered(x, b, cmp.Compare[int64])
	case float64:
		y, isFloat := b.(float64)
		if !isFloat || math.IsNaN(x) || math.IsNaN(y) || (x == 0 && y == 0 && math.Signbit(x) != math.Signbit(y)) {
			return 0, false
		}
		return cmp.Compare(x, y), true
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

// discrete reports whether the values of a type are whole numbers, so that x < 5 is the
// same as x <= 4.
func discrete(typ iceberg.Type) bool {
	switch typ.(type) {
	case iceberg.Int32Type, iceberg.Int64Type, iceberg.DateType, iceberg.TimeType, iceberg.TimestampType, iceberg.TimestampTzType,
		iceberg.TimestampNsType, iceberg.TimestampTzNsType, iceberg.DecimalType:
		return true
	default:
		return false
	}
}

// step is the next value of a discrete type in a direction, 1 or -1.
func step(v any, by int64) (any, bool) {
	switch x := v.(type) {
	case int64:
		if (by > 0 && x == math.MaxInt64) || (by < 0 && x == math.MinInt64) {
			return nil, false
		}
		return x + by, true
	case *big.Int:
		return new(big.Int).Add(x, big.NewInt(by)), true
	default:
		return nil, false
	}
}

func isFloat(typ iceberg.Type) bool {
	switch typ.(type) {
	case iceberg.Float32Type, iceberg.Float64Type:
		return true
	default:
		return false
	}
}

// hasBounds reports whether the order of a type's bounds can be trusted: older writers
// ordered uuids as signed numbers, and other types have no bounds that are values.
func hasBounds(typ iceberg.Type) bool {
	switch typ.(type) {
	case iceberg.StringType, iceberg.BinaryType, iceberg.FixedType, iceberg.BooleanType:
		return true
	default:
		return discrete(typ) || isFloat(typ)
	}
}

// decode reads a bound in Iceberg's single-value form. A bound that was written before
// the column's type was widened has the size of the old type. NaN is no bound.
func decode(typ iceberg.Type, b []byte) (any, bool) {
	if b == nil {
		return nil, false
	}
	switch typ := typ.(type) {
	case iceberg.StringType:
		return string(b), true
	case iceberg.BinaryType, iceberg.FixedType:
		return b, true
	case iceberg.BooleanType:
		return len(b) == 1 && b[0] != 0, len(b) == 1
	case iceberg.DecimalType:
		return bigEndian(b), len(b) > 0
	case iceberg.UUIDType:
		u, err := uuid.FromBytes(b)
		return [16]byte(u), err == nil
	case iceberg.Float32Type, iceberg.Float64Type:
		return float(b)
	default:
		n, ok := littleEndian(b)
		switch perDay := unitsPerDay(typ); {
		case ok && perDay > 1 && len(b) == 4: // a date that became a timestamp
			return times(n, perDay)
		case perDay == 1 && len(b) != 4: // and one that will
			return nil, false
		}
		return n, ok && discrete(typ)
	}
}

func littleEndian(b []byte) (int64, bool) {
	switch len(b) {
	case 4:
		return int64(int32(binary.LittleEndian.Uint32(b))), true
	case 8:
		return int64(binary.LittleEndian.Uint64(b)), true
	default:
		return 0, false
	}
}

func float(b []byte) (any, bool) {
	var f float64
	switch len(b) {
	case 4:
		f = float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
	case 8:
		f = math.Float64frombits(binary.LittleEndian.Uint64(b))
	default:
		return nil, false
	}
	return f, !math.IsNaN(f)
}

func bigEndian(b []byte) *big.Int {
	n := new(big.Int).SetBytes(b)
	if len(b) > 0 && b[0]&0x80 != 0 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(len(b)*8)))
	}
	return n
}

// times multiplies; not ok on overflow.
func times(n, by int64) (any, bool) {
	if by == 0 || n > math.MaxInt64/by || n < math.MinInt64/by {
		return nil, false
	}
	return n * by, true
}

// partitionValue turns a partition value, as iceberg-go hands it out, into a value of the
// field's type. It is not ok if it is not understood; nil is NULL.
func partitionValue(typ iceberg.Type, v any) (value any, ok bool) {
	switch x := v.(type) {
	case nil:
		return nil, true
	case bool, string:
		return x, true
	case []byte:
		return ofBytes(typ, x)
	case int:
		return int64(x), true
	case int32:
		return int64(x), true
	case int64:
		return x, true
	case float32:
		return float64(x), true
	case float64:
		return x, true
	case iceberg.Date:
		if perDay := unitsPerDay(typ); perDay > 1 { // a date that became a timestamp
			return times(int64(x), perDay)
		}
		return int64(x), true
	case iceberg.Time:
		return int64(x), true
	case iceberg.Timestamp:
		return int64(x), unitsPerDay(typ) != 1
	case iceberg.TimestampNano:
		return int64(x), unitsPerDay(typ) != 1
	case uuid.UUID:
		return [16]byte(x), true
	case [16]byte:
		return ofBytes(typ, x[:])
	case iceberg.DecimalLiteral:
		return x.Val.BigInt(), true
	case iceberg.Decimal:
		return x.Val.BigInt(), true
	default:
		return nil, false
	}
}

// ofBytes reads what a manifest without logical types hands out as bytes.
func ofBytes(typ iceberg.Type, b []byte) (any, bool) {
	switch typ.(type) {
	case iceberg.UUIDType, iceberg.DecimalType:
		return decode(typ, b)
	default:
		return b, true
	}
}
