package postgres_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/catalogd/catalogd/catalog"
	"github.com/catalogd/catalogd/mv"
)

func TestRegistry_stateReachesThroughNestedViews(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.tables("t", "unrelated")
	u := w.freshView("u", "t")
	m := w.freshView("m", "u", "u__storage")
	top := w.freshView("top", "m", "m__storage", "t", "missing")
	w.freshView("aside", "t")

	s, err := w.reg.State(t.Context(), top)
	w.check(err)
	if got, want := slices.Sorted(maps.Keys(s.Views)), slices.Sorted(slices.Values([]string{u, m, top})); !slices.Equal(got, want) {
		t.Errorf("views = %v, want %v", got, want)
	}
	want := map[mv.Key]catalog.Pointer{}
	for _, n := range []string{"t", "u", "u__storage", "m", "m__storage", "top", "top__storage"} {
		want[key(n)] = w.pointer(n)
	}
	if diff := cmp.Diff(want, s.Objects); diff != "" {
		t.Errorf("objects differ from what the store loads (-store +state):\n%s", diff)
	}
	if got, want := s.Views[top].Names, []mv.Key{key("m"), key("m__storage"), key("missing"), key("t")}; !slices.Equal(got, want) {
		t.Errorf("names = %v, want %v", got, want)
	}
	if s.Root != top || s.At.IsZero() {
		t.Errorf("root = %s, at = %s", s.Root, s.At)
	}
	in := s.InputsOf(top)
	if _, ok := in[key("missing")]; !ok || len(in) != 5 {
		t.Errorf("inputs = %v, want four names and the view itself", in)
	}
}

func TestRegistry_definitionSurvivesTheRoundTrip(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.tables("t")
	v := w.creation("v", catalog.Pointer{Type: catalog.TypeView, IsMaterialized: true, ViewVersionID: 3})
	st := w.creation("v__storage", catalog.Pointer{StorageOf: v.Pointer.UUID})
	d := mv.Definition{
		ViewUUID: v.Pointer.UUID, Warehouse: warehouse, Ident: ident("v"), VersionID: 3, Dialect: mv.Trino, SQL: `SELECT "a" FROM t`,
		DefaultNS: catalog.Namespace{"demo", "with.dot"}, DefaultCat: "lake", Storage: ident("v__storage"), StorageUUID: st.Pointer.UUID,
		Columns: []mv.Column{{Name: "a", Type: "decimal(38, 0)", ID: 7}},
		Sources: []mv.Source{{Kind: mv.SourceTable, Ident: ident("t"), UUID: uuid.NewString(), Via: ident("plain")}},
		Mode:    mv.Managed, TimeZone: "Europe/Berlin", MaxStaleness: mv.Staleness{Max: 1500 * time.Millisecond},
	}
	v.Attachment = &mv.Registration{Definition: d, Names: []mv.Key{key("t")}}
	w.commit(v, st)
	s, err := w.reg.Named(t.Context(), warehouse, ident("v"))
	w.check(err)
	if diff := cmp.Diff(d, s.Views[d.ViewUUID].Definition); diff != "" {
		t.Errorf("definition (-written +read):\n%s", diff)
	}
}

func TestRegistry_unboundedStaleness(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.tables("t")
	id := w.freshView("v", "t")
	c := w.swapping("v")
	reg := w.registration(id, "v", w.pointer("v__storage").UUID, []string{"t"})
	reg.Definition.MaxStaleness.Unbounded = true
	c.Attachment = reg
	w.commit(c)
	s, err := w.reg.State(t.Context(), id)
	w.check(err)
	if got := s.Views[id].Definition.MaxStaleness; !got.Unbounded {
		t.Errorf("max staleness = %+v, want unbounded", got)
	}
}

func TestRegistry_allOfAWarehouse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.tables("t")
	ids := []string{w.freshView("a", "t"), w.freshView("b", "a", "a__storage")}
	s, err := w.reg.All(t.Context(), warehouse)
	w.check(err)
	slices.Sort(ids)
	if got := slices.Sorted(maps.Keys(s.Views)); !slices.Equal(got, ids) || s.Root != "" {
		t.Errorf("views = %v, root = %q, want %v", got, s.Root, ids)
	}
	other, err := w.reg.All(t.Context(), "elsewhere")
	w.check(err)
	if len(other.Views) != 0 || other.At.IsZero() {
		t.Errorf("views of another warehouse = %v at %s", other.Views, other.At)
	}
}

