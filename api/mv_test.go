package api_test

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/catalogd/catalogd/api"
	"github.com/catalogd/catalogd/catalog"
	"github.com/catalogd/catalogd/mv"
)

type fakeViews struct {
	freshness []mv.Freshness
	runs      []mv.Refresh
	creates   []mv.CreateRequest
	refreshes []mv.RefreshRequest
	suspended []bool
	drops     []bool
	// release ends the run that WaitRefresh waits for; nil: it has ended.
	release chan struct{}
	waiting chan struct{} // closed when WaitRefresh begins to wait
	fail    error
}

func (f *fakeViews) find(wh string, id catalog.TableIdent) (mv.Freshness, error) {
	if f.fail != nil {
		return mv.Freshness{}, f.fail
	}
	if wh != warehouse {
		return mv.Freshness{}, catalog.Errorf(catalog.KindNoSuchWarehouse, "Warehouse does not exist: %s", wh)
	}
	for _, v := range f.freshness {
		if v.View.Equal(id) {
			return v, nil
		}
	}
	return mv.Freshness{}, catalog.Errorf(catalog.KindNoSuchView, "Materialized view does not exist: %s", id)
}

func (f *fakeViews) Create(_ context.Context, _ string, req mv.CreateRequest) (mv.Freshness, error) {
	f.creates = append(f.creates, req)
	return mv.Freshness{
		View: req.Ident, SQL: req.SQL, Dialect: req.Dialect, StorageSnap: mv.NoSnapshot, Mode: mv.Managed,
		Recursive: mv.Verdict{Status: mv.StatusNeverRefreshed, Reason: mv.ReasonNeverRefreshed},
	}, f.fail
}

func (f *fakeViews) List(_ context.Context, _ string) ([]mv.Freshness, error) {
	return f.freshness, f.fail
}

func (f *fakeViews) Freshness(_ context.Context, wh string, id catalog.TableIdent) (mv.Freshness, error) {
	return f.find(wh, id)
}

func (f *fakeViews) Refresh(_ context.Context, wh string, id catalog.TableIdent, req mv.RefreshRequest) (mv.Ticket, error) {
	v, err := f.find(wh, id)
	f.refreshes = append(f.refreshes, req)
	return mv.Ticket{ViewUUID: v.ViewUUID, Generation: 9007199254740993}, err
}

func (f *fakeViews) WaitRefresh(ctx context.Context, t mv.Ticket, _ time.Duration) (mv.Refresh, error) {
	if f.release != nil {
		close(f.waiting)
		select {
		case <-f.release:
		case <-ctx.Done():
			return mv.Refresh{}, catalog.Errorf(catalog.KindUnavailable, "the wait was given up").Because(ctx.Err())
		}
	}
	return mv.Refresh{ID: "r1", Status: mv.RefreshFailed, Reason: "X", Generation: t.Generation, SnapshotID: mv.NoSnapshot}, nil
}

func (f *fakeViews) Refreshes(_ context.Context, wh string, id catalog.TableIdent, limit int) ([]mv.Refresh, error) {
	if _, err := f.find(wh, id); err != nil {
		return nil, err
	}
	return f.runs[:min(limit, len(f.runs))], nil
}

func (f *fakeViews) SetSuspended(_ context.Context, wh string, id catalog.TableIdent, suspended bool) error {
	_, err := f.find(wh, id)
	f.suspended = append(f.suspended, suspended)
	return err
}

func (f *fakeViews) Drop(_ context.Context, wh string, id catalog.TableIdent, keepStorage bool) error {
	_, err := f.find(wh, id)
	f.drops = append(f.drops, keepStorage)
	return err
}

const viewPath = "/catalogd/v1/wh/namespaces/ns/views/mv"

var morning = time.Date(2026, 3, 1, 9, 0, 0, 123e6, time.FixedZone("", 3600))

