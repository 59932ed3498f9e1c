package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/catalogd/catalogd/catalog/postgres/pgserver"
)

func devCommand() *cobra.Command {
	cfg := defaults()
	cfg.LogLevel = "warn"
	dir := ".catalogd"
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run everything on this machine: Postgres, warehouse, refreshes",
		Long: `Run everything on this machine, with nothing to install: a durable Postgres cluster, a
file warehouse and the refresh engine, all below one folder. Data stays there until you
remove it.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := fromEnv(cmd.Flags(), os.LookupEnv); err != nil {
				return err
			}
			d, err := startDev(cmd.Context(), cfg, dir)
			if err != nil {
				return err
			}
			printSettings(cmd.OutOrStdout(), d.server.address(), cfg.WarehouseName)
			return d.run(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&dir, "data-dir", dir, "folder that everything is kept in")
	cfg.flags(cmd.Flags())
	return cmd
}

// dev is a server with a Postgres cluster of its own.
type dev struct {
	server   *server
	postgres *pgserver.Server
	log      *slog.Logger
}

// startDev starts the cluster in dir and a server on it.
func startDev(ctx context.Context, cfg Config, dir string) (_ *dev, err error) {
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, fmt.Errorf("--data-dir: %w", err)
	}
	log, err := cfg.logger(os.Stderr)
	if err != nil {
		return nil, err
	}
	d := &dev{log: log}
	// The order is that of what people run into: folder in use, then no Postgres, then the
	// port.
	d.postgres, err = pgserver.Start(ctx, pgserver.Config{Dir: dir, Log: log, Durable: true})
	if errors.Is(err, pgserver.ErrInUse) {
		return nil, fmt.Errorf("%w (another `catalogd dev` or `demo`? stop it, or use another folder with --data-dir)", err)
	}
	if err != nil {
		return nil, err
	}
	cfg.DatabaseURL, cfg.Migrate = d.postgres.URL(), true
	cfg.Warehouse = filepath.Join(dir, "warehouse")
	cfg.WarehouseBase = locationOf(filepath.Join(dir, "warehouses"))
	cfg.EngineSpillDir = filepath.Join(dir, "spill")
	if err = os.MkdirAll(cfg.Warehouse, 0o755); err == nil { // engines of other users read the tables
		if err = cfg.Validate(); err == nil {
			d.server, err = newServer(ctx, cfg, log, dir)
		}
	}
	if err != nil {
		return nil, errors.Join(err, d.stopPostgres(ctx))
	}
	return d, nil
}

// run serves until ctx ends, or until Postgres does.
func (d *dev) run(ctx context.Context) error {
	serving, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-d.postgres.Done():
			cancel()
		case <-serving.Done():
		}
	}()
	err := d.server.serve(serving)
	if ctx.Err() == nil && err == nil {
		err = errors.New("the Postgres server ended: see postgres.log in the data folder")
	}
	return errors.Join(err, d.stopPostgres(ctx))
}

func (d *dev) stopPostgres(ctx context.Context) error {
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
	defer cancel()
	return d.postgres.Stop(grace)
}

// printSettings prints what to paste into each client.
func printSettings(w io.Writer, uri, warehouse string) {
	fmt.Fprintf(w, `catalogd is ready
listening on %[1]s

PyIceberg
  from pyiceberg.catalog import load_catalog
  catalog = load_catalog("catalogd", type="rest", uri="%[1]s", warehouse="%[2]s")

Spark
  --conf spark.sql.catalog.lake=org.apache.iceberg.spark.SparkCatalog
  --conf spark.sql.catalog.lake.type=rest
  --conf spark.sql.catalog.lake.uri=%[1]s
  --conf spark.sql.catalog.lake.warehouse=%[2]s
  --conf spark.sql.extensions=org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions
  --conf spark.sql.defaultCatalog=lake

Trino (etc/catalog/lake.properties)
  connector.name=iceberg
  iceberg.catalog.type=rest
  iceberg.rest-catalog.uri=%[1]s
  iceberg.rest-catalog.warehouse=%[2]s
  iceberg.rest-catalog.nested-namespace-enabled=true
  fs.native-local.enabled=true
  local.location=/

DuckDB
  INSTALL iceberg; LOAD iceberg;
  ATTACH '%[2]s' AS lake (TYPE iceberg, ENDPOINT '%[1]s', AUTHORIZATION_TYPE 'none');

Materialized views
  catalogd mv create demo.daily --uri %[1]s --sql 'SELECT …'
  catalogd mv list --uri %[1]s

Stop with Ctrl-C.
`, uri, warehouse)
}
