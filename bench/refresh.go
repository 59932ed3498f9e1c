package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/iceberg-go/catalog/rest"
	_ "github.com/apache/iceberg-go/io" // file:// locations
	"github.com/apache/iceberg-go/table"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/catalogd/catalogd/bench/client"
	"github.com/catalogd/catalogd/bench/flights"
	"github.com/catalogd/catalogd/bench/measure"
)

const (
	sourceName = "flights"
	viewName   = "daily_delay"
)

// refreshPatience bounds one refresh.
const refreshPatience = 2 * time.Minute

// fullRuns is how often everything is recomputed for the comparison.
const fullRuns = 3

// refreshResult is one refresh, or the median of several.
type refreshResult struct {
	What         string           `json:"what"`
	TotalMS      float64          `json:"total_ms"` // from the acknowledged commit, or of the call
	RunMS        float64          `json:"run_ms"`   // of the run alone
	Phases       map[string]int64 `json:"phases_ms"`
	Strategy     string           `json:"strategy"`
	Reason       string           `json:"reason,omitempty"`
	Buckets      int64            `json:"buckets"`
	BucketsTotal int64            `json:"buckets_total"`
	Rows         int64            `json:"rows"`
	BytesRead    int64            `json:"bytes_read"`
	BytesWritten int64            `json:"bytes_written"`
	EngineCPU    float64          `json:"engine_cpu_ms"`
	ServerCPU    float64          `json:"server_cpu_ms"` // negative if unknown
}

// refreshes measures how long after a commit the stored rows reflect it.
func (b *bench) refreshes(ctx context.Context) error {
	days, err := b.days(ctx)
	if err != nil {
		return err
	}
	appends := min(b.scale.appends, len(days)-1)
	r := &refreshBench{bench: b, answer: flights.Answer{}}
	before := len(days) - appends
	if err := r.prepare(ctx, days[:before]); err != nil {
		return err
	}
	b.rep.refreshTitle(before)
	var incremental, full []refreshResult
	for i, day := range days[before:] {
		res, err := r.appendDay(ctx, days, before+i)
		if err != nil {
			return fmt.Errorf("one-day append of %d rows: %w", day.NumRows(), err)
		}
		incremental = append(incremental, res)
		b.rep.addRefresh(res)
	}
	for range fullRuns {
		res, err := r.full(ctx)
		if err != nil {
			return fmt.Errorf("full refresh: %w", err)
		}
		full = append(full, res)
		b.rep.addRefresh(res)
	}
	b.rep.incrementalToFull(incremental, full)
	return nil
}

// days is the input: one more than the source begins with for every append.
func (b *bench) days(ctx context.Context) (flights.Days, error) {
	want := b.scale.days + b.scale.appends
	if b.data == "" {
		return flights.Synthetic(want, b.scale.rowsPerDay), nil
	}
	days, err := flights.Read(ctx, b.data)
	if err != nil {
		return nil, err
	}
	if len(days) < 2 {
		return nil, fmt.Errorf("%s has %d days, want at least 2", b.data, len(days))
	}
	return days[:min(want, len(days))], nil
}

type refreshBench struct {
	*bench
	rest    *rest.Catalog
	source  *table.Table
	answer  flights.Answer
	storage table.Identifier
	pool    *pgxpool.Pool // of the server's database, for looking on
}

// prepare commits the source day by day and makes the view after that.
func (r *refreshBench) prepare(ctx context.Context, days flights.Days) error {
	u, err := r.databaseAt(serverDatabase)
	if err != nil {
		return err
	}
	if r.pool, err = pgxpool.New(ctx, u); err != nil {
		return err
	}
	r.stop.add(closer(r.pool))
	if r.rest, err = rest.NewCatalog(ctx, "bench", r.catalog.Base(), rest.WithPrefix(r.catalog.Prefix())); err != nil {
		return err
	}
	schema, err := table.ArrowSchemaToIcebergWithFreshIDs(flights.Schema(), false)
	if err != nil {
		return err
	}
	if r.source, err = r.rest.CreateTable(ctx, table.Identifier{namespace, sourceName}, schema); err != nil {
		return err
	}
	for i := range days {
		if err := r.append(ctx, days, i); err != nil {
			return fmt.Errorf("day %d: %w", i+1, err)
		}
	}
	query := fmt.Sprintf(flights.Query, namespace+"."+sourceName)
	if err := r.catalog.CreateView(ctx, client.NewView{Namespace: []string{namespace}, Name: viewName, SQL: query}); err != nil {
		return err
	}
	if err := r.firstRefresh(ctx, viewName); err != nil {
		return err
	}
	f, err := r.catalog.Freshness(ctx, namespace, viewName)
	if err != nil {
		return err
	}
	id := f.Definition.StorageTable
	r.storage = append(slices.Clone(id.Namespace), id.Name)
	return r.verify(ctx, f)
}

