package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/catalogd/catalogd/catalog"
	"github.com/catalogd/catalogd/jobs"
	"github.com/catalogd/catalogd/mv"
)

// Config is everything that a server can be told. Each field has a flag, and each flag an
// environment variable: --database-url is CATALOGD_DATABASE_URL. A flag wins.
type Config struct {
	DatabaseURL       string        // Postgres connection string; a secret
	Warehouse         string        // root location of the warehouse
	WarehouseName     string        // its name, the REST prefix
	Listen            string        // HOST:PORT; port 0 picks a free one
	AllowLocations    []string      // further roots that tables may be created below
	AnyLocation       bool          // local files anywhere
	CacheBytes        int64         // metadata documents kept in memory
	EngineMemoryBytes int64         // of one refresh
	EngineThreads     int           // of one refresh
	EngineSpillDir    string        // scratch space of refreshes
	RefreshSlots      int           // refreshes that run at a time in this process
	DatabaseConns     int           // size of the connection pool
	DropRetention     time.Duration // how long the files of a dropped materialized view stay
	PlanPageFiles     int64         // files in a page of a scan plan
	PlanAsyncFiles    int64         // files from which on a job plans a scan
	SoftDelete        time.Duration // how long dropped objects of a warehouse that is created now can come back
	WarehouseBase     string        // where warehouses are put that are created without a location
	NoStat            bool          // do not check that a served metadata file exists
	Migrate           bool          // migrate the database before serving
	LogFormat         string        // text or json
	LogLevel          string        // debug, info, warn, error
}

func defaults() Config {
	return Config{
		WarehouseName: "main", Listen: "127.0.0.1:8181", CacheBytes: 256 << 20, EngineMemoryBytes: 1 << 30,
		EngineThreads: 2, RefreshSlots: 2, DatabaseConns: 20, DropRetention: jobs.DefaultDropRetention,
		PlanPageFiles: 2000, PlanAsyncFiles: 100_000,
		LogFormat: "text", LogLevel: "info", EngineSpillDir: filepath.Join(os.TempDir(), fmt.Sprintf("catalogd-spill-%d", os.Getuid())), // other users have their own
	}
}

// flags binds the settings that serve and dev share.
func (c *Config) flags(f *pflag.FlagSet) {
	f.StringVar(&c.Listen, "listen", c.Listen, "address to serve on, HOST:PORT; port 0 picks a free one")
	f.StringVar(&c.WarehouseName, "warehouse-name", c.WarehouseName, "name of the warehouse, which is the REST prefix")
	f.StringSliceVar(&c.AllowLocations, "allow-location", c.AllowLocations, "further root below which tables may be created (repeatable)")
	f.BoolVar(&c.AnyLocation, "allow-any-file-location", c.AnyLocation, "let tables be created anywhere in the local file system")
	f.Int64Var(&c.CacheBytes, "cache-bytes", c.CacheBytes, "memory for metadata documents, in bytes; -1 for none")
	f.Int64Var(&c.EngineMemoryBytes, "engine-memory-bytes", c.EngineMemoryBytes, "memory limit of one refresh, in bytes")
	f.IntVar(&c.EngineThreads, "engine-threads", c.EngineThreads, "threads of one refresh")
	f.StringVar(&c.EngineSpillDir, "engine-spill-dir", c.EngineSpillDir, "folder that refreshes spill to")
	f.IntVar(&c.RefreshSlots, "refresh-slots", c.RefreshSlots, "refreshes that run at the same time in this process")
	f.IntVar(&c.DatabaseConns, "database-connections", c.DatabaseConns, "size of the database connection pool")
	f.DurationVar(&c.DropRetention, "drop-retention", c.DropRetention, "how long the stored rows of a dropped materialized view stay, for example 48h")
	f.Int64Var(&c.PlanPageFiles, "plan-page-files", c.PlanPageFiles, "files in a page of a scan plan")
	f.Int64Var(&c.PlanAsyncFiles, "plan-async-files", c.PlanAsyncFiles, "files from which on a scan is planned in the background; PyIceberg cannot wait for such plans")
	f.DurationVar(&c.SoftDelete, "soft-delete-retention", c.SoftDelete, "how long dropped tables and views can come back, if this start creates the warehouse; later: catalogd warehouse set")
	f.BoolVar(&c.NoStat, "no-stat", c.NoStat, "do not check that a metadata file exists when its table is loaded")
	f.StringVar(&c.LogFormat, "log-format", c.LogFormat, "text or json")
	f.StringVar(&c.LogLevel, "log-level", c.LogLevel, "debug, info, warn or error")
}

const envPrefix = "CATALOGD_"

