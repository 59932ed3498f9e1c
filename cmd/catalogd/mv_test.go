package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"github.com/catalogd/catalogd/api/mvrest"
	"github.com/catalogd/catalogd/cmd/catalogd/lake"
)

// workbench is a running catalogd with a source table and an independent reader.
type workbench struct {
	*testing.T
	p  *process
	c  *lake.Client
	db *lake.DB
}

func newWorkbench(t *testing.T) *workbench {
	t.Helper()
	p := start(t, nil, "dev", "--data-dir", t.TempDir(), "--listen", "127.0.0.1:0")
	return attach(t, p)
}

func attach(t *testing.T, p *process) *workbench {
	t.Helper()
	c, err := lake.Open(t.Context(), p.uri, "main")
	if err != nil {
		t.Fatal(err)
	}
	db, err := lake.NewDB(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return &workbench{T: t, p: p, c: c, db: db}
}

var eventSchema = iceberg.NewSchema(0,
	iceberg.NestedField{ID: 1, Name: "ts", Type: iceberg.PrimitiveTypes.TimestampTz},
	iceberg.NestedField{ID: 2, Name: "k", Type: iceberg.PrimitiveTypes.String},
	iceberg.NestedField{ID: 3, Name: "v", Type: iceberg.PrimitiveTypes.Int64},
)

// events creates a source table.
func (w *workbench) events(name string, spec *iceberg.PartitionSpec, props iceberg.Properties) {
	w.Helper()
	ns, _, _ := strings.Cut(name, ".")
	status, answer, err := w.p.try(http.MethodPost, "/v1/main/namespaces", map[string]any{"namespace": []string{ns}})
	if err != nil || status != http.StatusOK && status != http.StatusConflict {
		w.Fatalf("create namespace: %d %s %v", status, answer, err)
	}
	if _, err := w.c.CreateTable(w.Context(), name, eventSchema, spec, props); err != nil {
		w.Fatal(err)
	}
}

// event is a row; a zero day means NULL.
type event struct {
	at time.Time
	k  string
	v  int64
}

func day(d, hour int) time.Time {
	return time.Date(2024, 1, 1, hour, 17, 0, 0, time.UTC).AddDate(0, 0, d-1)
}

func (w *workbench) append(name string, rows ...event) {
	w.Helper()
	w.change(name, func(ctx context.Context, t *table.Table) error {
		data := eventRows(rows)
		defer data.Release()
		_, err := t.AppendTable(ctx, data, 1<<20, nil)
		return err
	})
}

// change loads a table and commits to it.
func (w *workbench) change(name string, fn func(context.Context, *table.Table) error) {
	w.Helper()
	t, err := w.c.Load(w.Context(), name)
	if err != nil {
		w.Fatal(err)
	}
	if err := fn(w.Context(), t); err != nil {
		w.Fatal(err)
	}
}

func eventRows(rows []event) arrow.Table {
	schema, err := table.SchemaToArrowSchema(eventSchema, nil, true, false)
	if err != nil {
		panic(err) // the schema is a constant
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	for _, r := range rows {
		if r.at.IsZero() {
			b.Field(0).AppendNull()
		} else {
			b.Field(0).(*array.TimestampBuilder).Append(arrow.Timestamp(r.at.UnixMicro()))
		}
		b.Field(1).(array.StringLikeBuilder).Append(r.k)
		b.Field(2).(*array.Int64Builder).Append(r.v)
	}
	rec := b.NewRecordBatch()
	defer rec.Release()
	return array.NewTableFromRecords(schema, []arrow.RecordBatch{rec})
}

func (w *workbench) delete(name string, filter iceberg.BooleanExpression) {
	w.Helper()
	w.change(name, func(ctx context.Context, t *table.Table) error {
		_, err := t.Delete(ctx, filter, nil)
		return err
	})
}

// create makes a materialized view.
func (w *workbench) create(name, sql string) {
	w.Helper()
	ns, view, _ := strings.Cut(name, ".")
	w.p.call(http.MethodPost, "/catalogd/v1/main/materialized-views",
		map[string]any{"namespace": []string{ns}, "name": view, "sql": sql}, http.StatusCreated, nil)
}

func viewPath(name string) string {
	ns, view, _ := strings.Cut(name, ".")
	return "/catalogd/v1/main/namespaces/" + ns + "/views/" + view
}

// refresh waits for a run that starts now.
func (w *workbench) refresh(name string) mvrest.RefreshRun {
	w.Helper()
	var run mvrest.RefreshRun
	w.p.call(http.MethodPost, viewPath(name)+"/refresh?wait=true&timeout=120s", map[string]any{}, http.StatusOK, &run)
	if run.Status != "succeeded" {
		w.Fatalf("refresh of %s: %s %s %v", name, run.Status, run.Reason, *run.Error)
	}
	return run
}

// steer suspends or resumes the automatic refreshes of a view.
func (w *workbench) steer(name, action string) {
	w.Helper()
	w.p.call(http.MethodPost, viewPath(name)+"/"+action, nil, http.StatusNoContent, nil)
}

// prove compares the storage table with the query, as bags of rows, by a path that shares
// nothing with catalogd.
func (w *workbench) prove(name, sql string, sources ...string) {
	w.Helper()
	for _, s := range append(sources, name+"__storage") {
		rows, err := w.c.Rows(w.Context(), s)
		if err != nil {
			w.Fatal(err)
		}
		err = w.db.Load(w.Context(), s, rows)
		rows.Release()
		if err != nil {
			w.Fatal(err)
		}
	}
	stored, wanted, err := w.db.Difference(w.Context(), "SELECT * FROM "+name+"__storage", sql)
	if err != nil {
		w.Fatal(err)
	}
	if stored != 0 || wanted != 0 {
		w.Fatalf("%s: %d rows stored that the query does not return, %d missing", name, stored, wanted)
	}
}

func (w *workbench) freshness(name string) mvrest.MaterializedView {
	w.Helper()
	var f mvrest.MaterializedView
	w.p.call(http.MethodGet, viewPath(name)+"/freshness", nil, http.StatusOK, &f)
	return f
}

// settled waits until the view is up to date by itself.
func (w *workbench) settled(name string) {
	w.Helper()
	eventually(w.T, time.Minute, name+" is up to date", func() error {
		f := w.freshness(name)
		if !f.Recursive.UpToDate {
			return fmt.Errorf("%s (%s), job %s", f.Recursive.Status, f.Recursive.Reason, f.Job)
		}
		return nil
	})
}

const dailySQL = `SELECT date_trunc('day', ts) AS day, k, count(*) AS n, sum(v) AS total, max(v) AS top FROM ev.src GROUP BY ALL`

// TestMV_followsEveryKindOfChange changes a source in every way that this client can, and
// compares rows, strategy and touched buckets after each.
func TestMV_followsEveryKindOfChange(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"copy-on-write", "merge-on-read"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			w := newWorkbench(t)
			w.events("ev.src", nil, iceberg.Properties{"write.delete.mode": mode})
			w.create("ev.daily", dailySQL)
			expect := func(strategy, reason string, buckets int64) {
				t.Helper()
				run := w.refresh("ev.daily")
				w.prove("ev.daily", dailySQL, "ev.src")
				if run.Strategy != strategy || run.Reason != reason || run.Buckets != buckets {
					t.Errorf("strategy %s (%s), %d buckets, want %s (%s), %d", run.Strategy, run.Reason, run.Buckets, strategy, reason, buckets)
				}
				if f := w.freshness("ev.daily"); !f.UpToDate || f.Status != "fresh" {
					t.Errorf("after the refresh it is %s (%s)", f.Status, f.Reason)
				}
			}
			var first []event
			for d := 1; d <= 40; d++ { // over two months, so in two storage partitions
				first = append(first, event{day(d, 3), "a", int64(d)}, event{day(d, 20), "b", int64(2 * d)})
			}
			for _, e := range first[:78] {
				w.append("ev.src", e) // a file each: a change stays small against the whole
			}
			w.settled("ev.daily")
			w.prove("ev.daily", dailySQL, "ev.src")
			// From here on only the requested runs take up changes: an automatic one in between
			// would leave them nothing to do.
			w.steer("ev.daily", "suspend")
			w.append("ev.src", first[78:]...)
			expect("buckets", "", 1)
			w.append("ev.src", event{day(2, 5), "a", 7}, event{day(39, 5), "c", 7})
			expect("full", "MOSTLY_CHANGED", 0) // one file with both: its bounds span 38 days of 40
			w.append("ev.src", event{day(2, 6), "a", 1})
			w.append("ev.src", event{day(39, 6), "c", 1})
			expect("buckets", "", 2) // two files: intervals, not their hull
			w.append("ev.src", event{k: "null", v: 5})
			expect("buckets", "", 1) // the NULL bucket
			w.delete("ev.src", iceberg.EqualTo(iceberg.Reference("v"), int64(20)))
			run := w.refresh("ev.daily")
			w.prove("ev.daily", dailySQL, "ev.src")
			if run.Strategy != "buckets" {
				t.Errorf("after a delete: %s (%s)", run.Strategy, run.Reason)
			}
			w.delete("ev.src", iceberg.EqualTo(iceberg.Reference("k"), "null"))
			run = w.refresh("ev.daily")
			w.prove("ev.daily", dailySQL, "ev.src") // the group is gone, not empty
			if run.Strategy != "buckets" {
				t.Errorf("after the last row of a group was deleted: %s (%s)", run.Strategy, run.Reason)
			}
			expect("none", "", 0) // asked again, nothing changed
			w.steer("ev.daily", "resume")
			w.change("ev.src", func(ctx context.Context, t *table.Table) error {
				tx := t.NewTransaction()
				if err := tx.UpdateSchema(true, false).RenameColumn([]string{"v"}, "value").Commit(); err != nil {
					return err
				}
				_, err := tx.Commit(ctx)
				return err
			})
			eventually(t, time.Minute, "the renamed column is noticed", func() error {
				f := w.freshness("ev.daily")
				if f.UpToDate || f.LastError == nil || !strings.Contains(*f.LastError, `"v"`) {
					return fmt.Errorf("%s (%s), last error %v", f.Status, f.Reason, f.LastError)
				}
				return nil
			})
			w.change("ev.src", func(ctx context.Context, t *table.Table) error {
				tx := t.NewTransaction()
				if err := tx.UpdateSchema(true, false).RenameColumn([]string{"value"}, "v").Commit(); err != nil {
					return err
				}
				_, err := tx.Commit(ctx)
				return err
			})
			w.settled("ev.daily") // by itself: the inputs changed
			w.prove("ev.daily", dailySQL, "ev.src")
		})
	}
}