func (r *refreshBench) append(ctx context.Context, days flights.Days, i int) error {
	reader, err := array.NewRecordReader(days[i].Schema(), days[i:i+1])
	if err != nil {
		return err
	}
	defer reader.Release()
	r.answer.Add(days[i])
	r.source, err = r.source.Append(ctx, reader, nil)
	return err
}

// appendDay commits a day and measures from the acknowledgement to the new snapshot.
func (r *refreshBench) appendDay(ctx context.Context, days flights.Days, i int) (refreshResult, error) {
	before, err := r.storagePointer(ctx)
	if err != nil {
		return refreshResult{}, err
	}
	cpu := r.server.cpu()
	used, cpuErr := cpu(ctx)
	if err := r.append(ctx, days, i); err != nil {
		return refreshResult{}, err
	}
	acknowledged := time.Now()
	if err := r.published(ctx, before); err != nil {
		return refreshResult{}, err
	}
	total := time.Since(acknowledged)
	after, err := r.recorded(ctx)
	if err != nil {
		return refreshResult{}, err
	}
	res := resultOf("one-day append", *after.LastRefresh, total)
	if now, err := cpu(ctx); err == nil && cpuErr == nil {
		res.ServerCPU = measure.Milliseconds(now - used)
	}
	return res, r.verify(ctx, after)
}

// storagePointer is where the storage table points. It is read in the database, because
// asking the server again and again would cost the CPU time that is measured.
func (r *refreshBench) storagePointer(ctx context.Context) (location string, err error) {
	err = r.pool.QueryRow(ctx, `SELECT metadata_location FROM iceberg_tables
		WHERE catalog_name = $1 AND table_namespace = $2 AND table_name = $3`,
		r.catalog.Prefix(), namespace, r.storage[len(r.storage)-1]).Scan(&location)
	return location, err
}

// published waits until the storage table points elsewhere.
func (r *refreshBench) published(ctx context.Context, before string) error {
	ctx, cancel := context.WithTimeout(ctx, refreshPatience)
	defer cancel()
	tick := time.NewTicker(pollInterval / 4)
	defer tick.Stop()
	for {
		now, err := r.storagePointer(ctx)
		if err != nil || now != before {
			return err
		}
		select {
		case <-ctx.Done():
			f, err := r.catalog.Freshness(context.WithoutCancel(ctx), namespace, viewName)
			return errors.Join(fmt.Errorf("no refresh within %v: the view is %s (%s), %d failures %s",
				refreshPatience, f.Status, f.Reason, f.Failures, f.LastError), err)
		case <-tick.C:
		}
	}
}

// recorded waits until the view is up to date and the run is in the history, where it
// appears after its snapshot.
func (r *refreshBench) recorded(ctx context.Context) (client.Freshness, error) {
	return r.await(ctx, viewName, func(f client.Freshness) (bool, error) {
		if f.Failures > 0 {
			return false, fmt.Errorf("a refresh failed: %s", f.LastError)
		}
		run := f.LastRefresh
		return f.UpToDate && f.StorageSnapshot != nil && run != nil && run.Snapshot != nil &&
			*run.Snapshot == *f.StorageSnapshot && run.Status == "succeeded", nil
	})
}

func (r *refreshBench) full(ctx context.Context) (refreshResult, error) {
	cpu := r.server.cpu()
	used, cpuErr := cpu(ctx)
	begin := time.Now()
	run, err := r.catalog.Refresh(ctx, namespace, viewName, refreshPatience)
	if err != nil {
		return refreshResult{}, err
	}
	res := resultOf("full refresh", run, time.Since(begin))
	if now, err := cpu(ctx); err == nil && cpuErr == nil {
		res.ServerCPU = measure.Milliseconds(now - used)
	}
	if run.Status != "succeeded" {
		return res, fmt.Errorf("the run is %q: %s", run.Status, run.Error)
	}
	f, err := r.catalog.Freshness(ctx, namespace, viewName)
	if err != nil {
		return res, err
	}
	return res, r.verify(ctx, f)
}

