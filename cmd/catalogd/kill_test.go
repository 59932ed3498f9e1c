package main

import (
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/jackc/pgx/v5"

	"github.com/catalogd/catalogd/api/mvrest"
	"github.com/catalogd/catalogd/catalog/postgres/pgtest"
	"github.com/catalogd/catalogd/cmd/catalogd/lake"
)

// recovery is how long a view may take to be up to date again after a restart.
const recovery = 30 * time.Second

// ledger is what clients were told about their commits. Each commit adds one row with a
// number of its own.
type ledger struct {
	mu    sync.Mutex
	tried int64
	acked map[int64]string // the table
}

func newLedger() *ledger { return &ledger{acked: map[int64]string{}} }

// append commits one row to a table. An error says that nothing is known: the row may be
// there or not.
func (l *ledger) append(ctx context.Context, c *lake.Client, name string) error {
	l.mu.Lock()
	l.tried++
	v := l.tried
	l.mu.Unlock()
	t, err := c.Load(ctx, name)
	if err != nil {
		return err
	}
	data := eventRows([]event{{day(1+int(v%70), int(v%24)), string(rune('a' + v%3)), v}})
	defer data.Release()
	if _, err := t.AppendTable(ctx, data, 1<<20, nil); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.acked[v] = name
	return nil
}

func (l *ledger) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.acked)
}

// kept checks that every acknowledged row is in its table once, and no row twice.
func (l *ledger) kept(w *workbench, names ...string) {
	w.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	seen := map[int64]int{}
	for _, name := range names {
		rows, err := w.c.Rows(w.Context(), name)
		if err != nil {
			w.Fatal(err)
		}
		for _, chunk := range rows.Column(2).Data().Chunks() {
			for i := range chunk.Len() {
				v := chunk.(*array.Int64).Value(i)
				if seen[v]++; seen[v] > 1 {
					w.Errorf("row %d is in %s %d times", v, name, seen[v])
				}
				if home := l.acked[v]; home != "" && home != name {
					w.Errorf("row %d was committed to %s and is in %s", v, home, name)
				}
			}
		}
		rows.Release()
	}
	for v, name := range l.acked {
		if seen[v] == 0 {
			w.Errorf("row %d was acknowledged and is not in %s", v, name)
		}
	}
}

// recovered is settled within the time that a restart may cost.
func (w *workbench) recovered(since time.Time, names ...string) {
	w.Helper()
	for _, name := range names {
		w.settled(name)
	}
	if took := time.Since(since); took > recovery {
		w.Errorf("up to date again after %s, want %s", took, recovery)
	}
}

// leftovers lists the files below the data folder of a view's storage table that no
// snapshot of it knows. Files of a run that was lost with its process are left out: they
// lie in a folder of their own, for the sweeper, since a process that only seemed to be
// gone may still publish them.
func (w *workbench) leftovers(view string) []string {
	w.Helper()
	var history mvrest.RefreshRunList
	w.p.call(http.MethodGet, viewPath(view)+"/refreshes?limit=1000", nil, http.StatusOK, &history)
	lost := map[string]bool{}
	for _, run := range history.Refreshes {
		lost[run.ID] = run.Status == "lost"
	}
	t, err := w.c.Load(w.Context(), view+"__storage")
	if err != nil {
		w.Fatal(err)
	}
	files, err := t.FS(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	known := map[string]bool{}
	for _, snapshot := range t.Metadata().Snapshots() {
		manifests, err := snapshot.Manifests(files)
		if err != nil {
			w.Fatal(err)
		}
		for _, m := range manifests {
			for entry, err := range m.Entries(files, false) {
				if err != nil {
					w.Fatal(err)
				}
				known[strings.TrimPrefix(entry.DataFile().FilePath(), "file://")] = true
			}
		}
	}
	var left []string
	root := filepath.Join(strings.TrimPrefix(t.Location(), "file://"), "data")
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		name := strings.TrimPrefix(path, root+"/")
		run, _, _ := strings.Cut(name, "/")
		if err == nil && !d.IsDir() && !known[path] && !lost[run] {
			left = append(left, name)
		}
		return err
	})
	if err != nil {
		w.Fatal(err)
	}
	return left
}

