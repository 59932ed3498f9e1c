package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/catalogd/catalogd/api"
	"github.com/catalogd/catalogd/catalog"
)

const droppedUUID = "9c12d441-03fe-4693-9a96-a0705ddf69c1"

// fakeLife notes what reaches it.
type fakeLife struct {
	calls   []string
	dropped []catalog.Dropped
	reports []catalog.Report
	fail    error
}

func (f *fakeLife) note(format string, args ...any) error {
	f.calls = append(f.calls, fmt.Sprintf(format, args...))
	return f.fail
}

func (f *fakeLife) ListDropped(_ context.Context, wh string, p catalog.DroppedPage) (catalog.Page[catalog.Dropped], error) {
	err := f.note("dropped %s %q after %q size %d storage %t", wh, []string(p.Namespace), p.After, p.Size, p.StorageTables)
	return numbered(f.dropped, p.PageRequest), err
}

// numbered is a page of a listing whose tokens are positions.
func numbered[T any](all []T, p catalog.PageRequest) catalog.Page[T] {
	from, _ := strconv.Atoi(p.After)
	if p.Size == 0 || from+p.Size >= len(all) {
		return catalog.Page[T]{Items: all[from:]}
	}
	return catalog.Page[T]{Items: all[from : from+p.Size], Next: strconv.Itoa(from + p.Size)}
}

func (f *fakeLife) Undrop(_ context.Context, wh string, req catalog.UndropRequest) (catalog.Pointer, error) {
	err := f.note("undrop %s %s %s as %s", wh, req.UUID, req.Ident, req.To)
	return catalog.Pointer{Ident: req.Ident, Type: catalog.TypeTable, UUID: droppedUUID, MetadataLocation: "m"}, err
}

func (f *fakeLife) ExpireDropped(_ context.Context, wh, uuid string, purge bool) error {
	return f.note("expire %s %s %t", wh, uuid, purge)
}

func (f *fakeLife) Protected(_ context.Context, wh string, target catalog.Target) (bool, error) {
	return true, f.note("protected %s %s %s", wh, target.Type, target.Ident)
}

func (f *fakeLife) SetProtected(_ context.Context, wh string, target catalog.Target, on bool) error {
	return f.note("protect %s %s %s %t", wh, target.Type, target.Ident, on)
}

func (f *fakeLife) MetricsReports(_ context.Context, wh string, id catalog.TableIdent, p catalog.ReportPage) (catalog.Page[catalog.Report], error) {
	err := f.note("reports %s %s %q %d %d size %d", wh, id, p.Type, unix(p.Since), unix(p.Until), p.Size)
	return numbered(f.reports, p.PageRequest), err
}

