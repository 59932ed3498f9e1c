package api_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/api"
	"github.com/catalogd/catalogd/catalog"
)

// FuzzPath names a table in URLs the way clients do and looks what reaches the catalog.
func FuzzPath(f *testing.F) {
	f.Add("ns", "t")
	f.Add("a\x1fb.c", "x/y")
	f.Add("50%", "%2F")
	f.Add("a b+c", "t+u é😀")
	f.Add("..", ".")
	f.Add("a%1Fb", "?#;=&")
	f.Add("a\\b", "\t\r\n")
	fake := newFake()
	surface := newHandler(f, fake)
	f.Fuzz(func(t *testing.T, namespace, name string) {
		id := catalog.TableIdent{Namespace: strings.Split(namespace, "\x1f"), Name: name}
		if catalog.CheckIdent(id) != nil {
			return
		}
		want := fmt.Sprintf("load TABLE %q %q", []string(id.Namespace), id.Name)
		java := http.Header{"X-Client-Version": {"Apache Iceberg 1.12.0 (commit x)"}}
		for _, c := range []struct {
			client string
			escape func(string) string
			header http.Header
		}{
			{"Go", url.PathEscape, nil},
			{"Java", url.QueryEscape, java},
			{"every byte", escapeAll, nil},
			{"every byte, Java", escapeAll, java},
		} {
			fake.calls = nil
			if code := load(t, surface, "/v1/wh/namespaces/"+c.escape(namespace)+"/tables/"+c.escape(name), c.header); code != http.StatusNotFound {
				t.Errorf("%s: %d", c.client, code)
			}
			if got := fake.lastCall(); got != want {
				t.Errorf("%s: reached the catalog as %s, want %s", c.client, got, want)
			}
		}
	})
}

func escapeAll(s string) string {
	var b strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&b, "%%%02X", s[i])
	}
	return b.String()
}

func newHandler(f *testing.F, fake *fakeCatalog) http.Handler {
	f.Helper()
	surface, err := api.New(api.Config{Catalog: fake})
	if err != nil {
		f.Fatal(err)
	}
	return surface
}

func load(t *testing.T, surface http.Handler, path string, header http.Header) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://host"+path, http.NoBody)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	maps.Copy(req.Header, header)
	w := httptest.NewRecorder()
	surface.ServeHTTP(w, req)
	return w.Code
}

// FuzzRawPath sends any path that a request can have. It is answered, and never with a
// fault of the server.
func FuzzRawPath(f *testing.F) {
	f.Add("/namespaces/a%1Fb/tables/t", "")
	f.Add("/namespaces/a%zz/tables/%", "")
	f.Add("/namespaces/%FF/tables/%00", "")
	f.Add("/namespaces//tables/", "parent=%1F")
	f.Add("/namespaces/%1F/tables/t", "snapshots=x&pageToken=a;b")
	f.Add("/../../v1/wh/tables", "%")
	f.Add("//%2F/%2f", "pageSize=-1&pageToken=")
	fake := newFake()
	surface := newHandler(f, fake)
	f.Fuzz(func(t *testing.T, path, query string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://host/", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if req.URL, err = url.ParseRequestURI("/v1/wh" + path); err != nil {
			return // net/http answers these itself
		}
		req.URL.RawQuery = query
		fake.calls = nil
		w := httptest.NewRecorder()
		surface.ServeHTTP(w, req)
		if w.Code >= http.StatusInternalServerError {
			t.Errorf("%s?%s: %d %s", path, query, w.Code, w.Body)
		}
	})
}