const totalsSQL = `SELECT k, count(*) AS n, sum(v) AS total FROM ev.src GROUP BY k`

// TestKill_catalogd kills the whole program at random moments while it commits and
// refreshes, and starts it again.
func TestKill_catalogd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := attach(t, startDevIn(t, dir))
	w.events("ev.src", nil, nil)
	w.create("ev.daily", dailySQL)
	w.create("ev.totals", totalsSQL)
	seed := uint64(time.Now().UnixNano()) // any number will do
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	l := newLedger()
	for range 4 {
		ended := make(chan struct{})
		enough, target := make(chan struct{}), l.count()+2+random.IntN(8)
		go func() {
			defer close(ended)
			for l.append(context.WithoutCancel(t.Context()), w.c, "ev.src") == nil {
				if l.count() == target {
					close(enough)
				}
			}
		}()
		select {
		case <-enough:
		case <-ended:
			t.Fatalf("commits fail although nobody was killed\n%s", w.p.log())
		}
		// The debounce is a second: the kill hits any phase of a refresh, or none.
		<-time.After(time.Duration(random.IntN(1500)) * time.Millisecond)
		w.p.kill()
		<-ended

		p := startDevIn(t, dir)
		since := time.Now()
		w = attach(t, p)
		l.kept(w, "ev.src")
		w.recovered(since, "ev.daily", "ev.totals")
		w.prove("ev.daily", dailySQL, "ev.src")
		w.prove("ev.totals", totalsSQL, "ev.src")
	}
	if err := l.append(t.Context(), w.c, "ev.src"); err != nil {
		t.Fatal(err)
	}
	for _, view := range []string{"ev.daily", "ev.totals"} {
		w.refresh(view)
		if left := w.leftovers(view); len(left) > 0 {
			t.Errorf("%s: killed runs left %v", view, left)
		}
	}
	t.Logf("%d commits acknowledged of %d", l.count(), l.tried)
}

// workers lists the engine's processes of a server.
func workers(t *testing.T, server int) []int {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("looks for processes in /proc")
	}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	var found []int
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		args, err := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
		if err != nil || !strings.Contains(string(args), "\x00"+workerName) {
			continue
		}
		// pid (name) state parent …; the name may hold spaces and parentheses.
		after := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err == nil && len(after) > 1 && after[1] == strconv.Itoa(server) {
			found = append(found, pid)
		}
	}
	return found
}

// slowSQL keeps the engine busy for long enough to be killed.
const slowSQL = `SELECT a.k, count(*) AS n, sum((a.v + b.v * c.v) % 7) AS total FROM ev.src a, ev.src b, ev.src c
	WHERE (a.v + b.v + c.v) % 11 <> 0 GROUP BY a.k`