// staleView has every member that a view can have.
func staleView() mv.Freshness {
	source := catalog.TableIdent{Namespace: catalog.Namespace{"ns"}, Name: "t"}
	behind := []mv.Behind{
		{Source: source, UUID: "u-t", Recorded: 9007199254740993, Current: 9007199254740995, Snapshots: []int64{9007199254740994, 9007199254740995}, Reason: mv.ReasonSourceChanged},
		{Source: source, UUID: "u-t", Recorded: mv.NoSnapshot, Current: 7, Reason: mv.ReasonSourceRolled, OnlyReplace: true},
	}
	return mv.Freshness{
		View: catalog.TableIdent{Namespace: catalog.Namespace{"ns"}, Name: "mv"}, ViewUUID: "u-mv", VersionID: 3,
		Storage:     catalog.TableIdent{Namespace: catalog.Namespace{"ns"}, Name: "mv__storage"},
		StorageSnap: 9007199254740999, Dialect: mv.DuckDB, SQL: "SELECT 1 AS a WHERE 1 < 2",
		MaxStaleness: mv.Staleness{Max: time.Minute}, Mode: mv.Managed,
		Direct: mv.Verdict{Status: mv.StatusFresh, UpToDate: true, Reason: mv.ReasonUpToDate},
		Recursive: mv.Verdict{
			Status: mv.StatusStale, Reason: mv.ReasonSourceChanged, Detail: "ns.t has 2 newer snapshots.",
			StaleSince: morning, Behind: behind,
		},
		Sources: []mv.Source{
			{Kind: mv.SourceTable, Ident: source, UUID: "u-t"},
			{Kind: mv.SourceMV, Ident: source, UUID: "u-m", Storage: source, Via: source},
		},
		Suspended: true, Failures: 2, NotBefore: morning.Add(time.Minute), LastError: "disk full", Job: mv.JobQueued,
		LastRefresh: &mv.Refresh{
			ID: "r9", Status: mv.RefreshSucceeded, Action: "refreshed", Mode: "incremental", Strategy: "buckets", Reason: "R",
			Engine: "duckdb", SnapshotID: 9007199254740999, Buckets: 1, BucketsTotal: 365, Rows: 20, BytesRead: 1 << 40, BytesWritten: 5,
			CPUSeconds: 0.25, Phases: map[string]time.Duration{"plan": 1500 * time.Microsecond, "publish": time.Second},
			Started: morning, Ended: morning.Add(1500 * time.Millisecond), Percent: 100, Generation: 4,
		},
	}
}

func newViewSurface(t *testing.T) (*surface, *fakeViews) {
	t.Helper()
	views := &fakeViews{freshness: []mv.Freshness{staleView()}}
	return newSurface(t, func(c *api.Config) { c.Views = views }), views
}

func TestFreshness(t *testing.T) {
	t.Parallel()
	s, views := newViewSurface(t)
	golden(t, "freshness.golden", s.get(viewPath+"/freshness").Body.Bytes())
	views.freshness = append(views.freshness, mv.Freshness{
		View: catalog.TableIdent{Namespace: catalog.Namespace{"ns"}, Name: "new"}, StorageSnap: mv.NoSnapshot,
		MaxStaleness: mv.Staleness{Unbounded: true}, Mode: mv.External,
		Direct:    mv.Verdict{Status: mv.StatusNeverRefreshed, Reason: mv.ReasonNeverRefreshed},
		Recursive: mv.Verdict{Status: mv.StatusNeverRefreshed, Reason: mv.ReasonNeverRefreshed},
	})
	golden(t, "materialized_views.golden", s.get("/catalogd/v1/wh/materialized-views").Body.Bytes())
	views.freshness = nil
	if got := s.get("/catalogd/v1/wh/materialized-views").Body.String(); strings.TrimSpace(got) != `{"materialized-views":[]}` {
		t.Errorf("no views: %s", got)
	}
	w := s.get(viewPath + "/freshness")
	if e := errorOf(t, w); w.Code != 404 || e.Error.Type != "NoSuchViewException" {
		t.Errorf("missing view: %d %v", w.Code, e)
	}
}