// TestMV_onTopOfOthers refreshes a chain and a diamond, which never mix two moments.
func TestMV_onTopOfOthers(t *testing.T) {
	t.Parallel()
	w := newWorkbench(t)
	w.events("ev.src", nil, nil)
	monthly := `SELECT date_trunc('month', day) AS month, k, sum(n) AS n, sum(total) AS total FROM ev.daily GROUP BY ALL`
	diamond := `SELECT d.k, sum(d.n) AS n, (SELECT count(*) FROM ev.src) AS rows FROM ev.daily d GROUP BY d.k`
	w.create("ev.daily", dailySQL)
	w.create("ev.monthly", monthly)
	w.create("ev.diamond", diamond)
	for d := 1; d <= 60; d += 3 {
		w.append("ev.src", event{day(d, 3), "a", int64(d)}, event{day(d, 4), "b", int64(d)})
	}
	for _, view := range []string{"ev.daily", "ev.monthly", "ev.diamond"} {
		w.settled(view)
	}
	w.prove("ev.daily", dailySQL, "ev.src")
	w.prove("ev.monthly", strings.ReplaceAll(monthly, "ev.daily", "("+dailySQL+")"), "ev.src")
	w.prove("ev.diamond", strings.ReplaceAll(diamond, "ev.daily", "("+dailySQL+")"), "ev.src")
}

