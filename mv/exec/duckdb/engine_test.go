package duckdb_test

import (
	"testing"

	"github.com/catalogd/catalogd/mv"
	"github.com/catalogd/catalogd/mv/exec/duckdb"
	"github.com/catalogd/catalogd/mv/exec/exectest"
)

func TestEngine(t *testing.T) {
	t.Parallel()
	exectest.Run(t, func(t *testing.T) mv.Engine {
		t.Helper()
		return newEngine(t, func(c *duckdb.Config) { c.RunsPerChild = 25 })
	})
}
