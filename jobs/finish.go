package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"github.com/catalogd/catalogd/mv"
)

// finishTimeout is how long a worker tries to write a result down before it gives the
// job back to River.
const finishTimeout = 30 * time.Second

// errTaken means that the job is not this worker's any more.
var errTaken = errors.New("the job was taken over")

// finish writes an attempt's outcome and ends its job in one transaction. It is tried
// again while the database refuses, since a whole run depends on it.
func (w *RefreshWorker) finish(ctx context.Context, job *river.Job[RefreshArgs], a mv.Attempt) error {
	// A result that exists is written down even if the process is being stopped.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTimeout)
	defer cancel()
	for delay := 20 * time.Millisecond; ; delay = min(2*delay, 2*time.Second) {
		err := pgx.BeginFunc(ctx, w.pool, func(tx pgx.Tx) error { return w.end(ctx, tx, job, a) })
		switch {
		case err == nil:
			w.nudge.fire()
			return nil
		case errors.Is(err, errTaken):
			// Also after a COMMIT whose answer was lost: then the job has ended, by us.
			w.log.InfoContext(ctx, "refresh job is not ours any more", slog.String("view", a.ViewUUID), slog.Int64("job_id", job.ID))
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("finish refresh job %d of view %s: %w", job.ID, a.ViewUUID, err)
		case <-time.After(delay):
		}
	}
}

// end is the finish transaction. The job is ended last: everything that must hold while
// it ends is locked by then. A view that needs another run gets a new job, because the
// old one may be waited for by nobody else.
func (w *RefreshWorker) end(ctx context.Context, tx pgx.Tx, job *river.Job[RefreshArgs], a mv.Attempt) error {
	again, wake, err := w.ledger.FinishAttempt(ctx, tx, a)
	if err != nil {
		return err
	}
	if err := w.fence(ctx, tx, job); err != nil {
		return err
	}
	if _, err := river.JobCompleteTx[*riverpgxv5.Driver](ctx, tx, job); err != nil {
		return err
	}
	if again {
		wake = append(wake, a.ViewUUID)
	}
	return enqueue(ctx, river.ClientFromContext[pgx.Tx](ctx), tx, wake)
}

// fence fails with errTaken unless the job still runs, in this process and in this
// attempt. JobCompleteTx would not tell: it succeeds for a job in any state.
func (w *RefreshWorker) fence(ctx context.Context, tx pgx.Tx, job *river.Job[RefreshArgs]) error {
	var ours bool
	err := tx.QueryRow(ctx, `SELECT state = 'running' AND attempt = $2 AND attempted_by[array_upper(attempted_by, 1)] = $3
		FROM river_job WHERE id = $1 FOR UPDATE`, job.ID, job.Attempt, w.process).Scan(&ours)
	if errors.Is(err, pgx.ErrNoRows) || err == nil && !ours {
		return errTaken
	}
	return err
}

// giveBack replaces the job by one that another process can take at once.
func (w *RefreshWorker) giveBack(ctx context.Context, job *river.Job[RefreshArgs]) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTimeout)
	defer cancel()
	lost := lostJob{ID: job.ID, View: job.Args.ViewID, Process: w.process}
	r := rescuer{pool: w.pool, ledger: w.ledger, river: river.ClientFromContext[pgx.Tx](ctx)}
	err := r.replace(ctx, lost, "the process was stopped")
	if errors.Is(err, errTaken) {
		return nil
	}
	return err
}
