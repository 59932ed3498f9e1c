package postgres

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/catalogd/catalogd/mv"
)

// maxFailures is how many failures in a row suspend a view.
const maxFailures = 5

// historyLimit is how many runs of a view are kept.
const historyLimit = 200

// FinishAttempt ends an attempt: it compares what the attempt saw with what is there now,
// under locks that keep it so until the transaction ends, and writes the outcome. again
// means that the view needs another job at once; wake lists views that were parked behind
// this one and need a job. The caller ends the job and inserts these in tx, after this
// call, because of the lock order.
func (r *Registry) FinishAttempt(ctx context.Context, tx pgx.Tx, a mv.Attempt) (again bool, wake []string, err error) {
	same, err := holdInputs(ctx, tx, a.Inputs)
	if err != nil {
		return false, nil, err
	}
	upstream, err := lockAttempt(ctx, tx, a)
	if err != nil {
		return false, nil, err
	}
	row, err := readEntry(ctx, tx, a.ViewUUID)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil, nil // dropped: its job just ends
	}
	if err != nil {
		return false, nil, err
	}
	same = same && row.reads(a.Inputs)
	blocked := false
	if a.Outcome == mv.OutcomeParked {
		if blocked, err = stillBlocked(ctx, tx, a.ViewUUID, upstream); err != nil {
			return false, nil, err
		}
	}
	if err := endRun(ctx, tx, a); err != nil {
		return false, nil, err
	}
	left, err := settle(ctx, tx, a, verdict{same: same, blocked: blocked})
	if err != nil {
		return false, nil, err
	}
	if left.again || left.stale {
		return left.again, nil, nil
	}
	wake, err = uuids(ctx, tx, parkedReadersSQL, a.ViewUUID)
	return false, wake, err
}

// entry is what the comparison needs of a registry row.
type entry struct {
	own   mv.Key
	names []mv.Key
}

func readEntry(ctx context.Context, tx pgx.Tx, viewUUID string) (entry, error) {
	var e entry
	err := tx.QueryRow(ctx, `SELECT catalog_name, namespace, name FROM materialized_view WHERE view_uuid = $1`, viewUUID).
		Scan(&e.own.Warehouse, &e.own.Namespace, &e.own.Name)
	if err != nil {
		return e, err
	}
	rows, err := tx.Query(ctx, `SELECT catalog_name, namespace, name FROM materialized_view_source WHERE view_uuid = $1`, viewUUID)
	if err != nil {
		return e, err
	}
	e.names, err = pgx.CollectRows(rows, pgx.RowToStructByPos[mv.Key])
	return e, err
}

// reads reports whether in has exactly the names that the view reads now: its definition
// may have been replaced while the attempt ran.
func (e entry) reads(in mv.Inputs) bool {
	want := map[mv.Key]struct{}{e.own: {}}
	for _, k := range e.names {
		want[k] = struct{}{}
	}
	if len(want) != len(in) {
		return false
	}
	for k := range want {
		if _, ok := in[k]; !ok {
			return false
		}
	}
	return true
}

