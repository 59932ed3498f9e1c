package main

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// outcome is what a command that ended by itself left.
type outcome struct {
	code           int
	stdout, stderr string
}

func (o outcome) String() string {
	return "exit code " + strconv.Itoa(o.code) + "\nstdout: " + o.stdout + "\nstderr: " + o.stderr
}

// finish runs `catalogd args…` to its end.
func finish(t *testing.T, env []string, args ...string) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := command(ctx, t, args...)
	cmd.Env = append(cmd.Env, env...)
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if ctx.Err() != nil {
		t.Fatalf("catalogd %v does not end\n%s%s", args, &stdout, &stderr)
	}
	if _, exited := err.(*exec.ExitError); err != nil && !exited { //nolint:errorlint // Run returns it bare
		t.Fatal(err)
	}
	return outcome{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// fails is finish for what must end with code 1 and say all of words on stderr.
func fails(t *testing.T, env, args []string, words ...string) outcome {
	t.Helper()
	o := finish(t, env, args...)
	if o.code != 1 {
		t.Errorf("catalogd %v ends with code %d, want 1\n%s", args, o.code, o)
	}
	for _, word := range words {
		if !strings.Contains(o.stderr, word) {
			t.Errorf("catalogd %v does not say %q\n%s", args, word, o)
		}
	}
	return o
}

// lasts waits for a process to end by itself and returns its exit code.
func (p *process) lasts() int {
	p.t.Helper()
	select {
	case <-p.exited:
	case <-time.After(time.Minute):
		p.t.Fatalf("catalogd does not end\n%s", p.log())
	}
	return p.cmd.ProcessState.ExitCode()
}

func startDevIn(t *testing.T, dir string) *process {
	t.Helper()
	return start(t, nil, "dev", "--data-dir", dir, "--listen", "127.0.0.1:0")
}

// lives proves that a catalogd does its whole job: a commit makes a view stale, which
// then follows by itself.
func (w *workbench) lives(day1 int) {
	w.Helper()
	w.append("ev.src", event{day(day1, 1), "a", int64(day1)}, event{day(day1+1, 2), "b", 5})
	w.settled("ev.daily")
	w.prove("ev.daily", dailySQL, "ev.src")
}

// TestDev_folderOutlivesProcesses takes one folder, with a space in its path, through a
// second dev beside the first, the death of catalogd and the death of its Postgres.
func TestDev_folderOutlivesProcesses(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "not there yet", "my lake")
	p := startDevIn(t, dir)
	if !strings.HasPrefix(p.uri, "http://127.0.0.1:") || strings.HasSuffix(p.uri, ":0") {
		t.Errorf("listening on %s, want the port that was picked", p.uri)
	}
	for _, client := range []string{"PyIceberg", "Spark", "Trino", "DuckDB"} {
		if printed := p.log(); !strings.Contains(printed, client) {
			t.Errorf("no settings for %s in\n%s", client, printed)
		}
	}
	w := attach(t, p)
	w.events("ev.src", nil, nil)
	w.create("ev.daily", dailySQL)
	w.lives(1)
	p.call("POST", "/v1/main/namespaces/ev/views", plainView, 200, nil)

	second := fails(t, nil, []string{"dev", "--data-dir", dir, "--listen", "127.0.0.1:0"}, dir, "in use", "--data-dir")
	if strings.Contains(second.stdout, "listening") {
		t.Errorf("the second dev served\n%s", second)
	}
	w.lives(3) // the first is unharmed

	p.kill()
	p = startDevIn(t, dir)
	w = attach(t, p)
	w.prove("ev.daily", dailySQL, "ev.src") // what was committed is there
	p.call("GET", "/v1/main/namespaces/ev/views/plain", nil, 200, nil)
	w.lives(5)

	killPostgres(t, dir)
	if code := p.lasts(); code != 1 {
		t.Errorf("exit code %d after the death of Postgres, want 1", code)
	}
	if printed := p.log(); !strings.Contains(printed, "the Postgres server ended") || !strings.Contains(printed, "postgres.log") {
		t.Errorf("the death of Postgres is not explained:\n%s", printed)
	}
	w = attach(t, startDevIn(t, dir))
	w.prove("ev.daily", dailySQL, "ev.src")
	w.lives(7)
}

const plainView = `{"name": "plain", "schema": {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "n", "required": false, "type": "long"}]},
"view-version": {"version-id": 1, "schema-id": 0, "timestamp-ms": 1700000000000, "summary": {}, "default-namespace": ["ev"],
"representations": [{"type": "sql", "sql": "SELECT count(*) AS n FROM src", "dialect": "duckdb"}]}, "properties": {}}`

// killPostgres kills the server of a dev folder, without any of its care.
func killPostgres(t *testing.T, dir string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "postgres", "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(first)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// TestDev_portInUse checks that a failed start leaves the folder free.
func TestDev_portInUse(t *testing.T) {
	t.Parallel()
	taken := listenAnywhere(t)
	dir := t.TempDir()
	fails(t, nil, []string{"dev", "--data-dir", dir, "--listen", taken}, "cannot listen on "+taken, "--listen")
	startDevIn(t, dir)
}

// TestDev_ordinaryUser runs dev as a user without any rights, which root's tests would
// not notice otherwise.
func TestDev_ordinaryUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("every test runs as an ordinary user here")
	}
	const nobody = 65534
	dir, err := os.MkdirTemp("", "catalogd-dev-") //nolint:usetesting // t.TempDir is root's alone
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil { // another user must reach it
		t.Fatal(err)
	}
	home := filepath.Join(dir, "home")
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(home, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), copySelf(t, dir), "dev", "--listen", "127.0.0.1:0")
	cmd.Env = []string{asCatalogd + "=1", "PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + home}
	cmd.Dir = home
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	p := listen(t, cmd)
	p.ready()
	w := attach(t, p)
	// This test writes as root into folders of the server's user: it may, and leaves them
	// readable, as an ordinary client would.
	w.events("ev.src", nil, nil)
	w.create("ev.daily", dailySQL)
	w.lives(1)
	owner, err := os.Stat(filepath.Join(home, ".catalogd", "postgres"))
	if err != nil {
		t.Fatal(err)
	}
	if uid := owner.Sys().(*syscall.Stat_t).Uid; uid != nobody {
		t.Errorf("the cluster belongs to user %d, want %d", uid, nobody)
	}
}

// copySelf puts the running test binary where every user can run it.
func copySelf(t *testing.T, dir string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	in, err := os.Open(self)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	path := filepath.Join(dir, "catalogd")
	out, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o755) // others run it
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}