// TestMV_unreadableManifest: a source whose manifests are gone makes the view undetermined,
// and never a commit fail.
func TestMV_unreadableManifest(t *testing.T) {
	t.Parallel()
	w := newWorkbench(t)
	w.events("ev.src", nil, nil)
	w.create("ev.daily", dailySQL)
	w.append("ev.src", event{day(1, 3), "a", 1})
	w.settled("ev.daily")
	w.steer("ev.daily", "suspend")
	w.append("ev.src", event{day(2, 3), "a", 2})
	src, err := w.c.Load(t.Context(), "ev.src")
	if err != nil {
		t.Fatal(err)
	}
	manifests, err := filepath.Glob(strings.TrimPrefix(src.Location(), "file://") + "/metadata/*.avro")
	if err != nil || len(manifests) == 0 {
		t.Fatalf("manifests of the source: %v, %v", manifests, err)
	}
	for _, m := range manifests {
		if err := os.Remove(m); err != nil {
			t.Fatal(err)
		}
	}
	w.steer("ev.daily", "resume")
	eventually(t, time.Minute, "the view is undetermined", func() error {
		if f := w.freshness("ev.daily"); f.Status != "undetermined" || f.Reason != "SOURCE_UNREADABLE" {
			return fmt.Errorf("%s (%s)", f.Status, f.Reason)
		}
		return nil
	})
	w.p.call(http.MethodPost, "/v1/main/namespaces/ev/tables/src", map[string]any{
		"requirements": []any{}, "updates": []any{map[string]any{"action": "set-properties", "updates": map[string]string{"a": "b"}}},
	}, http.StatusOK, nil)
}

// TestMV_underFire commits while refreshes run; in the end every view is exact.
func TestMV_underFire(t *testing.T) {
	t.Parallel()
	w := newWorkbench(t)
	w.events("ev.src", nil, nil)
	hourly := `SELECT date_trunc('hour', ts) AS hour, count(*) AS n, sum(v) AS total FROM ev.src WHERE k <> 'x' GROUP BY 1 HAVING count(*) > 1`
	w.create("ev.daily", dailySQL)
	w.create("ev.hourly", hourly)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 30 {
		var rows []event
		for range 1 + random.IntN(20) {
			rows = append(rows, event{day(1+random.IntN(90), random.IntN(24)), string(rune('a' + random.IntN(3))), random.Int64N(100)})
		}
		w.append("ev.src", rows...)
		if i%7 == 6 {
			w.delete("ev.src", iceberg.LessThan(iceberg.Reference("v"), random.Int64N(10)))
		}
	}
	w.settled("ev.daily")
	w.settled("ev.hourly")
	w.prove("ev.daily", dailySQL, "ev.src")
	w.prove("ev.hourly", hourly, "ev.src")
	_, metrics, err := w.p.try(http.MethodGet, "/metrics", nil)
	if want := `catalogd_refreshes_total{reason="FIRST_REFRESH",status="succeeded",strategy="full"}`; err != nil || !strings.Contains(string(metrics), want) {
		t.Errorf("/metrics lacks %s: %v", want, err)
	}
}
