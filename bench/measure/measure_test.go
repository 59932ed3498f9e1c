package measure_test

import (
	"context"
	"errors"
	"math"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/catalogd/catalogd/bench/measure"
)

func TestPercentile(t *testing.T) {
	t.Parallel()
	var times []time.Duration
	for i := range 200 {
		times = append(times, time.Duration(i+1))
	}
	for _, tt := range []struct {
		p    float64
		want time.Duration
	}{{0, 1}, {50, 100}, {95, 190}, {99, 198}, {100, 200}} {
		if got := measure.Percentile(times, tt.p); got != tt.want {
			t.Errorf("Percentile(1..200, %v) = %d, want %d", tt.p, got, tt.want)
		}
	}
	if got := measure.Percentile(nil, 50); got != 0 {
		t.Errorf("Percentile of nothing = %v, want 0", got)
	}
	if got := measure.Percentile(times[:1], 99); got != 1 {
		t.Errorf("Percentile of one = %v, want 1", got)
	}
}

func TestMedian(t *testing.T) {
	t.Parallel()
	values := []float64{9, 1, 5}
	if got := measure.Median(values); got != 5 {
		t.Errorf("Median = %v, want 5", got)
	}
	if !slices.Equal(values, []float64{9, 1, 5}) {
		t.Error("Median sorted its argument")
	}
	if got := measure.Median([]float64{4, 1, 2, 100}); got != 3 {
		t.Errorf("Median of four = %v, want 3", got)
	}
	if got := measure.Median(nil); !math.IsNaN(got) {
		t.Errorf("Median of nothing = %v, want NaN", got)
	}
}

// TestRatio: a machine that is three times as slow in the second round changes both
// sides, so a ratio of totals would be off and the paired one is not.
func TestRatio(t *testing.T) {
	t.Parallel()
	round := func(d time.Duration) measure.Round {
		return measure.Round{Times: []time.Duration{d}, Wall: d}
	}
	a := measure.Series{Rounds: []measure.Round{round(2 * time.Millisecond), round(6 * time.Millisecond), round(2 * time.Millisecond)}}
	b := measure.Series{Rounds: []measure.Round{round(time.Millisecond), round(3 * time.Millisecond), round(time.Millisecond)}}
	if got := measure.Ratio(a, b, measure.Round.P50); got != 2 {
		t.Errorf("ratio of times = %v, want 2", got)
	}
	if got := measure.Ratio(b, a, measure.Round.Rate); got != 2 {
		t.Errorf("ratio of rates = %v, want 2", got)
	}
	if got := measure.Ratio(a, measure.Series{}, measure.Round.P50); !math.IsNaN(got) {
		t.Errorf("ratio to nothing = %v, want NaN", got)
	}
}

func TestContest(t *testing.T) {
	t.Parallel()
	var order []string
	contender := func(name string) measure.Contender {
		return measure.Contender{
			Name: name,
			Begin: func(context.Context, int) (func(context.Context) error, error) {
				order = append(order, name)
				return func(context.Context) error { return nil }, nil
			},
			Op: func(context.Context, int, int) (time.Duration, error) { return time.Millisecond, nil },
		}
	}
	plan := measure.Plan{Rounds: 3, Limits: measure.Limits{Clients: 4, PerClient: 5, Time: time.Minute}}
	series, err := measure.Contest(t.Context(), plan, contender("a"), contender("b"))
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"a", "b", "b", "a", "a", "b"}; !slices.Equal(order, want) {
		t.Errorf("turns %v, want %v", order, want)
	}
	for _, s := range series {
		got := s.Summary()
		if got.Count != 3*4*5 || got.P50 != 1 || got.P99 != 1 || got.Errors != 0 || got.Rate <= 0 {
			t.Errorf("%+v, want 60 operations of 1 ms", got)
		}
		if got.CPU >= 0 || got.Database >= 0 {
			t.Errorf("CPU %v and %v without meters, want negative", got.CPU, got.Database)
		}
	}
}

func TestContest_meters(t *testing.T) {
	t.Parallel()
	used := time.Duration(0)
	c := measure.Contender{
		Op: func(context.Context, int, int) (time.Duration, error) {
			used += 3 * time.Millisecond
			return time.Millisecond, nil
		},
		CPU:      func(context.Context) (time.Duration, error) { return used, nil },
		Database: func(context.Context) (time.Duration, error) { return 0, errors.New("no such file") },
	}
	series, err := measure.Contest(t.Context(), measure.Plan{Rounds: 2, Limits: measure.Limits{Clients: 1, PerClient: 10, Time: time.Minute}}, c)
	if err != nil {
		t.Fatal(err)
	}
	got := series[0].Summary()
	if got.CPU != 3 {
		t.Errorf("CPU of an operation = %v ms, want 3", got.CPU)
	}
	if got.Database >= 0 {
		t.Errorf("CPU that cannot be read = %v, want negative", got.Database)
	}
}

