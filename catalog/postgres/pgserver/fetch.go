package pgserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"
)

// What Fetch downloads, and from where: Maven Central holds server builds for the common
// systems, each with a checksum that the library compares.
const (
	fetchedVersion    = embeddedpostgres.V18
	defaultRepository = "https://repo1.maven.org/maven2"
)

// rootCache is where root keeps fetched binaries when the server's account cannot reach
// the cache folder: below /root, for instance.
const rootCache = "/var/cache/catalogd"

// Fetch downloads a PostgreSQL server into cacheDir, once: a later call finds it there.
// An empty cacheDir means the user's cache folder. A canceled ctx ends the wait; the
// download itself then finishes in the background and serves the next call. A nil log
// discards what is logged.
func Fetch(ctx context.Context, cacheDir string, log *slog.Logger) (Binaries, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	acct, err := accountFor("")
	if err != nil {
		return Binaries{}, err
	}
	return fetch(ctx, cacheDir, defaultRepository, acct, log)
}

func fetch(ctx context.Context, cacheDir, repository string, acct *account, log *slog.Logger) (Binaries, error) {
	cacheDir, err := usableCache(cacheDir, acct)
	if err != nil {
		return Binaries{}, fmt.Errorf("find a place for PostgreSQL: %w", err)
	}
	home := filepath.Join(cacheDir, "postgresql-"+string(fetchedVersion))
	if b, err := inspect(ctx, filepath.Join(home, "bin"), acct); err == nil {
		return b, nil
	}
	log.InfoContext(ctx, "downloading PostgreSQL", slog.String("version", string(fetchedVersion)),
		slog.String("from", repository), slog.String("to", home))
	began := time.Now()
	result := make(chan error, 1)
	background := context.WithoutCancel(ctx)
	go func() { result <- download(background, cacheDir, home, repository) }()
	select {
	case <-ctx.Done():
		return Binaries{}, ctx.Err()
	case err := <-result:
		if err != nil {
			return Binaries{}, fmt.Errorf("%w; fetching one failed too: %w", ErrNoBinaries, err)
		}
	}
	b, err := inspect(ctx, filepath.Join(home, "bin"), acct)
	if err != nil {
		return Binaries{}, fmt.Errorf("%w; the fetched one does not work: %w", ErrNoBinaries, err)
	}
	log.InfoContext(ctx, "PostgreSQL downloaded", slog.String("version", b.Version), slog.Duration("took", time.Since(began)))
	return b, nil
}

// usableCache makes the cache folder, and moves it where the account can execute from.
func usableCache(dir string, acct *account) (string, error) {
	if dir == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			base = os.TempDir()
		}
		dir = filepath.Join(base, "catalogd")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // programs, not secrets
		return "", err
	}
	if acct.reaches(dir) {
		return dir, nil
	}
	return rootCache, os.MkdirAll(rootCache, 0o755) //nolint:gosec // as above
}

// download fetches and unpacks into a folder of its own and renames it to home, so that
// two processes and a crash do no harm.
func download(ctx context.Context, cacheDir, home, repository string) error {
	tmp, err := os.MkdirTemp(cacheDir, "fetch-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(tmp) }() // a leftover wastes space, no more
	unpacked := filepath.Join(tmp, "unpacked")
	// The library offers no call that only fetches. An encoding that does not exist ends
	// its Start at initdb, right after unpacking; what came of it is checked below.
	startErr := embeddedpostgres.NewDatabase(embeddedpostgres.DefaultConfig().
		Version(fetchedVersion).
		BinaryRepositoryURL(repository).
		CachePath(filepath.Join(tmp, "archive")).
		RuntimePath(unpacked).
		DataPath(filepath.Join(tmp, "data")).
		Port(0).
		Encoding("none").
		Logger(io.Discard)).Start()
	if _, err := os.Stat(filepath.Join(unpacked, "bin", "postgres")); err != nil {
		return errors.Join(startErr, err)
	}
	if err := publish(unpacked); err != nil {
		return err
	}
	if err := os.Rename(unpacked, home); err == nil {
		return nil
	}
	if _, err := inspect(ctx, filepath.Join(home, "bin"), nil); err == nil {
		return nil // another process was faster
	}
	return errors.Join(os.RemoveAll(home), os.Rename(unpacked, home)) // a damaged one is in the way
}

// publish lets every account read and execute the unpacked programs, whatever our umask.
func publish(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Type()&fs.ModeSymlink != 0 {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		mode := info.Mode().Perm() | 0o444
		if d.IsDir() || mode&0o100 != 0 {
			mode |= 0o111
		}
		return os.Chmod(path, mode) //nolint:gosec // nobody else can write in a folder that we just made
	})
}
