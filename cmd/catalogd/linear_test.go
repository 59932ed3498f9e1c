package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/catalogd/catalogd/catalog/postgres/pgserver"
	"github.com/catalogd/catalogd/conformance/linear"
)

var (
	linearDuration = flag.Duration("linear.duration", 20*time.Second, "how long TestLinear works, its checks included")
	linearSeed     = flag.Uint64("linear.seed", 0, "seed of TestLinear; 0 for a new one")
)

// stage is two replicas on a PostgreSQL server of their own, all of which are killed.
type stage struct {
	*testing.T
	folder    string
	warehouse string
	seed      uint64
	random    *rand.Rand
	run       *linear.Run

	postgres *pgserver.Server
	replicas [2]*process
	uris     [2]atomic.Pointer[string]
}

// TestLinear lets clients work on few tables while the servers are killed, and checks
// that what they were told has an order; see package linear. After a failure
// `-linear.seed` repeats the clients' choices and the kills, though not their timing.
func TestLinear(t *testing.T) {
	t.Parallel()
	seed := *linearSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("seed %d", seed)
	folder, err := os.MkdirTemp("", "catalogd-linear-") //nolint:usetesting // PostgreSQL's account has to get through, see below
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(folder); err != nil {
			t.Error(err)
		}
	})
	// PostgreSQL runs as another user when the tests run as root, and has to get here.
	if err := os.Chmod(folder, 0o711); err != nil {
		t.Fatal(err)
	}
	s := &stage{T: t, folder: folder, warehouse: t.TempDir(), seed: seed, random: rand.New(rand.NewPCG(seed, 1))}
	s.startPostgres()
	t.Cleanup(func() { _ = s.postgres.Stop(context.WithoutCancel(t.Context())) })
	for i := range s.replicas {
		s.startReplica(i)
	}
	cfg := linear.Config{Prefix: "main", Seed: seed, ArtifactDir: artifacts(t)}
	for i := range s.uris {
		cfg.Replicas = append(cfg.Replicas, func() string { return *s.uris[i].Load() })
	}
	if s.run, err = linear.Prepare(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	for end := time.Now().Add(*linearDuration); ; {
		s.round(kinds)
		if time.Now().After(end) {
			break
		}
	}
	t.Logf("%s; faults: %v", s.run.Summary(), kinds)
}

// artifacts is a folder for what a failure leaves to look at. Without -artifacts the
// test's own folder would be gone by then.
func artifacts(t *testing.T) string {
	t.Helper()
	if f := flag.Lookup("test.artifacts"); f != nil && f.Value.String() == "true" {
		return t.ArtifactDir()
	}
	return filepath.Join(os.TempDir(), "catalogd-linear-failures")
}

