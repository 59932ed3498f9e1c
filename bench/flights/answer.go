package flights

import (
	"fmt"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// Group is a row's key.
type Group struct {
	Day     int64 // microseconds
	Carrier string
}

// Sums are a row's values.
type Sums struct {
	Flights, Departed int64
	Delay             int64
	HasDelay          bool // a sum of nothing is null
}

// Answer is the result of [Query].
type Answer map[Group]Sums

// Add counts a day in.
func (a Answer) Add(day arrow.RecordBatch) {
	departures := day.Column(0).(*array.Timestamp)
	carriers := day.Column(1).(*array.String)
	delays := day.Column(4).(*array.Int32)
	for i := range int(day.NumRows()) {
		key := Group{Day: dayOf(departures.Value(i)), Carrier: carriers.Value(i)}
		s := a[key]
		s.Flights++
		if delays.IsValid(i) {
			s.Departed++
			s.Delay += int64(delays.Value(i))
			s.HasDelay = true
		}
		a[key] = s
	}
}

// Check compares stored rows with the answer, as bags.
func (a Answer) Check(stored arrow.Table) error {
	rows := array.NewTableReader(stored, 0)
	defer rows.Release()
	seen := make(map[Group]bool, len(a))
	for rows.Next() {
		if err := a.check(rows.RecordBatch(), seen); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	for key := range a {
		if !seen[key] {
			return fmt.Errorf("%d rows are stored, want %d; one that is missing: %s", len(seen), len(a), key)
		}
	}
	return nil
}

// String is the key as the query would show it.
func (g Group) String() string {
	return fmt.Sprintf("%s %s", time.UnixMicro(g.Day).UTC().Format(time.DateOnly), g.Carrier)
}

func (a Answer) check(batch arrow.RecordBatch, seen map[Group]bool) error {
	c, err := columnsOf(batch)
	if err != nil {
		return err
	}
	for i := range int(batch.NumRows()) {
		if c.day.IsNull(i) || c.carrier.IsNull(i) {
			return fmt.Errorf("row %d has a null key", i)
		}
		key := Group{Day: int64(c.day.Value(i)), Carrier: c.carrier.ValueStr(i)}
		got := Sums{Flights: c.flights.Value(i), Departed: c.departed.Value(i), HasDelay: c.delay.IsValid(i)}
		if got.HasDelay {
			got.Delay = c.delay.Value(i)
		}
		want, ok := a[key]
		switch {
		case !ok || seen[key]:
			return fmt.Errorf("row %s is stored, but not in the answer or there once only", key)
		case got != want:
			return fmt.Errorf("row %s has %+v, want %+v", key, got, want)
		}
		seen[key] = true
	}
	return nil
}

type columns struct {
	day                      *array.Timestamp
	carrier                  arrow.Array // whichever string type the reader chose
	flights, departed, delay *array.Int64
}

func columnsOf(batch arrow.RecordBatch) (columns, error) {
	var c columns
	if batch.NumCols() != 5 {
		return c, fmt.Errorf("%d columns are stored, want 5", batch.NumCols())
	}
	var ok [4]bool
	c.day, ok[0] = batch.Column(0).(*array.Timestamp)
	c.carrier = batch.Column(1)
	c.flights, ok[1] = batch.Column(2).(*array.Int64)
	c.departed, ok[2] = batch.Column(3).(*array.Int64)
	c.delay, ok[3] = batch.Column(4).(*array.Int64)
	if ok != [4]bool{true, true, true, true} {
		return c, fmt.Errorf("the stored columns are %s", batch.Schema())
	}
	return c, nil
}
