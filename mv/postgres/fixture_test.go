package postgres_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/catalogd/catalogd/catalog"
	catalogpg "github.com/catalogd/catalogd/catalog/postgres"
	"github.com/catalogd/catalogd/catalog/postgres/pgtest"
	"github.com/catalogd/catalogd/jobs"
	"github.com/catalogd/catalogd/mv"
	"github.com/catalogd/catalogd/mv/postgres"
)

const warehouse = "wh"

// world is a catalog with the real store, hook and job table, in which the test plays the
// worker by hand, so that it can stop between any two steps.
type world struct {
	*testing.T
	pool  *pgxpool.Pool
	reg   *postgres.Registry
	queue *jobs.Enqueuer
	hook  *jobs.Hook
	store *catalogpg.Store
	files atomic.Int64
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, pool: pgtest.Pool(t)}
	w.reg = postgres.New(w.pool)
	var err error
	w.queue, err = jobs.NewEnqueuer(w.pool, slog.New(slog.DiscardHandler))
	w.check(err)
	w.hook = jobs.NewHook(w.reg, w.queue)
	w.store = catalogpg.New(w.pool, w.hook)
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

func ident(name string) catalog.TableIdent {
	return catalog.TableIdent{Namespace: catalog.Namespace{"demo"}, Name: name}
}

func key(name string) mv.Key { return mv.KeyOf(warehouse, ident(name)) }

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

func (w *world) swapping(name string) catalog.Change {
	w.Helper()
	p := w.pointer(name)
	from := p.MetadataLocation
	p.MetadataLocation = w.location()
	p.SnapshotID++
	return catalog.Change{Op: catalog.OpSwap, Pointer: p, From: from, Document: document(p.MetadataLocation)}
}

func (w *world) pointer(name string) catalog.Pointer {
	w.Helper()
	for _, typ := range []catalog.ObjectType{catalog.TypeTable, catalog.TypeView} {
		if l, err := w.store.Load(w.Context(), warehouse, ident(name), typ, catalog.NoDocument); err == nil {
			return l.Pointer
		}
	}
	w.Fatalf("no object %q", name)
	return catalog.Pointer{}
}

func (w *world) commit(changes ...catalog.Change) {
	w.Helper()
	w.check(w.store.Commit(w.Context(), changes))
}

func (w *world) tables(names ...string) {
	w.Helper()
	for _, n := range names {
		w.commit(w.creation(n, catalog.Pointer{}))
	}
}

func (w *world) swap(names ...string) {
	w.Helper()
	for _, n := range names {
		w.commit(w.swapping(n))
	}
}

func (w *world) registration(viewUUID, name, storageUUID string, reads []string) *mv.Registration {
	reg := &mv.Registration{Definition: mv.Definition{
		ViewUUID: viewUUID, Warehouse: warehouse, Ident: ident(name), VersionID: 1, Dialect: mv.DuckDB, SQL: "SELECT 1",
		Storage: ident(name + "__storage"), StorageUUID: storageUUID, Mode: mv.Managed,
	}}
	for _, r := range reads {
		reg.Names = append(reg.Names, key(r))
	}
	return reg
}

// view creates a materialized view that reads the given names, and returns its uuid. It
// has no debounce unless the test sets one.
func (w *world) view(name string, reads ...string) string {
	w.Helper()
	v := w.creation(name, catalog.Pointer{Type: catalog.TypeView, IsMaterialized: true, ViewVersionID: 1})
	s := w.creation(name+"__storage", catalog.Pointer{StorageOf: v.Pointer.UUID})
	v.Attachment = w.registration(v.Pointer.UUID, name, s.Pointer.UUID, reads)
	w.commit(v, s)
	w.exec(`UPDATE materialized_view SET debounce_ms = 0 WHERE view_uuid = $1`, v.Pointer.UUID)
	return v.Pointer.UUID
}

