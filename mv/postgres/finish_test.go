package postgres_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/catalogd/catalogd/catalog"
	"github.com/catalogd/catalogd/mv"
)

func TestFinish_doneWithoutChange(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.tables("t")
	id := w.view("v", "t")
	w.want(id, true, 1)
	if again, wake := w.finish(w.fetch(id), w.attempt(id, mv.OutcomeDone)); again || len(wake) > 0 {
		t.Errorf("again = %t, wake = %v, want an end", again, wake)
	}
	w.want(id, false, 0)
}

// A commit that arrives while the view's job runs finds a live job and inserts none: the
// end of the run has to notice it.
func TestFinish_commitDuringRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.tables("t")
	id := w.freshView("v", "t")
	w.swap("t")
	w.want(id, true, 1)
	job, a := w.fetch(id), w.attempt(id, mv.OutcomeDone)
	w.swap("t")
	w.want(id, true, 1)
	if again, _ := w.finish(job, a); !again {
		t.Error("again = false: the second commit is lost")
	}
	w.want(id, true, 1)
	since := query[time.Time](w, `SELECT stale_since FROM materialized_view WHERE view_uuid = $1`, id)
	if !since.Equal(a.At) {
		t.Errorf("stale since %s, want the moment %s that the run had read", since, a.At)
	}
}

// The commit starts after the comparison and before the end of the run is visible: it
// must wait, and then see a fresh view without a job.
func TestFinish_commitAfterComparison(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.tables("t")
	id := w.freshView("v", "t")
	w.swap("t")
	job, a := w.fetch(id), w.attempt(id, mv.OutcomeDone)
	c := w.swapping("t")

	tx := w.begin()
	again, _, err := w.end(t.Context(), tx, job, a)
	w.check(err)
	if again {
		t.Fatal("again = true before anything changed")
	}
	committed := w.commitAside(c)
	w.waitBlocked()
	w.check(tx.Commit(t.Context()))
	w.check(<-committed)
	w.want(id, true, 1)
}

// The commit has read the live job, but is not visible yet, when the run compares: the
// comparison must wait for it.
func TestFinish_commitBeforeComparison(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.tables("t")
	id := w.freshView("v", "t")
	w.swap("t")
	job, a := w.fetch(id), w.attempt(id, mv.OutcomeDone)

	tx := w.begin()
	w.change(tx, w.swapping("t"))
	done := w.finishAside(job, a)
	w.waitBlocked()
	w.check(tx.Commit(t.Context()))
	if e := <-done; e.err != nil || !e.again {
		t.Errorf("finish = %+v, want again", e)
	}
	w.want(id, true, 1)
}

// A name that the view reads and that was absent has no row to lock.
func TestFinish_absentNameCreatedAfterComparison(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.tables("t")
	id := w.freshView("v", "t", "later")
	w.swap("t")
	job, a := w.fetch(id), w.attempt(id, mv.OutcomeDone)

	tx := w.begin()
	_, _, err := w.end(t.Context(), tx, job, a)
	w.check(err)
	committed := w.commitAside(w.creation("later", catalog.Pointer{}))
	w.waitBlocked()
	w.check(tx.Commit(t.Context()))
	w.check(<-committed)
	w.want(id, true, 1)
}

func TestFinish_absentNameCreatedBeforeComparison(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.tables("t")
	id := w.freshView("v", "t", "later")
	w.swap("t")
	job, a := w.fetch(id), w.attempt(id, mv.OutcomeDone)

	tx := w.begin()
	w.change(tx, w.creation("later", catalog.Pointer{}))
	done := w.finishAside(job, a)
	w.waitBlocked()
	w.check(tx.Commit(t.Context()))
	if e := <-done; e.err != nil || !e.again {
		t.Errorf("finish = %+v, want again", e)
	}
	w.want(id, true, 1)
}

// A table that takes an absent name by renaming is a creation, too.
func TestFinish_absentNameTakenByRename(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.tables("t", "other")
	id := w.freshView("v", "t", "later")
	w.swap("t")
	job, a := w.fetch(id), w.attempt(id, mv.OutcomeDone)

	tx := w.begin()
	_, _, err := w.end(t.Context(), tx, job, a)
	w.check(err)
	committed := w.commitAside(catalog.Change{Op: catalog.OpRename, Pointer: w.pointer("other"), To: ident("later")})
	w.waitBlocked()
	w.check(tx.Commit(t.Context()))
	w.check(<-committed)
	w.want(id, true, 1)
}

