package conformance_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

const (
	restBase = "/v1/main"
	ownBase  = "/catalogd/v1/main"
)

// object is a JSON object in a request.
type object = map[string]any

// list is a JSON array in a request.
type list = []any

// client talks HTTP to the shared server in the name of one test.
type client struct {
	t   *testing.T
	uri string
}

func newClient(t *testing.T) *client {
	t.Helper()
	return &client{t: t, uri: uriOf(t)}
}

// reply is an answer with its body as sent, except for gzip.
type reply struct {
	call   string
	status int
	header http.Header
	body   []byte
}

// do sends a request. A string or []byte body is sent as it is, anything else as JSON.
func (c *client) do(method, path string, body any, header ...string) reply {
	c.t.Helper()
	var raw []byte
	switch b := body.(type) {
	case nil:
	case string:
		raw = []byte(b)
	case []byte:
		raw = b
	default:
		var err error
		if raw, err = json.Marshal(b); err != nil {
			c.t.Fatal(err)
		}
	}
	req, err := http.NewRequestWithContext(c.t.Context(), method, c.uri+path, bytes.NewReader(raw))
	if err != nil {
		c.t.Fatal(err)
	}
	if raw != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Accept-Encoding", "identity")
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer res.Body.Close()
	out := reply{call: method + " " + path, status: res.StatusCode, header: res.Header}
	var from io.Reader = res.Body
	if res.Header.Get("Content-Encoding") == "gzip" {
		if from, err = gzip.NewReader(res.Body); err != nil {
			c.t.Fatalf("%s: %v", out.call, err)
		}
	}
	if out.body, err = io.ReadAll(from); err != nil {
		c.t.Fatalf("%s: %v", out.call, err)
	}
	return out
}

// must is do for a request that has to succeed.
func (c *client) must(method, path string, body any, header ...string) reply {
	c.t.Helper()
	r := c.do(method, path, body, header...)
	if r.status/100 != 2 {
		c.t.Fatalf("%s = %d %s", r.call, r.status, r.body)
	}
	return r
}

// refused checks that an answer is Iceberg's error document with this status and type,
// and that its message names what it is about.
func (r reply) refused(t *testing.T, status int, exception string, names ...string) {
	t.Helper()
	var doc struct {
		Error struct {
			Message string `json:"message"`
			Type    string `json:"type"`
			Code    int    `json:"code"`
		} `json:"error"`
	}
	if err := json.Unmarshal(r.body, &doc); err != nil {
		t.Errorf("%s = %d %q, want an error document", r.call, r.status, r.body)
		return
	}
	if r.status != status || doc.Error.Code != status || doc.Error.Type != exception {
		t.Errorf("%s = %d %s, want %d %s", r.call, r.status, r.body, status, exception)
	}
	if ct := r.header.Get("Content-Type"); !strings.HasPrefix(ct, "application/json") {
		t.Errorf("%s: Content-Type %q of an error", r.call, ct)
	}
	for _, name := range names {
		if !strings.Contains(doc.Error.Message, name) {
			t.Errorf("%s: message %q does not say %q", r.call, doc.Error.Message, name)
		}
	}
}

// at walks into a JSON document by member names and array indexes and returns the raw
// bytes there.
func (r reply) at(t *testing.T, path ...any) string {
	t.Helper()
	raw, err := walk(r.body, path)
	if err != nil {
		t.Fatalf("%s: %v in %.2000s", r.call, err, r.body)
	}
	return string(raw)
}

func walk(raw json.RawMessage, path []any) (json.RawMessage, error) {
	for i, step := range path {
		switch step := step.(type) {
		case string:
			var o map[string]json.RawMessage
			if err := json.Unmarshal(raw, &o); err != nil {
				return nil, fmt.Errorf("%v: %w", path[:i], err)
			}
			if _, ok := o[step]; !ok {
				return nil, fmt.Errorf("%v is missing", path[:i+1])
			}
			raw = o[step]
		case int:
			var a []json.RawMessage
			if err := json.Unmarshal(raw, &a); err != nil {
				return nil, fmt.Errorf("%v: %w", path[:i], err)
			}
			if step < 0 {
				step += len(a)
			}
			if step < 0 || step >= len(a) {
				return nil, fmt.Errorf("%v is missing", path[:i+1])
			}
			raw = a[step]
		}
	}
	return raw, nil
}

// text is at for a string.
func (r reply) text(t *testing.T, path ...any) string {
	t.Helper()
	var s string
	if err := json.Unmarshal([]byte(r.at(t, path...)), &s); err != nil {
		t.Fatalf("%s: %v: %v", r.call, path, err)
	}
	return s
}

// want checks the raw JSON at a path.
func (r reply) want(t *testing.T, want string, path ...any) {
	t.Helper()
	if got := r.at(t, path...); got != want {
		t.Errorf("%s: %v = %s, want %s", r.call, path, got, want)
	}
}

// space is a namespace of its own for a test.
type space struct {
	*client
	levels []string
}

// newSpace creates a namespace that is named after the test.
func newSpace(t *testing.T) space {
	t.Helper()
	c := newClient(t)
	s := space{c, []string{strings.NewReplacer("/", "_", " ", "_").Replace(t.Name())}}
	c.must("POST", restBase+"/namespaces", object{"namespace": s.levels})
	return s
}

// encodeNamespace is a namespace in a URL.
func encodeNamespace(levels []string) string {
	out := make([]string, len(levels))
	for i, l := range levels {
		out[i] = url.PathEscape(l)
	}
	return strings.Join(out, "%1F")
}

func (s space) path() string { return restBase + "/namespaces/" + encodeNamespace(s.levels) }

func (s space) table(name string) string { return s.path() + "/tables/" + url.PathEscape(name) }

func (s space) view(name string) string { return s.path() + "/views/" + url.PathEscape(name) }

// own is a materialized view in catalogd's own API.
func (s space) own(view, what string) string {
	return ownBase + "/namespaces/" + encodeNamespace(s.levels) + "/views/" + url.PathEscape(view) + what
}

func (s space) ident(name string) object { return object{"namespace": s.levels, "name": name} }

// full is a name as messages have it.
func (s space) full(name string) string { return strings.Join(s.levels, ".") + "." + name }

// createTable creates a table with a small schema.
func (s space) createTable(name string) reply {
	s.t.Helper()
	return s.must("POST", s.path()+"/tables", object{"name": name, "schema": sampleSchema()})
}

// sampleSchema is (id long, day date, note string).
func sampleSchema() object {
	return object{"type": "struct", "schema-id": 0, "fields": list{
		object{"id": 1, "name": "id", "required": false, "type": "long"},
		object{"id": 2, "name": "day", "required": false, "type": "date"},
		object{"id": 3, "name": "note", "required": false, "type": "string"},
	}}
}

// commit sends updates and requirements to a table or view.
func (s space) commit(path string, updates list, requirements ...any) reply {
	s.t.Helper()
	if requirements == nil {
		requirements = list{}
	}
	return s.do("POST", path, object{"requirements": requirements, "updates": updates})
}

// unchanged runs act and checks that an object's whole answer is the same afterwards.
func (s space) unchanged(path string, act func()) {
	s.t.Helper()
	before := s.must("GET", path, nil)
	act()
	if after := s.must("GET", path, nil); !bytes.Equal(before.body, after.body) {
		s.t.Errorf("GET %s changed:\n%s\n%s", path, before.body, after.body)
	}
}