// holdInputs locks every name of in, present or absent, and reports whether each is as
// it was seen.
func holdInputs(ctx context.Context, tx pgx.Tx, in mv.Inputs) (bool, error) {
	keys := make([]mv.Key, 0, len(in))
	for k := range in {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, compareKeys)
	now, err := observe(ctx, tx, keys, ` ORDER BY t.catalog_name, t.table_namespace, t.table_name FOR SHARE OF t`)
	if err != nil {
		return false, err
	}
	var absent []mv.Key
	for _, k := range keys {
		if _, ok := now[k]; !ok {
			absent = append(absent, k)
		}
	}
	if len(absent) > 0 {
		_, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock_shared(lock) FROM unnest($1::bigint[]) AS lock`, nameLocks(absent))
		if err != nil {
			return false, err
		}
		// Whoever created one of them before we had its lock has committed by now.
		arrived, err := observe(ctx, tx, absent, "")
		if err != nil {
			return false, err
		}
		if len(arrived) > 0 {
			return false, nil
		}
	}
	for _, k := range keys {
		if now[k] != in[k] {
			return false, nil
		}
	}
	return true, nil
}

const observeSQL = `
SELECT t.catalog_name, t.table_namespace, t.table_name, coalesce(t.object_uuid::text, ''), coalesce(t.metadata_location, '')
  FROM unnest($1::text[], $2::text[], $3::text[]) AS k (catalog_name, namespace, name)
  JOIN iceberg_tables t
    ON t.catalog_name = k.catalog_name AND t.table_namespace = k.namespace AND t.table_name = k.name`

func observe(ctx context.Context, tx pgx.Tx, keys []mv.Key, locking string) (mv.Inputs, error) {
	k := columns(keys)
	rows, err := tx.Query(ctx, observeSQL+locking, k.warehouses, k.namespaces, k.names) //nolint:rowserrcheck // pgx.ForEachRow checks it
	if err != nil {
		return nil, err
	}
	seen := mv.Inputs{}
	var key mv.Key
	var o mv.Observed
	_, err = pgx.ForEachRow(rows, []any{&key.Warehouse, &key.Namespace, &key.Name, &o.UUID, &o.MetadataLocation}, func() error {
		seen[key] = o
		return nil
	})
	return seen, err
}

// upstreamSQL finds the materialized views that a view reads.
const upstreamSQL = `
SELECT DISTINCT u.view_uuid::text
  FROM materialized_view_source s
 CROSS JOIN LATERAL (
       SELECT v.view_uuid FROM materialized_view v
        WHERE v.catalog_name = s.catalog_name AND v.namespace = s.namespace AND v.name = s.name
       UNION ALL
       SELECT v.view_uuid FROM materialized_view v
        WHERE v.catalog_name = s.catalog_name AND v.storage_namespace = s.namespace AND v.storage_name = s.name) u
 WHERE s.view_uuid = $1 AND u.view_uuid <> s.view_uuid
 ORDER BY 1`

// lockAttempt locks the attempt's view and, if it wants to park, the views it waits for:
// their end of attempt wakes the readers that it finds parked, so the two must not miss
// each other.
func lockAttempt(ctx context.Context, tx pgx.Tx, a mv.Attempt) (upstream []string, err error) {
	if a.Outcome == mv.OutcomeParked {
		if upstream, err = uuids(ctx, tx, upstreamSQL, a.ViewUUID); err != nil {
			return nil, err
		}
	}
	return upstream, lockViews(ctx, tx, append([]string{a.ViewUUID}, upstream...))
}

// stillBlocked reports whether a source view is stale or has a live job, given the rows
// that are locked. If the view reads others by now, it has to look again anyway. An
// external view is never waited for: no attempt of ours ends its staleness.
func stillBlocked(ctx context.Context, tx pgx.Tx, viewUUID string, locked []string) (bool, error) {
	now, err := uuids(ctx, tx, upstreamSQL, viewUUID)
	if err != nil || !slices.Equal(now, locked) {
		return false, err
	}
	var blocked bool
	err = tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM materialized_view m
		WHERE m.view_uuid = ANY($1::uuid[]) AND m.refresh_mode <> 'external' AND (m.stale_since IS NOT NULL OR `+live+`))`, locked).Scan(&blocked)
	return blocked, err
}

// parkedReadersSQL finds the views that wait for a view and can run. Their rows stay as
// they are: the attempt that follows takes the mark away.
const parkedReadersSQL = `
SELECT m.view_uuid::text
  FROM (SELECT s.view_uuid FROM materialized_view u
          JOIN materialized_view_source s
            ON s.catalog_name = u.catalog_name AND s.namespace = u.namespace AND s.name = u.name
         WHERE u.view_uuid = $1
         UNION
        SELECT s.view_uuid FROM materialized_view u
          JOIN materialized_view_source s
            ON s.catalog_name = u.catalog_name AND s.namespace = u.storage_namespace AND s.name = u.storage_name
         WHERE u.view_uuid = $1) d
  JOIN materialized_view m ON m.view_uuid = d.view_uuid
 WHERE m.parked AND ` + managed + ` AND NOT m.suspended AND m.view_uuid <> $1 AND NOT ` + live + `
 ORDER BY 1`
