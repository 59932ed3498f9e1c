package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/catalogd/catalogd/bench/floor"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// floorCommand makes this program the floor server: it is its own child process, so that
// each server's CPU time can be read by itself.
const floorCommand = "floor"

func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) > 0 && args[0] == floorCommand {
		return floor.Run(ctx, args[1:], out)
	}
	o, err := parseOptions(args)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, o.limit)
	defer cancel()
	rep := newReport(out, o)
	err = measureAll(ctx, o, rep)
	rep.finish()
	if o.json != "" {
		err = errors.Join(err, rep.save(o.json))
	}
	if err != nil {
		return err
	}
	if rep.Wrong > 0 {
		return fmt.Errorf("%d answers were wrong or missing: these numbers mean nothing", rep.Wrong)
	}
	return nil
}

// section is a part of a run.
type section struct {
	name string
	run  func(*bench, context.Context) error
}

// sections lists the parts in their order.
func sections() []section {
	return []section{
		{"load", (*bench).loads},
		{"commit", (*bench).commits},
		{"hot", (*bench).hotTable},
		{"list", (*bench).lists},
		{"reference", (*bench).referenceLoads},
		{"memory", (*bench).memory},
		{"mv", (*bench).sharedView},
		{"refresh", (*bench).refreshes},
	}
}

func measureAll(ctx context.Context, o options, rep *report) (err error) {
	b, stop, err := newBench(ctx, o, rep)
	defer func() { err = errors.Join(err, stop()) }()
	if err != nil {
		return err
	}
	for _, s := range sections() {
		if len(o.only) > 0 && !slices.Contains(o.only, s.name) {
			continue
		}
		if spent := time.Since(rep.Started); spent > o.scale.budget {
			rep.note("left out: %s; %v are over after %v", s.name, o.scale.budget, spent.Round(time.Second))
			rep.Skipped = append(rep.Skipped, s.name)
			continue
		}
		if err := s.run(b, ctx); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

// options are the flags.
type options struct {
	only      []string
	json      string
	data      string
	catalogd  string
	dir       string
	database  string   // URL of a cluster to use; a secret
	env       []string // NAME=VALUE for catalogd
	reference []string // the reference server's command; nil: found
	quick     bool
	limit     time.Duration
	scale     scale
}

// scale is how much is measured.
type scale struct {
	budget     time.Duration // no part begins later
	rounds     int
	loadRounds int
	loadTime   time.Duration // of a round
	commitTime time.Duration // of a round, at most
	sizes      []int         // snapshots of the tables that are loaded
	clients    []int
	commits    int // of each client in a round; tables grow from nothing

	referenceRounds int
	referenceTime   time.Duration // of a round of loads
	referenceSizes  [3]int        // snapshots: small, large, huge
	warmUp          time.Duration // of a server that compiles while it runs, at most
	warmRequests    int           // the same in requests
	hotRounds       int
	hotCommits      int // of all clients in a round
	listTables      int

	memoryTables int
	memoryCache  int64         // 0: the server's default
	memoryTime   time.Duration // for making the tables, and for each pass over them, at most

	mvCommits  int // of each client in a round; tables grow on
	days       int // of the source before the measured appends
	rowsPerDay int // of synthetic data
	appends    int // one-day appends that are measured
}

func fullScale() scale {
	return scale{
		budget: 7 * time.Minute, rounds: 5, loadRounds: 7, loadTime: 300 * time.Millisecond, commitTime: 6 * time.Second,
		sizes: []int{10, 100, 1000}, clients: []int{1, mostClients}, commits: 60,
		referenceRounds: 3, referenceTime: time.Second, referenceSizes: [3]int{100, 1000, 9000}, warmUp: 15 * time.Second, warmRequests: 2000,
		hotRounds: 3, hotCommits: 320, listTables: 10_000, memoryTables: 1000, memoryTime: 40 * time.Second,
		mvCommits: 30, days: 365, rowsPerDay: 900, appends: 5,
	}
}

func quickScale() scale {
	return scale{
		budget: 150 * time.Second, rounds: 3, loadRounds: 4, loadTime: 150 * time.Millisecond, commitTime: 3 * time.Second,
		sizes: []int{10, 100}, clients: []int{1, mostClients}, commits: 20,
		referenceRounds: 2, referenceTime: 500 * time.Millisecond, referenceSizes: [3]int{100, 1000, 9000}, warmUp: 6 * time.Second, warmRequests: 600,
		hotRounds: 2, hotCommits: 80, listTables: 10_000, memoryTables: 200, memoryCache: 96 << 20, memoryTime: 20 * time.Second,
		mvCommits: 10, days: 60, rowsPerDay: 900, appends: 2,
	}
}

func sectionNames() string {
	var names []string
	for _, s := range sections() {
		names = append(names, s.name)
	}
	return strings.Join(names, ", ")
}

func parseOptions(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	only := flags.String("only", "", "comma-separated parts to run: "+sectionNames())
	flags.StringVar(&o.json, "json", "", "file for the results as JSON")
	flags.StringVar(&o.data, "data", "", "Parquet file of flights, sorted by scheduled_departure; made up if empty")
	flags.StringVar(&o.catalogd, "catalogd", "", "binary to measure; built from this module if empty")
	flags.StringVar(&o.dir, "dir", "", "folder to work in, on the disk that matters; a temporary one if empty")
	flags.StringVar(&o.database, "database-url", os.Getenv("CATALOGD_BENCH_DATABASE_URL"),
		"PostgreSQL whose user may create databases (CATALOGD_BENCH_DATABASE_URL); a durable cluster of our own if empty")
	flags.Func("env", "NAME=VALUE in catalogd's environment, such as CATALOGD_CACHE_BYTES=-1 (repeatable)", func(v string) error {
		if !strings.Contains(v, "=") {
			return errors.New("want NAME=VALUE")
		}
		o.env = append(o.env, v)
		return nil
	})
	flags.BoolVar(&o.quick, "quick", false, "a quick look: fewer, shorter rounds and smaller tables")
	flags.DurationVar(&o.limit, "limit", 20*time.Minute, "the longest that all of it may take")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if *only != "" {
		o.only = strings.Split(*only, ",")
	}
	for _, name := range o.only {
		if !slices.ContainsFunc(sections(), func(s section) bool { return s.name == name }) {
			return o, fmt.Errorf("--only: there is no part %q; the parts are %s", name, sectionNames())
		}
	}
	o.scale = fullScale()
	if o.quick {
		o.scale = quickScale()
	}
	return o, nil
}

// save writes the results as JSON.
func (r *report) save(name string) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(name, append(data, '\n'), 0o644)
}
