package plan

import "slices"

// Strategy is how a refresh gets at the new rows.
type Strategy string

// The strategies.
const (
	None    Strategy = "none"    // no row can have changed: only the state is recorded
	Buckets Strategy = "buckets" // the touched buckets are recomputed and replaced
	Full    Strategy = "full"    // everything is recomputed
)

// Reasons of a full refresh that are decided here; others come in with the input.
const (
	ReasonSeveralChanged = "OTHER_SOURCE_CHANGED" // a source that has no bucket changed
	ReasonMostlyChanged  = "MOSTLY_CHANGED"       // recomputing everything costs no more
)

// mostly is the share of the source's bytes above which a full refresh is cheaper than
// replacing buckets.
const mostly = 0.6

// Input is what a refresh is decided from.
type Input struct {
	Full      string // not empty: the reason why stored rows cannot be kept
	NotClosed string // not empty: the reason why the query is not bucket-closed
	Changes   []Change
}

// Change is what happened to one source since the last refresh.
type Change struct {
	Source     string
	Driving    bool // the source whose column is bucketed
	None       bool // no row differs
	Everything bool
	Reason     string // why Everything
	Buckets    Set    // Driving: the buckets of everything that was added, removed or changed
}

// Decision is a strategy, with the coded reason why it is not a better one.
type Decision struct {
	Strategy Strategy
	Reason   string
	Buckets  Set
}

// Choose decides. It never returns a strategy that could keep a wrong row: whatever is
// not known to be untouched is recomputed.
func Choose(in Input) Decision {
	if in.Full != "" {
		return Decision{Strategy: Full, Reason: in.Full}
	}
	changed := slices.DeleteFunc(slices.Clone(in.Changes), func(c Change) bool { return c.None })
	switch {
	case len(changed) == 0:
		return Decision{Strategy: None}
	case in.NotClosed != "":
		return Decision{Strategy: Full, Reason: in.NotClosed}
	}
	for _, c := range changed {
		switch {
		case !c.Driving:
			return Decision{Strategy: Full, Reason: ReasonSeveralChanged}
		case c.Everything:
			return Decision{Strategy: Full, Reason: c.Reason}
		}
	}
	// The driving source is one, so at most one change is left.
	d := Decision{Strategy: Buckets, Buckets: changed[0].Buckets}
	if d.Buckets.Empty() {
		return Decision{Strategy: None}
	}
	return d
}

// WorthIt reports whether reading part of total bytes justifies replacing buckets.
func WorthIt(part, total int64) bool {
	return total == 0 || float64(part) <= mostly*float64(total)
}