func TestCreateMaterializedView(t *testing.T) {
	t.Parallel()
	s, views := newViewSurface(t)
	const path = "/catalogd/v1/wh/materialized-views"
	w := s.post(path, `{"namespace":["ns"],"name":"v","sql":"SELECT 1"}`)
	if w.Code != 201 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	w = s.post(path, `{"namespace":["a","b"],"name":"w","sql":"SELECT 2","dialect":"trino","default-namespace":["d"],"max-staleness-ms":60000,
		"comment":"c","properties":{"p":"1"},"or-replace":true,
		"storage":{"name":"st","location":"file:///x","partition":["day(d)"],"sort":["a asc"],"properties":{"q":"2"}}}`)
	if w.Code != 201 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	if w := s.post(path, `{"namespace":["ns"],"name":"v","sql":"SELECT 1","max-staleness-ms":null}`); w.Code != 201 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	want := []mv.CreateRequest{
		{Ident: catalog.TableIdent{Namespace: catalog.Namespace{"ns"}, Name: "v"}, SQL: "SELECT 1", Dialect: mv.DuckDB},
		{
			Ident: catalog.TableIdent{Namespace: catalog.Namespace{"a", "b"}, Name: "w"}, SQL: "SELECT 2", Dialect: mv.Trino,
			DefaultNS: catalog.Namespace{"d"}, MaxStaleness: &mv.Staleness{Max: time.Minute}, Comment: "c",
			Properties: map[string]string{"p": "1"}, OrReplace: true,
			Options: mv.CreateOptions{StorageName: "st", Location: "file:///x", Partition: []string{"day(d)"}, Sort: []string{"a asc"}, Properties: map[string]string{"q": "2"}},
		},
		{Ident: catalog.TableIdent{Namespace: catalog.Namespace{"ns"}, Name: "v"}, SQL: "SELECT 1", Dialect: mv.DuckDB, MaxStaleness: &mv.Staleness{Unbounded: true}},
	}
	if diff := cmp.Diff(want, views.creates); diff != "" {
		t.Error(diff)
	}
	for body, words := range map[string]string{
		`{"name":"v","sql":"x"}`:                                                     "namespace",
		`{"namespace":["ns"],"sql":"x"}`:                                             "Missing member name",
		`{"namespace":["ns"],"name":"v"}`:                                            "Missing member sql",
		`{"namespace":["ns"],"name":"v","sql":1}`:                                    "sql",
		`{"namespace":["ns"],"name":"v","sql":"x","max-staleness-ms":-1}`:            "max-staleness-ms",
		`{"namespace":["ns"],"name":"v","sql":"x","max-staleness-ms":"60s"}`:         "max-staleness-ms",
		`{"namespace":["ns"],"name":"v","sql":"x","max-staleness-ms":1e3}`:           "max-staleness-ms",
		`{"namespace":["ns"],"name":"v","sql":"x","max-staleness-ms":9223372036855}`: "max-staleness-ms",
		`{"namespace":["ns"],"name":"v","sql":"x","storage":{"name":""}}`:            "storage.name",
		`{"namespace":["ns"],"name":"v","sql":"x","storage":{"partition":"day"}}`:    "partition",
		`{"namespace":["ns"],"name":"v","sql":"x","properties":{"a":null}}`:          "properties",
	} {
		w := s.post(path, body)
		if e := errorOf(t, w).Error; w.Code != 400 || !strings.Contains(e.Message, words) {
			t.Errorf("%s: %d %q", body, w.Code, e.Message)
		}
	}
	if len(views.creates) != len(want) {
		t.Error("a refused body reached the domain")
	}
	views.fail = catalog.Errorf(catalog.KindInvalid, "SQL: line 1, column 8: no such table")
	w = s.post(path, `{"namespace":["ns"],"name":"v","sql":"SELECT"}`)
	if e := errorOf(t, w).Error; w.Code != 400 || !strings.Contains(e.Message, "column 8") {
		t.Errorf("refused SQL: %d %q", w.Code, e.Message)
	}
}

func TestRefresh(t *testing.T) {
	t.Parallel()
	s, views := newViewSurface(t)
	w := s.post(viewPath+"/refresh", "")
	if w.Code != 202 {
		t.Errorf("without a body: %d", w.Code)
	}
	golden(t, "refresh_ticket.golden", w.Body.Bytes())
	w = s.post(viewPath+"/refresh?wait=true", `{"full":true}`)
	if w.Code != 200 {
		t.Errorf("wait: %d", w.Code)
	}
	golden(t, "refresh_run.golden", w.Body.Bytes())
	if diff := cmp.Diff([]mv.RefreshRequest{{}, {Full: true}}, views.refreshes); diff != "" {
		t.Error(diff)
	}
	for _, query := range []string{"wait=perhaps", "timeout=x", "timeout=-1s", "timeout=601", "timeout=11m"} {
		if w := s.post(viewPath+"/refresh?"+query, "{}"); w.Code != 400 || len(views.refreshes) != 2 {
			t.Errorf("%s: %d", query, w.Code)
		}
	}
	if w := s.post(viewPath+"/refresh", `[]`); w.Code != 400 || len(views.refreshes) != 2 {
		t.Errorf("a body that is an array: %d", w.Code)
	}
	if w := s.post("/catalogd/v1/wh/namespaces/ns/views/none/refresh", ""); w.Code != 404 {
		t.Errorf("missing view: %d", w.Code)
	}
}

func TestRefresh_Wait(t *testing.T) {
	t.Parallel()
	s, views := newViewSurface(t)
	views.release, views.waiting = make(chan struct{}), make(chan struct{})
	if w := s.post(viewPath+"/refresh?wait=true&timeout=10ms", ""); w.Code != 202 {
		t.Errorf("after the timeout: %d %s", w.Code, w.Body)
	}
	views.waiting = make(chan struct{})
	answer := make(chan int)
	go func() { answer <- s.post(viewPath+"/refresh?wait=True&timeout=60", "").Code }()
	<-views.waiting
	select {
	case code := <-answer:
		t.Errorf("the answer %d came before the run had ended", code)
	default:
	}
	close(views.release)
	if code := <-answer; code != 200 {
		t.Errorf("after the run: %d", code)
	}
}

