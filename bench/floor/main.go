package floor

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// EnvDatabaseURL names the database: it may hold a password, which must not show among
// the processes of the machine.
const EnvDatabaseURL = "FLOOR_DATABASE_URL"

// shutdownPatience is how long requests under way may take at the end.
const shutdownPatience = 5 * time.Second

// Run is the whole child process: it prints where it listens and serves until ctx ends.
func Run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("floor", flag.ContinueOnError)
	dir := flags.String("dir", "", "folder for the files of commits")
	plain := flags.String("plain", "", "sample of a metadata file")
	packed := flags.String("packed", "", "sample of its compressed form")
	if err := flags.Parse(args); err != nil {
		return err
	}
	cfg := Config{Dir: *dir}
	var err error
	if *plain != "" {
		if cfg.Plain, err = os.ReadFile(*plain); err != nil {
			return err
		}
		if cfg.Packed, err = os.ReadFile(*packed); err != nil {
			return err
		}
	}
	if cfg.Pool, err = pgxpool.New(ctx, os.Getenv(EnvDatabaseURL)); err != nil {
		return err
	}
	defer cfg.Pool.Close()
	return serve(ctx, New(cfg), out)
}

func serve(ctx context.Context, handler http.Handler, out io.Writer) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	stopped := make(chan error, 1)
	go func() {
		<-ctx.Done()
		// ctx is over already; the requests under way get their time all the same.
		patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownPatience)
		defer cancel()
		stopped <- server.Shutdown(patience)
	}()
	if _, err := fmt.Fprintf(out, "listening on http://%s\n", listener.Addr()); err != nil {
		return err
	}
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-stopped
}
