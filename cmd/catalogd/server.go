package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/catalogd/catalogd/api"
	"github.com/catalogd/catalogd/catalog"
	catalogpg "github.com/catalogd/catalogd/catalog/postgres"
	"github.com/catalogd/catalogd/catalog/purge"
	"github.com/catalogd/catalogd/catalog/scan"
	"github.com/catalogd/catalogd/catalog/storage"
	"github.com/catalogd/catalogd/jobs"
	"github.com/catalogd/catalogd/migrations"
	"github.com/catalogd/catalogd/mv"
	"github.com/catalogd/catalogd/mv/changes"
	"github.com/catalogd/catalogd/mv/exec/duckdb"
	mvpg "github.com/catalogd/catalogd/mv/postgres"
	"github.com/catalogd/catalogd/mv/publish"
)

// shutdownGrace is how long requests and refreshes may take to end after a signal.
const shutdownGrace = 20 * time.Second

// runsPerChild is how many refreshes an engine process makes before a fresh one takes its
// place; each has a DuckDB instance of its own. Starting a process costs a third of a
// second of CPU, more than most incremental refreshes.
const runsPerChild = 50

// manifestEntries bounds the decoded manifests that planning keeps in memory, about 2 KB
// each.
const manifestEntries = 30_000

// server is one process of catalogd, wired and listening.
type server struct {
	cfg      Config
	log      *slog.Logger
	pool     *pgxpool.Pool
	files    *storage.Files
	engine   *duckdb.Engine
	jobs     *jobs.Client
	http     *http.Server
	listener net.Listener
	instance string

	store     *catalogpg.Store
	reports   *catalog.Reporter
	warehouse catalog.Warehouse
	prepared  atomic.Bool // the database knows the warehouse
}

// newServer connects the parts. What it has opened is closed again if it fails.
func newServer(ctx context.Context, cfg Config, log *slog.Logger, instance string) (_ *server, err error) {
	limitMemory(cfg.CacheBytes)
	s := &server{cfg: cfg, log: log, instance: instance}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	// The address comes first: a port in use is the commonest mistake, and must not cost a
	// migration.
	if s.listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", cfg.Listen); err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w (choose another address with --listen)", cfg.Listen, err)
	}
	if s.pool, err = cfg.pool(ctx); err != nil {
		return nil, err
	}
	if cfg.Migrate {
		if err = migrations.Up(ctx, s.pool); err != nil {
			return nil, fmt.Errorf("migrate the database: %w", err)
		}
	}
	s.warehouse = catalog.Warehouse{Name: cfg.WarehouseName, Location: locationOf(cfg.Warehouse)}
	if s.files, err = storage.New(storage.Config{
		Roots:        cfg.roots(s.warehouse),
		AllowAnyFile: cfg.AnyLocation,
	}); err != nil {
		return nil, err
	}
	if err = s.wire(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// locationOf makes a URI of a plain path, since clients read table locations elsewhere.
func locationOf(warehouse string) string {
	if filepath.IsAbs(warehouse) {
		warehouse = "file://" + filepath.Clean(warehouse)
	}
	return strings.TrimRight(warehouse, "/")
}

// wire builds the catalog, the materialized views, the jobs and the HTTP server.
func (s *server) wire(ctx context.Context) error {
	var err error
	if s.engine, err = newEngine(s.cfg, s.log); err != nil {
		return err
	}
	queue, err := jobs.NewEnqueuer(s.pool, s.log)
	if err != nil {
		return err
	}
	registry := mvpg.New(s.pool)
	s.store = catalogpg.New(s.pool, jobs.NewHook(registry, queue, jobs.WithDropRetention(s.cfg.DropRetention)))
	service := catalog.NewService(catalog.Config{
		Store: s.store, Files: s.files, CacheBytes: s.cfg.CacheBytes, NoStat: s.cfg.NoStat, Log: s.log,
	})
	s.reports = catalog.NewReporter(s.store, s.log)
	service.SetReporter(s.reports)
	reader := changes.New(s.files.FS(), changes.WithCache(manifestEntries))
	publisher := publish.New(s.files.FS(), s.files)
	service.SetGuard(mv.NewGuard(mv.GuardConfig{
		Registry: registry, Catalog: service, Engine: s.engine, Publisher: publisher, Log: s.log,
	}))
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	refresher := mv.NewRefresher(mv.RefresherConfig{
		Registry: registry, Catalog: service, Sources: reader, Publisher: publisher,
		Engine: s.engine, Limits: s.cfg.limits(), Log: s.log, Observe: newRefreshMetrics(metrics).observe,
	})
	cleaner := mv.NewCleaner(mv.CleanerConfig{
		Registry: registry, Documents: service, Sweeper: publish.NewSweeper(s.files.FS(), s.files), Log: s.log,
	})
	planner := scan.NewService(scan.Config{
		Tables: service, Store: catalogpg.NewPlans(s.store, queue), Files: s.files.FS(), Log: s.log,
		Limits: scan.Limits{PageFiles: s.cfg.PlanPageFiles, AsyncFiles: s.cfg.PlanAsyncFiles},
	})
	if s.jobs, err = jobs.New(jobs.Config{
		Pool: s.pool, Log: s.log, Ledger: registry, Runner: refresher, Cleaner: cleaner, Planner: planner, Slots: s.cfg.RefreshSlots, Instance: s.instance,
		Dropped: s.store, Reports: s.store, Obsolete: purge.NewTrimmer(s.store, s.files, s.log),
		Purger: purge.New(purge.Config{Registry: s.store, Documents: service, FS: s.files.FS(), Files: s.files, Log: s.log}),
	}); err != nil {
		return err
	}
	views := mv.NewService(mv.ServiceConfig{
		Registry: registry, Requests: jobs.NewRequests(s.pool, registry, queue, s.jobs.Wake), Catalog: service, Engine: s.engine,
	})
	handler, err := api.New(api.Config{
		Catalog: service, Planner: planner, Views: views, Log: s.log, Ready: s.problems, Metrics: metrics,
		Warehouses: catalog.NewWarehouses(s.store, s.files, s.cfg.WarehouseBase), Life: service, Functions: service,
	})
	if err != nil {
		return err
	}
	s.http = api.NewHTTPServer(handler, s.log)
	if migrations.Check(ctx, s.pool) != nil {
		return nil //nolint:nilerr // /readyz says what is wrong; nothing else may touch the database
	}
	return s.prepare(ctx)
}

// prepare makes the warehouse known to a database that has the right schema. That may be
// long after the start: somebody else can migrate the database, or bring it back.
func (s *server) prepare(ctx context.Context) error {
	if s.prepared.Load() {
		return nil
	}
	settings := catalog.WarehouseSettings{Warehouse: s.warehouse, SoftDelete: s.cfg.SoftDelete}
	if err := s.store.EnsureWarehouseWith(ctx, settings); err != nil {
		return err
	}
	s.prepared.Store(true)
	return nil
}

func newEngine(cfg Config, log *slog.Logger) (*duckdb.Engine, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find the running program: %w", err)
	}
	return duckdb.New(duckdb.Config{
		Command: []string{self, workerName}, RunsPerChild: runsPerChild, Limits: cfg.limits(), SpillDir: cfg.EngineSpillDir, Log: log,
	})
}