func TestRefreshes(t *testing.T) {
	t.Parallel()
	s, views := newViewSurface(t)
	views.runs = []mv.Refresh{ // newest first
		{ID: "d", Status: mv.RefreshRunning, Generation: 7, SnapshotID: mv.NoSnapshot, Started: morning},
		{ID: "c", Status: mv.RefreshSucceeded, Generation: 5, SnapshotID: 1, Started: morning, Ended: morning},
		{ID: "b", Status: mv.RefreshFailed, Generation: 5, SnapshotID: mv.NoSnapshot, Error: "no", Started: morning, Ended: morning},
		{ID: "a", Status: mv.RefreshLost, Generation: 5, SnapshotID: mv.NoSnapshot, Started: morning},
	}
	golden(t, "refreshes.golden", s.get(viewPath+"/refreshes?limit=2").Body.Bytes())
	for path, want := range map[string]string{
		"/c": "c", "/a": "a", "/1": "b", "/5": "b", "/6": "d", "/7": "d",
	} {
		w := s.get(viewPath + "/refreshes" + path)
		var run struct{ ID string }
		if err := json.Unmarshal(w.Body.Bytes(), &run); err != nil || w.Code != 200 || run.ID != want {
			t.Errorf("%s: %d %s, want run %s", path, w.Code, w.Body, want)
		}
	}
	if w := s.get(viewPath + "/refreshes/8"); w.Code != 202 || strings.TrimSpace(w.Body.String()) != `{"generation":8,"view-uuid":"u-mv"}` {
		t.Errorf("a ticket that nobody answered: %d %s", w.Code, w.Body)
	}
	w := s.get(viewPath + "/refreshes/zzz")
	if e := errorOf(t, w).Error; w.Code != 404 || !strings.Contains(e.Message, "zzz") {
		t.Errorf("unknown run: %d %v", w.Code, e)
	}
	for _, limit := range []string{"0", "1001", "x"} {
		if w := s.get(viewPath + "/refreshes?limit=" + limit); w.Code != 400 {
			t.Errorf("limit %s: %d", limit, w.Code)
		}
	}
}

func TestSuspendResumeDrop(t *testing.T) {
	t.Parallel()
	s, views := newViewSurface(t)
	for _, path := range []string{"/suspend", "/resume"} {
		if w := s.post(viewPath+path, ""); w.Code != 204 {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	if !slices.Equal(views.suspended, []bool{true, false}) {
		t.Errorf("suspended %v", views.suspended)
	}
	for _, query := range []string{"", "?keepStorage=True", "?keepStorage=false"} {
		if w := s.do(request{method: "DELETE", path: viewPath + query}); w.Code != 204 {
			t.Errorf("drop%s: %d", query, w.Code)
		}
	}
	if !slices.Equal(views.drops, []bool{false, true, false}) {
		t.Errorf("drops %v", views.drops)
	}
	if w := s.do(request{method: "DELETE", path: viewPath + "?keepStorage=x"}); w.Code != 400 || len(views.drops) != 3 {
		t.Errorf("keepStorage=x: %d", w.Code)
	}
}

// TestCompress: large lists are packed for those who want it, and only then.
func TestCompress(t *testing.T) {
	t.Parallel()
	s, views := newViewSurface(t)
	gzipped := http.Header{"Accept-Encoding": {"gzip"}}
	for range 50 {
		views.freshness = append(views.freshness, staleView())
	}
	path := "/catalogd/v1/wh/materialized-views"
	plain := s.get(path)
	packed := s.do(request{method: "GET", path: path, header: gzipped})
	if plain.Header().Get("Content-Encoding") != "" || packed.Header().Get("Content-Encoding") != "gzip" || packed.Header().Get("Vary") == "" {
		t.Fatalf("%v %v", plain.Header(), packed.Header())
	}
	z, err := gzip.NewReader(packed.Body)
	if err != nil {
		t.Fatal(err)
	}
	if body, err := io.ReadAll(z); err != nil || string(body) != plain.Body.String() {
		t.Errorf("packed and plain differ: %v", err)
	}
	for _, r := range []request{
		{method: "GET", path: "/v1/wh/namespaces/x/tables/t", header: gzipped},
		{method: "HEAD", path: "/v1/wh/namespaces/x", header: gzipped},
		{method: "GET", path: "/v1/wh/namespaces", header: gzipped},
		{method: "DELETE", path: viewPath, header: gzipped},
	} {
		w := s.do(r)
		without := s.do(request{method: r.method, path: r.path})
		if w.Header().Get("Content-Encoding") != "" || w.Code != without.Code || (r.method == "GET" && w.Code == 200 && w.Body.String() != without.Body.String()) {
			t.Errorf("%s %s: %d, encoding %q; without gzip %d", r.method, r.path, w.Code, w.Header().Get("Content-Encoding"), without.Code)
		}
	}
}