func unix(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

func (f *fakeLife) List(context.Context) ([]catalog.WarehouseSettings, error) {
	return []catalog.WarehouseSettings{{
		Warehouse: catalog.Warehouse{Name: "wh", Location: "file:///wh"}, Default: true, SoftDelete: time.Hour, CreatedAt: morning,
	}}, f.note("list")
}

func (f *fakeLife) Get(_ context.Context, name string) (catalog.WarehouseSettings, error) {
	return catalog.WarehouseSettings{Warehouse: catalog.Warehouse{Name: name}}, f.note("get %s", name)
}

func (f *fakeLife) Create(_ context.Context, w catalog.WarehouseSettings) (catalog.WarehouseSettings, error) {
	return w, f.note("create %s %s %t %s %t", w.Name, w.Location, w.Default, w.SoftDelete, w.Protected)
}

func (f *fakeLife) Update(_ context.Context, name string, u catalog.WarehouseUpdate) (catalog.WarehouseSettings, error) {
	raw, err := json.Marshal(u)
	if err != nil {
		panic(err) // plain members
	}
	return catalog.WarehouseSettings{Warehouse: catalog.Warehouse{Name: name}}, f.note("update %s %s", name, raw)
}

func (f *fakeLife) Delete(_ context.Context, name string) error { return f.note("delete %s", name) }

func manageSurface(t *testing.T) (*surface, *fakeLife) {
	t.Helper()
	life := &fakeLife{}
	return newSurface(t, func(c *api.Config) { c.Life, c.Warehouses = life, life }), life
}

func TestManage_calls(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		method, path, body string
		status             int
		call               string // empty: nothing may be reached
		says               string
	}{
		{"GET", "/catalogd/v1/warehouses", "", 200, "list", `"soft-delete-retention-ms":3600000`},
		{"GET", "/catalogd/v1/warehouses/a%20b", "", 200, "get a b", `"a b"`},
		{"POST", "/catalogd/v1/warehouses", `{"name":"n","location":"file:///n","default":true,"soft-delete-retention-ms":60000,"protected":true}`, 201, "create n file:///n true 1m0s true", `"n"`},
		{"POST", "/catalogd/v1/warehouses", `{"name":"n","soft-delete-retention-ms":-1}`, 400, "", "soft-delete-retention-ms"},
		{"POST", "/catalogd/v1/warehouses", `{"name":"n","soft-delete-retention-ms":9223372036854775807}`, 400, "", "soft-delete-retention-ms"},
		{"POST", "/catalogd/v1/warehouses", `{"name":"n","location":"a\u0000b"}`, 400, "", "location"},
		{"POST", "/catalogd/v1/warehouses", `{"name":7}`, 400, "", "name"},
		{"POST", "/catalogd/v1/warehouses", `[]`, 400, "", ""},
		{"POST", "/catalogd/v1/warehouses/n", `{"protected":false}`, 200, `update n {"Location":null,"Default":false,"SoftDelete":null,"Protected":false}`, `"n"`},
		{"POST", "/catalogd/v1/warehouses/n", `{"default":true,"soft-delete-retention-ms":0,"location":"file:///m"}`, 200, `update n {"Location":"file:///m","Default":true,"SoftDelete":0,"Protected":null}`, `"n"`},
		{"POST", "/catalogd/v1/warehouses/n", `{"default":false}`, 400, "", "default"},
		{"DELETE", "/catalogd/v1/warehouses/n", "", 204, "delete n", ""},
		{"POST", "/catalogd/v1/wh/undrop", `{"uuid":"` + strings.ToUpper(droppedUUID) + `"}`, 200, "undrop wh " + droppedUUID + "  as ", droppedUUID},
		{"POST", "/catalogd/v1/wh/undrop", `{"identifier":{"namespace":["a"],"name":"t"},"rename-to":{"namespace":["b"],"name":"u"}}`, 200, "undrop wh  a.t as b.u", `"table"`},
		{"POST", "/catalogd/v1/wh/undrop", `{}`, 400, "", "uuid"},
		{"POST", "/catalogd/v1/wh/undrop", `{"uuid":"t"}`, 400, "", "uuid"},
		{"POST", "/catalogd/v1/wh/undrop", `{"uuid":"urn:uuid:` + droppedUUID + `"}`, 400, "", "uuid"},
		{"POST", "/catalogd/v1/wh/undrop", `{"identifier":{"namespace":[],"name":"t"}}`, 400, "", "identifier.namespace"},
		{"POST", "/catalogd/v1/wh/undrop", `{"identifier":{"namespace":["a"],"name":"t"},"rename-to":{"namespace":["a"],"name":""}}`, 400, "", "rename-to.name"},
		{"DELETE", "/catalogd/v1/wh/dropped/" + droppedUUID, "", 204, "expire wh " + droppedUUID + " false", ""},
		{"DELETE", "/catalogd/v1/wh/dropped/" + droppedUUID + "?purge=True", "", 204, "expire wh " + droppedUUID + " true", ""},
		{"DELETE", "/catalogd/v1/wh/dropped/" + droppedUUID + "?purge=maybe", "", 400, "", "purge"},
		{"DELETE", "/catalogd/v1/wh/dropped/t", "", 400, "", "uuid"},
		{"GET", "/catalogd/v1/wh/namespaces/a%1Fb/protection", "", 200, "protected wh NAMESPACE a.b.", `{"protected":true}`},
		{"GET", "/catalogd/v1/wh/namespaces/a/tables/t%2Fu/protection", "", 200, "protected wh TABLE a.t/u", `{"protected":true}`},
		{"GET", "/catalogd/v1/wh/namespaces/a/views/v/protection", "", 200, "protected wh VIEW a.v", `{"protected":true}`},
		{"PUT", "/catalogd/v1/wh/namespaces/a/protection", `{"protected":true}`, 200, "protect wh NAMESPACE a. true", `{"protected":true}`},
		{"PUT", "/catalogd/v1/wh/namespaces/a/tables/t/protection", `{"protected":false}`, 200, "protect wh TABLE a.t false", `{"protected":false}`},
		{"PUT", "/catalogd/v1/wh/namespaces/a/views/v/protection", `{"protected":true}`, 200, "protect wh VIEW a.v true", `{"protected":true}`},
		{"PUT", "/catalogd/v1/wh/namespaces/a/tables/t/protection", `{}`, 400, "", "protected"},
		{"PUT", "/catalogd/v1/wh/namespaces/a/tables/t/protection", `{"protected":"yes"}`, 400, "", "protected"},
		{"GET", "/catalogd/v1/wh/dropped?namespace=a%1Fb&list-storage-tables=true", "", 200, `dropped wh ["a" "b"] after "" size 0 storage true`, `"dropped":[]`},
		{"GET", "/catalogd/v1/wh/dropped?namespace=a%1F", "", 400, "", "namespace"},
		{"GET", "/catalogd/v1/wh/dropped?pageToken=x", "", 400, "", "pageToken"},
		{"GET", "/catalogd/v1/wh/namespaces/a/tables/t/metrics-reports?type=scan-report&since=1970-01-01T00:00:01Z&until=1970-01-01T01:00:02%2B01:00", "", 200, `reports wh a.t "scan-report" 1 2 size 100`, `"reports":[]`},
		{"GET", "/catalogd/v1/wh/namespaces/a/tables/t/metrics-reports?pageSize=100000", "", 200, `reports wh a.t "" 0 0 size 1000`, ""},
		{"GET", "/catalogd/v1/wh/namespaces/a/tables/t/metrics-reports?until=now", "", 400, "", "until"},
	} {
		s, life := manageSurface(t)
		w := s.do(request{method: c.method, path: c.path, body: c.body})
		call := strings.Join(life.calls, "; ")
		if w.Code != c.status || call != c.call || !strings.Contains(w.Body.String(), c.says) {
			t.Errorf("%s %s %s = %d %s, reached %q\nwant %d, %q, saying %q", c.method, c.path, c.body, w.Code, w.Body, call, c.status, c.call, c.says)
		}
	}
}

