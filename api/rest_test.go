package api_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/catalogd/catalogd/api"
	"github.com/catalogd/catalogd/catalog"
)

const tablePath = "/v1/wh/namespaces/ns/tables/t"

func TestConfig(t *testing.T) {
	t.Parallel()
	s := newSurface(t)
	golden(t, "config.golden", s.get("/v1/config").Body.Bytes())
	if w := s.get("/v1/config?warehouse=wh"); w.Code != http.StatusOK {
		t.Errorf("named warehouse: %d", w.Code)
	}
	w := s.get("/v1/config?warehouse=other")
	if e := errorOf(t, w); w.Code != http.StatusNotFound || e.Error.Type != "NoSuchWarehouseException" {
		t.Errorf("unknown warehouse: %d %v", w.Code, e)
	}
}

// TestEndpoints holds the advertised list and the router against each other.
func TestEndpoints(t *testing.T) {
	t.Parallel()
	s := newSurface(t, func(c *api.Config) { c.Views = &fakeViews{} })
	s.fake.put(catalog.TypeTable, "ns", "t", `{}`, "")
	var config struct{ Endpoints []string }
	if err := json.Unmarshal(s.get("/v1/config").Body.Bytes(), &config); err != nil {
		t.Fatal(err)
	}
	concrete := strings.NewReplacer("{prefix}", "wh", "{namespace}", "ns", "{table}", "t", "{view}", "v", "{function}", "f", "{plan-id}", "p")
	for _, endpoint := range config.Endpoints {
		method, path, _ := strings.Cut(endpoint, " ")
		before := len(s.fake.calls)
		w := s.do(request{method: method, path: concrete.Replace(path), body: "{}"})
		if w.Code == http.StatusMethodNotAllowed || w.Code >= 500 {
			t.Errorf("%s is advertised and answers %d", endpoint, w.Code)
		}
		if w.Code == http.StatusNotFound && len(s.fake.calls) == before {
			t.Errorf("%s is advertised and has no route", endpoint)
		}
	}
	colons := strings.NewReplacer(":prefix", "{prefix}", ":namespace", "{namespace}", ":table", "{table}", ":view", "{view}", ":function", "{function}", ":plan-id", "{plan-id}")
	for _, r := range s.echo.Routes() {
		if !strings.HasPrefix(r.Path, "/v1/") || r.Path == "/v1/config" || r.Path == "/v1/oauth/tokens" {
			continue
		}
		if endpoint := r.Method + " " + colons.Replace(r.Path); !slices.Contains(config.Endpoints, endpoint) {
			t.Errorf("%s has a route and is not advertised", endpoint)
		}
	}
	if len(config.Endpoints) != 32 { // all of the specification but config, tokens and sign
		t.Errorf("%d endpoints", len(config.Endpoints))
	}
}

// TestNames follows names from the URL to the catalog: each segment is decoded once.
func TestNames(t *testing.T) {
	t.Parallel()
	java := http.Header{"X-Client-Version": {"Apache Iceberg 1.12.0 (commit x)"}}
	for _, c := range []struct {
		path   string
		header http.Header
		want   string
	}{
		{"/v1/wh/namespaces/a%1Fb/tables/t", nil, `load TABLE ["a" "b"] "t"`},
		{"/v1/wh/namespaces/a%1fb/tables/t", nil, `load TABLE ["a" "b"] "t"`},
		{"/v1/wh/namespaces/a.b/tables/t.u", nil, `load TABLE ["a.b"] "t.u"`},
		{"/v1/wh/namespaces/a%2Eb/tables/t", nil, `load TABLE ["a.b"] "t"`},
		{"/v1/wh/namespaces/a%2Fb/tables/x%2Fy", nil, `load TABLE ["a/b"] "x/y"`},
		{"/v1/wh/namespaces/a%25b/tables/t", nil, `load TABLE ["a%b"] "t"`},
		{"/v1/wh/namespaces/a%2541/tables/t%252F", nil, `load TABLE ["a%41"] "t%2F"`},
		{"/v1/wh/namespaces/a%20b/tables/t+u", nil, `load TABLE ["a b"] "t+u"`},
		{"/v1/wh/namespaces/a+b/tables/t%2Bu", java, `load TABLE ["a b"] "t+u"`},
		{"/v1/wh/namespaces/a+b/tables/t", java, `load TABLE ["a b"] "t"`},
		{"/v1/wh/namespaces/a+b/tables/t", nil, `load TABLE ["a+b"] "t"`},
		{"/v1/wh/namespaces/%E6%97%A5/tables/%F0%9F%98%80", nil, `load TABLE ["日"] "😀"`},
		{"/v1/wh/namespaces/ns/tables/st~123", nil, `load TABLE ["ns"] "st~123"`},
		{"/v1/wh/namespaces/ns/tables/a%1Fb", nil, "load TABLE [\"ns\"] \"a\\x1fb\""},
		{"/v1/wh/namespaces/a,b/tables/c;d", nil, `load TABLE ["a,b"] "c;d"`},
		{"/v1/wh/namespaces/tables/tables/tables", nil, `load TABLE ["tables"] "tables"`},
	} {
		s := newSurface(t)
		if w := s.do(request{method: http.MethodGet, path: c.path, header: c.header}); w.Code != http.StatusNotFound {
			t.Errorf("%s: %d %s", c.path, w.Code, w.Body)
		}
		if got := s.fake.lastCall(); got != c.want {
			t.Errorf("%s reached the catalog as %s, want %s", c.path, got, c.want)
		}
	}
}

