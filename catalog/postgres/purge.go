package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/catalogd/catalogd/catalog"
)

// purgingSQL waits for those who are about to take the row back.
const purgingSQL = droppedColumns + ` WHERE d.drop_id = $1 AND d.purge AND d.expires_at <= clock_timestamp() FOR UPDATE OF d`

// Purging returns an object whose files are to be deleted now. It waits for the end of
// those who came back to the location before the time was over, so that the next look
// sees them; later ones see that the object is being purged. The locks are taken in the
// order in which an undrop takes them.
func (s *Store) Purging(ctx context.Context, id int64) (d catalog.Dropped, ok bool, err error) {
	err = s.update(ctx, "", func(ctx context.Context, tx pgx.Tx) error {
		ok = false
		var key *string
		err := tx.QueryRow(ctx, `SELECT location_key FROM dropped_object WHERE drop_id = $1`, id).Scan(&key)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		if key != nil {
			if _, err := tx.Exec(ctx, claimLockSQL, catalog.Enclosing(*key), *key); err != nil {
				return err
			}
		}
		rows, err := tx.Query(ctx, purgingSQL, id)
		if err != nil {
			return err
		}
		d, err = pgx.CollectExactlyOneRow(rows, scanDropped)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		ok = err == nil
		return err
	})
	return d, ok && err == nil, err
}

// claimsSQL finds those who may use the files of an object. A view around the location is
// no claim: views have no data, and a storage table lies below its own view. A row that
// another catalog implementation wrote has no location, but a metadata file.
const claimsSQL = `
SELECT o.catalog_name, o.table_namespace, o.table_name, coalesce(o.object_uuid::text, ''), o.drop_id, coalesce(d.purge, false),
       coalesce(d.expires_at, clock_timestamp())
  FROM owned_location o LEFT JOIN dropped_object d ON d.drop_id = o.drop_id
 WHERE NOT o.being_purged AND o.drop_id IS DISTINCT FROM $1
   AND (o.object_uuid = $2::uuid
        OR o.metadata_location = $3
        OR o.location_key = $4 OR o.location_key >= $4 || '/' AND o.location_key < $4 || '0'
        OR o.iceberg_type <> 'VIEW' AND o.location_key = ANY($5)
        OR o.location_key IS NULL AND (starts_with(o.metadata_location, $6) OR starts_with(o.metadata_location, $4 || '/')))
 ORDER BY o.catalog_name, o.table_namespace, o.table_name LIMIT 20`

// Claims lists those who may use the files of d.
func (s *Store) Claims(ctx context.Context, d catalog.Dropped) ([]catalog.Claim, error) {
	key := catalog.LocationKey(d.Pointer.Location)
	if d.Pointer.Location == "" {
		key = catalog.LocationKey(d.Pointer.MetadataLocation) // of which nothing is inside or around
	}
	rows, err := s.pool.Query(ctx, claimsSQL, d.ID, null(d.Pointer.UUID), d.Pointer.MetadataLocation, key, catalog.Enclosing(key), d.Pointer.Location+"/")
	if err != nil {
		return nil, translate(err)
	}
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (catalog.Claim, error) {
		var (
			c        catalog.Claim
			ns, name string
			id       *int64
			purge    bool
			expires  time.Time
		)
		p := &c.Pointer
		err := row.Scan(&p.Warehouse, &ns, &name, &p.UUID, &id, &purge, &expires)
		p.Ident = catalog.TableIdent{Namespace: catalog.DecodeNamespace(ns), Name: name}
		if id != nil {
			c.Dropped = &catalog.Dropped{ID: *id, Pointer: *p, Purge: purge, ExpiresAt: expires}
		}
		return c, err
	})
	return found, translate(err)
}

// LeasedUntil is when the last lease on a snapshot of a table ends.
func (s *Store) LeasedUntil(ctx context.Context, uuid string) (time.Time, error) {
	var until *time.Time
	err := s.pool.QueryRow(ctx, `SELECT max(until) FROM snapshot_lease WHERE table_uuid = $1`, null(uuid)).Scan(&until)
	if err != nil || until == nil {
		return time.Time{}, translate(err)
	}
	return *until, nil
}

// referrersSQL leaves out the tables that are known to have nothing outside of their
// locations, as long as it is known where these are: nearly all.
const referrersSQL = `
SELECT DISTINCT ON (o.metadata_location) o.catalog_name, o.table_namespace, o.table_name, coalesce(o.object_uuid::text, ''), o.metadata_location,
       r.object_uuid::text, r.metadata_location, r.location, r.snapshots, r.folders
  FROM owned_location o LEFT JOIN outside_reference r ON r.object_uuid = o.object_uuid
 WHERE o.iceberg_type = 'TABLE' AND o.metadata_location > $2 AND NOT o.being_purged AND o.drop_id IS DISTINCT FROM $1
   AND (r.metadata_location IS DISTINCT FROM o.metadata_location OR cardinality(r.folders) > 0 OR o.location_key IS NULL)
 ORDER BY o.metadata_location LIMIT $3`

