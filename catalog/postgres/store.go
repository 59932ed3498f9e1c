// Package postgres implements catalog.Store on PostgreSQL. It owns transactions and the
// meaning of SQLSTATEs.
package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/catalogd/catalogd/catalog"
)

// Store implements [catalog.Store].
type Store struct {
	pool *pgxpool.Pool
	hook Hook
}

var _ catalog.Store = (*Store)(nil)

// Hook takes part in every commit.
type Hook interface {
	// Committed runs inside the transaction, after the changes were made, so that work
	// derived from them exists if and only if they are visible. An error rolls all back.
	Committed(ctx context.Context, tx pgx.Tx, changes []catalog.Change) error
	// Acknowledged runs after a successful COMMIT, before the client is answered. It must
	// not block.
	Acknowledged(changes []catalog.Change)
}

// maxAttempts bounds how often a transaction is run again after a deadlock or a
// serialization failure.
const maxAttempts = 5

// New returns a Store on pool. hook may be nil.
func New(pool *pgxpool.Pool, hook Hook) *Store { return &Store{pool: pool, hook: hook} }

// update runs fn in a transaction and commits it. fn may run several times and must have
// no effect outside of tx.
func (s *Store) update(ctx context.Context, fn func(context.Context, pgx.Tx) error) error {
	var err error
	for range maxAttempts {
		err = s.attempt(ctx, fn)
		if !retryable(err) {
			break
		}
	}
	return translate(err)
}

func (s *Store) attempt(ctx context.Context, fn func(context.Context, pgx.Tx) error) error {
	tx, err := s.pool.BeginTx(ctx, pgx.TxOptions{})
	if err != nil {
		return unavailable(err)
	}
	// The rollback must reach the server even if the client is gone; after Commit it does nothing.
	defer tx.Rollback(context.WithoutCancel(ctx))

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

// read runs a query that changes nothing, once more if the connection turns out to be
// dead: after a restart of the server, every pooled connection fails once.
func read(ctx context.Context, query func() error) error {
	err := query()
	if err == nil || ctx.Err() != nil || !connectionLost(err) {
		return err
	}
	return query()
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
	if _, ok := errors.AsType[*catalog.Error](err); ok {
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
