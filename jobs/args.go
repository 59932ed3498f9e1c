package jobs

import (
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
)

// The queues. Refreshes wait in their queue for a time or a slot, which must not keep
// short maintenance jobs from running.
const (
	refreshQueue     = "mv_refresh"
	maintenanceQueue = "maintenance"
)

// unfinished are the states in which a job stands for work that will still be done.
func unfinished() []rivertype.JobState {
	return []rivertype.JobState{
		rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRetryable,
		rivertype.JobStateRunning, rivertype.JobStateScheduled,
	}
}

// RefreshArgs asks that a materialized view catch up with its sources. It names the view
// and nothing else: the worker reads the current state, so a late or repeated job does no
// harm.
type RefreshArgs struct {
	ViewID string `json:"view_id" river:"unique"` // view uuid, lower case
}

// Kind implements [river.JobArgs]. The string is stored in rows: it never changes.
func (RefreshArgs) Kind() string { return "mv_refresh" }

// InsertOpts implements [river.JobArgsWithInsertOpts].
func (RefreshArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: refreshQueue, UniqueOpts: river.UniqueOpts{ByArgs: true, ByState: unfinished()}}
}

// PruneArgs asks that metadata documents nobody will ask for be deleted.
type PruneArgs struct{}

// Kind implements [river.JobArgs].
func (PruneArgs) Kind() string { return "prune_documents" }

// InsertOpts implements [river.JobArgsWithInsertOpts].
func (PruneArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: maintenanceQueue, MaxAttempts: 3, UniqueOpts: river.UniqueOpts{ByArgs: true, ByState: unfinished()}}
}