// TestManage_pages: each page leads to the next, and a token belongs to its own listing.
func TestManage_pages(t *testing.T) {
	t.Parallel()
	s, life := manageSurface(t)
	for i := range 5 {
		life.dropped = append(life.dropped, catalog.Dropped{Pointer: catalog.Pointer{
			Ident: catalog.TableIdent{Namespace: catalog.Namespace{"a"}, Name: strconv.Itoa(i)}, Type: catalog.TypeView, IsMaterialized: i == 0,
		}})
		life.reports = append(life.reports, catalog.Report{ID: int64(i), Body: []byte(`{"big":9007199254740993}`)})
	}
	var names []string
	token := ""
	for {
		var page struct {
			Dropped []struct {
				Type       string
				Identifier struct{ Name string }
			}
			Next *string `json:"next-page-token"`
		}
		w := s.get("/catalogd/v1/wh/dropped?pageSize=2&pageToken=" + url.QueryEscape(token))
		if err := json.Unmarshal(w.Body.Bytes(), &page); err != nil {
			t.Fatal(err)
		}
		for _, d := range page.Dropped {
			names = append(names, d.Type+" "+d.Identifier.Name)
		}
		if page.Next == nil {
			break
		}
		token = *page.Next
	}
	if diff := cmp.Diff([]string{"materialized-view 0", "view 1", "view 2", "view 3", "view 4"}, names); diff != "" {
		t.Error(diff)
	}
	if w := s.get("/catalogd/v1/wh/namespaces/a/tables/t/metrics-reports?pageToken=" + url.QueryEscape(token)); w.Code != http.StatusBadRequest {
		t.Errorf("the token of another listing = %d %s", w.Code, w.Body)
	}
	w := s.get("/catalogd/v1/wh/namespaces/a/tables/t/metrics-reports")
	if !strings.Contains(w.Body.String(), `"report":{"big":9007199254740993}`) {
		t.Errorf("reports: %s, want them as they came", w.Body)
	}
}

func TestManage_failures(t *testing.T) {
	t.Parallel()
	for kind, status := range map[catalog.Kind]int{
		catalog.KindNoSuchWarehouse: 404, catalog.KindNotFound: 404, catalog.KindConflict: 409, catalog.KindAlreadyExists: 409, catalog.KindUnavailable: 503,
	} {
		s, life := manageSurface(t)
		life.fail = catalog.Errorf(kind, "said so")
		for _, r := range []request{
			{method: "GET", path: "/catalogd/v1/warehouses"},
			{method: "DELETE", path: "/catalogd/v1/warehouses/n"},
			{method: "POST", path: "/catalogd/v1/warehouses", body: `{"name":"n"}`},
			{method: "POST", path: "/catalogd/v1/warehouses/n", body: `{}`},
			{method: "GET", path: "/catalogd/v1/warehouses/n"},
			{method: "GET", path: "/catalogd/v1/wh/dropped"},
			{method: "DELETE", path: "/catalogd/v1/wh/dropped/" + droppedUUID},
			{method: "POST", path: "/catalogd/v1/wh/undrop", body: `{"uuid":"` + droppedUUID + `"}`},
			{method: "GET", path: "/catalogd/v1/wh/namespaces/a/protection"},
			{method: "PUT", path: "/catalogd/v1/wh/namespaces/a/tables/t/protection", body: `{"protected":true}`},
			{method: "GET", path: "/catalogd/v1/wh/namespaces/a/tables/t/metrics-reports"},
		} {
			w := s.do(r)
			if w.Code != status || !strings.HasPrefix(errorOf(t, w).Error.Message, "said so") {
				t.Errorf("%s %s = %d %s, want %d", r.method, r.path, w.Code, w.Body, status)
			}
		}
	}
}
