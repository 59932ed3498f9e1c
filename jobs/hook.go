package jobs

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/catalogd/catalogd/catalog"
)

// Marker is the part of mv/postgres that commits need.
type Marker interface {
	// Watch adds to a commit's batch what it has to know; the function that it returns
	// keeps the registry of materialized views in step with the changes and returns the
	// views that need a refresh job.
	Watch(batch *pgx.Batch, changes []catalog.Change) func(ctx context.Context, tx pgx.Tx) (wake []string, err error)
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

// Committed returns what runs in the commit's transaction, after the changes were made,
// so that the jobs exist if and only if the changes are visible.
func (h *Hook) Committed(batch *pgx.Batch, changes []catalog.Change) func(context.Context, pgx.Tx) error {
	apply := h.marker.Watch(batch, changes)
	return func(ctx context.Context, tx pgx.Tx) error {
		wake, err := apply(ctx, tx)
		if err != nil {
			return err
		}
		if err := h.queue.Enqueue(ctx, tx, wake); err != nil {
			return err
		}
		if err := h.queue.enqueueDropped(ctx, tx, droppedStorage(changes), h.retention); err != nil {
			return err
		}
		if err := h.queue.enqueuePurges(ctx, tx, changes); err != nil {
			return err
		}
		return noteObsolete(ctx, tx, changes)
	}
}

// Acknowledged runs after the commit. The jobs need nothing from it: they became visible
// with the commit itself.
func (*Hook) Acknowledged([]catalog.Change) {}
