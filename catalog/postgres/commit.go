package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/catalogd/catalogd/catalog"
)

// Commit implements [catalog.Store]. The statements of the changes, the receipt and what
// the hook wants to know travel in one batch.
func (s *Store) Commit(ctx context.Context, changes []catalog.Change) error {
	receipt := pending(ctx)
	err := s.update(ctx, "", func(ctx context.Context, tx pgx.Tx) error {
		follow, err := s.apply(ctx, tx, changes)
		if err != nil || follow == nil {
			return err
		}
		return follow(ctx, tx)
	})
	if err != nil {
		return err
	}
	if receipt != nil {
		receipt.Stored = true
	}
	if s.hook != nil {
		s.hook.Acknowledged(changes)
	}
	return nil
}

func (s *Store) apply(ctx context.Context, tx pgx.Tx, changes []catalog.Change) (Follow, error) {
	var batch pgx.Batch
	for _, c := range changes {
		if locks(c) {
			queueClaim(&batch, c)
		}
		queue(&batch, c)
	}
	receipt := pending(ctx)
	if receipt != nil {
		batch.Queue(receiptSQL, receiptArgs(changes[0].Pointer.Warehouse, receipt)...)
	}
	var follow Follow
	if s.hook != nil {
		follow = s.hook.Committed(&batch, changes)
	}
	results := tx.SendBatch(ctx, &batch)
	for _, c := range changes {
		if locks(c) {
			if err := claimOutcome(results, c); err != nil {
				return nil, errors.Join(err, results.Close())
			}
		}
		if err := outcome(results, c); err != nil {
			// Why it failed depends on rows, which a second statement reads while the
			// transaction is still good.
			return nil, explain(ctx, tx, results, c, err)
		}
	}
	if receipt != nil {
		if _, err := results.Exec(); err != nil {
			return nil, repeated(errors.Join(err, results.Close()))
		}
	}
	return follow, results.Close() // reads what the hook asked for
}

// errNothing is the outcome of a statement that found no row to change.
var errNothing = errors.New("no row changed")

func queue(b *pgx.Batch, c catalog.Change) {
	p := c.Pointer
	ns := catalog.EncodeNamespace(p.Ident.Namespace)
	switch c.Op {
	case catalog.OpCreate:
		if c.Undrop != 0 {
			b.Queue(undropSQL, undropArgs(c)...)
			return
		}
		b.Queue(createSQL, append([]any{
			p.Warehouse, ns, p.Ident.Name, p.MetadataLocation, string(p.Type), null(p.UUID), p.Location,
			p.SnapshotID, p.SchemaID, p.ViewVersionID, p.IsMaterialized, null(p.StorageOf),
		}, append(documentArgs(c.Document), locationKey(p))...)...)
	case catalog.OpSwap:
		b.Queue(swapSQL, append([]any{
			p.Warehouse, ns, p.Ident.Name, p.MetadataLocation, string(p.Type), null(p.UUID), p.Location,
			p.SnapshotID, p.SchemaID, p.ViewVersionID, p.IsMaterialized, c.From, null(p.StorageOf),
		}, append(documentArgs(c.Document), locationKey(p))...)...)
	case catalog.OpDrop:
		b.Queue(dropSQL, dropArgs(c)...)
	case catalog.OpRename:
		b.Queue(renameSQL, p.Warehouse, ns, p.Ident.Name, string(p.Type),
			catalog.EncodeNamespace(c.To.Namespace), c.To.Name)
	}
}

func locationKey(p catalog.Pointer) any {
	if p.Location == "" {
		return nil
	}
	return catalog.LocationKey(p.Location)
}

func documentArgs(d *catalog.Document) []any {
	args := []any{d.All.Deflate, int64(d.All.CRC32), d.All.Size, nil, nil, nil}
	if !d.Refs.Empty() {
		args[3], args[4], args[5] = d.Refs.Deflate, int64(d.Refs.CRC32), d.Refs.Size
	}
	return args
}

