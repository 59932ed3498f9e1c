package main

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
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

	path     string // of the program under test
	server   *process
	catalog  *client.Catalog
	database measure.Meter // of the server's connections

	javaCommand []string // of the reference server; nil: found
	java        *target  // nil until it is wanted
	noJava      string   // why there is none
}

// Databases of the servers, before our suffix: the CPU time of connections is told apart
// by their names.
const (
	serverDatabase    = "bench_catalogd_"
	memoryDatabase    = "bench_memory_" // of the server whose memory is watched
	floorDatabase     = "bench_floor_"
	referenceDatabase = "bench_reference_"
	namespace         = "bench"
)

// newBench starts everything. The returned function ends it and is never nil.
func newBench(ctx context.Context, o options, rep *report) (*bench, func() error, error) {
	b := &bench{
		scale: o.scale, data: o.data, rep: rep, env: o.env, javaCommand: o.reference, stop: &stopper{}, databaseURL: o.database,
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
	if b.path, err = b.binary(ctx, o.catalogd); err != nil {
		return err
	}
	t, err := b.startCatalogd(ctx, "catalogd", serverDatabase)
	if err != nil {
		return err
	}
	b.server, b.catalog, b.database = t.process, t.catalog, t.database
	return b.catalog.CreateNamespace(ctx, namespace)
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
	for _, name := range []string{serverDatabase + b.suffix, memoryDatabase + b.suffix, floorDatabase + b.suffix, referenceDatabase + b.suffix} {
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
		Dir: filepath.Join(b.dir, "cluster"), Durable: true, TCP: true, // Java knows no other way, and all shall go the same
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