func TestContest_errors(t *testing.T) {
	t.Parallel()
	bad, late := errors.New("wrong byte"), errors.New("wrong table")
	calls := 0
	c := measure.Contender{
		Begin: func(context.Context, int) (func(context.Context) error, error) {
			return func(context.Context) error { return late }, nil
		},
		Op: func(_ context.Context, _, n int) (time.Duration, error) {
			calls++
			if n%2 == 0 {
				return time.Millisecond, bad
			}
			return time.Millisecond, nil
		},
	}
	plan := measure.Plan{Rounds: 1, Limits: measure.Limits{Clients: 1, PerClient: 1000, Time: time.Minute}}
	series, err := measure.Contest(t.Context(), plan, c)
	if err != nil {
		t.Fatal(err)
	}
	got := series[0].Rounds[0]
	if !errors.Is(got.Err, bad) || got.Errors != 11 || len(got.Times) != 9 {
		t.Errorf("%d errors (%v) and %d times, want 11 and 9", got.Errors, got.Err, len(got.Times))
	}
	if calls != 19 {
		t.Errorf("a server that is always wrong was asked %d times, want 19", calls)
	}
}

// TestContest_timeLimit: the count is out of reach, so only time ends the round.
func TestContest_timeLimit(t *testing.T) {
	t.Parallel()
	c := measure.Contender{Op: func(context.Context, int, int) (time.Duration, error) { return 1, nil }}
	plan := measure.Plan{Rounds: 1, Limits: measure.Limits{Clients: 1, PerClient: math.MaxInt, Time: 5 * time.Millisecond}}
	series, err := measure.Contest(t.Context(), plan, c)
	if err != nil {
		t.Fatal(err)
	}
	if got := series[0].Rounds[0]; got.Wall < 5*time.Millisecond || len(got.Times) == 0 {
		t.Errorf("%d operations in %v, want some in at least 5ms", len(got.Times), got.Wall)
	}
}

func TestProcess(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("NOT TESTED: this system has no /proc")
	}
	cpu := measure.Process(os.Getpid())
	before, err := cpu(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// Burn until the kernel has counted it; a reading that never moves would not end.
	for x := 0; ; x++ {
		now, err := cpu(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if now >= before+50*time.Millisecond {
			break
		}
	}
	if _, err := measure.Process(-1)(t.Context()); err == nil {
		t.Error("a process that does not exist has a CPU time")
	}
}

func TestProcesses(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("NOT TESTED: this system has no /proc")
	}
	pids := []int{os.Getpid(), -1} // the second has ended meanwhile
	m := measure.Processes(func(context.Context) ([]int, error) { return pids, nil })
	first, err := m(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	pids = nil // both have ended: what was seen stays counted
	again, err := m(t.Context())
	if err != nil || again != first {
		t.Errorf("after the end %v (%v), want %v", again, err, first)
	}
}

func TestRound_Spread(t *testing.T) {
	t.Parallel()
	ms := func(values ...int) (out []time.Duration) {
		for _, v := range values {
			out = append(out, time.Duration(v)*time.Millisecond)
		}
		return out
	}
	for name, tt := range map[string]struct {
		clients [][]time.Duration
		want    float64
	}{
		"equal":                 {[][]time.Duration{ms(1, 2), ms(2, 2)}, 1},
		"worst in the middle":   {[][]time.Duration{ms(1, 4), ms(3, 12), ms(5)}, 3},
		"one without a success": {[][]time.Duration{ms(10), nil}, 100},
		"one client":            {[][]time.Duration{ms(7)}, 1},
	} {
		r := measure.Round{Clients: tt.clients, Wall: time.Second}
		if got := r.Spread(); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
	if got := (measure.Round{}).Spread(); !math.IsNaN(got) {
		t.Errorf("no clients: %v, want NaN", got)
	}
}

// TestContest_total: the clients share the operations, and the times are told apart.
func TestContest_total(t *testing.T) {
	t.Parallel()
	c := measure.Contender{Op: func(_ context.Context, client, _ int) (time.Duration, error) {
		return time.Duration(client + 1), nil
	}}
	plan := measure.Plan{Rounds: 1, Limits: measure.Limits{Clients: 3, PerClient: 1000, Total: 50, Time: time.Minute}}
	series, err := measure.Contest(t.Context(), plan, c)
	if err != nil {
		t.Fatal(err)
	}
	r := series[0].Rounds[0]
	if len(r.Times) != 50 || len(r.Clients) != 3 {
		t.Fatalf("%d operations of %d clients, want 50 of 3", len(r.Times), len(r.Clients))
	}
	for i, times := range r.Clients {
		for _, d := range times {
			if d != time.Duration(i+1) {
				t.Errorf("client %d has a time of another one: %v", i, d)
			}
		}
	}
}

func TestSummary_PerCPUSecond(t *testing.T) {
	t.Parallel()
	if got := (measure.Summary{CPU: 0.5}).PerCPUSecond(); got != 2000 {
		t.Errorf("0.5 ms each: %v a CPU-second, want 2000", got)
	}
	if got := (measure.Summary{CPU: -1}).PerCPUSecond(); !math.IsNaN(got) {
		t.Errorf("CPU unknown: %v, want NaN", got)
	}
}

func TestSeries_Middle(t *testing.T) {
	t.Parallel()
	s := measure.Series{Rounds: []measure.Round{{Wall: 9}, {Wall: 1}, {Wall: 5}}}
	if got := s.Middle(func(r measure.Round) float64 { return float64(r.Wall) }); got != 5 {
		t.Errorf("%v, want 5", got)
	}
}

func TestProcessMemory(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("NOT TESTED: this system has no /proc")
	}
	m, err := measure.ProcessMemory(os.Getpid())
	if err != nil || m.Resident < 1<<20 || m.Peak < m.Resident/2 {
		t.Errorf("%+v, %v: not the memory of a process", m, err)
	}
	if _, err := measure.ProcessMemory(-1); err == nil {
		t.Error("a process that does not exist has memory")
	}
}
