package postgres

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/catalogd/catalogd/catalog"
)

// dropSQL keeps the row for as long as its warehouse says, or until its files are
// deleted. A protected row stays where it is. All that one transaction drops has the same
// moment, by which what belongs together is found again.
const dropSQL = `
WITH dropped AS (
    DELETE FROM iceberg_tables
     WHERE catalog_name = $1 AND table_namespace = $2 AND table_name = $3 AND coalesce(iceberg_type, 'TABLE') = $4
       AND ($5::text IS NULL OR metadata_location = $5) AND NOT protected
    RETURNING *
), kept AS (
    INSERT INTO dropped_object (catalog_name, table_namespace, table_name, metadata_location, previous_metadata_location,
           iceberg_type, object_uuid, location, location_key, snapshot_id, schema_id, view_version_id, is_materialized, storage_of,
           created_at, changed_at, dropped_at, expires_at, purge)
    SELECT d.catalog_name, d.table_namespace, d.table_name, d.metadata_location, d.previous_metadata_location,
           $4, coalesce(d.object_uuid, $6), coalesce(d.location, $7), coalesce(d.location_key, $8), d.snapshot_id, d.schema_id,
           d.view_version_id, d.is_materialized, d.storage_of,
           d.created_at, d.changed_at, now(), now() + w.soft_delete_ms * interval '1 millisecond', $9
      FROM dropped d JOIN warehouse w ON w.name = d.catalog_name
     WHERE ($9 OR w.soft_delete_ms > 0) AND NOT $10
)
SELECT count(*) FROM dropped`

func dropArgs(c catalog.Change) []any {
	p := c.Pointer
	return []any{
		p.Warehouse, catalog.EncodeNamespace(p.Ident.Namespace), p.Ident.Name, string(p.Type), null(c.From),
		null(p.UUID), null(p.Location), locationKey(p), c.Purge, c.Forget,
	}
}

// explainDrop finds out why [dropSQL] left a row that is there.
func explainDrop(ctx context.Context, tx pgx.Tx, c catalog.Change) error {
	p := c.Pointer
	var protected bool
	err := tx.QueryRow(ctx, protectedSQL, p.Warehouse, catalog.EncodeNamespace(p.Ident.Namespace), p.Ident.Name, string(p.Type)).Scan(&protected)
	if err == nil && protected {
		return catalog.ErrProtected(catalog.Target{Type: p.Type, Ident: p.Ident})
	}
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return err
	}
	return changedSince(p)
}

// undropSQL takes a row back under a name of the caller's choice, unless its time is over
// or the object has come back in another way, as a registered table does.
const undropSQL = `
WITH namespace AS (
    SELECT 1 FROM iceberg_namespace_properties
     WHERE catalog_name = $1 AND namespace = $2 FOR KEY SHARE
), known AS (
    SELECT EXISTS (SELECT FROM namespace)
        OR EXISTS (SELECT FROM iceberg_tables WHERE catalog_name = $1 AND table_namespace = $2) AS yes
), back AS (
    DELETE FROM dropped_object d
     WHERE d.drop_id = $4 AND d.catalog_name = $1 AND d.expires_at > clock_timestamp() AND (SELECT yes FROM known)
       AND NOT EXISTS (SELECT FROM iceberg_tables t WHERE t.object_uuid = d.object_uuid)
    RETURNING *
), created AS (
    INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name, metadata_location, previous_metadata_location,
           iceberg_type, object_uuid, location, location_key, snapshot_id, schema_id, view_version_id, is_materialized, storage_of, created_at)
    SELECT catalog_name, $2, $3, metadata_location, previous_metadata_location,
           iceberg_type, object_uuid, location, location_key, snapshot_id, schema_id, view_version_id, is_materialized, storage_of, created_at
      FROM back
    RETURNING 1
)
SELECT count(*) FROM created`

func undropArgs(c catalog.Change) []any {
	p := c.Pointer
	return []any{p.Warehouse, catalog.EncodeNamespace(p.Ident.Namespace), p.Ident.Name, c.Undrop}
}

