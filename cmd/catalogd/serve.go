package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/catalogd/catalogd/migrations"
	"github.com/catalogd/catalogd/mv/exec/duckdb"
)

func serveCommand() *cobra.Command {
	cfg := defaults()
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the catalog on a Postgres database of yours; run any number of replicas",
		Long: `Serve the catalog on a Postgres database of yours. Any number of replicas can share one
database; they need nothing else from each other. Every flag has an environment variable:
--database-url is CATALOGD_DATABASE_URL, --warehouse is CATALOGD_WAREHOUSE.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := configured(cmd, &cfg); err != nil {
				return err
			}
			log, err := cfg.logger(os.Stderr)
			if err != nil {
				return err
			}
			s, err := newServer(cmd.Context(), cfg, log, "")
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "listening on %s\n", s.address())
			return s.serve(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.StringVar(&cfg.DatabaseURL, "database-url", "", "Postgres connection string (better given as CATALOGD_DATABASE_URL)")
	f.StringVar(&cfg.Warehouse, "warehouse", "", "location that tables live below, for example file:///var/lib/catalogd/warehouse")
	f.BoolVar(&cfg.Migrate, "migrate", false, "migrate the database before serving")
	cfg.flags(f)
	return cmd
}

func migrateCommand() *cobra.Command {
	cfg := defaults()
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Bring a database to the schema of this version",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := fromEnv(cmd.Flags(), os.LookupEnv); err != nil {
				return err
			}
			if cfg.DatabaseURL == "" {
				return errors.New("--database-url (CATALOGD_DATABASE_URL) is missing: give a Postgres URL")
			}
			pool, err := cfg.pool(cmd.Context())
			if err != nil {
				return err
			}
			defer pool.Close()
			if err := reachable(cmd.Context(), pool); err != nil {
				return err
			}
			if err := migrations.Up(cmd.Context(), pool); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "the database is at schema version %d\n", migrations.Latest())
			return nil
		},
	}
	cmd.Flags().StringVar(&cfg.DatabaseURL, "database-url", "", "Postgres connection string (better given as CATALOGD_DATABASE_URL)")
	return cmd
}

// workerName is the hidden subcommand that a refresh runs in: a child process of its own,
// which a crash or the kernel's memory killer ends without touching the server.
const workerName = "engine-worker"

func workerCommand() *cobra.Command {
	return &cobra.Command{
		Use: workerName, Hidden: true, Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if code := duckdb.WorkerMain(os.Stdin, os.Stdout); code != 0 {
				return exitError{code}
			}
			return nil
		},
	}
}
