package exectest

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/apache/iceberg-go"
)

// literalOf turns an Arrow value into iceberg-go's literal of the field's type.
func literalOf(t *testing.T, typ iceberg.Type, a arrow.Array, i int) iceberg.Literal {
	t.Helper()
	switch c := a.(type) {
	case *array.Int32:
		return iceberg.NewLiteral(c.Value(i))
	case *array.Int64:
		return iceberg.NewLiteral(c.Value(i))
	case *array.Date32:
		return iceberg.NewLiteral(iceberg.Date(c.Value(i)))
	case *array.Time64:
		return iceberg.NewLiteral(iceberg.Time(c.Value(i)))
	case *array.Timestamp:
		if typ.Equals(iceberg.PrimitiveTypes.TimestampNs) {
			return iceberg.NewLiteral(iceberg.TimestampNano(c.Value(i)))
		}
		return iceberg.NewLiteral(iceberg.Timestamp(c.Value(i)))
	case *array.Decimal128:
		scale := typ.(iceberg.DecimalType).Scale()
		return iceberg.NewLiteral(iceberg.Decimal{Val: c.Value(i), Scale: scale})
	case *array.String:
		return iceberg.NewLiteral(c.Value(i))
	case *array.LargeString:
		return iceberg.NewLiteral(c.Value(i))
	case *array.Binary:
		return iceberg.NewLiteral(append([]byte{}, c.Value(i)...))
	case *array.LargeBinary:
		return iceberg.NewLiteral(append([]byte{}, c.Value(i)...))
	case *extensions.UUIDArray:
		return iceberg.NewLiteral(c.Value(i))
	}
	t.Fatalf("no literal of %T", a)
	return nil
}
