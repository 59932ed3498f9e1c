package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
	"golang.org/x/sync/semaphore"

	"github.com/catalogd/catalogd/catalog"
	"github.com/catalogd/catalogd/mv"
)

// Runner carries out one attempt to refresh a view; *mv.Refresher is one.
type Runner interface {
	// Run reads the view's current state, refreshes it and says how that ended. An error
	// counts as a failure that running again may cure.
	Run(ctx context.Context, viewUUID string, r mv.RunInfo) (mv.Attempt, error)
}

// Ledger is the part of mv/postgres that workers need.
type Ledger interface {
	// Due tells when the job of a view may run.
	Due(ctx context.Context, viewUUID string) (mv.Due, error)
	// Silence tells how long the run of a job has not reported progress; known is false
	// before it has begun.
	Silence(ctx context.Context, viewUUID string, jobID int64) (silence time.Duration, known bool, err error)
	// FinishAttempt writes an outcome. again: the view needs another job at once. wake:
	// other views that need one.
	FinishAttempt(ctx context.Context, tx pgx.Tx, a mv.Attempt) (again bool, wake []string, err error)
	// Lose notes that the run of a job will not end by itself, and reports whether its
	// view still exists. It locks the view's row.
	Lose(ctx context.Context, tx pgx.Tx, viewUUID string, jobID int64, why string) (exists bool, err error)
	// Overdue returns the views that should have a job and have none.
	Overdue(ctx context.Context) ([]string, error)
}

// RefreshWorker works refresh jobs. How a refresh is made is the [Runner]'s business.
type RefreshWorker struct {
	river.WorkerDefaults[RefreshArgs]

	pool       *pgxpool.Pool
	log        *slog.Logger
	ledger     Ledger
	runner     Runner
	process    string
	slots      *semaphore.Weighted
	stallAfter time.Duration
	flights    *flights
	nudge      *broadcast
}

// Timeout implements [river.Worker]. A run ends when it makes no progress, not by the
// clock; -1 also keeps River's own rescuer away.
func (*RefreshWorker) Timeout(*river.Job[RefreshArgs]) time.Duration { return -1 }

// NextRetry implements [river.Worker]. Work fails only if the database could not be
// reached; a delay this short leaves the job available.
func (*RefreshWorker) NextRetry(*river.Job[RefreshArgs]) time.Time {
	return time.Now().Add(3 * time.Second)
}

// Work implements [river.Worker].
func (w *RefreshWorker) Work(ctx context.Context, job *river.Job[RefreshArgs]) error {
	defer w.flights.add(job.ID)()
	a, err := w.attempt(ctx, job)
	if stopping(ctx) && (err != nil || a.Outcome == mv.OutcomeFailed) {
		// The process is going down: that is no failure of the view.
		return w.giveBack(ctx, job)
	}
	if err != nil {
		return fmt.Errorf("refresh job %d of view %s: %w", job.ID, job.Args.ViewID, err)
	}
	return w.finish(ctx, job, a)
}

// stopping tells the end of the process from somebody who cancelled this one job.
func stopping(ctx context.Context) bool {
	return ctx.Err() != nil && !errors.Is(context.Cause(ctx), rivertype.ErrJobCancelledRemotely)
}

// attempt waits for the view's time and for a free slot, and runs it. An error means that
// nothing was tried.
func (w *RefreshWorker) attempt(ctx context.Context, job *river.Job[RefreshArgs]) (mv.Attempt, error) {
	held := mv.Attempt{ViewUUID: job.Args.ViewID, Outcome: mv.OutcomeHeld}
	for {
		due, err := w.untilDue(ctx, job.Args.ViewID)
		if err != nil {
			return held, err
		}
		held.Generation = due.Generation
		if !ready(due) {
			return held, nil
		}
		if err := w.slots.Acquire(ctx, 1); err != nil {
			return held, err
		}
		// The slot may have been long in coming.
		due, err = w.ledger.Due(ctx, job.Args.ViewID)
		if err == nil && ready(due) {
			defer w.slots.Release(1)
			return w.run(ctx, job, due.Generation), nil
		}
		w.slots.Release(1)
		if err != nil {
			return held, err
		}
	}
}

