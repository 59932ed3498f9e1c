package jobs

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/catalogd/catalogd/catalog"
)

// Marker is the part of mv/postgres that commits need.
type Marker interface {
	// ApplyChanges keeps the registry of materialized views in step with changes and
	// returns the views that need a refresh job.
	ApplyChanges(ctx context.Context, tx pgx.Tx, changes []catalog.Change) (wake []string, err error)
}

// Hook is the store's commit hook: it inserts the refresh jobs of the views that a commit
// made stale, and the jobs that will remove what dropped views leave behind.
type Hook struct {
	marker    Marker
	queue     *Enqueuer
	retention time.Duration
}

// HookOption changes a [Hook].
type HookOption func(*Hook)

// WithDropRetention sets how long the files of a dropped storage table stay.
func WithDropRetention(d time.Duration) HookOption { return func(h *Hook) { h.retention = d } }

// NewHook returns a Hook.
func NewHook(marker Marker, queue *Enqueuer, options ...HookOption) *Hook {
	h := &Hook{marker: marker, queue: queue, retention: DefaultDropRetention}
	for _, o := range options {
		o(h)
	}
	return h
}

// Committed runs in the commit's transaction, after the changes were made, so that the
// jobs exist if and only if the changes are visible.
func (h *Hook) Committed(ctx context.Context, tx pgx.Tx, changes []catalog.Change) error {
	wake, err := h.marker.ApplyChanges(ctx, tx, changes)
	if err != nil {
		return err
	}
	if err := h.queue.Enqueue(ctx, tx, wake); err != nil {
		return err
	}
	return h.queue.enqueueDropped(ctx, tx, droppedStorage(changes), h.retention)
}

// Acknowledged runs after the commit. The jobs need nothing from it: they became visible
// with the commit itself.
func (*Hook) Acknowledged([]catalog.Change) {}
