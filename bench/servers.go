package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/catalogd/catalogd/bench/client"
	"github.com/catalogd/catalogd/bench/floor"
	"github.com/catalogd/catalogd/bench/measure"
)

// binary is the program under test, built if none is given, so that it is never an old one.
func (b *bench) binary(ctx context.Context, given string) (string, error) {
	if given != "" {
		return filepath.Abs(given)
	}
	path := filepath.Join(b.dir, "catalogd")
	build := exec.CommandContext(ctx, "go", "build", "-tags", "duckdb_arrow", "-o", path, "github.com/catalogd/catalogd/cmd/catalogd")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build catalogd: %w\n%s", err, out)
	}
	return path, nil
}

// target is a catalog server that answers.
type target struct {
	name     string
	process  *process
	catalog  *client.Catalog
	database measure.Meter // of its database connections
}

// contender is the target in a contest.
func (t *target) contender(op measure.Op, begin func(context.Context, int) (func(context.Context) error, error)) measure.Contender {
	return measure.Contender{Name: t.name, Op: op, Begin: begin, CPU: t.process.cpu(), Database: t.database}
}

// subject is the server under test as it runs all the time.
func (b *bench) subject() *target {
	return &target{name: "catalogd", process: b.server, catalog: b.catalog, database: b.database}
}

// startCatalogd runs the program under test on one of our databases, with more settings
// than those of the run.
func (b *bench) startCatalogd(ctx context.Context, name, database string, env ...string) (*target, error) {
	databaseURL, err := b.databaseAt(database)
	if err != nil {
		return nil, err
	}
	warehouse := b.warehouse(database)
	if err := os.MkdirAll(warehouse, 0o755); err != nil {
		return nil, err
	}
	settings := slices.Concat([]string{
		"CATALOGD_DATABASE_URL=" + databaseURL, "CATALOGD_WAREHOUSE=file://" + warehouse,
		"CATALOGD_ENGINE_SPILL_DIR=" + filepath.Join(b.dir, "spill"),
	}, b.env, env)
	migrate := exec.CommandContext(ctx, b.path, "migrate") //nolint:gosec // the program under test is the caller's choice
	migrate.Env = append(os.Environ(), settings...)
	if out, err := migrate.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("catalogd migrate: %w\n%s", err, out)
	}
	p, err := start(ctx, command{
		name: name, path: b.path, args: []string{"serve", "--listen", "127.0.0.1:0"}, env: settings,
		log: filepath.Join(b.dir, strings.Map(plainName, name)+".log"),
	})
	if err != nil {
		return nil, err
	}
	b.stop.add(p.stop)
	if err := p.ready(ctx, "/readyz"); err != nil {
		return nil, err
	}
	c, err := client.Open(ctx, p.url)
	if err != nil {
		return nil, err
	}
	return &target{name: name, process: p, catalog: c, database: b.connections(database)}, nil
}

// warehouse is the folder of the catalog with that database.
func (b *bench) warehouse(database string) string {
	return filepath.Join(b.dir, "warehouse", strings.Trim(database, "_"))
}

func plainName(r rune) rune {
	if r == ' ' || r == ',' {
		return '-'
	}
	return r
}

// startFloor runs this program again as a floor server.
func (b *bench) startFloor(ctx context.Context, name string, args ...string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	u, err := b.databaseAt(floorDatabase)
	if err != nil {
		return nil, err
	}
	p, err := start(ctx, command{
		name: name, path: self, args: append([]string{floorCommand}, args...),
		env: []string{floor.EnvDatabaseURL + "=" + u}, log: filepath.Join(b.dir, name+".log"),
	})
	if err != nil {
		return nil, err
	}
	b.stop.add(p.stop)
	return p, nil
}

// connections reads the CPU time of a database's connections.
func (b *bench) connections(database string) measure.Meter {
	return measure.Processes(func(ctx context.Context) ([]int, error) {
		rows, err := b.admin.Query(ctx, `SELECT pid FROM pg_stat_activity WHERE datname = $1`, database+b.suffix)
		if err != nil {
			return nil, err
		}
		return pgx.CollectRows(rows, pgx.RowTo[int])
	})
}
