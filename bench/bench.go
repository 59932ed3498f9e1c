package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/catalogd/catalogd/bench/client"
	"github.com/catalogd/catalogd/bench/floor"
	"github.com/catalogd/catalogd/bench/measure"
	"github.com/catalogd/catalogd/catalog/postgres/pgserver"
)

// bench is what all parts share: a folder, a database cluster and the server under test.
type bench struct {
	scale scale
	data  string
	rep   *report
	dir   string
	stop  *stopper

	env []string // of the server under test

	databaseURL string        // of the cluster; a secret
	suffix      string        // of our databases' names
	admin       *pgxpool.Pool // for looking at the cluster
	floorPool   *pgxpool.Pool

	server   *process
	catalog  *client.Catalog
	database measure.Meter // of the server's connections
}

// Databases of the servers, before our suffix: the CPU time of connections is told apart
// by their names.
const (
	serverDatabase = "bench_catalogd_"
	floorDatabase  = "bench_floor_"
	namespace      = "bench"
)

// newBench starts everything. The returned function ends it and is never nil.
func newBench(ctx context.Context, o options, rep *report) (*bench, func() error, error) {
	b := &bench{
		scale: o.scale, data: o.data, rep: rep, env: o.env, stop: &stopper{}, databaseURL: o.database,
		suffix: strings.ReplaceAll(uuid.NewString(), "-", ""),
	}
	return b, b.stop.stop, b.begin(ctx, o)
}

func (b *bench) begin(ctx context.Context, o options) error {
	if err := b.makeDir(o.dir); err != nil {
		return err
	}
	if err := b.startPostgres(ctx); err != nil {
		return err
	}
	var err error
	if b.rep.FsyncMillis, err = fsyncTime(b.dir); err != nil {
		return err
	}
	b.rep.header()
	path, err := b.binary(ctx, o.catalogd)
	if err != nil {
		return err
	}
	return b.startCatalogd(ctx, path)
}

// makeDir makes a folder of our own, below parent if that is given.
func (b *bench) makeDir(parent string) error {
	if parent != "" {
		if err := os.MkdirAll(parent, 0o755); err != nil {
			return err
		}
	}
	dir, err := os.MkdirTemp(parent, "catalogd-bench-")
	if err != nil {
		return err
	}
	b.stop.add(func() error { return os.RemoveAll(dir) })
	if b.dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	// Where root runs this, the database's account must be able to pass through.
	return os.Chmod(dir, 0o711)
}

// startPostgres runs a cluster unless one is given, and makes a database for each server.
func (b *bench) startPostgres(ctx context.Context) error {
	if b.databaseURL == "" {
		if err := b.startCluster(ctx); err != nil {
			return err
		}
	}
	var err error
	if b.admin, err = pgxpool.New(ctx, b.databaseURL); err != nil {
		return errors.New("the database URL cannot be used") // the driver's words could hold the password
	}
	b.stop.add(closer(b.admin))
	for _, name := range []string{serverDatabase + b.suffix, floorDatabase + b.suffix} {
		if _, err := b.admin.Exec(ctx, "CREATE DATABASE "+name); err != nil {
			return err
		}
		b.stop.add(func() error {
			patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopPatience)
			defer cancel()
			_, err := b.admin.Exec(patience, "DROP DATABASE "+name+" WITH (FORCE)")
			return err
		})
	}
	if err := b.admin.QueryRow(ctx, "SELECT current_setting('server_version') || CASE current_setting('fsync') WHEN 'on' THEN '' ELSE ', not durable' END").
		Scan(&b.rep.Postgres); err != nil {
		return err
	}
	u, err := b.databaseAt(floorDatabase)
	if err != nil {
		return err
	}
	if b.floorPool, err = pgxpool.New(ctx, u); err != nil {
		return err
	}
	b.stop.add(closer(b.floorPool))
	return floor.Setup(ctx, b.floorPool)
}

func (b *bench) startCluster(ctx context.Context) error {
	srv, err := pgserver.Start(ctx, pgserver.Config{
		Dir: filepath.Join(b.dir, "cluster"), Durable: true,
		Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if err != nil {
		return err
	}
	b.stop.add(func() error {
		patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopPatience)
		defer cancel()
		return srv.Stop(patience)
	})
	b.databaseURL = srv.URL()
	return nil
}

func closer(pool *pgxpool.Pool) func() error {
	return func() error {
		pool.Close()
		return nil
	}
}

// databaseAt is the URL of one of our databases.
func (b *bench) databaseAt(name string) (string, error) {
	u, err := url.Parse(b.databaseURL)
	if err != nil {
		return "", errors.New("the cluster's URL cannot be read") // the parser's words hold the password
	}
	u.Path = "/" + name + b.suffix
	return u.String(), nil
}

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

func (b *bench) startCatalogd(ctx context.Context, path string) error {
	databaseURL, err := b.databaseAt(serverDatabase)
	if err != nil {
		return err
	}
	warehouse := filepath.Join(b.dir, "warehouse")
	if err := os.Mkdir(warehouse, 0o755); err != nil {
		return err
	}
	settings := append([]string{
		"CATALOGD_DATABASE_URL=" + databaseURL, "CATALOGD_WAREHOUSE=file://" + warehouse,
		"CATALOGD_ENGINE_SPILL_DIR=" + filepath.Join(b.dir, "spill"),
	}, b.env...)
	migrate := exec.CommandContext(ctx, path, "migrate")
	migrate.Env = append(os.Environ(), settings...)
	if out, err := migrate.CombinedOutput(); err != nil {
		return fmt.Errorf("catalogd migrate: %w\n%s", err, out)
	}
	b.server, err = start(ctx, command{
		name: "catalogd", path: path, args: []string{"serve", "--listen", "127.0.0.1:0"}, env: settings,
		log: filepath.Join(b.dir, "catalogd.log"),
	})
	if err != nil {
		return err
	}
	b.stop.add(b.server.stop)
	if err := b.server.ready(ctx, "/readyz"); err != nil {
		return err
	}
	if b.catalog, err = client.Open(ctx, b.server.url); err != nil {
		return err
	}
	b.database = b.connections(serverDatabase)
	return b.catalog.CreateNamespace(ctx, namespace)
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

// fsyncProbes is how many files tell what durability costs here.
const fsyncProbes = 31

// fsyncTime is the median time to write 4 KB to a new file and make it durable.
func fsyncTime(dir string) (float64, error) {
	var times []time.Duration
	for range fsyncProbes {
		d, err := fsyncOnce(dir)
		if err != nil {
			return 0, err
		}
		times = append(times, d)
	}
	slices.Sort(times)
	return measure.Milliseconds(measure.Percentile(times, 50)), nil
}

func fsyncOnce(dir string) (time.Duration, error) {
	begin := time.Now()
	f, err := os.CreateTemp(dir, "fsync-*")
	if err != nil {
		return 0, err
	}
	_, err = f.Write(make([]byte, 4<<10))
	err = errors.Join(err, f.Sync())
	took := time.Since(begin)
	return took, errors.Join(err, f.Close(), os.Remove(f.Name()))
}
