package catalog

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/catalogd/catalogd/catalog/metadata"
)

// maxWaiting bounds how many writers of one object may wait in this process. Beyond it
// the object takes longer to write than its writers are willing to wait.
const maxWaiting = 500

// turns lets the writers of one object go one after the other, in the order in which
// they came. Without it, all of them would read the same state, write a file each, and
// all but one would do so in vain; and a fast one could win again and again. Writers in
// other processes are still met in the database, which decides.
type turns struct {
	mu    sync.Mutex
	lines map[hintKey]*line
}

// line is the writers that wait behind the one whose turn it is.
type line struct {
	waiting []chan *state
}

// state is what a writer found or made of an object.
type state struct {
	// since is a moment at or after which this was the current state. A writer that came
	// before it may be judged by the state, as if it had read it.
	since  time.Time
	loaded Loaded
	table  *metadata.Table // not to be changed
}

func newTurns() *turns { return &turns{lines: map[hintKey]*line{}} }

// enter waits for the caller's turn, which ends with leave. It returns the state that the
// writer before left, nil if there is none.
func (t *turns) enter(ctx context.Context, key hintKey) (*state, error) {
	t.mu.Lock()
	l, busy := t.lines[key]
	if !busy {
		t.lines[key] = &line{}
		t.mu.Unlock()
		return nil, nil //nolint:nilnil // no writer came before
	}
	if len(l.waiting) >= maxWaiting {
		t.mu.Unlock()
		return nil, Errorf(KindUnavailable, "%d writers wait for %s already, try again later", maxWaiting, key.name)
	}
	turn := make(chan *state, 1)
	l.waiting = append(l.waiting, turn)
	t.mu.Unlock()
	select {
	case left := <-turn:
		return left, nil
	case <-ctx.Done():
		t.abandon(key, turn)
		return nil, ctx.Err()
	}
}

// abandon takes a writer out of the line, or passes on the turn that it just got.
func (t *turns) abandon(key hintKey, turn chan *state) {
	t.mu.Lock()
	if l := t.lines[key]; l != nil {
		if i := slices.Index(l.waiting, turn); i >= 0 {
			l.waiting = slices.Delete(l.waiting, i, i+1)
			t.mu.Unlock()
			return
		}
	}
	t.mu.Unlock()
	t.leave(key, <-turn)
}

// leave gives the turn to the writer that has waited longest.
func (t *turns) leave(key hintKey, left *state) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.lines[key]
	if len(l.waiting) == 0 {
		delete(t.lines, key)
		return
	}
	next := l.waiting[0]
	l.waiting = slices.Delete(l.waiting, 0, 1)
	next <- left
}

// turn is the right to write some objects.
type turn struct {
	turns *turns
	came  time.Time
	keys  []hintKey
	left  []*state // parallel to keys: what to hand on
}

// take waits for the turns of several objects. All writers take them in one order, so
// that no two wait for each other.
func (t *turns) take(ctx context.Context, keys ...hintKey) (*turn, error) {
	got := &turn{turns: t, came: time.Now()}
	keys = slices.Clone(keys)
	slices.SortFunc(keys, hintKey.compare)
	for _, key := range slices.Compact(keys) {
		left, err := t.enter(ctx, key)
		if err != nil {
			got.end()
			return nil, err
		}
		got.keys, got.left = append(got.keys, key), append(got.left, left)
	}
	return got, nil
}

// state is what the writer before left of an object, if it can stand for a read.
func (t *turn) state(key hintKey) *state {
	left := t.left[slices.Index(t.keys, key)]
	if left == nil || left.since.Before(t.came) {
		return nil
	}
	return left
}

// hand notes what the next writer of an object will get; nil if nothing is known.
func (t *turn) hand(key hintKey, s *state) { t.left[slices.Index(t.keys, key)] = s }

// end gives all turns on.
func (t *turn) end() {
	for i, key := range t.keys {
		t.turns.leave(key, t.left[i])
	}
}
