package pgserver

import (
	"context"
	"log/slog"
)

// ServerProcesses lists the postgres processes that work in a data folder.
var ServerProcesses = serverProcesses

// WithoutSockets makes cfg behave as on a file system that has no sockets.
func WithoutSockets(cfg Config) Config {
	cfg.TCP = true
	return cfg
}

// FindIn is Find among the given folders.
func FindIn(ctx context.Context, dirs ...string) (Binaries, error) {
	return find(ctx, dirs, nil, 0)
}

// FetchFrom is Fetch from another repository.
func FetchFrom(ctx context.Context, repository, cacheDir string) (Binaries, error) {
	return fetch(ctx, cacheDir, repository, nil, slog.New(slog.DiscardHandler))
}

// StartOrphan runs a server on the cluster in dir that nobody owns, as a crash of catalogd
// leaves it where the kernel does not end it.
func StartOrphan(ctx context.Context, dir string) (pid int, wait func() error, err error) {
	cfg := Config{Dir: dir}
	acct, err := accountFor(cfg.dataDir())
	if err != nil {
		return 0, nil, err
	}
	b, err := Find(ctx)
	if err != nil {
		return 0, nil, err
	}
	cmd, release, err := command(ctx, b.path("postgres"), cfg.dataDir(), acct, "-c", "listen_addresses=", "-c", "unix_socket_directories=.")
	if err != nil {
		return 0, nil, err
	}
	defer release()
	if err := cmd.Start(); err != nil {
		return 0, nil, err
	}
	return cmd.Process.Pid, cmd.Wait, nil
}
