package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"golang.org/x/sync/semaphore"
)

// Config is what a [Client] needs. Pool, Ledger and Runner are required.
type Config struct {
	Pool   *pgxpool.Pool
	Log    *slog.Logger
	Ledger Ledger
	Runner Runner
	// Cleaner removes files that storage tables need no more; nil leaves them all.
	Cleaner Cleaner
	// Dropped and Purger take care of dropped objects; nil keeps them all for ever.
	Dropped Dropped
	Purger  Purger
	// Obsolete deletes metadata files that tables have outgrown; nil leaves them all.
	Obsolete Obsolete
	// Reports deletes old metrics reports; nil leaves them all.
	Reports Reports
	// Planner makes the plans of large scans; nil leaves them to other processes.
	Planner Planner
	// Slots is how many refreshes run at a time in this process; 2 if zero.
	Slots int
	// Workers is how many jobs may wait for their time or for a slot; 50 if zero.
	Workers int
	// StallAfter is how long a run may go without progress; 10 minutes if zero.
	StallAfter time.Duration
	// Instance names a place that only one process can hold at a time, for example a data
	// directory. A process that starts there takes over from its predecessor at once,
	// without waiting for it to fall silent. Empty: no such place.
	Instance string
	// The rhythm of the background work; zero means the default that is given.
	BeatEvery   time.Duration // 5 s
	SilentAfter time.Duration // 20 s: a process without a heartbeat for so long is gone
	RescueEvery time.Duration // 10 s
	SweepEvery  time.Duration // 5 s
	PollEvery   time.Duration // 200 ms: how soon a job is seen that nothing announced
	// MaintainEvery is how soon a maintenance job is seen; 10 s if zero.
	MaintainEvery time.Duration
	// ExpireEvery is how often dropped objects and outgrown files are looked for; 30 s if
	// zero.
	ExpireEvery time.Duration
}

