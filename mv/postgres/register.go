package postgres

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"github.com/catalogd/catalogd/catalog"
	"github.com/catalogd/catalogd/mv"
)

// register keeps the registry in step with views that came, went or were renamed. It
// returns the views that want a job because their definition is new.
func (r *Registry) register(ctx context.Context, tx pgx.Tx, changes []catalog.Change) (wake []string, err error) {
	for _, c := range changes {
		reg, _ := c.Attachment.(*mv.Registration)
		switch {
		case reg != nil && reg.Remove:
			err = remove(ctx, tx, reg.Definition.ViewUUID)
		case c.Op == catalog.OpDrop && c.Pointer.Type == catalog.TypeView && reg == nil:
			if err = keep(ctx, tx, c.Pointer.UUID); err == nil {
				err = remove(ctx, tx, c.Pointer.UUID)
			}
		case c.Op == catalog.OpRename:
			err = rename(ctx, tx, c)
		}
		if err != nil {
			return nil, err
		}
		if reg == nil || reg.Remove {
			continue
		}
		wants, err := upsert(ctx, tx, *reg)
		if err != nil {
			return nil, err
		}
		if wants {
			wake = append(wake, reg.Definition.ViewUUID)
		}
	}
	return wake, nil
}

// keepSQL puts what is known about a view into the row that was made by its drop, if its
// warehouse keeps dropped objects; now() is the moment of this transaction.
const keepSQL = `
UPDATE dropped_object d
   SET registration = jsonb_build_object('definition', m.definition, 'suspended', m.suspended AND m.failures < $2, 'names', (
       SELECT coalesce(jsonb_agg(jsonb_build_object('warehouse', s.catalog_name, 'namespace', s.namespace, 'name', s.name)), '[]')
         FROM materialized_view_source s WHERE s.view_uuid = m.view_uuid))
  FROM materialized_view m
 WHERE m.view_uuid = $1 AND d.object_uuid = $1 AND d.dropped_at = now()`

func keep(ctx context.Context, tx pgx.Tx, viewUUID string) error {
	_, err := tx.Exec(ctx, keepSQL, null(viewUUID), maxFailures)
	return err
}

func remove(ctx context.Context, tx pgx.Tx, viewUUID string) error {
	_, err := tx.Exec(ctx, `DELETE FROM materialized_view WHERE view_uuid = $1`, null(viewUUID))
	return err
}

// upsertSQL records a definition. A new one, and one that the stored rows do not answer,
// is stale at once; nothing that held the old one back counts any more. Only a
// suspension by hand survives: one by failures was about the old definition.
const upsertSQL = `
INSERT INTO materialized_view AS m (view_uuid, catalog_name, namespace, name, view_version_id,
       storage_uuid, storage_namespace, storage_name, definition, refresh_mode, max_staleness_ms, stale_since, suspended)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, clock_timestamp(), $14)
    ON CONFLICT (view_uuid) DO UPDATE
   SET catalog_name = excluded.catalog_name, namespace = excluded.namespace, name = excluded.name,
       view_version_id = excluded.view_version_id, storage_uuid = excluded.storage_uuid,
       storage_namespace = excluded.storage_namespace, storage_name = excluded.storage_name,
       definition = excluded.definition, refresh_mode = excluded.refresh_mode,
       max_staleness_ms = excluded.max_staleness_ms,
       stale_since      = CASE WHEN $12 THEN m.stale_since ELSE coalesce(m.stale_since, excluded.stale_since) END,
       not_before       = CASE WHEN $12 THEN m.not_before END,
       suspended        = m.suspended AND ($12 OR m.failures < $13),
       failures         = CASE WHEN $12 THEN m.failures ELSE 0 END,
       last_error       = CASE WHEN $12 THEN m.last_error END,
       permanent_inputs = CASE WHEN $12 THEN m.permanent_inputs END,
       parked           = m.parked AND $12
RETURNING ` + managed + ` AND NOT m.suspended AND m.stale_since IS NOT NULL
      AND (xmax = 0 OR NOT $12)`

