package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestDemo_once proves all rows of a short replay, and its exit code says so.
func TestDemo_once(t *testing.T) {
	t.Parallel()
	temp := t.TempDir()
	cmd := command(t.Context(), t, "demo", "--once", "--days", "12", "--listen", "127.0.0.1:0")
	cmd.Env = append(cmd.Env, "TMPDIR="+temp)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("demo: %v\n%s", err, out)
	}
	for _, line := range []string{
		"commit 15 of 15",
		"small files compacted",
		"3 flights of 2013-01-09 corrected",
		"proven: demo.flights, 10,372 rows, equals the flights replayed",
		"proven: demo.daily_delays, ",
		"proven: demo.hourly_departures, ",
		"proven: demo.daily_routes, ",
		"proven: demo.monthly_routes, ",
		"incremental : full",
		"All rows proven",
	} {
		if !strings.Contains(string(out), line) {
			t.Errorf("%q is not in what it printed", line)
		}
	}
	if strings.Contains(string(out), "\x1b[") {
		t.Error("it draws although its output is no terminal")
	}
	if left, err := filepath.Glob(filepath.Join(temp, "catalogd-demo-*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if t.Failed() {
		t.Logf("it printed:\n%s", out)
	}
}

// TestDemo_staysUp serves what it made until it is interrupted, and keeps a folder that it
// was given; it does not start on a folder that holds something.
func TestDemo_staysUp(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "kept")
	p := start(t, nil, "demo", "--days", "2", "--data-dir", dir, "--listen", "127.0.0.1:0")
	w := attach(t, p)
	w.settled("demo.monthly_routes")
	if _, err := w.c.Load(t.Context(), "demo.daily_routes__storage"); err != nil {
		t.Error(err)
	}
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	select {
	case <-p.exited:
	case <-time.After(time.Minute):
		t.Fatal("it does not end")
	}
	if p.err != nil {
		t.Errorf("it ended with %v\n%s", p.err, p.log())
	}
	out, err := command(t.Context(), t, "demo", "--once", "--data-dir", dir).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "is not empty") {
		t.Errorf("demo on a folder in use: %v\n%s", err, out)
	}
}
