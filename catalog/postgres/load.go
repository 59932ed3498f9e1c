package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/catalogd/catalogd/catalog"
)

// loadSQL is the one round trip of a load: warehouse, pointer and document. The document
// is left out when the caller holds it ($4), so that the row carries a few bytes only. A
// primary-key read of three tables has no plan to get wrong.
const loadSQL = `
SELECT w.name, coalesce(t.iceberg_type, 'TABLE'), coalesce(t.object_uuid::text, ''), t.metadata_location,
       coalesce(t.location, ''), coalesce(t.snapshot_id, -1), coalesce(t.schema_id, 0), coalesce(t.view_version_id, 0),
       coalesce(t.storage_of::text, ''), t.is_materialized, t.changed_at,
       d.metadata_location IS NOT NULL, d.document, d.document_crc, d.document_size, d.refs, d.refs_crc, d.refs_size
  FROM warehouse w
  LEFT JOIN iceberg_tables t
    ON t.catalog_name = w.name AND t.table_namespace = $2 AND t.table_name = $3
  LEFT JOIN metadata_document d
    ON d.metadata_location = t.metadata_location AND t.metadata_location <> $4 AND $4 <> '*'
 WHERE w.name = $1`

// Load implements [catalog.Reader].
func (s *Store) Load(ctx context.Context, warehouse string, id catalog.TableIdent, typ catalog.ObjectType, known string) (catalog.Loaded, error) {
	p := catalog.Pointer{Ident: id}
	var (
		r         documentRow
		location  *string
		changedAt *time.Time
		mat       *bool
		hasDoc    bool
		objType   string
	)
	err := s.read(ctx, func(ctx context.Context) error {
		return s.pool.QueryRow(ctx, loadSQL, warehouse, catalog.EncodeNamespace(id.Namespace), id.Name, known).Scan(
			&p.Warehouse, &objType, &p.UUID, &location,
			&p.Location, &p.SnapshotID, &p.SchemaID, &p.ViewVersionID,
			&p.StorageOf, &mat, &changedAt,
			&hasDoc, &r.document, &r.documentCRC, &r.documentSize, &r.refs, &r.refsCRC, &r.refsSize)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return catalog.Loaded{}, noWarehouse(warehouse)
	}
	if err != nil {
		return catalog.Loaded{}, translate(err)
	}
	p.Type = catalog.ObjectType(objType)
	if location == nil || p.Type != typ {
		return catalog.Loaded{}, missing(typ, id)
	}
	p.MetadataLocation, p.IsMaterialized, p.ChangedAt = *location, *mat, *changedAt
	l := catalog.Loaded{Pointer: p}
	if hasDoc {
		l.Document = r.decode(p.MetadataLocation)
	}
	return l, nil
}

func noWarehouse(name string) error {
	return catalog.Errorf(catalog.KindNoSuchWarehouse, "Warehouse does not exist: %s", name)
}

func missing(typ catalog.ObjectType, id catalog.TableIdent) error {
	if typ == catalog.TypeView {
		return catalog.Errorf(catalog.KindNoSuchView, "View does not exist: %s", id)
	}
	return catalog.Errorf(catalog.KindNoSuchTable, "Table does not exist: %s", id)
}

// documentRow is a row of metadata_document, all null if there is none.
type documentRow struct {
	document     []byte
	documentCRC  *int64
	documentSize *int64
	refs         []byte
	refsCRC      *int64
	refsSize     *int64
}

func (r documentRow) decode(location string) *catalog.Document {
	d := &catalog.Document{MetadataLocation: location, All: encoded(r.document, r.documentCRC, r.documentSize)}
	if r.refsSize != nil {
		d.Refs = encoded(r.refs, r.refsCRC, r.refsSize)
	}
	return d
}

func encoded(deflate []byte, crc, size *int64) catalog.Encoded {
	return catalog.Encoded{Deflate: deflate, CRC32: uint32(*crc), Size: *size} //nolint:gosec // written from a uint32
}

const documentsSQL = `
SELECT metadata_location, document, document_crc, document_size, refs, refs_crc, refs_size
  FROM metadata_document
 WHERE metadata_location = ANY($1)`

// Documents implements [catalog.Reader].
func (s *Store) Documents(ctx context.Context, locations []string) (map[string]catalog.Document, error) {
	docs := make(map[string]catalog.Document, len(locations))
	err := s.read(ctx, func(ctx context.Context) error {
		rows, err := s.pool.Query(ctx, documentsSQL, locations) //nolint:rowserrcheck // pgx.ForEachRow checks it
		if err != nil {
			return err
		}
		var (
			location string
			r        documentRow
		)
		_, err = pgx.ForEachRow(rows, []any{&location, &r.document, &r.documentCRC, &r.documentSize, &r.refs, &r.refsCRC, &r.refsSize}, func() error {
			docs[location] = *r.decode(location)
			r = documentRow{}
			return nil
		})
		return err
	})
	return docs, translate(err)
}

const warehouseSQL = `
SELECT name, location FROM warehouse WHERE CASE WHEN $1 = '' THEN is_default ELSE name = $1 END`

// Warehouse implements [catalog.Reader].
func (s *Store) Warehouse(ctx context.Context, name string) (catalog.Warehouse, error) {
	var w catalog.Warehouse
	err := s.read(ctx, func(ctx context.Context) error {
		return s.pool.QueryRow(ctx, warehouseSQL, name).Scan(&w.Name, &w.Location)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		if name == "" {
			return w, catalog.Errorf(catalog.KindNoSuchWarehouse, "No warehouse was named, and there is no default one")
		}
		return w, noWarehouse(name)
	}
	return w, translate(err)
}
