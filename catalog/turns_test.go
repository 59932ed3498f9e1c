package catalog

import (
	"context"
	"errors"
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
		time.Sleep(time.Millisecond)
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
			turn.end()
		})
		waiters(t, turns, key, i+1)
	}
	first.end()
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
			turn.end()
		}
		var made *state
		if early {
			go wait()
			waiters(t, turns, key, 1)
			made = &state{since: time.Now()}
		} else {
			made = &state{since: time.Now()}
			time.Sleep(time.Millisecond) // clocks may stand still for less
			go wait()
			waiters(t, turns, key, 1)
		}
		first.hand(key, made)
		first.end()
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
	other.end()
	holder.end()
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
				turn.end()
			}
		})
		waiters(t, turns, key, 1)
		group.Go(func() {
			turn, err := turns.take(t.Context(), key)
			if err != nil {
				t.Error(err)
				return
			}
			turn.end()
		})
		waiters(t, turns, key, 2)
		group.Go(cancel)
		group.Go(holder.end)
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
				turn.end()
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