func null(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// documentAgain: a metadata file that is registered again may have been written anew under
// its name, as tables without a catalog do. Its document is the one that was read last.
const documentAgain = `ON CONFLICT (metadata_location) DO UPDATE SET object_uuid = excluded.object_uuid,
           document = excluded.document, document_crc = excluded.document_crc, document_size = excluded.document_size,
           refs = excluded.refs, refs_crc = excluded.refs_crc, refs_size = excluded.refs_size`

// createSQL holds the rows of a namespace until the transaction ends, so that it
// cannot be dropped under a new table. A namespace that another catalog implementation
// made may exist only through its tables: then there is nothing to lock.
const createSQL = `
WITH namespace AS (
    SELECT 1 FROM iceberg_namespace_properties
     WHERE catalog_name = $1 AND namespace = $2 FOR KEY SHARE
), known AS (
    SELECT EXISTS (SELECT FROM namespace)
        OR EXISTS (SELECT FROM iceberg_tables WHERE catalog_name = $1 AND table_namespace = $2) AS yes
), created AS (
    INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name, metadata_location, iceberg_type,
           object_uuid, location, snapshot_id, schema_id, view_version_id, is_materialized, storage_of, location_key)
    SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $19 FROM known WHERE yes
    RETURNING 1
), document AS (
    INSERT INTO metadata_document (metadata_location, object_uuid, document, document_crc, document_size, refs, refs_crc, refs_size)
    SELECT $4, $6, $13, $14, $15, $16, $17, $18 FROM created
        ` + documentAgain + `
)
SELECT count(*) FROM created`

const swapSQL = `
WITH swapped AS (
    UPDATE iceberg_tables
       SET metadata_location = $4, previous_metadata_location = $12, object_uuid = $6, location = $7,
           snapshot_id = $8, schema_id = $9, view_version_id = $10, is_materialized = $11, storage_of = $13,
           location_key = $20,
           changed_at = clock_timestamp()
     WHERE catalog_name = $1 AND table_namespace = $2 AND table_name = $3 AND metadata_location = $12
       AND coalesce(iceberg_type, 'TABLE') = $5
    RETURNING 1
), document AS (
    INSERT INTO metadata_document (metadata_location, object_uuid, document, document_crc, document_size, refs, refs_crc, refs_size)
    SELECT $4, $6, $14, $15, $16, $17, $18, $19 FROM swapped
        ` + documentAgain + `
)
SELECT count(*) FROM swapped`

const renameSQL = `
WITH namespace AS (
    SELECT 1 FROM iceberg_namespace_properties
     WHERE catalog_name = $1 AND namespace = $5 FOR KEY SHARE
), known AS (
    SELECT EXISTS (SELECT FROM namespace)
        OR EXISTS (SELECT FROM iceberg_tables WHERE catalog_name = $1 AND table_namespace = $5) AS yes
), renamed AS (
    UPDATE iceberg_tables SET table_namespace = $5, table_name = $6, changed_at = clock_timestamp()
     WHERE catalog_name = $1 AND table_namespace = $2 AND table_name = $3 AND coalesce(iceberg_type, 'TABLE') = $4
       AND (SELECT yes FROM known)
    RETURNING 1
)
SELECT CASE WHEN yes THEN (SELECT count(*) FROM renamed) ELSE -1 END FROM known`

func outcome(results pgx.BatchResults, c catalog.Change) error {
	var n int
	err := results.QueryRow().Scan(&n)
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.Code == uniqueViolation && e.TableName == "iceberg_tables" {
		return taken(c)
	}
	if err != nil {
		return err
	}
	switch {
	case n < 0:
		return noNamespace(c.To.Namespace)
	case n == 0 && c.Op == catalog.OpRename:
		// By now another table may have the name; when the statement ran, none had.
		return missing(c.Pointer.Type, c.Pointer.Ident)
	case n == 0:
		return errNothing
	}
	return nil
}

func taken(c catalog.Change) error {
	if c.Op == catalog.OpRename {
		word := "Table"
		if c.Pointer.Type == catalog.TypeView {
			word = "View"
		}
		return catalog.Errorf(catalog.KindAlreadyExists, "Cannot rename %s to %s. %s already exists", c.Pointer.Ident, c.To, word)
	}
	return catalog.Taken(c.Pointer.Type, c.Pointer.Ident)
}

// explain finds out why a statement changed nothing.
func explain(ctx context.Context, tx pgx.Tx, results pgx.BatchResults, c catalog.Change, err error) error {
	closeErr := results.Close()
	if !errors.Is(err, errNothing) {
		return err
	}
	if closeErr != nil {
		return behind(c, closeErr)
	}
	if c.Undrop != 0 {
		return explainUndrop(ctx, tx, c)
	}
	var current *string
	p := c.Pointer
	row := tx.QueryRow(ctx, `SELECT metadata_location FROM iceberg_tables
		WHERE catalog_name = $1 AND table_namespace = $2 AND table_name = $3 AND coalesce(iceberg_type, 'TABLE') = $4`,
		p.Warehouse, catalog.EncodeNamespace(p.Ident.Namespace), p.Ident.Name, string(p.Type))
	switch err := row.Scan(&current); {
	case c.Op == catalog.OpCreate:
		return noNamespace(p.Ident.Namespace)
	case errors.Is(err, pgx.ErrNoRows):
		return missing(p.Type, p.Ident)
	case err != nil:
		return err
	case c.Op == catalog.OpDrop:
		return explainDrop(ctx, tx, c)
	}
	return changedSince(p)
}

// behind is why a change found nothing to do when a later statement of the batch failed as
// well, so that nothing more can be asked. A copy of the request that was faster leaves its
// receipt, and another transaction its names.
func behind(c catalog.Change, closeErr error) error {
	if errors.Is(repeated(closeErr), catalog.ErrRepeated) {
		return catalog.ErrRepeated
	}
	if e, ok := errors.AsType[*pgconn.PgError](closeErr); ok && e.Code == uniqueViolation {
		return changedSince(c.Pointer)
	}
	return closeErr
}

func changedSince(p catalog.Pointer) error {
	return catalog.Errorf(catalog.KindCommitFailed, "Commit failed: %s was changed by someone else since it was read", p.Ident)
}

func noNamespace(ns catalog.Namespace) error {
	return catalog.Errorf(catalog.KindNoSuchNamespace, "Namespace does not exist: %s", ns)
}
