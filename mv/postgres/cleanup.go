package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/catalogd/catalogd/catalog"
	"github.com/catalogd/catalogd/mv"
)

var _ mv.CleanupRegistry = (*Registry)(nil)

// Sightings implements [mv.CleanupRegistry]. A commit by another engine counts as well as
// a run of ours, and so does a run that was lost.
func (r *Registry) Sightings(ctx context.Context, within time.Duration) ([]mv.Sighting, error) {
	rows, err := r.pool.Query(ctx, `
SELECT t.object_uuid::text, t.metadata_location, clock_timestamp()
  FROM iceberg_tables t
 WHERE t.storage_of IS NOT NULL AND t.object_uuid IS NOT NULL AND t.metadata_location IS NOT NULL
   AND (t.changed_at > clock_timestamp() - $1::interval OR EXISTS (
        SELECT FROM refresh r WHERE r.view_uuid = t.storage_of
           AND greatest(r.started_at, r.progress_at, r.ended_at) > clock_timestamp() - $1::interval))
 ORDER BY 1`, within)
	if err != nil {
		return nil, translate(err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[mv.Sighting])
	return found, translate(err)
}

// storageNowSQL reads the pointer and the runs in one statement: a run that is not listed
// has published whatever it will, and the pointer shows it. A process that is silent
// loses its runs, but it could wake up.
const storageNowSQL = `
SELECT t.catalog_name, t.table_namespace, t.table_name, coalesce(t.location, ''), t.metadata_location, t.storage_of::text,
       ARRAY(SELECT r.refresh_id::text FROM refresh r WHERE r.view_uuid = t.storage_of
                AND (r.status = 'running' OR r.ended_at > $2 OR r.status = 'lost' AND EXISTS (
                     SELECT FROM process_heartbeat p WHERE p.process_id = r.process_id)))
  FROM iceberg_tables t
 WHERE t.object_uuid = $1 AND t.storage_of IS NOT NULL AND t.metadata_location IS NOT NULL
 LIMIT 1`

// StorageNow implements [mv.CleanupRegistry].
func (r *Registry) StorageNow(ctx context.Context, seen mv.Sighting) (mv.StorageNow, bool, error) {
	now := mv.StorageNow{Pointer: catalog.Pointer{Type: catalog.TypeTable, UUID: seen.TableUUID}}
	p := &now.Pointer
	var namespace, name string
	err := r.pool.QueryRow(ctx, storageNowSQL, seen.TableUUID, seen.At).
		Scan(&p.Warehouse, &namespace, &name, &p.Location, &p.MetadataLocation, &p.StorageOf, &now.Runs)
	if errors.Is(err, pgx.ErrNoRows) {
		return mv.StorageNow{}, false, nil
	}
	p.Ident = identOf(namespace, name)
	return now, err == nil, translate(err)
}

// claimsSQL compares locations without their schemes, since file:/x, file:///x and /x, or
// s3 and s3a, mean one folder. A view around the folder is no claim: views have no data,
// and a storage table lies below its own view. The row that another client wrote has no
// location, but a metadata file. What was dropped and can come back counts as well.
const claimsSQL = `
WITH place AS (SELECT ` + bare + `($1::text, ` + barePattern + `, '', 'i'), '/') || '/' AS folder)
SELECT t.catalog_name || '.' || t.table_namespace || '.' || t.table_name
  FROM owned_location t, place,
       LATERAL (SELECT ` + bare + `(coalesce(t.location, ''), ` + barePattern + `, '', 'i'), '/') || '/' AS folder,
                       ` + bare + `(coalesce(t.metadata_location, ''), ` + barePattern + `, '', 'i'), '/') || '/' AS file) own
 WHERE (t.object_uuid = $2
        OR starts_with(own.folder, place.folder) OR starts_with(own.file, place.folder)
        OR coalesce(t.iceberg_type, 'TABLE') <> 'VIEW' AND own.folder <> '/' AND starts_with(place.folder, own.folder))
   AND (t.drop_id IS NOT NULL OR (t.catalog_name, t.table_namespace, t.table_name) <> ($3, $4, $5))
   AND NOT (t.being_purged AND t.object_uuid = $2)
 ORDER BY 1 LIMIT 10`

const (
	bare        = `rtrim(regexp_replace`
	barePattern = `'^([a-z][a-z0-9+.-]*:)?(//localhost/)?/*'`
)

// Claims implements [mv.CleanupRegistry].
func (r *Registry) Claims(ctx context.Context, folder, tableUUID string, self mv.Key) ([]string, error) {
	found, err := uuids(ctx, r.pool, claimsSQL, folder, tableUUID, self.Warehouse, self.Namespace, self.Name)
	return found, translate(err)
}
