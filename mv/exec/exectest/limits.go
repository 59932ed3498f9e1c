package exectest

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/catalogd/catalogd/catalog"
	"github.com/catalogd/catalogd/mv"
)

var limitTests = []testCase{
	{name: "SpillsAndCleansUp", run: limitSpill, own: true},
	{name: "MemoryBomb", run: limitMemory, own: true},
	{name: "CancelKills", run: limitCancel, own: true},
	{name: "Progress", run: limitProgress, own: true},
}

// limitSpill sorts far more than fits into memory.
func limitSpill(t *testing.T, e mv.Engine) {
	spill := t.TempDir()
	tk := task(t, "SELECT md5(r.range::VARCHAR) || md5((r.range + 1)::VARCHAR) AS s, row_number() OVER (ORDER BY md5(r.range::VARCHAR)) AS n FROM range(1500000) r", []mv.Column{col("s", "string", 1), col("n", "long", 2)}, one(t))
	tk.Limits = mv.Limits{MemoryBytes: 100 << 20, Threads: 2, SpillDir: spill}
	res, err := e.Run(t.Context(), tk, nil)
	if err != nil {
		t.Fatal(err)
	}
	if res.Rows != 1500000 {
		t.Errorf("Rows = %d", res.Rows)
	}
	eventually(t, "the spill folder to be empty", func() bool {
		left, err := os.ReadDir(spill)
		return err == nil && len(left) == 0
	})
}

// eventually waits for a condition that another process brings about.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(30 * time.Second)
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

func limitMemory(t *testing.T, e mv.Engine) {
	tk := task(t, "SELECT length(string_agg(repeat('x', 1000000) || r.range, '')) AS n FROM range(100000) r", []mv.Column{col("n", "long", 1)}, one(t))
	tk.Limits = mv.Limits{MemoryBytes: 64 << 20, Threads: 1, SpillDir: t.TempDir()}
	_, err := e.Run(t.Context(), tk, nil)
	if k := catalog.KindOf(err); err == nil || k == catalog.KindUnprocessable || k == catalog.KindInvalid {
		t.Fatalf("Run = kind %d %v, want a failure that another limit may cure", k, err)
	}
	same(t, []string{"n=1 "}, runRows(t, e, task(t, "SELECT 1::BIGINT AS n", []mv.Column{col("n", "long", 1)}, one(t))))
}

// endless is a query that runs until it is stopped.
const endless = "SELECT count(*) AS n FROM range(1000000000) a, range(1000000000) b WHERE a.range * b.range % 7 = 3"

func limitCancel(t *testing.T, e mv.Engine) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	started := make(chan struct{}, 100)
	tk := task(t, endless, []mv.Column{col("n", "long", 1)}, one(t))
	go func() {
		_, err := e.Run(ctx, tk, func(mv.Progress) {
			select {
			case started <- struct{}{}:
			default:
			}
		})
		done <- err
	}()
	select {
	case <-started:
	case err := <-done:
		t.Fatalf("the run ended by itself: %v", err)
	}
	cancel()
	select {
	case err := <-done:
		if k := catalog.KindOf(err); err == nil || k == catalog.KindUnprocessable {
			t.Errorf("Run = kind %d %v, want a failure that running again may cure", k, err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("a canceled run does not end")
	}
	same(t, []string{"n=1 "}, runRows(t, e, task(t, "SELECT 1::BIGINT AS n", []mv.Column{col("n", "long", 1)}, one(t))))
}

func limitProgress(t *testing.T, e mv.Engine) {
	s := numbersTable(t, 2, nil)
	s.append(numbers(0, 20000))
	tk := task(t, "SELECT count(*) AS n FROM src a, src b WHERE (a.id * 31 + b.id) % 1000 = 3", []mv.Column{col("n", "long", 1)}, s.input("src"))
	var seen []mv.Progress
	res, err := e.Run(t.Context(), tk, func(p mv.Progress) { seen = append(seen, p) })
	if err != nil {
		t.Fatal(err)
	}
	if len(seen) == 0 || seen[len(seen)-1] != (mv.Progress{Percent: 100, Rows: res.Rows}) {
		t.Errorf("progress = %+v, want it to end with 100 %% and %d rows", seen, res.Rows)
	}
	for i := 1; i < len(seen); i++ {
		if seen[i].Percent < seen[i-1].Percent {
			t.Errorf("progress falls: %+v", seen)
		}
	}
	left, err := filepath.Glob(filepath.Join(tk.Output, "*"))
	if err != nil || len(left) != 1 {
		t.Errorf("output folder holds %v, want one file", left)
	}
}
