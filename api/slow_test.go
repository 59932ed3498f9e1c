package api_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/catalogd/catalogd/api"
)

// TestSlowBody: a client that does not send the body that it promised is let go, and holds
// nothing that others need.
func TestSlowBody(t *testing.T) {
	t.Parallel()
	s := newSurface(t, func(c *api.Config) { c.BodyTimeout = 200 * time.Millisecond })
	server := httptest.NewUnstartedServer(s.echo)
	server.Config = api.NewHTTPServer(s.echo, nil)
	server.Start()
	t.Cleanup(server.Close)
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "POST /v1/wh/namespaces HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body := make([]byte, 1000)
	n, _ := res.Body.Read(body)
	if res.StatusCode != http.StatusRequestTimeout || !strings.Contains(string(body[:n]), "RequestTimeoutException") {
		t.Errorf("%d %s", res.StatusCode, body[:n])
	}
	if len(s.fake.calls) != 0 {
		t.Errorf("half a body reached the catalog: %v", s.fake.calls)
	}
}
