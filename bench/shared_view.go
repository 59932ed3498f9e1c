package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/apache/iceberg-go"

	"github.com/catalogd/catalogd/bench/client"
	"github.com/catalogd/catalogd/bench/measure"
)

// sharedTables is how many tables one materialized view reads, and how many clients
// commit to them at the same time.
const sharedTables = 8

// sharedCase is a state that the view is in while its tables are committed to.
type sharedCase struct {
	name      string
	what      string
	suspended bool
	readable  bool // whether a refresh can read the snapshots
	target    bool
}

// sharedView compares commits to tables that one materialized view reads with commits to
// tables that none does, on the same server.
func (b *bench) sharedView(ctx context.Context) error {
	b.rep.title(fmt.Sprintf("mv: %d tables that share one materialized view against %d that have none, on the same server", sharedTables, sharedTables))
	for _, c := range []sharedCase{
		{name: "suspended", what: "commit, refreshes suspended", suspended: true, target: true},
		{name: "refreshing", what: "commit, refreshes running", readable: true},
		{name: "failing", what: "commit, refreshes failing"},
	} {
		if err := b.sharedContest(ctx, c); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return nil
}

func (b *bench) sharedContest(ctx context.Context, c sharedCase) error {
	view := "shared_" + c.name
	with, err := b.sharedWriters(ctx, "mv_"+c.name, c.readable)
	if err != nil {
		return err
	}
	without, err := b.sharedWriters(ctx, "plain_"+c.name, c.readable)
	if err != nil {
		return err
	}
	if err := b.catalog.CreateView(ctx, client.NewView{Namespace: []string{namespace}, Name: view, SQL: sharedQuery("mv_" + c.name)}); err != nil {
		return err
	}
	if err := b.firstRefresh(ctx, view); err != nil { // of empty tables
		return err
	}
	if c.suspended {
		if err := b.catalog.Suspend(ctx, namespace, view); err != nil {
			return err
		}
	}
	subject, against := &appender{catalog: b.catalog, clients: sharedTables}, &appender{catalog: b.catalog, clients: sharedTables}
	defer subject.close()
	defer against.close()
	series, err := measure.Contest(ctx,
		measure.Plan{
			Rounds: b.scale.rounds,
			Limits: measure.Limits{Clients: sharedTables, PerClient: b.scale.mvCommits, Time: b.scale.commitTime},
		},
		measure.Contender{
			Name: "sharing one MV", Op: subject.op, CPU: b.server.cpu(), Database: b.database,
			Begin: func(context.Context, int) (func(context.Context) error, error) {
				subject.use(with)
				return func(ctx context.Context) error {
					// Refreshes that this round caused must not slow the other side.
					return errors.Join(b.quiet(ctx, view), subject.verify(ctx))
				}, nil
			},
		},
		measure.Contender{
			Name: "without MV", Op: against.op, CPU: b.server.cpu(), Database: b.database,
			Begin: func(context.Context, int) (func(context.Context) error, error) {
				against.use(without)
				return against.verify, nil
			},
		},
	)
	if err != nil {
		return err
	}
	line := compare(c.what, sharedTables, series[0], series[1])
	if c.target {
		line = line.keepsRate("commits to 8 tables that share one suspended MV: commits/s, part of those without", 80)
	}
	b.rep.add(line)
	return b.sharedOutcome(ctx, c, view)
}

// sharedOutcome checks that the view was in the state that the line speaks of.
func (b *bench) sharedOutcome(ctx context.Context, c sharedCase, view string) error {
	f, err := b.catalog.Freshness(ctx, namespace, view)
	if err != nil {
		return err
	}
	complain := func(format string, args ...any) {
		b.rep.Wrong++
		b.rep.printf("    WRONG: "+format+"\n", args...)
	}
	switch {
	case c.suspended && (!f.Suspended || f.UpToDate):
		complain("the view is %s, suspended %v; want a suspended one that is behind", f.Status, f.Suspended)
	case c.readable && f.Failures > 0:
		complain("a refresh failed: %s", f.LastError)
	case !c.suspended && !c.readable && f.Failures == 0:
		complain("no refresh failed although the snapshots cannot be read: status %s, up to date %v", f.Status, f.UpToDate)
	}
	b.rep.note("%s: afterwards the view is %s (%s), suspended %v, failures %d", c.what, f.Status, f.Reason, f.Suspended, f.Failures)
	return nil
}

// quiet waits until nothing runs for a view and nothing is about to: it is up to date, or
// its refreshes fail and are put off.
func (b *bench) quiet(ctx context.Context, view string) error {
	_, err := b.await(ctx, view, func(f client.Freshness) (bool, error) {
		return f.Job != "running" && (f.UpToDate || f.Suspended || f.Failures > 0), nil
	})
	return err
}

// firstRefresh waits until a new view has its rows.
func (b *bench) firstRefresh(ctx context.Context, view string) error {
	_, err := b.await(ctx, view, func(f client.Freshness) (bool, error) {
		if f.Failures > 0 {
			return false, fmt.Errorf("the first refresh of %s failed: %s", view, f.LastError)
		}
		return f.Job != "running" && f.UpToDate, nil
	})
	return err
}

// viewPatience bounds the wait for a view.
const viewPatience = 2 * time.Minute

// await asks for a view's freshness until holds is content.
func (b *bench) await(ctx context.Context, view string, holds func(client.Freshness) (bool, error)) (client.Freshness, error) {
	ctx, cancel := context.WithTimeout(ctx, viewPatience)
	defer cancel()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		f, err := b.catalog.Freshness(ctx, namespace, view)
		if err != nil {
			return f, err
		}
		if ok, err := holds(f); ok || err != nil {
			return f, err
		}
		select {
		case <-ctx.Done():
			return f, fmt.Errorf("view %s is %s (%s %s) with job %s and %d failures: %w", view, f.Status, f.Reason, f.Detail, f.Job, f.Failures, ctx.Err())
		case <-tick.C:
		}
	}
}

func (b *bench) sharedWriters(ctx context.Context, prefix string, readable bool) ([]*client.Writer, error) {
	writers := make([]*client.Writer, sharedTables)
	for i := range writers {
		w, err := client.NewWriter(ctx, b.catalog, namespace, fmt.Sprintf("%s_%d", prefix, i))
		if err != nil {
			return nil, err
		}
		if readable {
			location, err := emptyManifestList(w.Location())
			if err != nil {
				return nil, err
			}
			w.UseManifestList(location)
		}
		writers[i] = w
	}
	return writers, nil
}

func sharedQuery(prefix string) string {
	parts := make([]string, sharedTables)
	for i := range parts {
		parts[i] = fmt.Sprintf("SELECT carrier, delay FROM %s.%s_%d", namespace, prefix, i)
	}
	return "SELECT carrier, count(*) AS flights, max(delay) AS worst FROM (" + strings.Join(parts, " UNION ALL ") + ") AS u GROUP BY carrier"
}

// emptyManifestList writes the list of a snapshot without files, so that a refresh finds
// something to read.
func emptyManifestList(location string) (string, error) {
	folder := filepath.Join(strings.TrimPrefix(location, "file://"), "metadata")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	const formatVersion, anySnapshot = 2, 1
	sequence := int64(1)
	var list bytes.Buffer
	if err := iceberg.WriteManifestList(formatVersion, &list, anySnapshot, nil, &sequence, 0, nil); err != nil {
		return "", err
	}
	const name = "empty-manifest-list.avro"
	return location + "/metadata/" + name, os.WriteFile(filepath.Join(folder, name), list.Bytes(), 0o644)
}
