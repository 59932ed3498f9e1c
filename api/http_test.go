package api_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/catalogd/catalogd/api"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// logBuffer collects log lines of several goroutines.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// surface is the API over a fake catalog.
type surface struct {
	t    *testing.T
	fake *fakeCatalog
	log  *logBuffer
	echo *echo.Echo
}

func newSurface(t *testing.T, change ...func(*api.Config)) *surface {
	t.Helper()
	s := &surface{t: t, fake: newFake(), log: &logBuffer{}}
	c := api.Config{Catalog: s.fake, Planner: fakePlanner{s.fake}, Log: slog.New(slog.NewJSONHandler(s.log, nil))}
	for _, f := range change {
		f(&c)
	}
	var err error
	if s.echo, err = api.New(c); err != nil {
		t.Fatal(err)
	}
	return s
}

// request is one exchange; a body that is not empty is sent as JSON.
type request struct {
	method, path, body string
	header             http.Header
}

func (s *surface) do(r request) *httptest.ResponseRecorder {
	s.t.Helper()
	var body io.Reader
	if r.body != "" {
		body = strings.NewReader(r.body)
	}
	req := httptest.NewRequestWithContext(s.t.Context(), r.method, r.path, body)
	if r.body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	maps.Copy(req.Header, r.header)
	w := httptest.NewRecorder()
	s.echo.ServeHTTP(w, req)
	return w
}

func (s *surface) get(path string) *httptest.ResponseRecorder {
	s.t.Helper()
	return s.do(request{method: http.MethodGet, path: path})
}

func (s *surface) post(path, body string) *httptest.ResponseRecorder {
	s.t.Helper()
	return s.do(request{method: http.MethodPost, path: path, body: body})
}

type wireError struct {
	Error struct {
		Message string
		Type    string
		Code    int
	}
}

func errorOf(t *testing.T, w *httptest.ResponseRecorder) wireError {
	t.Helper()
	var e wireError
	if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil {
		t.Fatalf("status %d with a body that is no error document: %q", w.Code, w.Body)
	}
	if e.Error.Code != w.Code {
		t.Errorf("status %d, but the document says %d", w.Code, e.Error.Code)
	}
	return e
}

// golden compares an answer with testdata/name, indented for review.
func golden(t *testing.T, name string, body []byte) {
	t.Helper()
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, bytes.TrimSpace(body), "", "  "); err != nil {
		t.Fatalf("%s: %v in %q", name, err, body)
	}
	pretty.WriteByte('\n')
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, pretty.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(pretty.Bytes(), want) {
		t.Errorf("%s:\n%s\nwant\n%s", name, pretty.Bytes(), want)
	}
}
