package flights_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"github.com/catalogd/catalogd/bench/flights"
)

func write(t *testing.T, days ...arrow.RecordBatch) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "flights.parquet")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	table := array.NewTableFromRecords(days[0].Schema(), days)
	defer table.Release()
	if err := pqarrow.WriteTable(table, f, 1000, parquet.NewWriterProperties(), pqarrow.DefaultWriterProps()); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestRead(t *testing.T) {
	t.Parallel()
	want := flights.Synthetic(5, 700)
	got, err := flights.Read(t.Context(), write(t, want...))
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != len(want) {
		t.Fatalf("%d days, want %d", len(got), len(want))
	}
	for i := range want {
		if got[i].NumRows() != want[i].NumRows() {
			t.Fatalf("day %d has %d rows, want %d", i, got[i].NumRows(), want[i].NumRows())
		}
		for c := range int(want[i].NumCols()) {
			if !array.Equal(got[i].Column(c), want[i].Column(c)) {
				t.Errorf("day %d, column %d differs", i, c)
			}
		}
	}
}

func TestRead_refuses(t *testing.T) {
	t.Parallel()
	days := flights.Synthetic(2, 50)
	if _, err := flights.Read(t.Context(), write(t, days[1], days[0])); err == nil || !strings.Contains(err.Error(), "not sorted") {
		t.Errorf("a file that is not sorted: %v", err)
	}
	narrow := array.NewRecordBatch(arrow.NewSchema(days[0].Schema().Fields()[:3], nil), days[0].Columns()[:3], days[0].NumRows())
	if _, err := flights.Read(t.Context(), write(t, narrow)); err == nil || !strings.Contains(err.Error(), "no column dest") {
		t.Errorf("a file without a column: %v", err)
	}
}

// stored makes the rows of an answer, changed by edit.
func stored(t *testing.T, edit func(day, flights []int64, delay []int64)) arrow.Table {
	t.Helper()
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "day", Type: &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}},
		{Name: "carrier", Type: arrow.BinaryTypes.String},
		{Name: "flights", Type: arrow.PrimitiveTypes.Int64},
		{Name: "departed", Type: arrow.PrimitiveTypes.Int64},
		{Name: "delay", Type: arrow.PrimitiveTypes.Int64},
	}, nil)
	day, count, delay := []int64{0, 86_400_000_000}, []int64{2, 1}, []int64{7, 5}
	edit(day, count, delay)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	for i := range day {
		b.Field(0).(*array.TimestampBuilder).Append(arrow.Timestamp(day[i]))
		b.Field(1).(*array.StringBuilder).Append("AA")
		b.Field(2).(*array.Int64Builder).Append(count[i])
		b.Field(3).(*array.Int64Builder).Append(1)
		b.Field(4).(*array.Int64Builder).Append(delay[i])
	}
	table := array.NewTableFromRecords(schema, []arrow.RecordBatch{b.NewRecordBatch()})
	t.Cleanup(table.Release)
	return table
}

func TestAnswer_Check(t *testing.T) {
	t.Parallel()
	b := array.NewRecordBuilder(memory.DefaultAllocator, flights.Schema())
	defer b.Release()
	for _, row := range []struct {
		at    int64
		delay int32
		valid bool
	}{{5, 7, true}, {86_399_999_999, 0, false}, {86_400_000_000, 5, true}} {
		b.Field(0).(*array.TimestampBuilder).Append(arrow.Timestamp(row.at))
		for c := 1; c < 4; c++ {
			b.Field(c).(*array.StringBuilder).Append("AA")
		}
		if row.valid {
			b.Field(4).(*array.Int32Builder).Append(row.delay)
		} else {
			b.Field(4).(*array.Int32Builder).AppendNull()
		}
	}
	answer := flights.Answer{}
	answer.Add(b.NewRecordBatch())
	if err := answer.Check(stored(t, func(_, _, _ []int64) {})); err != nil {
		t.Error(err)
	}
	for name, edit := range map[string]func(day, count, delay []int64){
		"a value":     func(_, _, delay []int64) { delay[1]++ },
		"a count":     func(_, count, _ []int64) { count[0]-- },
		"a row twice": func(day, count, delay []int64) { day[1], count[1], delay[1] = day[0], count[0], delay[0] },
		"another day": func(day, _, _ []int64) { day[1] *= 2 },
	} {
		if err := answer.Check(stored(t, edit)); err == nil {
			t.Errorf("%s: not noticed", name)
		}
	}
	answer[flights.Group{Day: 3 * 86_400_000_000, Carrier: "AA"}] = flights.Sums{Flights: 1}
	if err := answer.Check(stored(t, func(_, _, _ []int64) {})); err == nil {
		t.Error("a row that is not stored: not noticed")
	}
}