// problems is what keeps this process from serving.
func (s *server) problems(ctx context.Context) []api.Problem {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	if err := s.pool.Ping(ctx); err != nil {
		return []api.Problem{{Component: "database", Message: "the database does not answer"}}
	}
	if err := migrations.Check(ctx, s.pool); err != nil {
		return []api.Problem{{Component: "schema", Message: err.Error()}}
	}
	if err := s.prepare(ctx); err != nil {
		return []api.Problem{{Component: "warehouse", Message: err.Error()}}
	}
	return nil
}

// address is where the server can be reached.
func (s *server) address() string {
	host, port, err := net.SplitHostPort(s.listener.Addr().String())
	if err != nil {
		return "http://" + s.listener.Addr().String()
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port)
}

// serve works until ctx ends or the HTTP server fails, then shuts down in order: no new
// requests, running ones to their end, refreshes handed back, connections closed.
func (s *server) serve(ctx context.Context) error {
	defer s.close()
	failed := make(chan error, 1)
	go func() { failed <- s.http.Serve(s.listener) }()
	working, stopWork := context.WithCancel(ctx)
	defer stopWork()
	started := s.startJobs(working)
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	stopWork()
	// The signal has ended ctx; finishing what runs needs time of its own.
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownGrace)
	defer cancel()
	if shutErr := s.http.Shutdown(grace); shutErr != nil {
		s.log.WarnContext(grace, "requests were cut off", slog.Any("error", shutErr))
	}
	s.reports.Close(grace) // no request adds to them any more
	if <-started {
		if stopErr := s.jobs.Stop(grace); stopErr != nil {
			s.log.WarnContext(grace, "refreshes were cut off", slog.Any("error", stopErr))
		}
	}
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	return err
}

// startJobs begins to work the queue as soon as the database has the right schema. The
// channel tells, once ctx has ended, whether it did.
func (s *server) startJobs(ctx context.Context) <-chan bool {
	done := make(chan bool, 1)
	go func() {
		started := false
		defer func() { done <- started }()
		for !started {
			if migrations.Check(ctx, s.pool) == nil {
				err := s.prepare(ctx)
				if err == nil {
					err = s.jobs.Start(ctx)
				}
				if started = err == nil; !started {
					s.log.WarnContext(ctx, "refreshes cannot start yet", slog.Any("error", err))
				}
			}
			if started {
				break
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(time.Second):
			}
		}
		<-ctx.Done()
	}()
	return done
}

func (s *server) close() {
	if s.reports != nil {
		s.reports.Close(context.Background()) // closed already after a shutdown; bounded by itself
	}
	if s.engine != nil {
		if err := s.engine.Close(); err != nil {
			s.log.Warn("engine", slog.Any("error", err))
		}
	}
	if s.listener != nil {
		_ = s.listener.Close() // closed already after a shutdown
	}
	if s.files != nil {
		s.files.Close()
	}
	if s.pool != nil {
		s.pool.Close()
	}
}

// reachable reports the database's state for commands that need it at once.
func reachable(ctx context.Context, pool *pgxpool.Pool) error {
	if err := pool.Ping(ctx); err != nil {
		return fmt.Errorf("the database cannot be reached: %w", err)
	}
	return nil
}
