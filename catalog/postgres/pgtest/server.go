package pgtest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/catalogd/catalogd/catalog/postgres/pgserver"
)

// envURL names the server to use instead of one of our own.
const envURL = "CATALOGD_TEST_DATABASE_URL"

// server returns the URL of the server that this test binary uses.
var server = sync.OnceValues(func() (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	if dsn := os.Getenv(envURL); dsn != "" {
		return dsn, sweep(ctx, dsn)
	}
	dir, err := os.MkdirTemp("", "catalogd-test-")
	if err != nil {
		return "", err
	}
	// Where root runs the tests, the server's account must be able to pass through.
	if err := os.Chmod(dir, 0o711); err != nil {
		return "", err
	}
	if err := watch(dir); err != nil {
		return "", errors.Join(fmt.Errorf("start the watcher of the test server: %w", err), os.RemoveAll(dir))
	}
	srv, err := pgserver.Start(ctx, pgserver.Config{
		Dir:      dir,
		Log:      slog.New(slog.DiscardHandler),
		Settings: map[string]string{"autovacuum": "off"},
	})
	if err != nil {
		return "", err
	}
	return srv.URL(), nil
})

// watchScript waits for its standard input to end, which happens when the test process
// does, in whatever way; then it ends the server and removes the folder. The kernel has
// mostly ended the server before (pgserver asks for that), but not on every system.
const watchScript = `
trap '' INT HUP TERM
read -r _
pid=$(head -n 1 "$1/postgres/postmaster.pid" 2>/dev/null)
if [ -n "$pid" ]; then
	kill -QUIT "$pid" 2>/dev/null
	tries=0
	while kill -0 "$pid" 2>/dev/null && ! grep -q ') Z ' "/proc/$pid/stat" 2>/dev/null && [ "$tries" -lt 100 ]; do
		tries=$((tries + 1))
		sleep 0.05
	done
fi
sock=$(cat "$1/socket-folder" 2>/dev/null)
case "$sock" in
*/catalogd-pg-*) rm -rf "$sock" ;;
esac
rm -rf "$1"
`

// watch starts the watcher of dir. The pipe's other end must stay open for as long as the
// process lives, so its descriptor is taken from Go, whose collector would close it.
func watch(dir string) error {
	var ends [2]int
	syscall.ForkLock.RLock() // no child may inherit the end that is held
	err := syscall.Pipe(ends[:])
	if err == nil {
		syscall.CloseOnExec(ends[0])
		syscall.CloseOnExec(ends[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return err
	}
	r := os.NewFile(uintptr(ends[0]), "watcher")
	defer r.Close()
	cmd := exec.Command("/bin/sh", "-c", watchScript, "catalogd-test-watcher", dir)
	cmd.Stdin, cmd.Dir = r, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // survives a Ctrl-C that ends the tests
	if err := cmd.Start(); err != nil {
		return errors.Join(err, syscall.Close(ends[1]))
	}
	return nil
}

// abandoned is the age at which a test's database has no living owner.
const abandoned = 6 * time.Hour

// sweep drops databases that killed runs left on a shared server.
func sweep(ctx context.Context, dsn string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return fmt.Errorf("%s: %w", envURL, err)
	}
	defer conn.Close(ctx)
	rows, err := conn.Query(ctx, "SELECT datname FROM pg_database WHERE starts_with(datname, $1)", prefix)
	if err != nil {
		return err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	for _, name := range names {
		parts := strings.Split(strings.TrimPrefix(name, prefix), "_") // kind, seconds, random
		if len(parts) != 3 {
			continue
		}
		made, err := strconv.ParseInt(parts[1], 10, 64)
		if err != nil || time.Since(time.Unix(made, 0)) < abandoned {
			continue
		}
		if _, err := conn.Exec(ctx, "DROP DATABASE IF EXISTS "+pgx.Identifier{name}.Sanitize()+" WITH (FORCE)"); err != nil {
			return err
		}
	}
	return nil
}
