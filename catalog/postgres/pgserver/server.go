package pgserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Config says where and how to run a server.
type Config struct {
	// Dir holds everything: the cluster in Dir/postgres, the log in Dir/postgres.log, the
	// lock and mostly the socket. It is made if it does not exist.
	Dir string
	// Log gets what an operator wants to know; nil discards it.
	Log *slog.Logger
	// Durable makes a commit survive a crash of the machine. Without it the cluster is
	// for tests: a crash may destroy it, and the server ends at once with our process.
	Durable bool
	// Settings are server parameters that override this package's choices, except where
	// the server listens.
	Settings map[string]string
	// Binaries is the installation to use. The zero value finds or fetches one.
	Binaries Binaries
	// CacheDir keeps fetched binaries; empty means the user's cache folder.
	CacheDir string
	// TCP lets the server listen on the loopback address, with a password, as it does where
	// no Unix socket can be made: for clients that know no other way.
	TCP bool
}

func (c Config) dataDir() string { return filepath.Join(c.Dir, "postgres") }

// Server is a running PostgreSQL that belongs to this process.
type Server struct {
	cfg     Config
	addr    address
	lock    *os.File
	cmd     *exec.Cmd
	done    chan struct{} // closed when the process has ended
	exitErr error         // set before done is closed
	stop    sync.Once
	stopErr error
}

// Start runs the cluster in cfg.Dir, which it makes if there is none, and returns when
// the server answers queries. It fails with [ErrInUse] if another process has the folder.
// ctx bounds the start only: a server runs until [Server.Stop], or until the process ends.
func Start(ctx context.Context, cfg Config) (_ *Server, err error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Dir, err = filepath.Abs(cfg.Dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(cfg.Dir, 0o755); err != nil { //nolint:gosec // the cluster inside is 0700; other folders beside it are shared
		return nil, err
	}
	s := &Server{cfg: cfg, done: make(chan struct{})}
	if s.lock, err = lock(cfg.Dir); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.release()
		}
	}()
	acct, err := accountFor(cfg.dataDir())
	if err != nil {
		return nil, err
	}
	binaries, err := s.prepare(ctx, acct)
	if err != nil {
		return nil, fmt.Errorf("PostgreSQL in %s: %w", cfg.Dir, err)
	}
	began := time.Now()
	if err := s.launch(ctx, binaries, acct); err != nil {
		return nil, fmt.Errorf("PostgreSQL in %s: %w", cfg.Dir, err)
	}
	if err := s.waitReady(ctx); err != nil {
		// The caller's context may be over; the server must go all the same.
		return nil, errors.Join(fmt.Errorf("PostgreSQL in %s: %w", cfg.Dir, err), s.Stop(context.WithoutCancel(ctx)))
	}
	cfg.Log.InfoContext(ctx, "PostgreSQL is ready", slog.String("version", binaries.Version),
		slog.String("data_dir", cfg.dataDir()), slog.Int("pid", s.PID()), slog.Duration("took", time.Since(began)))
	return s, nil
}

// prepare leaves a cluster in the data folder that no other process uses.
func (s *Server) prepare(ctx context.Context, acct *account) (Binaries, error) {
	dataDir := s.cfg.dataDir()
	if err := stopOrphans(ctx, dataDir, s.cfg.Log); err != nil {
		return Binaries{}, err
	}
	major, err := clusterMajor(dataDir)
	if err != nil {
		return Binaries{}, err
	}
	b, err := chooseBinaries(ctx, s.cfg, acct, major)
	if err != nil {
		return Binaries{}, err
	}
	if major == 0 {
		s.cfg.Log.InfoContext(ctx, "making a PostgreSQL cluster", slog.String("version", b.Version), slog.String("data_dir", dataDir))
		return b, initCluster(ctx, s.cfg, b, acct)
	}
	if owner, ok := ownerOf(dataDir); ok && owner.uid == 0 && acct != nil {
		return b, acct.ownTree(dataDir) // restored or copied by root
	}
	return b, nil
}

