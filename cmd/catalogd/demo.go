package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/catalogd/catalogd/cmd/catalogd/demo"
)

// demoFlags is what the demo can be told.
type demoFlags struct {
	once bool
	dir  string
	days int
}

func demoCommand() *cobra.Command {
	cfg := defaults()
	// Warnings would break the picture; what matters of them is in the picture.
	cfg.LogLevel = "error"
	var f demoFlags
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Watch materialized views follow a year of real flights",
		Long: `Replay all flights that left New York City in 2013 into demo.flights, day by day, with
late rows, corrections and a compaction, while materialized views follow. In the end every
view is compared with its query over the whole table, row by row, and the cost of
incremental refreshes with that of full ones. Then the catalog stays up until Ctrl-C.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := fromEnv(cmd.Flags(), os.LookupEnv); err != nil {
				return err
			}
			if f.days < 0 {
				return fmt.Errorf("--days %d is negative: give the number of days, or 0 for all", f.days)
			}
			return f.run(cmd.Context(), cfg, cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.once, "once", false, "end after the proof; the exit code tells whether it held")
	flags.StringVar(&f.dir, "data-dir", "", "empty or new folder that everything is kept in; default: a temporary one that is removed at the end")
	flags.StringVar(&cfg.Listen, "listen", cfg.Listen, "address to serve on, HOST:PORT; port 0 picks a free one")
	flags.IntVar(&f.days, "days", 0, "replay only the first days; 0 is the whole year")
	return cmd
}

// run starts a server on a fresh folder and shows the demo on it.
func (f demoFlags) run(ctx context.Context, cfg Config, out io.Writer) (err error) {
	dir, remove, err := f.folder()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	fmt.Fprintln(out, "Starting a catalog in "+dir)
	d, err := startDev(ctx, cfg, dir)
	if err != nil {
		return err
	}
	serving, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		// The demo ends with its server, and the server with the demo.
		defer stop()
		ended <- d.run(serving)
	}()
	fmt.Fprintln(out, "Serving on "+d.server.address())
	err = demo.Run(serving, demo.Config{
		URI: d.server.address(), Warehouse: cfg.WarehouseName, Out: out, Live: isTerminal(out), Days: f.days,
	})
	switch {
	case err != nil && ctx.Err() != nil:
		err = errors.New("interrupted before the proof was complete")
	case err == nil && !f.once:
		fmt.Fprintln(out)
		printSettings(out, d.server.address(), cfg.WarehouseName)
		<-serving.Done()
	}
	stop()
	return errors.Join(err, <-ended)
}

// folder is where everything is kept, and what removes it if nobody asked to keep it.
func (f demoFlags) folder() (dir string, remove func() error, err error) {
	if f.dir == "" {
		if dir, err = os.MkdirTemp("", "catalogd-demo-"); err != nil {
			return "", nil, fmt.Errorf("make a temporary folder: %w (choose another with --data-dir)", err)
		}
		return dir, func() error { return os.RemoveAll(dir) }, nil
	}
	entries, err := os.ReadDir(f.dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return "", nil, fmt.Errorf("--data-dir: %w", err)
	case len(entries) > 0:
		return "", nil, fmt.Errorf("--data-dir %s is not empty, and the demo starts from nothing: name a new folder (to serve what is there: catalogd dev --data-dir %[1]s)", f.dir)
	}
	return f.dir, func() error { return nil }, nil
}

// isTerminal tells whether out can be drawn on.
func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" || os.Getenv("TERM") == "" {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