// upsert reports whether the view wants a job.
func upsert(ctx context.Context, tx pgx.Tx, reg mv.Registration) (bool, error) {
	d := reg.Definition
	doc, err := json.Marshal(d)
	if err != nil {
		return false, err
	}
	var staleness any // null: unbounded
	if !d.MaxStaleness.Unbounded {
		staleness = d.MaxStaleness.Max.Milliseconds()
	}
	mode := d.Mode
	if mode == "" {
		mode = mv.Managed
	}
	var wants bool
	err = tx.QueryRow(ctx, upsertSQL, d.ViewUUID, d.Warehouse, catalog.EncodeNamespace(d.Ident.Namespace), d.Ident.Name,
		d.VersionID, null(d.StorageUUID), catalog.EncodeNamespace(d.Storage.Namespace), d.Storage.Name,
		string(doc), string(mode), staleness, reg.KeepsData, maxFailures, reg.Suspended).Scan(&wants)
	if err != nil {
		return false, err
	}
	added, err := setNames(ctx, tx, d.ViewUUID, reg.Names)
	if err != nil || !added || wants {
		return wants, err
	}
	// Nobody has watched the names that came in with this definition: what was committed to
	// them so far must be looked at, even if the rows answer the query as it is written.
	err = tx.QueryRow(ctx, `UPDATE materialized_view m SET stale_since = coalesce(stale_since, clock_timestamp())
		WHERE view_uuid = $1 RETURNING NOT suspended AND `+managed, d.ViewUUID).Scan(&wants)
	return wants, err
}

// setNames replaces the names that a view reads and reports whether one of them is new.
func setNames(ctx context.Context, tx pgx.Tx, viewUUID string, names []mv.Key) (added bool, err error) {
	k := columns(names)
	_, err = tx.Exec(ctx, `DELETE FROM materialized_view_source s WHERE view_uuid = $1
		AND NOT EXISTS (SELECT FROM unnest($2::text[], $3::text[], $4::text[]) AS k (catalog_name, namespace, name)
		     WHERE k.catalog_name = s.catalog_name AND k.namespace = s.namespace AND k.name = s.name)`,
		viewUUID, k.warehouses, k.namespaces, k.names)
	if err != nil {
		return false, err
	}
	tag, err := tx.Exec(ctx, `INSERT INTO materialized_view_source (view_uuid, catalog_name, namespace, name)
		SELECT $1::uuid, k.* FROM unnest($2::text[], $3::text[], $4::text[]) AS k ON CONFLICT DO NOTHING`,
		viewUUID, k.warehouses, k.namespaces, k.names)
	return tag.RowsAffected() > 0, err
}

// SetNames implements [mv.Registry]. A commit to a name that is new here may have passed
// before it was listed: whoever calls this reads the view's state again afterwards.
func (r *Registry) SetNames(ctx context.Context, viewUUID string, names []mv.Key) error {
	return translate(pgx.BeginFunc(ctx, r.pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `SELECT FROM materialized_view WHERE view_uuid = $1 FOR NO KEY UPDATE`, viewUUID)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return noSuchView(viewUUID)
		}
		_, err = setNames(ctx, tx, viewUUID, names)
		return err
	}))
}

// rename follows a materialized view or its storage table to a new name, also where it is
// listed among the view's own names. Other views keep reading the old name: for them the
// source is missing, and is back when something takes that name again.
func rename(ctx context.Context, tx pgx.Tx, c catalog.Change) error {
	p := c.Pointer
	view, set := p.UUID, `namespace = $2, name = $3`
	if p.Type == catalog.TypeTable {
		view, set = p.StorageOf, `storage_namespace = $2, storage_name = $3`
	}
	if view == "" {
		return nil
	}
	ns := catalog.EncodeNamespace(c.To.Namespace)
	var batch pgx.Batch
	batch.Queue(`UPDATE materialized_view SET `+set+` WHERE view_uuid = $1`, view, ns, c.To.Name)
	batch.Queue(`UPDATE materialized_view_source SET namespace = $2, name = $3
		WHERE view_uuid = $1 AND catalog_name = $4 AND namespace = $5 AND name = $6`,
		view, ns, c.To.Name, p.Warehouse, catalog.EncodeNamespace(p.Ident.Namespace), p.Ident.Name)
	return tx.SendBatch(ctx, &batch).Close()
}
