package jobs

import (
	"context"
	"time"

	"github.com/riverqueue/river"
)

// pruneReportsEvery is how often metrics reports are looked through.
const pruneReportsEvery = 10 * time.Minute

// Reports is the part of catalog/postgres that keeps metrics reports.
type Reports interface {
	// PruneReports deletes those that are too old or too many for their table.
	PruneReports(ctx context.Context) error
}

// PruneReportsArgs asks that old metrics reports be deleted.
type PruneReportsArgs struct{}

// Kind implements [river.JobArgs].
func (PruneReportsArgs) Kind() string { return "prune_metrics_reports" }

// InsertOpts implements [river.JobArgsWithInsertOpts].
func (PruneReportsArgs) InsertOpts() river.InsertOpts {
	return maintenance(3, river.UniqueOpts{ByArgs: true, ByState: unfinished()})
}

func addReportPruning(workers *river.Workers, cfg Config) *river.PeriodicJob {
	river.AddWorker(workers, &PruneReportsWorker{reports: cfg.Reports})
	return river.NewPeriodicJob(river.PeriodicInterval(pruneReportsEvery),
		func() (river.JobArgs, *river.InsertOpts) { return PruneReportsArgs{}, nil }, &river.PeriodicJobOpts{RunOnStart: true})
}

// PruneReportsWorker works [PruneReportsArgs].
type PruneReportsWorker struct {
	river.WorkerDefaults[PruneReportsArgs]

	reports Reports
}

// Timeout implements [river.Worker].
func (*PruneReportsWorker) Timeout(*river.Job[PruneReportsArgs]) time.Duration { return sweepTimeout }

// Work implements [river.Worker].
func (w *PruneReportsWorker) Work(ctx context.Context, _ *river.Job[PruneReportsArgs]) error {
	return w.reports.PruneReports(ctx)
}