func TestFinish_droppedDuringRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.tables("t")
	id := w.freshView("v", "t")
	w.swap("t")
	job, a := w.fetch(id), w.attempt(id, mv.OutcomeDone)
	w.commit(catalog.Change{Op: catalog.OpDrop, Pointer: w.pointer("t")})
	if again, _ := w.finish(job, a); !again {
		t.Error("again = false: the drop is lost")
	}
	w.want(id, true, 1)
}

// The view itself was dropped: its job just ends.
func TestFinish_viewDroppedDuringRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.tables("t")
	id := w.view("v", "t")
	job, a := w.fetch(id), w.attempt(id, mv.OutcomeDone)
	w.commit(catalog.Change{Op: catalog.OpDrop, Pointer: w.pointer("v")}, catalog.Change{Op: catalog.OpDrop, Pointer: w.pointer("v__storage")})
	if again, wake := w.finish(job, a); again || len(wake) > 0 {
		t.Errorf("again = %t, wake = %v for a dropped view", again, wake)
	}
	if n := w.live(id); n != 0 {
		t.Errorf("live jobs = %d of a dropped view", n)
	}
}

// The run read the old definition's names, and none of those has changed.
func TestFinish_definitionReplacedDuringRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.tables("t", "u")
	id := w.view("v", "t")
	job, a := w.fetch(id), w.attempt(id, mv.OutcomeDone)
	w.check(w.reg.SetNames(t.Context(), id, []mv.Key{key("t"), key("u")}))
	if again, _ := w.finish(job, a); !again {
		t.Error("again = false although the run never looked at u")
	}
	w.want(id, true, 1)
}

// After a failure the view has no job: the mark and its time must stand, so that the
// sweeper brings it back, with the commit that arrived during the run.
func TestFinish_failureAndCommit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.tables("t")
	id := w.freshView("v", "t")
	w.swap("t")
	w.exec(`UPDATE materialized_view SET failures = 2`)
	job, a := w.fetch(id), w.attempt(id, mv.OutcomeFailed)
	w.swap("t")
	if again, _ := w.finish(job, a); again {
		t.Error("again = true: a backoff of 20 seconds is not waited for in a worker")
	}
	w.want(id, true, 0)
	w.swap("t") // a commit does not cut the backoff short
	w.want(id, true, 0)
	if got := w.overdue(); got != "" {
		t.Errorf("overdue = %q during the backoff", got)
	}
	w.exec(`UPDATE materialized_view SET not_before = clock_timestamp()`)
	if got := w.overdue(); got != id {
		t.Errorf("overdue = %q after the backoff, want %q", got, id)
	}
}

func TestFinish_backoffAndSuspension(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.tables("t")
	id := w.view("v", "t")
	full := []float64{5, 10, 20, 40, 80} // seconds; a fifth of it is random
	for i := range full {
		if w.live(id) == 0 { // a backoff that no worker waits for
			w.check(pgx.BeginFunc(t.Context(), w.pool, func(tx pgx.Tx) error { return w.queue.Enqueue(t.Context(), tx, []string{id}) }))
		}
		again, _ := w.finish(w.fetch(id), w.attempt(id, mv.OutcomeFailed))
		if want := i == 0; again != want {
			t.Errorf("failure %d: again = %t, want %t", i+1, again, want)
		}
		wait := query[float64](w, `SELECT extract(epoch FROM not_before - clock_timestamp()) FROM materialized_view`)
		if wait > full[i] || wait < full[i]*0.8-2 {
			t.Errorf("failure %d: next run in %.1f s, want about %.0f", i+1, wait, full[i])
		}
		if got, want := query[bool](w, `SELECT suspended FROM materialized_view`), i == 4; got != want {
			t.Errorf("failure %d: suspended = %t, want %t", i+1, got, want)
		}
	}
	w.swap("t")
	w.want(id, true, 0)
	w.exec(`UPDATE materialized_view SET not_before = NULL`)
	if got := w.overdue(); got != "" {
		t.Errorf("overdue = %q for a suspended view", got)
	}
	if got := query[string](w, `SELECT last_error FROM materialized_view`); got != "it broke" {
		t.Errorf("last error = %q", got)
	}
}

