package pgserver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

// superuser and database are the names that a new cluster is made with.
const (
	superuser = "catalogd"
	database  = "catalogd"
)

// clusterMajor tells which PostgreSQL made the cluster in dataDir, 0 if there is none yet.
func clusterMajor(dataDir string) (int, error) {
	text, err := os.ReadFile(filepath.Join(dataDir, "PG_VERSION"))
	if err == nil {
		return strconv.Atoi(strings.TrimSpace(string(text)))
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	entries, err := os.ReadDir(dataDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	if len(entries) > 0 {
		return 0, fmt.Errorf("%s holds files but no PostgreSQL cluster: move it away or choose another folder", dataDir)
	}
	return 0, nil
}

// chooseBinaries returns the configured installation, or looks for one and at last fetches
// one. An existing cluster takes no other major version than its own.
func chooseBinaries(ctx context.Context, cfg Config, acct *account, major int) (Binaries, error) {
	b := cfg.Binaries
	if b.Dir == "" {
		dirs := candidateDirs(ctx)
		var err error
		if b, err = find(ctx, dirs, acct, major); err != nil && major != 0 {
			b, err = find(ctx, dirs, acct, 0)
		}
		if errors.Is(err, ErrNoBinaries) && ctx.Err() == nil {
			cfg.Log.InfoContext(ctx, "no installed PostgreSQL server found, fetching one", slog.String("cache_dir", cfg.CacheDir))
			b, err = fetch(ctx, cfg.CacheDir, defaultRepository, acct, cfg.Log)
		}
		if err != nil {
			return Binaries{}, err
		}
	}
	if major != 0 && b.Major != major {
		return Binaries{}, fmt.Errorf("the cluster in %s was made by PostgreSQL %d, but the server found in %s is version %s: "+
			"install PostgreSQL %d, or convert the cluster with pg_upgrade, or start with another folder",
			cfg.dataDir(), major, b.Dir, b.Version, major)
	}
	return b, nil
}

// initCluster makes a new cluster beside its final place and renames it, so that a
// half-made one is never mistaken for a cluster.
func initCluster(ctx context.Context, cfg Config, b Binaries, acct *account) (err error) {
	leftovers, _ := filepath.Glob(filepath.Join(escapeGlob(cfg.Dir), "postgres.new-*"))
	for _, old := range leftovers {
		if err := os.RemoveAll(old); err != nil {
			return err
		}
	}
	fresh, err := os.MkdirTemp(cfg.Dir, "postgres.new-*") // mode 0700
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(fresh))
		}
	}()
	if err := acct.own(fresh); err != nil {
		return err
	}
	args := []string{
		"--username=" + superuser, "--encoding=UTF8", "--locale=" + locale(), "--no-instructions",
		"--auth-local=trust", // the socket lies in a folder that only the server's account can enter
		"--auth-host=scram-sha-256",
	}
	if !cfg.Durable {
		args = append(args, "--no-sync")
	}
	cmd, release, err := command(ctx, b.path("initdb"), fresh, acct, args...)
	if err != nil {
		return err
	}
	defer release()
	endWithParent(cmd.SysProcAttr, syscall.SIGKILL)
	runtime.LockOSThread() // the parent of the child is this thread
	defer runtime.UnlockOSThread()
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb as %s: %w\n%s", acct, err, out)
	}
	// An empty folder at the final place is allowed, and in the way.
	if err := os.Remove(cfg.dataDir()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Rename(fresh, cfg.dataDir())
}

// locale orders text by code point on every system. macOS has no C.UTF-8.
func locale() string {
	if runtime.GOOS == "darwin" {
		return "C"
	}
	return "C.UTF-8"
}

// escapeGlob makes path match only itself.
func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// command prepares a server program that works on dataDir as acct. The caller calls
// release when the program has started or will not.
func command(ctx context.Context, program, dataDir string, acct *account, args ...string) (*exec.Cmd, func(), error) {
	cmd := exec.CommandContext(ctx, program)
	release := func() {}
	path := dataDir
	if !acct.reaches(dataDir) && descriptorPath(3) != "" {
		f, err := os.Open(dataDir)
		if err != nil {
			return nil, nil, err
		}
		cmd.ExtraFiles = []*os.File{f} // becomes descriptor 3
		path, release = descriptorPath(3), func() { _ = f.Close() }
	}
	cmd.Args = append(append(cmd.Args, "-D", path), args...)
	// The programs change into and back out of their own folder, which fails for a
	// working folder that the account cannot reach.
	cmd.Dir = "/"
	cmd.Env = environment()
	// A group of its own: Ctrl-C in a terminal must reach us, not the server under us.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: acct.credential()}
	return cmd, release, nil
}

// environment is what the server programs see: nothing of ours that could carry a secret
// or, like PGDATA and PGOPTIONS, redirect them.
func environment() []string {
	env := []string{"LC_ALL=C", "TZ=UTC"}
	for _, name := range []string{"PATH", "TMPDIR", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}
