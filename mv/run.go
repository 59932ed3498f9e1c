package mv

import "time"

// RunInfo tells a run which job it belongs to; [Registry.Begin] wants to know.
type RunInfo struct {
	JobID   int64
	Process string // id of the process that runs it
}

// Due says when a view's refresh job may run, read just before it does.
type Due struct {
	Exists     bool          // false: the view is no materialized view any more
	Wait       time.Duration // until not_before, by the database's clock; never negative
	Suspended  bool
	External   bool
	Generation int64 // the newest manual request
	Requested  bool  // a manual request waits for an answer: it overrides the three above
}
