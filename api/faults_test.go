package api_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/api"
	"github.com/catalogd/catalogd/catalog"
)

// TestFaults: bad input is answered with a status and words that name the thing, and
// never reaches the catalog.
func TestFaults(t *testing.T) {
	t.Parallel()
	const (
		tables = "/v1/wh/namespaces/ns/tables"
		views  = "/v1/wh/namespaces/ns/views"
		spaces = "/v1/wh/namespaces"
		props  = "/v1/wh/namespaces/ns/properties"
		rename = "/v1/wh/tables/rename"
		report = "/v1/wh/namespaces/ns/tables/t/metrics"
	)
	long := strings.Repeat("n", 256)
	for _, c := range []struct {
		name, method, path, body string
		status                   int
		words                    []string
	}{
		{"empty body", "POST", spaces, " ", 400, []string{"body is empty"}},
		{"no body", "POST", spaces, "", 400, []string{"body is empty"}},
		{"malformed", "POST", spaces, `{"namespace":["a"],}`, 400, []string{"Malformed JSON", "offset 20"}},
		{"cut off", "POST", spaces, `{"namespace":["a"`, 400, []string{"ends too early", "offset 17"}},
		{"trailing", "POST", spaces, `{"namespace":["a"]} x`, 400, []string{"Malformed JSON", "offset 21"}},
		{"array", "POST", spaces, `[]`, 400, []string{"must be a JSON object", "array"}},
		{"null", "POST", spaces, `null`, 400, []string{"must be a JSON object"}},
		{"string", "POST", tables, `"x"`, 400, []string{"must be a JSON object", "string"}},
		{"not UTF-8", "POST", spaces, "{\"namespace\":[\"a\xff\"]}", 400, []string{"UTF-8", "offset 16"}},
		{"deep", "POST", tables, `{"name":"t","schema":{"a":` + strings.Repeat("[", 501) + strings.Repeat("]", 501) + `}}`, 400, []string{"nested deeper"}},
		{"namespace of the wrong type", "POST", spaces, `{"namespace":"a"}`, 400, []string{"namespace", "an array is expected, not a string"}},
		{"level of the wrong type", "POST", spaces, `{"namespace":[1]}`, 400, []string{"namespace", "a string is expected, not a number"}},
		{"namespace missing", "POST", spaces, `{"properties":{}}`, 400, []string{"Missing member namespace"}},
		{"namespace empty", "POST", spaces, `{"namespace":[]}`, 400, []string{"Missing member namespace"}},
		{"level empty", "POST", spaces, `{"namespace":["a",""]}`, 400, []string{"level 2 is empty"}},
		{"level null", "POST", spaces, `{"namespace":[null]}`, 400, []string{"level 1 is empty"}},
		{"separator in a level", "POST", spaces, `{"namespace":["a\u001fb"]}`, 400, []string{"separator", "0x1F"}},
		{"NUL in a level", "POST", spaces, `{"namespace":["a\u0000"]}`, 400, []string{"NUL"}},
		{"namespace too long", "POST", spaces, `{"namespace":["` + strings.Repeat("n", 200) + `","` + strings.Repeat("m", 55) + `"]}`, 400, []string{"256 characters", "255"}},
		{"property of the wrong type", "POST", spaces, `{"namespace":["a"],"properties":{"k":1}}`, 400, []string{"properties", "a string is expected, not a number"}},
		{"property null", "POST", spaces, `{"namespace":["a"],"properties":{"k":null}}`, 400, []string{"properties", `"k"`, "null"}},
		{"property with NUL", "POST", spaces, `{"namespace":["a"],"properties":{"k":"\u0000"}}`, 400, []string{"properties", `"k"`, "NUL"}},
		{"removals of the wrong type", "POST", props, `{"removals":{}}`, 400, []string{"removals", "an array is expected, not an object"}},
		{"updates of the wrong type", "POST", props, `{"updates":[]}`, 400, []string{"updates", "an object is expected, not an array"}},

		{"table name missing", "POST", tables, `{"schema":{}}`, 400, []string{"Missing member name"}},
		{"table name too long", "POST", tables, `{"name":"` + long + `","schema":{}}`, 400, []string{"longer than 255"}},
		{"table name with NUL", "POST", tables, `{"name":"a\u0000","schema":{}}`, 400, []string{"NUL"}},
		{"table name of the wrong type", "POST", tables, `{"name":5,"schema":{}}`, 400, []string{"name", "a string is expected, not a number"}},
		{"schema missing", "POST", tables, `{"name":"t"}`, 400, []string{"Missing member schema"}},
		{"schema null", "POST", tables, `{"name":"t","schema":null}`, 400, []string{"Missing member schema"}},
		{"schema of the wrong type", "POST", tables, `{"name":"t","schema":[]}`, 400, []string{"schema", "an object is expected"}},
		{"spec of the wrong type", "POST", tables, `{"name":"t","schema":{},"partition-spec":7}`, 400, []string{"partition-spec", "an object is expected"}},
		{"stage-create of the wrong type", "POST", tables, `{"name":"t","schema":{},"stage-create":"yes"}`, 400, []string{"stage-create", "true or false"}},
		{"register without location", "POST", "/v1/wh/namespaces/ns/register", `{"name":"t"}`, 400, []string{"Missing member metadata-location"}},
		{"register without name", "POST", "/v1/wh/namespaces/ns/register", `{"metadata-location":"x"}`, 400, []string{"Missing member name"}},

		{"commit without requirements", "POST", tables + "/t", `{"updates":[]}`, 400, []string{"Missing member requirements"}},
		{"commit without updates", "POST", tables + "/t", `{"requirements":[]}`, 400, []string{"Missing member updates"}},
		{"commit with updates of the wrong type", "POST", tables + "/t", `{"requirements":[],"updates":{}}`, 400, []string{"updates", "an array is expected, not an object"}},
		{"commit with a null update", "POST", tables + "/t", `{"requirements":[],"updates":[{},null]}`, 400, []string{"updates[1]"}},
		{"commit with a number as requirement", "POST", tables + "/t", `{"requirements":[1],"updates":[]}`, 400, []string{"requirements[0]", "an object is expected"}},
		{"commit to another table", "POST", tables + "/t", `{"identifier":{"namespace":["ns"],"name":"u"},"requirements":[],"updates":[]}`, 400, []string{"ns.u", "ns.t"}},
		{"replace without updates", "POST", views + "/v", `{}`, 400, []string{"Missing member updates"}},

		{"view without schema", "POST", views, `{"name":"v","view-version":{}}`, 400, []string{"Missing member schema"}},
		{"view without version", "POST", views, `{"name":"v","schema":{}}`, 400, []string{"Missing member view-version"}},
		{"view name of the wrong type", "POST", views, `{"name":["v"],"schema":{},"view-version":{}}`, 400, []string{"name", "a string is expected, not an array"}},
		{"view property of the wrong type", "POST", views, `{"name":"v","schema":{},"view-version":{},"properties":{"a":{}}}`, 400, []string{"properties", "a string is expected, not an object"}},

		{"rename without source", "POST", rename, `{"destination":{"namespace":["a"],"name":"b"}}`, 400, []string{"source.namespace"}},
		{"rename without destination name", "POST", rename, `{"source":{"namespace":["a"],"name":"b"},"destination":{"namespace":["a"]}}`, 400, []string{"destination.name"}},
		{"rename to something too long", "POST", rename, `{"source":{"namespace":["a"],"name":"b"},"destination":{"namespace":["a"],"name":"` + long + `"}}`, 400, []string{"255"}},
		{"report is no object", "POST", report, `[1]`, 400, []string{"must be a JSON object"}},
		{"report is no JSON", "POST", report, `{`, 400, []string{"ends too early"}},

		{"snapshots", "GET", tables + "/t?snapshots=zzz", "", 400, []string{"snapshots", "zzz"}},
		{"path name too long", "GET", tables + "/" + long, "", 400, []string{"255"}},
		{"path level empty", "GET", "/v1/wh/namespaces/a%1F/tables/t", "", 400, []string{"level 2 is empty"}},
		{"path namespace empty", "GET", "/v1/wh/namespaces//tables/t", "", 400, []string{"amespace", "empty"}},
		{"path not UTF-8", "GET", "/v1/wh/namespaces/%FF/tables/t", "", 400, []string{"UTF-8"}},
		{"path with NUL", "GET", "/v1/wh/namespaces/a%00/tables/t", "", 400, []string{"NUL"}},
		{"parent level empty", "GET", spaces + "?parent=%1Fa", "", 400, []string{"level 1 is empty"}},
		{"parent twice", "GET", spaces + "?parent=a&parent=b", "", 400, []string{"parent"}},
		{"broken escape", "GET", spaces + "?parent=%zz", "", 400, []string{"query"}},
		{"page size 0", "GET", spaces + "?pageSize=0", "", 400, []string{"pageSize", `"0"`}},
		{"page size negative", "GET", tables + "?pageSize=-1", "", 400, []string{"pageSize"}},
		{"page size no number", "GET", views + "?pageSize=ten", "", 400, []string{"pageSize", "ten"}},
		{"page token garbage", "GET", spaces + "?pageToken=garbage", "", 400, []string{"pageToken"}},
		{"page token of another shape", "GET", tables + "?pageToken=!!", "", 400, []string{"pageToken"}},
		{"no such route", "GET", "/v1/wh/nothing", "", 404, []string{"endpoint"}},
		{"not ours", "GET", "/favicon.ico", "", 404, []string{"endpoint"}},
		{"no such method", "PUT", tables + "/t", "{}", 405, []string{"method"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newSurface(t)
			w := s.do(request{method: c.method, path: c.path, body: c.body})
			e := errorOf(t, w)
			if w.Code != c.status || e.Error.Type == "" {
				t.Errorf("%d %+v, want %d", w.Code, e.Error, c.status)
			}
			for _, word := range c.words {
				if !strings.Contains(e.Error.Message, word) {
					t.Errorf("message %q does not say %q", e.Error.Message, word)
				}
			}
			if calls := s.fake.calls; len(calls) > 0 {
				t.Errorf("the catalog was called: %q", calls)
			}
		})
	}
}

