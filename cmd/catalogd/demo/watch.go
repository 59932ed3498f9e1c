package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/catalogd/catalogd/api/mvrest"
	"github.com/catalogd/catalogd/cmd/catalogd/client"
)

// Words of the API that the demo looks for.
const (
	succeeded = "succeeded"
	running   = "running"
	bucketed  = "buckets"
	noJob     = "none"
)

const (
	// lookEvery is the time between two looks at the views.
	lookEvery = 500 * time.Millisecond
	// history is how many runs of a view are looked through: the most that the API lists.
	history = 1000
	// stillWaiting is the time between two lines that say what is waited for.
	stillWaiting = 10 * time.Second
)

// watcher asks the API how the views do, as any program could.
type watcher struct {
	client *client.Client
	board  *board
	seen   map[string]bool                // ids of runs that ended
	runs   map[string][]mvrest.RefreshRun // by view, in the order in which they ended
}

func newWatcher(c *client.Client, b *board) *watcher {
	return &watcher{client: c, board: b, seen: map[string]bool{}, runs: map[string][]mvrest.RefreshRun{}}
}

// follow looks until ctx ends. Its errors are not reported: the next look comes soon, and
// the last one is the caller's.
func (w *watcher) follow(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			_, _ = w.look(ctx)
		}
	}
}

// look shows the state of all views and the runs that ended since the last look.
func (w *watcher) look(ctx context.Context) ([]mvrest.MaterializedView, error) {
	all, err := w.client.List(ctx)
	if err != nil {
		return nil, err
	}
	for _, v := range all {
		if v.LastRefresh == nil || w.seen[v.LastRefresh.ID] {
			continue
		}
		if err := w.collect(ctx, client.ViewName{Namespace: v.View.Namespace, Name: v.View.Name}); err != nil {
			return nil, err
		}
	}
	w.board.show(all)
	return all, nil
}

// collect takes the runs of a view that were not seen yet, the oldest first.
func (w *watcher) collect(ctx context.Context, name client.ViewName) error {
	runs, err := w.client.Refreshes(ctx, name, history)
	if err != nil {
		return err
	}
	for _, run := range slices.Backward(runs) {
		if run.Status == running || w.seen[run.ID] {
			continue
		}
		w.seen[run.ID] = true
		w.runs[name.String()] = append(w.runs[name.String()], run)
		w.board.refreshed(name.String(), run)
	}
	return nil
}

// settle waits until every view is up to date and nothing is left to do. A view that
// catalogd has given up on ends the wait.
func (w *watcher) settle(ctx context.Context) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	said := time.Now()
	for {
		all, err := w.look(ctx)
		if err != nil {
			return err
		}
		waiting, err := unsettled(all)
		if err != nil || len(waiting) == 0 {
			return err
		}
		if time.Since(said) >= stillWaiting && !w.board.live {
			said = time.Now()
			w.board.say("still waiting for %v", waiting)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// unsettled names the views that are not up to date or have a job.
func unsettled(all []mvrest.MaterializedView) ([]string, error) {
	if len(all) < len(views()) {
		return nil, fmt.Errorf("the catalog lists %d materialized views, want %d", len(all), len(views()))
	}
	var waiting []string
	for _, v := range all {
		if v.Suspended {
			why := ""
			if v.LastError != nil {
				why = ": " + *v.LastError
			}
			return nil, fmt.Errorf("%s is suspended after %d failures%s", dotted(v.View), v.Failures, why)
		}
		if !v.Recursive.UpToDate || v.Job != noJob {
			waiting = append(waiting, dotted(v.View))
		}
	}
	return waiting, nil
}

// failures reports every run that did not succeed, also if a later one did.
func (w *watcher) failures() error {
	var failed error
	for _, v := range views() {
		for _, run := range w.runs[v.dotted()] {
			if run.Status != succeeded {
				failed = errors.Join(failed, fmt.Errorf("a refresh of %s %s", v.dotted(), runWords(run, 0)))
			}
		}
	}
	return failed
}
