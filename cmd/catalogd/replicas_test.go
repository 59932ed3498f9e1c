package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/catalogd/catalogd/catalog/postgres/pgtest"
	"github.com/catalogd/catalogd/cmd/catalogd/lake"
)

// replica is one of several processes on one database. It is replaced when it was killed.
type replica struct {
	p *process
	c atomic.Pointer[lake.Client]
}

// overlapSQL finds pairs of runs of one view at the same time. A run that was lost with
// its process ended before somebody noted it.
const overlapSQL = `
SELECT a.refresh_id::text || ' ' || a.status || ' ' || a.started_at || ' – ' || a.ended_at || ' and ' ||
       b.refresh_id::text || ' ' || b.status || ' ' || b.started_at || ' – ' || b.ended_at
  FROM refresh a JOIN refresh b ON b.view_uuid = a.view_uuid AND b.refresh_id > a.refresh_id
 WHERE a.status <> 'lost' AND b.status <> 'lost'
   AND a.started_at < coalesce(b.ended_at, 'infinity') AND b.started_at < coalesce(a.ended_at, 'infinity')`

// TestReplicas_shareOneDatabase commits through two processes at once and kills one of
// them every now and then. Nothing is lost, and no view is refreshed twice at once.
func TestReplicas_shareOneDatabase(t *testing.T) {
	t.Parallel()
	dsn, warehouse := pgtest.URL(t), t.TempDir()
	begin := func() *process {
		return start(t, []string{"CATALOGD_DATABASE_URL=" + dsn}, "serve", "--warehouse", warehouse, "--listen", "127.0.0.1:0", "--log-level", "warn")
	}
	replicas := [2]*replica{{p: begin()}, {p: begin()}}
	connect := func(r *replica) *workbench {
		w := attach(t, r.p)
		r.c.Store(w.c)
		return w
	}
	w := connect(replicas[0])
	connect(replicas[1])

	views, tables := map[string]string{}, []string{}
	union := ""
	for i := range 8 {
		table := fmt.Sprintf("ev.t%d", i)
		tables = append(tables, table)
		w.events(table, nil, nil)
		if union += " UNION ALL "; i == 0 {
			union = ""
		}
		union += "SELECT * FROM " + table
	}
	views["ev.all_k"] = "SELECT k, count(*) AS n, sum(v) AS total FROM (" + union + ") AS u GROUP BY k"
	views["ev.days0"] = "SELECT date_trunc('day', ts) AS day, count(*) AS n, sum(v) AS total FROM ev.t0 GROUP BY 1"
	views["ev.days1"] = "SELECT date_trunc('day', ts) AS day, k, max(v) AS top FROM ev.t1 GROUP BY ALL"
	for name, sql := range views {
		w.create(name, sql)
	}

	l := newLedger()
	var writers sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for i, table := range tables {
		writers.Go(func() {
			for n := i; ctx.Err() == nil; n++ {
				// A commit is not cut off: its outcome would be unknown for no reason.
				_ = l.append(context.WithoutCancel(ctx), replicas[n%2].c.Load(), table)
			}
		})
	}
	random := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1)) // any number will do
	more := func(n int) {
		t.Helper()
		want := l.count() + n
		eventually(t, 2*time.Minute, "commits go on", func() error {
			if have := l.count(); have < want {
				return fmt.Errorf("%d of %d", have, want)
			}
			return nil
		})
	}
	for round := range 3 {
		more(20 + random.IntN(40))
		victim := replicas[(round+random.IntN(2))%2]
		victim.p.kill()
		more(10) // through the other one
		victim.p = begin()
		connect(victim)
	}
	more(20)
	cancel()
	writers.Wait()

	w = attach(t, replicas[1].p)
	l.kept(w, tables...)
	for name := range views {
		w.settled(name)
	}
	for name, sql := range views {
		w.prove(name, sql, tables...)
	}
	for _, r := range replicas { // both say so
		for name := range views {
			if f := (&workbench{T: t, p: r.p}).freshness(name); !f.UpToDate {
				t.Errorf("%s: %s (%s)", name, f.Status, f.Reason)
			}
		}
	}

	db, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close(context.WithoutCancel(t.Context())) }()
	rows, err := db.Query(t.Context(), overlapSQL)
	if err != nil {
		t.Fatal(err)
	}
	overlaps, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range overlaps {
		t.Errorf("two runs of one view at once: %s", o)
	}
	var runs, processes int
	err = db.QueryRow(t.Context(), `SELECT count(*), count(DISTINCT process_id) FROM refresh WHERE status = 'succeeded'`).Scan(&runs, &processes)
	if err != nil {
		t.Fatal(err)
	}
	if processes < 2 {
		t.Errorf("%d processes refreshed, want several: the work is not shared", processes)
	}
	t.Logf("%d commits acknowledged of %d, %d refreshes by %d processes", l.count(), l.tried, runs, processes)
}
