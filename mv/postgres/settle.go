package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/catalogd/catalogd/mv"
)

// verdict is what the locked rows say about an attempt.
type verdict struct {
	same    bool // every input is as the attempt saw it
	blocked bool // a source view has to go first
}

// remains is the state that an attempt leaves behind.
type remains struct {
	again bool // another job is needed at once
	stale bool
}

// settle writes the outcome into the registry row. What remains is decided from the row
// and not from the outcome, so that whatever happened during the attempt counts: a
// request, a resume, a suspension.
func settle(ctx context.Context, tx pgx.Tx, a mv.Attempt, v verdict) (remains, error) {
	args := pgx.NamedArgs{
		"view": a.ViewUUID, "same": v.same, "blocked": v.blocked, "at": timeOrNow(a.At), "outcome": string(a.Outcome),
		"error": failure(a), "digest": a.Inputs.Digest(), "seen": seenGeneration(a), "max_failures": maxFailures,
		"not_before": timeOrNow(a.NotBefore),
	}
	var left remains
	err := tx.QueryRow(ctx, settleSQL, args).Scan(&left.again, &left.stale)
	return left, err
}

// settleSQL: a view that was done for inputs that have moved on is stale since the moment
// they were read. A failure holds it back for five seconds, doubled each time, up to five
// minutes and spread by a fifth, unless a request waits. A permanent failure holds for
// the very inputs it happened with. An attempt that found itself held although nothing
// holds the view any more looks again a second later, so that a disagreement between the
// two can never spin.
const settleSQL = `
UPDATE materialized_view m
   SET stale_since = CASE
           WHEN @outcome = 'done' AND @same THEN NULL
           WHEN @outcome = 'done' THEN coalesce(@at, clock_timestamp())
           WHEN @outcome IN ('failed', 'permanent') AND NOT @same THEN coalesce(m.stale_since, @at, clock_timestamp())
           ELSE m.stale_since END,
       failures = CASE @outcome WHEN 'done' THEN 0 WHEN 'failed' THEN m.failures + 1 ELSE m.failures END,
       suspended = m.suspended OR @outcome = 'failed' AND m.failures + 1 >= @max_failures,
       last_error = CASE WHEN @outcome = 'done' THEN NULL
                         WHEN @outcome IN ('failed', 'permanent') THEN @error ELSE m.last_error END,
       permanent_inputs = CASE WHEN @outcome = 'permanent' AND @same THEN @digest
                               WHEN @outcome IN ('done', 'failed', 'permanent') THEN NULL
                               ELSE m.permanent_inputs END,
       not_before = CASE
           WHEN @outcome = 'done' OR m.generation > @seen THEN NULL
           WHEN @outcome = 'permanent' THEN NULL
           WHEN @outcome = 'failed' THEN clock_timestamp()
                + least(300, 5 * 2 ^ least(m.failures, 10)) * (0.8 + 0.2 * random()) * interval '1 second'
           WHEN @outcome = 'held' AND @not_before::timestamptz IS NOT NULL THEN greatest(m.not_before, @not_before)
           WHEN @outcome = 'held' THEN greatest(m.not_before, clock_timestamp() + interval '1 second')
           ELSE m.not_before END,
       parked = @outcome = 'parked' AND @blocked,
       answered = CASE WHEN @outcome = 'parked' THEN m.answered ELSE greatest(m.answered, @seen) END
 WHERE m.view_uuid = @view
RETURNING
    ` + managed + ` AND NOT m.suspended AND NOT m.parked AND m.permanent_inputs IS NULL
        AND m.stale_since IS NOT NULL
        AND (m.not_before IS NULL OR m.not_before <= clock_timestamp() + ` + shortDelay + `)
    OR m.generation > @seen AND NOT m.parked,
    m.stale_since IS NOT NULL`

func failure(a mv.Attempt) string {
	if a.Refresh == nil {
		return ""
	}
	return a.Refresh.Error
}

func seenGeneration(a mv.Attempt) int64 {
	if a.Refresh == nil {
		return a.Generation
	}
	return max(a.Generation, a.Refresh.Generation)
}

// endRun writes the end of the run into the history and closes rows that nobody will
// close any more: a view has one live job, so no other run of it is under way.
func endRun(ctx context.Context, tx pgx.Tx, a mv.Attempt) error {
	id := ""
	if a.Refresh != nil {
		id = a.Refresh.ID
	}
	if a.Refresh != nil && id == "" {
		// The run ended before it could say what it was: what it began, if anything, failed.
		err := tx.QueryRow(ctx, `SELECT refresh_id::text FROM refresh WHERE view_uuid = $1 AND status = 'running'
			ORDER BY started_at DESC LIMIT 1`, a.ViewUUID).Scan(&id)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
	}
	if a.Refresh != nil {
		if err := writeRun(ctx, tx, a, id); err != nil {
			return err
		}
	}
	var batch pgx.Batch
	batch.Queue(`UPDATE refresh SET status = 'lost', ended_at = clock_timestamp(), error = 'the run ended without a result'
		WHERE view_uuid = $1 AND status = 'running' AND refresh_id IS DISTINCT FROM $2::uuid`, a.ViewUUID, null(id))
	batch.Queue(`DELETE FROM refresh WHERE refresh_id IN (SELECT refresh_id FROM refresh
		WHERE view_uuid = $1 AND status <> 'running' ORDER BY started_at DESC OFFSET $2)`, a.ViewUUID, historyLimit)
	return tx.SendBatch(ctx, &batch).Close()
}
