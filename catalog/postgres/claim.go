package postgres

import (
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/catalogd/catalogd/catalog"
)

// claimLockSQL makes those wait for each other who claim a place and one inside it: each
// locks its own key alone and the keys around it together with others. Tables side by
// side do not meet.
const claimLockSQL = `
SELECT pg_advisory_xact_lock_shared(hashtextextended(k, 7)) FROM unnest($1::text[]) WITH ORDINALITY AS e (k, n)
 UNION ALL
SELECT pg_advisory_xact_lock(hashtextextended($2, 7))`

// claimSQL finds a table whose place is around or inside a claimed one. Its snapshot is
// taken after the locks were granted. A dropped table that can come back keeps its place,
// but may be registered again itself, until its files are being deleted.
const claimSQL = `
SELECT catalog_name, table_namespace, table_name, location, drop_id IS NOT NULL FROM owned_location
 WHERE (location_key = ANY($1) OR location_key = $2 OR location_key >= $2 || '/' AND location_key < $2 || '0')
   AND iceberg_type = 'TABLE'
   AND CASE WHEN drop_id IS NULL THEN (catalog_name, table_namespace, table_name) <> ($3, $4, $5)
            ELSE being_purged OR object_uuid IS DISTINCT FROM $6::uuid END
 LIMIT 1`

// claims reports whether c takes a place that has to be its own.
func claims(c catalog.Change) bool {
	return c.Claim && c.Pointer.Type == catalog.TypeTable && c.Pointer.Location != ""
}

// locks reports whether c has to wait for those who claim its place at the same time. A
// table that comes back has kept its place, but may be registered again meanwhile.
func locks(c catalog.Change) bool {
	return claims(c) || c.Undrop != 0 && c.Pointer.Type == catalog.TypeTable && c.Pointer.Location != ""
}

func queueClaim(b *pgx.Batch, c catalog.Change) {
	key := catalog.LocationKey(c.Pointer.Location)
	around := catalog.Enclosing(key)
	b.Queue(claimLockSQL, around, key)
	if !claims(c) {
		return
	}
	b.Queue(claimSQL, around, key, c.Pointer.Warehouse, catalog.EncodeNamespace(c.Pointer.Ident.Namespace), c.Pointer.Ident.Name,
		null(c.Pointer.UUID))
}

func claimOutcome(results pgx.BatchResults, c catalog.Change) error {
	if _, err := results.Exec(); err != nil || !claims(c) {
		return err
	}
	var warehouse, ns, name, location string
	var dropped bool
	err := results.QueryRow().Scan(&warehouse, &ns, &name, &location, &dropped)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	other := catalog.TableIdent{Namespace: catalog.DecodeNamespace(ns), Name: name}
	if dropped {
		return catalog.Errorf(catalog.KindForbidden, "Location %s overlaps %s, which belongs to table %s of warehouse %s, dropped but not gone yet: choose another one",
			c.Pointer.Location, location, other, warehouse)
	}
	return catalog.Errorf(catalog.KindForbidden, "Location %s overlaps %s, which belongs to table %s of warehouse %s: choose another one",
		c.Pointer.Location, location, other, warehouse)
}
