package jobs

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"

	"github.com/catalogd/catalogd/catalog"
	"github.com/catalogd/catalogd/mv"
)

// DefaultDropRetention is how long the files of a dropped storage table stay.
const DefaultDropRetention = 7 * 24 * time.Hour

const (
	scanEvery = time.Hour
	// scanWithin is how far back a scan looks for changes. A table's last refresh leaves
	// files that are too young for the first cleanup after it; a few more follow.
	scanWithin = 4 * scanEvery
	// cleanupTimeout bounds one cleanup; River takes a job that runs longer than an hour
	// for dead.
	cleanupTimeout = 50 * time.Minute
)

// Cleaner removes files; *mv.Cleaner is one.
type Cleaner interface {
	// Sightings lists the storage tables with changes in a time, as they are now.
	Sightings(ctx context.Context, within time.Duration) ([]mv.Sighting, error)
	// Clean removes what a table needed neither when it was seen nor needs now.
	Clean(ctx context.Context, seen mv.Sighting) error
	// RemoveDropped removes what a dropped storage table has left.
	RemoveDropped(ctx context.Context, d mv.DroppedStorage) error
}

func maintenance(attempts int, unique river.UniqueOpts) river.InsertOpts {
	return river.InsertOpts{Queue: maintenanceQueue, MaxAttempts: attempts, UniqueOpts: unique}
}

// CleanupScanArgs asks for a cleanup of every storage table that may need one.
type CleanupScanArgs struct{}

// Kind implements [river.JobArgs].
func (CleanupScanArgs) Kind() string { return "storage_cleanup_scan" }

// InsertOpts implements [river.JobArgsWithInsertOpts].
func (CleanupScanArgs) InsertOpts() river.InsertOpts {
	return maintenance(3, river.UniqueOpts{ByArgs: true, ByState: unfinished()})
}

// CleanupArgs asks that a storage table be cleaned of what it no longer needs. The job
// carries how the table was when it was inserted, and is worked when nobody can read what
// was garbage then.
type CleanupArgs struct {
	TableUUID        string    `json:"table_uuid" river:"unique"`
	MetadataLocation string    `json:"metadata_location"`
	SeenAt           time.Time `json:"seen_at"`
}

// Kind implements [river.JobArgs].
func (CleanupArgs) Kind() string { return "storage_cleanup" }

// InsertOpts implements [river.JobArgsWithInsertOpts].
func (CleanupArgs) InsertOpts() river.InsertOpts {
	return maintenance(3, river.UniqueOpts{ByArgs: true, ByState: unfinished()})
}

// DroppedStorageArgs asks that the files of a dropped storage table be removed.
type DroppedStorageArgs struct {
	TableUUID string    `json:"table_uuid"`
	Location  string    `json:"location"`
	Name      string    `json:"name"`
	DroppedAt time.Time `json:"dropped_at"`
}

// Kind implements [river.JobArgs].
func (DroppedStorageArgs) Kind() string { return "dropped_storage" }

// InsertOpts implements [river.JobArgsWithInsertOpts]. The job is not unique: a table that
// came back and was dropped again has its full time again, see [DroppedStorageWorker].
func (DroppedStorageArgs) InsertOpts() river.InsertOpts { return maintenance(25, river.UniqueOpts{}) }

// addCleanup adds the workers of cleanups and returns the job that starts them.
func addCleanup(workers *river.Workers, cfg Config) *river.PeriodicJob {
	river.AddWorker(workers, &CleanupScanWorker{cleaner: cfg.Cleaner})
	river.AddWorker(workers, &CleanupWorker{cleaner: cfg.Cleaner})
	river.AddWorker(workers, &DroppedStorageWorker{cleaner: cfg.Cleaner, pool: cfg.Pool, log: cfg.Log})
	return river.NewPeriodicJob(river.PeriodicInterval(scanEvery),
		func() (river.JobArgs, *river.InsertOpts) { return CleanupScanArgs{}, nil }, &river.PeriodicJobOpts{RunOnStart: true})
}

// CleanupScanWorker works [CleanupScanArgs].
type CleanupScanWorker struct {
	river.WorkerDefaults[CleanupScanArgs]

	cleaner Cleaner
}

// Work implements [river.Worker]. A table whose last cleanup is not over keeps that one.
func (w *CleanupScanWorker) Work(ctx context.Context, _ *river.Job[CleanupScanArgs]) error {
	seen, err := w.cleaner.Sightings(ctx, scanWithin)
	if err != nil || len(seen) == 0 {
		return err
	}
	params := make([]river.InsertManyParams, 0, len(seen))
	for _, s := range seen {
		params = append(params, river.InsertManyParams{
			Args:       CleanupArgs{TableUUID: s.TableUUID, MetadataLocation: s.MetadataLocation, SeenAt: s.At},
			InsertOpts: &river.InsertOpts{ScheduledAt: s.At.Add(mv.CleanupAge)},
		})
	}
	_, err = river.ClientFromContext[pgx.Tx](ctx).InsertMany(ctx, params)
	return err
}

