package jobs

import (
	"context"

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
// made stale.
type Hook struct {
	marker Marker
	queue  *Enqueuer
}

// NewHook returns a Hook.
func NewHook(marker Marker, queue *Enqueuer) *Hook { return &Hook{marker: marker, queue: queue} }

// Committed runs in the commit's transaction, after the changes were made, so that the
// jobs exist if and only if the changes are visible.
func (h *Hook) Committed(ctx context.Context, tx pgx.Tx, changes []catalog.Change) error {
	wake, err := h.marker.ApplyChanges(ctx, tx, changes)
	if err != nil {
		return err
	}
	return h.queue.Enqueue(ctx, tx, wake)
}

// Acknowledged runs after the commit. The jobs need nothing from it: they became visible
// with the commit itself.
func (*Hook) Acknowledged([]catalog.Change) {}
