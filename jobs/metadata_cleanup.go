package jobs

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"github.com/catalogd/catalogd/catalog"
)

// Obsolete deletes metadata files that tables have outgrown; *purge.Trimmer is one.
type Obsolete interface {
	// Trim deletes what commits have noted so far. It may be run again at any time.
	Trim(ctx context.Context) error
}

// TrimMetadataArgs asks that metadata files be deleted that fell off the logs of tables
// whose properties ask for it.
type TrimMetadataArgs struct{}

// Kind implements [river.JobArgs].
func (TrimMetadataArgs) Kind() string { return "trim_metadata" }

// InsertOpts implements [river.JobArgsWithInsertOpts].
func (TrimMetadataArgs) InsertOpts() river.InsertOpts {
	return maintenance(3, river.UniqueOpts{ByArgs: true, ByState: unfinished()})
}

func addMetadataCleanup(workers *river.Workers, cfg Config) *river.PeriodicJob {
	river.AddWorker(workers, &TrimMetadataWorker{obsolete: cfg.Obsolete})
	return river.NewPeriodicJob(river.PeriodicInterval(cfg.ExpireEvery),
		func() (river.JobArgs, *river.InsertOpts) { return TrimMetadataArgs{}, nil }, &river.PeriodicJobOpts{RunOnStart: true})
}

// TrimMetadataWorker works [TrimMetadataArgs].
type TrimMetadataWorker struct {
	river.WorkerDefaults[TrimMetadataArgs]

	obsolete Obsolete
}

// Timeout implements [river.Worker].
func (*TrimMetadataWorker) Timeout(*river.Job[TrimMetadataArgs]) time.Duration { return sweepTimeout }

// Work implements [river.Worker].
func (w *TrimMetadataWorker) Work(ctx context.Context, _ *river.Job[TrimMetadataArgs]) error {
	return w.obsolete.Trim(ctx)
}

// noteObsolete notes, in the transaction of a commit, the metadata files that it took off
// the logs of its tables. No job is inserted: all commits would meet at its unique key.
func noteObsolete(ctx context.Context, tx pgx.Tx, changes []catalog.Change) error {
	for _, c := range changes {
		if len(c.Obsolete) == 0 || c.Pointer.UUID == "" {
			continue
		}
		_, err := tx.Exec(ctx, `INSERT INTO obsolete_metadata (metadata_location, object_uuid)
			SELECT m, $2 FROM unnest($1::text[]) AS m ON CONFLICT DO NOTHING`, c.Obsolete, c.Pointer.UUID)
		if err != nil {
			return err
		}
	}
	return nil
}
