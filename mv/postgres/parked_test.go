package postgres_test

import (
	"slices"
	"testing"

	"github.com/catalogd/catalogd/catalog"
	"github.com/catalogd/catalogd/mv"
)

// below makes a chain: d reads u, u reads t; both are fresh.
func below(t *testing.T) (w *world, u, d string) {
	t.Helper()
	w = newWorld(t)
	w.tables("t")
	u = w.freshView("u", "t")
	d = w.freshView("d", "u", "u__storage")
	return w, u, d
}

// parkedBehind makes d wait for u, which runs.
func parkedBehind(t *testing.T) (w *world, u, d string, uJob, dJob int64) {
	t.Helper()
	w, u, d = below(t)
	w.swap("t")
	uJob = w.fetch(u)
	w.swap("u__storage") // u has published; its job has not ended yet
	w.want(d, true, 1)
	return w, u, d, uJob, w.fetch(d)
}

func TestFinish_parkedIsWokenByItsSource(t *testing.T) {
	t.Parallel()
	w, u, d, uJob, dJob := parkedBehind(t)
	if again, _ := w.finish(dJob, w.attempt(d, mv.OutcomeParked)); again {
		t.Fatal("again = true: it would spin until its source is done")
	}
	w.want(d, true, 0)
	w.swap("u__storage") // one more publication: its end is what counts
	w.want(d, true, 0)
	if got := w.overdue(); got != "" {
		t.Errorf("overdue = %q while it waits", got)
	}
	// u ends without any change to its rows: no commit's hook would wake d.
	_, wake := w.finish(uJob, w.attempt(u, mv.OutcomeDone))
	if !slices.Equal(wake, []string{d}) {
		t.Errorf("wake = %v, want %s", wake, d)
	}
	w.want(d, true, 1)
}

// The source ends after the run decided to park and before that is written.
func TestFinish_parkedAfterItsSourceEnded(t *testing.T) {
	t.Parallel()
	w, u, d, uJob, dJob := parkedBehind(t)
	a := w.attempt(d, mv.OutcomeParked)
	w.finish(uJob, w.attempt(u, mv.OutcomeDone))
	if again, _ := w.finish(dJob, a); !again {
		t.Error("again = false: nobody wakes it any more")
	}
	w.want(d, true, 1)
}

// Both ends at once: the source's waits for the parking, and then finds it.
func TestFinish_parkedWhileItsSourceEnds(t *testing.T) {
	t.Parallel()
	w, u, d, uJob, dJob := parkedBehind(t)
	tx := w.begin()
	again, _, err := w.end(t.Context(), tx, dJob, w.attempt(d, mv.OutcomeParked))
	w.check(err)
	if again {
		t.Fatal("again = true while the source runs")
	}
	done := w.finishAside(uJob, w.attempt(u, mv.OutcomeDone))
	w.waitBlocked()
	w.check(tx.Commit(t.Context()))
	if e := <-done; e.err != nil || !slices.Equal(e.wake, []string{d}) {
		t.Errorf("finish = %+v, want to wake %s", e, d)
	}
	w.want(d, true, 1)
}

func TestFinish_parkedIsWokenWhenItsSourceIsDropped(t *testing.T) {
	t.Parallel()
	w, _, d, _, dJob := parkedBehind(t)
	w.finish(dJob, w.attempt(d, mv.OutcomeParked))
	w.commit(catalog.Change{Op: catalog.OpDrop, Pointer: w.pointer("u")})
	w.want(d, true, 1)
}

// A source that ends without becoming fresh keeps its readers waiting.
func TestFinish_parkedStaysBehindAFailedSource(t *testing.T) {
	t.Parallel()
	w, u, d, uJob, dJob := parkedBehind(t)
	w.finish(dJob, w.attempt(d, mv.OutcomeParked))
	if _, wake := w.finish(uJob, w.attempt(u, mv.OutcomeFailed)); len(wake) > 0 {
		t.Errorf("wake = %v behind a stale source", wake)
	}
	w.want(d, true, 0)
}
