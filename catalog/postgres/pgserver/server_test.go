package pgserver_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/catalogd/catalogd/catalog/postgres/pgserver"
)

func TestServer_RestartKeepsData(t *testing.T) {
	t.Parallel()
	ctx, dir := t.Context(), t.TempDir()
	s := start(t, pgserver.Config{Dir: dir, Durable: true})
	if _, err := connect(t, s.URL()).Exec(ctx, `CREATE TABLE kept AS SELECT 42 AS x`); err != nil {
		t.Fatal(err)
	}
	stop(t, s)
	wantNoServer(t, dir)

	s = start(t, pgserver.Config{Dir: dir, Durable: true, Settings: map[string]string{"work_mem": "7MB"}})
	if got := query[int](t, s.URL(), `SELECT x FROM kept`); got != 42 {
		t.Errorf("x = %d after a restart, want 42", got)
	}
	for name, want := range map[string]string{
		"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on", "listen_addresses": "",
		"max_connections": "200", "timezone": "UTC", "server_encoding": "UTF8", "work_mem": "7MB",
	} {
		if got := query[string](t, s.URL(), `SHOW `+name); got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
	info, err := os.Stat(filepath.Join(dir, "postgres"))
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode().Perm(); got != 0o700 {
		t.Errorf("mode of the data folder = %o, want 700", got)
	}
}

// TestStart_Paths runs a server in folders whose names need care: they end up in a
// connection string, a server parameter and a socket path of limited length.
func TestStart_Paths(t *testing.T) {
	t.Parallel()
	for name, sub := range map[string]string{
		"special characters": `a b, "c" 'd' %20 ü$HOME [1]*?\`,
		"long":               strings.Repeat("long-", 20) + "/" + strings.Repeat("longer-", 20),
	} {
		for reach, parent := range map[string]func(*testing.T) string{
			"for all":  sharedDir,
			"only own": func(t *testing.T) string { t.Helper(); return t.TempDir() }, // root's alone when we are root
		} {
			t.Run(name+", reachable "+reach, func(t *testing.T) {
				t.Parallel()
				dir := filepath.Join(parent(t), sub)
				for range 2 { // makes the cluster, takes it up again
					s := start(t, pgserver.Config{Dir: dir})
					if got := query[string](t, s.URL(), `SELECT current_database()`); got != "catalogd" {
						t.Errorf("database = %q, want catalogd", got)
					}
					stop(t, s)
					u, err := url.Parse(s.URL())
					if err != nil {
						t.Fatal(err)
					}
					if socket := filepath.Join(u.Query().Get("host"), ".s.PGSQL.5432"); len(socket) > 100 {
						t.Errorf("socket path %s has %d bytes, want at most 100", socket, len(socket))
					} else if _, err := os.Stat(socket); err == nil {
						t.Errorf("socket %s is left behind", socket)
					}
				}
				left, err := filepath.Glob(filepath.Join(dir, "socket-folder"))
				if err != nil || len(left) > 0 {
					t.Errorf("left behind: %v %v", left, err)
				}
			})
		}
	}
}

func TestStart_InUse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := start(t, pgserver.Config{Dir: dir})
	_, err := pgserver.Start(t.Context(), pgserver.Config{Dir: dir})
	if !errors.Is(err, pgserver.ErrInUse) {
		t.Fatalf("second Start = %v, want ErrInUse", err)
	}
	for _, want := range []string{dir, "process " + strconv.Itoa(os.Getpid())} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q does not name %q", err, want)
		}
	}
	if got := query[int](t, s.URL(), `SELECT 1`); got != 1 {
		t.Errorf("the first server answers %d, want 1", got)
	}
}

// TestStart_AfterKill kills a process that has a server, and checks that the next one
// starts, finds what was committed, and leaves no process behind.
func TestStart_AfterKill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for round := 1; round <= 2; round++ {
		p := startHelper(t, dir, nil)
		if err := p.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = p.Wait() // killed, as wanted

		s := start(t, pgserver.Config{Dir: dir, Durable: true})
		if got := query[int](t, s.URL(), `SELECT count(*) FROM kept`); got != round {
			t.Errorf("round %d: %d rows, want %d", round, got, round)
		}
		stop(t, s)
		wantNoServer(t, dir)
	}
}

// TestStart_StopsOrphan starts over a server that survived its owner, and over backends
// that survived their postmaster.
func TestStart_StopsOrphan(t *testing.T) {
	t.Parallel()
	for name, killed := range map[string]bool{"postmaster alive": false, "postmaster killed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			stop(t, start(t, pgserver.Config{Dir: dir, Durable: true}))
			pid, wait, err := pgserver.StartOrphan(context.WithoutCancel(t.Context()), dir)
			if err != nil {
				t.Fatal(err)
			}
			pidFile := filepath.Join(dir, "postgres", "postmaster.pid")
			eventually(t, "the orphan to be ready", func() bool {
				text, err := os.ReadFile(pidFile)
				return err == nil && strings.Contains(string(text), "ready")
			})
			if killed {
				if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
					t.Fatal(err)
				}
			}
			ended := make(chan error, 1)
			go func() { ended <- wait() }()

			s := start(t, pgserver.Config{Dir: dir, Durable: true})
			if err := <-ended; (err != nil) != killed {
				t.Errorf("the orphan ended with %v", err)
			}
			if got := query[int](t, s.URL(), `SELECT 1`); got != 1 {
				t.Errorf("got %d, want 1", got)
			}
			stop(t, s)
			wantNoServer(t, dir)
		})
	}
}

// TestStart_RecycledPID gives a stale postmaster.pid the number of a living process that
// is no server: it must neither be killed nor keep the server from starting.
func TestStart_RecycledPID(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	stop(t, start(t, pgserver.Config{Dir: dir}))
	pidFile := filepath.Join(dir, "postgres", "postmaster.pid")
	text := fmt.Sprintf("%d\n%s\n1700000000\n5432\n\n\n", os.Getppid(), filepath.Join(dir, "postgres"))
	if err := os.WriteFile(pidFile, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s := start(t, pgserver.Config{Dir: dir})
	if got := query[int](t, s.URL(), `SELECT 1`); got != 1 {
		t.Errorf("got %d, want 1", got)
	}
}

// TestStart_OrdinaryUser runs the helper as somebody else when we are root, so that both
// ways are tried wherever the tests run as root. A root that follows keeps the owner.
func TestStart_OrdinaryUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("not root: every other test here runs as an ordinary user already")
	}
	cred := ordinaryUser(t)
	dir := filepath.Join(sharedDir(t), "data")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(dir, int(cred.Uid), int(cred.Gid)); err != nil {
		t.Fatal(err)
	}
	p := startHelper(t, dir, cred)
	if err := p.stdin.Close(); err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(); err != nil {
		t.Fatal(err)
	}
	wantNoServer(t, dir)

	s := start(t, pgserver.Config{Dir: dir})
	if got := query[int](t, s.URL(), `SELECT count(*) FROM kept`); got != 1 {
		t.Errorf("root sees %d rows of the ordinary user's cluster, want 1", got)
	}
	info, err := os.Stat(filepath.Join(dir, "postgres"))
	if err != nil {
		t.Fatal(err)
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || st.Uid != cred.Uid {
		t.Errorf("owner of the cluster = %v, want it kept at %d", st, cred.Uid)
	}
}

func TestStart_Refuses(t *testing.T) {
	t.Parallel()
	found, err := pgserver.Find(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, file, text string
		want             []string
	}{
		{"another major version", "PG_VERSION", "9\n", []string{"PostgreSQL 9", found.Version, "pg_upgrade"}},
		{"other files", "diary.txt", "dear diary", []string{"no PostgreSQL cluster"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.Mkdir(filepath.Join(dir, "postgres"), 0o700); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, "postgres", tt.file)
			if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
				t.Fatal(err)
			}
			s, err := pgserver.Start(t.Context(), pgserver.Config{Dir: dir})
			if err == nil {
				stop(t, s)
				t.Fatal("Start succeeded, want a refusal")
			}
			for _, want := range append(tt.want, dir) {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q does not name %q", err, want)
				}
			}
			if got, err := os.ReadFile(path); err != nil || string(got) != tt.text {
				t.Errorf("%s = %q, %v after the refusal, want it untouched", tt.file, got, err)
			}
		})
	}
}

// TestStart_BadSetting checks that the server's own words reach the caller, and that the
// folder can be used again at once.
func TestStart_BadSetting(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, err := pgserver.Start(t.Context(), pgserver.Config{Dir: dir, Settings: map[string]string{"no_such_setting": "1"}})
	if err == nil || !strings.Contains(err.Error(), "no_such_setting") {
		t.Errorf("Start = %v, want the server's complaint about no_such_setting", err)
	}
	start(t, pgserver.Config{Dir: dir})
}

// TestStart_AfterInterruptedInit leaves what a crash during initdb leaves.
func TestStart_AfterInterruptedInit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	half := filepath.Join(dir, "postgres.new-123")
	if err := os.MkdirAll(filepath.Join(half, "base"), 0o700); err != nil {
		t.Fatal(err)
	}
	start(t, pgserver.Config{Dir: dir})
	if _, err := os.Stat(half); err == nil {
		t.Errorf("%s is still there", half)
	}
}

// TestServer_TCP runs without sockets: on a loopback port that needs a password, which is
// shown nowhere.
func TestServer_TCP(t *testing.T) {
	t.Parallel()
	s := start(t, pgserver.WithoutSockets(pgserver.Config{Dir: t.TempDir()}))
	if got := query[string](t, s.URL(), `SELECT host(inet_server_addr())`); got != "127.0.0.1" {
		t.Errorf("server address = %q, want 127.0.0.1", got)
	}
	u, err := url.Parse(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	password, _ := u.User.Password()
	if len(password) < 20 {
		t.Errorf("password has %d characters, want at least 20", len(password))
	}
	for _, shown := range []string{s.String(), s.LogValue().String(), fmt.Sprint(s)} {
		if strings.Contains(shown, password) {
			t.Errorf("%s shows the password", shown)
		}
	}
	u.User = url.UserPassword(u.User.Username(), "wrong")
	if conn, err := pgx.Connect(t.Context(), u.String()); err == nil {
		_ = conn.Close(t.Context())
		t.Error("a wrong password was accepted")
	}
}

// TestServer_Done checks that a server that ends by itself is noticed, and stopped cleanly.
func TestServer_Done(t *testing.T) {
	t.Parallel()
	s := start(t, pgserver.Config{Dir: t.TempDir()})
	select {
	case <-s.Done():
		t.Fatal("Done is closed while the server runs")
	default:
	}
	if err := syscall.Kill(s.PID(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-s.Done()
	if err := s.Stop(t.Context()); err != nil {
		t.Errorf("Stop = %v, want nil", err)
	}
}

// TestServer_StopDisconnects checks that an open transaction does not hold up a stop.
func TestServer_StopDisconnects(t *testing.T) {
	t.Parallel()
	s := start(t, pgserver.Config{Dir: t.TempDir(), Durable: true})
	conn := connect(t, s.URL())
	if _, err := conn.Exec(t.Context(), `BEGIN; CREATE TABLE x (y int)`); err != nil {
		t.Fatal(err)
	}
	stop(t, s)
	if err := conn.Ping(t.Context()); err == nil {
		t.Error("the connection survived")
	}
}
