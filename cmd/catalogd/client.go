package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/catalogd/catalogd/api/mvrest"
)

// client speaks to a running catalogd.
type client struct {
	uri       string
	warehouse string // empty: the server's default one
	http      *http.Client
}

func newClient(uri, warehouse string) *client {
	return &client{uri: strings.TrimRight(uri, "/"), warehouse: warehouse, http: &http.Client{Timeout: 11 * time.Minute}}
}

// refusal is an error document from the server.
type refusal struct {
	status  int
	kind    string
	message string
}

func (r *refusal) Error() string { return r.message }

// call sends a request and decodes the answer into out, unless it is nil.
func (c *client) call(ctx context.Context, method, path string, in, out any) (status int, err error) {
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
func (c *client) prefix(ctx context.Context) (string, error) {
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
	c.warehouse = config.Overrides["prefix"]
	return url.PathEscape(c.warehouse), nil
}

// viewName is a dotted name on the command line: the last part is the view.
type viewName struct {
	namespace []string
	name      string
}

func parseViewName(s string) (viewName, error) {
	parts := strings.Split(s, ".")
	if len(parts) < 2 {
		return viewName{}, fmt.Errorf("%q has no namespace: write namespace.view", s)
	}
	for _, p := range parts {
		if p == "" {
			return viewName{}, fmt.Errorf("%q has an empty part", s)
		}
	}
	return viewName{namespace: parts[:len(parts)-1], name: parts[len(parts)-1]}, nil
}

func (v viewName) String() string {
	return strings.Join(append(append([]string{}, v.namespace...), v.name), ".")
}

// view is the path of a view, or with "/name" behind it of one of its operations.
func (c *client) view(ctx context.Context, v viewName, operation string) (string, error) {
	prefix, err := c.prefix(ctx)
	if err != nil {
		return "", err
	}
	return "/catalogd/v1/" + prefix + "/namespaces/" + url.PathEscape(strings.Join(v.namespace, "\x1f")) +
		"/views/" + url.PathEscape(v.name) + operation, nil
}

func (c *client) list(ctx context.Context) ([]mvrest.MaterializedView, error) {
	prefix, err := c.prefix(ctx)
	if err != nil {
		return nil, err
	}
	var out mvrest.MaterializedViewList
	_, err = c.call(ctx, http.MethodGet, "/catalogd/v1/"+prefix+"/materialized-views", nil, &out)
	return out.MaterializedViews, err
}

func (c *client) create(ctx context.Context, body mvrest.NewMaterializedView) (mvrest.MaterializedView, error) {
	var out mvrest.MaterializedView
	prefix, err := c.prefix(ctx)
	if err != nil {
		return out, err
	}
	_, err = c.call(ctx, http.MethodPost, "/catalogd/v1/"+prefix+"/materialized-views", body, &out)
	return out, err
}

func (c *client) freshness(ctx context.Context, v viewName) (mvrest.MaterializedView, error) {
	var out mvrest.MaterializedView
	path, err := c.view(ctx, v, "/freshness")
	if err != nil {
		return out, err
	}
	_, err = c.call(ctx, http.MethodGet, path, nil, &out)
	return out, err
}

// request asks for a run that starts after the call.
func (c *client) request(ctx context.Context, v viewName, full bool) (mvrest.RefreshTicket, error) {
	var out mvrest.RefreshTicket
	path, err := c.view(ctx, v, "/refresh")
	if err != nil {
		return out, err
	}
	_, err = c.call(ctx, http.MethodPost, path, mvrest.RefreshRequest{Full: &full}, &out)
	return out, err
}

// refresh is request, and waits for the end of the run.
func (c *client) refresh(ctx context.Context, v viewName, full bool) (mvrest.RefreshRun, error) {
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
func (c *client) await(ctx context.Context, v viewName, t mvrest.RefreshTicket) (mvrest.RefreshRun, error) {
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

// act calls an operation that has no answer.
func (c *client) act(ctx context.Context, method string, v viewName, operation string) error {
	path, err := c.view(ctx, v, operation)
	if err != nil {
		return err
	}
	_, err = c.call(ctx, method, path, nil, nil)
	return err
}
