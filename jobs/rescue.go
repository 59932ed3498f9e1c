package jobs

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
)

// rescuer gives the jobs of processes that are gone to those that are not.
type rescuer struct {
	pool        *pgxpool.Pool
	log         *slog.Logger
	ledger      Ledger
	river       *river.Client[pgx.Tx]
	process     string
	silentAfter time.Duration
	flights     *flights
}

// lostJob is a running job whose worker will not end it.
type lostJob struct {
	ID      int64
	View    string
	Process string
}

// lostSQL finds running refresh jobs of processes without a recent heartbeat, and those
// that were given to this process but never reached a worker: the answer to the fetch
// was lost on the way.
const lostSQL = `
SELECT j.id, j.args->>'view_id', coalesce(j.attempted_by[array_upper(j.attempted_by, 1)], '')
  FROM river_job j
 WHERE j.state = 'running' AND j.kind = 'mv_refresh'
   AND CASE WHEN j.attempted_by[array_upper(j.attempted_by, 1)] = $1
            THEN j.attempted_at < clock_timestamp() - $2::interval AND NOT j.id = ANY($3::bigint[])
            ELSE NOT EXISTS (` + aliveSQL + `) END
 ORDER BY j.id`

// aliveSQL is the recent heartbeat of the process that has job j.
const aliveSQL = `SELECT FROM process_heartbeat p
         WHERE p.process_id::text = j.attempted_by[array_upper(j.attempted_by, 1)] AND p.seen_at > clock_timestamp() - $2::interval`

// pass looks for lost jobs once and replaces them.
func (r *rescuer) pass(ctx context.Context) error {
	rows, err := r.pool.Query(ctx, lostSQL, r.process, r.silentAfter, r.flights.ids())
	if err != nil {
		return err
	}
	lost, err := pgx.CollectRows(rows, pgx.RowToStructByPos[lostJob])
	if err != nil {
		return err
	}
	var failed error
	for _, j := range lost {
		err := r.replace(ctx, j, "its process fell silent; another run took over")
		switch {
		case errors.Is(err, errTaken): // by another process's pass
		case err != nil:
			failed = errors.Join(failed, err)
		default:
			r.log.WarnContext(ctx, "refresh job taken over", slog.String("view", j.View), slog.Int64("job_id", j.ID), slog.String("process", j.Process))
		}
	}
	_, err = r.pool.Exec(ctx, `DELETE FROM process_heartbeat WHERE process_id::text <> $1 AND seen_at < clock_timestamp() - $2::interval`,
		r.process, r.silentAfter)
	return errors.Join(failed, err, r.takeOverPlans(ctx), r.endLost(ctx))
}

// replaceSQL finalizes a lost job if it is still lost. It is not made available again
// itself: its old worker, should it live on, could end it under the new one's hands.
const replaceSQL = `
UPDATE river_job j
   SET state = 'discarded', finalized_at = clock_timestamp()
 WHERE j.id = $3 AND j.state = 'running' AND j.attempted_by[array_upper(j.attempted_by, 1)] = $1
   AND ($4 OR NOT EXISTS (` + aliveSQL + `))`

// replace finalizes a job and inserts a new one for its view.
func (r *rescuer) replace(ctx context.Context, j lostJob, why string) error {
	own := r.process == "" || r.process == j.Process // no heartbeat speaks against giving up one's own
	return withRetry(ctx, func() error {
		return pgx.BeginFunc(ctx, r.pool, func(tx pgx.Tx) error {
			exists, err := r.ledger.Lose(ctx, tx, j.View, j.ID, why)
			if err != nil {
				return err
			}
			tag, err := tx.Exec(ctx, replaceSQL, j.Process, r.silentAfter, j.ID, own)
			if err != nil {
				return err
			}
			if tag.RowsAffected() == 0 {
				return errTaken
			}
			if !exists {
				return nil
			}
			return enqueue(ctx, r.river, tx, []string{j.View})
		})
	})
}

// release gives back every running job of this process.
func (r *rescuer) release(ctx context.Context) error {
	rows, err := r.pool.Query(ctx, `SELECT id, args->>'view_id', $1::text FROM river_job
		WHERE state = 'running' AND kind = 'mv_refresh' AND attempted_by[array_upper(attempted_by, 1)] = $1`, r.process)
	if err != nil {
		return err
	}
	mine, err := pgx.CollectRows(rows, pgx.RowToStructByPos[lostJob])
	if err != nil {
		return err
	}
	var failed error
	for _, j := range mine {
		if err := r.replace(ctx, j, "the process was stopped"); err != nil && !errors.Is(err, errTaken) {
			failed = errors.Join(failed, err)
		}
	}
	return failed
}
