package postgres_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/catalogd/catalogd/catalog"
	"github.com/catalogd/catalogd/catalog/postgres"
	"github.com/catalogd/catalogd/catalog/postgres/pgtest"
	"github.com/catalogd/catalogd/catalog/storetest"
)

// TestAdmission: when every connection is busy, a request is told so in time, what runs in
// the background still gets one, and all is well again afterwards.
func TestAdmission(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	cfg.MaxConns = 4
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	s := open(t, pool, nil)
	ns := catalog.Namespace{"ns"}
	if err := s.CreateNamespace(t.Context(), storetest.Warehouse, ns, nil); err != nil {
		t.Fatal(err)
	}
	blocker, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = blocker.Close(context.WithoutCancel(t.Context())) })
	lock, err := blocker.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lock.Exec(t.Context(), `LOCK TABLE iceberg_namespace_properties IN ACCESS EXCLUSIVE MODE`); err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for range 3 { // all that requests may hold of four
		group.Go(func() {
			if _, err := s.Namespace(t.Context(), storetest.Warehouse, ns); err != nil {
				t.Errorf("a request that held a connection: %v", err)
			}
		})
	}
	watcher, err := pgx.Connect(t.Context(), url) // the activity is a snapshot inside a transaction
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = watcher.Close(context.WithoutCancel(t.Context())) })
	for deadline := time.Now().Add(time.Minute); waiting(t, watcher) != 3; {
		if time.Now().After(deadline) {
			t.Fatal("three sessions never waited for the lock")
		}
	}
	_, err = s.Warehouse(t.Context(), storetest.Warehouse) // needs nothing but a connection
	if catalog.KindOf(err) != catalog.KindUnavailable || !strings.Contains(err.Error(), "busy") {
		t.Errorf("a request too many = %v, want KindUnavailable", err)
	}
	if _, err := pool.Exec(t.Context(), `SELECT 1`); err != nil {
		t.Errorf("the background work: %v", err)
	}
	if err := lock.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	group.Wait()
	if _, err := s.Warehouse(t.Context(), storetest.Warehouse); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

func waiting(t *testing.T, conn *pgx.Conn) (n int) {
	t.Helper()
	err := conn.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity
		WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

var _ catalog.Store = (*postgres.Store)(nil)
