// Package flights has a year of flights, day by day: read from a file or made up. It also
// knows the answer to the query that the benchmark materializes.
package flights

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
)

// Schema has the columns that are used, in this order.
func Schema() *arrow.Schema {
	return arrow.NewSchema([]arrow.Field{
		{Name: "scheduled_departure", Type: &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}, Nullable: true},
		{Name: "carrier", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "origin", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "dest", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "departure_delay_minutes", Type: arrow.PrimitiveTypes.Int32, Nullable: true},
	}, nil)
}

// Query is what is materialized from a table with these rows.
const Query = `SELECT date_trunc('day', scheduled_departure) AS day, carrier, count(*) AS flights,
       count(departure_delay_minutes) AS departed, CAST(sum(departure_delay_minutes) AS BIGINT) AS delay_minutes
  FROM %s
 GROUP BY 1, 2`

// Days are flights, one batch for each day, in order.
type Days []arrow.RecordBatch

// Synthetic makes up flights, the same ones every time.
func Synthetic(days, perDay int) Days {
	random := rand.New(rand.NewPCG(2013, 365)) //nolint:gosec // rows that repeat, no secret
	carriers := []string{"9E", "AA", "AS", "B6", "DL", "EV", "F9", "FL", "HA", "MQ", "OO", "UA", "US", "VX", "WN", "YV"}
	airports := []string{"ATL", "BOS", "CLT", "DEN", "FLL", "LAX", "MCO", "MIA", "ORD", "SFO", "TPA", "XNA"}
	first := time.Date(2013, 1, 1, 0, 0, 0, 0, time.UTC)
	out := make(Days, days)
	for d := range out {
		b := array.NewRecordBuilder(memory.DefaultAllocator, Schema())
		departures := b.Field(0).(*array.TimestampBuilder)
		delays := b.Field(4).(*array.Int32Builder)
		for i := range perDay {
			at := first.AddDate(0, 0, d).Add(time.Duration(i) * 24 * time.Hour / time.Duration(perDay))
			departures.Append(arrow.Timestamp(at.UnixMicro()))
			b.Field(1).(*array.StringBuilder).Append(carriers[random.IntN(len(carriers))])
			b.Field(2).(*array.StringBuilder).Append([]string{"EWR", "JFK", "LGA"}[random.IntN(3)])
			b.Field(3).(*array.StringBuilder).Append(airports[random.IntN(len(airports))])
			if random.IntN(40) == 0 { // cancelled
				delays.AppendNull()
				continue
			}
			delays.Append(int32(random.ExpFloat64()*30) - 10)
		}
		out[d] = b.NewRecordBatch()
		b.Release()
	}
	return out
}

// Read takes the columns out of a Parquet file that is sorted by departure.
func Read(ctx context.Context, name string) (Days, error) {
	r, err := file.OpenParquetFile(name, false)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	const oneBatch = 1 << 30 // rows; days are cut from a batch without copying
	fr, err := pqarrow.NewFileReader(r, pqarrow.ArrowReadProperties{BatchSize: oneBatch}, memory.DefaultAllocator)
	if err != nil {
		return nil, err
	}
	t, err := fr.ReadTable(ctx)
	if err != nil {
		return nil, err
	}
	defer t.Release()
	batches := array.NewTableReader(t, oneBatch)
	defer batches.Release()
	var out Days
	for batches.Next() {
		if err := out.add(batches.RecordBatch()); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return out, batches.Err()
}

// add cuts a batch into days. One that began in an earlier batch would be cut in two, which
// changes nothing but the number of appends.
func (d *Days) add(batch arrow.RecordBatch) error {
	columns := make([]arrow.Array, Schema().NumFields())
	for i, want := range Schema().Fields() {
		at := batch.Schema().FieldIndices(want.Name)
		if len(at) != 1 {
			return fmt.Errorf("there is no column %s", want.Name)
		}
		columns[i] = batch.Column(at[0])
		if got := columns[i].DataType(); !arrow.TypeEqual(got, want.Type) {
			return fmt.Errorf("column %s is %s, want %s", want.Name, got, want.Type)
		}
	}
	all := array.NewRecordBatch(Schema(), columns, batch.NumRows())
	defer all.Release()
	departures := columns[0].(*array.Timestamp)
	begin := 0
	for i := range departures.Len() {
		if departures.IsNull(i) {
			return errors.New("scheduled_departure is null")
		}
		if i == 0 {
			continue
		}
		before, now := dayOf(departures.Value(i-1)), dayOf(departures.Value(i))
		if now < before {
			return errors.New("it is not sorted by scheduled_departure")
		}
		if now != before {
			*d = append(*d, all.NewSlice(int64(begin), int64(i)))
			begin = i
		}
	}
	*d = append(*d, all.NewSlice(int64(begin), all.NumRows()))
	return nil
}

const microsPerDay = int64(24 * time.Hour / time.Microsecond)

// dayOf is the first microsecond of the day in UTC.
func dayOf(t arrow.Timestamp) int64 {
	micros := int64(t)
	day := micros - micros%microsPerDay
	if day > micros { // before 1970
		day -= microsPerDay
	}
	return day
}
