package jobs

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/catalogd/catalogd/catalog"
	"github.com/catalogd/catalogd/mv"
)

// Steering is the part of mv/postgres that people's requests need. Its methods fail with
// KindNoSuchView.
type Steering interface {
	// Request advances the view's generation and clears what holds it back.
	Request(ctx context.Context, tx pgx.Tx, viewUUID string, full bool) (generation int64, err error)
	// SetSuspended suspends or resumes the view and reports whether it needs a job now.
	SetSuspended(ctx context.Context, tx pgx.Tx, viewUUID string, suspended bool) (wake bool, err error)
}

// Requests implements [mv.Requests].
type Requests struct {
	pool     *pgxpool.Pool
	steering Steering
	queue    *Enqueuer
	wake     func()
}

var _ mv.Requests = (*Requests)(nil)

// NewRequests returns Requests. wake, if not nil, is called after each change, to spare a
// worker of this process the wait for its next look ([Client.Wake]).
func NewRequests(pool *pgxpool.Pool, steering Steering, queue *Enqueuer, wake func()) *Requests {
	if wake == nil {
		wake = func() {}
	}
	return &Requests{pool: pool, steering: steering, queue: queue, wake: wake}
}

// Request implements [mv.Requests]. If the view's job runs already, the end of that run
// sees the new generation and the job starts over.
func (r *Requests) Request(ctx context.Context, viewUUID string, full bool) (generation int64, err error) {
	err = r.update(ctx, func(tx pgx.Tx) error {
		generation, err = r.steering.Request(ctx, tx, viewUUID, full)
		if err != nil {
			return err
		}
		return r.queue.Enqueue(ctx, tx, []string{viewUUID})
	})
	return generation, err
}

// SetSuspended implements [mv.Requests].
func (r *Requests) SetSuspended(ctx context.Context, viewUUID string, suspended bool) error {
	return r.update(ctx, func(tx pgx.Tx) error {
		wake, err := r.steering.SetSuspended(ctx, tx, viewUUID, suspended)
		if err != nil || !wake {
			return err
		}
		return r.queue.Enqueue(ctx, tx, []string{viewUUID})
	})
}

func (r *Requests) update(ctx context.Context, fn func(pgx.Tx) error) error {
	err := withRetry(ctx, func() error { return pgx.BeginFunc(ctx, r.pool, fn) })
	if err == nil {
		r.wake()
		return nil
	}
	if _, ok := errors.AsType[*catalog.Error](err); ok || errors.Is(err, context.Canceled) {
		return err
	}
	return catalog.Errorf(catalog.KindUnavailable, "the catalog's database cannot be reached, try again").Because(err)
}

// withRetry runs fn again while PostgreSQL asks for it, which it does for a transaction
// that it has rolled back in favor of another one.
func withRetry(ctx context.Context, fn func() error) error {
	const tries = 8
	for i := 1; ; i++ {
		err := fn()
		e, ok := errors.AsType[*pgconn.PgError](err)
		if !ok || i == tries || e.Code != "40001" && e.Code != "40P01" {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Duration(i) * 10 * time.Millisecond):
		}
	}
}