// round lets the clients work through some faults and checks what they were told.
func (s *stage) round(kinds map[string]int) {
	s.Helper()
	faults := []struct {
		name string
		do   func()
	}{
		{"replica killed", s.killReplica},
		{"replica killed", s.killReplica},
		{"replica restarted", s.restartReplica},
		{"replica paused", s.pauseReplica},
		{"PostgreSQL killed", func() { s.endPostgres(syscall.SIGKILL) }},
		{"PostgreSQL stopped at once", func() { s.endPostgres(syscall.SIGQUIT) }},
		{"PostgreSQL restarted", func() { s.endPostgres(syscall.SIGINT) }},
		{"all killed", s.killAll},
		{"connections ended", func() {
			s.connections(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`)
		}},
		{"statements cancelled", func() {
			s.connections(`SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`)
		}},
	}
	s.run.Resume(s.Context())
	for range 3 {
		s.work()
		f := faults[s.random.IntN(len(faults))]
		kinds[f.name]++
		f.do()
	}
	s.work()
	s.run.Pause()
	s.settle()
	if err := s.run.Check(s.Context()); err != nil {
		for i, p := range s.replicas {
			s.Logf("replica %d printed:\n%s", i, p.log())
		}
		s.Fatalf("seed %d: %v", s.seed, err)
	}
}

// work waits for some operations to succeed, and then for a moment more: a fault hits
// operations in any of their phases.
func (s *stage) work() {
	s.Helper()
	want := s.run.Count() + 20 + s.random.IntN(80)
	eventually(s.T, 2*time.Minute, "operations succeed", func() error {
		if n := s.run.Count(); n < want {
			return fmt.Errorf("%d of %d; %w", n, want, s.run.Err())
		}
		return nil
	})
	<-time.After(time.Duration(s.random.IntN(20_000)) * time.Microsecond)
}

// settle waits until no transaction is left that began before now.
func (s *stage) settle() {
	s.Helper()
	db := s.connect()
	defer func() { _ = db.Close(context.WithoutCancel(s.Context())) }()
	var now time.Time
	if err := db.QueryRow(s.Context(), `SELECT clock_timestamp()`).Scan(&now); err != nil {
		s.Fatal(err)
	}
	eventually(s.T, time.Minute, "no old transaction is left", func() error {
		var n int
		err := db.QueryRow(s.Context(), `SELECT count(*) FROM pg_stat_activity
			WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() AND xact_start < $1`, now).Scan(&n)
		if err == nil && n > 0 {
			err = fmt.Errorf("%d are", n)
		}
		return err
	})
}

func (s *stage) connect() *pgx.Conn {
	s.Helper()
	db, err := pgx.Connect(s.Context(), s.postgres.URL())
	if err != nil {
		s.Fatal(err)
	}
	return db
}

func (s *stage) startPostgres() {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), 2*time.Minute)
	defer cancel()
	p, err := pgserver.Start(ctx, pgserver.Config{
		Dir: s.folder,
		// What was committed must survive the death of the server, though not of the machine.
		Settings: map[string]string{"synchronous_commit": "on", "full_page_writes": "on"},
	})
	if err != nil {
		s.Fatal(err)
	}
	if s.postgres != nil && p.URL() != s.postgres.URL() {
		s.Fatalf("PostgreSQL moved from %s to %s", s.postgres, p)
	}
	s.postgres = p
}

func (s *stage) endPostgres(sig syscall.Signal) {
	s.Helper()
	if err := syscall.Kill(s.postgres.PID(), sig); err != nil {
		s.Fatal(err)
	}
	<-s.postgres.Done()
	if err := s.postgres.Stop(s.Context()); err != nil { // gives up the folder
		s.Fatal(err)
	}
	s.startPostgres()
}

func (s *stage) startReplica(i int) {
	s.Helper()
	p := start(s.T, []string{"CATALOGD_DATABASE_URL=" + s.postgres.URL()},
		"serve", "--migrate", "--warehouse", s.warehouse, "--listen", "127.0.0.1:0", "--log-level", "warn")
	s.replicas[i] = p
	s.uris[i].Store(&p.uri)
}

func (s *stage) killReplica() {
	i := s.random.IntN(len(s.replicas))
	s.replicas[i].kill()
	s.startReplica(i)
}

func (s *stage) restartReplica() {
	i := s.random.IntN(len(s.replicas))
	s.replicas[i].stop()
	s.startReplica(i)
}

// pauseReplica lets a replica sleep while the other one goes on: what it remembers is old
// when it wakes up.
func (s *stage) pauseReplica() {
	s.Helper()
	p := s.replicas[s.random.IntN(len(s.replicas))].cmd.Process
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		s.Fatal(err)
	}
	<-time.After(time.Duration(100+s.random.IntN(400)) * time.Millisecond)
	if err := p.Signal(syscall.SIGCONT); err != nil {
		s.Fatal(err)
	}
}

func (s *stage) killAll() {
	for _, p := range s.replicas {
		_ = p.cmd.Process.Signal(syscall.SIGKILL)
	}
	s.endPostgres(syscall.SIGKILL)
	for i, p := range s.replicas {
		p.kill()
		s.startReplica(i)
	}
}

func (s *stage) connections(sql string) {
	s.Helper()
	db := s.connect()
	defer func() { _ = db.Close(context.WithoutCancel(s.Context())) }()
	if _, err := db.Exec(s.Context(), sql); err != nil {
		s.Fatal(err)
	}
}
