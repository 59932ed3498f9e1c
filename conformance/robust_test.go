package conformance_test

import (
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"
)

// idleConnections is how many clients may hold a connection that they do not use.
const idleConnections = 10_000

// TestRobust_IdleConnections: connections that carry nothing cost others nothing.
func TestRobust_IdleConnections(t *testing.T) {
	s := newSpace(t)
	s.createTable("t")
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if limit.Cur < idleConnections+500 {
		missing(t, fmt.Sprintf("this process may have %d open files, %d are needed: raise ulimit -n", limit.Cur, idleConnections+500))
	}
	address := strings.TrimPrefix(s.uri, "http://")
	dialer := net.Dialer{Timeout: 30 * time.Second}
	conns := make([]net.Conn, 0, idleConnections)
	defer func() {
		for _, c := range conns {
			_ = c.Close()
		}
	}()
	for i := range idleConnections {
		c, err := dialer.DialContext(t.Context(), "tcp", address)
		if err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
		conns = append(conns, c)
		if i%2 == 0 { // and some begin to speak
			fmt.Fprintf(c, "GET /v1/config HTTP/1.1\r\nHost: x\r\nX-Slow: ")
		}
	}
	s.must("GET", s.table("t"), nil)
	s.commit(s.table("t"), setProperty("k", "1"))
	s.must("GET", s.table("t"), nil).want(t, `"1"`, "metadata", "properties", "k")
	// Those who began and never end are let go after a while; the last of them as well.
	last := conns[idleConnections-2]
	if err := last.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := last.Read(make([]byte, 1)); err == nil || isTimeout(err) {
		// An answer (408 or 400) before the end is as good as the end.
		if err != nil {
			t.Errorf("a request that never ends is still waited for: %v", err)
		}
	}
}

func isTimeout(err error) bool {
	e, ok := err.(net.Error) //nolint:errorlint // a net.Conn returns it as it is
	return ok && e.Timeout()
}
