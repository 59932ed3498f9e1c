package catalog

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"
)

// Report is a scan or commit report that a client sent about a table.
type Report struct {
	ID         int64 // given when it is stored
	Warehouse  string
	Ident      TableIdent
	Type       string // "scan-report" or "commit-report", as the client named it
	SnapshotID *int64
	ReceivedAt time.Time
	Body       json.RawMessage // as it came
}

// ReportPage asks for reports of a table, the newest first.
type ReportPage struct {
	PageRequest        // After is what Next was
	Type        string // empty: all
	Since       time.Time
	Until       time.Time // zero: no bound; exclusive
}

// ReportStore keeps reports; package catalog/postgres implements it.
type ReportStore interface {
	// AddReports stores those of tables that exist and leaves out the others.
	AddReports(ctx context.Context, reports []Report) error
	// Reports lists the reports of a table. KindNoSuchTable.
	Reports(ctx context.Context, warehouse string, id TableIdent, p ReportPage) (Page[Report], error)
}

const (
	// MaxReportBytes bounds a report that is kept. Those of clients have a few kilobytes.
	MaxReportBytes = 256 << 10
	// maxBufferedReports and maxBufferedBytes bound what waits to be stored: beyond them
	// reports are lost, which hurts nobody.
	maxBufferedReports = 10_000
	maxBufferedBytes   = 32 << 20
	// reportBatch is how many reports one statement stores, reportDelay how long it waits
	// for them to come together.
	reportBatch = 500
	reportDelay = time.Second
	// reportTimeout bounds one attempt to store a batch.
	reportTimeout = 10 * time.Second
)

// Reporter stores reports in the background, so that a client never waits for one, and is
// never told that one could not be kept.
type Reporter struct {
	store ReportStore
	log   *slog.Logger
	wake  chan struct{}
	quit  chan struct{}
	done  chan struct{}
	once  sync.Once

	mu      sync.Mutex
	waiting []Report
	bytes   int
	lost    int // since the last batch
}

// NewReporter returns a Reporter that works until [Reporter.Close].
func NewReporter(store ReportStore, log *slog.Logger) *Reporter {
	r := &Reporter{store: store, log: log, wake: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{})}
	go r.run()
	return r
}

// Add takes a report if there is room for it.
func (r *Reporter) Add(report Report) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.waiting) >= maxBufferedReports || r.bytes+len(report.Body) > maxBufferedBytes || len(report.Body) > MaxReportBytes {
		r.lost++
		return
	}
	r.waiting = append(r.waiting, report)
	r.bytes += len(report.Body)
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Close stores what waits, until ctx is done, and ends the work.
func (r *Reporter) Close(ctx context.Context) {
	r.once.Do(func() { close(r.quit) })
	select {
	case <-r.done:
	case <-ctx.Done():
	}
}

func (r *Reporter) run() {
	defer close(r.done)
	for {
		select {
		case <-r.quit:
			r.flush()
			return
		case <-r.wake:
		}
		select {
		case <-r.quit:
			r.flush()
			return
		case <-time.After(reportDelay):
		}
		r.flush()
	}
}

// flush stores all that waits. A batch that cannot be stored is lost: it is not worth an
// ever longer queue. At the end of the process the first failure ends it, since the next
// batches would only wait for the same database.
func (r *Reporter) flush() {
	for {
		r.mu.Lock()
		n := min(len(r.waiting), reportBatch)
		batch := r.waiting[:n:n]
		r.waiting = r.waiting[n:]
		for i := range batch {
			r.bytes -= len(batch[i].Body)
		}
		lost := r.lost
		r.lost = 0
		if len(r.waiting) == 0 {
			r.waiting = nil // lets go of the memory
		}
		r.mu.Unlock()
		if lost > 0 {
			r.log.Warn("metrics reports were not kept: too large, or too many at a time", slog.Int("reports", lost))
		}
		if n == 0 {
			return
		}
		// It must outlive the requests that it is for, and the signal that ends the process.
		ctx, cancel := context.WithTimeout(context.Background(), reportTimeout)
		err := r.store.AddReports(ctx, batch)
		cancel()
		if err != nil {
			r.log.Warn("metrics reports were not kept", slog.Int("reports", n), slog.Any("error", err))
			select {
			case <-r.quit:
				r.discard()
				return
			default:
			}
		}
	}
}

// discard gives up all that waits.
func (r *Reporter) discard() {
	r.mu.Lock()
	n := len(r.waiting)
	r.waiting, r.bytes = nil, 0
	r.mu.Unlock()
	if n > 0 {
		r.log.Warn("metrics reports were not kept: the process ends", slog.Int("reports", n))
	}
}

// SetReporter makes the service keep metrics reports. Call it before the first request.
func (s *Service) SetReporter(r *Reporter) { s.reporter = r }

// ReportMetrics accepts a scan or commit report. Engines send them for tables that do
// not exist yet, so only the warehouse is checked.
func (s *Service) ReportMetrics(ctx context.Context, warehouse string, id TableIdent, report json.RawMessage) error {
	w, err := s.store.Warehouse(ctx, warehouse)
	if err != nil {
		return err
	}
	var head struct {
		Type       string `json:"report-type"`
		SnapshotID *int64 `json:"snapshot-id"`
	}
	if json.Unmarshal(report, &head) != nil {
		head.SnapshotID = nil // a report of a kind that this server does not know is kept as it is
	}
	if head.Type == "" {
		return Errorf(KindInvalid, "Missing member report-type: it tells what the report is about")
	}
	if s.reporter == nil {
		return nil
	}
	s.reporter.Add(Report{
		Warehouse: w.Name, Ident: id, Type: head.Type, SnapshotID: head.SnapshotID, ReceivedAt: s.now(), Body: report,
	})
	return nil
}

// MetricsReports lists what was reported about a table, the newest first.
func (s *Service) MetricsReports(ctx context.Context, warehouse string, id TableIdent, p ReportPage) (Page[Report], error) {
	return s.store.Reports(ctx, warehouse, id, p)
}
