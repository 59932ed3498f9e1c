package measure

import (
	"context"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Op does the n-th operation of a client in this round and returns the time that counts.
// An error means a wrong answer or none.
type Op func(ctx context.Context, client, n int) (time.Duration, error)

// Limits bound a round, in count and in time: whichever is reached first ends it.
type Limits struct {
	Clients   int
	PerClient int // operations of each client
	Total     int // operations of all clients together; 0: only PerClient counts
	Time      time.Duration
}

// Round is one turn of one server.
type Round struct {
	Times    []time.Duration   // of the operations that succeeded, sorted
	Clients  [][]time.Duration // the same by client, each sorted
	Wall     time.Duration
	CPU      time.Duration // of the server's process; negative if it cannot be known
	Database time.Duration // of the server's database connections; negative if unknown
	Errors   int
	Err      error // the first one
}

// Rate is operations per second.
func (r Round) Rate() float64 {
	if r.Wall <= 0 {
		return 0
	}
	return float64(len(r.Times)) / r.Wall.Seconds()
}

// P50 is the median time in milliseconds.
func (r Round) P50() float64 { return Milliseconds(Percentile(r.Times, 50)) }

// Spread is the 95th percentile of the client that was served worst, divided by that of
// the client that was served best. A client without a success counts as one that waited
// for all of the round.
func (r Round) Spread() float64 {
	var best, worst time.Duration
	for i, times := range r.Clients {
		p95 := r.Wall
		if len(times) > 0 {
			p95 = Percentile(times, 95)
		}
		if i == 0 || p95 < best {
			best = p95
		}
		worst = max(worst, p95)
	}
	if best <= 0 {
		return math.NaN()
	}
	return float64(worst) / float64(best)
}

// run does one round without looking at processes.
func run(ctx context.Context, limits Limits, op Op) Round {
	var (
		mu    sync.Mutex
		total = Round{Clients: make([][]time.Duration, limits.Clients)}
		wg    sync.WaitGroup
		begun atomic.Int64
	)
	start := time.Now()
	more := func() bool {
		return time.Since(start) < limits.Time && (limits.Total == 0 || begun.Add(1) <= int64(limits.Total))
	}
	for client := range limits.Clients {
		wg.Go(func() {
			own := loop(ctx, more, limits.PerClient, client, op)
			slices.Sort(own.Times)
			mu.Lock()
			defer mu.Unlock()
			total.Clients[client] = own.Times
			total.Times = append(total.Times, own.Times...)
			total.Errors += own.Errors
			if total.Err == nil {
				total.Err = own.Err
			}
		})
	}
	wg.Wait()
	total.Wall = time.Since(start)
	slices.Sort(total.Times)
	return total
}

// maxErrors ends a client's loop early: a server that is down is not asked a million times.
const maxErrors = 10

func loop(ctx context.Context, more func() bool, limit, client int, op Op) Round {
	var own Round
	for n := range limit {
		if ctx.Err() != nil || own.Errors >= maxErrors || !more() {
			break
		}
		took, err := op(ctx, client, n)
		if err != nil {
			own.Errors++
			if own.Err == nil {
				own.Err = err
			}
			continue
		}
		own.Times = append(own.Times, took)
	}
	return own
}
