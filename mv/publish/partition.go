package publish

import (
	"context"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/apache/iceberg-go"
	"github.com/google/uuid"
)

// partitionOf computes the partition tuple of a file from its rows, and so proves that
// the file lies in one partition. Only the partition columns are read.
func partitionOf(ctx context.Context, pf *file.Reader, spec *iceberg.PartitionSpec, sc *iceberg.Schema) (map[int]any, error) {
	if spec.NumFields() == 0 {
		return nil, nil
	}
	values := make(map[int]any, spec.NumFields())
	for _, f := range spec.Fields() {
		if _, void := f.Transform.(iceberg.VoidTransform); void {
			continue
		}
		source, ok := sc.FindFieldByID(f.SourceID())
		if !ok {
			return nil, fmt.Errorf("partition field %q has no source column", f.Name)
		}
		column := pf.MetaData().Schema.ColumnIndexByName(source.Name)
		if column < 0 || len(f.SourceIDs) != 1 {
			return nil, fmt.Errorf("partition field %q does not come from one top-level column", f.Name)
		}
		v, err := onlyValue(ctx, pf, column, source.Type, f.Transform)
		if err != nil {
			return nil, fmt.Errorf("partition field %q: %w", f.Name, err)
		}
		if v != nil {
			values[f.FieldID] = v
		}
	}
	return values, nil
}

// onlyValue applies a transform to every value of a column and returns the one result.
func onlyValue(ctx context.Context, pf *file.Reader, column int, typ iceberg.Type, t iceberg.Transform) (any, error) {
	reader, err := pqarrow.NewFileReader(pf, pqarrow.ArrowReadProperties{BatchSize: 1 << 16}, memory.DefaultAllocator)
	if err != nil {
		return nil, err
	}
	rec, err := reader.GetRecordReader(ctx, []int{column}, nil)
	if err != nil {
		return nil, err
	}
	defer rec.Release()
	one := onlyResult{typ: typ, transform: t}
	for rec.Next() {
		if err := one.add(rec.RecordBatch().Column(0)); err != nil {
			return nil, err
		}
	}
	if err := rec.Err(); err != nil {
		return nil, err
	}
	if !one.found.Valid {
		return nil, nil
	}
	return one.found.Val.Any(), nil
}

type onlyResult struct {
	typ       iceberg.Type
	transform iceberg.Transform
	last      iceberg.Optional[iceberg.Literal] // the value that found was computed from
	found     iceberg.Optional[iceberg.Literal]
	any       bool
}

func (o *onlyResult) add(col arrow.Array) error {
	for i := range col.Len() {
		v, err := literal(col, i, o.typ)
		if err != nil {
			return err
		}
		if o.any && same(v, o.last) {
			continue
		}
		r := o.transform.Apply(v)
		if o.any && !same(r, o.found) {
			return fmt.Errorf("the file straddles partitions %s and %s", text(o.found), text(r))
		}
		o.last, o.found, o.any = v, r, true
	}
	return nil
}

func same(a, b iceberg.Optional[iceberg.Literal]) bool {
	if a.Valid != b.Valid || !a.Valid {
		return a.Valid == b.Valid
	}
	return a.Val.Equals(b.Val)
}

func text(v iceberg.Optional[iceberg.Literal]) string {
	if !v.Valid {
		return "NULL"
	}
	return v.Val.String()
}

func literalText(v any) string { return fmt.Sprintf("%T %v", v, v) }

// literal reads a value of a column as the literal of its Iceberg type.
func literal(col arrow.Array, i int, typ iceberg.Type) (iceberg.Optional[iceberg.Literal], error) {
	if col.IsNull(i) {
		return iceberg.Optional[iceberg.Literal]{}, nil
	}
	var v iceberg.Literal
	switch c := col.(type) {
	case *array.Boolean:
		v = iceberg.NewLiteral(c.Value(i))
	case *array.Int32:
		v = iceberg.NewLiteral(c.Value(i))
	case *array.Int64:
		v = iceberg.NewLiteral(c.Value(i))
	case *array.Float32:
		v = iceberg.NewLiteral(c.Value(i))
	case *array.Float64:
		v = iceberg.NewLiteral(c.Value(i))
	case *array.Date32:
		v = iceberg.NewLiteral(iceberg.Date(c.Value(i)))
	case *array.Time64:
		v = iceberg.NewLiteral(iceberg.Time(c.Value(i)))
	case *array.Timestamp:
		v = timestampLiteral(c, i)
	case *array.String:
		v = iceberg.NewLiteral(c.Value(i))
	case *array.Binary:
		v = binaryLiteral(c.Value(i), typ)
	case *array.FixedSizeBinary:
		v = binaryLiteral(c.Value(i), typ)
	case *extensions.UUIDArray:
		v = iceberg.NewLiteral(c.Value(i))
	case *array.Decimal128:
		if d, ok := typ.(iceberg.DecimalType); ok {
			v = iceberg.NewLiteral(iceberg.Decimal{Val: c.Value(i), Scale: d.Scale()})
		}
	}
	if v == nil || !fits(v.Type(), typ) {
		return iceberg.Optional[iceberg.Literal]{}, fmt.Errorf("a %s column is stored as %s", typ, col.DataType())
	}
	return iceberg.Optional[iceberg.Literal]{Valid: true, Val: v}, nil
}

// fits compares the kinds of two types; time zones and lengths do not matter to a literal.
func fits(got, want iceberg.Type) bool {
	switch want.(type) {
	case iceberg.TimestampTzType:
		want = iceberg.PrimitiveTypes.Timestamp
	case iceberg.TimestampTzNsType:
		want = iceberg.PrimitiveTypes.TimestampNs
	case iceberg.DecimalType:
		_, ok := got.(iceberg.DecimalType)
		return ok
	case iceberg.FixedType:
		_, ok := got.(iceberg.FixedType)
		return ok
	}
	return got.Equals(want)
}

func timestampLiteral(c *array.Timestamp, i int) iceberg.Literal {
	dt, ok := c.DataType().(*arrow.TimestampType)
	switch {
	case ok && dt.Unit == arrow.Microsecond:
		return iceberg.NewLiteral(iceberg.Timestamp(c.Value(i)))
	case ok && dt.Unit == arrow.Nanosecond:
		return iceberg.NewLiteral(iceberg.TimestampNano(c.Value(i)))
	default:
		return nil
	}
}

func binaryLiteral(b []byte, typ iceberg.Type) iceberg.Literal {
	switch t := typ.(type) {
	case iceberg.FixedType:
		if len(b) == t.Len() {
			return iceberg.FixedLiteral(append([]byte(nil), b...))
		}
		return nil
	case iceberg.UUIDType:
		u, err := uuid.FromBytes(b)
		if err != nil {
			return nil
		}
		return iceberg.NewLiteral(u)
	default:
		return iceberg.NewLiteral(append([]byte(nil), b...))
	}
}