// CleanupWorker works [CleanupArgs].
type CleanupWorker struct {
	river.WorkerDefaults[CleanupArgs]

	cleaner Cleaner
}

// Timeout implements [river.Worker].
func (*CleanupWorker) Timeout(*river.Job[CleanupArgs]) time.Duration { return cleanupTimeout }

// Work implements [river.Worker].
func (w *CleanupWorker) Work(ctx context.Context, job *river.Job[CleanupArgs]) error {
	return w.cleaner.Clean(ctx, mv.Sighting{TableUUID: job.Args.TableUUID, MetadataLocation: job.Args.MetadataLocation, At: job.Args.SeenAt})
}

// DroppedStorageWorker works [DroppedStorageArgs].
type DroppedStorageWorker struct {
	river.WorkerDefaults[DroppedStorageArgs]

	cleaner Cleaner
	pool    *pgxpool.Pool
	log     *slog.Logger
}

// Timeout implements [river.Worker].
func (*DroppedStorageWorker) Timeout(*river.Job[DroppedStorageArgs]) time.Duration {
	return cleanupTimeout
}

// Work implements [river.Worker].
func (w *DroppedStorageWorker) Work(ctx context.Context, job *river.Job[DroppedStorageArgs]) error {
	var again bool
	err := w.pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM river_job
		WHERE kind = $1 AND id > $2 AND args->>'table_uuid' = $3 AND finalized_at IS NULL)`,
		job.Args.Kind(), job.ID, job.Args.TableUUID).Scan(&again)
	if err != nil {
		return err
	}
	if again {
		w.log.InfoContext(ctx, "dropped storage table not removed: it came back and was dropped again later",
			slog.String("table_uuid", job.Args.TableUUID), slog.String("table", job.Args.Name))
		return nil
	}
	return w.cleaner.RemoveDropped(ctx, mv.DroppedStorage{
		TableUUID: job.Args.TableUUID, Location: job.Args.Location, Name: job.Args.Name, At: job.Args.DroppedAt,
	})
}

// droppedStorage picks the storage tables that a commit drops together with their views. A
// storage table that is dropped by itself is a leftover in somebody's hands.
func droppedStorage(changes []catalog.Change) []catalog.Pointer {
	var found []catalog.Pointer
	for _, c := range changes {
		if c.Op != catalog.OpDrop || c.Pointer.StorageOf == "" || c.Pointer.UUID == "" || c.Pointer.Location == "" {
			continue
		}
		for _, v := range changes {
			if v.Op == catalog.OpDrop && v.Pointer.Type == catalog.TypeView && v.Pointer.UUID == c.Pointer.StorageOf {
				found = append(found, c.Pointer)
			}
		}
	}
	return found
}

// enqueueDropped inserts the jobs that remove dropped storage tables, for later.
func (e *Enqueuer) enqueueDropped(ctx context.Context, tx pgx.Tx, tables []catalog.Pointer, retention time.Duration) error {
	if len(tables) == 0 {
		return nil
	}
	now := time.Now()
	kept, err := keptUntil(ctx, tx, tables)
	if err != nil {
		return err
	}
	params := make([]river.InsertManyParams, 0, len(tables))
	for _, p := range tables {
		at := now.Add(retention)
		if until, ok := kept[p.UUID]; ok && !at.After(until) {
			at = until.Add(time.Minute) // it can come back until then
		}
		params = append(params, river.InsertManyParams{
			Args:       DroppedStorageArgs{TableUUID: p.UUID, Location: p.Location, Name: p.Ident.String(), DroppedAt: now},
			InsertOpts: &river.InsertOpts{ScheduledAt: at},
		})
	}
	if _, err := e.river.InsertManyTx(ctx, tx, params); err != nil {
		return fmt.Errorf("enqueue the removal of dropped storage: %w", err)
	}
	return nil
}

const keptUntilSQL = `
SELECT object_uuid::text, expires_at FROM dropped_object WHERE object_uuid = ANY($1::uuid[]) AND dropped_at = now()`

// keptUntil is until when tables that this transaction drops can come back, for those
// that can.
func keptUntil(ctx context.Context, tx pgx.Tx, tables []catalog.Pointer) (map[string]time.Time, error) {
	uuids := make([]string, len(tables))
	for i, p := range tables {
		uuids[i] = p.UUID
	}
	rows, err := tx.Query(ctx, keptUntilSQL, uuids) //nolint:rowserrcheck // pgx.ForEachRow checks it
	if err != nil {
		return nil, err
	}
	kept := map[string]time.Time{}
	var (
		uuid  string
		until time.Time
	)
	_, err = pgx.ForEachRow(rows, []any{&uuid, &until}, func() error {
		kept[uuid] = until
		return nil
	})
	return kept, err
}
