// Package postgres implements catalog.Store on PostgreSQL. It owns transactions and the
// meaning of SQLSTATEs.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/semaphore"

	"github.com/catalogd/catalogd/catalog"
)

// Store implements [catalog.Store].
type Store struct {
	pool *pgxpool.Pool
	hook Hook
	gate *semaphore.Weighted
}

var _ catalog.Store = (*Store)(nil)

// Hook takes part in every commit.
type Hook interface {
	// Committed adds to the transaction's batch, behind the changes, the queries that tell
	// what follows from them ([pgx.QueuedQuery.Query]). What it returns, unless nil, runs
	// in the transaction once they have been answered, so that the work derived from a
	// change exists if and only if the change is visible. An error rolls all back.
	Committed(batch *pgx.Batch, changes []catalog.Change) func(context.Context, pgx.Tx) error
	// Acknowledged runs after a successful COMMIT, before the client is answered. It must
	// not block.
	Acknowledged(changes []catalog.Change)
}

// Follow does what follows from changes.
type Follow = func(ctx context.Context, tx pgx.Tx) error

// maxAttempts bounds how often a transaction is run again after a deadlock or a
// serialization failure.
const maxAttempts = 5

const (
	// admissionWait is how long a request waits for a connection before it is told to come
	// back: shorter than clients wait for an answer.
	admissionWait = 5 * time.Second
	// holdLimit bounds one use of a connection. Statements take milliseconds; a database
	// that has stopped answering must not keep requests for ever.
	holdLimit = 30 * time.Second
	// rollbackLimit bounds the wait for the end of a transaction that failed.
	rollbackLimit = 5 * time.Second
)

// New returns a Store on pool. hook may be nil.
func New(pool *pgxpool.Pool, hook Hook) *Store {
	conns := int64(pool.Config().MaxConns)
	return &Store{pool: pool, hook: hook, gate: semaphore.NewWeighted(max(1, conns-conns/4))}
}

// update runs fn in a transaction and commits it, with the receipt of ctx unless there is
// none to write or fn does so itself (no warehouse). fn may run several times and must have no effect outside of
// tx.
func (s *Store) update(ctx context.Context, warehouse string, fn func(context.Context, pgx.Tx) error) error {
	receipt := pending(ctx)
	held, leave, err := s.admit(ctx)
	if err != nil {
		return err
	}
	defer leave()
	for range maxAttempts {
		err = s.attempt(held, func(ctx context.Context, tx pgx.Tx) error {
			if err := fn(ctx, tx); err != nil || receipt == nil || warehouse == "" {
				return err
			}
			_, err := tx.Exec(ctx, receiptSQL, receiptArgs(warehouse, receipt)...)
			return repeated(err)
		})
		if !retryable(err) {
			break
		}
	}
	if err == nil && receipt != nil && warehouse != "" {
		receipt.Stored = true
	}
	return translate(err)
}

func (s *Store) attempt(ctx context.Context, fn func(context.Context, pgx.Tx) error) error {
	tx, err := s.pool.BeginTx(ctx, pgx.TxOptions{})
	if err != nil {
		return unavailable(err)
	}
	// The rollback must reach the server even if the client is gone; after Commit it does nothing.
	defer rollback(ctx, tx)

	if err := fn(ctx, tx); err != nil {
		return err
	}
	err = tx.Commit(ctx)
	switch {
	case err == nil:
		return nil
	case outcomeKnown(err):
		return fmt.Errorf("commit: %w", err)
	default:
		return catalog.Errorf(catalog.KindCommitStateUnknown, "the connection to the database was lost during COMMIT: the outcome is unknown").Because(err)
	}
}

// rollback gives up after a while: the connection is then closed, which does the same.
func rollback(ctx context.Context, tx pgx.Tx) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackLimit)
	defer cancel()
	_ = tx.Rollback(ctx) // nothing more can be done
}

// read runs a query that changes nothing, once more if the connection turns out to be
// dead: after a restart of the server, every pooled connection fails once.
func (s *Store) read(ctx context.Context, query func(context.Context) error) error {
	ctx, leave, err := s.admit(ctx)
	if err != nil {
		return err
	}
	defer leave()
	err = query(ctx)
	if err == nil || ctx.Err() != nil || !connectionLost(err) {
		return err
	}
	return query(ctx)
}

// admit waits for one of the connections that requests may hold at a time, and bounds the
// time for which it is held. Some are left to the background work, which must go on
// however many requests there are.
func (s *Store) admit(ctx context.Context) (held context.Context, leave func(), err error) {
	waiting, cancel := context.WithTimeout(ctx, admissionWait)
	defer cancel()
	if err := s.gate.Acquire(waiting, 1); err != nil {
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		return nil, nil, catalog.Errorf(catalog.KindUnavailable, "all database connections are busy, try again later")
	}
	held, cancel = context.WithTimeout(ctx, holdLimit)
	return held, func() {
		cancel()
		s.gate.Release(1)
	}, nil
}

func connectionLost(err error) bool {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code == adminShutdown || e.Code == crashShutdown
	}
	_, isOurs := errors.AsType[*catalog.Error](err)
	return !isOurs && !errors.Is(err, pgx.ErrNoRows)
}

// SQLSTATEs that mean something to us.
const (
	adminShutdown        = "57P01"
	crashShutdown        = "57P02"
	uniqueViolation      = "23505"
	serializationFailure = "40001"
	deadlockDetected     = "40P01"
	stringTooLong        = "22001"
	badByteSequence      = "22021"
)

// outcomeKnown reports whether a failed COMMIT certainly changed nothing: the server
// refused it, or it never left this process.
func outcomeKnown(err error) bool {
	_, refused := errors.AsType[*pgconn.PgError](err)
	return refused || errors.Is(err, pgx.ErrTxCommitRollback) || pgconn.SafeToRetry(err)
}

func retryable(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (e.Code == serializationFailure || e.Code == deadlockDetected)
}

// translate turns driver errors into catalog errors, by SQLSTATE, never by text.
func translate(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*catalog.Error](err); ok || errors.Is(err, catalog.ErrRepeated) {
		return err
	}
	e, ok := errors.AsType[*pgconn.PgError](err)
	switch {
	case !ok:
		return unavailable(err)
	case retryable(err):
		return catalog.Errorf(catalog.KindCommitFailed, "Commit failed: too many concurrent changes, try again").Because(err)
	case e.Code == stringTooLong:
		return catalog.Errorf(catalog.KindInvalid, "A name or value is too long to be stored").Because(err)
	case e.Code == badByteSequence:
		return catalog.Errorf(catalog.KindInvalid, "A name or value holds a character that cannot be stored").Because(err)
	case len(e.Code) == 5 && (e.Code[:2] == "53" || e.Code[:2] == "57" || e.Code[:2] == "08"):
		// Out of resources, shutting down, or no connection: nothing was changed.
		return unavailable(err)
	}
	return err
}

func unavailable(err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	return catalog.Errorf(catalog.KindUnavailable, "the catalog's database cannot be reached, try again").Because(err)
}

// Ping reports whether the database answers.
func (s *Store) Ping(ctx context.Context) error { return translate(s.pool.Ping(ctx)) }
