package client

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// NewView is a materialized view to be made.
type NewView struct {
	Namespace []string `json:"namespace"`
	Name      string   `json:"name"`
	SQL       string   `json:"sql"`
}

// Freshness is what the server says about a materialized view.
type Freshness struct {
	Status          string `json:"status"`
	UpToDate        bool   `json:"up-to-date"`
	Reason          string `json:"reason"`
	Detail          string `json:"detail"`
	StorageSnapshot *int64 `json:"storage-snapshot-id"`
	Job             string `json:"job"`
	Suspended       bool   `json:"suspended"`
	Failures        int    `json:"failures"`
	LastError       string `json:"last-error"`
	LastRefresh     *Run   `json:"last-refresh"`
	Definition      struct {
		StorageTable struct {
			Namespace []string `json:"namespace"`
			Name      string   `json:"name"`
		} `json:"storage-table"`
	} `json:"definition"`
}

// Run is a refresh.
type Run struct {
	ID           string           `json:"id"`
	Status       string           `json:"status"`
	Mode         string           `json:"mode"`
	Strategy     string           `json:"strategy"`
	Reason       string           `json:"reason"`
	Error        string           `json:"error"`
	Snapshot     *int64           `json:"snapshot-id"`
	Buckets      int64            `json:"buckets"`
	BucketsTotal int64            `json:"buckets-total"`
	Rows         int64            `json:"rows"`
	BytesRead    int64            `json:"bytes-read"`
	BytesWritten int64            `json:"bytes-written"`
	CPUSeconds   float64          `json:"cpu-seconds"`
	DurationMS   int64            `json:"duration-ms"`
	Phases       map[string]int64 `json:"phases"`
}

// CreateView makes a materialized view.
func (c *Catalog) CreateView(ctx context.Context, v NewView) error {
	return c.Call(ctx, http.MethodPost, c.MaterializedViewsPath(), v, nil)
}

// Freshness asks how fresh a view is.
func (c *Catalog) Freshness(ctx context.Context, namespace, view string) (Freshness, error) {
	var f Freshness
	err := c.Call(ctx, http.MethodGet, c.ViewPath(namespace, view)+"/freshness", nil, &f)
	return f, err
}

// Suspend stops a view's automatic refreshes.
func (c *Catalog) Suspend(ctx context.Context, namespace, view string) error {
	return c.Call(ctx, http.MethodPost, c.ViewPath(namespace, view)+"/suspend", nil, nil)
}

// Refresh recomputes a view in full and waits for the run.
func (c *Catalog) Refresh(ctx context.Context, namespace, view string, timeout time.Duration) (Run, error) {
	var run Run
	query := url.Values{"wait": {"true"}, "timeout": {timeout.String()}}
	err := c.Call(ctx, http.MethodPost, c.ViewPath(namespace, view)+"/refresh?"+query.Encode(), map[string]bool{"full": true}, &run)
	return run, err
}
