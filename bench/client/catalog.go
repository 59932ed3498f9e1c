package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Catalog is a server and the prefix that it wants. It is safe for concurrent use; the
// timed requests go through a [Conn] of each client instead.
type Catalog struct {
	base   string // without a trailing slash
	prefix string
	http   *http.Client
}

// At is a catalog whose prefix is known.
func At(base, prefix string) *Catalog {
	return &Catalog{
		base: strings.TrimRight(base, "/"), prefix: prefix,
		http: &http.Client{Timeout: 11 * time.Minute}, // longer than any wait that we ask for
	}
}

// Open asks the server for its prefix.
func Open(ctx context.Context, base string) (*Catalog, error) {
	c := At(base, "")
	var config struct{ Defaults, Overrides map[string]string }
	if err := c.Call(ctx, http.MethodGet, "/v1/config", nil, &config); err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	c.prefix = config.Defaults["prefix"]
	if p, ok := config.Overrides["prefix"]; ok {
		c.prefix = p
	}
	return c, nil
}

// Base is the URL of the server.
func (c *Catalog) Base() string { return c.base }

// Prefix is the warehouse's part of every path.
func (c *Catalog) Prefix() string { return c.prefix }

// Address is host:port, for [Dial].
func (c *Catalog) Address() string {
	_, address, _ := strings.Cut(c.base, "://")
	return address
}

// Call does an untimed request: it wants a 2xx and decodes the answer into out.
func (c *Catalog) Call(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return err
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if err := (Reply{Status: resp.StatusCode, Body: data}).ok(); err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	if out == nil || len(data) == 0 {
		return nil
	}
	return json.Unmarshal(data, out)
}

// NamespacesPath is the path of all namespaces.
func (c *Catalog) NamespacesPath() string {
	if c.prefix == "" {
		return "/v1/namespaces"
	}
	return "/v1/" + url.PathEscape(c.prefix) + "/namespaces"
}

// TablePath is the path of a table.
func (c *Catalog) TablePath(namespace, table string) string {
	return c.TablesPath(namespace) + "/" + url.PathEscape(table)
}

// TablesPath is the path of a namespace's tables.
func (c *Catalog) TablesPath(namespace string) string {
	return c.NamespacesPath() + "/" + url.PathEscape(namespace) + "/tables"
}

// Register gives a name to an existing metadata file.
func (c *Catalog) Register(ctx context.Context, namespace, table, metadataLocation string) error {
	path := c.NamespacesPath() + "/" + url.PathEscape(namespace) + "/register"
	return c.Call(ctx, http.MethodPost, path, map[string]string{"name": table, "metadata-location": metadataLocation}, nil)
}

// ViewPath is the path of a materialized view below our own operations.
func (c *Catalog) ViewPath(namespace, view string) string {
	return "/catalogd/v1/" + url.PathEscape(c.prefix) + "/namespaces/" + url.PathEscape(namespace) + "/views/" + url.PathEscape(view)
}

// MaterializedViewsPath is the path under which materialized views are made.
func (c *Catalog) MaterializedViewsPath() string {
	return "/catalogd/v1/" + url.PathEscape(c.prefix) + "/materialized-views"
}

// CreateNamespace makes a namespace.
func (c *Catalog) CreateNamespace(ctx context.Context, namespace string) error {
	return c.Call(ctx, http.MethodPost, c.NamespacesPath(), map[string]any{"namespace": []string{namespace}}, nil)
}
