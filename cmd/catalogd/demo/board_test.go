package demo

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/catalogd/catalogd/api/mvrest"
)

func mvNamed(name string) mvrest.MaterializedView {
	return mvrest.MaterializedView{
		View: mvrest.Identifier{Namespace: []string{namespace}, Name: name}, Job: noJob,
		Recursive: mvrest.FreshnessVerdict{Status: "fresh", UpToDate: true},
	}
}

func allViews() []mvrest.MaterializedView {
	var all []mvrest.MaterializedView
	for _, v := range views() {
		all = append(all, mvNamed(v.name))
	}
	return all
}

func dayCommit(f ...flight) commit {
	return commit{kind: appended, day: f[0].day(), rows: f}
}

// screen plays what was written on a terminal that knows what the board uses.
func screen(t *testing.T, written string) []string {
	t.Helper()
	lines := []string{""}
	for written != "" {
		var n int
		if _, err := fmt.Sscanf(written, up, &n); err == nil {
			if n >= len(lines) {
				t.Fatalf("up %d lines of %d", n, len(lines))
			}
			_, rest, ok := strings.Cut(written, "\r"+eraseTo)
			if !ok {
				t.Fatalf("lines are left on the screen: %q", written)
			}
			lines, written = append(lines[:len(lines)-1-n], ""), rest
			continue
		}
		if rest, ok := strings.CutPrefix(written, noWrap); ok {
			written = rest
			continue
		}
		if rest, ok := strings.CutPrefix(written, wrap); ok {
			written = rest
			continue
		}
		if rest, ok := strings.CutPrefix(written, "\n"); ok {
			lines, written = append(lines, ""), rest
			continue
		}
		lines[len(lines)-1] += written[:1]
		written = written[1:]
	}
	return lines
}

// TestBoard_live draws over its last picture and nothing else.
func TestBoard_live(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	b := newBoard(&out, true, 25)
	b.say("first")
	late := mvNamed(views()[0].name)
	since := time.Now().Add(-time.Hour)
	late.Recursive = mvrest.FreshnessVerdict{Status: "stale", StaleSince: &since, Behind: []mvrest.SourceLag{{SnapshotIds: []int64{1, 2, 3}}}}
	late.LastRefresh = &mvrest.RefreshRun{Status: succeeded, Strategy: bucketed, Buckets: 2, DurationMs: 250}
	b.show([]mvrest.MaterializedView{late})
	for i := range 20 {
		b.committed(dayCommit(flight{departure: int64(i) * 24 * time.Hour.Microseconds(), carrier: "UA"}))
		if i == 10 {
			b.show(append([]mvrest.MaterializedView{late}, allViews()[1:]...))
			b.say("second")
		}
	}
	b.refreshed(views()[0].dotted(), *late.LastRefresh)
	b.show(append([]mvrest.MaterializedView{late}, allViews()[1:]...))
	b.stop()
	b.say("last")
	got := strings.Join(screen(t, out.String()), "\n")
	if strings.Count(got, "VIEW") != 1 || !strings.HasPrefix(got, "first\nsecond\n") || !strings.HasSuffix(got, "\nlast\n") {
		t.Errorf("the screen shows:\n%s", got)
	}
	if !strings.Contains(got, "commit 20 of 25, 20 rows; 1970-01-20: 1 flights") {
		t.Errorf("commits are missing:\n%s", got)
	}
	for line := range strings.Lines(got) {
		if strings.HasPrefix(line, late.View.Namespace[0]+"."+late.View.Name) {
			fields := strings.Fields(line)
			if want := "demo.daily_delays stale 3 s none 1 buckets 2 of 20 0.25 s"; strings.Join(slices.Concat(fields[:3], fields[4:]), " ") != want {
				t.Errorf("line %q, want %q", line, want)
			}
			// Time passes between the two clock readings, but not backwards.
			if seconds, err := strconv.ParseFloat(fields[3], 64); err != nil || seconds < 3600 {
				t.Errorf("it is stale for an hour, and the line says %s s: %v", fields[3], err)
			}
		}
	}
}

