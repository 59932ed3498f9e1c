package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/catalogd/catalogd/bench/measure"
)

// process is a server that this program started.
type process struct {
	name string
	url  string
	cmd  *exec.Cmd
	log  string
	done chan struct{}
	err  error // set before done is closed
}

// command describes a server to start.
type command struct {
	name string
	path string
	args []string
	env  []string // added to ours
	drop string   // prefix of variables of ours that it does not get
	url  string   // where it will listen; empty if it says so itself
	log  string   // file for what it prints
}

// startPatience covers migrations on a slow machine.
const startPatience = 60 * time.Second

// stopPatience is how long a server may take to end before it is killed.
const stopPatience = 15 * time.Second

// start runs a server and waits until it says where it listens. What the server prints
// goes straight to a file: reading along would cost the machine that is measured.
func start(ctx context.Context, c command) (*process, error) {
	log, err := os.Create(c.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	// Not CommandContext: the server ends by stop, which lets it shut down.
	cmd := exec.Command(c.path, c.args...) //nolint:noctx // see above
	cmd.Env = slices.DeleteFunc(os.Environ(), func(variable string) bool {
		return c.drop != "" && strings.HasPrefix(variable, c.drop)
	})
	cmd.Env = append(cmd.Env, c.env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = dieWithParent()
	p := &process{name: c.name, cmd: cmd, log: c.log, done: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		// The kernel ends the child with the thread that started it, so the thread stays.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			p.err = cmd.Wait()
			close(p.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", c.name, err)
	}
	if p.url = c.url; p.url != "" {
		return p, nil
	}
	if err := p.listens(ctx); err != nil {
		return nil, errors.Join(err, p.stop())
	}
	return p, nil
}

var errEnded = errors.New("it was to go on")

// pollInterval is how often a condition of another process is looked at.
const pollInterval = 20 * time.Millisecond

func (p *process) listens(ctx context.Context) error {
	return p.wait(ctx, "does not say where it listens", func(context.Context) bool {
		text, err := os.ReadFile(p.log)
		if err != nil {
			return false
		}
		p.url = addressIn(text)
		return p.url != ""
	})
}

var address = regexp.MustCompile(`listening on (http://[0-9a-zA-Z.:\[\]-]+[0-9])[^\n]*\n`)

// addressIn finds the first whole line that names an address.
func addressIn(log []byte) string {
	m := address.FindSubmatch(log)
	if m == nil {
		return ""
	}
	return string(m[1])
}

// ready waits until the server answers 200 at path.
func (p *process) ready(ctx context.Context, path string) error {
	return p.wait(ctx, "is not ready", func(ctx context.Context) bool {
		status, err := probe(ctx, p.url+path)
		return err == nil && status == http.StatusOK
	})
}

// wait looks at a condition until it holds, the server ends or patience does.
func (p *process) wait(ctx context.Context, complaint string, holds func(context.Context) bool) error {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for !holds(ctx) {
		select {
		case <-p.done:
			return fmt.Errorf("%s ended: %w; it said:\n%s", p.name, errors.Join(p.err, errEnded), tail(p.log))
		case <-ctx.Done():
			return fmt.Errorf("%s %s: %w; it said:\n%s", p.name, complaint, ctx.Err(), tail(p.log))
		case <-tick.C:
		}
	}
	return nil
}

func probe(ctx context.Context, url string) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	return resp.StatusCode, resp.Body.Close()
}

// cpu reads the server's CPU time.
func (p *process) cpu() measure.Meter { return measure.Process(p.cmd.Process.Pid) }

// stop ends the server.
func (p *process) stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-p.done:
		return nil
	case <-time.After(stopPatience):
		return errors.Join(fmt.Errorf("%s does not end and is killed", p.name), p.cmd.Process.Kill())
	}
}

// stopper ends what was started, in reverse order, also when a later start fails.
type stopper struct {
	mu    sync.Mutex
	steps []func() error
}

func (s *stopper) add(step func() error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steps = append(s.steps, step)
}

func (s *stopper) stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	for _, step := range slices.Backward(s.steps) {
		err = errors.Join(err, step())
	}
	s.steps = nil
	return err
}

// tailBytes is how much of a log an error repeats.
const tailBytes = 2000

func tail(name string) string {
	data, err := os.ReadFile(name)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(data[max(0, len(data)-tailBytes):]))
}
