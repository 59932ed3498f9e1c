package conformance_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// What different words of a request mean the same, and what looks the same and does not.

func TestProtocol_Spellings(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	for i, purge := range []string{"", "?purgeRequested=False", "?purgeRequested=FALSE", "?purgeRequested=", "?purgeRequested=false&other=1"} {
		name := fmt.Sprint("t", i)
		location := s.createTable(name).text(t, "metadata-location")
		s.status("DELETE", s.table(name)+purge, 204)
		s.status("HEAD", s.table(name), 404)
		s.must("POST", s.path()+"/register", object{"name": name, "metadata-location": location})
	}
	for _, kind := range []string{"/tables", "/views", "/functions"} {
		s.must("GET", s.path()+kind+"?pageToken=", nil)
		s.do("GET", s.path()+kind+"?pageToken=x", nil).refused(t, 400, "BadRequestException", "pageToken")
	}
	for _, query := range []string{"?pageToken=", "?parent=", "?pageToken=&pageSize=&parent=" + encodeNamespace(s.levels)} {
		s.must("GET", restBase+"/namespaces"+query, nil)
	}
	for _, delegation := range []string{"vended-credentials", "remote-signing", "vended-credentials,remote-signing", "of-the-future"} {
		s.must("GET", s.table("t0"), nil, "X-Iceberg-Access-Delegation", delegation)
		s.must("GET", s.table("t0")+"/credentials", nil, "X-Iceberg-Access-Delegation", delegation).at(t, "storage-credentials")
	}
	for _, authorization := range []string{"Bearer None", "Bearer ", "Basic bm9ib2R5Og==", "None"} {
		s.must("GET", s.table("t0"), nil, "Authorization", authorization)
	}
	all, unsaid := s.must("GET", s.table("t0")+"?snapshots=all", nil), s.must("GET", s.table("t0"), nil)
	if !bytes.Equal(all.body, unsaid.body) || all.header.Get("ETag") != unsaid.header.Get("ETag") {
		t.Errorf("snapshots=all and no word about it differ:\n%s\n%s", all.body, unsaid.body)
	}
}

// Engines report what they did to tables that nobody has created yet, or has dropped.
func TestProtocol_MetricsOfNobody(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	report := object{
		"report-type": "scan-report", "table-name": "x", "snapshot-id": 1, "filter": true, "schema-id": 0,
		"projected-field-ids": list{}, "projected-field-names": list{}, "metrics": object{}, "metadata": object{},
	}
	if r := s.do("POST", s.table("gone")+"/metrics", report); r.status != 204 || len(r.body) > 0 {
		t.Errorf("metrics of a table that is gone = %d %s", r.status, r.body)
	}
	s.do("POST", s.table("gone")+"/metrics", "").refused(t, 400, bad)
	s.do("POST", s.table("gone")+"/metrics", object{"x": 1}).refused(t, 400, bad, "report-type")
}

func TestProtocol_EmptyBodies(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.createTable("t")
	s.createView("v", "SELECT id FROM t")
	s.unchanged(s.table("t"), func() {
		for _, path := range []string{
			restBase + "/namespaces", s.path() + "/properties", s.path() + "/tables", s.path() + "/views", s.path() + "/register",
			s.path() + "/register-view", s.table("t"), s.view("v"), restBase + "/tables/rename", restBase + "/views/rename",
			restBase + "/transactions/commit", s.table("t") + "/plan", s.table("t") + "/tasks",
		} {
			for _, body := range []string{"", " ", "null", "[]", "7", `"text"`, "{", "\xff{}"} {
				if strings.HasSuffix(path, "/plan") && strings.TrimSpace(body) == "" {
					continue // nothing in particular is asked of the plan
				}
				r := s.do("POST", path, body)
				if r.status != 400 {
					t.Errorf("POST %s with %q = %d %s, want 400", path, body, r.status, r.body)
				}
			}
		}
	})
	// Bodies that no operation has are not looked at.
	s.must("GET", s.table("t"), "{")
	s.must("DELETE", s.view("v"), "{")
}

func TestProtocol_Head(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.createTable("t")
	s.createView("v", "SELECT id FROM t")
	for path, want := range map[string]int{
		s.path(): 204, s.table("t"): 204, s.view("v"): 204, s.path() + "x": 404, s.table("v"): 404, s.view("t"): 404,
		restBase + "/namespaces/nowhere/tables/t": 404, "/v1/nowhere/namespaces/x": 404,
	} {
		s.status("HEAD", path, want)
	}
}

// A client may speak HTTP/2 from the first byte, or offer to change to it as Java's does.
func TestProtocol_HTTP2(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	want := s.createTable("t").at(t, "metadata")
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: protocols}
	defer transport.CloseIdleConnections()
	for _, c := range []struct {
		client  *http.Client
		headers []string
		major   int
	}{
		{&http.Client{Transport: transport}, nil, 2},
		{http.DefaultClient, []string{"Connection", "Upgrade, HTTP2-Settings", "Upgrade", "h2c", "HTTP2-Settings", "AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA"}, 1},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.uri+s.table("t"), http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(c.headers); i += 2 {
			req.Header.Set(c.headers[i], c.headers[i+1])
		}
		res, err := c.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil || res.ProtoMajor != c.major || res.StatusCode != http.StatusOK {
			t.Errorf("GET over HTTP/%d = %s %s, %v", c.major, res.Proto, res.Status, err)
			continue
		}
		if got, err := walk(body, []any{"metadata"}); err != nil || string(got) != want {
			t.Errorf("over HTTP/%d: metadata %s, %v, want %s", c.major, got, err, want)
		}
	}
}