// TestErrorDocuments: every kind, on a route that commits and on one that does not.
func TestErrorDocuments(t *testing.T) {
	t.Parallel()
	const secret = "password=hunter2"
	for _, c := range []struct {
		err                   error
		status, commit        int
		exception, onCommit   string
		retry, private, fault bool
	}{
		{err: catalog.Errorf(catalog.KindInvalid, "words"), status: 400, commit: 400, exception: "BadRequestException"},
		{err: catalog.Errorf(catalog.KindForbidden, "words"), status: 403, commit: 403, exception: "ForbiddenException"},
		{err: catalog.Errorf(catalog.KindNoSuchTable, "words"), status: 404, commit: 404, exception: "NoSuchTableException"},
		{err: catalog.Errorf(catalog.KindNotFound, "words"), status: 404, commit: 404, exception: "NotFoundException"},
		{err: catalog.Errorf(catalog.KindAlreadyExists, "words"), status: 409, commit: 409, exception: "AlreadyExistsException"},
		{err: catalog.Errorf(catalog.KindNamespaceNotEmpty, "words"), status: 409, commit: 409, exception: "NamespaceNotEmptyException"},
		{err: catalog.Errorf(catalog.KindUnprocessable, "words"), status: 422, commit: 422, exception: "UnprocessableEntityException"},
		{err: catalog.Errorf(catalog.KindCommitFailed, "words"), status: 409, commit: 409, exception: "CommitFailedException"},
		{err: catalog.Errorf(catalog.KindConflict, "words"), status: 409, commit: 409, exception: "ConflictException"},
		{err: catalog.Errorf(catalog.KindTooLarge, "words"), status: 413, commit: 413, exception: "RequestTooLargeException"},
		{err: catalog.Errorf(catalog.KindUnavailable, "words"), status: 503, commit: 409, exception: "ServiceUnavailableException", onCommit: "CommitFailedException", retry: true, fault: true},
		{err: catalog.Errorf(catalog.KindCommitStateUnknown, "words"), status: 500, commit: 500, exception: "CommitStateUnknownException", fault: true},
		{err: catalog.Errorf(catalog.KindInternal, "words").Because(errors.New(secret)), status: 500, commit: 409, exception: "InternalServerError", onCommit: "CommitFailedException", fault: true},
		{err: fmt.Errorf("pgx: %s", secret), status: 500, commit: 500, exception: "InternalServerError", onCommit: "CommitStateUnknownException", private: true, fault: true},
		{err: fmt.Errorf("wrapped: %w", catalog.Errorf(catalog.KindNoSuchView, "words")), status: 404, commit: 404, exception: "NoSuchViewException"},
	} {
		for _, route := range []struct {
			request
			status    int
			exception string
		}{
			{request{method: "GET", path: tablePath}, c.status, c.exception},
			{request{method: "POST", path: "/v1/wh/namespaces/ns/tables", body: `{"name":"t","schema":{}}`}, c.status, c.exception},
			{request{method: "POST", path: tablePath, body: `{"requirements":[],"updates":[]}`}, c.commit, c.onCommit},
			{request{method: "POST", path: "/v1/wh/namespaces/ns/views/v", body: `{"updates":[]}`}, c.commit, c.onCommit},
		} {
			s := newSurface(t)
			s.fake.fail = c.err
			w := s.do(route.request)
			e := errorOf(t, w).Error
			if route.exception == "" {
				route.exception = c.exception
			}
			if w.Code != route.status || e.Type != route.exception {
				t.Errorf("%v on %s: %d %s, want %d %s", c.err, route.path, w.Code, e.Type, route.status, route.exception)
			}
			if strings.Contains(w.Body.String(), secret) || c.private == strings.Contains(e.Message, "words") {
				t.Errorf("%v on %s says %q", c.err, route.path, e.Message)
			}
			if (w.Header().Get("Retry-After") != "") != c.retry {
				t.Errorf("%v: Retry-After %q", c.err, w.Header().Get("Retry-After"))
			}
			_, id, found := strings.Cut(e.Message, "error id ")
			if id = strings.TrimSuffix(id, ")"); found != c.fault || (found && strings.Count(s.log.String(), id) != 1) {
				t.Errorf("%v: message %q and log %s", c.err, e.Message, s.log)
			}
		}
	}
}

