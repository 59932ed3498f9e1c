package catalog

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"
)

// waiters polls until n writers wait for key.
func waiters(t *testing.T, turns *turns, key hintKey, n int) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		turns.mu.Lock()
		l := turns.lines[key]
		waiting := l != nil && len(l.waiting) == n
		turns.mu.Unlock()
		if waiting {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("never %d writers in line", n)
		}
		runtime.Gosched()
	}
}

func TestTurns_firstComeFirstServed(t *testing.T) {
	t.Parallel()
	turns, key := newTurns(), hintKey{name: "t"}
	first, err := turns.take(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	var (
		mu    sync.Mutex
		order []int
		group sync.WaitGroup
	)
	for i := range 20 {
		group.Go(func() {
			turn, err := turns.take(t.Context(), key)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			order = append(order, i)
			mu.Unlock()
			turn.end(t.Context())
		})
		waiters(t, turns, key, i+1)
	}
	first.end(t.Context())
	group.Wait()
	if !slices.IsSorted(order) || len(order) != 20 {
		t.Errorf("served in order %v", order)
	}
	if len(turns.lines) != 0 {
		t.Errorf("%d lines are left behind", len(turns.lines))
	}
}

// A state may stand for a read only of a writer that came before it was current.
func TestTurns_stateIsHandedToThoseWhoWaited(t *testing.T) {
	t.Parallel()
	turns, key := newTurns(), hintKey{name: "t"}
	for _, early := range []bool{true, false} {
		first, err := turns.take(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		got := make(chan *state, 1)
		wait := func() {
			turn, err := turns.take(t.Context(), key)
			if err != nil {
				t.Error(err)
			}
			got <- turn.state(key)
			turn.end(t.Context())
		}
		var made *state
		if early {
			go wait()
			waiters(t, turns, key, 1)
			made = &state{since: time.Now()}
		} else {
			made = &state{since: time.Now()}
			for !time.Now().After(made.since) {
				runtime.Gosched() // clocks may stand still for a while
			}
			go wait()
			waiters(t, turns, key, 1)
		}
		first.hand(key, made)
		first.end(t.Context())
		if left := <-got; (left == made) != early {
			t.Errorf("early %t: got %p of %p", early, left, made)
		}
	}
}

func TestTurns_whoGivesUpHoldsNobodyBack(t *testing.T) {
	t.Parallel()
	turns, a, b := newTurns(), hintKey{name: "a"}, hintKey{name: "b"}
	holder, err := turns.take(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() {
		_, err := turns.take(ctx, b, a) // gets a, waits for b
		failed <- err
	}()
	waiters(t, turns, b, 1)
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Errorf("take = %v, want canceled", err)
	}
	other, err := turns.take(t.Context(), a) // given back
	if err != nil {
		t.Fatal(err)
	}
	other.end(t.Context())
	holder.end(t.Context())
	if len(turns.lines) != 0 {
		t.Errorf("%d lines are left behind", len(turns.lines))
	}
}

// The turn may come at the moment in which its writer gives up.
func TestTurns_turnOfOneWhoLeftIsPassedOn(t *testing.T) {
	t.Parallel()
	turns, key := newTurns(), hintKey{name: "t"}
	for range 200 {
		holder, err := turns.take(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var group sync.WaitGroup
		group.Go(func() {
			if turn, err := turns.take(ctx, key); err == nil {
				turn.end(ctx)
			}
		})
		waiters(t, turns, key, 1)
		group.Go(func() {
			turn, err := turns.take(t.Context(), key)
			if err != nil {
				t.Error(err)
				return
			}
			turn.end(t.Context())
		})
		waiters(t, turns, key, 2)
		group.Go(cancel)
		group.Go(func() { holder.end(t.Context()) })
		group.Wait()
	}
	if len(turns.lines) != 0 {
		t.Errorf("%d lines are left behind", len(turns.lines))
	}
}

func TestTurns_severalAtOnceNeverWaitForEachOther(t *testing.T) {
	t.Parallel()
	turns := newTurns()
	keys := []hintKey{{name: "a"}, {name: "b"}, {name: "c"}, {name: "a"}}
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			mine := slices.Clone(keys)
			if i%2 == 0 {
				slices.Reverse(mine)
			}
			for range 100 {
				turn, err := turns.take(t.Context(), mine...)
				if err != nil {
					t.Error(err)
					return
				}
				turn.end(t.Context())
			}
		})
	}
	group.Wait()
}

func TestTurns_lineIsBounded(t *testing.T) {
	t.Parallel()
	turns, key := newTurns(), hintKey{name: "t"}
	turns.lines[key] = &line{waiting: make([]chan *state, maxWaiting)}
	if _, err := turns.take(t.Context(), key); KindOf(err) != KindUnavailable {
		t.Errorf("take = %v, want KindUnavailable", err)
	}
}

// late takes a turn that comes too late and ends it; the channel tells when it is over.
func late(t *testing.T, turns *turns, key hintKey) <-chan time.Duration {
	t.Helper()
	turn, err := turns.take(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	turn.late = true
	over := make(chan time.Duration, 1)
	began := time.Now()
	go func() {
		turn.end(t.Context())
		over <- time.Since(began)
	}()
	return over
}

func change(t *testing.T, turns *turns, key hintKey) {
	t.Helper()
	turn, err := turns.take(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	turn.change(key, &state{since: time.Now()})
	turn.end(t.Context())
}

// Writers that were outrun are told one by one, whoever was outrun first.
func TestTurns_outrunWritersComeBackOneByOne(t *testing.T) {
	t.Parallel()
	turns, key := newTurns(), hintKey{name: "t"}
	var over []<-chan time.Duration
	for range 3 {
		over = append(over, late(t, turns, key))
	}
	deadline := time.Now().Add(time.Minute)
	for len(over) > 0 && time.Now().Before(deadline) {
		change(t, turns, key)
		select {
		case <-over[0]:
			over = over[1:]
		case <-time.After(time.Minute):
			t.Fatal("a writer that was outrun is never told")
		}
	}
	turns.mu.Lock()
	defer turns.mu.Unlock()
	if len(turns.outrun) != 0 || len(turns.lines) != 0 {
		t.Errorf("%d and %d are left behind", len(turns.outrun), len(turns.lines))
	}
}

// If nothing changes any more they are told all the same.
func TestTurns_outrunWritersWaitForABoundedTime(t *testing.T) {
	t.Parallel()
	turns, key := newTurns(), hintKey{name: "t"}
	if waited := <-late(t, turns, key); waited < patience {
		t.Errorf("waited for %s, want %s", waited, patience)
	}
	turns.mu.Lock()
	defer turns.mu.Unlock()
	if len(turns.outrun) != 0 {
		t.Errorf("%d are left behind", len(turns.outrun))
	}
}

// The first who is outrun by a change need not wait for another one.
func TestTurns_firstOutrunWriterGoesAtOnce(t *testing.T) {
	t.Parallel()
	turns, key := newTurns(), hintKey{name: "t"}
	winner, err := turns.take(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan chan struct{}, 1)
	go func() {
		turn, err := turns.take(t.Context(), key)
		if err != nil {
			t.Error(err)
		}
		ended <- turns.behind(key)
		turn.end(t.Context())
	}()
	waiters(t, turns, key, 1)
	winner.change(key, &state{since: time.Now()})
	winner.end(t.Context())
	if again := <-ended; again != nil {
		t.Error("the first writer that was outrun has to wait")
	}
}
