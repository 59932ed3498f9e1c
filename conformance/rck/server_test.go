package rck_test

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

// TestMain makes and removes the folder of the binary that the tests build.
func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "catalogd-rck")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	built.path = filepath.Join(dir, "catalogd")
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// built is catalogd, compiled once for all tests of this package.
var built struct {
	once sync.Once
	path string
	err  error
}

// binary is catalogd, built unless CATALOGD_BINARY names one.
func binary(t *testing.T) string {
	t.Helper()
	if path := os.Getenv("CATALOGD_BINARY"); path != "" {
		return path
	}
	built.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
		defer cancel()
		built.err = run(ctx, "go", "build", "-tags", "duckdb_arrow", "-o", built.path, "../../cmd/catalogd")
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return built.path
}

// server is a program that serves the REST catalog protocol.
type server struct {
	name   string
	uri    string
	cmd    *exec.Cmd
	exited chan struct{}

	mu     sync.Mutex
	output bytes.Buffer
}

// startCatalogd runs `catalogd dev` with an empty catalog, which is stopped when the test
// ends. Tables may be anywhere below the folders besides the warehouse.
func startCatalogd(t *testing.T, folders ...string) *server {
	t.Helper()
	home := t.TempDir()
	// PostgreSQL runs as another user when the tests run as root, and has to get here.
	for dir := home; strings.HasPrefix(dir, os.TempDir()) && dir != os.TempDir(); dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	args := []string{"dev", "--data-dir", filepath.Join(home, "data"), "--listen", "127.0.0.1:0"}
	for _, folder := range folders {
		args = append(args, "--allow-location", "file://"+folder)
	}
	s := &server{name: "catalogd", exited: make(chan struct{})}
	s.cmd = exec.CommandContext(context.WithoutCancel(t.Context()), binary(t), args...)
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "CATALOGD_") { // what the developer has set is not what is tested
			s.cmd.Env = append(s.cmd.Env, variable)
		}
	}
	listening := s.start(t)
	select {
	case s.uri = <-listening:
	case <-s.exited:
		t.Fatalf("catalogd ended at once\n%s", s.log())
	case <-time.After(3 * time.Minute):
		t.Fatalf("catalogd does not listen\n%s", s.log())
	}
	for end := time.Now().Add(2 * time.Minute); ; <-time.After(50 * time.Millisecond) {
		err := s.ready(t.Context(), "/readyz")
		if err == nil {
			return s
		}
		if time.Now().After(end) {
			t.Fatalf("catalogd is not ready: %v\n%s", err, s.log())
		}
	}
}

// start starts the program; the channel gets the address that it prints.
func (s *server) start(t *testing.T) <-chan string {
	t.Helper()
	stdout, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	s.cmd.Stderr = s
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.stop(t) })
	listening := make(chan string, 1)
	go s.follow(stdout, listening)
	return listening
}

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

// ready asks once for a path that a server answers with 200 when it is up.
func (s *server) ready(ctx context.Context, path string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.uri+path, http.NoBody)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return errors.New(res.Status)
	}
	return nil
}

// Write collects what the program prints.
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

// stop ends the program in order. A panic in its log is a failure: the client that met it
// saw no more than a 500.
func (s *server) stop(t *testing.T) {
	t.Helper()
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.exited:
	case <-time.After(time.Minute):
		_ = s.cmd.Process.Kill()
		<-s.exited
		t.Errorf("%s does not stop", s.name)
	}
	if strings.Contains(s.log(), "panic: ") {
		t.Errorf("%s panicked", s.name)
	}
	if t.Failed() {
		t.Logf("%s printed:\n%s", s.name, s.log())
	}
}
