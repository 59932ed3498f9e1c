package demo

import (
	"bytes"
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/duckdb/duckdb-go/v2"

	"github.com/catalogd/catalogd/cmd/catalogd/lake"
)

// fakeLake holds the rows of each table by name.
type fakeLake map[string]arrow.Table

func (l fakeLake) Rows(_ context.Context, name string) (arrow.Table, error) {
	rows, ok := l[name]
	if !ok {
		return nil, fmt.Errorf("no table %s", name)
	}
	rows.Retain()
	return rows, nil
}

// queried is the result of a query over demo.flights with these flights.
func queried(t *testing.T, flights []flight, query string) arrow.Table {
	t.Helper()
	ctx := t.Context()
	db, err := sql.Open("duckdb", "")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	conn, err := db.Conn(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	rows := mustRows(t, flights)
	var out arrow.Table
	err = conn.Raw(func(c any) error {
		a, err := duckdb.NewArrowFromConn(c.(driver.Conn))
		if err != nil {
			return err
		}
		source := array.NewTableReader(rows, batchRows)
		defer source.Release()
		release, err := a.RegisterView(source, "incoming")
		if err != nil {
			return err
		}
		defer release()
		for _, s := range []string{"SET TimeZone = 'UTC'", "CREATE SCHEMA demo", "CREATE TABLE demo.flights AS SELECT * FROM incoming"} {
			done, err := a.QueryContext(ctx, s)
			if err != nil {
				return err
			}
			for done.Next() {
				continue
			}
			done.Release()
		}
		result, err := a.QueryContext(ctx, query)
		if err != nil {
			return err
		}
		defer result.Release()
		var batches []arrow.RecordBatch
		for result.Next() {
			batch := result.RecordBatch()
			batch.Retain()
			batches = append(batches, batch)
		}
		out = array.NewTableFromRecords(result.Schema(), batches)
		return result.Err()
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func mustRows(t *testing.T, flights []flight) arrow.Table {
	t.Helper()
	rows, err := flightRows(flights)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// TestProve plants wrong rows in the source and in each storage table in turn.
func TestProve(t *testing.T) {
	t.Parallel()
	truth := flightsOf(t, 1)[0]
	wrong := append([]flight(nil), truth...)
	wrong[5].departureDelay, wrong[5].arrivalDelay = some(int32(5000)), some(int32(5000))
	wrong[5].miles++
	wrong[6].departureDelay.Valid = !wrong[6].departureDelay.Valid
	right := fakeLake{source: mustRows(t, truth)}
	for _, v := range views() {
		right[v.storage()] = queried(t, truth, v.proof())
	}
	prove := func(l fakeLake) (string, error) {
		var out bytes.Buffer
		err := (&prover{lake: l, board: newBoard(&out, false, 0), want: truth}).prove(t.Context())
		return out.String(), err
	}
	out, err := prove(right)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out, "proven: "); n != 1+len(views()) {
		t.Errorf("%d lines of proof, want %d:\n%s", n, 1+len(views()), out)
	}
	for _, v := range views() {
		planted := maps.Clone(right)
		planted[v.storage()] = queried(t, wrong, v.proof())
		out, err := prove(planted)
		if err == nil || !strings.Contains(err.Error(), v.dotted()+" is WRONG") {
			t.Errorf("%s with wrong rows: %v", v.dotted(), err)
		}
		if strings.Contains(out, "proven: "+v.dotted()+",") || !strings.Contains(out, "proven: "+source+",") {
			t.Errorf("%s with wrong rows printed:\n%s", v.dotted(), out)
		}
	}
	planted := fakeLake{source: mustRows(t, wrong)}
	for _, v := range views() {
		planted[v.storage()] = queried(t, wrong, v.proof())
	}
	if _, err := prove(planted); err == nil || !strings.Contains(err.Error(), source+" is WRONG") {
		t.Errorf("a source with wrong rows, and views that follow it: %v", err)
	}
}

// TestCompare counts differences between bags: how often a row occurs matters.
func TestCompare(t *testing.T) {
	t.Parallel()
	day := flightsOf(t, 1)[0][:50]
	changed := append([]flight(nil), day...)
	changed[7].tail.Valid = false
	changed[7].tail.V = ""
	for name, c := range map[string]struct {
		stored         []flight
		extra, missing int64
	}{
		"same":             {day, 0, 0},
		"a value":          {changed, 1, 1},
		"a row twice":      {append(day[:50:50], day[3]), 1, 0},
		"a row is missing": {day[1:], 0, 1},
	} {
		db, err := lake.NewDB(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for table, flights := range map[string][]flight{"stored": c.stored, "wanted": day} {
			rows := mustRows(t, flights)
			if err := db.Load(t.Context(), table, rows); err != nil {
				t.Fatal(err)
			}
			rows.Release()
		}
		v, err := compare(t.Context(), db, "x", "SELECT * FROM stored", "SELECT * FROM wanted")
		if err != nil {
			t.Fatal(err)
		}
		want := verdict{name: "x", rows: int64(len(c.stored)), extra: c.extra, missing: c.missing}
		if v != want {
			t.Errorf("%s: %+v, want %+v", name, v, want)
		}
		if wrong := c.extra+c.missing > 0; (v.err() != nil) != wrong {
			t.Errorf("%s: error %v", name, v.err())
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
}
