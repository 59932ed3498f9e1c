package jobs_test

import (
	"context"
	"testing"
	"time"

	"github.com/catalogd/catalogd/catalog"
	"github.com/catalogd/catalogd/mv"
)

func TestRequests_requestDuringRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := newEngine(w)
	var generation int64
	e.during = func(ctx context.Context, viewUUID string, run int) (err error) {
		if run == 1 {
			generation, err = w.requests.Request(ctx, viewUUID, true)
		}
		return err
	}
	w.tables("t")
	id := w.view("v", 0, "t")
	w.start(e, hourly)
	w.eventually("a run that answers the request", func() bool {
		runs, err := w.reg.Refreshes(t.Context(), id, 1)
		w.check(err)
		return len(runs) == 1 && runs[0].Generation == 1 && runs[0].Status == mv.RefreshSucceeded
	})
	if n := e.count(id); n != 2 || generation != 1 {
		t.Errorf("runs = %d, generation = %d, want 2 and 1", n, generation)
	}
}

func TestRequests_unknownView(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, err := w.requests.Request(t.Context(), "0e7b3a52-9d55-4f5e-8ac5-1f2d5a0f4f10", false)
	if catalog.KindOf(err) != catalog.KindNoSuchView {
		t.Errorf("Request = %v, want KindNoSuchView", err)
	}
	err = w.requests.SetSuspended(t.Context(), "0e7b3a52-9d55-4f5e-8ac5-1f2d5a0f4f10", true)
	if catalog.KindOf(err) != catalog.KindNoSuchView {
		t.Errorf("SetSuspended = %v, want KindNoSuchView", err)
	}
}

// A request overrides the backoff that a waiting job sits out.
func TestRequests_cutsAWaitShort(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := newEngine(w)
	w.tables("t")
	id := w.view("v", 0, "t")
	w.exec(`UPDATE materialized_view SET not_before = clock_timestamp() + interval '5500 milliseconds'`)
	w.start(e, hourly)
	w.eventually("the job waits", func() bool {
		return query[int](w, `SELECT count(*) FROM river_job WHERE state = 'running' AND kind = 'mv_refresh'`) == 1
	})
	due := query[time.Time](w, `SELECT not_before FROM materialized_view`)
	_, err := w.requests.Request(t.Context(), id, false)
	w.check(err)
	w.eventually("the requested run", func() bool { return w.settled(id) })
	runs, err := w.reg.Refreshes(t.Context(), id, 1)
	w.check(err)
	if len(runs) != 1 || !runs[0].Started.Before(due) {
		t.Errorf("runs = %+v, want one that started before %s", runs, due)
	}
}