// What is too large is refused before it costs anything, whatever it would be unpacked.
func TestProtocol_Limits(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.createTable("t")
	s.unchanged(s.table("t"), func() {
		var bomb bytes.Buffer
		w := gzip.NewWriter(&bomb)
		_, _ = w.Write([]byte(`{"requirements":[],"updates":[{"action":"set-properties","updates":{"a":"`)) // a buffer takes everything
		zeros := bytes.Repeat([]byte("0"), 1<<20)
		for range 70 {
			_, _ = w.Write(zeros)
		}
		_, _ = w.Write([]byte(`"}}]}`))
		_ = w.Close()
		s.do("POST", s.table("t"), bomb.Bytes(), "Content-Encoding", "gzip").refused(t, 413, "RequestTooLargeException", "limit")

		deep := `{"requirements":[],"updates":[{"action":"set-properties","updates":{"a":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}}]}`
		s.client.do("POST", s.table("t"), deep).refused(t, 400, bad)

		long := strings.Repeat("x", 300)
		s.do("POST", s.path()+"/tables", object{"name": long, "schema": sampleSchema()}).refused(t, 400, bad, "255")
		s.do("POST", restBase+"/namespaces", object{"namespace": list{long}}).refused(t, 400, bad, "255")
		if r := s.do("GET", s.table(long), nil); r.status != 400 && r.status != 404 {
			t.Errorf("GET of a long name = %d %s", r.status, r.body)
		}
		if r := s.do("GET", restBase+"/namespaces?parent="+strings.Repeat("x", 1<<20), nil); r.status/100 != 4 {
			t.Errorf("a URL of 1 MiB = %d", r.status)
		}
		if r := s.do("GET", s.table("t"), nil, "X-Long", strings.Repeat("x", 1<<20)); r.status != 431 {
			t.Errorf("a header of 1 MiB = %d", r.status)
		}
	})
}

// Names that look alike, or that some encoding of names maps to one another, are different
// names, with contents of their own.
func TestNames_NeverCollide(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	top := s.levels[0]
	var spaces []space
	for _, levels := range [][]string{
		{top, "a"},
		{top, "A"},
		{top, "a", "b"},
		{top, "a.b"},
		{top, "a/b"},
		{top, "a%1Fb"},
		{top, "a%2Eb"},
		{top, "a%2Fb"},
		{top, "a%b"},
		{top, "a b"},
		{top, "a+b"},
		{top, "a%20b"},
		{top, " a"},
		{top, "a "},
		{top, "ä"},
		{top, "a\u0308"},
		{top, "ａ"},
		{top, `a\b`},
		{top, "a_b"},
		{top, "a-b"},
		{top, "."},
		{top, ".."},
		{top, "a\u200b"},
		{top, "''"},
		{top, `""`},
	} {
		in := space{s.client, levels}
		s.must("POST", restBase+"/namespaces", object{"namespace": levels, "properties": object{"me": fmt.Sprintf("%q", levels)}})
		spaces = append(spaces, in)
	}
	s.do("POST", restBase+"/namespaces", object{"namespace": list{top, "a\x1fb"}}).refused(t, 400, bad, "0x1F")
	s.do("POST", restBase+"/namespaces", object{"namespace": list{top, "a\x00b"}}).refused(t, 400, bad, "NUL")
	s.do("POST", restBase+"/namespaces", object{"namespace": list{top, ""}}).refused(t, 400, bad, "empty")
	seen := map[string]string{}
	for _, in := range spaces {
		// Each namespace has a table and views with the names of the others' last levels.
		mine := fmt.Sprintf("%q", in.levels)
		in.must("GET", in.path(), nil).want(t, string(marshal(t, mine)), "properties", "me")
		for _, name := range []string{"a.b", "a/b", "A", "a", "t"} {
			uuid := in.createTable(name).text(t, "metadata", "table-uuid")
			if other, ok := seen[uuid]; ok {
				t.Errorf("the tables of %s and %s are one", mine, other)
			}
			seen[uuid] = mine
			in.status("HEAD", in.view(name), 404)
		}
		in.lists("tables", "A", "a", "a.b", "a/b", "t")
	}
	for _, in := range spaces {
		for _, name := range []string{"a.b", "a/b", "A", "a", "t"} {
			uuid := in.must("GET", in.table(name), nil).text(t, "metadata", "table-uuid")
			if want := fmt.Sprintf("%q", in.levels); seen[uuid] != want {
				t.Errorf("%s has the table of %s", want, seen[uuid])
			}
		}
	}
	var children struct {
		Namespaces [][]string `json:"namespaces"`
	}
	r := s.must("GET", restBase+"/namespaces?parent="+encodeNamespace(s.levels), nil)
	if err := json.Unmarshal(r.body, &children); err != nil {
		t.Fatal(err)
	}
	for _, in := range spaces {
		listed := slices.ContainsFunc(children.Namespaces, func(levels []string) bool { return slices.Equal(levels, in.levels) })
		if direct := len(in.levels) == 2; listed != direct {
			t.Errorf("%q among the children of %q: %t, want %t", in.levels, top, listed, direct)
		}
	}
	if len(children.Namespaces) != len(spaces)-1 {
		t.Errorf("%d children are listed, want %d: %q", len(children.Namespaces), len(spaces)-1, children.Namespaces)
	}
}

func marshal(t *testing.T, v any) []byte {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
