package jobs

import (
	"context"
	"log/slog"
	"sync"
)

// flights are the jobs that have a worker in this process.
type flights struct {
	mu   sync.Mutex
	jobs map[int64]struct{}
}

func newFlights() *flights { return &flights{jobs: map[int64]struct{}{}} }

// add notes a job; the returned function ends that.
func (f *flights) add(jobID int64) (done func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.jobs[jobID] = struct{}{}
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.jobs, jobID)
	}
}

func (f *flights) ids() []int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	ids := make([]int64, 0, len(f.jobs))
	for id := range f.jobs {
		ids = append(ids, id)
	}
	return ids
}

// broadcast wakes everybody who waits for its next signal.
type broadcast struct {
	mu sync.Mutex
	ch chan struct{}
}

func newBroadcast() *broadcast { return &broadcast{ch: make(chan struct{})} }

// next is closed by the next fire.
func (b *broadcast) next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ch
}

func (b *broadcast) fire() {
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.ch)
	b.ch = make(chan struct{})
}

// quiet passes on River's warnings and errors only: it reports every few seconds that it
// is well.
func quiet(log *slog.Logger) *slog.Logger { return slog.New(warnings{log.Handler()}) }

type warnings struct{ slog.Handler }

func (h warnings) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && h.Handler.Enabled(ctx, level)
}

func (h warnings) WithAttrs(attrs []slog.Attr) slog.Handler {
	return warnings{h.Handler.WithAttrs(attrs)}
}

func (h warnings) WithGroup(name string) slog.Handler { return warnings{h.Handler.WithGroup(name)} }
