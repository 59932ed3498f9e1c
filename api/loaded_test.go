package api_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/catalog"
)

// TestLoad compares gzip with identity, byte for byte, and looks for the stored document
// in both.
func TestLoad(t *testing.T) {
	t.Parallel()
	s := newSurface(t)
	const document = `{"format-version":2, "brand-new":9007199254740993,  "html":"<&>", "日":1.10}`
	s.fake.put(catalog.TypeTable, "ns", "t", document, `{"refs":"only"}`)
	s.fake.put(catalog.TypeView, "ns", "v", document, "")
	for path, want := range map[string]string{
		tablePath:                        document,
		tablePath + "?snapshots=all":     document,
		tablePath + "?snapshots=":        document,
		tablePath + "?snapshots=refs":    `{"refs":"only"}`,
		"/v1/wh/namespaces/ns/views/v":   document,
		tablePath + "?referenced-by=a,b": document,
	} {
		plain := s.get(path)
		if plain.Code != http.StatusOK || plain.Header().Get("Content-Encoding") != "" {
			t.Fatalf("%s: %d %v", path, plain.Code, plain.Header())
		}
		if !strings.Contains(plain.Body.String(), `"metadata":`+want+`,"config":{}}`) || !json.Valid(plain.Body.Bytes()) {
			t.Errorf("%s does not hold the stored bytes: %s", path, plain.Body)
		}
		packed := s.do(request{method: http.MethodGet, path: path, header: http.Header{"Accept-Encoding": {"gzip, x-gzip, deflate"}}})
		if packed.Header().Get("Content-Encoding") != "gzip" {
			t.Fatalf("%s: no gzip answer: %v", path, packed.Header())
		}
		z, err := gzip.NewReader(packed.Body)
		if err != nil {
			t.Fatal(err)
		}
		unpacked, err := io.ReadAll(z)
		if err != nil || !bytes.Equal(unpacked, plain.Body.Bytes()) {
			t.Errorf("%s: gzip and plain differ (%v)", path, err)
		}
		if a, b := plain.Header().Get("ETag"), packed.Header().Get("ETag"); a != b || len(a) < 10 || a[0] != '"' || a[len(a)-1] != '"' {
			t.Errorf("%s: ETags %s and %s", path, a, b)
		}
		if plain.Header().Get("Vary") != "Accept-Encoding" {
			t.Errorf("%s: Vary is %q", path, plain.Header().Get("Vary"))
		}
	}
}

func TestLoad_NotModified(t *testing.T) {
	t.Parallel()
	s := newSurface(t)
	s.fake.put(catalog.TypeTable, "ns", "t", `{"a":1}`, `{"r":1}`)
	s.fake.put(catalog.TypeView, "ns", "v", `{"a":1}`, "")
	all, refs := s.get(tablePath).Header().Get("ETag"), s.get(tablePath+"?snapshots=refs").Header().Get("ETag")
	if all == refs {
		t.Fatal("all and refs have the same ETag")
	}
	view := s.get("/v1/wh/namespaces/ns/views/v").Header().Get("ETag")
	for _, c := range []struct {
		path  string
		match []string
		want  int
	}{
		{tablePath, []string{all}, 304},
		{tablePath + "?snapshots=all", []string{all}, 304},
		{tablePath, []string{"W/" + all}, 304},
		{tablePath, []string{`"x"`, all}, 304},
		{tablePath, []string{"*"}, 304},
		{tablePath, []string{refs}, 200},
		{tablePath + "?snapshots=refs", []string{refs}, 304},
		{tablePath + "?snapshots=refs", []string{all}, 200},
		{tablePath, []string{`"x"`}, 200},
		{"/v1/wh/namespaces/ns/views/v", []string{view}, 304},
		{"/v1/wh/namespaces/ns/views/v", []string{`"x"`}, 200},
		{"/v1/wh/namespaces/ns/tables/gone", []string{"*"}, 404},
	} {
		for _, encoding := range []string{"gzip", "identity"} {
			w := s.do(request{method: http.MethodGet, path: c.path, header: http.Header{"If-None-Match": c.match, "Accept-Encoding": {encoding}}})
			if w.Code != c.want {
				t.Errorf("%s with %v over %s: %d, want %d", c.path, c.match, encoding, w.Code, c.want)
			}
			if w.Code == 304 && (w.Body.Len() > 0 || w.Header().Get("ETag") == "") {
				t.Errorf("%s: 304 with %d bytes and ETag %q", c.path, w.Body.Len(), w.Header().Get("ETag"))
			}
		}
	}
	before := s.fake.objects[key(catalog.TypeTable, catalog.TableIdent{Namespace: catalog.Namespace{"ns"}, Name: "t"})]
	before.location += "2"
	if w := s.do(request{method: http.MethodGet, path: tablePath, header: http.Header{"If-None-Match": {all}}}); w.Code != http.StatusOK {
		t.Errorf("a new metadata location answers %d", w.Code)
	}
}
