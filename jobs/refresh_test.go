package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/catalogd/catalogd/catalog"
	"github.com/catalogd/catalogd/jobs"
	"github.com/catalogd/catalogd/mv"
)

func hourly(c *jobs.Config) { c.SweepEvery, c.RescueEvery = time.Hour, time.Hour }

func TestClient_refreshesAfterCommit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := newEngine(w)
	w.tables("t")
	id := w.view("v", 0, "t")
	w.start(e, hourly)
	w.eventually("first refresh", func() bool { return w.settled(id) })
	w.check(w.swap(t.Context(), "t"))
	w.eventually("refresh after the commit", func() bool { return w.settled(id) && e.count(id) == 2 })
	w.check(e.reflects(id))
	runs, err := w.reg.Refreshes(t.Context(), id, 10)
	w.check(err)
	if len(runs) != 2 || runs[0].Status != mv.RefreshSucceeded || runs[0].Ended.IsZero() {
		t.Errorf("history = %+v, want two ended successes", runs)
	}
}

// The commit's hook inserts nothing while the job runs. Without a sweeper, only the end of
// the run can bring about the second one.
func TestClient_commitDuringRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := newEngine(w)
	e.during = func(ctx context.Context, _ string, run int) error {
		if run == 1 {
			return w.swap(ctx, "t")
		}
		return nil
	}
	w.tables("t")
	id := w.view("v", 0, "t")
	w.start(e, hourly)
	w.eventually("second run", func() bool { return w.settled(id) })
	if n := e.count(id); n != 2 {
		t.Errorf("runs = %d, want 2", n)
	}
	w.check(e.reflects(id))
}

// A burst of commits within the debounce makes one run, and the debounce is not put off
// by each of them.
func TestClient_debounceCoalesces(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := newEngine(w)
	w.tables("t")
	id := w.view("v", 0, "t")
	w.start(e, hourly)
	w.eventually("first refresh", func() bool { return w.settled(id) })
	w.exec(`UPDATE materialized_view SET debounce_ms = 4000`)
	for range 10 {
		w.check(w.swap(t.Context(), "t"))
	}
	due := query[time.Time](w, `SELECT not_before FROM materialized_view`)
	w.eventually("refresh after the burst", func() bool { return w.settled(id) })
	runs, err := w.reg.Refreshes(t.Context(), id, 10)
	w.check(err)
	if len(runs) != 2 {
		t.Errorf("10 commits made %d runs, want 1", len(runs)-1)
	}
	if runs[0].Started.Before(due) {
		t.Errorf("the run started at %s, before its debounce was over at %s", runs[0].Started, due)
	}
	w.check(e.reflects(id))
}

// A short delay is waited for by the job's own worker: no sweeper has to come by.
func TestClient_shortTimerNeedsNoSweeper(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := newEngine(w)
	failed := make(chan struct{})
	e.during = func(_ context.Context, _ string, run int) error {
		if run == 1 {
			close(failed)
			return errors.New("once")
		}
		return nil
	}
	w.tables("t")
	id := w.view("v", 0, "t")
	w.start(e, hourly)
	<-failed
	w.eventually("the run after the first backoff of 4 to 5 seconds", func() bool { return w.settled(id) })
	if n := e.count(id); n != 2 {
		t.Errorf("runs = %d, want 2", n)
	}
}

// A longer delay is the sweeper's business: no job may live meanwhile.
func TestClient_sweeperEndsBackoff(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := newEngine(w)
	w.tables("t")
	id := w.view("v", 0, "t")
	w.exec(`UPDATE materialized_view SET not_before = clock_timestamp() + interval '1 hour'`)
	w.start(e, nil)
	w.eventually("the job ends without a run", func() bool {
		return query[int](w, `SELECT count(*) FROM river_job WHERE kind = 'mv_refresh' AND state <> 'completed'`) == 0
	})
	if n := e.count(id); n != 0 {
		t.Fatalf("runs = %d during the backoff", n)
	}
	w.exec(`UPDATE materialized_view SET not_before = clock_timestamp()`)
	w.eventually("the sweeper's run", func() bool { return w.settled(id) })
}

// Jobs can be removed by hand; the sweeper makes up for it.
func TestClient_sweeperReplacesDeletedJob(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := newEngine(w)
	w.tables("t")
	id := w.view("v", 0, "t")
	w.exec(`DELETE FROM river_job`)
	w.start(e, nil)
	w.eventually("a refresh", func() bool { return w.settled(id) })
}

