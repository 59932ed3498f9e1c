//go:build !unix

package duckdb

// cpuSeconds is 0 where the process cannot ask for its own usage while it runs; the
// parent then takes the whole child's time.
func cpuSeconds() float64 { return 0 }
