package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/catalogd/catalogd/catalog"
	catalogpg "github.com/catalogd/catalogd/catalog/postgres"
	"github.com/catalogd/catalogd/catalog/postgres/pgtest"
	"github.com/catalogd/catalogd/jobs"
	"github.com/catalogd/catalogd/mv"
	mvpg "github.com/catalogd/catalogd/mv/postgres"
)

const warehouse = "wh"

// world is a catalog with the real store, hook, registry and queue; only the engine is
// played by the test.
type world struct {
	*testing.T
	pool     *pgxpool.Pool
	reg      *mvpg.Registry
	queue    *jobs.Enqueuer
	store    *catalogpg.Store
	requests *jobs.Requests
	files    atomic.Int64
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, pool: pgtest.Pool(t)}
	w.reg = mvpg.New(w.pool)
	var err error
	w.queue, err = jobs.NewEnqueuer(w.pool, slog.New(slog.DiscardHandler))
	w.check(err)
	w.store = catalogpg.New(w.pool, jobs.NewHook(w.reg, w.queue))
	w.requests = jobs.NewRequests(w.pool, w.reg, w.queue, nil)
	w.exec(`INSERT INTO warehouse (name, location, is_default) VALUES ($1, 'file:///wh', true)`, warehouse)
	w.check(w.store.CreateNamespace(t.Context(), warehouse, catalog.Namespace{"demo"}, nil))
	return w
}

func (w *world) check(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) exec(sql string, args ...any) {
	w.Helper()
	_, err := w.pool.Exec(w.Context(), sql, args...)
	w.check(err)
}

func query[T any](w *world, sql string, args ...any) T {
	w.Helper()
	var v T
	w.check(w.pool.QueryRow(w.Context(), sql, args...).Scan(&v))
	return v
}

func ident(name string) catalog.TableIdent {
	return catalog.TableIdent{Namespace: catalog.Namespace{"demo"}, Name: name}
}

func (w *world) location() string {
	return fmt.Sprintf("file:///wh/metadata/%d.json", w.files.Add(1))
}

func document(location string) *catalog.Document {
	return &catalog.Document{MetadataLocation: location, All: catalog.Encoded{Deflate: []byte("x"), Size: 1}}
}

func (w *world) creation(name string, p catalog.Pointer) catalog.Change {
	p.Warehouse, p.Ident, p.UUID, p.MetadataLocation = warehouse, ident(name), uuid.NewString(), w.location()
	p.Location, p.SnapshotID = "file:///wh/"+name, -1
	if p.Type == "" {
		p.Type = catalog.TypeTable
	}
	return catalog.Change{Op: catalog.OpCreate, Pointer: p, Document: document(p.MetadataLocation)}
}

func (w *world) tables(names ...string) {
	w.Helper()
	for _, n := range names {
		w.check(w.store.Commit(w.Context(), []catalog.Change{w.creation(n, catalog.Pointer{})}))
	}
}

// swap commits to tables in one transaction, as often as it takes to win.
func (w *world) swap(ctx context.Context, names ...string) error {
	for {
		var changes []catalog.Change
		for _, n := range names {
			l, err := w.store.Load(ctx, warehouse, ident(n), catalog.TypeTable, catalog.NoDocument)
			if err != nil {
				return err
			}
			p := l.Pointer
			from := p.MetadataLocation
			p.MetadataLocation = w.location()
			p.SnapshotID++
			changes = append(changes, catalog.Change{Op: catalog.OpSwap, Pointer: p, From: from, Document: document(p.MetadataLocation)})
		}
		err := w.store.Commit(ctx, changes)
		if catalog.KindOf(err) != catalog.KindCommitFailed {
			return err
		}
	}
}

// view creates a materialized view; a read name with a storage table is read as well.
func (w *world) view(name string, debounce time.Duration, reads ...string) string {
	w.Helper()
	v := w.creation(name, catalog.Pointer{Type: catalog.TypeView, IsMaterialized: true, ViewVersionID: 1})
	s := w.creation(name+"__storage", catalog.Pointer{StorageOf: v.Pointer.UUID})
	reg := &mv.Registration{Definition: mv.Definition{
		ViewUUID: v.Pointer.UUID, Warehouse: warehouse, Ident: ident(name), VersionID: 1, Dialect: mv.DuckDB, SQL: "SELECT 1",
		Storage: ident(name + "__storage"), StorageUUID: s.Pointer.UUID, Mode: mv.Managed,
	}}
	for _, r := range reads {
		reg.Names = append(reg.Names, mv.KeyOf(warehouse, ident(r)))
	}
	v.Attachment = reg
	w.check(w.store.Commit(w.Context(), []catalog.Change{v, s}))
	w.exec(`UPDATE materialized_view SET debounce_ms = $2 WHERE view_uuid = $1`, v.Pointer.UUID, debounce.Milliseconds())
	return v.Pointer.UUID
}

