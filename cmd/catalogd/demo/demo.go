// Package demo shows catalogd at work: it replays a year of real flights into a table, one
// commit per day, while materialized views follow, and proves their rows in the end. It is
// a client like any other and knows only the address of the catalog.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/catalogd/catalogd/api/mvrest"
	"github.com/catalogd/catalogd/cmd/catalogd/client"
	"github.com/catalogd/catalogd/cmd/catalogd/lake"
)

// Config is what Run needs.
type Config struct {
	URI       string // of a catalogd without a namespace `demo`
	Warehouse string
	Out       io.Writer
	Live      bool // Out is a terminal: draw on it
	Days      int  // replay only the first ones; 0 is all
}

// demo is one showing.
type demo struct {
	lake    *lake.Client
	client  *client.Client
	board   *board
	watcher *watcher
	prover  *prover
	commits []commit
}

// Run replays, waits, proves and compares. It returns nil only if every row was proven and
// no refresh failed.
func Run(ctx context.Context, cfg Config) error {
	started := time.Now()
	flights, err := readFlights(ctx)
	if err != nil {
		return err
	}
	days := byDay(flights)
	if cfg.Days > 0 && cfg.Days < len(days) {
		days = days[:cfg.Days]
	}
	d := &demo{client: client.New(cfg.URI, cfg.Warehouse), commits: planReplay(days)}
	d.board = newBoard(cfg.Out, cfg.Live, len(d.commits))
	d.watcher = newWatcher(d.client, d.board)
	if d.lake, err = lake.Open(ctx, cfg.URI, cfg.Warehouse); err != nil {
		return err
	}
	d.prover = &prover{lake: d.lake, board: d.board, want: upTo(flights, days)}
	if err := d.replay(ctx, len(days)); err != nil {
		return err
	}
	if err := d.prover.prove(ctx); err != nil {
		return err
	}
	full, err := d.refreshFully(ctx)
	if err != nil {
		return err
	}
	d.board.say("Proving again, after the full refreshes.")
	if err := d.prover.prove(ctx); err != nil {
		return err
	}
	d.board.say("\n%s\n\nincremental : full\n%s\n", strategies(d.watcher.runs), comparison(d.watcher.runs, full))
	if err := d.watcher.failures(); err != nil {
		return err
	}
	d.board.say("All rows proven, in %s.", time.Since(started).Round(time.Second))
	return nil
}

// upTo returns the flights of days, of which flights are a longer list.
func upTo(flights []flight, days [][]flight) []flight {
	n := 0
	for _, day := range days {
		n += len(day)
	}
	return flights[:n]
}

// replay makes all commits without waiting for a refresh, and then waits for the views.
func (d *demo) replay(ctx context.Context, days int) error {
	if err := d.lake.CreateNamespace(ctx, namespace); err != nil {
		return fmt.Errorf("create namespace %s: %w", namespace, err)
	}
	r, err := newReplayer(ctx, d.lake)
	if err != nil {
		return err
	}
	for _, v := range views() {
		body := mvrest.NewMaterializedView{Namespace: []string{namespace}, Name: v.name, SQL: v.sql}
		if _, err := d.client.Create(ctx, body); err != nil {
			return fmt.Errorf("create %s: %w", v.dotted(), err)
		}
	}
	d.board.say("Created %s and %d materialized views. Replaying %d days in %d commits; none waits for a refresh.",
		source, len(views()), days, len(d.commits))
	if err := d.commitAll(ctx, r); err != nil {
		return err
	}
	d.board.say("All committed. Waiting until every view is up to date.")
	if err := d.watcher.settle(ctx); err != nil {
		return errors.Join(err, d.watcher.failures())
	}
	d.board.stop()
	d.board.say("\nEvery view is up to date. Recomputing each query over the whole source, to compare row by row.")
	return nil
}

// commitAll commits while the watcher looks on.
func (d *demo) commitAll(ctx context.Context, r *replayer) error {
	watching, stop := context.WithCancel(ctx)
	var group sync.WaitGroup
	group.Go(func() { d.watcher.follow(watching) })
	defer group.Wait()
	defer stop()
	for _, c := range d.commits {
		if err := r.apply(ctx, c); err != nil {
			return err
		}
		d.board.committed(c)
	}
	return nil
}

// refreshFully recomputes every view, one after the other in the order of their sources.
func (d *demo) refreshFully(ctx context.Context) (map[string]mvrest.RefreshRun, error) {
	d.board.say("\nRefreshing each view fully, for comparison.")
	full := map[string]mvrest.RefreshRun{}
	for _, v := range views() {
		run, err := d.client.Refresh(ctx, client.ViewName{Namespace: []string{namespace}, Name: v.name}, true)
		if err != nil {
			return nil, fmt.Errorf("refresh %s fully: %w", v.dotted(), err)
		}
		if run.Status != succeeded {
			return nil, fmt.Errorf("the full refresh of %s %s", v.dotted(), runWords(run, 0))
		}
		full[v.dotted()] = run
		d.watcher.seen[run.ID] = true // it is no refresh of the replay
		d.board.say("  %s: %s", v.dotted(), runWords(run, 0))
	}
	return full, d.watcher.settle(ctx)
}