// ready reports whether a view may run now.
func ready(d mv.Due) bool {
	return d.Exists && (d.Requested || d.Wait == 0 && !d.Suspended && !d.External)
}

// maxWait is the longest delay that a job waits for in process. It is a little more than
// how far ahead jobs are inserted.
const maxWait = 6 * time.Second

// lookEvery is how often a waiting job looks whether it may run earlier, because another
// process took a request.
const lookEvery = 500 * time.Millisecond

// untilDue waits for the end of a short delay. It returns early if the view is held by
// something that waiting does not cure. Commits that arrive meanwhile cost nothing: the
// run reads its inputs afterwards.
func (w *RefreshWorker) untilDue(ctx context.Context, viewUUID string) (mv.Due, error) {
	for {
		nudged := w.nudge.next()
		d, err := w.ledger.Due(ctx, viewUUID)
		if err != nil || !d.Exists || d.Requested || d.Suspended || d.External || d.Wait == 0 || d.Wait > maxWait {
			return d, err
		}
		select {
		case <-ctx.Done():
			return d, ctx.Err()
		case <-nudged:
		case <-time.After(min(d.Wait, lookEvery)):
		}
	}
}

// errStalled is why a run without progress is cancelled.
var errStalled = errors.New("the refresh made no progress")

// run calls the runner. Whatever goes wrong in it becomes a failed attempt: the end of
// the job must never depend on River's own error handling, which knows nothing of views.
func (w *RefreshWorker) run(ctx context.Context, job *river.Job[RefreshArgs], generation int64) mv.Attempt {
	view := job.Args.ViewID
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go w.watch(ctx, cancel, job)
	a, err := w.call(ctx, view, mv.RunInfo{JobID: job.ID, Process: w.process})
	done := a.Outcome == mv.OutcomeDone && a.Refresh != nil && a.Refresh.Status == mv.RefreshSucceeded
	switch {
	case ctx.Err() != nil && done:
		err = nil // it was done before it noticed
	case errors.Is(context.Cause(ctx), errStalled):
		err = catalog.Errorf(catalog.KindUnavailable, "The refresh was cancelled: it made no progress for %s", w.stallAfter)
	}
	if err == nil && a.Outcome == "" {
		err = errors.New("the runner gave no outcome")
	}
	a.ViewUUID, a.Generation = view, max(a.Generation, generation)
	if err == nil {
		return a
	}
	w.log.WarnContext(ctx, "refresh failed", slog.String("view", view), slog.Int64("job_id", job.ID), slog.Any("error", err))
	a.Outcome = mv.OutcomeFailed
	failed := mv.Refresh{ViewUUID: view, SnapshotID: mv.NoSnapshot}
	if a.Refresh != nil {
		failed = *a.Refresh
	}
	failed.Status, failed.Error = mv.RefreshFailed, message(err)
	a.Refresh = &failed
	return a
}

func (w *RefreshWorker) call(ctx context.Context, viewUUID string, info mv.RunInfo) (a mv.Attempt, err error) {
	defer func() {
		if v := recover(); v != nil {
			w.log.ErrorContext(ctx, "refresh panicked", slog.String("view", viewUUID), slog.Any("panic", v), slog.String("stack", string(debug.Stack())))
			a, err = mv.Attempt{}, fmt.Errorf("panic: %v", v)
		}
	}()
	return w.runner.Run(ctx, viewUUID, info)
}

// message is the part of err that people may see.
func message(err error) string {
	if e, ok := errors.AsType[*catalog.Error](err); ok {
		return e.Msg
	}
	return "The refresh failed for an internal reason; the server's log has it"
}

// watch cancels a run that has been silent for too long.
func (w *RefreshWorker) watch(ctx context.Context, cancel context.CancelCauseFunc, job *river.Job[RefreshArgs]) {
	started := time.Now()
	ticker := time.NewTicker(max(w.stallAfter/10, 10*time.Millisecond))
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		silence, known, err := w.ledger.Silence(ctx, job.Args.ViewID, job.ID)
		if err != nil {
			continue // the database's silence is not the run's
		}
		if !known {
			silence = time.Since(started)
		}
		if silence > w.stallAfter {
			cancel(errStalled)
			return
		}
	}
}