// fromEnv fills every flag that was not given from its environment variable.
func fromEnv(f *pflag.FlagSet, lookup func(string) (string, bool)) error {
	var problems []error
	f.VisitAll(func(flag *pflag.Flag) {
		name := envPrefix + strings.ToUpper(strings.ReplaceAll(flag.Name, "-", "_"))
		value, ok := lookup(name)
		if !ok || flag.Changed {
			return
		}
		if err := f.Set(flag.Name, value); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", name, err))
		}
	})
	return errors.Join(problems...)
}

// Validate reports every problem at once. It never repeats a secret.
func (c *Config) Validate() error {
	var p []error
	problem := func(format string, args ...any) { p = append(p, fmt.Errorf(format, args...)) }
	if c.DatabaseURL == "" {
		problem("--database-url (CATALOGD_DATABASE_URL) is missing: give a Postgres URL, for example postgres://user:password@host/catalogd")
	} else if _, err := pgxpool.ParseConfig(c.DatabaseURL); err != nil {
		problem("--database-url is not a Postgres connection string") // pgx's own words could hold the password
	}
	if c.Warehouse == "" {
		problem("--warehouse (CATALOGD_WAREHOUSE) is missing: give the location that tables live below, for example file:///var/lib/catalogd/warehouse")
	} else if u, err := url.Parse(c.Warehouse); err != nil || (u.Scheme == "" && !filepath.IsAbs(c.Warehouse)) {
		problem("--warehouse %q is not a location: give an absolute path or a URI such as file:///path", c.Warehouse)
	}
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		problem("--listen %q is not HOST:PORT", c.Listen)
	}
	if err := catalog.CheckWarehouseName(c.WarehouseName); err != nil {
		problem("--warehouse-name: %w", err)
	}
	if c.PlanPageFiles < 1 || c.PlanAsyncFiles < 1 {
		problem("--plan-page-files %d and --plan-async-files %d must be at least 1", c.PlanPageFiles, c.PlanAsyncFiles)
	}
	if c.EngineMemoryBytes < 64<<20 {
		problem("--engine-memory-bytes %d is below 64 MiB", c.EngineMemoryBytes)
	}
	if c.EngineThreads < 1 {
		problem("--engine-threads %d must be at least 1", c.EngineThreads)
	}
	if c.RefreshSlots < 1 {
		problem("--refresh-slots %d must be at least 1", c.RefreshSlots)
	}
	if c.DatabaseConns < 4 {
		problem("--database-connections %d must be at least 4", c.DatabaseConns)
	}
	if c.DropRetention < 0 {
		problem("--drop-retention %s must not be negative", c.DropRetention)
	}
	if c.SoftDelete < 0 || c.SoftDelete > catalog.MaxSoftDelete {
		problem("--soft-delete-retention %s must be between 0 and %s", c.SoftDelete, catalog.MaxSoftDelete)
	}
	if _, err := c.logger(io.Discard); err != nil {
		p = append(p, err)
	}
	return errors.Join(p...)
}

// roots are the locations that the server may write below.
func (c *Config) roots(w catalog.Warehouse) []string {
	roots := append([]string{w.Location}, c.AllowLocations...)
	if c.WarehouseBase != "" {
		roots = append(roots, c.WarehouseBase)
	}
	return roots
}

// logger builds the logger that everything is handed.
func (c *Config) logger(w io.Writer) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.LogLevel)); err != nil {
		return nil, fmt.Errorf("--log-level %q is not debug, info, warn or error", c.LogLevel)
	}
	opts := &slog.HandlerOptions{Level: level}
	switch c.LogFormat {
	case "json":
		return slog.New(slog.NewJSONHandler(w, opts)), nil
	case "text":
		return slog.New(slog.NewTextHandler(w, opts)), nil
	}
	return nil, fmt.Errorf("--log-format %q is not text or json", c.LogFormat)
}

func (c *Config) limits() mv.Limits {
	return mv.Limits{MemoryBytes: c.EngineMemoryBytes, Threads: c.EngineThreads, SpillDir: c.EngineSpillDir}
}

func (c *Config) pool(ctx context.Context) (*pgxpool.Pool, error) {
	pc, err := pgxpool.ParseConfig(c.DatabaseURL)
	if err != nil {
		return nil, errors.New("--database-url is not a Postgres connection string")
	}
	pc.MaxConns = int32(c.DatabaseConns) //nolint:gosec // validated, and small
	pool, err := pgxpool.NewWithConfig(ctx, pc)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", pc.ConnConfig.Host, err)
	}
	return pool, nil
}

// configured fills c from cmd's environment, where its flags did not, and checks it all.
func configured(cmd *cobra.Command, c *Config) error {
	if err := errors.Join(fromEnv(cmd.Flags(), os.LookupEnv), c.Validate()); err != nil {
		return fmt.Errorf("the configuration has problems:\n%w", err)
	}
	return nil
}

// noArgs is cobra.NoArgs for commands that take secrets: what was typed by mistake is not
// repeated, since it may be a database URL.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%s takes flags only, but %d arguments were given", cmd.CommandPath(), len(args))
	}
	return nil
}
