package scan

import (
	"math"
	"math/big"
	"time"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/iceberg-go"
	"github.com/google/uuid"
)

// form is what a transform does.
type form uint8

const (
	formUnknown form = iota // also several source columns, and sources of unknown type
	formVoid
	formIdentity
	formBucket
	formTruncate
	formYear
	formMonth
	formDay
	formHour
)

// transform maps values of a source column.
type transform struct {
	form  form
	width int // of a truncation, or the number of buckets
	from  iceberg.Type
}

func transformOf(t iceberg.Transform, from iceberg.Type) transform {
	if from == nil {
		return transform{}
	}
	out := transform{from: from}
	switch t := t.(type) {
	case iceberg.IdentityTransform:
		out.form = formIdentity
	case iceberg.VoidTransform:
		out.form = formVoid
	case iceberg.BucketTransform:
		out.form, out.width = formBucket, t.NumBuckets
	case iceberg.TruncateTransform:
		out.form, out.width = formTruncate, t.Width
	case iceberg.YearTransform:
		out.form = formYear
	case iceberg.MonthTransform:
		out.form = formMonth
	case iceberg.DayTransform:
		out.form = formDay
	case iceberg.HourTransform:
		out.form = formHour
	default:
		return transform{}
	}
	if (out.form == formBucket || out.form == formTruncate) && out.width <= 0 {
		return transform{}
	}
	return out
}

// same reports whether two transforms of one column give the same values.
func (t transform) same(u transform) bool { return t.form == u.form && t.width == u.width }

// ordered reports whether x <= y implies t(x) <= t(y).
func (t transform) ordered() bool {
	switch t.form {
	case formIdentity, formTruncate, formYear, formMonth, formDay, formHour:
		return true
	default:
		return false
	}
}

// temporal reports whether the values count spans of time since 1970.
func (t transform) temporal() bool { return t.form >= formYear }

// apply transforms a value that is not NULL. It is not ok if the result is not known.
func (t transform) apply(v any) (any, bool) {
	switch t.form {
	case formIdentity:
		return v, true
	case formBucket:
		return t.bucket(v)
	case formTruncate:
		return truncate(v, t.width)
	case formYear, formMonth, formDay, formHour:
		n, ok := v.(int64)
		if !ok {
			return nil, false
		}
		return t.span(n)
	default:
		return nil, false
	}
}

// unitsPerDay is how many units of a date or timestamp type a day has, 0 for others.
func unitsPerDay(typ iceberg.Type) int64 {
	const micros = 86_400_000_000
	switch typ.(type) {
	case iceberg.DateType:
		return 1
	case iceberg.TimestampType, iceberg.TimestampTzType:
		return micros
	case iceberg.TimestampNsType, iceberg.TimestampTzNsType:
		return micros * 1000
	default:
		return 0
	}
}

func (t transform) span(n int64) (any, bool) {
	perDay := unitsPerDay(t.from)
	if perDay == 0 {
		return nil, false
	}
	if t.form == formHour {
		if perDay == 1 {
			return nil, false
		}
		return floorDiv(n, perDay/24), true
	}
	days := floorDiv(n, perDay)
	if t.form == formDay {
		return days, true
	}
	at := time.Unix(0, 0).UTC().AddDate(0, 0, int(days))
	years := int64(at.Year() - 1970)
	if t.form == formYear {
		return years, true
	}
	return years*12 + int64(at.Month()) - 1, true
}

func floorDiv(n, by int64) int64 {
	q := n / by
	if n%by < 0 {
		q--
	}
	return q
}

func truncate(v any, width int) (any, bool) {
	switch x := v.(type) {
	case int64:
		w := int64(width)
		rest := x % w
		if rest < 0 {
			rest += w
		}
		if x < math.MinInt64+rest {
			return nil, false
		}
		return x - rest, true
	case *big.Int:
		rest := new(big.Int).Mod(x, big.NewInt(int64(width))) // Euclidean: never negative
		return rest.Sub(x, rest), true
	case string:
		return prefix(x, width), true
	case []byte:
		return x[:min(width, len(x))], true
	default:
		return nil, false
	}
}

// prefix is the first characters of s, by code points.
func prefix(s string, runes int) string {
	at := 0
	for ; runes > 0 && at < len(s); runes-- {
		_, size := utf8.DecodeRuneInString(s[at:])
		at += size
	}
	return s[:at]
}

// bucket leaves hashing to iceberg-go.
func (t transform) bucket(v any) (any, bool) {
	lit := literalOf(v, t.from)
	if lit == nil {
		return nil, false
	}
	out := iceberg.BucketTransform{NumBuckets: t.width}.Apply(iceberg.Optional[iceberg.Literal]{Valid: true, Val: lit})
	n, ok := out.Val.(iceberg.Int32Literal)
	if !out.Valid || !ok {
		return nil, false
	}
	return int64(n), true
}

// literalOf turns a value into what iceberg-go hashes; nil if it has no bucket.
func literalOf(v any, typ iceberg.Type) iceberg.Literal {
	switch x := v.(type) {
	case int64:
		switch typ.(type) {
		case iceberg.TimestampNsType, iceberg.TimestampTzNsType:
			return iceberg.Int64Literal(floorDiv(x, 1000)) // hashed as microseconds
		}
		return iceberg.Int64Literal(x) // ints, dates and times hash as longs
	case string:
		return iceberg.StringLiteral(x)
	case []byte:
		return iceberg.BinaryLiteral(x)
	case [16]byte:
		return iceberg.UUIDLiteral(uuid.UUID(x))
	case *big.Int:
		d, ok := typ.(iceberg.DecimalType)
		if !ok || x.BitLen() > 126 {
			return nil
		}
		return iceberg.DecimalLiteral{Val: decimal128.FromBigInt(x), Scale: d.Scale()}
	default:
		return nil
	}
}
