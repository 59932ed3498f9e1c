package catalog_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/catalogd/catalogd/catalog"
)

// reportStore keeps reports in memory, or hangs, or fails.
type reportStore struct {
	mu      sync.Mutex
	stored  []catalog.Report
	batches int
	fail    error
	hang    chan struct{}
}

func (s *reportStore) AddReports(_ context.Context, reports []catalog.Report) error {
	if s.hang != nil {
		<-s.hang
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.batches++
	if s.fail != nil {
		return s.fail
	}
	s.stored = append(s.stored, reports...)
	return nil
}

func (*reportStore) Reports(context.Context, string, catalog.TableIdent, catalog.ReportPage) (catalog.Page[catalog.Report], error) {
	return catalog.Page[catalog.Report]{}, nil
}

func (s *reportStore) counts() (stored, batches int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.stored), s.batches
}

type logLines struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *logLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logLines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// TestReporter_closeStoresAll: what was taken before the end is stored, in order and in
// batches.
func TestReporter_closeStoresAll(t *testing.T) {
	t.Parallel()
	store := &reportStore{}
	r := catalog.NewReporter(store, slog.New(slog.DiscardHandler))
	const n = 1200
	for i := range n {
		r.Add(catalog.Report{ID: int64(i), Body: []byte("{}")})
	}
	r.Close(t.Context())
	r.Close(t.Context()) // again
	stored, batches := store.counts()
	if stored != n || batches < 3 || batches > 10 {
		t.Fatalf("%d reports in %d batches, want %d in few", stored, batches, n)
	}
	for i, report := range store.stored {
		if report.ID != int64(i) {
			t.Fatalf("report %d came at position %d", report.ID, i)
		}
	}
}

// TestReporter_neverWaits: a database that hangs or fails costs reports, not requests.
func TestReporter_neverWaits(t *testing.T) {
	t.Parallel()
	log := &logLines{}
	store := &reportStore{hang: make(chan struct{}), fail: errors.New("no room")}
	r := catalog.NewReporter(store, slog.New(slog.NewTextHandler(log, nil)))
	added := make(chan struct{})
	go func() {
		defer close(added)
		r.Add(catalog.Report{Body: make([]byte, catalog.MaxReportBytes+1)}) // too large
		for range 50_000 {
			r.Add(catalog.Report{Body: make([]byte, 1000)})
		}
	}()
	select {
	case <-added:
	case <-time.After(time.Minute):
		t.Fatal("Add waits for a database that hangs")
	}
	closing, cancel := context.WithCancel(t.Context())
	cancel()
	r.Close(closing) // gives up at once
	close(store.hang)
	r.Close(t.Context())
	if stored, batches := store.counts(); stored != 0 || batches == 0 {
		t.Errorf("%d stored, %d batches tried", stored, batches)
	}
	if said := log.String(); !strings.Contains(said, "too large, or too many") || !strings.Contains(said, "no room") {
		t.Errorf("the loss is not logged:\n%s", said)
	}
}

// TestReporter_closeGivesUp: at the end of the process the first batch that cannot be
// stored is the last one that is tried.
func TestReporter_closeGivesUp(t *testing.T) {
	t.Parallel()
	store := &reportStore{hang: make(chan struct{}), fail: errors.New("no room")}
	r := catalog.NewReporter(store, slog.New(slog.DiscardHandler))
	for range 5000 {
		r.Add(catalog.Report{Body: []byte("{}")})
	}
	closing, cancel := context.WithCancel(t.Context())
	cancel()
	r.Close(closing)
	close(store.hang)
	r.Close(t.Context())
	if _, batches := store.counts(); batches != 1 {
		t.Errorf("%d batches were tried, want one", batches)
	}
}
