package duckdb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/catalogd/catalogd/catalog"
	"github.com/catalogd/catalogd/mv"
)

// Config is how an [Engine] starts its children and what they may use.
type Config struct {
	// Command starts a process that calls [WorkerMain], usually the running binary with a
	// hidden subcommand.
	Command []string
	// Limits bound each run; a task's own limits come first. Zero leaves a limit to
	// DuckDB: 80 % of the memory, all processors.
	Limits mv.Limits
	// SpillDir is where children have their scratch folders and spill; empty is the
	// system's folder for temporary files.
	SpillDir string
	// RunsPerChild is how many runs a process serves, one after the other and each in a
	// DuckDB instance of its own, before a fresh one takes its place. 0 is 1. More saves
	// the start of a process, which costs a few hundred milliseconds of CPU in a binary
	// that links much. A process that failed a run is never used again.
	RunsPerChild int
	// Log receives what goes wrong in children; nil discards it.
	Log *slog.Logger
}

// Validate reports all problems at once.
func (c Config) Validate() error {
	var errs []error
	if len(c.Command) == 0 || c.Command[0] == "" {
		errs = append(errs, errors.New("duckdb: Command is empty"))
	}
	if c.Limits.MemoryBytes < 0 {
		errs = append(errs, errors.New("duckdb: Limits.MemoryBytes is negative"))
	}
	if c.Limits.Threads < 0 {
		errs = append(errs, errors.New("duckdb: Limits.Threads is negative"))
	}
	if c.RunsPerChild < 0 {
		errs = append(errs, errors.New("duckdb: RunsPerChild is negative"))
	}
	if strings.ContainsAny(c.SpillDir, patternChars) {
		errs = append(errs, fmt.Errorf("duckdb: SpillDir %q holds one of %s, which DuckDB takes for a pattern", c.SpillDir, patternChars))
	}
	return errors.Join(errs...)
}

// Engine implements [mv.Engine] on DuckDB in child processes. One child is kept warm.
type Engine struct {
	config   Config
	log      *slog.Logger
	spawner  *spawner
	children sync.WaitGroup // one per process that is started and not yet reaped
	warmers  sync.WaitGroup // who makes children ready

	mu      sync.Mutex
	spare   *child
	warming chan struct{} // closed when the spare under way is there or has failed
	awaited bool          // somebody waits for it
	closed  bool
	live    map[*child]bool
	stop    context.CancelFunc
	ctx     context.Context //nolint:containedctx // the lifetime of the spare child, which no call owns
}

var _ mv.Engine = (*Engine)(nil)

// New returns an Engine and begins to start its spare child.
func New(c Config) (*Engine, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	c.SpillDir = cmp.Or(c.SpillDir, os.TempDir())
	if err := os.MkdirAll(c.SpillDir, 0o755); err != nil {
		return nil, catalog.Errorf(catalog.KindUnavailable, "spill folder %s cannot be created", c.SpillDir).Because(err)
	}
	e := &Engine{config: c, log: c.Log, spawner: newSpawner(), live: make(map[*child]bool)}
	if e.log == nil {
		e.log = slog.New(slog.DiscardHandler)
	}
	e.ctx, e.stop = context.WithCancel(context.Background())
	e.warm()
	return e, nil
}

// Name implements [mv.Engine].
func (e *Engine) Name() string { return "duckdb" }

// Describe implements [mv.Engine].
func (e *Engine) Describe(ctx context.Context, q mv.DescribeRequest) ([]mv.EngineColumn, error) {
	c, err := e.take(ctx)
	if err != nil {
		return nil, err
	}
	answer, err := c.ask(ctx, request{Describe: &q}, nil)
	e.give(c) // which looks whether the process survived
	return answer.Columns, err
}

// Run implements [mv.Engine].
func (e *Engine) Run(ctx context.Context, t mv.Task, onProgress func(mv.Progress)) (mv.Result, error) {
	c, err := e.take(ctx)
	if err != nil {
		return mv.Result{}, err
	}
	res, err := e.runIn(ctx, c, t, onProgress)
	e.after(c, err)
	return res, err
}

