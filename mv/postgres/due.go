package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/catalogd/catalogd/mv"
)

// Due tells when the job of a view may run.
func (r *Registry) Due(ctx context.Context, viewUUID string) (mv.Due, error) {
	d := mv.Due{Exists: true}
	var wait float64
	err := r.pool.QueryRow(ctx, `
SELECT greatest(0, coalesce(extract(epoch FROM not_before - clock_timestamp()), 0)), suspended,
       NOT `+managed+`, generation, generation > answered
  FROM materialized_view m WHERE view_uuid = $1`, viewUUID).
		Scan(&wait, &d.Suspended, &d.External, &d.Generation, &d.Requested)
	if errors.Is(err, pgx.ErrNoRows) {
		return mv.Due{}, nil
	}
	d.Wait = time.Duration(wait * float64(time.Second))
	return d, translate(err)
}

// overdueSQL finds the views that could run and have no job. Commits, requests and ends
// of attempts give every view its job by themselves; what is left are backoffs that are
// over, and jobs that someone removed by hand.
const overdueSQL = `
SELECT m.view_uuid::text
  FROM materialized_view m
 WHERE (m.stale_since IS NOT NULL AND NOT m.suspended AND ` + managed + ` AND m.permanent_inputs IS NULL
        AND (m.not_before IS NULL OR m.not_before <= clock_timestamp() + ` + shortDelay + `)
        OR m.generation > m.answered)
   AND NOT (m.parked AND EXISTS (
        SELECT FROM materialized_view_source s
         CROSS JOIN LATERAL (
               SELECT v.* FROM materialized_view v
                WHERE v.catalog_name = s.catalog_name AND v.namespace = s.namespace AND v.name = s.name
               UNION ALL
               SELECT v.* FROM materialized_view v
                WHERE v.catalog_name = s.catalog_name AND v.storage_namespace = s.namespace AND v.storage_name = s.name) u
         WHERE s.view_uuid = m.view_uuid AND u.view_uuid <> m.view_uuid AND u.refresh_mode <> 'external'
           AND (u.stale_since IS NOT NULL OR ` + liveUpstream + `)))
   AND NOT ` + live + `
 ORDER BY 1`

// liveUpstream is [live] for view u.
const liveUpstream = `EXISTS (SELECT FROM river_job j
          WHERE j.unique_key = sha256(convert_to('&kind=mv_refresh&args={"view_id":"' || u.view_uuid::text || '"}', 'UTF8'))
            AND j.unique_key IS NOT NULL AND j.unique_states IS NOT NULL
            AND river_job_state_in_bitmask(j.unique_states, j.state))`

// Overdue returns the views that should have a job and have none.
func (r *Registry) Overdue(ctx context.Context) ([]string, error) {
	found, err := uuids(ctx, r.pool, overdueSQL)
	return found, translate(err)
}

// Lose notes, in the transaction that takes a job away from its process, that its run
// will not end by itself. It locks the view's row and reports whether the view still
// exists.
func (r *Registry) Lose(ctx context.Context, tx pgx.Tx, viewUUID string, jobID int64, why string) (exists bool, err error) {
	err = tx.QueryRow(ctx, `SELECT true FROM materialized_view WHERE view_uuid = $1 FOR NO KEY UPDATE`, viewUUID).Scan(&exists)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	_, err = tx.Exec(ctx, `UPDATE refresh SET status = 'lost', ended_at = clock_timestamp(), error = $3
		WHERE view_uuid = $1 AND job_id = $2 AND status = 'running'`, viewUUID, jobID, why)
	return true, err
}

// Request advances a view's generation and clears what holds it back, in tx.
// KindNoSuchView.
func (r *Registry) Request(ctx context.Context, tx pgx.Tx, viewUUID string, full bool) (generation int64, err error) {
	err = tx.QueryRow(ctx, `
UPDATE materialized_view
   SET generation = generation + 1, full_generation = CASE WHEN $2 THEN generation + 1 ELSE full_generation END,
       not_before = NULL, permanent_inputs = NULL
 WHERE view_uuid = $1 RETURNING generation`, viewUUID, full).Scan(&generation)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, noSuchView(viewUUID)
	}
	return generation, err
}

// SetSuspended suspends or resumes a view in tx, and reports whether it needs a job now.
// Resuming forgets the failures and everything else that holds it back. KindNoSuchView.
func (r *Registry) SetSuspended(ctx context.Context, tx pgx.Tx, viewUUID string, suspended bool) (wake bool, err error) {
	err = tx.QueryRow(ctx, `
UPDATE materialized_view m
   SET suspended = $2,
       failures = CASE WHEN $2 THEN failures ELSE 0 END,
       not_before = CASE WHEN $2 THEN not_before END,
       permanent_inputs = CASE WHEN $2 THEN permanent_inputs END
 WHERE view_uuid = $1
RETURNING NOT suspended AND stale_since IS NOT NULL AND `+managed, viewUUID, suspended).Scan(&wake)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, noSuchView(viewUUID)
	}
	return wake, err
}