// launch starts the server process.
func (s *Server) launch(ctx context.Context, b Binaries, acct *account) error {
	var err error
	if s.addr, err = newAddress(ctx, s.cfg, acct); err != nil {
		return err
	}
	if s.addr.password != "" {
		if err := s.setPassword(ctx, b, acct); err != nil {
			return err
		}
		if s.addr.port, err = freePort(ctx); err != nil {
			return err
		}
	}
	logFile, err := openLog(s.logPath())
	if err != nil {
		return err
	}
	defer logFile.Close()
	// The server outlives ctx, so its command has none.
	cmd, release, err := command(context.WithoutCancel(ctx), b.path("postgres"), s.cfg.dataDir(), acct, s.arguments()...)
	if err != nil {
		return err
	}
	defer release()
	cmd.Stdout, cmd.Stderr = logFile, logFile
	endWithParent(cmd.SysProcAttr, s.shutdownSignal())
	s.cmd = cmd
	started := make(chan error)
	go func() {
		// The kernel takes the death of the thread that forked for the death of the
		// parent. The thread is kept here, and ends with this goroutine.
		runtime.LockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			s.exitErr = cmd.Wait()
		}
		close(s.done)
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("run %s as %s: %w", b.path("postgres"), acct, err)
	}
	return nil
}

// shutdownSignal is SIGINT (disconnect everybody, write a checkpoint) for data that
// counts, SIGQUIT (end at once) for data that does not.
func (s *Server) shutdownSignal() syscall.Signal {
	if s.cfg.Durable {
		return syscall.SIGINT
	}
	return syscall.SIGQUIT
}

// arguments renders the server parameters, each as one argument: no shell sees them.
func (s *Server) arguments() []string {
	settings := map[string]string{
		"max_connections": "200",
		"shared_buffers":  "128MB",
		"timezone":        "UTC",
		"log_timezone":    "UTC",
		"log_line_prefix": "%m [%p] %d ",
		"jit":             "off", // our queries are short; compiling them costs more than it saves
	}
	if !s.cfg.Durable {
		maps.Copy(settings, map[string]string{
			"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off",
			"shared_buffers": "32MB", "max_wal_size": "256MB", "log_checkpoints": "off",
		})
	}
	maps.Copy(settings, s.cfg.Settings)
	maps.Copy(settings, s.addr.settings())
	var args []string
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		args = append(args, "-c", name+"="+settings[name])
	}
	return args
}

// setPassword runs the server in its single-user mode, which needs no password to set one.
func (s *Server) setPassword(ctx context.Context, b Binaries, acct *account) error {
	cmd, release, err := command(ctx, b.path("postgres"), s.cfg.dataDir(), acct, "postgres")
	if err != nil {
		return err
	}
	defer release()
	cmd.Args = slices.Insert(cmd.Args, 1, "--single") // must come first
	cmd.Stdin = strings.NewReader(s.addr.passwordSQL() + "\n")
	if out, err := cmd.CombinedOutput(); err != nil || bytes.Contains(out, []byte("ERROR:")) {
		return fmt.Errorf("set the server's password: %w", errors.Join(err, errors.New(redact(string(out), s.addr.password))))
	}
	return nil
}

func redact(text, secret string) string { return strings.ReplaceAll(text, secret, "xxxxx") }

// waitReady waits until the server answers and holds our database. How long recovery
// after a crash takes is not ours to bound; ctx does.
func (s *Server) waitReady(ctx context.Context) error {
	tick, patience := time.NewTicker(pollInterval), time.NewTicker(10*time.Second)
	defer tick.Stop()
	defer patience.Stop()
	for {
		err := s.createDatabase(ctx)
		if err == nil {
			return nil
		}
		if pgErr, ok := errors.AsType[*pgconn.PgError](err); ok && pgErr.Code != cannotConnectNow {
			return err
		}
		select {
		case <-s.done:
			return fmt.Errorf("the server ended: %w; its log (%s) ends with:\n%s", errors.Join(s.exitErr), s.logPath(), tail(s.logPath()))
		case <-ctx.Done():
			return fmt.Errorf("the server was not ready in time (log: %s): %w", s.logPath(), errors.Join(ctx.Err(), err))
		case <-patience.C:
			s.cfg.Log.WarnContext(ctx, "PostgreSQL is not ready yet", slog.String("log", s.logPath()), slog.Any("error", err))
		case <-tick.C:
		}
	}
}

