package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// asCatalogd makes the test binary be catalogd: tests start it as a process of its own,
// and so does the server for its engine.
const asCatalogd = "CATALOGD_TEST_AS_CATALOGD"

func TestMain(m *testing.M) {
	if os.Getenv(asCatalogd) != "" || len(os.Args) > 1 && os.Args[1] == workerName {
		main()
		return
	}
	os.Exit(m.Run())
}

// process is a running catalogd.
type process struct {
	t   *testing.T
	cmd *exec.Cmd
	uri string

	mu     sync.Mutex
	output bytes.Buffer
	exited chan struct{}
	err    error
}

// command is `catalogd args…`.
func command(ctx context.Context, t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, self, args...)
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, envPrefix) { // what the developer has set is not what is tested
			cmd.Env = append(cmd.Env, variable)
		}
	}
	cmd.Env = append(cmd.Env, asCatalogd+"=1")
	return cmd
}

// start runs `catalogd args…` until the test ends and returns once it is ready.
func start(t *testing.T, env []string, args ...string) *process {
	t.Helper()
	p := launch(t, env, args...)
	p.ready()
	return p
}

// launch is start, but returns as soon as the process listens.
func launch(t *testing.T, env []string, args ...string) *process {
	t.Helper()
	// The process must outlive t.Context, which ends before cleanups: they stop it.
	cmd := command(context.WithoutCancel(t.Context()), t, args...)
	cmd.Env = append(cmd.Env, env...)
	return listen(t, cmd)
}

// listen starts a command that is a catalogd, and stops it when the test ends.
func listen(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{t: t, cmd: cmd, exited: make(chan struct{})}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.cmd.Stderr = p
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.stop)
	listening := make(chan string, 1)
	go func() {
		lines := bufio.NewScanner(stdout)
		for lines.Scan() {
			fmt.Fprintln(p, lines.Text())
			if uri, ok := strings.CutPrefix(lines.Text(), "listening on "); ok {
				listening <- uri
			}
		}
		p.err = p.cmd.Wait()
		close(p.exited)
	}()
	select {
	case p.uri = <-listening:
	case <-p.exited:
		t.Fatalf("%s ended: %v\n%s", cmd, p.err, p.log())
	case <-time.After(2 * time.Minute):
		t.Fatalf("%s does not listen\n%s", cmd, p.log())
	}
	return p
}

// ready waits until the process says that it is ready.
func (p *process) ready() {
	p.t.Helper()
	eventually(p.t, time.Minute, "catalogd is ready", func() error {
		status, answer, err := p.try(http.MethodGet, "/readyz", nil)
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("/readyz: %d %s", status, answer)
		}
		return err
	})
}

// Write collects what the process prints.
func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.output.Write(b)
}

func (p *process) log() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.output.String()
}

// stop ends the process in order.
func (p *process) stop() {
	select {
	case <-p.exited:
		return
	default:
	}
	_ = p.cmd.Process.Signal(os.Interrupt)
	select {
	case <-p.exited:
	case <-time.After(time.Minute):
		p.t.Errorf("catalogd does not stop\n%s", p.log())
		p.kill()
	}
	if p.t.Failed() {
		p.t.Logf("catalogd printed:\n%s", p.log())
	}
}

// kill ends the process as the kernel would: nothing is cleaned up.
func (p *process) kill() {
	_ = p.cmd.Process.Signal(syscall.SIGKILL)
	<-p.exited
}

// call sends a JSON request and decodes the answer; it fails the test unless the status
// is want.
func (p *process) call(method, path string, body any, want int, out any) {
	p.t.Helper()
	status, raw, err := p.try(method, path, body)
	if err != nil {
		p.t.Fatalf("%s %s: %v\n%s", method, path, err, p.log())
	}
	if status != want {
		p.t.Fatalf("%s %s = %d, want %d: %s", method, path, status, want, raw)
	}
	if out == nil {
		return
	}
	if err := json.Unmarshal(raw, out); err != nil {
		p.t.Fatalf("%s %s: %v in %s", method, path, err, raw)
	}
}

// try is call without judgement.
func (p *process) try(method, path string, body any) (status int, answer []byte, err error) {
	var in io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		in = strings.NewReader(b)
	default:
		raw, err := json.Marshal(b)
		if err != nil {
			return 0, nil, err
		}
		in = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(context.WithoutCancel(p.t.Context()), method, p.uri+path, in)
	if err != nil {
		return 0, nil, err
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	answer, err = io.ReadAll(res.Body)
	return res.StatusCode, answer, err
}

// eventually waits until check returns nil.
func eventually(t *testing.T, within time.Duration, what string, check func() error) {
	t.Helper()
	deadline := time.Now().Add(within)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s: %v", within, what, err)
		}
		time.Sleep(20 * time.Millisecond) // between two looks at a condition
	}
}
