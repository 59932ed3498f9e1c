package rck_test

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// startReference runs Iceberg's reference server with an empty catalog, which is stopped
// when the test ends.
func startReference(t *testing.T) *server {
	t.Helper()
	path := classPath(t, kitVersion)
	const tries = 5
	for range tries {
		if s := tryReference(t, path); s != nil {
			return s
		}
	}
	t.Fatalf("the reference server ended at once %d times", tries)
	return nil
}

// tryReference returns nil if the server ends again: it cannot be told to choose its port,
// and someone else may have taken the one that was free.
func tryReference(t *testing.T, path string) *server {
	t.Helper()
	port, err := freePort(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	args := append([]string{"-Dorg.slf4j.simpleLogger.defaultLogLevel=off", "-cp", path}, quickJVM...)
	args = append(args, "org.apache.iceberg.rest.RESTCatalogServer")
	s := &server{
		name: "the reference server", uri: fmt.Sprintf("http://127.0.0.1:%d", port), exited: make(chan struct{}),
		cmd: exec.CommandContext(context.WithoutCancel(t.Context()), "java", args...),
	}
	s.cmd.Env = append(javaEnv(), fmt.Sprintf("CATALOG_REST_PORT=%d", port),
		"CATALOG_WAREHOUSE=file://"+filepath.Join(home, "data"), "CATALOG_URI=jdbc:sqlite:"+filepath.Join(home, "catalog.db"))
	s.start(t)
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); {
		if s.ready(t.Context(), "/v1/config") == nil {
			return s
		}
		select {
		case <-s.exited:
			t.Logf("the reference server ended: %s", s.log())
			return nil
		case <-time.After(50 * time.Millisecond):
		}
	}
	t.Fatalf("the reference server is not ready\n%s", s.log())
	return nil
}

func freePort(ctx context.Context) (int, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}