func TestClient_suspendsAfterFiveFailures(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := newEngine(w)
	e.during = func(_ context.Context, _ string, run int) error {
		if run == 2 {
			panic("in the middle of it")
		}
		if run < 7 {
			return catalog.Errorf(catalog.KindUnavailable, "failure %d", run)
		}
		return nil
	}
	w.tables("t")
	id := w.view("v", 0, "t")
	w.start(e, nil)
	w.eventually("five failures", func() bool {
		w.exec(`UPDATE materialized_view SET not_before = NULL`) // no need to sit out the backoffs
		return query[bool](w, `SELECT suspended FROM materialized_view`)
	})
	w.check(w.swap(t.Context(), "t"))
	if n := e.count(id); n != 5 {
		t.Errorf("runs = %d, want 5", n)
	}
	if got := query[string](w, `SELECT last_error FROM materialized_view`); got != "failure 5" {
		t.Errorf("last error = %q, want %q", got, "failure 5")
	}
	// A request runs a suspended view once.
	generation, err := w.requests.Request(t.Context(), id, false)
	w.check(err)
	w.eventually("the requested run", func() bool {
		runs, err := w.reg.Refreshes(t.Context(), id, 1)
		w.check(err)
		return len(runs) == 1 && runs[0].Generation == generation && runs[0].Status == mv.RefreshFailed
	})
	w.eventually("nothing runs on", func() bool {
		return query[int](w, `SELECT count(*) FROM river_job WHERE state IN ('available', 'running') AND kind = 'mv_refresh'`) == 0
	})
	if n := e.count(id); n != 6 {
		t.Errorf("runs = %d, want 6", n)
	}
	w.check(w.requests.SetSuspended(t.Context(), id, false))
	w.eventually("refresh after the resume", func() bool { return w.settled(id) })
	w.check(e.reflects(id))
}

// Failures must not use River's own retries: a retryable job would swallow wake-ups.
func TestClient_failuresLeaveNoRetryableJob(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := newEngine(w)
	e.during = func(context.Context, string, int) error { return errors.New("always") }
	w.tables("t")
	id := w.view("v", 0, "t")
	w.start(e, nil)
	w.eventually("three failures", func() bool {
		w.exec(`UPDATE materialized_view SET not_before = NULL`)
		return e.count(id) >= 3
	})
	if n := query[int](w, `SELECT count(*) FROM river_job WHERE state IN ('retryable', 'scheduled')`); n != 0 {
		t.Errorf("%d jobs in a state that swallows wake-ups", n)
	}
}

func TestClient_stalledRunIsCancelled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := newEngine(w)
	e.during = func(ctx context.Context, _ string, run int) error {
		if run == 1 {
			<-ctx.Done()
			return ctx.Err()
		}
		return nil
	}
	w.tables("t")
	id := w.view("v", 0, "t")
	w.start(e, func(c *jobs.Config) { c.StallAfter = 300 * time.Millisecond })
	w.eventually("a recorded failure", func() bool {
		runs, err := w.reg.Refreshes(t.Context(), id, 1)
		w.check(err)
		return len(runs) == 1 && runs[0].Status == mv.RefreshFailed && runs[0].Error != ""
	})
}

// Progress keeps a run alive for as long as it takes.
func TestClient_runWithProgressIsNotCancelled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := newEngine(w)
	e.during = func(ctx context.Context, viewUUID string, _ int) error {
		s, err := w.reg.State(ctx, viewUUID)
		if err != nil {
			return err
		}
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for i := range 60 {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-tick.C:
			}
			if err := w.reg.Report(ctx, s.Views[viewUUID].Running.ID, float64(i)); err != nil {
				return err
			}
		}
		return nil
	}
	w.tables("t")
	id := w.view("v", 0, "t")
	w.start(e, func(c *jobs.Config) { c.StallAfter = 2 * time.Second })
	w.eventually("the run ends", func() bool { return w.settled(id) })
	if n := e.count(id); n != 1 {
		t.Errorf("runs = %d, want 1", n)
	}
}

