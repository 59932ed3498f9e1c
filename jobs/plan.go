package jobs

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
)

const (
	planQueue    = "scan_plan"
	planAttempts = 5
	// planTimeout bounds one attempt to plan a scan.
	planTimeout = 15 * time.Minute
	expireEvery = 5 * time.Minute
)

// Planner makes the plans of scans; *scan.Service is one.
type Planner interface {
	// Execute makes a submitted plan. last: every failure is final. An error means that
	// another attempt may help.
	Execute(ctx context.Context, planID string, last bool) error
	// Expire deletes old plans.
	Expire(ctx context.Context) error
}

// PlanArgs asks that a submitted plan be made.
type PlanArgs struct {
	PlanID string `json:"plan_id" river:"unique"`
}

// Kind implements [river.JobArgs].
func (PlanArgs) Kind() string { return "scan_plan" }

// InsertOpts implements [river.JobArgsWithInsertOpts].
func (PlanArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: planQueue, MaxAttempts: planAttempts, UniqueOpts: river.UniqueOpts{ByArgs: true, ByState: unfinished()}}
}

// ExpirePlansArgs asks that old plans be deleted.
type ExpirePlansArgs struct{}

// Kind implements [river.JobArgs].
func (ExpirePlansArgs) Kind() string { return "scan_plan_expiry" }

// InsertOpts implements [river.JobArgsWithInsertOpts].
func (ExpirePlansArgs) InsertOpts() river.InsertOpts {
	return maintenance(3, river.UniqueOpts{ByArgs: true, ByState: unfinished()})
}

// EnqueuePlan inserts the job of a plan.
func (e *Enqueuer) EnqueuePlan(ctx context.Context, tx pgx.Tx, planID string) error {
	_, err := e.river.InsertTx(ctx, tx, PlanArgs{PlanID: planID}, nil)
	return err
}

// addPlanning adds the workers of plans and returns the job that deletes old ones.
func addPlanning(workers *river.Workers, planner Planner, flying *flights) *river.PeriodicJob {
	river.AddWorker(workers, &PlanWorker{planner: planner, flights: flying})
	river.AddWorker(workers, &ExpirePlansWorker{planner: planner})
	return river.NewPeriodicJob(river.PeriodicInterval(expireEvery),
		func() (river.JobArgs, *river.InsertOpts) { return ExpirePlansArgs{}, nil }, &river.PeriodicJobOpts{RunOnStart: true})
}

// PlanWorker works [PlanArgs].
type PlanWorker struct {
	river.WorkerDefaults[PlanArgs]

	planner Planner
	flights *flights
}

// Timeout implements [river.Worker].
func (*PlanWorker) Timeout(*river.Job[PlanArgs]) time.Duration { return planTimeout }

// NextRetry implements [river.Worker]: a client is waiting.
func (*PlanWorker) NextRetry(*river.Job[PlanArgs]) time.Time { return time.Now().Add(time.Second) }

// Work implements [river.Worker].
func (w *PlanWorker) Work(ctx context.Context, job *river.Job[PlanArgs]) error {
	defer w.flights.add(job.ID)()
	err := w.planner.Execute(ctx, job.Args.PlanID, job.Attempt >= job.MaxAttempts)
	if err != nil && stopping(ctx) {
		return river.JobSnooze(0) // the process is going down: another one goes on
	}
	return err
}

// ExpirePlansWorker works [ExpirePlansArgs].
type ExpirePlansWorker struct {
	river.WorkerDefaults[ExpirePlansArgs]

	planner Planner
}

// Work implements [river.Worker].
func (w *ExpirePlansWorker) Work(ctx context.Context, _ *river.Job[ExpirePlansArgs]) error {
	return w.planner.Expire(ctx)
}

// lostPlansSQL makes the plans that nobody works on available again, see [lostSQL]. Unlike
// a refresh, a plan may be made twice at a time: every run writes the same pages.
const lostPlansSQL = `
UPDATE river_job j
   SET state = 'available', scheduled_at = clock_timestamp()
 WHERE j.state = 'running' AND j.kind = 'scan_plan'
   AND CASE WHEN j.attempted_by[array_upper(j.attempted_by, 1)] = $1
            THEN j.attempted_at < clock_timestamp() - $2::interval AND NOT j.id = ANY($3::bigint[])
            ELSE NOT EXISTS (` + aliveSQL + `) END`

// takeOverPlans gives the plans of processes that are gone to those that are not.
func (r *rescuer) takeOverPlans(ctx context.Context) error {
	_, err := r.pool.Exec(ctx, lostPlansSQL, r.process, r.silentAfter, r.flights.ids())
	return err
}