// verify compares the stored rows with the query's answer, which is computed here. A
// difference is a wrong answer, not the end of the run.
func (r *refreshBench) verify(ctx context.Context, f client.Freshness) error {
	t, err := r.rest.LoadTable(ctx, r.storage)
	if err != nil {
		return err
	}
	rows, err := t.Scan().ToArrowTable(ctx)
	if err != nil {
		return err
	}
	defer rows.Release()
	if current := t.CurrentSnapshot(); current == nil || f.StorageSnapshot == nil || current.SnapshotID != *f.StorageSnapshot {
		return errors.New("the storage table is not at the snapshot that the view says")
	}
	if err := r.answer.Check(rows); err != nil {
		r.rep.Wrong++
		r.rep.printf("    WRONG: %s: %v\n", viewName, err)
	}
	return nil
}

func resultOf(what string, run client.Run, total time.Duration) refreshResult {
	return refreshResult{
		What: what, TotalMS: measure.Milliseconds(total), RunMS: float64(run.DurationMS), Phases: run.Phases, Strategy: run.Strategy,
		Reason: run.Reason, Buckets: run.Buckets, BucketsTotal: run.BucketsTotal, Rows: run.Rows, BytesRead: run.BytesRead,
		BytesWritten: run.BytesWritten, EngineCPU: run.CPUSeconds * 1000, ServerCPU: -1,
	}
}

const refreshFormat = "%-16s %9s %8s  %-9s %11s %8s %11s %11s %9s %9s  %s\n"

func (r *report) refreshTitle(days int) {
	r.printf("\nrefresh: one day appended to a source of %d days; total is from the acknowledged commit (or the call) to the new storage snapshot\n", days)
	r.printf(refreshFormat, "", "total ms", "run ms", "strategy", "buckets", "rows", "read B", "written B", "engine ms", "server ms", "phases ms")
}

func (r *report) addRefresh(x refreshResult) {
	r.Refresh = append(r.Refresh, x)
	var phases []string
	for _, name := range slices.Sorted(maps.Keys(x.Phases)) {
		phases = append(phases, fmt.Sprintf("%s %d", name, x.Phases[name]))
	}
	server := "-"
	if x.ServerCPU >= 0 {
		server = fmt.Sprintf("%.0f", x.ServerCPU)
	}
	buckets := strconv.FormatInt(x.Buckets, 10)
	if x.BucketsTotal > 0 {
		buckets += fmt.Sprintf(" of %d", x.BucketsTotal)
	}
	line := fmt.Sprintf(refreshFormat, x.What, fmt.Sprintf("%.0f", x.TotalMS), fmt.Sprintf("%.0f", x.RunMS), x.Strategy, buckets,
		strconv.FormatInt(x.Rows, 10), strconv.FormatInt(x.BytesRead, 10), strconv.FormatInt(x.BytesWritten, 10), fmt.Sprintf("%.0f", x.EngineCPU), server,
		strings.Join(append(phases, x.Reason), ", "))
	r.printf("%s\n", strings.TrimRight(line, " ,\n"))
}

// incrementalToFull says how much less work a day is.
func (r *report) incrementalToFull(incremental, full []refreshResult) {
	share := func(of func(refreshResult) float64) string {
		part := ratio(medianOf(incremental, of) / medianOf(full, of))
		if !part.known() {
			return "-"
		}
		return fmt.Sprintf("%.1f %%", 100*float64(part))
	}
	r.note("one day to everything, medians: run time %s, bytes read %s, bytes written %s, engine CPU %s, server CPU %s",
		share(func(x refreshResult) float64 { return x.RunMS }),
		share(func(x refreshResult) float64 { return float64(x.BytesRead) }),
		share(func(x refreshResult) float64 { return float64(x.BytesWritten) }),
		share(func(x refreshResult) float64 { return x.EngineCPU }),
		share(func(x refreshResult) float64 { return x.ServerCPU }))
	r.note("from the acknowledged commit to the new storage snapshot: median %.0f ms, of which the run takes %.0f ms; the rest is waiting for further commits (debounce) and being scheduled",
		medianOf(incremental, func(x refreshResult) float64 { return x.TotalMS }), medianOf(incremental, func(x refreshResult) float64 { return x.RunMS }))
}

func medianOf(results []refreshResult, of func(refreshResult) float64) float64 {
	values := make([]float64, len(results))
	for i, x := range results {
		values[i] = of(x)
	}
	return measure.Median(values)
}