// TestBoard_plain writes a line for each refresh and for ten commits, without controls.
func TestBoard_plain(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	b := newBoard(&out, false, 25)
	for i := range 25 {
		b.committed(dayCommit(flight{departure: int64(i) * 24 * time.Hour.Microseconds()}))
		b.show(allViews())
	}
	text := "out of memory"
	b.refreshed("demo.daily_routes", mvrest.RefreshRun{Status: succeeded, Strategy: bucketed, Buckets: 3, Rows: 1200, BytesRead: 2048, DurationMs: 1500})
	b.refreshed("demo.daily_routes", mvrest.RefreshRun{Status: "failed", Reason: "ENGINE", Error: &text})
	want := `commit 10 of 25, 10 rows so far; 1970-01-10: 1 flights
commit 20 of 25, 20 rows so far; 1970-01-20: 1 flights
commit 25 of 25, 25 rows so far; 1970-01-25: 1 flights
refresh demo.daily_routes: 3 of 25 buckets, 1,200 rows, 2.0 KiB read, 1.50 s
refresh demo.daily_routes: failed (ENGINE: out of memory)
`
	if out.String() != want {
		t.Errorf("printed\n%swant\n%s", out.String(), want)
	}
}

// TestUnsettled waits for every view, and not for one that catalogd has given up on.
func TestUnsettled(t *testing.T) {
	t.Parallel()
	text := "no such column"
	for name, c := range map[string]struct {
		change  func(*mvrest.MaterializedView)
		waiting int
		fails   string
	}{
		"settled":   {func(*mvrest.MaterializedView) {}, 0, ""},
		"stale":     {func(v *mvrest.MaterializedView) { v.Recursive.UpToDate = false }, 1, ""},
		"queued":    {func(v *mvrest.MaterializedView) { v.Job = "queued" }, 1, ""},
		"suspended": {func(v *mvrest.MaterializedView) { v.Suspended, v.LastError = true, &text }, 0, "demo.daily_routes is suspended after 0 failures: no such column"},
	} {
		all := allViews()
		c.change(&all[2])
		waiting, err := unsettled(all)
		if len(waiting) != c.waiting || (err == nil) != (c.fails == "") || err != nil && err.Error() != c.fails {
			t.Errorf("%s: waiting for %v, %v", name, waiting, err)
		}
	}
	if _, err := unsettled(allViews()[1:]); err == nil {
		t.Error("a view is missing, and nobody minds")
	}
}

// TestWatcher_failures remembers a failed run although the next one succeeded.
func TestWatcher_failures(t *testing.T) {
	t.Parallel()
	w := newWatcher(nil, nil)
	name := views()[1].dotted()
	w.runs[name] = []mvrest.RefreshRun{{Status: succeeded}, {Status: succeeded}}
	if err := w.failures(); err != nil {
		t.Error(err)
	}
	w.runs[name] = []mvrest.RefreshRun{{Status: "failed", Reason: "ENGINE"}, {Status: succeeded}}
	if err := w.failures(); err == nil || err.Error() != "a refresh of "+name+" failed (ENGINE)" {
		t.Errorf("failures: %v", errors.Unwrap(err))
	}
}

// TestComparison takes only incremental runs that succeeded for the average.
func TestComparison(t *testing.T) {
	t.Parallel()
	runs, full := map[string][]mvrest.RefreshRun{}, map[string]mvrest.RefreshRun{}
	for _, v := range views() {
		full[v.dotted()] = mvrest.RefreshRun{Status: succeeded, Strategy: "full", BytesRead: 5000, BytesWritten: 1000, CPUSeconds: 1}
	}
	runs["demo.daily_delays"] = []mvrest.RefreshRun{
		{Status: succeeded, Strategy: "full", Reason: "FIRST_REFRESH", BytesRead: 9000, CPUSeconds: 9},
		{Status: succeeded, Strategy: bucketed, BytesRead: 100, BytesWritten: 100, CPUSeconds: 0.25},
		{Status: succeeded, Strategy: bucketed, BytesRead: 300, BytesWritten: 100, CPUSeconds: 0.75},
		{Status: "failed", Strategy: bucketed, BytesRead: 7000, CPUSeconds: 7},
	}
	lines := strings.Split(comparison(runs, full), "\n")
	if got, want := strings.Join(strings.Fields(lines[1]), " "), "demo.daily_delays 300 B, 0.500 CPU s 5.9 KiB, 1.000 CPU s 1 : 20.0 1 : 2.0"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if !strings.Contains(lines[2], "no incremental refresh") {
		t.Errorf("a view without incremental refresh: %s", lines[2])
	}
	if got, want := strategies(runs), "4 refreshes: 1 full (FIRST_REFRESH), 3 buckets"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestThousands(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 336776: "336,776", 1234567: "1,234,567", -1000: "-1,000", -100: "-100"} {
		if got := thousands(n); got != want {
			t.Errorf("thousands(%d) = %q, want %q", n, got, want)
		}
	}
}
