package jobs

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"

	"github.com/catalogd/catalogd/catalog"
)

const (
	pruneEvery = 5 * time.Minute
	pruneBatch = 1000
	// keepDocuments is how many of an object's newest documents stay, the current one
	// included: readers that fell a little behind find theirs without an object read.
	keepDocuments = 11
)

// pruneSQL deletes a batch of documents that are neither current nor among the newest of
// their object. The files they were read from stay where they are. Rows that other
// catalog implementations wrote have no uuid and are matched by location alone.
const pruneSQL = `
DELETE FROM metadata_document d
 WHERE d.metadata_location IN (
       SELECT old.metadata_location
         FROM (SELECT metadata_location, object_uuid,
                      row_number() OVER (PARTITION BY object_uuid ORDER BY created_at DESC, metadata_location DESC) AS age
                 FROM metadata_document) old
        WHERE old.age > $1
          AND NOT EXISTS (SELECT FROM iceberg_tables t
                           WHERE t.object_uuid = old.object_uuid AND t.metadata_location = old.metadata_location)
          AND NOT EXISTS (SELECT FROM iceberg_tables t
                           WHERE t.object_uuid IS NULL AND t.metadata_location = old.metadata_location)
        LIMIT $2)`

// pruneReceiptsSQL deletes receipts of requests that nobody sends again. They stay twice
// as long as announced: a client's clock and ours need not agree.
const pruneReceiptsSQL = `
DELETE FROM idempotency_record WHERE (catalog_name, idempotency_key) IN (
       SELECT catalog_name, idempotency_key FROM idempotency_record
        WHERE created_at < clock_timestamp() - $1 * interval '1 second' LIMIT $2)`

// PruneWorker works [PruneArgs].
type PruneWorker struct {
	river.WorkerDefaults[PruneArgs]

	pool *pgxpool.Pool
}

// Timeout implements [river.Worker].
func (*PruneWorker) Timeout(*river.Job[PruneArgs]) time.Duration { return sweepTimeout }

// Work implements [river.Worker].
func (w *PruneWorker) Work(ctx context.Context, _ *river.Job[PruneArgs]) error {
	if err := w.inBatches(ctx, pruneSQL, keepDocuments); err != nil {
		return err
	}
	return w.inBatches(ctx, pruneReceiptsSQL, 2*catalog.ReceiptLifetime.Seconds())
}

// inBatches runs a deletion until there is nothing left, so that no transaction is long.
func (w *PruneWorker) inBatches(ctx context.Context, sql string, bound any) error {
	for {
		tag, err := w.pool.Exec(ctx, sql, bound, pruneBatch)
		if err != nil || tag.RowsAffected() < pruneBatch {
			return err
		}
	}
}
