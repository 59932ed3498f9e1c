package demo

import (
	"bytes"
	"context"
	"database/sql"
	_ "embed" // the year of flights
	"fmt"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
)

//go:embed data/flights.parquet
var parquetFile []byte

// batchRows is how many rows are converted at a time.
const batchRows = 16 << 10

// flight is one row of demo.flights. A flight is known by departure, carrier and number.
type flight struct {
	departure      int64 // scheduled, in microseconds since 1970, UTC
	carrier        string
	number         int32
	tail           sql.Null[string]
	origin         string
	dest           string
	miles          int32
	departureDelay sql.Null[int32] // null: cancelled
	arrivalDelay   sql.Null[int32]
	airTime        sql.Null[int32]
}

// day is the day of the scheduled departure, in UTC as everything here.
func (f flight) day() time.Time {
	return time.UnixMicro(f.departure).UTC().Truncate(24 * time.Hour)
}

// flightSchema has the columns of the file, in its order.
var flightSchema = iceberg.NewSchema(0,
	iceberg.NestedField{ID: 1, Name: "scheduled_departure", Type: iceberg.PrimitiveTypes.TimestampTz},
	iceberg.NestedField{ID: 2, Name: "carrier", Type: iceberg.PrimitiveTypes.String},
	iceberg.NestedField{ID: 3, Name: "flight", Type: iceberg.PrimitiveTypes.Int32},
	iceberg.NestedField{ID: 4, Name: "tailnum", Type: iceberg.PrimitiveTypes.String},
	iceberg.NestedField{ID: 5, Name: "origin", Type: iceberg.PrimitiveTypes.String},
	iceberg.NestedField{ID: 6, Name: "dest", Type: iceberg.PrimitiveTypes.String},
	iceberg.NestedField{ID: 7, Name: "distance_miles", Type: iceberg.PrimitiveTypes.Int32},
	iceberg.NestedField{ID: 8, Name: "departure_delay_minutes", Type: iceberg.PrimitiveTypes.Int32},
	iceberg.NestedField{ID: 9, Name: "arrival_delay_minutes", Type: iceberg.PrimitiveTypes.Int32},
	iceberg.NestedField{ID: 10, Name: "air_time_minutes", Type: iceberg.PrimitiveTypes.Int32},
)

// readFlights reads the embedded file, which is sorted by departure.
func readFlights(ctx context.Context) ([]flight, error) {
	rows, err := pqarrow.ReadTable(ctx, bytes.NewReader(parquetFile), parquet.NewReaderProperties(memory.DefaultAllocator),
		pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
	if err != nil {
		return nil, fmt.Errorf("read the embedded flights: %w", err)
	}
	defer rows.Release()
	flights, err := tableFlights(rows)
	if err != nil {
		return nil, fmt.Errorf("read the embedded flights: %w", err)
	}
	return flights, nil
}

// tableFlights is the inverse of flightRows.
func tableFlights(rows arrow.Table) (flights []flight, err error) {
	batches := array.NewTableReader(rows, batchRows)
	defer batches.Release()
	for batches.Next() {
		if flights, err = appendFlights(flights, batches.RecordBatch()); err != nil {
			return nil, err
		}
	}
	return flights, batches.Err()
}

// columns gives typed access to a batch and remembers the first column of another type.
type columns struct {
	batch arrow.RecordBatch
	err   error
}

func column[T arrow.Array](c *columns, i int) T {
	typed, ok := c.batch.Column(i).(T)
	if !ok && c.err == nil {
		c.err = fmt.Errorf("column %s is a %s", c.batch.ColumnName(i), c.batch.Column(i).DataType())
	}
	return typed
}

func appendFlights(flights []flight, batch arrow.RecordBatch) ([]flight, error) {
	if n := len(flightSchema.Fields()); int(batch.NumCols()) != n {
		return nil, fmt.Errorf("%d columns, want %d", batch.NumCols(), n)
	}
	c := &columns{batch: batch}
	departure, carrier, number := column[*array.Timestamp](c, 0), column[*array.String](c, 1), column[*array.Int32](c, 2)
	tail, origin, dest := column[*array.String](c, 3), column[*array.String](c, 4), column[*array.String](c, 5)
	miles, departureDelay := column[*array.Int32](c, 6), column[*array.Int32](c, 7)
	arrivalDelay, airTime := column[*array.Int32](c, 8), column[*array.Int32](c, 9)
	if c.err != nil {
		return nil, c.err
	}
	for i := range int(batch.NumRows()) {
		flights = append(flights, flight{
			departure: int64(departure.Value(i)), carrier: carrier.Value(i), number: number.Value(i),
			tail: sql.Null[string]{V: tail.Value(i), Valid: tail.IsValid(i)}, origin: origin.Value(i), dest: dest.Value(i),
			miles: miles.Value(i), departureDelay: nullable(departureDelay, i),
			arrivalDelay: nullable(arrivalDelay, i), airTime: nullable(airTime, i),
		})
	}
	return flights, nil
}

func nullable(a *array.Int32, i int) sql.Null[int32] {
	if a.IsNull(i) {
		return sql.Null[int32]{}
	}
	return sql.Null[int32]{V: a.Value(i), Valid: true}
}

// flightRows makes rows for demo.flights. The caller releases them.
func flightRows(flights []flight) (arrow.Table, error) {
	schema, err := table.SchemaToArrowSchema(flightSchema, nil, true, false)
	if err != nil {
		return nil, err
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	// The builders are of the schema's types.
	text := func(i int, v sql.Null[string]) {
		if !v.Valid {
			b.Field(i).AppendNull()
			return
		}
		b.Field(i).(array.StringLikeBuilder).Append(v.V)
	}
	number := func(i int, v sql.Null[int32]) {
		if !v.Valid {
			b.Field(i).AppendNull()
			return
		}
		b.Field(i).(*array.Int32Builder).Append(v.V)
	}
	for _, f := range flights {
		b.Field(0).(*array.TimestampBuilder).Append(arrow.Timestamp(f.departure))
		text(1, some(f.carrier))
		number(2, some(f.number))
		text(3, f.tail)
		text(4, some(f.origin))
		text(5, some(f.dest))
		number(6, some(f.miles))
		number(7, f.departureDelay)
		number(8, f.arrivalDelay)
		number(9, f.airTime)
	}
	batch := b.NewRecordBatch()
	defer batch.Release()
	return array.NewTableFromRecords(schema, []arrow.RecordBatch{batch}), nil
}

func some[T any](v T) sql.Null[T] { return sql.Null[T]{V: v, Valid: true} }
