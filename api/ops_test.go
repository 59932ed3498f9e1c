package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/catalogd/catalogd/api"
	"github.com/catalogd/catalogd/catalog"
)

func TestNew_Refuses(t *testing.T) {
	t.Parallel()
	if _, err := api.New(api.Config{}); err == nil {
		t.Error("New without a catalog")
	}
	registry := prometheus.NewRegistry()
	if _, err := api.New(api.Config{Catalog: newFake(), Metrics: registry}); err != nil {
		t.Fatal(err)
	}
	if _, err := api.New(api.Config{Catalog: newFake(), Metrics: registry}); err == nil {
		t.Error("two surfaces on one registry: their counts would mix")
	}
}

func TestHealth(t *testing.T) {
	t.Parallel()
	var problems []api.Problem
	s := newSurface(t, func(c *api.Config) {
		c.Ready = func(context.Context) []api.Problem { return problems }
	})
	if w := s.get("/livez"); w.Code != 200 {
		t.Errorf("livez: %d", w.Code)
	}
	w := s.get("/readyz")
	if w.Code != 200 {
		t.Errorf("readyz: %d", w.Code)
	}
	golden(t, "ready.golden", w.Body.Bytes())
	problems = []api.Problem{{Component: "postgres", Message: "connection refused"}}
	w = s.get("/readyz")
	if w.Code != http.StatusServiceUnavailable {
		t.Errorf("readyz with a problem: %d", w.Code)
	}
	golden(t, "not_ready.golden", w.Body.Bytes())
	if w := s.do(request{method: http.MethodHead, path: "/readyz"}); w.Code != http.StatusServiceUnavailable {
		t.Errorf("HEAD readyz with a problem: %d", w.Code)
	}
	if w := s.get("/livez"); w.Code != 200 {
		t.Errorf("livez with a problem: %d", w.Code)
	}
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	s := newSurface(t)
	s.get("/v1/wh/namespaces/ns/tables/secret-name")
	s.get("/v1/wh/namespaces/ns/tables/other-name")
	s.do(request{method: "BREW", path: "/coffee"})
	text := s.get("/metrics").Body.String()
	for _, want := range []string{
		`catalogd_http_requests_total{method="GET",route="/v1/:prefix/namespaces/:namespace/tables/:table",status="404"} 2`,
		`catalogd_http_request_duration_seconds_count{method="GET",route="/v1/:prefix/namespaces/:namespace/tables/:table",status="404"} 2`,
		`method="other"`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	if strings.Contains(text, "secret-name") || strings.Contains(text, "coffee") {
		t.Errorf("a path became a label:\n%s", text)
	}
}

func TestAccessLog(t *testing.T) {
	t.Parallel()
	s := newSurface(t)
	s.fake.put(catalog.TypeTable, "ns", "t", `{}`, "")
	w := s.do(request{method: "GET", path: tablePath + "?token=t0psecret", header: http.Header{
		"X-Request-Id": {"req-1"}, "Authorization": {"Bearer t0psecret"}, "Cookie": {"t0psecret"},
	}})
	if w.Header().Get("X-Request-Id") != "req-1" {
		t.Errorf("request id %q", w.Header().Get("X-Request-Id"))
	}
	lines := strings.Split(strings.TrimSpace(s.log.String()), "\n")
	if len(lines) != 1 {
		t.Fatalf("%d lines for one request:\n%s", len(lines), s.log)
	}
	var line map[string]any
	if err := json.Unmarshal([]byte(lines[0]), &line); err != nil {
		t.Fatal(err)
	}
	if line["request_id"] != "req-1" || line["status"] != 200.0 || line["route"] != "/v1/:prefix/namespaces/:namespace/tables/:table" ||
		line["bytes"] != float64(w.Body.Len()) || line["method"] != "GET" || line["duration"] == nil {
		t.Errorf("%s", lines[0])
	}
	if strings.Contains(lines[0], "t0psecret") {
		t.Errorf("a secret is logged: %s", lines[0])
	}
	for _, bad := range []string{"", "a b", "a\x01", strings.Repeat("x", 129), "é"} {
		w := s.do(request{method: "GET", path: tablePath, header: http.Header{"X-Request-Id": {bad}}})
		if id := w.Header().Get("X-Request-Id"); id == bad || len(id) != 36 {
			t.Errorf("request id %q is taken as %q", bad, id)
		}
	}
}

// TestHTTPServer speaks both protocols to a real listener.
func TestHTTPServer(t *testing.T) {
	t.Parallel()
	s := newSurface(t)
	s.fake.put(catalog.TypeTable, "ns", "t", `{"a":1}`, "")
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := api.NewHTTPServer(s.echo, slog.New(slog.DiscardHandler))
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	for _, h2c := range []bool{false, true} {
		protocols := new(http.Protocols)
		protocols.SetHTTP1(!h2c)
		protocols.SetUnencryptedHTTP2(h2c)
		client := &http.Client{Transport: &http.Transport{Protocols: protocols}}
		for _, request := range []struct{ method, body string }{{"GET", ""}, {"POST", `{"requirements":[],"updates":[]}`}} {
			req, err := http.NewRequestWithContext(t.Context(), request.method, "http://"+listener.Addr().String()+tablePath, strings.NewReader(request.body))
			if err != nil {
				t.Fatal(err)
			}
			res, err := client.Do(req) // asks for gzip and undoes it
			if err != nil {
				t.Fatal(err)
			}
			line, _ := bufio.NewReader(res.Body).ReadString('\n')
			_ = res.Body.Close()
			if res.StatusCode != http.StatusOK || (res.ProtoMajor == 2) != h2c || !res.Uncompressed || !strings.HasSuffix(line, `"metadata":{"a":1},"config":{}}`) {
				t.Errorf("%s: HTTP/%d, %d, %q", request.method, res.ProtoMajor, res.StatusCode, line)
			}
		}
		client.CloseIdleConnections()
	}
	if err := server.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-done; !errors.Is(err, http.ErrServerClosed) {
		t.Error(err)
	}
}
