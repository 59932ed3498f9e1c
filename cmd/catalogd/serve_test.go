package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/catalogd/catalogd/catalog/postgres/pgtest"
)

// secret is a password that must never be printed.
const secret = "pw-Xk29-never-print-this"

// listenAnywhere takes a port until the test ends.
func listenAnywhere(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String()
}

// withPassword puts the secret into a database URL; a server that trusts us ignores it.
func withPassword(t *testing.T, dsn string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	if _, has := u.User.Password(); has {
		t.Skip("the test database has a password of its own")
	}
	u.User = url.UserPassword(u.User.Username(), secret)
	return u.String()
}

func hidesSecret(t *testing.T, what, printed string) {
	t.Helper()
	if strings.Contains(printed, secret) {
		t.Errorf("%s prints the password:\n%s", what, printed)
	}
}

// TestServe_refusesBadConfiguration gives serve and migrate wrong settings by flag and by
// environment, each with a password inside.
func TestServe_refusesBadConfiguration(t *testing.T) {
	t.Parallel()
	unparsable := "postgres://catalogd:" + secret + "@host:port/db"
	unreachable := "postgres://catalogd:" + secret + "@127.0.0.1:1/db?connect_timeout=2"
	for _, test := range []struct {
		name      string
		env, args []string
		says      []string
	}{
		{name: "nothing given", args: []string{"serve"}, says: []string{"--database-url", "--warehouse"}},
		{
			name: "everything wrong at once",
			env:  []string{"CATALOGD_DATABASE_URL=" + unparsable, "CATALOGD_REFRESH_SLOTS=many", "CATALOGD_LISTEN=8181"},
			args: []string{"serve", "--engine-threads", "0", "--log-level", "loud", "--warehouse", "relative/path"},
			says: []string{
				"--database-url", "CATALOGD_REFRESH_SLOTS", `--listen "8181"`, "--engine-threads", `"loud"`, `"relative/path"`,
			},
		},
		{
			name: "a flag beats the environment",
			env:  []string{"CATALOGD_WAREHOUSE=/fine", "CATALOGD_LISTEN=from-env", "CATALOGD_DATABASE_URL=" + unreachable},
			args: []string{"serve", "--listen", "from-flag"},
			says: []string{`"from-flag"`},
		},
		{name: "URL as argument", args: []string{"serve", unreachable}, says: []string{"catalogd serve takes flags only"}},
		{name: "URL as argument of migrate", args: []string{"migrate", unreachable}, says: []string{"catalogd migrate takes flags only"}},
		{name: "migrate without a URL", args: []string{"migrate"}, says: []string{"--database-url", "CATALOGD_DATABASE_URL"}},
		{name: "migrate with half a URL", env: []string{"CATALOGD_DATABASE_URL=" + unparsable}, args: []string{"migrate"}, says: []string{"--database-url"}},
		{name: "migrate without a server", args: []string{"migrate", "--database-url", unreachable}, says: []string{"127.0.0.1", "cannot be reached"}},
		{
			name: "serve --migrate without a server",
			args: []string{"serve", "--migrate", "--warehouse", "/fine", "--listen", "127.0.0.1:0", "--database-url", unreachable},
			says: []string{"migrate the database"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			o := fails(t, test.env, test.args, test.says...)
			hidesSecret(t, test.name, o.String())
			if strings.Contains(o.stderr, "from-env") {
				t.Errorf("the environment was used although a flag was given\n%s", o)
			}
		})
	}
}

func TestServe_portInUse(t *testing.T) {
	t.Parallel()
	taken := listenAnywhere(t)
	env := []string{"CATALOGD_DATABASE_URL=" + withPassword(t, pgtest.URL(t)), "CATALOGD_WAREHOUSE=" + t.TempDir()}
	o := fails(t, env, []string{"serve", "--listen", taken}, "cannot listen on "+taken, "address already in use", "--listen")
	hidesSecret(t, "serve", o.String())
}

// TestServe_withoutDatabase checks that a process outlives a database that is away.
func TestServe_withoutDatabase(t *testing.T) {
	t.Parallel()
	p := launch(t, []string{"CATALOGD_DATABASE_URL=postgres://catalogd:" + secret + "@127.0.0.1:1/db"},
		"serve", "--warehouse", t.TempDir(), "--listen", "127.0.0.1:0", "--log-level", "debug")
	p.call(http.MethodGet, "/livez", nil, http.StatusOK, nil)
	p.notReady("database", "does not answer")
	status, answer, err := p.try(http.MethodGet, "/v1/main/namespaces", nil)
	if err != nil || status < 500 {
		t.Errorf("a request without a database: %d %s %v, want 5xx", status, answer, err)
	}
	hidesSecret(t, "an answer", string(answer))
	p.stop()
	hidesSecret(t, "the log", p.log())
}