// start runs a client until the test ends, with everything but the given settings fast.
func (w *world) start(r jobs.Runner, adjust func(*jobs.Config)) *jobs.Client {
	w.Helper()
	cfg := jobs.Config{
		Pool: w.pool, Ledger: w.reg, Runner: r, PollEvery: 20 * time.Millisecond,
		BeatEvery: 100 * time.Millisecond, SilentAfter: 10 * time.Second, RescueEvery: 100 * time.Millisecond, SweepEvery: 100 * time.Millisecond,
	}
	if adjust != nil {
		adjust(&cfg)
	}
	c, err := jobs.New(cfg)
	w.check(err)
	w.check(c.Start(w.Context()))
	w.Cleanup(func() { w.stop(c) })
	return c
}

func (w *world) stop(c *jobs.Client) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.Context()), 10*time.Second)
	defer cancel()
	if err := c.Stop(ctx); err != nil {
		w.Errorf("stop: %v", err)
	}
}

// eventually polls for a condition that another goroutine or process brings about.
func (w *world) eventually(what string, cond func() bool) {
	w.Helper()
	const patience = time.Minute // for machines that do a lot at a time; no test relies on it
	deadline := time.After(patience)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-deadline:
			w.Fatalf("never happened: %s", what)
		case <-tick.C:
		}
	}
}

func (w *world) settled(viewUUID string) bool {
	return query[bool](w, `SELECT stale_since IS NULL AND NOT EXISTS (SELECT FROM river_job WHERE kind = 'mv_refresh'
		AND args->>'view_id' = $1::text AND state IN ('available', 'pending', 'running', 'retryable', 'scheduled'))
		FROM materialized_view WHERE view_uuid = $1::text::uuid`, viewUUID)
}

// engine is a model of the refresher: it reads the state, waits for its sources like the
// real one, publishes by a commit to the storage table, and remembers what it reflected.
type engine struct {
	w *world
	// during, if set, is called in the middle of every run.
	during func(ctx context.Context, viewUUID string, run int) error

	mu       sync.Mutex
	runs     map[string]int
	active   map[string]int
	overlaps int
	seen     map[string]mv.Inputs
}

func newEngine(w *world) *engine {
	return &engine{w: w, runs: map[string]int{}, active: map[string]int{}, seen: map[string]mv.Inputs{}}
}

func (e *engine) count(viewUUID string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.runs[viewUUID]
}

func (e *engine) enter(viewUUID string) (run int, leave func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.active[viewUUID]++
	if e.active[viewUUID] > 1 {
		e.overlaps++
	}
	e.runs[viewUUID]++
	return e.runs[viewUUID], func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.active[viewUUID]--
	}
}

// Run implements [jobs.Runner].
func (e *engine) Run(ctx context.Context, viewUUID string, info mv.RunInfo) (mv.Attempt, error) {
	s, err := e.w.reg.State(ctx, viewUUID)
	if err != nil {
		return mv.Attempt{}, err
	}
	v := s.Views[viewUUID]
	a := mv.Attempt{ViewUUID: viewUUID, Inputs: s.InputsOf(viewUUID), At: s.At, Outcome: mv.OutcomeDone}
	if a.Inputs.Digest() == v.PermanentInputs {
		a.Outcome = mv.OutcomeHeld
		return a, nil
	}
	for id, u := range s.Views {
		read := slices.Contains(v.Names, mv.KeyOf(warehouse, u.Definition.Ident))
		if read && id != viewUUID && (!u.StaleSince.IsZero() || u.Job != mv.JobNone) {
			a.Outcome = mv.OutcomeParked
			return a, nil
		}
	}
	a.Refresh = &mv.Refresh{ID: uuid.NewString(), ViewUUID: viewUUID, Status: mv.RefreshRunning, Generation: v.Generation, SnapshotID: -1, Started: s.At}
	if err := e.w.reg.Begin(ctx, *a.Refresh, info.JobID); err != nil {
		return a, err
	}
	run, leave := e.enter(viewUUID)
	defer leave()
	if e.during != nil {
		if err := e.during(ctx, viewUUID, run); err != nil {
			return a, err
		}
	}
	e.mu.Lock()
	unchanged := e.seen[viewUUID] != nil && e.seen[viewUUID].Digest() == a.Inputs.Digest()
	e.mu.Unlock()
	if !unchanged {
		if err := e.w.swap(ctx, v.Definition.Storage.Name); err != nil {
			return a, err
		}
	}
	e.mu.Lock()
	e.seen[viewUUID] = a.Inputs
	e.mu.Unlock()
	a.Refresh.Status = mv.RefreshSucceeded
	return a, nil
}

// reflects reports whether the last run of a view saw what is there now.
func (e *engine) reflects(viewUUID string) error {
	s, err := e.w.reg.State(e.w.Context(), viewUUID)
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.seen[viewUUID].Digest() != s.InputsOf(viewUUID).Digest() {
		return errors.New("the last run does not reflect the current inputs")
	}
	return nil
}