func TestRegistry_jobAndRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.tables("t")
	id := w.view("v", "t")
	view := func() mv.ViewState {
		t.Helper()
		s, err := w.reg.State(t.Context(), id)
		w.check(err)
		return s.Views[id]
	}
	if v := view(); v.Job != mv.JobQueued || v.StaleSince.IsZero() || v.LastRefresh != nil || v.Running != nil {
		t.Errorf("new view: %+v", v)
	}
	job := w.fetch(id)
	run := mv.Refresh{ID: uuid.NewString(), ViewUUID: id, Mode: "full", Strategy: "full", Reason: "FIRST", Engine: "duckdb", Generation: 4}
	w.check(w.reg.Begin(t.Context(), run, job))
	w.check(w.reg.Report(t.Context(), run.ID, 42.5))
	v := view()
	if v.Job != mv.JobRunning || v.Running == nil || v.Running.Percent != 42.5 || v.Running.Engine != "duckdb" || v.Running.Generation != 4 {
		t.Errorf("running view: job %q, run %+v", v.Job, v.Running)
	}
	silence, known, err := w.reg.Silence(t.Context(), id, job)
	if err != nil || !known || silence < 0 || silence > time.Minute {
		t.Errorf("silence = %s, %t, %v", silence, known, err)
	}
	if got := query[string](w, `SELECT process_id::text FROM refresh`); got != testProcess {
		t.Errorf("process = %s, want the one that has the job", got)
	}

	a := w.attempt(id, mv.OutcomeDone)
	a.Refresh = &mv.Refresh{
		ID: run.ID, ViewUUID: id, Status: mv.RefreshSucceeded, Action: "refreshed", Mode: "incremental", Strategy: "buckets", Reason: "R",
		Engine: "duckdb", SnapshotID: 1 << 62, Buckets: 3, BucketsTotal: 365, Rows: 12, BytesRead: 1 << 40, BytesWritten: 77, CPUSeconds: 1.25,
		Phases: map[string]time.Duration{"plan": 3 * time.Millisecond}, Percent: 100, Generation: 4,
	}
	w.finish(job, a)
	v = view()
	if v.Job != mv.JobNone || v.Running != nil || v.LastRefresh == nil || !v.StaleSince.IsZero() {
		t.Fatalf("after the run: %+v", v)
	}
	got := *v.LastRefresh
	if got.Started.IsZero() || got.Ended.Before(got.Started) {
		t.Errorf("started %s, ended %s", got.Started, got.Ended)
	}
	got.Started, got.Ended = time.Time{}, time.Time{}
	if diff := cmp.Diff(*a.Refresh, got); diff != "" {
		t.Errorf("run (-written +read):\n%s", diff)
	}
}

// A run of which only the failure is known ends the row that it had begun.
func TestRegistry_failureWithoutIDEndsTheRunningRow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.tables("t")
	id := w.view("v", "t")
	job := w.fetch(id)
	run := mv.Refresh{ID: uuid.NewString(), ViewUUID: id, Generation: 2}
	w.check(w.reg.Begin(t.Context(), run, job))
	a := w.attempt(id, mv.OutcomeFailed)
	a.Refresh = &mv.Refresh{Status: mv.RefreshFailed, Error: "it crashed"}
	w.finish(job, a)
	runs, err := w.reg.Refreshes(t.Context(), id, 0)
	w.check(err)
	if len(runs) != 1 || runs[0].ID != run.ID || runs[0].Status != mv.RefreshFailed || runs[0].Error != "it crashed" || runs[0].Generation != 2 {
		t.Errorf("history = %+v", runs)
	}
}

func TestRegistry_beginRefusesLostJobAndDroppedView(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.tables("t")
	id := w.view("v", "t")
	job := w.fetch(id)
	w.exec(`UPDATE river_job SET state = 'discarded', finalized_at = now() WHERE id = $1`, job)
	err := w.reg.Begin(t.Context(), mv.Refresh{ID: uuid.NewString(), ViewUUID: id}, job)
	if catalog.KindOf(err) != catalog.KindConflict {
		t.Errorf("Begin for a lost job = %v, want KindConflict", err)
	}
	err = w.reg.Begin(t.Context(), mv.Refresh{ID: uuid.NewString(), ViewUUID: uuid.NewString()}, 0)
	if catalog.KindOf(err) != catalog.KindNoSuchView {
		t.Errorf("Begin for a dropped view = %v, want KindNoSuchView", err)
	}
}

func TestRegistry_unchangedAndLeasedSnapshots(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.tables("t", "other")
	id := w.freshView("v", "t")
	table, other := w.pointer("t").UUID, w.pointer("other").UUID
	w.check(w.reg.LogUnchanged(t.Context(), table, []int64{1 << 60, 5}))
	w.check(w.reg.LogUnchanged(t.Context(), table, []int64{5, 6}))
	w.check(w.reg.LogUnchanged(t.Context(), other, []int64{7}))
	w.exec(`INSERT INTO change_log (table_uuid, snapshot_id, kind) VALUES ($1, 8, 'changed')`, table)
	w.exec(`INSERT INTO snapshot_lease VALUES ($1, 9, now() + interval '1 hour'), ($1, 10, now() - interval '1 hour')`, table)
	s, err := w.reg.State(t.Context(), id)
	w.check(err)
	if diff := cmp.Diff(map[string]map[int64]bool{table: {1 << 60: true, 5: true, 6: true}}, s.Unchanged); diff != "" {
		t.Errorf("unchanged (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]map[int64]bool{table: {9: true}}, s.Leased); diff != "" {
		t.Errorf("leased (-want +got):\n%s", diff)
	}
}

func TestRegistry_unknownView(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, err := w.reg.State(t.Context(), uuid.NewString())
	if catalog.KindOf(err) != catalog.KindNoSuchView {
		t.Errorf("State = %v, want KindNoSuchView", err)
	}
	w.tables("t")
	_, err = w.reg.Named(t.Context(), warehouse, ident("t"))
	if catalog.KindOf(err) != catalog.KindNoSuchView {
		t.Errorf("Named of a table = %v, want KindNoSuchView", err)
	}
	if err := w.reg.SetNames(t.Context(), uuid.NewString(), nil); catalog.KindOf(err) != catalog.KindNoSuchView {
		t.Errorf("SetNames = %v, want KindNoSuchView", err)
	}
}
