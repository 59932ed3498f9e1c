package conformance_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestMain stops the server that the tests share, if one of them started it.
func TestMain(m *testing.M) {
	code := m.Run()
	if err := shared.stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// shared is the one catalogd of this package: the tests keep apart by namespace.
var shared server

// server is a catalogd process with a data folder of its own.
type server struct {
	once   sync.Once
	err    error
	folder string
	uri    string
	cmd    *exec.Cmd
	exited chan struct{}

	mu     sync.Mutex
	output bytes.Buffer
}

// uriOf starts the shared server if need be.
func uriOf(t *testing.T) string {
	t.Helper()
	shared.once.Do(func() { shared.err = shared.start() })
	if shared.err != nil {
		t.Fatalf("catalogd: %v\n%s", shared.err, shared.log())
	}
	return shared.uri
}

func (s *server) start() error {
	var err error
	if s.folder, err = os.MkdirTemp("", "catalogd-conformance"); err != nil {
		return err
	}
	// PostgreSQL runs as another user when the tests run as root, and has to get here.
	if err := os.Chmod(s.folder, 0o755); err != nil {
		return err
	}
	binary, err := s.binary()
	if err != nil {
		return err
	}
	s.exited = make(chan struct{})
	s.cmd = exec.CommandContext(context.Background(), binary, "dev", "--data-dir", filepath.Join(s.folder, "data"), "--listen", "127.0.0.1:0",
		"--plan-page-files", "2") // scans of a few files have several pages
	s.cmd.Stderr = s
	stdout, err := s.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := s.cmd.Start(); err != nil {
		return err
	}
	listening := make(chan string, 1)
	go s.follow(stdout, listening)
	select {
	case s.uri = <-listening:
	case <-s.exited:
		return errors.New("dev ended at once")
	case <-time.After(3 * time.Minute):
		return errors.New("dev does not listen")
	}
	return s.ready()
}

// binary is catalogd, built unless CATALOGD_BINARY names one.
func (s *server) binary() (string, error) {
	if path := os.Getenv("CATALOGD_BINARY"); path != "" {
		return path, nil
	}
	path := filepath.Join(s.folder, "catalogd")
	out, err := exec.CommandContext(context.Background(), "go", "build", "-tags", "duckdb_arrow", "-o", path, "../cmd/catalogd").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
}

// follow collects the output and finds the address in it.
func (s *server) follow(stdout io.Reader, listening chan<- string) {
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		fmt.Fprintln(s, lines.Text())
		if uri, ok := strings.CutPrefix(lines.Text(), "listening on "); ok {
			listening <- uri
		}
	}
	_ = s.cmd.Wait() // how it ended is in its log
	close(s.exited)
}

func (s *server) ready() error {
	var last error
	for end := time.Now().Add(time.Minute); time.Now().Before(end); <-time.After(50 * time.Millisecond) {
		req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, s.uri+"/readyz", http.NoBody)
		if err != nil {
			return err
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			last = err
			continue
		}
		_ = res.Body.Close()
		if res.StatusCode == http.StatusOK {
			return nil
		}
		last = errors.New("/readyz: " + res.Status)
	}
	return last
}

// Write collects what catalogd prints.
func (s *server) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.output.Write(b)
}

func (s *server) log() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.output.String()
}

// stop ends the server in order. A panic in its log is a failure of the run: the client
// that met it saw no more than a 500.
func (s *server) stop() error {
	if s.cmd == nil || s.cmd.Process == nil {
		return os.RemoveAll(s.folder)
	}
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	var err error
	select {
	case <-s.exited:
	case <-time.After(time.Minute):
		_ = s.cmd.Process.Kill()
		err = errors.New("catalogd does not stop")
	}
	if strings.Contains(s.log(), "panic: ") {
		err = errors.Join(err, errors.New("catalogd panicked:\n"+s.log()))
	}
	return errors.Join(err, os.RemoveAll(s.folder))
}
