package duckdb

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/catalogd/catalogd/catalog"
	"github.com/catalogd/catalogd/mv"
)

// child is a process that runs [WorkerMain].
type child struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *os.File // read until its end, or until the run is over
	out    *json.Decoder
	stderr *tail
	dir    string // its scratch folder and HOME
	runs   int    // served so far

	mu     sync.Mutex
	spill  string // the folder that its run spills to
	gone   bool   // reaped: nobody would remove a new folder
	killed atomic.Bool
	exited chan struct{} // closed once the process is reaped
	state  error         // how it ended; valid after exited
}

// spawner starts all children on one operating system thread: on Linux the kernel kills
// a child when the thread that started it ends, and Go ends threads as it likes.
type spawner struct {
	jobs chan func()
	quit chan struct{}
	once sync.Once
}

func newSpawner() *spawner {
	s := &spawner{jobs: make(chan func()), quit: make(chan struct{})}
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the engine
		for {
			select {
			case job := <-s.jobs:
				job()
			case <-s.quit:
				return
			}
		}
	}()
	return s
}

func (s *spawner) start(cmd *exec.Cmd) error {
	done := make(chan error, 1)
	select {
	case s.jobs <- func() { done <- cmd.Start() }:
		return <-done
	case <-s.quit:
		return errors.New("the engine is closed")
	}
}

func (s *spawner) close() { s.once.Do(func() { close(s.quit) }) }

// spawn starts a child and waits until its DuckDB is open. The caller has added 1 to
// e.children.
func (e *Engine) spawn(ctx context.Context) (*child, error) {
	c, err := e.start(ctx)
	if err != nil {
		e.children.Done()
		return nil, err
	}
	go e.reap(c)
	if err := c.ready(ctx); err != nil {
		c.kill()
		return nil, err
	}
	return c, nil
}

// ready waits until c has an open instance.
func (c *child) ready(ctx context.Context) error {
	r, err := c.receive(ctx)
	switch {
	case err != nil:
		return err
	case r.Error != nil:
		return r.Error.err()
	case !r.Ready:
		return catalog.Errorf(catalog.KindInternal, "the engine's process does not answer as one")
	}
	return nil
}

// start starts the process with an environment that holds no secrets.
func (e *Engine) start(ctx context.Context) (*child, error) {
	dir, err := os.MkdirTemp(e.config.SpillDir, "catalogd-engine-")
	if err != nil {
		return nil, catalog.Errorf(catalog.KindUnavailable, "spill folder %s cannot be used", e.config.SpillDir).Because(err)
	}
	c := &child{dir: dir, stderr: &tail{}, exited: make(chan struct{})}
	// The process must outlive the call that happened to start it: it may become the spare.
	c.cmd = exec.CommandContext(context.WithoutCancel(ctx), e.config.Command[0], e.config.Command[1:]...)
	c.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "TZ=UTC", "HOME=" + dir, "TMPDIR=" + dir}
	c.cmd.Dir = dir
	c.cmd.Stderr = c.stderr
	c.cmd.SysProcAttr = isolate()
	// Not StdoutPipe: Wait closes that one as soon as the process has ended, and with it an
	// answer that nobody has read yet.
	stdin, err1 := c.cmd.StdinPipe()
	stdout, childStdout, err2 := os.Pipe()
	if err := errors.Join(err1, err2); err != nil {
		return nil, errors.Join(catalog.Errorf(catalog.KindUnavailable, "no pipe to the engine's process").Because(err), os.RemoveAll(dir))
	}
	c.cmd.Stdout = childStdout
	c.stdin, c.stdout, c.out = stdin, stdout, json.NewDecoder(stdout)
	err = e.spawner.start(c.cmd)
	_ = childStdout.Close() // the child has its own
	if err != nil {
		_ = stdout.Close()
		return nil, errors.Join(catalog.Errorf(catalog.KindUnavailable, "the engine's process cannot be started").Because(err), os.RemoveAll(dir))
	}
	return c, nil
}

// reap waits for the end of a child and removes what it left.
func (e *Engine) reap(c *child) {
	defer e.children.Done()
	c.state = c.cmd.Wait()
	close(c.exited)
	if text := c.stderr.String(); text != "" {
		e.log.Warn("the engine's process wrote to stderr", slog.Int("pid", c.cmd.Process.Pid), slog.String("stderr", text))
	}
	c.mu.Lock()
	c.gone = true
	c.mu.Unlock()
	e.remove(c.takeSpill())
	e.remove(c.dir)
}

// takeSpill hands the run's spill folder over to whoever removes it.
func (c *child) takeSpill() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	dir := c.spill
	c.spill = ""
	return dir
}

func (e *Engine) remove(dir string) {
	if err := os.RemoveAll(dir); err != nil {
		e.log.Warn("a folder of the engine is left behind", slog.String("folder", dir), slog.Any("error", err))
	}
}

// kill ends the process at once. It is not an error if it has ended already.
func (c *child) kill() {
	c.killed.Store(true)
	_ = c.cmd.Process.Kill()
	_ = c.stdin.Close()
	_ = c.stdout.Close()
}

// alive reports whether the process can be asked something.
func (c *child) alive() bool {
	select {
	case <-c.exited:
		return false
	default:
		return !c.killed.Load()
	}
}

// ask sends r and hands progress on until the answer comes. A canceled ctx kills the
// process: DuckDB may take its time to notice an interrupt, a kill is certain.
func (c *child) ask(ctx context.Context, r request, onProgress func(mv.Progress)) (response, error) {
	stop := context.AfterFunc(ctx, c.kill)
	defer stop()
	if err := json.NewEncoder(c.stdin).Encode(r); err != nil {
		return response{}, c.died(ctx, err)
	}
	for {
		answer, err := c.receive(ctx)
		if err != nil {
			return response{}, err
		}
		if answer.Progress != nil && onProgress != nil {
			onProgress(*answer.Progress)
		}
		if answer.Error != nil {
			return response{}, answer.Error.err()
		}
		if answer.Done {
			return answer, nil
		}
	}
}

func (c *child) receive(ctx context.Context) (response, error) {
	stop := context.AfterFunc(ctx, c.kill)
	defer stop()
	var r response
	if err := c.out.Decode(&r); err != nil {
		return response{}, c.died(ctx, err)
	}
	return r, nil
}

// died explains why a child stopped answering.
func (c *child) died(ctx context.Context, cause error) error {
	if err := ctx.Err(); err != nil {
		return catalog.Errorf(catalog.KindUnavailable, "the run was canceled").Because(err)
	}
	c.kill()
	<-c.exited
	text := "the engine's process ended without an answer"
	if c.state != nil {
		text = fmt.Sprintf("the engine's process died (%s)", c.state)
	}
	if out := c.stderr.String(); out != "" {
		cause = fmt.Errorf("%w; stderr: %s", cause, out)
	}
	return catalog.Errorf(catalog.KindUnavailable, "%s; a process killed by the system usually ran out of memory", text).Because(cause)
}

// tail keeps the last bytes that a child writes to stderr: a crash is explained at the
// end.
type tail struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

const tailBytes = 16 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf.Write(p)
	if over := t.buf.Len() - tailBytes; over > 0 {
		t.buf.Next(over)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.buf.String()
}

// spillFolder makes the folder that c's next run spills to.
func (c *child) spillFolder(parent string) (string, error) {
	if parent == "" {
		parent = c.dir
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone {
		return "", errors.New("the process has ended")
	}
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(parent, "catalogd-spill-")
	c.spill = dir
	return dir, err
}

// closeGrace is how long Close waits for children to be reaped.
const closeGrace = 5 * time.Second