func TestPanic(t *testing.T) {
	t.Parallel()
	s := newSurface(t)
	s.fake.put(catalog.TypeTable, "ns", "t", `{}`, "")
	s.fake.panics = "kaboom"
	w := s.get(tablePath)
	e := errorOf(t, w).Error
	if w.Code != 500 || e.Type != "InternalServerError" || strings.Contains(e.Message, "kaboom") {
		t.Errorf("%d %+v", w.Code, e)
	}
	if n := strings.Count(s.log.String(), "kaboom"); n != 1 || !strings.Contains(s.log.String(), "fake_test.go") {
		t.Errorf("the panic is logged %d times, or without its stack: %s", n, s.log)
	}
	w = s.post(tablePath, `{"requirements":[],"updates":[]}`)
	if e := errorOf(t, w).Error; w.Code != 500 || e.Type != "CommitStateUnknownException" {
		t.Errorf("a panic in a commit: %d %+v", w.Code, e)
	}
	s.fake.panics = nil
	if w := s.get(tablePath); w.Code != 200 {
		t.Errorf("after the panic: %d", w.Code)
	}
}

func TestClientGone(t *testing.T) {
	t.Parallel()
	s := newSurface(t)
	s.fake.fail = catalog.Errorf(catalog.KindUnavailable, "words").Because(context.Canceled)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w := httptest.NewRecorder()
	s.echo.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, tablePath, nil))
	if log := s.log.String(); strings.Contains(log, "request failed") || !strings.Contains(log, `"status":499`) {
		t.Errorf("log: %s", log)
	}
}