// runIn has c run t.
func (e *Engine) runIn(ctx context.Context, c *child, t mv.Task, onProgress func(mv.Progress)) (mv.Result, error) {
	t.Limits.MemoryBytes = cmp.Or(t.Limits.MemoryBytes, e.config.Limits.MemoryBytes)
	t.Limits.Threads = cmp.Or(t.Limits.Threads, e.config.Limits.Threads)
	dir, err := c.spillFolder(cmp.Or(t.Limits.SpillDir, e.config.Limits.SpillDir))
	if err != nil {
		return mv.Result{}, catalog.Errorf(catalog.KindUnavailable, "spill folder cannot be created").Because(err)
	}
	t.Limits.SpillDir = dir
	c.runs++
	last := c.runs >= max(e.config.RunsPerChild, 1)
	answer, err := c.ask(ctx, request{Run: &t, Progress: onProgress != nil, Last: last}, onProgress)
	if err != nil {
		return mv.Result{}, err
	}
	if answer.Result == nil {
		return mv.Result{}, catalog.Errorf(catalog.KindInternal, "the engine's process answered without a result")
	}
	return *answer.Result, nil
}

// after keeps the process of a good run if it may serve another, else ends it.
func (e *Engine) after(c *child, err error) {
	if err != nil || c.runs >= max(e.config.RunsPerChild, 1) {
		e.discard(c)
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		c.kill()
		return
	}
	// The caller has its result and need not wait for the next instance.
	e.warmers.Go(func() {
		if err := c.ready(e.ctx); err != nil {
			e.discard(c)
			return
		}
		e.remove(c.takeSpill())
		e.give(c)
	})
}

// Close ends every child and waits until their folders are gone.
func (e *Engine) Close() error {
	e.mu.Lock()
	e.closed = true
	e.stop()
	for c := range e.live {
		c.kill()
	}
	e.spare = nil
	e.mu.Unlock()
	e.warmers.Wait()
	done := make(chan struct{})
	go func() { e.children.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(closeGrace):
		return catalog.Errorf(catalog.KindInternal, "a process of the engine does not end")
	}
	e.spawner.close()
	return nil
}

// take returns the spare child, also one that is just starting, or a new one.
func (e *Engine) take(ctx context.Context) (*child, error) {
	e.mu.Lock()
	if e.spare == nil && e.warming != nil && !e.awaited {
		e.awaited = true
		warming := e.warming
		e.mu.Unlock()
		select {
		case <-warming:
		case <-ctx.Done():
		}
		e.mu.Lock()
		e.awaited = false
	}
	c, closed := e.spare, e.closed
	e.spare = nil
	e.mu.Unlock()
	if closed {
		return nil, catalog.Errorf(catalog.KindUnavailable, "the engine is closed")
	}
	if c != nil && c.alive() {
		return c, nil
	}
	return e.add(ctx)
}

// add starts a child and keeps book of it.
func (e *Engine) add(ctx context.Context) (*child, error) {
	e.mu.Lock()
	closed := e.closed
	if !closed {
		e.children.Add(1)
	}
	e.mu.Unlock()
	if closed {
		return nil, catalog.Errorf(catalog.KindUnavailable, "the engine is closed")
	}
	c, err := e.spawn(ctx)
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		c.kill()
		return nil, catalog.Errorf(catalog.KindUnavailable, "the engine is closed")
	}
	e.live[c] = true
	return c, nil
}

// give makes c the spare again after it has only described.
func (e *Engine) give(c *child) {
	e.mu.Lock()
	if c.alive() && !e.closed && e.spare == nil {
		e.spare = c
		e.mu.Unlock()
		return
	}
	e.mu.Unlock()
	e.discard(c)
}

// discard ends c and sees to a spare.
func (e *Engine) discard(c *child) {
	c.kill()
	e.mu.Lock()
	delete(e.live, c)
	e.mu.Unlock()
	e.warm()
}

// warm starts a spare child in the background if there is none.
func (e *Engine) warm() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed || e.warming != nil || e.spare != nil {
		return
	}
	done := make(chan struct{})
	e.warming = done
	e.warmers.Go(func() {
		c, err := e.add(e.ctx)
		e.mu.Lock()
		e.warming = nil
		surplus := err == nil && e.spare != nil
		if err == nil && !surplus {
			e.spare = c
		}
		closed := e.closed
		e.mu.Unlock()
		close(done)
		switch {
		case surplus:
			e.discard(c)
		case err != nil && !closed:
			e.log.Warn("no spare process of the engine", slog.Any("error", err))
		}
	})
}
