package pgserver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// The steps by which an orphaned server is stopped, and how long each may take.
const (
	fastPatience      = 20 * time.Second
	immediatePatience = 5 * time.Second
	pollInterval      = 10 * time.Millisecond
)

// stopOrphans ends every server process that an earlier run left in dataDir, and clears a
// stale postmaster.pid. The caller holds the folder's lock, so no living catalogd owns them.
func stopOrphans(ctx context.Context, dataDir string, log *slog.Logger) error {
	if pids := serverProcesses(dataDir); len(pids) > 0 {
		log.WarnContext(ctx, "stopping the PostgreSQL server that an earlier run left behind", slog.Any("pids", pids))
		if err := stopProcesses(ctx, dataDir, pids); err != nil {
			return err
		}
	}
	// A number in postmaster.pid that now belongs to some other program makes the server
	// refuse to start. A dead number is left in place: the server then also checks that
	// no backend still uses the old shared memory.
	if pid := postmasterPID(dataDir); pid > 0 && alive(pid) {
		if err := os.Remove(filepath.Join(dataDir, "postmaster.pid")); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func stopProcesses(ctx context.Context, dataDir string, pids []int) error {
	postmaster := postmasterPID(dataDir)
	if slices.Contains(pids, postmaster) {
		_ = syscall.Kill(postmaster, syscall.SIGINT) // it may be gone already, which the wait sees
		if waitGone(ctx, dataDir, fastPatience) {
			return nil
		}
	}
	for _, sig := range []syscall.Signal{syscall.SIGQUIT, syscall.SIGKILL} {
		for _, pid := range serverProcesses(dataDir) {
			_ = syscall.Kill(pid, sig)
		}
		if waitGone(ctx, dataDir, immediatePatience) {
			return nil
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return fmt.Errorf("processes %v of an earlier run still use %s and cannot be stopped: end them by hand", serverProcesses(dataDir), dataDir)
}

// waitGone reports whether the last server process left dataDir within patience.
func waitGone(ctx context.Context, dataDir string, patience time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for len(serverProcesses(dataDir)) > 0 {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
	return true
}

// postmasterPID reads the first line of postmaster.pid, 0 if there is none.
func postmasterPID(dataDir string) int {
	text, err := os.ReadFile(filepath.Join(dataDir, "postmaster.pid"))
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(text), "\n")
	pid, _ := strconv.Atoi(strings.TrimSpace(line))
	return pid
}

// alive reports whether any process has that number; another user's counts.
func alive(pid int) bool {
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}