// TestDamagedDocument: half an answer must not look like a whole one, whatever the
// protocol: the handler has to give up the connection or the stream.
func TestDamagedDocument(t *testing.T) {
	t.Parallel()
	s := newSurface(t)
	s.fake.put(catalog.TypeTable, "ns", "t", `{"a":"`+strings.Repeat("x", 100_000)+`"}`, "")
	for _, o := range s.fake.objects {
		o.document.All.CRC32 ^= 1
	}
	func() {
		defer func() {
			if err, _ := recover().(error); !errors.Is(err, http.ErrAbortHandler) {
				t.Errorf("the handler ended with %v, not with ErrAbortHandler", err)
			}
		}()
		s.get(tablePath)
	}()
	server := httptest.NewServer(s.echo)
	defer server.Close()
	res, err := get(t, server.URL+tablePath)
	if err != nil {
		return // broken off before the headers: fine as well
	}
	defer res.Body.Close()
	if _, err := new(bytes.Buffer).ReadFrom(res.Body); err == nil {
		t.Error("a damaged document arrived as a complete answer")
	}
}

func get(t *testing.T, url string) (*http.Response, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept-Encoding", "identity")
	return http.DefaultClient.Do(req)
}

func TestBodies(t *testing.T) {
	t.Parallel()
	const limit = 1000
	body := []byte(`{"namespace":["zipped"]}`)
	zip := func(b []byte) []byte {
		var out bytes.Buffer
		z := gzip.NewWriter(&out)
		_, _ = z.Write(b)
		_ = z.Close()
		return out.Bytes()
	}
	big := []byte(`{"namespace":["a"],"properties":{"k":"` + strings.Repeat("x", limit) + `"}}`)
	noise := make([]byte, limit+1)
	state := uint32(1)
	for i := range noise {
		state = state*1664525 + 1013904223
		noise[i] = byte(state >> 24)
	}
	for _, c := range []struct {
		name           string
		body           []byte
		encoding, mime string
		chunked        bool
		status         int
		words          string
	}{
		{"gzip", zip(body), "gzip", "application/json", false, 200, ""},
		{"x-gzip chunked", zip(body), "X-GZip", "application/json; charset=utf-8", true, 200, ""},
		{"identity", body, "identity", "", false, 200, ""},
		{"vendor JSON", body, "", "application/vnd.x+json", false, 200, ""},
		{"bomb", zip(bytes.Repeat([]byte(" "), limit*100)), "gzip", "", false, 413, "1000 bytes"},
		{"big", big, "", "", false, 413, "1000 bytes"},
		{"big chunked", big, "", "", true, 413, "1000 bytes"},
		{"big gzip", zip(noise), "gzip", "", true, 413, "1000 bytes"},
		{"not gzip", body, "gzip", "", false, 400, "gzip"},
		{"cut gzip", zip(body)[:20], "gzip", "", false, 400, "end"},
		{"empty gzip", nil, "gzip", "", false, 400, "empty"},
		{"brotli", body, "br", "", false, 415, `"br"`},
		{"form", body, "", "application/x-www-form-urlencoded", false, 415, "application/json"},
		{"text", body, "", "text/plain", false, 415, "application/json"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newSurface(t, func(cfg *api.Config) { cfg.MaxBodyBytes = limit })
			req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/wh/namespaces", bytes.NewReader(c.body))
			if c.chunked {
				req.ContentLength = -1
			}
			if c.encoding != "" {
				req.Header.Set("Content-Encoding", c.encoding)
			}
			if c.mime != "" {
				req.Header.Set("Content-Type", c.mime)
			}
			w := httptest.NewRecorder()
			s.echo.ServeHTTP(w, req)
			if w.Code != c.status {
				t.Fatalf("%d %s, want %d", w.Code, w.Body, c.status)
			}
			if c.status != 200 && !strings.Contains(errorOf(t, w).Error.Message, c.words) {
				t.Errorf("message %s does not say %q", w.Body, c.words)
			}
		})
	}
}

func TestCrossOrigin(t *testing.T) {
	t.Parallel()
	s := newSurface(t)
	for _, header := range []http.Header{
		{"Sec-Fetch-Site": {"cross-site"}}, {"Origin": {"https://evil.example"}},
	} {
		w := s.do(request{method: "POST", path: "/v1/wh/namespaces", body: `{"namespace":["x"]}`, header: header})
		if w.Code != http.StatusForbidden || len(s.fake.calls) > 0 {
			t.Errorf("%v: %d", header, w.Code)
		}
	}
	w := s.do(request{method: "POST", path: "/v1/wh/namespaces", body: `{"namespace":["x"]}`, header: http.Header{"Origin": {"http://example.com"}, "Sec-Fetch-Site": {"same-origin"}}})
	if w.Code != http.StatusOK {
		t.Errorf("same origin: %d", w.Code)
	}
}
