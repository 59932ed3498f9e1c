package duckdb

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/catalogd/catalogd/catalog"
	"github.com/catalogd/catalogd/mv"
)

// WorkerMain is the child process: the hidden subcommand of the binary calls it with the
// process's own stdin and stdout and exits with the result. It serves one request at a
// time, each run in an instance of its own, and ends when stdin does, so that it never
// outlives its parent.
func WorkerMain(stdin io.Reader, stdout io.Writer) int {
	w := &worker{out: json.NewEncoder(stdout)}
	requests := make(chan request)
	go func() {
		dec := json.NewDecoder(stdin)
		for {
			var r request
			if err := dec.Decode(&r); err != nil {
				// The parent is gone: nobody waits for what is under way.
				os.Exit(0)
			}
			requests <- r
		}
	}()
	ctx := context.Background()
	for {
		in, err := openInstance(ctx, scratch())
		if err != nil {
			w.send(response{Error: toWire(err), Done: true})
			return 1
		}
		w.warm(ctx, in)
		w.send(response{Ready: true})
		for r := range requests {
			if r.Run == nil {
				w.describe(ctx, r)
				continue
			}
			if !w.run(ctx, in, r) || r.Last {
				return 0 // the instance goes with the process: closing it would only take time
			}
			break
		}
		if err := in.close(); err != nil {
			return 1
		}
	}
}

// scratch is the child's own folder: the parent sets HOME to it.
func scratch() string {
	if dir := os.Getenv("HOME"); dir != "" {
		return dir
	}
	return os.TempDir()
}

// worker writes responses; progress comes from another goroutine than results.
type worker struct {
	mu  sync.Mutex
	out *json.Encoder
}

func (w *worker) send(r response) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out.Encode(r) == nil
}

// warm runs the parser and a small query once, so that the first request does not pay
// for pages and tables that DuckDB sets up on first use. A failure shows again in the
// request that needs the same thing.
func (w *worker) warm(ctx context.Context, in *instance) {
	_, _ = guard(ctx, in.conn, "SELECT sum(1) FROM range(3)", nil)
	_ = in.exec(ctx, "SET TimeZone = 'UTC'", "SELECT date_trunc('day', make_timestamptz(0::BIGINT)), sum(range) FROM range(3)")
}

func (w *worker) describe(ctx context.Context, r request) {
	if r.Describe == nil {
		w.send(response{Error: toWire(catalog.Errorf(catalog.KindInternal, "the request asks nothing")), Done: true})
		return
	}
	cols, err := describe(ctx, scratch(), *r.Describe)
	if err != nil {
		w.send(response{Error: toWire(err), Done: true})
		return
	}
	w.send(response{Columns: cols, Done: true})
}

// run reports whether the process may serve another run.
func (w *worker) run(ctx context.Context, in *instance, r request) bool {
	var report func(mv.Progress)
	if r.Progress {
		report = func(p mv.Progress) { w.send(response{Progress: &p}) }
	}
	before := cpuSeconds()
	res, err := recovered(func() (mv.Result, error) { return run(ctx, in, *r.Run, report) })
	if err != nil {
		w.send(response{Error: toWire(err), Done: true})
		return false
	}
	res.CPU = cpuSeconds() - before
	return w.send(response{Result: &res, Done: true})
}

// recovered turns a panic into an error that names it: the parent logs it and fails this
// run alone.
func recovered(f func() (mv.Result, error)) (res mv.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = catalog.Errorf(catalog.KindInternal, "the DuckDB engine failed").Because(fmt.Errorf("panic: %v", p))
		}
	}()
	return f()
}
