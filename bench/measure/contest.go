package measure

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"
)

// Meter reads how much CPU time something has used so far.
type Meter func(ctx context.Context) (time.Duration, error)

// Contender is one of the servers that are compared.
type Contender struct {
	Name string
	Op   Op
	// Begin prepares a round outside of its time, and returns what has to be checked or
	// cleaned up after it. It may be nil.
	Begin func(ctx context.Context, round int) (end func(context.Context) error, err error)
	// CPU and Database are nil where there is nothing to read.
	CPU, Database Meter
}

// Plan says how a contest is held.
type Plan struct {
	Rounds int
	Limits Limits
}

// Series is what one contender did, round by round.
type Series struct {
	Name   string
	Rounds []Round
}

// Contest lets the contenders take short turns. A machine that is slow for a while slows
// all of them, and every other round goes in reverse order, so that nobody always runs
// in the wake of the same neighbour.
func Contest(ctx context.Context, plan Plan, contenders ...Contender) ([]Series, error) {
	series := make([]Series, len(contenders))
	order := make([]int, len(contenders))
	for i, c := range contenders {
		series[i].Name, order[i] = c.Name, i
	}
	for round := range plan.Rounds {
		for _, i := range order {
			r, err := turn(ctx, plan.Limits, contenders[i], round)
			if err != nil {
				return nil, fmt.Errorf("%s, round %d: %w", contenders[i].Name, round+1, err)
			}
			series[i].Rounds = append(series[i].Rounds, r)
		}
		slices.Reverse(order)
	}
	return series, ctx.Err()
}

func turn(ctx context.Context, limits Limits, c Contender, round int) (Round, error) {
	end := func(context.Context) error { return nil }
	if c.Begin != nil {
		var err error
		if end, err = c.Begin(ctx, round); err != nil {
			return Round{}, err
		}
	}
	cpu, database := read(ctx, c.CPU), read(ctx, c.Database)
	r := run(ctx, limits, c.Op)
	r.CPU, r.Database = since(ctx, c.CPU, cpu), since(ctx, c.Database, database)
	if err := end(ctx); err != nil {
		r.Errors++
		if r.Err == nil {
			r.Err = err
		}
	}
	return r, nil
}

// read is negative where the meter cannot be read: CPU time is a remark, no reason to
// give up a measurement.
func read(ctx context.Context, m Meter) time.Duration {
	if m == nil {
		return -1
	}
	d, err := m(ctx)
	if err != nil {
		return -1
	}
	return d
}

func since(ctx context.Context, m Meter, before time.Duration) time.Duration {
	after := read(ctx, m)
	if before < 0 || after < before {
		return -1
	}
	return after - before
}

// Summary is a series in the units of the report. A negative CPU or Database is unknown.
type Summary struct {
	Name     string  `json:"name"`
	Count    int     `json:"count"`
	P50      float64 `json:"p50_ms"`
	P95      float64 `json:"p95_ms"`
	P99      float64 `json:"p99_ms"`
	Rate     float64 `json:"per_second"`
	CPU      float64 `json:"cpu_ms_per_request"`
	Database float64 `json:"database_cpu_ms_per_request"`
	Errors   int     `json:"errors"`
	Error    string  `json:"error,omitempty"`
}

// Summary takes percentiles over all operations, and the median of the rounds' rates.
func (s Series) Summary() Summary {
	out := Summary{Name: s.Name}
	var (
		all   []time.Duration
		rates []float64
	)
	for _, r := range s.Rounds {
		all = append(all, r.Times...)
		rates = append(rates, r.Rate())
		out.Errors += r.Errors
		if out.Error == "" && r.Err != nil {
			out.Error = r.Err.Error()
		}
	}
	slices.Sort(all)
	out.Count = len(all)
	out.P50 = Milliseconds(Percentile(all, 50))
	out.P95 = Milliseconds(Percentile(all, 95))
	out.P99 = Milliseconds(Percentile(all, 99))
	if len(rates) > 0 {
		out.Rate = Median(rates)
	}
	out.CPU = s.perOperation(func(r Round) time.Duration { return r.CPU })
	out.Database = s.perOperation(func(r Round) time.Duration { return r.Database })
	return out
}

// perOperation divides totals: the kernel counts in hundredths of a second, which is
// coarse for a round and fine for all of them.
func (s Series) perOperation(of func(Round) time.Duration) float64 {
	var (
		total time.Duration
		count int
	)
	for _, r := range s.Rounds {
		if of(r) < 0 {
			return -1
		}
		total += of(r)
		count += len(r.Times)
	}
	if count == 0 {
		return -1
	}
	return Milliseconds(total) / float64(count)
}

// PerCPUSecond is operations per second of the server's CPU time, NaN if that is unknown.
func (s Summary) PerCPUSecond() float64 {
	if s.CPU <= 0 {
		return math.NaN()
	}
	return 1000 / s.CPU
}

// Middle is the median over the rounds of a value, NaN without rounds.
func (s Series) Middle(of func(Round) float64) float64 {
	var values []float64
	for _, r := range s.Rounds {
		values = append(values, of(r))
	}
	return Median(values)
}

// Ratio is the median over the rounds of a's value divided by b's in the same round. It
// is NaN if nothing can be compared.
func Ratio(a, b Series, of func(Round) float64) float64 {
	var ratios []float64
	for i := range min(len(a.Rounds), len(b.Rounds)) {
		if divisor := of(b.Rounds[i]); divisor > 0 {
			ratios = append(ratios, of(a.Rounds[i])/divisor)
		}
	}
	return Median(ratios)
}