// The SQLSTATEs that starting up meets.
const (
	cannotConnectNow = "57P03" // still starting or recovering
	noSuchDatabase   = "3D000"
)

// createDatabase connects to our database and makes it when the cluster is new.
func (s *Server) createDatabase(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, s.URL())
	if err == nil {
		return conn.Close(ctx)
	}
	if pgErr, ok := errors.AsType[*pgconn.PgError](err); !ok || pgErr.Code != noSuchDatabase {
		return err
	}
	if conn, err = pgx.Connect(ctx, s.addr.url("postgres").String()); err != nil {
		return err
	}
	_, err = conn.Exec(ctx, "CREATE DATABASE "+database)
	return errors.Join(err, conn.Close(ctx))
}

// URL is the connection string of the server's database. It may hold a password: never
// log it, log the Server itself.
func (s *Server) URL() string { return s.addr.url(database).String() }

// String is the URL without the password.
func (s *Server) String() string { return s.addr.url(database).Redacted() }

// LogValue keeps the password out of logs.
func (s *Server) LogValue() slog.Value { return slog.StringValue(s.String()) }

// PID is the number of the server's first process.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// Done is closed when the server has ended, by [Server.Stop] or by itself.
func (s *Server) Done() <-chan struct{} { return s.done }

// Stop disconnects all clients and shuts the server down: at once if ctx ends. Later calls
// return what the first did.
func (s *Server) Stop(ctx context.Context) error {
	s.stop.Do(func() {
		s.stopErr = s.shutDown(ctx)
		s.release()
	})
	return s.stopErr
}

func (s *Server) shutDown(ctx context.Context) error {
	if err := s.signal(s.shutdownSignal()); err != nil {
		return err
	}
	if s.ended(ctx) {
		return nil
	}
	for _, sig := range []syscall.Signal{syscall.SIGQUIT, syscall.SIGKILL} {
		if err := s.signal(sig); err != nil {
			return err
		}
		patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), immediatePatience)
		ended := s.ended(patience)
		cancel()
		if ended {
			return nil
		}
	}
	return fmt.Errorf("PostgreSQL process %d does not end", s.PID())
}

func (s *Server) signal(sig syscall.Signal) error {
	if err := s.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// ended waits for the process and reports whether it ended before ctx did.
func (s *Server) ended(ctx context.Context) bool {
	select {
	case <-s.done:
		return true
	case <-ctx.Done():
		return false
	}
}

// release gives up everything but the cluster and the log.
func (s *Server) release() {
	if s.addr.temporary {
		if err := removeRecordedSocketDir(s.cfg.Dir); err != nil {
			s.cfg.Log.Warn("cannot remove the socket folder", slog.Any("error", err))
		}
	}
	if err := s.lock.Close(); err != nil {
		s.cfg.Log.Warn("cannot release the lock", slog.Any("error", err))
	}
}

func (s *Server) logPath() string { return filepath.Join(s.cfg.Dir, "postgres.log") }

// maxLogBytes is when a start moves the log aside.
const maxLogBytes = 16 << 20

func openLog(path string) (*os.File, error) {
	if info, err := os.Stat(path); err == nil && info.Size() > maxLogBytes {
		if err := os.Rename(path, path+".1"); err != nil {
			return nil, err
		}
	}
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
}

// tail returns the last lines of a log, for a message.
func tail(path string) string {
	const want = 2 << 10
	f, err := os.Open(path)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	if end, err := f.Seek(0, io.SeekEnd); err == nil && end > want {
		_, _ = f.Seek(-want, io.SeekEnd) // reading from the start is no worse
	} else {
		_, _ = f.Seek(0, io.SeekStart)
	}
	text, _ := io.ReadAll(f)
	return strings.TrimSpace(string(text))
}
