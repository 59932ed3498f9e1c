package postgres_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/catalogd/catalogd/catalog"
	"github.com/catalogd/catalogd/catalog/postgres/pgtest"
	"github.com/catalogd/catalogd/catalog/storetest"
)

// TestRename_SourceReplaced: a rename that waits while its source goes, and another table
// takes the name, found no table. It must not blame the namespace, which is there.
func TestRename_SourceReplaced(t *testing.T) {
	t.Parallel()
	ctx, pool := t.Context(), pgtest.Pool(t)
	s := open(t, pool, nil)
	ns := catalog.Namespace{"ns"}
	if err := s.CreateNamespace(ctx, storetest.Warehouse, ns, nil); err != nil {
		t.Fatal(err)
	}
	row := func(name string, n int) catalog.Pointer {
		return catalog.Pointer{
			Warehouse: storetest.Warehouse, Ident: catalog.TableIdent{Namespace: ns, Name: name}, Type: catalog.TypeTable,
			UUID: fmt.Sprintf("7f6e7a5e-4a0e-4b57-8a7e-0b8f6a3c9d1%d", n), MetadataLocation: fmt.Sprintf("m%d", n), Location: fmt.Sprintf("file:///w/%d", n),
		}
	}
	for i, name := range []string{"a", "b"} {
		p := row(name, i)
		if err := s.Commit(ctx, []catalog.Change{{Op: catalog.OpCreate, Pointer: p, Document: catalog.NewDocument(p.MetadataLocation, []byte(`{}`), nil)}}); err != nil {
			t.Fatal(err)
		}
	}
	other, err := pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Rollback(context.WithoutCancel(ctx))
	for _, change := range [][2]string{{"a", "c"}, {"b", "a"}} {
		if _, err := other.Exec(ctx, `UPDATE iceberg_tables SET table_name = $2 WHERE table_name = $1`, change[0], change[1]); err != nil {
			t.Fatal(err)
		}
	}
	renamed := make(chan error, 1)
	go func() {
		renamed <- s.Commit(ctx, []catalog.Change{{Op: catalog.OpRename, Pointer: row("a", 0), To: catalog.TableIdent{Namespace: ns, Name: "d"}}})
	}()
	waitForLock(t, pool)
	if err := other.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if err := <-renamed; catalog.KindOf(err) != catalog.KindNoSuchTable {
		t.Errorf("rename = %v, want no such table", err)
	}
}

// waitForLock returns when some connection waits for a lock.
func waitForLock(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		var waiting bool
		err := pool.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock')`).Scan(&waiting)
		if err != nil {
			t.Fatal(err)
		}
		if waiting {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("nobody waits for the lock")
		}
		<-time.After(10 * time.Millisecond) // between two looks at a condition
	}
}
