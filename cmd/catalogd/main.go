// Command catalogd is an Apache Iceberg REST catalog that keeps materialized views
// fresh. This package only wires: flags and environment, the server's parts, the
// command line's own client.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

// exitError ends the program with a code of its own; what had to be said was said.
type exitError struct{ code int }

func (e exitError) Error() string { return fmt.Sprintf("exit code %d", e.code) }

func run(ctx context.Context, args []string) int {
	root := rootCommand()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if exit, ok := errors.AsType[exitError](err); ok {
		return exit.code
	}
	if err != nil {
		fmt.Fprintln(root.ErrOrStderr(), "catalogd: "+err.Error())
		return 1
	}
	return 0
}

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "catalogd",
		Short: "Iceberg REST catalog that keeps materialized views fresh",
		Long: `catalogd is an Apache Iceberg REST catalog, backed by Postgres, that keeps materialized
views fresh: every commit goes through it, so it knows in the commit's own transaction
which views went stale, and refreshes them incrementally.

  catalogd dev      everything on one machine, nothing to install
  catalogd demo     see it work on a year of real flights
  catalogd serve    one of any number of replicas on your Postgres
  catalogd mv       create, watch and refresh materialized views
  catalogd table    bring back what was dropped, protect what must stay
  catalogd warehouse create and change warehouses`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       version(),
	}
	root.AddCommand(devCommand(), serveCommand(), migrateCommand(), mvCommand(), warehouseCommand(), tableCommand(), namespaceCommand(), demoCommand(), workerCommand())
	return root
}
