package linear

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
)

// client does one operation after the other.
type client struct {
	run     *Run
	number  int
	random  *rand.Rand
	views   [][len(tableNames)]view // by group
	replica int                     // the one to ask next
	note    string                  // the last answers that said nothing good
}

// view is what a client last saw of a table. It may be out of date: then the commits that
// rest on it are refused.
type view struct {
	table    table
	uuid     string
	location string // of the metadata file
	etag     string // of the whole metadata
	stale    bool   // an answer showed that the table has changed
}

// answer is what came back, if anything did.
type answer struct {
	status int
	etag   string
	body   []byte
	sent   bool // a server may have seen the request
	err    error
}

// request sends a request to the client's replica.
func (c *client) request(ctx context.Context, method, path string, body any, header map[string]string) answer {
	var in io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return answer{err: err}
		}
		in = bytes.NewReader(raw)
	}
	// The error of a dial does not say so: Go sends a request with an idempotency key
	// again by itself when its connection breaks.
	var sent atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { sent.Store(true) }})
	req, err := http.NewRequestWithContext(ctx, method, c.run.cfg.Replicas[c.replica]()+path, in)
	if err != nil {
		return answer{err: err}
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for name, value := range header {
		req.Header.Set(name, value)
	}
	res, err := c.run.cfg.HTTP.Do(req)
	if err != nil {
		return answer{err: err, sent: sent.Load()}
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return answer{status: res.StatusCode, etag: res.Header.Get("ETag"), body: text, err: err, sent: true}
}

// neverSent reports whether no server can have seen the request.
func (a answer) neverSent() bool { return a.err != nil && !a.sent }

func (a answer) decode(out any) error {
	if a.err != nil || a.status != http.StatusOK {
		return a.problem()
	}
	return json.Unmarshal(a.body, out)
}

func (a answer) problem() error {
	if a.err != nil {
		return a.err
	}
	return fmt.Errorf("status %d: %s", a.status, a.body)
}

// brief is an answer for a line of a history, empty if it is good.
func (a answer) brief() string {
	if a.err == nil && a.status < http.StatusBadRequest {
		return ""
	}
	text := a.problem().Error()
	return text[:min(len(text), 200)]
}

// mutate sends a change, again and again with one key if the server knows keys and the
// outcome is unknown: the answer of the last attempt is then that of the operation.
func (c *client) mutate(ctx context.Context, method, path string, body any) (answer, outcome) {
	var header map[string]string
	if c.run.keys && c.random.IntN(2) == 0 {
		key, err := uuid.NewV7()
		if err != nil {
			return answer{err: err}, refused
		}
		header = map[string]string{"Idempotency-Key": key.String()}
	}
	a := c.request(ctx, method, path, body, header)
	o := c.judge(method, path, a)
	c.note = a.brief()
	for o == unknown && header != nil && !c.paused() {
		c.recover(ctx)
		again := c.request(ctx, method, path, body, header)
		c.note += ", then " + again.brief()
		if again.neverSent() || again.status == http.StatusServiceUnavailable || bytes.Contains(again.body, []byte("Nothing was changed")) {
			continue // that is about this attempt, not about the one before
		}
		a, o = again, c.judge(method, path, again)
	}
	return a, o
}

// judge reads an answer. Answers that no honest server gives are problems of their own.
func (c *client) judge(method, path string, a answer) outcome {
	var e struct {
		Error struct {
			Type    string `json:"type"`
			Message string `json:"message"`
		} `json:"error"`
	}
	if a.err == nil && a.status >= http.StatusBadRequest && len(a.body) > 0 {
		if err := json.Unmarshal(a.body, &e); err != nil {
			c.run.problem("%s %s: %d with %v in %q", method, path, a.status, err, a.body)
		}
	}
	switch {
	case a.neverSent():
		return refused
	case a.err != nil:
		if timeout, ok := errors.AsType[net.Error](a.err); ok && timeout.Timeout() {
			c.run.problem("%s %s hangs: %v", method, path, a.err)
		}
		return unknown
	case a.status < http.StatusBadRequest:
		return did
	case a.status == http.StatusNotFound && (e.Error.Type == "NoSuchTableException" || method == http.MethodHead):
		return noTable
	case a.status == http.StatusConflict && e.Error.Type == "AlreadyExistsException":
		return exists
	case a.status == http.StatusConflict && strings.Contains(e.Error.Message, "Requirement failed"):
		return failed
	case a.status == http.StatusConflict, a.status == http.StatusServiceUnavailable:
		return refused // nothing was changed
	case e.Error.Type == "CommitStateUnknownException":
		return unknown
	}
	c.run.problem("%s %s = %d %s", method, path, a.status, a.body)
	return unknown
}

// recover waits until some replica answers again and turns to it.
func (c *client) recover(ctx context.Context) {
	for {
		c.replica = (c.replica + 1) % len(c.run.cfg.Replicas)
		if a := c.request(ctx, http.MethodGet, "/readyz", nil, nil); a.err == nil && a.status == http.StatusOK {
			return
		}
		select {
		case <-c.run.stop:
			return
		case <-ctx.Done():
			return
		case <-time.After(10 * time.Millisecond): // between two looks at a condition
		}
	}
}

func (c *client) paused() bool {
	select {
	case <-c.run.stop:
		return true
	default:
		return false
	}
}
