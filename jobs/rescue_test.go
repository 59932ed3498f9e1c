package jobs_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/catalogd/catalogd/catalog"
	"github.com/catalogd/catalogd/jobs"
	"github.com/catalogd/catalogd/mv"
)

// neverBeats is a process whose heartbeat stops after the first one, as if it hung.
func neverBeats(c *jobs.Config) {
	hourly(c)
	c.BeatEvery, c.SilentAfter = time.Hour, 3*time.Hour
}

// A process hangs in the middle of a run. Another one takes its job over, and what the
// first one comes back with changes nothing, above all not the job of the second.
func TestClient_silentProcessIsReplacedAndFenced(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	hanging, release := make(chan struct{}), make(chan struct{})
	zombie := newEngine(w)
	zombie.during = func(context.Context, string, int) error {
		close(hanging)
		<-release
		return nil
	}
	successor := newEngine(w)
	working, goOn := make(chan struct{}), make(chan struct{})
	successor.during = func(ctx context.Context, _ string, run int) error {
		if run > 1 {
			return nil
		}
		close(working)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-goOn:
			return nil
		}
	}
	w.tables("t")
	id := w.view("v", 0, "t")
	first := w.start(zombie, func(c *jobs.Config) {
		neverBeats(c)
		c.Workers, c.Slots = 1, 1 // it fetches nothing while it hangs
	})
	<-hanging
	w.exec(`UPDATE process_heartbeat SET seen_at = seen_at - interval '1 minute' WHERE process_id = $1`, first.Process())
	w.start(successor, nil)
	<-working

	close(release)
	w.eventually("the zombie's run has ended", func() bool {
		zombie.mu.Lock()
		defer zombie.mu.Unlock()
		return zombie.active[id] == 0
	})
	w.stop(first) // returns after its worker has tried to finish
	running := `SELECT count(*) FROM river_job WHERE state = 'running' AND kind = 'mv_refresh'`
	if n := query[int](w, running); n != 1 {
		t.Fatalf("running jobs = %d, want the successor's", n)
	}
	if query[bool](w, `SELECT stale_since IS NULL FROM materialized_view`) {
		t.Error("the zombie marked the view as fresh")
	}
	runs, err := w.reg.Refreshes(t.Context(), id, 10)
	w.check(err)
	if len(runs) != 2 || runs[0].Status != mv.RefreshRunning || runs[1].Status != mv.RefreshLost {
		t.Errorf("history = %+v, want a running and a lost run", runs)
	}
	close(goOn)
	w.eventually("the successor's run counts", func() bool { return w.settled(id) })
	if n := query[int](w, `SELECT count(*) FROM process_heartbeat WHERE process_id = $1`, first.Process()); n != 0 {
		t.Error("the silent process still has a heartbeat")
	}
}

// A process that is gone without a trace: its heartbeat row is missing altogether.
func TestClient_jobOfUnknownProcessIsReplaced(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := newEngine(w)
	w.tables("t")
	id := w.view("v", 0, "t")
	w.exec(`UPDATE river_job SET state = 'running', attempt = 1, attempted_at = now(), attempted_by = '{6f1d3a52-9d55-4f5e-8ac5-1f2d5a0f4f10}'`)
	w.start(e, nil)
	w.eventually("another process refreshes it", func() bool { return w.settled(id) })
}

// The job of a dropped view is finalized and not replaced.
func TestClient_jobOfDroppedViewIsNotReplaced(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.tables("t")
	w.view("v", 0, "t")
	w.exec(`UPDATE river_job SET state = 'running', attempt = 1, attempted_at = now(), attempted_by = '{6f1d3a52-9d55-4f5e-8ac5-1f2d5a0f4f10}'`)
	w.exec(`DELETE FROM materialized_view`)
	w.start(newEngine(w), nil)
	if n := query[int](w, `SELECT count(*) FROM river_job WHERE kind = 'mv_refresh' AND state <> 'discarded'`); n != 0 {
		t.Errorf("%d refresh jobs of a dropped view", n)
	}
}

// The answer to River's fetch can be lost: the job then runs nowhere, in a process that is
// well.
func TestClient_strandedJobOfItsOwnIsReplaced(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := newEngine(w)
	w.tables("t")
	c := w.start(e, func(c *jobs.Config) { c.PollEvery = time.Hour })
	id := w.view("v", 0, "t")
	w.exec(`UPDATE river_job SET state = 'running', attempt = 1, attempted_at = now() - interval '1 minute', attempted_by = ARRAY[$1]`, c.Process())
	w.start(e, func(c *jobs.Config) { c.RescueEvery = time.Hour })
	w.eventually("the job is replaced and runs", func() bool { return w.settled(id) })
}

