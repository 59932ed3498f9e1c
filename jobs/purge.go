package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"github.com/catalogd/catalogd/catalog"
)

const (
	// purgeQueue is a queue of its own: a purge may take long, and waits for no other job.
	purgeQueue = "purge"
	// purgeTimeout bounds one run of a purge; the next one goes on where it was cut off.
	purgeTimeout = 50 * time.Minute
	// sweepTimeout bounds one run of a job that deletes whatever has become due; the next
	// one goes on where it was cut off.
	sweepTimeout = 50 * time.Minute
	// maxPurgeWait bounds how long a purge sleeps before it looks again.
	maxPurgeWait = time.Hour
)

// Dropped is the part of catalog/postgres that knows what was dropped.
type Dropped interface {
	// Expire forgets the dropped objects whose time is over and whose files stay, and
	// returns the drops whose files are to be deleted now, also with an error if they are
	// known.
	Expire(ctx context.Context) (purges []int64, err error)
}

// Purger deletes the files of dropped objects; *purge.Purger is one.
type Purger interface {
	// Purge may be run again at any time. A wait that is not zero says that nothing can be
	// deleted yet.
	Purge(ctx context.Context, drop int64) (wait time.Duration, err error)
}

// ExpireArgs asks that dropped objects be forgotten, or purged, when their time is over.
type ExpireArgs struct{}

// Kind implements [river.JobArgs].
func (ExpireArgs) Kind() string { return "expire_dropped" }

// InsertOpts implements [river.JobArgsWithInsertOpts].
func (ExpireArgs) InsertOpts() river.InsertOpts {
	return maintenance(3, river.UniqueOpts{ByArgs: true, ByState: unfinished()})
}

// PurgeArgs asks that the files of a dropped object be deleted.
type PurgeArgs struct {
	DropID int64 `json:"drop_id" river:"unique"`
}

// Kind implements [river.JobArgs].
func (PurgeArgs) Kind() string { return "purge_dropped" }

// InsertOpts implements [river.JobArgsWithInsertOpts].
func (PurgeArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: purgeQueue, MaxAttempts: 10, UniqueOpts: river.UniqueOpts{ByArgs: true, ByState: unfinished()}}
}

// addPurge adds the workers of drops and returns the job that starts them.
func addPurge(workers *river.Workers, cfg Config) *river.PeriodicJob {
	river.AddWorker(workers, &ExpireWorker{dropped: cfg.Dropped})
	river.AddWorker(workers, &PurgeWorker{purger: cfg.Purger, log: cfg.Log})
	return river.NewPeriodicJob(river.PeriodicInterval(cfg.ExpireEvery),
		func() (river.JobArgs, *river.InsertOpts) { return ExpireArgs{}, nil }, &river.PeriodicJobOpts{RunOnStart: true})
}

// ExpireWorker works [ExpireArgs].
type ExpireWorker struct {
	river.WorkerDefaults[ExpireArgs]

	dropped Dropped
}

// Timeout implements [river.Worker].
func (*ExpireWorker) Timeout(*river.Job[ExpireArgs]) time.Duration { return sweepTimeout }

// Work implements [river.Worker]. A purge whose job is not over keeps that one; one that
// failed for good gets another chance with the next look.
func (w *ExpireWorker) Work(ctx context.Context, _ *river.Job[ExpireArgs]) error {
	purges, err := w.dropped.Expire(ctx)
	if len(purges) == 0 {
		return err
	}
	params := make([]river.InsertManyParams, len(purges))
	for i, id := range purges {
		params[i] = river.InsertManyParams{Args: PurgeArgs{DropID: id}}
	}
	_, insertErr := river.ClientFromContext[pgx.Tx](ctx).InsertMany(ctx, params)
	return errors.Join(err, insertErr)
}

// PurgeWorker works [PurgeArgs].
type PurgeWorker struct {
	river.WorkerDefaults[PurgeArgs]

	purger Purger
	log    *slog.Logger
}

// Timeout implements [river.Worker].
func (*PurgeWorker) Timeout(*river.Job[PurgeArgs]) time.Duration { return purgeTimeout }

// Work implements [river.Worker].
func (w *PurgeWorker) Work(ctx context.Context, job *river.Job[PurgeArgs]) error {
	wait, err := w.purger.Purge(ctx, job.Args.DropID)
	if err != nil {
		w.log.WarnContext(ctx, "purge failed", slog.Int64("drop_id", job.Args.DropID), slog.Any("error", err))
		return err
	}
	if wait > 0 {
		return river.JobSnooze(min(wait, maxPurgeWait))
	}
	return nil
}

// enqueuePurges inserts the jobs of drops whose files are to be deleted at once, so that
// nobody has to look for them.
func (e *Enqueuer) enqueuePurges(ctx context.Context, tx pgx.Tx, changes []catalog.Change) error {
	asked := false
	for _, c := range changes {
		asked = asked || c.Op == catalog.OpDrop && c.Purge
	}
	if !asked {
		return nil
	}
	// now() is the moment of this transaction, and its drops have it.
	rows, err := tx.Query(ctx, `SELECT drop_id FROM dropped_object WHERE purge AND dropped_at = now() AND expires_at <= now()`)
	if err != nil {
		return err
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil || len(ids) == 0 {
		return err
	}
	params := make([]river.InsertManyParams, len(ids))
	for i, id := range ids {
		params[i] = river.InsertManyParams{Args: PurgeArgs{DropID: id}}
	}
	if _, err := e.river.InsertManyTx(ctx, tx, params); err != nil {
		return fmt.Errorf("enqueue purges: %w", err)
	}
	return nil
}

// endLostSQL ends the jobs of processes without a recent heartbeat whose work is found
// again by looking for it, so that none waits for the hour after which River notices.
const endLostSQL = `
UPDATE river_job j
   SET state = 'discarded', finalized_at = clock_timestamp()
 WHERE j.state = 'running' AND j.kind = ANY($3) AND j.attempted_by[array_upper(j.attempted_by, 1)] <> $1
   AND NOT EXISTS (` + aliveSQL + `)`

func (r *rescuer) endLost(ctx context.Context) error {
	kinds := []string{ExpireArgs{}.Kind(), PurgeArgs{}.Kind(), TrimMetadataArgs{}.Kind(), PruneReportsArgs{}.Kind()}
	_, err := r.pool.Exec(ctx, endLostSQL, r.process, r.silentAfter, kinds)
	return err
}