func TestParent(t *testing.T) {
	t.Parallel()
	s := newSurface(t)
	for query, want := range map[string]string{
		"":                            `namespaces [] 0`,
		"?parent=":                    `namespaces [] 0`,
		"?parent=a%1Fb":               `namespaces ["a" "b"] 0`,
		"?parent=a.b&unknown=1":       `namespaces ["a.b"] 0`,
		"?pageToken=":                 `namespaces [] 1000`,
		"?pageToken=&pageSize=7":      `namespaces [] 7`,
		"?pageSize=1000000000":        `namespaces [] 10000`,
		"?pageToken=&pageSize=&x=y=z": `namespaces [] 1000`,
	} {
		if w := s.get("/v1/wh/namespaces" + query); w.Code != http.StatusOK {
			t.Errorf("%s: %d %s", query, w.Code, w.Body)
		}
		if got := s.fake.lastCall(); got != want {
			t.Errorf("%q reached the catalog as %s, want %s", query, got, want)
		}
	}
}

func TestPages(t *testing.T) {
	t.Parallel()
	s := newSurface(t)
	var want []string
	for _, name := range []string{"a", "b.c", "d", "é", "f"} {
		s.fake.put(catalog.TypeTable, "ns", name, `{}`, "")
		want = append(want, name)
	}
	slices.Sort(want)
	var got []string
	path := "/v1/wh/namespaces/ns/tables?pageSize=2"
	for token, pages := "", 0; ; pages++ {
		w := s.get(path + token)
		var page struct {
			Identifiers []struct{ Name string }
			Next        *string `json:"next-page-token"`
		}
		if err := json.Unmarshal(w.Body.Bytes(), &page); err != nil || w.Code != http.StatusOK {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		for _, id := range page.Identifiers {
			got = append(got, id.Name)
		}
		if page.Next == nil {
			if pages != 2 {
				t.Errorf("%d pages", pages+1)
			}
			break
		}
		token = "&pageToken=" + url.QueryEscape(*page.Next)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	golden(t, "tables.golden", s.get("/v1/wh/namespaces/ns/tables").Body.Bytes())
	golden(t, "views.golden", s.get("/v1/wh/namespaces/ns/views").Body.Bytes())
	golden(t, "namespaces.golden", s.get("/v1/wh/namespaces").Body.Bytes())
}

func TestCreateTable(t *testing.T) {
	t.Parallel()
	s := newSurface(t)
	s.fake.namespaces["ns"] = nil
	const tables = "/v1/wh/namespaces/ns/tables"
	w := s.post(tables, `{"name":"t","schema":{"type":"struct", "x":1},"partition-spec":null,"write-order":{"order-id":0},"properties":{"a":""},"unknown":[1]}`)
	golden(t, "create_table.golden", w.Body.Bytes())
	if w.Header().Get("ETag") == "" {
		t.Error("a created table has no ETag")
	}
	want := catalog.CreateTableRequest{
		Name: "t", Schema: json.RawMessage(`{"type":"struct", "x":1}`), WriteOrder: json.RawMessage(`{"order-id":0}`),
		Properties: map[string]string{"a": ""},
	}
	if diff := cmp.Diff(want, s.fake.creates[0]); diff != "" {
		t.Error(diff)
	}
	w = s.post(tables, `{"name":"t","location":"file:///x","schema":{},"partition-spec":{"fields":[]},"stage-create":true}`)
	golden(t, "stage_table.golden", w.Body.Bytes())
	if tag := w.Header().Get("ETag"); tag != "" {
		t.Errorf("a staged table has ETag %s", tag)
	}
	if got := s.fake.creates[1]; !got.StageCreate || got.Location != "file:///x" || string(got.PartitionSpec) != `{"fields":[]}` {
		t.Errorf("%+v", got)
	}
	w = s.post("/v1/wh/namespaces/nope/tables", `{"name":"t","schema":{}}`)
	if e := errorOf(t, w); w.Code != http.StatusNotFound || e.Error.Type != "NoSuchNamespaceException" {
		t.Errorf("missing namespace: %d %v", w.Code, e)
	}
	w = s.post("/v1/wh/namespaces/ns/register", `{"name":"r","metadata-location":"file:///m.json","overwrite":true}`)
	if got := s.fake.lastCall(); w.Code != http.StatusOK || !strings.Contains(got, "r from file:///m.json overwrite=true") {
		t.Errorf("register: %d %s", w.Code, got)
	}
}

func TestCommit(t *testing.T) {
	t.Parallel()
	s := newSurface(t)
	s.fake.put(catalog.TypeTable, "ns", "t", `{"a":1}`, "")
	s.fake.put(catalog.TypeView, "ns", "v", `{"v":1}`, "")
	w := s.post(tablePath, `{"identifier":{"namespace":["ns"],"name":"t"},"requirements":[{"type":"assert-table-uuid","uuid":"u"}],"updates":[ {"action":"x", "n":1.0} ]}`)
	golden(t, "commit_table.golden", w.Body.Bytes())
	if w.Header().Get("ETag") != s.get(tablePath).Header().Get("ETag") {
		t.Error("a commit's ETag differs from that of a load")
	}
	if got := string(s.fake.commits[0].Updates[0]); got != `{"action":"x", "n":1.0}` {
		t.Errorf("the update reached the catalog as %s", got)
	}
	if s.fake.commits[0].Internal || s.fake.commits[0].Options != nil {
		t.Error("a client's commit looks like an internal one")
	}
	w = s.post("/v1/wh/namespaces/ns/views/v", `{"updates":[]}`)
	golden(t, "replace_view.golden", w.Body.Bytes())
	w = s.post(tablePath, `{"requirements":[],"updates":[],"internal":true,"Internal":true,"Options":{}}`)
	if w.Code != http.StatusOK || s.fake.commits[2].Internal || s.fake.commits[2].Options != nil {
		t.Errorf("a client marks its commit as internal: %d", w.Code)
	}
}

func TestCreateView(t *testing.T) {
	t.Parallel()
	s := newSurface(t)
	s.fake.namespaces["ns"] = nil
	const body = `{"name":"v","schema":{"type":"struct"},"view-version":{"version-id":1,"storage-table":{"name":"s"}},"properties":{"a":"b"},"max-staleness-ms":60000}`
	if w := s.post("/v1/wh/namespaces/ns/views", body); w.Code != http.StatusOK {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	got := s.fake.views[0]
	if string(got.Body) != body || string(got.ViewVersion) != `{"version-id":1,"storage-table":{"name":"s"}}` || got.Properties["a"] != "b" || got.Options != nil {
		t.Errorf("%+v", got)
	}
}

func TestNamespaceProperties(t *testing.T) {
	t.Parallel()
	s := newSurface(t)
	golden(t, "create_namespace.golden", s.post("/v1/wh/namespaces", `{"namespace":["a","b.c"],"properties":{"k":"v"}}`).Body.Bytes())
	golden(t, "load_namespace.golden", s.get("/v1/wh/namespaces/a%1Fb.c").Body.Bytes())
	golden(t, "update_properties.golden", s.post("/v1/wh/namespaces/a%1Fb.c/properties", `{"removals":["k","z"],"updates":{"n":"1"}}`).Body.Bytes())
	golden(t, "create_namespace_bare.golden", s.post("/v1/wh/namespaces", `{"namespace":["bare"]}`).Body.Bytes())
	golden(t, "update_properties_none.golden", s.post("/v1/wh/namespaces/bare/properties", `{}`).Body.Bytes())
	if w := s.do(request{method: http.MethodDelete, path: "/v1/wh/namespaces/bare"}); w.Code != http.StatusNoContent || w.Body.Len() > 0 {
		t.Errorf("drop: %d %q", w.Code, w.Body)
	}
}

func TestHead(t *testing.T) {
	t.Parallel()
	s := newSurface(t)
	s.fake.put(catalog.TypeTable, "ns", "t", `{}`, "")
	s.fake.put(catalog.TypeView, "ns", "v", `{}`, "")
	for path, want := range map[string]int{
		"/v1/wh/namespaces/ns":             204,
		"/v1/wh/namespaces/no":             404,
		tablePath:                          204,
		"/v1/wh/namespaces/ns/tables/v":    404,
		"/v1/wh/namespaces/no/tables/t":    404,
		"/v1/wh/namespaces/ns/views/v":     204,
		"/v1/wh/namespaces/ns/views/t":     404,
		"/v1/other/namespaces/ns/tables/t": 404,
		"/v1/wh/namespaces/a%1F/tables/t":  400,
		"/v1/nope":                         404,
	} {
		w := s.do(request{method: http.MethodHead, path: path})
		if w.Code != want || w.Body.Len() > 0 {
			t.Errorf("HEAD %s: %d with %d bytes, want %d", path, w.Code, w.Body.Len(), want)
		}
		if media := w.Header().Get("Content-Type"); want >= 400 && media != "application/json" {
			t.Errorf("HEAD %s: Content-Type %q, want that of a GET", path, media)
		}
	}
}

func TestDropAndRename(t *testing.T) {
	t.Parallel()
	s := newSurface(t)
	s.fake.put(catalog.TypeTable, "ns", "t", `{}`, "")
	s.fake.put(catalog.TypeView, "ns", "v", `{}`, "")
	for query, want := range map[string]string{
		"": "false", "?purgeRequested=False": "false", "?purgeRequested=tRuE": "true", "?purgeRequested=true": "true",
		"?purgeRequested=": "false", "?purgeRequested=FALSE&x=1": "false",
	} {
		w := s.do(request{method: http.MethodDelete, path: tablePath + query})
		if got := s.fake.lastCall(); w.Code != http.StatusNoContent || got != `drop purge=`+want+` TABLE ["ns"] "t"` {
			t.Errorf("%s: %d %s", query, w.Code, got)
		}
	}
	if w := s.do(request{method: http.MethodDelete, path: tablePath + "?purgeRequested=maybe"}); w.Code != http.StatusBadRequest {
		t.Errorf("purgeRequested=maybe: %d", w.Code)
	}
	if w := s.do(request{method: http.MethodDelete, path: "/v1/wh/namespaces/ns/views/v"}); w.Code != http.StatusNoContent {
		t.Errorf("drop view: %d", w.Code)
	}
	const body = `{"source":{"namespace":["ns"],"name":"%s"},"destination":{"namespace":["a","b"],"name":"n"}}`
	if w := s.post("/v1/wh/tables/rename", strings.Replace(body, "%s", "t", 1)); w.Code != http.StatusNoContent || s.fake.lastCall() != `rename to ["a" "b"] "n", TABLE ["ns"] "t"` {
		t.Errorf("rename table: %d %s", w.Code, s.fake.lastCall())
	}
	if w := s.post("/v1/wh/views/rename", strings.Replace(body, "%s", "v", 1)); w.Code != http.StatusNoContent || s.fake.lastCall() != `rename to ["a" "b"] "n", VIEW ["ns"] "v"` {
		t.Errorf("rename view: %d %s", w.Code, s.fake.lastCall())
	}
}

func TestMetricsReport(t *testing.T) {
	t.Parallel()
	s := newSurface(t)
	const report = `{"report-type":"scan-report", "table-name":"x"}`
	w := s.post("/v1/wh/namespaces/ns/tables/not-yet/metrics", report)
	if w.Code != http.StatusNoContent || string(s.fake.reports[0]) != report {
		t.Errorf("%d %s", w.Code, s.fake.reports)
	}
}

func TestLooseClients(t *testing.T) {
	t.Parallel()
	s := newSurface(t)
	s.fake.put(catalog.TypeTable, "ns", "t", `{}`, "")
	w := s.do(request{method: http.MethodGet, path: tablePath + "?what=ever&snapshots=ALL", header: http.Header{
		"Authorization":               {"Bearer None"},
		"X-Iceberg-Access-Delegation": {"vended-credentials", "remote-signing"},
		"Idempotency-Key":             {"not a uuid"},
	}})
	if w.Code != http.StatusOK {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
