// Package postgres keeps materialized views in PostgreSQL: what they are, what they read,
// since when they are stale, what holds them back, and the history of their refreshes.
//
// Its methods that take a transaction decide which refresh jobs must exist; package jobs
// inserts them in the same transaction. All transactions, here and in package
// catalog/postgres, take their locks in one order, so that none waits in a circle:
//
//  1. rows of iceberg_tables, by key
//  2. advisory locks on names, by number
//  3. rows of materialized_view, by view uuid
//  4. rows of river_job
//
// Why no wake-up is lost: a commit changes its row (1) and then, in a later statement,
// reads which views need a mark or a job; the end of an attempt holds the rows of all its
// inputs FOR SHARE (1, 2) while it compares them, clears the mark and ends the job. So
// either the attempt sees the commit, or the commit sees what the attempt left behind.
package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/catalogd/catalogd/catalog"
	"github.com/catalogd/catalogd/mv"
)

// Registry implements [mv.Registry]. Its methods with a pgx.Tx are for package jobs.
type Registry struct {
	pool *pgxpool.Pool
}

var _ mv.Registry = (*Registry)(nil)

// New returns a Registry on pool.
func New(pool *pgxpool.Pool) *Registry { return &Registry{pool: pool} }

// live is the condition that view m has a job that is not finalized: the very row that
// would make River swallow another one. It goes through River's own unique index, so the
// key must be spelled as River spells it and the predicate as the index has it.
const live = `EXISTS (SELECT FROM river_job j
          WHERE j.unique_key = ` + jobKey + ` AND j.unique_key IS NOT NULL AND j.unique_states IS NOT NULL
            AND river_job_state_in_bitmask(j.unique_states, j.state))`

// jobKey is River's unique key of the refresh job of view m.
const jobKey = `sha256(convert_to('&kind=mv_refresh&args={"view_id":"' || m.view_uuid::text || '"}', 'UTF8'))`

// managed is the condition that view m is for catalogd to refresh.
const managed = `(m.refresh_mode = 'managed' AND m.storage_uuid IS NOT NULL)`

// shortDelay is how far ahead of its time a job may be inserted: the worker waits for the
// rest in process, which is more precise than any polling.
const shortDelay = `interval '5 seconds'`

const foreignKeyViolation = "23503"

// translate turns driver errors into catalog errors. An error that asks for the whole
// transaction to be run again stays what it is.
func translate(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if _, ok := errors.AsType[*catalog.Error](err); ok {
		return err
	}
	if _, ok := errors.AsType[*pgconn.PgError](err); ok {
		return err
	}
	return catalog.Errorf(catalog.KindUnavailable, "the catalog's database cannot be reached, try again").Because(err)
}

func noSuchView(viewUUID string) error {
	return catalog.Errorf(catalog.KindNoSuchView, "No materialized view has the id %s: it was dropped, or it is a plain view now", viewUUID)
}

// uuids reads one column of view uuids.
func uuids(ctx context.Context, q querier, sql string, args ...any) ([]string, error) {
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// querier is a pool or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}
