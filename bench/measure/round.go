package measure

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Op does the n-th operation of a client in this round and returns the time that counts.
// An error means a wrong answer or none.
type Op func(ctx context.Context, client, n int) (time.Duration, error)

// Limits bound a round, in count and in time: whichever is reached first ends it.
type Limits struct {
	Clients   int
	PerClient int // operations of each client
	Time      time.Duration
}

// Round is one turn of one server.
type Round struct {
	Times    []time.Duration // of the operations that succeeded, sorted
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

// run does one round without looking at processes.
func run(ctx context.Context, limits Limits, op Op) Round {
	var (
		mu    sync.Mutex
		total Round
		wg    sync.WaitGroup
	)
	start := time.Now()
	for client := range limits.Clients {
		wg.Go(func() {
			own := loop(ctx, start, limits, client, op)
			mu.Lock()
			defer mu.Unlock()
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

func loop(ctx context.Context, start time.Time, limits Limits, client int, op Op) Round {
	var own Round
	for n := range limits.PerClient {
		if time.Since(start) >= limits.Time || ctx.Err() != nil || own.Errors >= maxErrors {
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