// Referrers lists tables of which it is not known that they have no files outside of
// their locations.
func (s *Store) Referrers(ctx context.Context, d catalog.Dropped, after string, limit int) ([]catalog.Referrer, error) {
	rows, err := s.pool.Query(ctx, referrersSQL, d.ID, after, limit)
	if err != nil {
		return nil, translate(err)
	}
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (catalog.Referrer, error) {
		var (
			r                        catalog.Referrer
			ns, name                 string
			uuid, metadata, location *string
			known                    catalog.OutsideReference
		)
		p := &r.Pointer
		p.Type = catalog.TypeTable
		err := row.Scan(&p.Warehouse, &ns, &name, &p.UUID, &p.MetadataLocation, &uuid, &metadata, &location, &known.Snapshots, &known.Folders)
		p.Ident = catalog.TableIdent{Namespace: catalog.DecodeNamespace(ns), Name: name}
		if uuid != nil {
			known.UUID, known.MetadataLocation, known.Location = *uuid, *metadata, *location
			r.Known = &known
		}
		return r, err
	})
	return found, translate(err)
}

// Refers notes which folders a table uses outside of its location.
func (s *Store) Refers(ctx context.Context, r catalog.OutsideReference) error {
	_, err := s.pool.Exec(ctx, `INSERT INTO outside_reference (object_uuid, metadata_location, location, snapshots, folders)
		VALUES ($1, $2, $3, $4, $5) ON CONFLICT (object_uuid) DO UPDATE
		SET metadata_location = excluded.metadata_location, location = excluded.location, snapshots = excluded.snapshots, folders = excluded.folders`,
		r.UUID, r.MetadataLocation, r.Location, r.Snapshots, r.Folders)
	return translate(err)
}

// forgetSQL deletes what is kept about an object, unless another row has its uuid.
const forgetSQL = `
WITH alone AS (
    SELECT $1::uuid AS uuid
     WHERE NOT EXISTS (SELECT FROM iceberg_tables WHERE object_uuid = $1)
       AND NOT EXISTS (SELECT FROM dropped_object WHERE object_uuid = $1)
), documents AS (
    DELETE FROM metadata_document d USING alone WHERE d.object_uuid = alone.uuid
), outside AS (
    DELETE FROM outside_reference r USING alone WHERE r.object_uuid = alone.uuid
), leases AS (
    DELETE FROM snapshot_lease l USING alone WHERE l.table_uuid = alone.uuid
)
DELETE FROM change_log c USING alone WHERE c.table_uuid = alone.uuid`

// Purged forgets an object whose files were deleted.
func (s *Store) Purged(ctx context.Context, d catalog.Dropped) error {
	return s.update(ctx, "", func(ctx context.Context, tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `DELETE FROM dropped_object WHERE drop_id = $1`, d.ID); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, forgetSQL, null(d.Pointer.UUID))
		return err
	})
}

// expiredBatch bounds the rows of one transaction.
const expiredBatch = 500

// Expire deletes the rows of dropped objects whose time is over and whose files stay, and
// returns the drops whose files are to be deleted now, also with an error if they are
// known.
func (s *Store) Expire(ctx context.Context) (purges []int64, err error) {
	for {
		n := 0
		err = s.update(ctx, "", func(ctx context.Context, tx pgx.Tx) error {
			rows, err := tx.Query(ctx, `DELETE FROM dropped_object WHERE drop_id IN (
				SELECT drop_id FROM dropped_object WHERE expires_at <= clock_timestamp() AND NOT purge ORDER BY expires_at LIMIT $1 FOR UPDATE SKIP LOCKED)
				RETURNING object_uuid::text`, expiredBatch)
			if err != nil {
				return err
			}
			gone, err := pgx.CollectRows(rows, pgx.RowTo[*string])
			if err != nil {
				return err
			}
			n = len(gone)
			for _, uuid := range gone {
				if uuid == nil {
					continue
				}
				if _, err := tx.Exec(ctx, forgetSQL, *uuid); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		if n < expiredBatch {
			break
		}
	}
	rows, err := s.pool.Query(ctx, `SELECT drop_id FROM dropped_object WHERE purge AND expires_at <= clock_timestamp() ORDER BY expires_at, drop_id LIMIT 10000`)
	if err != nil {
		return nil, translate(err)
	}
	if purges, err = pgx.CollectRows(rows, pgx.RowTo[int64]); err != nil {
		return nil, translate(err)
	}
	return purges, s.forgetDocuments(ctx)
}

// forgetDocuments deletes the stored documents of objects that are gone without a trace,
// a batch at a time. Their files are not touched.
func (s *Store) forgetDocuments(ctx context.Context) error {
	for {
		tag, err := s.pool.Exec(ctx, `DELETE FROM metadata_document WHERE metadata_location IN (
			SELECT d.metadata_location FROM metadata_document d
			 WHERE d.created_at < clock_timestamp() - interval '1 hour'
			   AND NOT EXISTS (SELECT FROM iceberg_tables t WHERE t.object_uuid = d.object_uuid)
			   AND NOT EXISTS (SELECT FROM iceberg_tables t WHERE t.object_uuid IS NULL AND t.metadata_location = d.metadata_location)
			   AND NOT EXISTS (SELECT FROM dropped_object o WHERE o.object_uuid = d.object_uuid)
			 LIMIT $1)`, expiredBatch)
		if err != nil || tag.RowsAffected() < expiredBatch {
			return translate(err)
		}
	}
}
