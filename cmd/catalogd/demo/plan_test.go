package demo

import (
	stdcmp "cmp"
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// year is the embedded file, read once for all tests, which must not write to it.
var year = sync.OnceValues(func() ([]flight, error) { return readFlights(context.Background()) })

func flightsOf(t *testing.T, days int) [][]flight {
	t.Helper()
	flights, err := year()
	if err != nil {
		t.Fatal(err)
	}
	all := byDay(flights)
	if days == 0 {
		return all
	}
	return all[:days]
}

// key is what names a flight.
type key struct {
	departure int64
	carrier   string
	number    int32
}

func (f flight) key() key { return key{f.departure, f.carrier, f.number} }

// TestPlanReplay_endsWithTheFlights plays the commits on a map: nothing arrives twice,
// nothing is corrected that is not there or was right, and the final rows are the file's.
func TestPlanReplay_endsWithTheFlights(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2, 3, 12, 0} {
		days := flightsOf(t, n)
		table := map[key]flight{}
		for _, c := range planReplay(days) {
			if c.kind != compacted && len(c.rows) == 0 {
				t.Errorf("%d days: a commit without rows: %+v", n, c)
			}
			for _, f := range c.rows {
				old, there := table[f.key()]
				if there != (c.kind == corrected) {
					t.Errorf("%d days: %s: flight %v is in the table: %v", n, c, f.key(), there)
				}
				if there && old == f {
					t.Errorf("%d days: %s: flight %v was right already", n, c, f.key())
				}
				table[f.key()] = f
			}
		}
		want := slices.Concat(days...)
		if len(table) != len(want) {
			t.Errorf("%d days: %d flights in the end, want %d", n, len(table), len(want))
		}
		for _, f := range want {
			if table[f.key()] != f {
				t.Fatalf("%d days: flight %v ends as %+v", n, f, table[f.key()])
			}
		}
	}
}

// TestPlanReplay_hasEverything counts what a replay is there to show.
func TestPlanReplay_hasEverything(t *testing.T) {
	t.Parallel()
	for _, n := range []int{12, 0} {
		days := flightsOf(t, n)
		count := map[kind]int{}
		lateCommits := 0
		for _, c := range planReplay(days) {
			count[c.kind]++
			late := 0
			for _, f := range c.rows {
				after := c.day.Sub(f.day())
				if c.kind == appended && after > 0 {
					late++
				}
				if after < 0 || after > maxLateDays*24*time.Hour {
					t.Errorf("%s: a flight of %s arrives after %s", c, f.day(), after)
				}
			}
			if late != c.late {
				t.Errorf("%s says that %d flights are late, %d are", c, c.late, late)
			}
			if late > 0 {
				lateCommits++
			}
		}
		if count[appended] != len(days) || count[compacted] != 1 {
			t.Errorf("%d days: %d appends and %d compactions, want %d and 1", n, count[appended], count[compacted], len(days))
		}
		if least := len(days) / 8; count[corrected] < least || lateCommits < least {
			t.Errorf("%d days: %d corrections and %d commits with late flights, want at least %d each", n, count[corrected], lateCommits, least)
		}
	}
}

// TestPlanReplay_isRepeatable also shows that planning leaves its input alone.
func TestPlanReplay_isRepeatable(t *testing.T) {
	t.Parallel()
	days := flightsOf(t, 40)
	before := slices.Concat(days...)
	first, second := planReplay(days), planReplay(days)
	if diff := cmp.Diff(first, second, cmp.AllowUnexported(commit{}, flight{})); diff != "" {
		t.Errorf("two plans differ: %s", diff)
	}
	if !slices.Equal(before, slices.Concat(days...)) {
		t.Error("planning changed the flights")
	}
}

// TestReadFlights compares with what the data's README says, and reads back what it makes.
func TestReadFlights(t *testing.T) {
	t.Parallel()
	flights, err := year()
	if err != nil {
		t.Fatal(err)
	}
	cancelled, unknown := 0, 0
	for _, f := range flights {
		if !f.departureDelay.Valid {
			cancelled++
		}
		if !f.tail.Valid {
			unknown++
		}
	}
	if len(flights) != 336_776 || cancelled != 8_255 || unknown != 2_512 {
		t.Errorf("%d flights, %d cancelled, %d without tail number", len(flights), cancelled, unknown)
	}
	if !slices.IsSortedFunc(flights, func(a, b flight) int { return stdcmp.Compare(a.departure, b.departure) }) {
		t.Error("not sorted by departure")
	}
	rows, err := flightRows(flights[:2000])
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Release()
	back, err := tableFlights(rows)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(flights[:2000], back) {
		t.Error("the rows made of flights are not those flights")
	}
}
