package postgres

import (
	"context"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/catalogd/catalogd/catalog"
	"github.com/catalogd/catalogd/mv"
)

// Watch asks, in the batch of a commit and behind its changes, what these mean for
// materialized views. The function that it returns does it, in the same transaction: it
// keeps the registry in step with views that came, went or were renamed, and marks every
// view that reads a changed name as stale. It returns the views that need a refresh job
// now.
//
// A view that is stale already and whose job lives is only read, never locked: else all
// commits to tables that share a view would queue up behind its row.
func (r *Registry) Watch(batch *pgx.Batch, changes []catalog.Change) func(context.Context, pgx.Tx) (wake []string, err error) {
	w := survey(changes)
	lockNames(batch, w.arriving)
	var marks []string
	needMarks(batch, w, &marks)
	return func(ctx context.Context, tx pgx.Tx) ([]string, error) {
		if len(marks) == 0 && len(w.own) == 0 {
			return nil, nil
		}
		all := slices.Concat(marks, slices.Collect(maps.Keys(w.own)))
		if err := lockViews(ctx, tx, all); err != nil {
			return nil, err
		}
		registered, err := r.register(ctx, tx, changes)
		if err != nil {
			return nil, err
		}
		marked, err := mark(ctx, tx, marks)
		if err != nil {
			return nil, err
		}
		wake := slices.Concat(registered, marked)
		slices.Sort(wake)
		return slices.Compact(wake), nil
	}
}

// work is what a commit touches.
type work struct {
	touched  []mv.Key            // every changed name
	unpark   []bool              // parallel: a parked reader must look again
	arriving []mv.Key            // names that come into being
	own      map[string]struct{} // materialized views whose registry row may be written
}

func survey(changes []catalog.Change) work {
	w := work{own: map[string]struct{}{}}
	for _, c := range changes {
		key := mv.KeyOf(c.Pointer.Warehouse, c.Pointer.Ident)
		reg, _ := c.Attachment.(*mv.Registration)
		if reg != nil {
			w.own[reg.Definition.ViewUUID] = struct{}{}
		}
		w.touch(key, c.Op != catalog.OpSwap || reg != nil && reg.Remove)
		switch c.Op {
		case catalog.OpCreate:
			w.arriving = append(w.arriving, key)
		case catalog.OpDrop:
			w.owns(c.Pointer)
		case catalog.OpRename:
			w.owns(c.Pointer)
			to := mv.KeyOf(c.Pointer.Warehouse, c.To)
			w.arriving = append(w.arriving, to)
			w.touch(to, true)
		}
	}
	return w
}

func (w *work) touch(key mv.Key, unpark bool) {
	w.touched = append(w.touched, key)
	w.unpark = append(w.unpark, unpark)
}

// owns notes the view that p is, or is the storage of.
func (w *work) owns(p catalog.Pointer) {
	switch {
	case p.Type == catalog.TypeView && p.UUID != "":
		w.own[p.UUID] = struct{}{}
	case p.StorageOf != "":
		w.own[p.StorageOf] = struct{}{}
	}
}

// lockNames makes a name's arrival and the end of an attempt that saw it absent wait for
// each other: an absent row cannot be locked.
func lockNames(batch *pgx.Batch, keys []mv.Key) {
	if len(keys) > 0 {
		batch.Queue(`SELECT pg_advisory_xact_lock(lock) FROM unnest($1::bigint[]) AS lock`, nameLocks(keys))
	}
}

// needMarksSQL finds the readers of the touched names for which something is to be
// written: those that are not stale yet, and those that could run but have no job. A
// view in backoff gets its job when that is over, a parked one when its source view is
// done, or gone.
const needMarksSQL = `
SELECT DISTINCT m.view_uuid::text
  FROM unnest($1::text[], $2::text[], $3::text[], $4::boolean[]) AS k (catalog_name, namespace, name, unpark)
  JOIN materialized_view_source s
    ON s.catalog_name = k.catalog_name AND s.namespace = k.namespace AND s.name = k.name
  JOIN materialized_view m ON m.view_uuid = s.view_uuid
 WHERE m.stale_since IS NULL
    OR ` + managed + ` AND NOT m.suspended
       AND (m.permanent_inputs IS NOT NULL OR m.not_before IS NULL OR m.not_before <= clock_timestamp() + ` + shortDelay + `)
       AND (NOT m.parked OR k.unpark)
       AND NOT ` + live

// needMarks fills marks when the batch is answered.
func needMarks(batch *pgx.Batch, w work, marks *[]string) {
	if len(w.touched) == 0 {
		return
	}
	k := columns(w.touched)
	batch.Queue(needMarksSQL, k.warehouses, k.namespaces, k.names, w.unpark).Query(func(rows pgx.Rows) (err error) {
		*marks, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
}

// lockViews locks registry rows in the order that all transactions keep. A row that does
// not exist (yet, or any more) is passed over.
func lockViews(ctx context.Context, tx pgx.Tx, viewUUIDs []string) error {
	_, err := tx.Exec(ctx, `SELECT FROM materialized_view WHERE view_uuid = ANY($1::uuid[])
		ORDER BY view_uuid FOR NO KEY UPDATE`, viewUUIDs)
	return err
}

// markSQL keeps the first moment of staleness, and holds a view back for its debounce
// only when it becomes stale: later commits of a burst must not put the run off again. A
// permanent failure held for the old inputs only.
const markSQL = `
UPDATE materialized_view m
   SET stale_since = coalesce(m.stale_since, clock_timestamp()),
       not_before = CASE WHEN m.stale_since IS NULL
                         THEN greatest(m.not_before, clock_timestamp() + m.debounce_ms * interval '1 millisecond')
                         ELSE m.not_before END,
       permanent_inputs = NULL
 WHERE m.view_uuid = ANY($1::uuid[])
RETURNING CASE WHEN ` + managed + ` AND NOT m.suspended THEN m.view_uuid::text END`

func mark(ctx context.Context, tx pgx.Tx, viewUUIDs []string) ([]string, error) {
	if len(viewUUIDs) == 0 {
		return nil, nil
	}
	rows, err := tx.Query(ctx, markSQL, viewUUIDs)
	if err != nil {
		return nil, err
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[*string])
	if err != nil {
		return nil, err
	}
	var wake []string
	for _, id := range found {
		if id != nil {
			wake = append(wake, *id)
		}
	}
	return wake, nil
}