// notReady waits until /readyz names a component with all words.
func (p *process) notReady(component string, words ...string) {
	p.t.Helper()
	eventually(p.t, time.Minute, "/readyz names "+component, func() error {
		status, raw, err := p.try(http.MethodGet, "/readyz", nil)
		if err != nil {
			return err
		}
		hidesSecret(p.t, "/readyz", string(raw))
		var answer struct {
			Problems []struct{ Component, Message string }
		}
		if err := json.Unmarshal(raw, &answer); err != nil {
			return err
		}
		if status != http.StatusServiceUnavailable || len(answer.Problems) != 1 || answer.Problems[0].Component != component {
			return fmt.Errorf("%d %s", status, raw)
		}
		for _, word := range words {
			if !strings.Contains(answer.Problems[0].Message, word) {
				return fmt.Errorf("%s does not say %q", raw, word)
			}
		}
		return nil
	})
}

// TestServe_waitsForTheSchema starts on an empty database, which is migrated under the
// running process, then by a version that is not there yet, and back.
func TestServe_waitsForTheSchema(t *testing.T) {
	t.Parallel()
	db := pgtest.Empty(t)
	dsn := withPassword(t, db.Config().ConnString())
	p := launch(t, []string{"CATALOGD_DATABASE_URL=" + dsn, "CATALOGD_LOG_LEVEL=debug", "CATALOGD_WAREHOUSE_NAME=lake"},
		"serve", "--warehouse", t.TempDir(), "--listen", "127.0.0.1:0")
	p.call(http.MethodGet, "/livez", nil, http.StatusOK, nil)
	p.notReady("schema", "catalogd migrate")

	o := finish(t, []string{"CATALOGD_DATABASE_URL=" + dsn}, "migrate")
	if o.code != 0 || !strings.Contains(o.stdout, "schema version") {
		t.Fatalf("migrate: %s", o)
	}
	hidesSecret(t, "migrate", o.String())
	if again := finish(t, []string{"CATALOGD_DATABASE_URL=" + dsn}, "migrate"); again.code != 0 {
		t.Errorf("a second migrate: %s", again)
	}
	p.ready()
	// Ready means that it serves, and that refreshes run: without a restart.
	p.call(http.MethodPost, "/v1/lake/namespaces", map[string]any{"namespace": []string{"n"}}, http.StatusOK, nil)
	eventually(t, time.Minute, "the queue is worked", func() error {
		var beats int
		if err := db.QueryRow(t.Context(), `SELECT count(*) FROM process_heartbeat`).Scan(&beats); err != nil {
			return err
		}
		if beats != 1 {
			return fmt.Errorf("%d heartbeats", beats)
		}
		return nil
	})

	bump := func(by int) {
		t.Helper()
		if _, err := db.Exec(t.Context(), `UPDATE schema_migrations SET version = version + $1`, by); err != nil {
			t.Fatal(err)
		}
	}
	bump(1)
	p.notReady("schema", "newer")
	p.call(http.MethodGet, "/livez", nil, http.StatusOK, nil)
	bump(-1)
	p.ready()
	p.stop()
	hidesSecret(t, "the log", p.log())
}

// TestServe_finishesRequestsBeforeItStops sends half a request, then SIGTERM, then the
// other half.
func TestServe_finishesRequestsBeforeItStops(t *testing.T) {
	t.Parallel()
	p := start(t, []string{"CATALOGD_DATABASE_URL=" + pgtest.URL(t)}, "serve", "--warehouse", t.TempDir(), "--listen", "127.0.0.1:0")
	address := strings.TrimPrefix(p.uri, "http://")
	var dialer net.Dialer
	conn, err := dialer.DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	const body = `{"namespace": ["late"]}`
	fmt.Fprintf(conn, "POST /v1/main/namespaces HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n", len(body))
	answers := bufio.NewReader(conn)
	// The server asks for the body, so it is inside the request.
	if line, err := answers.ReadString('\n'); err != nil || !strings.Contains(line, "100") {
		t.Fatalf("answer %q, %v; want 100 Continue", line, err)
	}
	if _, err := answers.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	eventually(t, time.Minute, "new connections are refused", func() error {
		c, err := dialer.DialContext(t.Context(), "tcp", address)
		if err != nil {
			return nil //nolint:nilerr // this is what is waited for
		}
		return fmt.Errorf("connected to %s: %w", c.RemoteAddr(), c.Close())
	})
	if _, err := io.WriteString(conn, body); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(answers, nil)
	if err != nil {
		t.Fatalf("the request in flight was cut off: %v\n%s", err, p.log())
	}
	defer res.Body.Close()
	if raw, err := io.ReadAll(res.Body); res.StatusCode != http.StatusOK || err != nil || !strings.Contains(string(raw), "late") {
		t.Errorf("the request in flight: %s %s %v", res.Status, raw, err)
	}
	if code := p.lasts(); code != 0 {
		t.Errorf("exit code %d after SIGTERM\n%s", code, p.log())
	}
}
