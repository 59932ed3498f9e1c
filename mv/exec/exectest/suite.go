package exectest

import (
	"testing"

	"github.com/catalogd/catalogd/mv"
)

// Run tests the engine that newEngine returns. newEngine registers its own cleanup. Most
// tests share one engine; one that takes it to its limits gets its own.
func Run(t *testing.T, newEngine func(t *testing.T) mv.Engine) {
	t.Helper()
	shared := newEngine(t)
	groups := []struct {
		name  string
		tests []testCase
	}{
		{"Read", readTests},
		{"Deletes", deleteTests},
		{"Files", fileTests},
		{"Write", writeTests},
		{"Partition", partitionTests},
		{"Describe", describeTests},
		{"Guard", guardTests},
		{"Limits", limitTests},
	}
	for _, g := range groups {
		t.Run(g.name, func(t *testing.T) {
			t.Parallel()
			for _, tc := range g.tests {
				t.Run(tc.name, func(t *testing.T) {
					t.Parallel()
					if tc.own {
						tc.run(t, newEngine(t))
						return
					}
					tc.run(t, shared)
				})
			}
		})
	}
}

type testCase struct {
	name string
	run  func(t *testing.T, e mv.Engine)
	own  bool // needs an engine of its own
}
