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

// maxWait bounds how long a writer waits for its turn: when the database or the disk has
// stopped answering, everybody in line must hear of it.
const maxWait = 30 * time.Second

// turns lets the writers of one object go one after the other, in the order in which
// they came. Without it, all of them would read the same state, write a file each, and
// all but one would do so in vain; and a fast one could win again and again. Writers in
// other processes are still met in the database, which decides.
//
// Writers that were outrun would all be told at the same moment, read the same state and
// race again, which one of them wins. So they are told one by one, each when the object
// has changed again: most of those who come back then meet nobody.
type turns struct {
	mu     sync.Mutex
	lines  map[hintKey]*line
	outrun map[hintKey][]chan struct{} // in the order in which they were outrun; never empty
}

// patience bounds how long a writer that was outrun is kept from trying again. It is a
// few commits long.
const patience = 50 * time.Millisecond

// line is the writers that wait behind the one whose turn it is.
type line struct {
	waiting []chan *state
	// open says that the object changed when nobody had been outrun: the first who is may
	// try again at once.
	open bool
}

// state is what a writer found or made of an object.
type state struct {
	// since is a moment at or after which this was the current state. A writer that came
	// before it may be judged by the state, as if it had read it.
	since  time.Time
	loaded Loaded
	table  *metadata.Table // not to be changed
}

func newTurns() *turns {
	return &turns{lines: map[hintKey]*line{}, outrun: map[hintKey][]chan struct{}{}}
}

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
	timer := time.NewTimer(maxWait)
	defer timer.Stop()
	select {
	case left := <-turn:
		return left, nil
	case <-timer.C:
		t.abandon(key, turn)
		return nil, Errorf(KindUnavailable, "%s was written by others for %s, try again later", key.name, maxWait)
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

// changed lets the next of those go who were outrun. The caller has the turn.
func (t *turns) changed(key hintKey) {
	t.mu.Lock()
	defer t.mu.Unlock()
	waiting := t.outrun[key]
	if len(waiting) == 0 {
		t.lines[key].open = true
		return
	}
	close(waiting[0])
	t.forget(key, 0)
}

// behind puts the caller, which has the turn, among those who were outrun; nil if it may go
// at once.
func (t *turns) behind(key hintKey) chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if l := t.lines[key]; l.open {
		l.open = false
		return nil
	}
	again := make(chan struct{})
	t.outrun[key] = append(t.outrun[key], again)
	return again
}

// rest waits until the caller may go, for a bounded time.
func (t *turns) rest(ctx context.Context, key hintKey, again chan struct{}) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-again:
		return
	case <-timer.C:
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := slices.Index(t.outrun[key], again); i >= 0 {
		t.forget(key, i)
	}
}

func (t *turns) forget(key hintKey, i int) {
	left := slices.Delete(t.outrun[key], i, i+1)
	if len(left) == 0 {
		delete(t.outrun, key)
		return
	}
	t.outrun[key] = left
}

// turn is the right to write some objects.
type turn struct {
	turns *turns
	came  time.Time
	keys  []hintKey
	left  []*state // parallel to keys: what to hand on
	// late says that a requirement does not hold because of a writer that was here while
	// the caller waited.
	late bool
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
			got.end(ctx)
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

// change is hand for a state that the caller has made.
func (t *turn) change(key hintKey, s *state) {
	t.hand(key, s)
	t.turns.changed(key)
}

// end gives all turns on. A writer of one object that came too late is held back a little.
func (t *turn) end(ctx context.Context) {
	var again chan struct{}
	if t.late && len(t.keys) == 1 {
		again = t.turns.behind(t.keys[0])
	}
	for i, key := range t.keys {
		t.turns.leave(key, t.left[i])
	}
	if again != nil {
		t.turns.rest(ctx, t.keys[0], again)
	}
}