// explainUndrop finds out why [undropSQL] changed nothing.
func explainUndrop(ctx context.Context, tx pgx.Tx, c catalog.Change) error {
	var kept bool
	err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM dropped_object WHERE drop_id = $1 AND expires_at > clock_timestamp())`, c.Undrop).Scan(&kept)
	if err != nil {
		return err
	}
	if !kept {
		return catalog.Errorf(catalog.KindNotFound, "%s cannot come back any more: its time is over, or somebody was faster", c.Pointer.Ident)
	}
	var ns, name string
	err = tx.QueryRow(ctx, `SELECT t.table_namespace, t.table_name FROM iceberg_tables t JOIN dropped_object d ON d.object_uuid = t.object_uuid
		WHERE d.drop_id = $1 LIMIT 1`, c.Undrop).Scan(&ns, &name)
	if errors.Is(err, pgx.ErrNoRows) {
		return noNamespace(c.Pointer.Ident.Namespace)
	}
	if err != nil {
		return err
	}
	other := catalog.TableIdent{Namespace: catalog.DecodeNamespace(ns), Name: name}
	return catalog.Errorf(catalog.KindConflict, "%s has come back already, as %s: it was registered again", c.Pointer.Ident, other)
}

const droppedColumns = `
SELECT d.drop_id, d.catalog_name, d.table_namespace, d.table_name, d.iceberg_type, coalesce(d.object_uuid::text, ''),
       coalesce(d.metadata_location, ''), coalesce(d.location, ''), coalesce(d.snapshot_id, -1), coalesce(d.schema_id, 0),
       coalesce(d.view_version_id, 0), coalesce(d.storage_of::text, ''), d.is_materialized, d.changed_at,
       d.dropped_at, d.expires_at, d.purge, d.registration
  FROM dropped_object d`

func scanDropped(row pgx.CollectableRow) (catalog.Dropped, error) {
	var (
		d        catalog.Dropped
		ns, name string
		typ      string
	)
	p := &d.Pointer
	err := row.Scan(&d.ID, &p.Warehouse, &ns, &name, &typ, &p.UUID, &p.MetadataLocation, &p.Location, &p.SnapshotID, &p.SchemaID,
		&p.ViewVersionID, &p.StorageOf, &p.IsMaterialized, &p.ChangedAt, &d.DroppedAt, &d.ExpiresAt, &d.Purge, &d.Registration)
	p.Ident = catalog.TableIdent{Namespace: catalog.DecodeNamespace(ns), Name: name}
	p.Type = catalog.ObjectType(typ)
	return d, err
}

const listDroppedSQL = droppedColumns + `
 WHERE d.catalog_name = $1 AND d.expires_at > clock_timestamp() AND ($2::text IS NULL OR d.table_namespace = $2)
   AND ($3 OR d.storage_of IS NULL) AND d.drop_id < $4
 ORDER BY d.drop_id DESC LIMIT $5`

// ListDropped implements [catalog.Life].
func (s *Store) ListDropped(ctx context.Context, warehouse string, p catalog.DroppedPage) (catalog.Page[catalog.Dropped], error) {
	var page catalog.Page[catalog.Dropped]
	w, err := s.Warehouse(ctx, warehouse)
	if err != nil {
		return page, err
	}
	var ns, limit any
	if len(p.Namespace) > 0 {
		ns = catalog.EncodeNamespace(p.Namespace)
	}
	if p.Size > 0 {
		limit = p.Size + 1
	}
	before := int64(1<<63 - 1)
	if p.After != "" {
		if before, err = strconv.ParseInt(p.After, 10, 64); err != nil {
			return page, catalog.Errorf(catalog.KindInvalid, "the page token does not belong to this listing")
		}
	}
	rows, err := s.pool.Query(ctx, listDroppedSQL, w.Name, ns, p.StorageTables, before, limit)
	if err != nil {
		return page, translate(err)
	}
	if page.Items, err = pgx.CollectRows(rows, scanDropped); err != nil {
		return page, translate(err)
	}
	if p.Size > 0 && len(page.Items) > p.Size {
		page.Items = page.Items[:p.Size]
		page.Next = strconv.FormatInt(page.Items[p.Size-1].ID, 10)
	}
	return page, nil
}

const findDroppedSQL = droppedColumns + `
 WHERE d.catalog_name = $1 AND d.expires_at > clock_timestamp()
   AND ($2::uuid IS NULL OR d.object_uuid = $2) AND ($3::text IS NULL OR d.table_namespace = $3 AND d.table_name = $4)
   AND ($5::uuid IS NULL OR d.storage_of = $5 AND d.dropped_at = $6)
   AND ($2::uuid IS NOT NULL OR $5::uuid IS NOT NULL OR d.storage_of IS NULL)
 ORDER BY d.drop_id DESC LIMIT 100`

// FindDropped implements [catalog.Life]. Storage tables are found by uuid only: their
// names lead to their views.
func (s *Store) FindDropped(ctx context.Context, warehouse string, m catalog.DroppedMatch) ([]catalog.Dropped, error) {
	w, err := s.Warehouse(ctx, warehouse)
	if err != nil {
		return nil, err
	}
	var ns, of any
	var at time.Time
	if m.Ident.Name != "" {
		ns = catalog.EncodeNamespace(m.Ident.Namespace)
	}
	if m.StorageOf != nil {
		of, at = null(m.StorageOf.Pointer.UUID), m.StorageOf.DroppedAt
		if of == nil {
			return nil, nil
		}
	}
	rows, err := s.pool.Query(ctx, findDroppedSQL, w.Name, null(m.UUID), ns, m.Ident.Name, of, at)
	if err != nil {
		return nil, translate(err)
	}
	found, err := pgx.CollectRows(rows, scanDropped)
	return found, translate(err)
}

const expireDroppedSQL = `
WITH gone AS (
    UPDATE dropped_object SET expires_at = clock_timestamp(), purge = purge OR $3
     WHERE drop_id = $1 AND catalog_name = $2 AND expires_at > clock_timestamp()
    RETURNING object_uuid, dropped_at
), storage AS (
    UPDATE dropped_object s SET expires_at = clock_timestamp(), purge = s.purge OR $3
      FROM gone WHERE s.storage_of = gone.object_uuid AND s.dropped_at = gone.dropped_at
)
SELECT count(*) FROM gone`

// ExpireDropped implements [catalog.Life].
func (s *Store) ExpireDropped(ctx context.Context, warehouse string, id int64, purge bool) error {
	w, err := s.Warehouse(ctx, warehouse)
	if err != nil {
		return err
	}
	return s.update(ctx, w.Name, func(ctx context.Context, tx pgx.Tx) error {
		var n int
		if err := tx.QueryRow(ctx, expireDroppedSQL, id, w.Name, purge).Scan(&n); err != nil {
			return err
		}
		if n == 0 {
			return catalog.Errorf(catalog.KindNotFound, "The dropped object is gone already, or has come back")
		}
		return nil
	})
}
