package duckdb_test

import (
	"log/slog"
	"os"
	"testing"

	"github.com/catalogd/catalogd/mv/exec/duckdb"
)

// workerArg makes the test binary a child of the engine.
const workerArg = "engine-worker"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == workerArg {
		os.Exit(duckdb.WorkerMain(os.Stdin, os.Stdout))
	}
	if len(os.Args) > 2 && os.Args[1] == parentArg {
		os.Exit(parentMain(os.Args[2]))
	}
	os.Exit(m.Run())
}

func command(t *testing.T) []string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return []string{exe, workerArg}
}

func newEngine(t *testing.T, change func(*duckdb.Config)) *duckdb.Engine {
	t.Helper()
	c := duckdb.Config{Command: command(t), SpillDir: t.TempDir(), Log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	if change != nil {
		change(&c)
	}
	e, err := duckdb.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}