// TestKill_engine kills the engine's process in the middle of runs, as the kernel does
// when memory runs out. The server stays, and the view follows by itself.
func TestKill_engine(t *testing.T) {
	t.Parallel()
	w := newWorkbench(t)
	w.events("ev.src", nil, nil)
	var rows []event
	for v := range 300 {
		rows = append(rows, event{day(1+v%9, 1), string(rune('a' + v%3)), int64(v)})
	}
	w.append("ev.src", rows...)
	w.create("ev.slow", slowSQL)
	w.settled("ev.slow")
	for round := range 2 {
		failed := false
		for try := 0; try < 20 && !failed; try++ {
			w.append("ev.src", event{day(1, 2), "a", int64(1000*round + try)})
			w.p.call(http.MethodPost, viewPath("ev.slow")+"/refresh", map[string]any{"full": true}, http.StatusAccepted, nil)
			eventually(t, time.Minute, "the run has begun", func() error {
				if job := w.freshness("ev.slow").Job; job != "running" {
					return fmt.Errorf("job %s", job)
				}
				return nil
			})
			for _, pid := range workers(t, w.p.cmd.Process.Pid) {
				_ = syscall.Kill(pid, syscall.SIGKILL) // a spare one may be replaced meanwhile
			}
			var runs mvrest.RefreshRunList
			eventually(t, time.Minute, "the run has ended", func() error {
				w.p.call(http.MethodGet, viewPath("ev.slow")+"/refreshes?limit=1", nil, http.StatusOK, &runs)
				if len(runs.Refreshes) == 0 || runs.Refreshes[0].Status == "running" {
					return fmt.Errorf("%+v", runs.Refreshes)
				}
				return nil
			})
			failed = runs.Refreshes[0].Status == "failed"
			if failed && (runs.Refreshes[0].Error == nil || !strings.Contains(*runs.Refreshes[0].Error, "engine's process died")) {
				t.Errorf("the failed run: %+v", runs.Refreshes[0])
			}
		}
		if !failed {
			t.Fatal("no run was hit")
		}
		w.recovered(time.Now(), "ev.slow")
		w.prove("ev.slow", slowSQL, "ev.src")
	}
	if f := w.freshness("ev.slow"); f.Suspended || f.Failures != 0 {
		t.Errorf("suspended %v after %d failures", f.Suspended, f.Failures)
	}
	w.refresh("ev.slow")
	if left := w.leftovers("ev.slow"); len(left) > 0 {
		t.Errorf("killed runs left %v", left)
	}
}

// TestKill_databaseConnections ends all connections to the database, again and again,
// while commits and refreshes run.
func TestKill_databaseConnections(t *testing.T) {
	t.Parallel()
	dsn := pgtest.URL(t)
	db, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close(context.WithoutCancel(t.Context())) }()
	p := start(t, []string{"CATALOGD_DATABASE_URL=" + dsn}, "serve", "--warehouse", t.TempDir(), "--listen", "127.0.0.1:0", "--log-level", "warn")
	w := attach(t, p)
	w.events("ev.src", nil, nil)
	w.create("ev.daily", dailySQL)
	w.create("ev.totals", totalsSQL)
	l := newLedger()
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-stop:
				return
			default:
				_ = l.append(context.WithoutCancel(t.Context()), w.c, "ev.src") // the ledger knows what was acknowledged
			}
		}
	}()
	for range 8 {
		want := l.count() + 4
		eventually(t, time.Minute, "commits go on", func() error {
			if n := l.count(); n < want {
				return fmt.Errorf("%d of %d", n, want)
			}
			return nil
		})
		var cut int
		err := db.QueryRow(t.Context(), `SELECT count(*) FILTER (WHERE pg_terminate_backend(pid)) FROM pg_stat_activity
			WHERE datname = current_database() AND pid <> pg_backend_pid()`).Scan(&cut)
		if err != nil {
			t.Fatal(err)
		}
		if cut == 0 {
			t.Error("no connection was cut")
		}
	}
	since := time.Now()
	close(stop)
	<-ended
	calm := 0
	eventually(t, time.Minute, "no connection that was cut is left in the pool", func() error {
		status, answer, err := p.try(http.MethodGet, viewPath("ev.daily")+"/freshness", nil)
		if calm++; err != nil || status != http.StatusOK {
			calm = 0
		}
		if calm < 60 { // more than a second: then the pool looks before it hands one out
			return fmt.Errorf("%d times in a row; %d %s %v", calm, status, answer, err) //nolint:errorlint // there may be no error to wrap
		}
		return nil
	})
	l.kept(w, "ev.src")
	w.recovered(since, "ev.daily", "ev.totals")
	w.prove("ev.daily", dailySQL, "ev.src")
	w.prove("ev.totals", totalsSQL, "ev.src")
	for _, view := range []string{"ev.daily", "ev.totals"} {
		if f := w.freshness(view); f.Suspended {
			t.Errorf("%s is suspended: a lost connection is not its fault", view)
		}
		w.refresh(view)
		if left := w.leftovers(view); len(left) > 0 {
			t.Errorf("%s: cut runs left %v", view, left)
		}
	}
	t.Logf("%d commits acknowledged of %d", l.count(), l.tried)
}
