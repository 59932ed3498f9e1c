package postgres_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/catalogd/catalogd/catalog"
	"github.com/catalogd/catalogd/catalog/postgres"
	"github.com/catalogd/catalogd/catalog/postgres/pgtest"
	"github.com/catalogd/catalogd/catalog/storetest"
)

func open(t *testing.T, pool *pgxpool.Pool, hook postgres.Hook) *postgres.Store {
	t.Helper()
	s := postgres.New(pool, hook)
	if err := s.EnsureWarehouse(t.Context(), catalog.Warehouse{Name: storetest.Warehouse, Location: "file:///w"}); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestStore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) catalog.Store {
		t.Helper()
		return open(t, pgtest.Pool(t), nil)
	})
}

// refusing is a hook that fails.
type refusing struct{ acknowledged atomic.Bool }

var errRefused = errors.New("refused")

func (*refusing) Committed(*pgx.Batch, []catalog.Change) func(context.Context, pgx.Tx) error {
	return func(context.Context, pgx.Tx) error { return errRefused }
}

func (r *refusing) Acknowledged([]catalog.Change) { r.acknowledged.Store(true) }

// TestHookIsPartOfTheCommit: a change is visible if and only if its hook succeeded.
func TestHookIsPartOfTheCommit(t *testing.T) {
	t.Parallel()
	hook := &refusing{}
	s := open(t, pgtest.Pool(t), hook)
	ns := catalog.Namespace{"ns"}
	if err := s.CreateNamespace(t.Context(), storetest.Warehouse, ns, nil); err != nil {
		t.Fatal(err)
	}
	id := catalog.TableIdent{Namespace: ns, Name: "t"}
	err := s.Commit(t.Context(), []catalog.Change{{
		Op: catalog.OpCreate, Document: catalog.NewDocument("m0", []byte(`{}`), nil),
		Pointer: catalog.Pointer{Warehouse: storetest.Warehouse, Ident: id, Type: catalog.TypeTable, UUID: "7f6e7a5e-4a0e-4b57-8a7e-0b8f6a3c9d11", MetadataLocation: "m0"},
	}})
	if err == nil {
		t.Fatal("Commit succeeded although its hook failed")
	}
	if _, err := s.Load(t.Context(), storetest.Warehouse, id, catalog.TypeTable, ""); catalog.KindOf(err) != catalog.KindNoSuchTable {
		t.Errorf("Load = %v, want no such table", err)
	}
	if hook.acknowledged.Load() {
		t.Error("a commit that failed was acknowledged")
	}
}

func TestEnsureWarehouse(t *testing.T) {
	t.Parallel()
	s := open(t, pgtest.Pool(t), nil)
	if err := s.EnsureWarehouse(t.Context(), catalog.Warehouse{Name: storetest.Warehouse, Location: "file:///w"}); err != nil {
		t.Errorf("again = %v", err)
	}
	err := s.EnsureWarehouse(t.Context(), catalog.Warehouse{Name: storetest.Warehouse, Location: "file:///elsewhere"})
	if catalog.KindOf(err) != catalog.KindConflict {
		t.Errorf("at another location = %v, want a conflict", err)
	}
	if err := s.EnsureWarehouse(t.Context(), catalog.Warehouse{Name: "second", Location: "file:///s"}); err != nil {
		t.Fatal(err)
	}
	if w, err := s.Warehouse(t.Context(), ""); err != nil || w.Name != storetest.Warehouse {
		t.Errorf("default = %v, %v, want the first one", w, err)
	}
}

// TestUnreachable: a database that is gone is unavailable, never an internal error.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	s := open(t, pool, nil)
	pool.Close()
	id := catalog.TableIdent{Namespace: catalog.Namespace{"ns"}, Name: "t"}
	if _, err := s.Load(t.Context(), storetest.Warehouse, id, catalog.TypeTable, ""); catalog.KindOf(err) != catalog.KindUnavailable {
		t.Errorf("Load = %v", err)
	}
	if err := s.Commit(t.Context(), []catalog.Change{{Op: catalog.OpDrop, Pointer: catalog.Pointer{Ident: id}}}); catalog.KindOf(err) != catalog.KindUnavailable {
		t.Errorf("Commit = %v", err)
	}
}

// TestReadsSurviveDeadConnections: after the server has ended all connections, the next
// load works, although every connection in the pool is dead.
func TestReadsSurviveDeadConnections(t *testing.T) {
	t.Parallel()
	ctx, pool := t.Context(), pgtest.Pool(t)
	s := open(t, pool, nil)
	id := catalog.TableIdent{Namespace: catalog.Namespace{"ns"}, Name: "t"}
	load := func() catalog.Kind {
		_, err := s.Load(ctx, storetest.Warehouse, id, catalog.TypeTable, "")
		return catalog.KindOf(err)
	}
	if got := load(); got != catalog.KindNoSuchTable {
		t.Fatalf("Load: kind %d", got)
	}
	other, err := pgx.ConnectConfig(ctx, pool.Config().ConnConfig)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close(ctx)
	_, err = other.Exec(ctx, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`)
	if err != nil {
		t.Fatal(err)
	}
	if got := load(); got != catalog.KindNoSuchTable {
		t.Errorf("Load on a dead connection: kind %d, want the answer of a new one", got)
	}
}
