// Package migrations holds the SQL migrations of the catalog and applies them, followed
// by River's own.
package migrations

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/golang-migrate/migrate/v4"
	migratepgx "github.com/golang-migrate/migrate/v4/database/pgx/v5"
	"github.com/golang-migrate/migrate/v4/source/iofs"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

//go:embed *.sql
var files embed.FS

// ErrNewer is returned by [Check] for a database that a newer catalogd has migrated.
var ErrNewer = errors.New("the database schema is newer than this catalogd: upgrade this process")

// ErrOlder is returned by [Check] for a database that still has to be migrated.
var ErrOlder = errors.New("the database schema is older than this catalogd: run catalogd migrate")

// Latest is the version of the newest migration in this binary.
func Latest() int {
	latest := 0
	names, err := fs.Glob(files, "*.up.sql")
	if err != nil {
		return 0 // the pattern is constant and well-formed
	}
	for _, name := range names {
		number, _, _ := strings.Cut(name, "_")
		if v, err := strconv.Atoi(number); err == nil && v > latest {
			latest = v
		}
	}
	return latest
}

// Up brings the database behind pool to the newest schema: ours, then River's. It is safe
// to call from several processes at once, since both take an advisory lock.
func Up(ctx context.Context, pool *pgxpool.Pool) error {
	if err := run(pool, (*migrate.Migrate).Up); err != nil {
		return err
	}
	rm, err := rivermigrate.New(riverpgxv5.New(pool), nil)
	if err != nil {
		return fmt.Errorf("river migrations: %w", err)
	}
	if _, err := rm.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return fmt.Errorf("river schema: %w", err)
	}
	return nil
}

// Down removes the catalog's own schema. Only tests call it: it drops every row.
func Down(_ context.Context, pool *pgxpool.Pool) error {
	return run(pool, (*migrate.Migrate).Down)
}

// Check reports whether the database has exactly the schema that this binary was built
// for: nil, [ErrOlder] or [ErrNewer].
func Check(ctx context.Context, pool *pgxpool.Pool) error {
	var exists bool
	if err := pool.QueryRow(ctx, `SELECT to_regclass('schema_migrations') IS NOT NULL`).Scan(&exists); err != nil {
		return fmt.Errorf("read schema version: %w", err)
	}
	if !exists {
		return ErrOlder
	}
	var (
		version int
		dirty   bool
	)
	if err := pool.QueryRow(ctx, `SELECT version, dirty FROM schema_migrations`).Scan(&version, &dirty); err != nil {
		return fmt.Errorf("read schema version: %w", err)
	}
	switch {
	case dirty:
		return fmt.Errorf("migration %d stopped half-way: restore a backup or repair it, then run catalogd migrate", version)
	case version > Latest():
		return ErrNewer
	case version < Latest():
		return ErrOlder
	}
	return nil
}

func run(pool *pgxpool.Pool, direction func(*migrate.Migrate) error) (err error) {
	src, err := iofs.New(files, ".")
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	db := stdlib.OpenDBFromPool(pool)
	drv, err := migratepgx.WithInstance(db, &migratepgx.Config{})
	if err != nil {
		return errors.Join(fmt.Errorf("catalog schema: %w", err), db.Close())
	}
	m, err := migrate.NewWithInstance("iofs", src, "pgx5", drv)
	if err != nil {
		return errors.Join(fmt.Errorf("catalog schema: %w", err), drv.Close())
	}
	defer func() {
		srcErr, dbErr := m.Close()
		err = errors.Join(err, srcErr, dbErr)
	}()
	if err := direction(m); err != nil && !errors.Is(err, migrate.ErrNoChange) {
		return fmt.Errorf("catalog schema: %w", err)
	}
	return nil
}
