package lake

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/duckdb/duckdb-go/v2"
)

// batchRows is how many rows DuckDB takes at a time.
const batchRows = 64 << 10

// DB is a plain DuckDB in memory.
type DB struct {
	db   *sql.DB
	conn *sql.Conn
}

// NewDB opens one, with UTC as its session time zone.
func NewDB(ctx context.Context) (*DB, error) {
	db, err := sql.Open("duckdb", "")
	if err != nil {
		return nil, err
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	d := &DB{db: db, conn: conn}
	if err := d.Exec(ctx, "SET TimeZone = 'UTC'"); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// Close releases the database.
func (d *DB) Close() error { return errors.Join(d.conn.Close(), d.db.Close()) }

// Exec runs a statement.
func (d *DB) Exec(ctx context.Context, statement string) error {
	_, err := d.conn.ExecContext(ctx, statement)
	return err
}

// Load makes rows the table of a dotted name, replacing it if it exists.
func (d *DB) Load(ctx context.Context, name string, rows arrow.Table) error {
	if schema, _, ok := strings.Cut(name, "."); ok {
		if err := d.Exec(ctx, "CREATE SCHEMA IF NOT EXISTS "+schema); err != nil {
			return err
		}
	}
	return d.conn.Raw(func(c any) error {
		dc, ok := c.(driver.Conn)
		if !ok {
			return fmt.Errorf("connection is a %T", c)
		}
		a, err := duckdb.NewArrowFromConn(dc)
		if err != nil {
			return err
		}
		reader := array.NewTableReader(rows, batchRows)
		defer reader.Release()
		release, err := a.RegisterView(reader, "incoming")
		if err != nil {
			return err
		}
		defer release()
		done, err := a.QueryContext(ctx, "CREATE OR REPLACE TABLE "+name+" AS SELECT * FROM incoming")
		if err != nil {
			return fmt.Errorf("load %s: %w", name, err)
		}
		defer done.Release()
		for done.Next() { // the statement runs while its result is read
			continue
		}
		return done.Err()
	})
}

// Difference compares the results of two queries as bags of rows and returns how many
// rows only one of them has.
func (d *DB) Difference(ctx context.Context, left, right string) (onlyLeft, onlyRight int64, err error) {
	count := func(a, b string) (n int64, err error) {
		err = d.conn.QueryRowContext(ctx, "SELECT count(*) FROM ((SELECT * FROM ("+a+"\n)) EXCEPT ALL (SELECT * FROM ("+b+"\n)))").Scan(&n)
		return n, err
	}
	if onlyLeft, err = count(left, right); err != nil {
		return 0, 0, err
	}
	onlyRight, err = count(right, left)
	return onlyLeft, onlyRight, err
}

// Count returns the number of rows of a query.
func (d *DB) Count(ctx context.Context, query string) (n int64, err error) {
	err = d.conn.QueryRowContext(ctx, "SELECT count(*) FROM ("+query+"\n)").Scan(&n)
	return n, err
}