func TestFinish_successForgetsFailures(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.tables("t")
	id := w.view("v", "t")
	w.finish(w.fetch(id), w.attempt(id, mv.OutcomeFailed))
	w.finish(w.fetch(id), w.attempt(id, mv.OutcomeDone))
	clean := query[bool](w, `SELECT failures = 0 AND last_error IS NULL AND not_before IS NULL AND NOT suspended FROM materialized_view`)
	if !clean {
		t.Error("a success left something of the failures behind")
	}
	w.want(id, false, 0)
}

// A permanent error holds for its inputs: nothing runs again until one of them changes.
func TestFinish_permanentHoldsUntilInputsChange(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.tables("t")
	id := w.view("v", "t")
	a := w.attempt(id, mv.OutcomePermanent)
	if again, _ := w.finish(w.fetch(id), a); again {
		t.Error("again = true for the same inputs")
	}
	w.want(id, true, 0)
	if got := w.overdue(); got != "" {
		t.Errorf("overdue = %q while held", got)
	}
	s, err := w.reg.State(t.Context(), id)
	w.check(err)
	if got, want := s.Views[id].PermanentInputs, s.InputsOf(id).Digest(); got != want {
		t.Errorf("permanent inputs = %s, want the digest %s of the current ones", got, want)
	}
	w.swap("t")
	w.want(id, true, 1)
	if query[bool](w, `SELECT permanent_inputs IS NOT NULL FROM materialized_view`) {
		t.Error("still held after an input has changed")
	}
}

func TestFinish_permanentAndCommit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.tables("t")
	id := w.view("v", "t")
	job, a := w.fetch(id), w.attempt(id, mv.OutcomePermanent)
	w.swap("t")
	if again, _ := w.finish(job, a); !again {
		t.Error("again = false: the error was about inputs that are gone")
	}
	w.want(id, true, 1)
}

// A request that arrives during a run must not be answered by it.
func TestFinish_requestDuringRun(t *testing.T) {
	t.Parallel()
	for _, outcome := range []mv.Outcome{mv.OutcomeDone, mv.OutcomeFailed, mv.OutcomePermanent, mv.OutcomeHeld} {
		t.Run(string(outcome), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.tables("t")
			id := w.view("v", "t")
			job, a := w.fetch(id), w.attempt(id, outcome)
			w.check(pgx.BeginFunc(t.Context(), w.pool, func(tx pgx.Tx) error {
				_, err := w.reg.Request(t.Context(), tx, id, true)
				return err
			}))
			if again, _ := w.finish(job, a); !again {
				t.Error("again = false: the request is lost")
			}
			if n := w.live(id); n != 1 {
				t.Errorf("live jobs = %d, want 1", n)
			}
			if again, _ := w.finish(w.fetch(id), w.attempt(id, mv.OutcomeDone)); again {
				t.Error("again = true after the request was answered")
			}
		})
	}
}

// The run was told to hold because the view was suspended; it was resumed meanwhile.
func TestFinish_resumedDuringHold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.tables("t")
	id := w.view("v", "t")
	w.exec(`UPDATE materialized_view SET suspended = true`)
	job, a := w.fetch(id), w.attempt(id, mv.OutcomeHeld)
	w.exec(`UPDATE materialized_view SET suspended = false`) // the live job keeps resume from inserting one
	if again, _ := w.finish(job, a); !again {
		t.Error("again = false: the view stays stale without a job")
	}
	w.want(id, true, 1)
}

func TestFinish_historyIsBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.tables("t")
	id := w.view("v", "t")
	w.exec(`INSERT INTO refresh (refresh_id, view_uuid, status, started_at, ended_at)
		SELECT gen_random_uuid(), $1, 'succeeded', now() - n * interval '1 minute', now() FROM generate_series(1, 250) n`, id)
	a := w.attempt(id, mv.OutcomeDone)
	w.finish(w.fetch(id), a)
	if n := query[int](w, `SELECT count(*) FROM refresh`); n != 200 {
		t.Errorf("history = %d runs, want 200", n)
	}
	runs, err := w.reg.Refreshes(t.Context(), id, 1)
	w.check(err)
	if len(runs) != 1 || runs[0].ID != a.Refresh.ID {
		t.Errorf("newest run = %+v, want %s", runs, a.Refresh.ID)
	}
}