// Stopping is no failure: the job is there for another process at once.
func TestClient_stopGivesJobsBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	running := make(chan struct{})
	stopped := newEngine(w)
	stopped.during = func(ctx context.Context, _ string, _ int) error {
		close(running)
		<-ctx.Done()
		return ctx.Err()
	}
	w.tables("t")
	id := w.view("v", 0, "t")
	first := w.start(stopped, hourly)
	<-running
	w.stop(first)
	if n := query[int](w, `SELECT count(*) FROM river_job WHERE state = 'available' AND kind = 'mv_refresh'`); n != 1 {
		t.Errorf("available jobs = %d after the stop, want 1", n)
	}
	if n := query[int](w, `SELECT failures FROM materialized_view`); n != 0 {
		t.Errorf("failures = %d after a stop", n)
	}
	if n := query[int](w, `SELECT count(*) FROM process_heartbeat`); n != 0 {
		t.Errorf("heartbeats = %d after the stop", n)
	}
	w.start(newEngine(w), hourly)
	w.eventually("another process goes on", func() bool { return w.settled(id) })
}

// A process that comes back to the place of its predecessor need not wait for its silence.
func TestClient_sameInstanceTakesOverAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.tables("t")
	id := w.view("v", 0, "t")
	old := "6f1d3a52-9d55-4f5e-8ac5-1f2d5a0f4f10"
	w.exec(`INSERT INTO process_heartbeat (process_id, instance) VALUES ($1, '/data/here')`, old)
	w.exec(`UPDATE river_job SET state = 'running', attempt = 1, attempted_at = now(), attempted_by = ARRAY[$1]`, old)
	w.start(newEngine(w), func(c *jobs.Config) {
		hourly(c)
		c.SilentAfter, c.Instance = time.Hour, "/data/here"
	})
	w.eventually("the job runs", func() bool { return w.settled(id) })
}

// Only documents that are neither current nor recent go.
func TestPrune_keepsCurrentAndRecentDocuments(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.tables("t", "quiet")
	for range 30 {
		w.check(w.swap(t.Context(), "t"))
	}
	// The current document may be an old one, after a rollback by another catalog client.
	w.exec(`UPDATE metadata_document SET created_at = created_at - interval '1 day' WHERE metadata_location =
		(SELECT metadata_location FROM iceberg_tables WHERE table_name = 't')`)
	w.start(newEngine(w), nil)
	count := `SELECT count(*) FROM metadata_document d JOIN iceberg_tables t USING (object_uuid) WHERE table_name = $1`
	w.eventually("old documents are gone", func() bool { return query[int](w, count, "t") == 12 })
	if n := query[int](w, count, "quiet"); n != 1 {
		t.Errorf("documents of a table without commits = %d, want 1", n)
	}
	kept := query[bool](w, `SELECT EXISTS (SELECT FROM metadata_document JOIN iceberg_tables USING (metadata_location) WHERE table_name = 't')`)
	if !kept {
		t.Error("the current document is gone")
	}
}

// Receipts go when no client repeats its request any more, and not before.
func TestPrune_keepsReceiptsForTheAnnouncedTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	insert := func(key string, age time.Duration) {
		w.exec(`INSERT INTO idempotency_record (catalog_name, idempotency_key, request_digest, created_at)
			VALUES ('main', '` + key + `', '', clock_timestamp() - interval '` + strconv.Itoa(int(age.Seconds())) + ` seconds')`)
	}
	insert("0197d1c2-4a10-7c3d-8e21-5a6b7c8d9e0f", catalog.ReceiptLifetime)
	insert("0197d1c2-4a10-7c3d-8e21-5a6b7c8d9e10", 3*catalog.ReceiptLifetime)
	w.start(newEngine(w), nil)
	left := func() []string {
		return query[[]string](w, `SELECT coalesce(array_agg(idempotency_key::text), '{}') FROM idempotency_record`)
	}
	w.eventually("the old receipt is gone", func() bool { return len(left()) == 1 })
	if got := left()[0]; got != "0197d1c2-4a10-7c3d-8e21-5a6b7c8d9e0f" {
		t.Errorf("kept %s", got)
	}
}
