package pgserver_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/catalogd/catalogd/catalog/postgres/pgserver"
)

// helperEnv makes the test binary run a server in the folder it names, instead of tests.
const helperEnv = "PGSERVER_TEST_HELPER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(helperEnv); dir != "" {
		if err := helper(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// helper starts a durable server, commits a row, says so and waits for its input to end.
func helper(dir string) error {
	ctx := context.Background()
	s, err := pgserver.Start(ctx, pgserver.Config{Dir: dir, Durable: true})
	if err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, s.URL())
	if err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, `CREATE TABLE IF NOT EXISTS kept (x int); INSERT INTO kept VALUES (1)`); err != nil {
		return err
	}
	fmt.Fprintln(os.Stdout, s.PID())
	_, _ = io.Copy(io.Discard, os.Stdin)
	return s.Stop(ctx)
}

// process is a helper that has committed its row.
type process struct {
	*exec.Cmd
	stdin  io.WriteCloser
	server int // pid of its postmaster
}

// startHelper runs this binary again as a program of its own; a nil cred means as
// ourselves.
func startHelper(t *testing.T, dir string, cred *syscall.Credential) process {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if cred != nil {
		exe = copyProgram(t, exe)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), helperEnv+"="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: cred}
	cmd.Dir = "/"
	var stderr strings.Builder
	cmd.Stderr = &stderr
	stdin, err1 := cmd.StdinPipe()
	stdout, err2 := cmd.StdoutPipe()
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	line, err := bufio.NewReader(stdout).ReadString('\n')
	pid, convErr := strconv.Atoi(strings.TrimSpace(line))
	if err != nil || convErr != nil {
		_ = cmd.Wait()
		t.Fatalf("helper printed %q: %v\n%s", line, err, &stderr)
	}
	return process{Cmd: cmd, stdin: stdin, server: pid}
}

// copyProgram puts the program where every user can execute it.
func copyProgram(t *testing.T, exe string) string {
	t.Helper()
	data, err := os.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(sharedDir(t), "helper")
	if err := os.WriteFile(path, data, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// sharedDir is a temporary folder that every user can pass through, unlike t.TempDir.
func sharedDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "pgserver-") //nolint:usetesting // t.TempDir is for its owner only
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// ordinaryUser is somebody who is not root.
func ordinaryUser(t *testing.T) *syscall.Credential {
	t.Helper()
	u, err := user.Lookup("nobody")
	if err != nil {
		t.Skipf("no account to try with: %v", err)
	}
	uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

// start runs a server that the test stops at its end if it has not done so itself.
func start(t *testing.T, cfg pgserver.Config) *pgserver.Server {
	t.Helper()
	s, err := pgserver.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, s) })
	return s
}

func stop(t *testing.T, s *pgserver.Server) {
	t.Helper()
	if err := s.Stop(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
}

func connect(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	return conn
}

// query returns the one value that sql yields.
func query[T any](t *testing.T, dsn, sql string) T {
	t.Helper()
	var v T
	if err := connect(t, dsn).QueryRow(t.Context(), sql).Scan(&v); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

// wantNoServer waits until no postgres works in dir any more.
func wantNoServer(t *testing.T, dir string) {
	t.Helper()
	dataDir := filepath.Join(dir, "postgres")
	eventually(t, "the end of all servers in "+dir, func() bool { return len(pgserver.ServerProcesses(dataDir)) == 0 })
}

// eventually polls what can only be observed.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(20 * time.Second)
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited in vain for %s", what)
		}
	}
}