// freshView is a view whose first refresh is done.
func (w *world) freshView(name string, reads ...string) string {
	w.Helper()
	id := w.view(name, reads...)
	job := w.fetch(id)
	if again, _ := w.finish(job, w.attempt(id, mv.OutcomeDone)); again {
		w.Fatalf("view %s wants another run", name)
	}
	return id
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

const testProcess = "6f1d3a52-9d55-4f5e-8ac5-1f2d5a0f4f10"

// fetch takes the view's available job as River does.
func (w *world) fetch(viewUUID string) int64 {
	w.Helper()
	return query[int64](w, `UPDATE river_job SET state = 'running', attempt = attempt + 1, attempted_at = now(),
		attempted_by = array_append(attempted_by, $2) WHERE kind = 'mv_refresh' AND args->>'view_id' = $1 AND state = 'available'
		RETURNING id`, viewUUID, testProcess)
}

// attempt reads the view's state now and makes an attempt of it.
func (w *world) attempt(viewUUID string, outcome mv.Outcome) mv.Attempt {
	w.Helper()
	s, err := w.reg.State(w.Context(), viewUUID)
	w.check(err)
	a := mv.Attempt{
		ViewUUID: viewUUID, Inputs: s.InputsOf(viewUUID), At: s.At, Outcome: outcome, Generation: s.Views[viewUUID].Generation,
	}
	switch outcome {
	case mv.OutcomeDone:
		a.Refresh = &mv.Refresh{ID: uuid.NewString(), Status: mv.RefreshSucceeded, Generation: a.Generation, Started: s.At}
	case mv.OutcomeFailed, mv.OutcomePermanent:
		a.Refresh = &mv.Refresh{ID: uuid.NewString(), Status: mv.RefreshFailed, Error: "it broke", Generation: a.Generation, Started: s.At}
	}
	return a
}

// end runs the finish transaction up to, but without, its commit.
func (w *world) end(ctx context.Context, tx pgx.Tx, job int64, a mv.Attempt) (again bool, wake []string, err error) {
	again, wake, err = w.reg.FinishAttempt(ctx, tx, a)
	if err != nil {
		return again, wake, err
	}
	_, err = tx.Exec(ctx, `UPDATE river_job SET state = 'completed', finalized_at = now() WHERE id = $1 AND state = 'running'`, job)
	if err != nil {
		return again, wake, err
	}
	all := wake
	if again {
		all = append(all, a.ViewUUID)
	}
	return again, wake, w.queue.Enqueue(ctx, tx, all)
}

func (w *world) finish(job int64, a mv.Attempt) (again bool, wake []string) {
	w.Helper()
	w.check(pgx.BeginFunc(w.Context(), w.pool, func(tx pgx.Tx) (err error) {
		again, wake, err = w.end(w.Context(), tx, job, a)
		return err
	}))
	return again, wake
}

type ended struct {
	again bool
	wake  []string
	err   error
}

// finishAside finishes in another goroutine, for a test that holds a lock it waits for.
func (w *world) finishAside(job int64, a mv.Attempt) <-chan ended {
	done := make(chan ended, 1)
	go func() {
		var e ended
		e.err = pgx.BeginFunc(w.Context(), w.pool, func(tx pgx.Tx) (err error) {
			e.again, e.wake, err = w.end(w.Context(), tx, job, a)
			return err
		})
		done <- e
	}()
	return done
}

func (w *world) commitAside(changes ...catalog.Change) <-chan error {
	done := make(chan error, 1)
	go func() { done <- w.store.Commit(w.Context(), changes) }()
	return done
}

// begin opens a transaction that the test holds.
func (w *world) begin() pgx.Tx {
	w.Helper()
	tx, err := w.pool.Begin(w.Context())
	w.check(err)
	w.Cleanup(func() { _ = tx.Rollback(context.WithoutCancel(w.Context())) })
	return tx
}

// change carries out a change in tx as the store does, without committing it.
func (w *world) change(tx pgx.Tx, c catalog.Change) {
	w.Helper()
	p := c.Pointer
	var err error
	switch c.Op {
	case catalog.OpCreate:
		_, err = tx.Exec(w.Context(), `INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name, metadata_location, object_uuid, iceberg_type)
			VALUES ($1, 'demo', $2, $3, $4, 'TABLE')`, p.Warehouse, p.Ident.Name, p.MetadataLocation, p.UUID)
	case catalog.OpSwap:
		_, err = tx.Exec(w.Context(), `UPDATE iceberg_tables SET metadata_location = $3 WHERE catalog_name = $1 AND table_namespace = 'demo'
			AND table_name = $2`, p.Warehouse, p.Ident.Name, p.MetadataLocation)
	default:
		w.Fatalf("op %d", c.Op)
	}
	w.check(err)
	var batch pgx.Batch
	follow := w.hook.Committed(&batch, []catalog.Change{c})
	w.check(tx.SendBatch(w.Context(), &batch).Close())
	w.check(follow(w.Context(), tx))
}

// eventually polls for a condition that another goroutine or transaction brings about.
func (w *world) eventually(what string, cond func() bool) {
	w.Helper()
	deadline := time.After(time.Minute)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-deadline:
			w.Fatalf("never happened: %s", what)
		case <-tick.C:
		}
	}
}

// waitBlocked waits until a session of this database waits for a lock.
func (w *world) waitBlocked() {
	w.Helper()
	w.eventually("a session waits for a lock", func() bool {
		return query[bool](w, `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock')`)
	})
}

func (w *world) live(viewUUID string) int {
	w.Helper()
	return query[int](w, `SELECT count(*) FROM river_job WHERE kind = 'mv_refresh' AND args->>'view_id' = $1
		AND state IN ('available', 'pending', 'running', 'retryable', 'scheduled')`, viewUUID)
}

func (w *world) stale(viewUUID string) bool {
	w.Helper()
	return query[bool](w, `SELECT stale_since IS NOT NULL FROM materialized_view WHERE view_uuid = $1`, viewUUID)
}

// want checks the two facts that no interleaving may lose.
func (w *world) want(viewUUID string, stale bool, live int) {
	w.Helper()
	if got := w.stale(viewUUID); got != stale {
		w.Errorf("stale = %t, want %t", got, stale)
	}
	if got := w.live(viewUUID); got != live {
		w.Errorf("live jobs = %d, want %d", got, live)
	}
}

func (w *world) overdue() string {
	w.Helper()
	ids, err := w.reg.Overdue(w.Context())
	w.check(err)
	return strings.Join(ids, " ")
}
