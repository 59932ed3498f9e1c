package floor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// catalogName tells the floor's rows in the catalog's tables.
const catalogName = "floor"

// SeedTable makes a table that commits can go to.
func SeedTable(ctx context.Context, pool *pgxpool.Pool, namespace, table, location string) error {
	_, err := pool.Exec(ctx, `
		INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name, metadata_location, iceberg_type, object_uuid,
		       location, location_key, snapshot_id, schema_id)
		VALUES ($1, $2, $3, '', 'TABLE', $4, $5, $5, -1, 0)`,
		catalogName, namespace, table, uuid.New(), location)
	return err
}

// Commit is the request of a commit: the sizes to write, and a catalog's own request,
// which is carried along for its size.
type Commit struct {
	FileBytes     int             `json:"file-bytes"`
	DocumentBytes int             `json:"document-bytes"`
	RefsBytes     int             `json:"refs-bytes"` // 0: the form is not stored
	Previous      string          `json:"previous"`   // where the table points
	Sequence      int             `json:"sequence"`   // names the file
	Request       json.RawMessage `json:"request"`
}

// Committed is where the answer says that the file is.
const Committed = "X-Floor-Location"

// commitSQL does to the catalog's tables what its own statement does, and no more: it moves
// the pointer if that is still the expected one, and stores the document in both forms.
const commitSQL = `
WITH swapped AS (
    UPDATE iceberg_tables
       SET metadata_location = $4, previous_metadata_location = $5, snapshot_id = $6, schema_id = 0,
           changed_at = clock_timestamp()
     WHERE catalog_name = $1 AND table_namespace = $2 AND table_name = $3 AND metadata_location = $5
    RETURNING object_uuid
), document AS (
    INSERT INTO metadata_document (metadata_location, object_uuid, document, document_crc, document_size, refs, refs_crc, refs_size)
    SELECT $4, object_uuid, $7, $8, $9, $10, $11, $12 FROM swapped
)
SELECT count(*) FROM swapped`

// commit answers with the document, as a catalog answers with the new metadata.
func (s *Server) commit(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		fail(w, err)
		return
	}
	var c Commit
	if err := json.Unmarshal(body, &c); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if c.FileBytes > len(s.plain) || max(c.DocumentBytes, c.RefsBytes) > len(s.packed) || min(c.FileBytes, c.DocumentBytes, c.RefsBytes) < 0 {
		http.Error(w, fmt.Sprintf("the samples have %d and %d bytes", len(s.plain), len(s.packed)), http.StatusBadRequest)
		return
	}
	table := r.PathValue("table")
	location := filepath.Join(s.dir, table, strconv.Itoa(c.Sequence)+".json")
	if err := writeFile(location, s.plain[:c.FileBytes]); err != nil {
		fail(w, err)
		return
	}
	if err := s.swap(r.Context(), r.PathValue("namespace"), table, location, c); err != nil {
		fail(w, err)
		return
	}
	document := s.packed[:c.DocumentBytes]
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.Itoa(len(document)))
	w.Header().Set(Committed, location)
	_, _ = w.Write(document) // the client is gone if this fails
}

// swap is the transaction: BEGIN, one batch, COMMIT.
func (s *Server) swap(ctx context.Context, namespace, table, location string, c Commit) error {
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		document := s.packed[:c.DocumentBytes]
		args := []any{
			catalogName, namespace, table, location, c.Previous, int64(c.Sequence),
			document, int64(crc32.ChecksumIEEE(document)), int64(c.FileBytes), nil, nil, nil,
		}
		if c.RefsBytes > 0 {
			refs := s.packed[:c.RefsBytes]
			args[9], args[10], args[11] = refs, int64(crc32.ChecksumIEEE(refs)), int64(c.RefsBytes)
		}
		var (
			batch pgx.Batch
			n     int
		)
		batch.Queue(commitSQL, args...)
		results := tx.SendBatch(ctx, &batch)
		err := results.QueryRow().Scan(&n)
		if err = errors.Join(err, results.Close()); err == nil && n != 1 {
			err = pgx.ErrNoRows
		}
		return err
	})
}

// writeFile makes a file and its entry in the folder durable.
func writeFile(location string, data []byte) error {
	f, err := os.OpenFile(location, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	folder, err := os.Open(filepath.Dir(location))
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
