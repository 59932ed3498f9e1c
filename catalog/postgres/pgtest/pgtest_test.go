package pgtest_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/catalogd/catalogd/catalog/postgres/pgtest"
)

const tablesSQL = `SELECT count(*) FROM information_schema.tables WHERE table_schema = 'public'`

// TestPool_Isolated checks that two tests never see each other's rows.
func TestPool_Isolated(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	a, b := pgtest.Pool(t), pgtest.Pool(t)
	if _, err := a.Exec(ctx, `CREATE TABLE only_here (x int)`); err != nil {
		t.Fatal(err)
	}
	for pool, want := range map[*pgxpool.Pool]bool{a: true, b: false} {
		var got bool
		if err := pool.QueryRow(ctx, `SELECT to_regclass('only_here') IS NOT NULL`).Scan(&got); err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("table exists = %v, want %v", got, want)
		}
	}
}

func TestPool_Migrated(t *testing.T) {
	t.Parallel()
	var tables int
	if err := pgtest.Pool(t).QueryRow(t.Context(), tablesSQL).Scan(&tables); err != nil {
		t.Fatal(err)
	}
	if tables == 0 {
		t.Error("the database has no tables, want the migrated schema")
	}
}

func TestEmpty(t *testing.T) {
	t.Parallel()
	var tables int
	if err := pgtest.Empty(t).QueryRow(t.Context(), tablesSQL).Scan(&tables); err != nil {
		t.Fatal(err)
	}
	if tables != 0 {
		t.Errorf("the database has %d tables, want none", tables)
	}
}

// TestPool_Dropped checks that a test's database is gone when the test is over, also when
// somebody still has a connection to it.
func TestPool_Dropped(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	var name string
	var left *pgx.Conn
	t.Run("user", func(t *testing.T) {
		pool := pgtest.Pool(t)
		if err := pool.QueryRow(ctx, `SELECT current_database()`).Scan(&name); err != nil {
			t.Fatal(err)
		}
		var err error
		if left, err = pgx.Connect(ctx, pool.Config().ConnString()); err != nil {
			t.Fatal(err)
		}
	})
	if err := left.Ping(ctx); err == nil {
		t.Error("a connection survived the drop of its database")
	}
	var exists bool
	err := pgtest.Pool(t).QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)`, name).Scan(&exists)
	if err != nil {
		t.Fatal(err)
	}
	if exists {
		t.Errorf("database %s still exists", name)
	}
}

func BenchmarkPool(b *testing.B) {
	for b.Loop() {
		b.Run("clone", func(b *testing.B) { pgtest.Pool(b) })
	}
}
