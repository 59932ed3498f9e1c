package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/catalogd/catalogd/catalog"
)

// namedMetadataSQL forgets files that a row names: they are in use, and fall off the log
// of that row's table when it moves on.
const namedMetadataSQL = `
DELETE FROM obsolete_metadata o
 WHERE o.not_before <= clock_timestamp()
   AND (EXISTS (SELECT FROM iceberg_tables t WHERE t.metadata_location = o.metadata_location)
     OR EXISTS (SELECT FROM dropped_object d WHERE d.metadata_location = o.metadata_location))`

// promisedMetadataSQL puts off files that an answer names which may have to be given
// again.
const promisedMetadataSQL = `
UPDATE obsolete_metadata o SET not_before = clock_timestamp() + $1
 WHERE o.not_before <= clock_timestamp()
   AND EXISTS (SELECT FROM idempotency_record r WHERE r.metadata_location = o.metadata_location AND r.created_at > clock_timestamp() - $1::interval)`

// ObsoleteMetadata lists metadata files that may be deleted now.
func (s *Store) ObsoleteMetadata(ctx context.Context, limit int) ([]catalog.ObsoleteMetadata, error) {
	for {
		found, err := s.dueMetadata(ctx, limit)
		if err != nil || len(found) == 0 {
			return nil, err
		}
		var own []catalog.ObsoleteMetadata
		var foreign []string
		for _, f := range found {
			others, err := s.inLocationOfOther(ctx, f)
			switch {
			case err != nil:
				return nil, err
			case others:
				foreign = append(foreign, f.MetadataLocation)
			default:
				own = append(own, f)
			}
		}
		if err := s.ForgetObsolete(ctx, foreign); err != nil || len(own) > 0 {
			return own, err
		}
	}
}

func (s *Store) dueMetadata(ctx context.Context, limit int) (found []catalog.ObsoleteMetadata, err error) {
	err = s.update(ctx, "", func(ctx context.Context, tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, namedMetadataSQL); err != nil {
			return err
		}
		// A little more than the lifetime, for clocks and requests under way.
		if _, err := tx.Exec(ctx, promisedMetadataSQL, catalog.ReceiptLifetime+time.Minute); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, `SELECT metadata_location, object_uuid::text FROM obsolete_metadata
			WHERE not_before <= clock_timestamp() ORDER BY not_before LIMIT $1`, limit)
		if err != nil {
			return err
		}
		found, err = pgx.CollectRows(rows, pgx.RowToStructByPos[catalog.ObsoleteMetadata])
		return err
	})
	return found, err
}

// inLocationOfOther reports whether a file lies in a location that belongs to another
// table: its own may be around that one.
func (s *Store) inLocationOfOther(ctx context.Context, f catalog.ObsoleteMetadata) (yes bool, err error) {
	err = s.pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM owned_location
		WHERE location_key = ANY($1) AND object_uuid IS DISTINCT FROM $2::uuid AND iceberg_type = 'TABLE')`,
		catalog.Enclosing(catalog.LocationKey(f.MetadataLocation)), f.UUID).Scan(&yes)
	return yes, translate(err)
}

// PutOff lets metadata files that could not be deleted wait for an hour.
func (s *Store) PutOff(ctx context.Context, locations []string) error {
	if len(locations) == 0 {
		return nil
	}
	_, err := s.pool.Exec(ctx, `UPDATE obsolete_metadata SET not_before = clock_timestamp() + interval '1 hour' WHERE metadata_location = ANY($1)`, locations)
	return translate(err)
}

// Obsolete implements [catalog.Life].
func (s *Store) Obsolete(ctx context.Context, location string) (table string, err error) {
	var ns, name *string
	err = s.read(ctx, func(ctx context.Context) error {
		return s.pool.QueryRow(ctx, `SELECT o.object_uuid::text, t.table_namespace, t.table_name
			FROM obsolete_metadata o LEFT JOIN iceberg_tables t ON t.object_uuid = o.object_uuid
			WHERE o.metadata_location = $1 LIMIT 1`, location).Scan(&table, &ns, &name)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return "", nil
	}
	if err == nil && ns != nil && name != nil {
		table = catalog.TableIdent{Namespace: catalog.DecodeNamespace(*ns), Name: *name}.String()
	}
	return table, translate(err)
}

// ForgetObsolete forgets metadata files that were deleted.
func (s *Store) ForgetObsolete(ctx context.Context, locations []string) error {
	if len(locations) == 0 {
		return nil
	}
	_, err := s.pool.Exec(ctx, `DELETE FROM obsolete_metadata WHERE metadata_location = ANY($1)`, locations)
	return translate(err)
}
