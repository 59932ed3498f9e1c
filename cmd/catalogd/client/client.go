// Package client speaks to a running catalogd over HTTP: what the command line and the
// demo know about materialized views, they ask for through it.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/catalogd/catalogd/api/mvrest"
)

// Client speaks to a running catalogd.
type Client struct {
	uri       string
	warehouse string // empty: the server's default one
	http      *http.Client

	mu       sync.Mutex
	resolved string // the warehouse in paths, once the server has said it
}

// New returns a client of the catalogd at uri; an empty warehouse is the server's default
// one.
func New(uri, warehouse string) *Client {
	return &Client{uri: strings.TrimRight(uri, "/"), warehouse: warehouse, http: &http.Client{Timeout: 11 * time.Minute}}
}

// refusal is an error document from the server.
type refusal struct {
	status  int
	kind    string
	message string
}

func (r *refusal) Error() string { return r.message }

// call sends a request and decodes the answer into out, unless it is nil.
func (c *Client) call(ctx context.Context, method, path string, in, out any) (status int, err error) {
	var body io.Reader
	if in != nil {
		raw, err := json.Marshal(in)
		if err != nil {
			return 0, err
		}
		body = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.uri+path, body)
	if err != nil {
		return 0, fmt.Errorf("--uri %s: %w", c.uri, err)
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := c.http.Do(req)
	if err != nil {
		if urlErr, ok := errors.AsType[*url.Error](err); ok {
			err = urlErr.Err
		}
		return 0, fmt.Errorf("no catalogd answers at %s: %w (start one with `catalogd dev`, or name it with --uri)", c.uri, err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, err
	}
	if res.StatusCode >= http.StatusBadRequest {
		return res.StatusCode, refused(res, raw)
	}
	if out == nil || len(raw) == 0 {
		return res.StatusCode, nil
	}
	return res.StatusCode, json.Unmarshal(raw, out)
}

func refused(res *http.Response, raw []byte) error {
	var doc mvrest.ErrorDocument
	if json.Unmarshal(raw, &doc) != nil || doc.Error.Message == "" {
		return &refusal{status: res.StatusCode, message: "the server answered " + res.Status}
	}
	return &refusal{status: res.StatusCode, kind: doc.Error.Type, message: doc.Error.Message}
}

// prefix is the warehouse in paths; the server's default one is asked for once.
func (c *Client) prefix(ctx context.Context) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.resolved != "" {
		return c.resolved, nil
	}
	var config struct {
		Overrides map[string]string `json:"overrides"`
	}
	path := "/v1/config"
	if c.warehouse != "" {
		path += "?warehouse=" + url.QueryEscape(c.warehouse)
	}
	if _, err := c.call(ctx, http.MethodGet, path, nil, &config); err != nil {
		return "", err
	}
	c.resolved = url.PathEscape(config.Overrides["prefix"])
	return c.resolved, nil
}

// ViewName is a dotted name on the command line: the last part is the view.
type ViewName struct {
	Namespace []string
	Name      string
}

// ParseViewName reads a dotted name with at least one namespace level.
func ParseViewName(s string) (ViewName, error) {
	parts := strings.Split(s, ".")
	if len(parts) < 2 {
		return ViewName{}, fmt.Errorf("%q has no namespace: write namespace.view", s)
	}
	if slices.Contains(parts, "") {
		return ViewName{}, fmt.Errorf("%q has an empty part", s)
	}
	return ViewName{Namespace: parts[:len(parts)-1], Name: parts[len(parts)-1]}, nil
}

// String is the dotted name.
func (v ViewName) String() string {
	return strings.Join(append(append([]string{}, v.Namespace...), v.Name), ".")
}

// view is the path of a view, or with "/name" behind it of one of its operations.
func (c *Client) view(ctx context.Context, v ViewName, operation string) (string, error) {
	prefix, err := c.prefix(ctx)
	if err != nil {
		return "", err
	}
	return "/catalogd/v1/" + prefix + "/namespaces/" + url.PathEscape(strings.Join(v.Namespace, "\x1f")) +
		"/views/" + url.PathEscape(v.Name) + operation, nil
}

// List returns all materialized views with their freshness.
func (c *Client) List(ctx context.Context) ([]mvrest.MaterializedView, error) {
	prefix, err := c.prefix(ctx)
	if err != nil {
		return nil, err
	}
	var out mvrest.MaterializedViewList
	_, err = c.call(ctx, http.MethodGet, "/catalogd/v1/"+prefix+"/materialized-views", nil, &out)
	return out.MaterializedViews, err
}

// Create makes a materialized view.
func (c *Client) Create(ctx context.Context, body mvrest.NewMaterializedView) (mvrest.MaterializedView, error) {
	var out mvrest.MaterializedView
	prefix, err := c.prefix(ctx)
	if err != nil {
		return out, err
	}
	_, err = c.call(ctx, http.MethodPost, "/catalogd/v1/"+prefix+"/materialized-views", body, &out)
	return out, err
}

// Freshness returns one materialized view and how fresh it is.
func (c *Client) Freshness(ctx context.Context, v ViewName) (mvrest.MaterializedView, error) {
	var out mvrest.MaterializedView
	path, err := c.view(ctx, v, "/freshness")
	if err != nil {
		return out, err
	}
	_, err = c.call(ctx, http.MethodGet, path, nil, &out)
	return out, err
}

// Refreshes returns the newest runs of a view, newest first.
func (c *Client) Refreshes(ctx context.Context, v ViewName, limit int) ([]mvrest.RefreshRun, error) {
	var out mvrest.RefreshRunList
	path, err := c.view(ctx, v, "/refreshes?limit="+strconv.Itoa(limit))
	if err != nil {
		return nil, err
	}
	_, err = c.call(ctx, http.MethodGet, path, nil, &out)
	return out.Refreshes, err
}

// Request asks for a run that starts after the call.
func (c *Client) Request(ctx context.Context, v ViewName, full bool) (mvrest.RefreshTicket, error) {
	var out mvrest.RefreshTicket
	path, err := c.view(ctx, v, "/refresh")
	if err != nil {
		return out, err
	}
	_, err = c.call(ctx, http.MethodPost, path, mvrest.RefreshRequest{Full: &full}, &out)
	return out, err
}

// Refresh is Request, and waits for the end of the run.
func (c *Client) Refresh(ctx context.Context, v ViewName, full bool) (mvrest.RefreshRun, error) {
	var run mvrest.RefreshRun
	path, err := c.view(ctx, v, "/refresh?wait=true&timeout=600s")
	if err != nil {
		return run, err
	}
	var raw json.RawMessage
	status, err := c.call(ctx, http.MethodPost, path, mvrest.RefreshRequest{Full: &full}, &raw)
	if err != nil {
		return run, err
	}
	if status != http.StatusAccepted {
		return run, json.Unmarshal(raw, &run)
	}
	var ticket mvrest.RefreshTicket
	if err := json.Unmarshal(raw, &ticket); err != nil {
		return run, err
	}
	return c.await(ctx, v, ticket)
}

// await polls for the run that answers a ticket.
func (c *Client) await(ctx context.Context, v ViewName, t mvrest.RefreshTicket) (mvrest.RefreshRun, error) {
	var run mvrest.RefreshRun
	path, err := c.view(ctx, v, "/refreshes/"+strconv.FormatInt(t.Generation, 10))
	if err != nil {
		return run, err
	}
	for {
		status, err := c.call(ctx, http.MethodGet, path, nil, &run)
		if err != nil {
			return run, err
		}
		if status == http.StatusOK && run.Status != "running" {
			return run, nil
		}
		select {
		case <-ctx.Done():
			return run, ctx.Err()
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// Act calls an operation that has no answer.
func (c *Client) Act(ctx context.Context, method string, v ViewName, operation string) error {
	path, err := c.view(ctx, v, operation)
	if err != nil {
		return err
	}
	_, err = c.call(ctx, method, path, nil, nil)
	return err
}
