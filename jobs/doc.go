// Package jobs runs refreshes: it adapts River, the job queue in PostgreSQL, to the rest
// of catalogd. A commit's hook inserts one job for each materialized view that became
// stale, in the commit's own transaction; a worker waits until the view may run, runs it,
// and ends the job in the transaction that proves there is nothing left to do.
//
// River is used less than it could be, for reasons that its source shows:
//
//   - A job is unique by its view while it is not finalized. River's default would count
//     finished jobs as well, so that a view could be refreshed once a day.
//   - No refresh is ever retryable or scheduled: a job in these states swallows new ones
//     and cannot be brought forward. What holds a view back stands in its registry row.
//   - River ends a job by its id alone. So a job that is taken from a dead process is
//     finalized and replaced by a new row, never handed on: its old worker, should it
//     still live, finds nothing to end.
//   - River takes a job for dead after an hour, counted from its start. Here each process
//     has a heartbeat row, and a run may take as long as it makes progress.
//   - Inserting notifies, and NOTIFY makes commits queue up for one lock. The hook's
//     client keeps silent; workers poll often enough to see a job before its debounce is
//     over.
package jobs