func (c Config) withDefaults() Config {
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	def(&c.StallAfter, 10*time.Minute)
	def(&c.BeatEvery, 5*time.Second)
	def(&c.SilentAfter, 20*time.Second)
	def(&c.RescueEvery, 10*time.Second)
	def(&c.SweepEvery, 5*time.Second)
	def(&c.PollEvery, 200*time.Millisecond)
	def(&c.MaintainEvery, 10*time.Second)
	def(&c.ExpireEvery, 30*time.Second)
	if c.Slots == 0 {
		c.Slots = 2
	}
	if c.Workers == 0 {
		c.Workers = 50
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

func (c Config) validate() error {
	var errs []error
	if c.Pool == nil || c.Ledger == nil || c.Runner == nil {
		errs = append(errs, errors.New("jobs: Pool, Ledger and Runner must be set"))
	}
	if c.Slots < 1 || c.Workers < c.Slots {
		errs = append(errs, fmt.Errorf("jobs: %d slots and %d workers: want at least one slot and no fewer workers than slots", c.Slots, c.Workers))
	}
	if c.SilentAfter < 2*c.BeatEvery {
		errs = append(errs, fmt.Errorf("jobs: a process that beats every %s would count as silent after %s", c.BeatEvery, c.SilentAfter))
	}
	return errors.Join(errs...)
}

// Client works the jobs of a process.
type Client struct {
	cfg     Config
	process string
	river   *river.Client[pgx.Tx]
	rescuer *rescuer
	nudge   *broadcast
	sweep   chan struct{}

	cancel  context.CancelFunc
	running sync.WaitGroup
}

// New returns a Client that has not started.
func New(cfg Config) (*Client, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	c := &Client{cfg: cfg, process: uuid.NewString(), nudge: newBroadcast(), sweep: make(chan struct{}, 1)}
	flying := newFlights()
	workers := river.NewWorkers()
	river.AddWorker(workers, &RefreshWorker{
		pool: cfg.Pool, log: cfg.Log, ledger: cfg.Ledger, runner: cfg.Runner, process: c.process,
		slots: semaphore.NewWeighted(int64(cfg.Slots)), stallAfter: cfg.StallAfter, flights: flying, nudge: c.nudge,
	})
	river.AddWorker(workers, &PruneWorker{pool: cfg.Pool})
	periodic := []*river.PeriodicJob{river.NewPeriodicJob(river.PeriodicInterval(pruneEvery),
		func() (river.JobArgs, *river.InsertOpts) { return PruneArgs{}, nil }, &river.PeriodicJobOpts{RunOnStart: true})}
	if cfg.Cleaner != nil {
		periodic = append(periodic, addCleanup(workers, cfg))
	}
	if cfg.Dropped != nil && cfg.Purger != nil {
		periodic = append(periodic, addPurge(workers, cfg))
	}
	if cfg.Obsolete != nil {
		periodic = append(periodic, addMetadataCleanup(workers, cfg))
	}
	if cfg.Planner != nil {
		periodic = append(periodic, addPlanning(workers, cfg.Planner, flying))
	}
	if cfg.Reports != nil {
		periodic = append(periodic, addReportPruning(workers, cfg))
	}
	var err error
	c.river, err = river.NewClient(riverpgxv5.New(cfg.Pool), &river.Config{
		ID:           c.process,
		Logger:       quiet(cfg.Log),
		Workers:      workers,
		Queues:       cfg.queues(),
		PeriodicJobs: periodic,
		// The history of refreshes is ours; a finished job is of no use.
		CompletedJobRetentionPeriod: 10 * time.Minute,
		DiscardedJobRetentionPeriod: time.Hour,
		CancelledJobRetentionPeriod: time.Hour,
	})
	if err != nil {
		return nil, fmt.Errorf("jobs: %w", err)
	}
	c.rescuer = &rescuer{
		pool: cfg.Pool, log: cfg.Log, ledger: cfg.Ledger, river: c.river, process: c.process,
		silentAfter: cfg.SilentAfter, flights: flying,
	}
	return c, nil
}

// queues are what this process works on, and how soon it sees a job.
func (c Config) queues() map[string]river.QueueConfig {
	soon := func(workers int) river.QueueConfig {
		return river.QueueConfig{MaxWorkers: workers, FetchPollInterval: c.PollEvery, FetchCooldown: min(c.PollEvery, 50*time.Millisecond)}
	}
	queues := map[string]river.QueueConfig{
		refreshQueue: soon(c.Workers),
		// A cleanup may take minutes, which must not keep the others waiting.
		maintenanceQueue: {MaxWorkers: 2, FetchPollInterval: c.MaintainEvery},
		purgeQueue:       {MaxWorkers: 2, FetchPollInterval: c.MaintainEvery},
	}
	if c.Planner != nil {
		queues[planQueue] = soon(2)
	}
	return queues
}

// Process is the id of this process in heartbeats and job rows.
func (c *Client) Process() string { return c.process }

// Start announces the process, takes over what earlier ones left, and begins to work. It
// returns when that is under way; ctx bounds the start alone. End it with [Client.Stop].
func (c *Client) Start(ctx context.Context) error {
	if err := c.announce(ctx); err != nil {
		return fmt.Errorf("jobs: announce process: %w", err)
	}
	if err := c.rescuer.pass(ctx); err != nil {
		return fmt.Errorf("jobs: take over lost jobs: %w", err)
	}
	if err := c.enqueueOverdue(ctx); err != nil {
		return fmt.Errorf("jobs: look for overdue views: %w", err)
	}
	// The work outlives the call that starts it: only Stop ends it, in its own order.
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	if err := c.river.Start(work); err != nil {
		cancel()
		return fmt.Errorf("jobs: %w", err)
	}
	c.cancel = cancel
	c.every(work, c.cfg.BeatEvery, nil, "heartbeat", c.beat)
	c.every(work, c.cfg.RescueEvery, nil, "rescue", c.rescuer.pass)
	c.every(work, c.cfg.SweepEvery, c.sweep, "sweep", c.enqueueOverdue)
	return nil
}

// Stop cancels what runs, gives the jobs back and removes the heartbeat, so that another
// process goes on at once. What does not end until ctx is done is left behind: its job
// is given back all the same, and its result will not count.
func (c *Client) Stop(ctx context.Context) error {
	if c.cancel == nil {
		return nil
	}
	err := c.river.StopAndCancel(ctx)
	c.cancel()
	c.running.Wait()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	err = errors.Join(err, c.rescuer.release(ctx))
	_, gone := c.cfg.Pool.Exec(ctx, `DELETE FROM process_heartbeat WHERE process_id = $1`, c.process)
	return errors.Join(err, gone)
}

// Wake makes waiting jobs look again and views without a job get one, now instead of in a
// few seconds.
func (c *Client) Wake() {
	c.nudge.fire()
	select {
	case c.sweep <- struct{}{}:
	default:
	}
}

// every runs fn in a rhythm, and when it is asked to, until ctx is done.
func (c *Client) every(ctx context.Context, interval time.Duration, asked <-chan struct{}, what string, fn func(context.Context) error) {
	c.running.Go(func() {
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			case <-asked:
			}
			if err := fn(ctx); err != nil && ctx.Err() == nil {
				c.cfg.Log.WarnContext(ctx, "background work failed", slog.String("work", what), slog.Any("error", err))
			}
		}
	})
}

// announce writes the first heartbeat, before any job can be fetched, and removes those
// of earlier processes of the same instance.
func (c *Client) announce(ctx context.Context) error {
	if c.cfg.Instance != "" {
		_, err := c.cfg.Pool.Exec(ctx, `DELETE FROM process_heartbeat WHERE instance = $1 AND process_id <> $2`, c.cfg.Instance, c.process)
		if err != nil {
			return err
		}
	}
	return c.beat(ctx)
}

func (c *Client) beat(ctx context.Context) error {
	_, err := c.cfg.Pool.Exec(ctx, `INSERT INTO process_heartbeat (process_id, instance) VALUES ($1, $2)
		ON CONFLICT (process_id) DO UPDATE SET seen_at = clock_timestamp()`, c.process, c.cfg.Instance)
	return err
}

// enqueueOverdue inserts the jobs that are missing. Each has its own transaction: none
// holds a job's row while it waits for another's.
func (c *Client) enqueueOverdue(ctx context.Context) error {
	views, err := c.cfg.Ledger.Overdue(ctx)
	if err != nil {
		return err
	}
	for _, id := range views {
		_, err = c.river.Insert(ctx, RefreshArgs{ViewID: id}, nil)
		if err != nil {
			return err
		}
	}
	return nil
}
