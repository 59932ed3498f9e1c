// Package pgtest gives each test its own PostgreSQL database, migrated and empty, in
// about 20 ms: it is cloned from a template that the test binary makes once.
//
// The server is the one that CATALOGD_TEST_DATABASE_URL names (a superuser's URL, or one
// of a role that may create databases). Without that variable the binary starts its own
// from the installed PostgreSQL, or from a fetched one; it ends with the test process, and
// nothing of it stays behind, however the process ends.
package pgtest

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/catalogd/catalogd/migrations"
)

// maxConns bounds a test's pool, so that many parallel tests fit into one server.
const maxConns = 8

// Pool returns a pool on a fresh migrated database, which is dropped when the test ends.
// Its Config().ConnString() is the database's URL.
func Pool(tb testing.TB) *pgxpool.Pool {
	tb.Helper()
	return connect(tb, URL(tb))
}

// URL returns the connection string of a fresh migrated database, which is dropped when
// the test ends.
func URL(tb testing.TB) string {
	tb.Helper()
	tmpl, err := template()
	if err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
	return create(tb, tmpl)
}

// Empty returns a pool on a fresh database without any schema, for tests of migrations.
func Empty(tb testing.TB) *pgxpool.Pool {
	tb.Helper()
	return connect(tb, create(tb, "template0"))
}

// template makes the database that migrated ones are cloned from.
var template = sync.OnceValues(func() (string, error) {
	ctx := context.Background()
	name := newName("tmpl")
	if err := admin(ctx, "CREATE DATABASE "+name+" TEMPLATE template0 STRATEGY wal_log"); err != nil {
		return "", err
	}
	dsn, err := databaseURL(name)
	if err != nil {
		return "", err
	}
	pool, err := pgxpool.New(ctx, dsn)
	if err != nil {
		return "", err
	}
	defer pool.Close() // a template with a connection cannot be cloned
	if err := migrations.Up(ctx, pool); err != nil {
		return "", fmt.Errorf("migrate the template database: %w", err)
	}
	return name, nil
})

// create clones tmpl and returns the new database's URL.
func create(tb testing.TB, tmpl string) string {
	tb.Helper()
	name := newName("t")
	dsn, err := databaseURL(name)
	if err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
	if err := admin(tb.Context(), "CREATE DATABASE "+name+" TEMPLATE "+tmpl+" STRATEGY wal_log"); err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
	tb.Cleanup(func() {
		// The test's own context is over by now.
		if err := admin(context.Background(), "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
			tb.Errorf("pgtest: %v", err)
		}
	})
	return dsn
}

// connect opens a pool that is closed before its database is dropped.
func connect(tb testing.TB, dsn string) *pgxpool.Pool {
	tb.Helper()
	cfg, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
	cfg.MaxConns = maxConns
	pool, err := pgxpool.NewWithConfig(context.Background(), cfg) // it outlives the test's context, until Cleanup
	if err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
	tb.Cleanup(func() {
		closed := make(chan struct{})
		go func() { pool.Close(); close(closed) }()
		select {
		case <-closed:
		case <-time.After(10 * time.Second):
			tb.Errorf("pgtest: %d connections were acquired and never released", pool.Stat().AcquiredConns())
		}
	})
	return pool
}

// prefix marks databases of ours on a server that is shared.
const prefix = "catalogd_test_"

// newName gives a database a name that tells when it was made, so that what a killed run
// left on a shared server can be swept.
func newName(kind string) string {
	return prefix + kind + "_" + strconv.FormatInt(time.Now().Unix(), 10) + "_" + strings.ToLower(rand.Text())[:12]
}

// databaseURL is the server's URL with another database in it.
func databaseURL(name string) (string, error) {
	base, err := server()
	if err != nil {
		return "", err
	}
	u, err := url.Parse(base)
	if err != nil || u.Scheme == "" {
		// What was given is not repeated: it may hold a password.
		return "", fmt.Errorf("%s: not a URL of the form postgres://user@host/database", envURL)
	}
	u.Path = "/" + name
	return u.String(), nil
}

// admin runs one statement on the server.
func admin(ctx context.Context, sql string) error {
	base, err := server()
	if err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, base)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, sql)
	if closeErr := conn.Close(ctx); err == nil {
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("%s: %w", sql, err)
	}
	return nil
}
