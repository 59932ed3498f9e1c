package demo

import (
	"context"
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/catalogd/catalogd/cmd/catalogd/lake"
)

// verdict compares rows that are stored with those that they should be.
type verdict struct {
	name    string
	rows    int64 // stored
	extra   int64 // stored, but should not be
	missing int64 // should be, but are not stored
}

// err is nil if the two are the same bag of rows.
func (v verdict) err() error {
	if v.extra == 0 && v.missing == 0 {
		return nil
	}
	return fmt.Errorf("%s is WRONG: of its %d rows, %d should not be there, and %d are missing", v.name, v.rows, v.extra, v.missing)
}

// compare takes both sides as bags of rows.
func compare(ctx context.Context, db *lake.DB, name, stored, wanted string) (verdict, error) {
	v := verdict{name: name}
	var err error
	if v.rows, err = db.Count(ctx, stored); err != nil {
		return v, fmt.Errorf("compare %s: %w", name, err)
	}
	if v.extra, v.missing, err = db.Difference(ctx, stored, wanted); err != nil {
		return v, fmt.Errorf("compare %s: %w", name, err)
	}
	return v, nil
}

// reader reads all rows of a table as it is now; the caller of Rows releases them.
type reader interface {
	Rows(ctx context.Context, name string) (arrow.Table, error)
}

// prover reads tables with iceberg-go and computes every query over the whole source with
// a DuckDB of its own: no part of the path is catalogd's refresh.
type prover struct {
	lake  reader
	board *board
	// want is what the source must hold once everything has arrived.
	want []flight
}

// prove checks the source against the flights that were replayed, and every view against
// its query over the source. It looks at all of them before it reports what is wrong.
func (p *prover) prove(ctx context.Context) (err error) {
	db, err := lake.NewDB(ctx)
	if err != nil {
		return fmt.Errorf("open a DuckDB for the proof: %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	rows, err := flightRows(p.want)
	if err != nil {
		return err
	}
	defer rows.Release()
	if err := db.Load(ctx, "replayed", rows); err != nil {
		return err
	}
	if err := p.load(ctx, db, source); err != nil {
		return err
	}
	wrong := p.report(ctx, db, source, source, "SELECT * FROM replayed", "the flights replayed")
	for _, v := range views() {
		if err := p.load(ctx, db, v.storage()); err != nil {
			return err
		}
		wrong = errors.Join(wrong, p.report(ctx, db, v.dotted(), v.storage(), v.proof(), "its query over "+source))
	}
	return wrong
}

// load copies a table of the catalog, as it is now.
func (p *prover) load(ctx context.Context, db *lake.DB, name string) error {
	rows, err := p.lake.Rows(ctx, name)
	if err != nil {
		return err
	}
	defer rows.Release()
	return db.Load(ctx, name, rows)
}

// report compares a loaded table with a query and prints the outcome.
func (p *prover) report(ctx context.Context, db *lake.DB, name, stored, wanted, what string) error {
	v, err := compare(ctx, db, name, "SELECT * FROM "+stored, wanted)
	if err == nil {
		err = v.err()
	}
	if err == nil {
		p.board.say("  proven: %s, %s rows, equals %s", name, thousands(v.rows), what)
	}
	return err
}