// No more runs than slots at a time, however many jobs wait.
func TestClient_slotsBoundRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := newEngine(w)
	release := make(chan struct{})
	var running, most atomic.Int64
	e.during = func(ctx context.Context, _ string, _ int) error {
		now := running.Add(1)
		defer running.Add(-1)
		for seen := most.Load(); now > seen && !most.CompareAndSwap(seen, now); seen = most.Load() {
		}
		select {
		case <-ctx.Done():
		case <-release:
		}
		return ctx.Err()
	}
	w.tables("t")
	var ids []string
	for i := range 6 {
		ids = append(ids, w.view(fmt.Sprintf("v%d", i), 0, "t"))
	}
	w.start(e, func(c *jobs.Config) { c.Slots = 3 })
	w.eventually("every job has a worker, three have a slot", func() bool {
		return running.Load() == 3 && query[int](w, `SELECT count(*) FROM river_job WHERE state = 'running' AND kind = 'mv_refresh'`) == 6
	})
	s, err := w.reg.All(t.Context(), warehouse)
	w.check(err)
	states := map[mv.JobState]int{}
	for _, v := range s.Views {
		states[v.Job]++
	}
	if states[mv.JobRunning] != 3 || states[mv.JobQueued] != 3 {
		t.Errorf("job states = %v, want three running and three queued", states)
	}
	close(release)
	for _, id := range ids {
		w.eventually("all views refreshed", func() bool { return w.settled(id) })
	}
	if most.Load() != 3 {
		t.Errorf("most runs at a time = %d, want 3", most.Load())
	}
}

// Two processes on one database, a diamond of views, and commits from all sides: nothing
// runs twice at once, and in the end every view reflects what is there.
func TestClient_twoProcessesRandomCommits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := newEngine(w)
	w.tables("t0", "t1", "t2")
	ids := []string{
		w.view("u", 0, "t0", "t1"),
		w.view("x", 20*time.Millisecond, "t1"),
		w.view("d", 0, "u", "u__storage", "x", "x__storage", "t2"),
		w.view("e", 50*time.Millisecond, "d", "d__storage", "t0"),
	}
	w.start(e, hourly)
	w.start(e, hourly)
	var committers sync.WaitGroup
	errs := make([]error, 2)
	for i := range errs {
		committers.Go(func() {
			random := rand.New(rand.NewPCG(uint64(i), 7))
			for n := range 100 {
				order := random.Perm(3)
				names := []string{fmt.Sprintf("t%d", order[0])}
				if n%10 == 0 { // in any order, so that commits and ends of runs can deadlock
					names = append(names, fmt.Sprintf("t%d", order[1]))
				}
				if errs[i] = w.swap(t.Context(), names...); errs[i] != nil {
					return
				}
			}
		})
	}
	committers.Wait()
	w.check(errors.Join(errs...))
	for _, id := range ids {
		w.eventually("every view is fresh", func() bool { return w.settled(id) })
	}
	// d and e may have been woken once more by the last ends above.
	for _, id := range ids {
		w.eventually("every view stays fresh", func() bool { return w.settled(id) && e.reflects(id) == nil })
	}
	if e.overlaps > 0 {
		t.Errorf("%d runs overlapped another one of their view", e.overlaps)
	}
	t.Logf("runs: u %d, x %d, d %d, e %d", e.count(ids[0]), e.count(ids[1]), e.count(ids[2]), e.count(ids[3]))
}

// River's unique key, as the registry's SQL spells it, is that of the job that River
// inserts: else a live job would never be seen.
func TestEnqueuer_uniqueKeyIsAsTheRegistrySpellsIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.tables("t")
	id := w.view("v", 0, "t")
	s, err := w.reg.State(t.Context(), id)
	w.check(err)
	if got := s.Views[id].Job; got != mv.JobQueued {
		t.Errorf("job = %q although one was inserted", got)
	}
	w.check(pgx.BeginFunc(t.Context(), w.pool, func(tx pgx.Tx) error { return w.queue.Enqueue(t.Context(), tx, []string{id, id}) }))
	if n := query[int](w, `SELECT count(*) FROM river_job`); n != 1 {
		t.Errorf("jobs = %d, want the one that was there", n)
	}
	if n := query[int](w, `SELECT count(*) FROM river_job WHERE state = 'available' AND queue = 'mv_refresh'`); n != 1 {
		t.Errorf("available jobs = %d, want 1", n)
	}
}
