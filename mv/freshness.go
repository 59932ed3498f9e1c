package mv

import (
	"time"

	"github.com/catalogd/catalogd/catalog"
)

// Status is the one-word freshness of a materialized view.
type Status string

// The statuses. Invalid is checked before age.
const (
	StatusFresh          Status = "fresh"           // current, or inside the max-staleness window
	StatusStale          Status = "stale"           // older than max-staleness allows
	StatusInvalid        Status = "invalid"         // computed from another query, or a source is gone
	StatusNeverRefreshed Status = "never-refreshed" // the storage table has no snapshot
	StatusUndetermined   Status = "undetermined"    // not enough is known to say
)

// Reason is a coded cause; docs/reasons.md lists them all.
type Reason string

// The reasons of a verdict.
const (
	ReasonUpToDate         Reason = "UP_TO_DATE"
	ReasonOnlyCompaction   Reason = "ONLY_COMPACTION"       // sources were rewritten without changing a row
	ReasonWithinStaleness  Reason = "WITHIN_MAX_STALENESS"  // stale, but not beyond what the view allows
	ReasonSourceChanged    Reason = "SOURCE_CHANGED"        // a source has newer snapshots
	ReasonSourceRolled     Reason = "SOURCE_ROLLED_BACK"    // the recorded snapshot is no ancestor of the head
	ReasonSourceRecreated  Reason = "SOURCE_RECREATED"      // another table has the name now
	ReasonSourceMissing    Reason = "SOURCE_MISSING"        // a source was dropped or renamed
	ReasonSourceSchema     Reason = "SOURCE_SCHEMA_CHANGED" // a column the query uses may have changed
	ReasonSourceMVStale    Reason = "SOURCE_MV_STALE"       // a materialized view it reads is not up to date
	ReasonSourceView       Reason = "SOURCE_VIEW_CHANGED"   // a plain view in between has another version
	ReasonDefinition       Reason = "DEFINITION_CHANGED"    // storage reflects another view version
	ReasonNeverRefreshed   Reason = "NEVER_REFRESHED"       //
	ReasonNoState          Reason = "NO_REFRESH_STATE"      // the storage snapshot says nothing about its sources
	ReasonUnreadable       Reason = "UNREADABLE_STATE"      // refresh-state or a document cannot be read
	ReasonSourceUnreadable Reason = "SOURCE_UNREADABLE"     // a file of a source cannot be read
	ReasonForeignStorage   Reason = "STORAGE_ELSEWHERE"     // storage-table names another catalog
)

// Verdict is how fresh a materialized view is.
type Verdict struct {
	Status     Status
	UpToDate   bool
	Reason     Reason
	Detail     string    // one sentence for a person
	StaleSince time.Time // zero when up to date
	Behind     []Behind
}

// Behind says which snapshots of a source are not reflected.
type Behind struct {
	Source      catalog.TableIdent
	UUID        string
	Recorded    int64   // snapshot id reflected, NoSnapshot if none
	Current     int64   // head
	Snapshots   []int64 // not reflected, oldest first; nil if the chain is broken
	Reason      Reason
	OnlyReplace bool // every snapshot between is a compaction
}

// Freshness is the full answer about one materialized view.
type Freshness struct {
	View         catalog.TableIdent
	ViewUUID     string
	VersionID    int
	Storage      catalog.TableIdent
	StorageSnap  int64 // current snapshot of the storage table, NoSnapshot if none
	Dialect      Dialect
	SQL          string
	MaxStaleness Staleness
	Mode         RefreshMode
	Direct       Verdict // against its own sources
	Recursive    Verdict // also through the materialized views it reads
	Sources      []Source
	Suspended    bool
	Failures     int       // in a row
	NotBefore    time.Time // next attempt after a failure; zero if none is held back
	LastError    string
	Job          JobState // empty if no job is queued or running
	LastRefresh  *Refresh
}

// JobState is the state of a view's refresh job.
type JobState string

// The job states.
const (
	JobNone    JobState = ""
	JobQueued  JobState = "queued"
	JobRunning JobState = "running"
)

// RefreshStatus is the state of one run.
type RefreshStatus string

// The states of a run.
const (
	RefreshRunning   RefreshStatus = "running"
	RefreshSucceeded RefreshStatus = "succeeded"
	RefreshFailed    RefreshStatus = "failed"
	RefreshLost      RefreshStatus = "lost" // its process died; another run took over
)

// Refresh is one run, finished or not.
type Refresh struct {
	ID           string
	ViewUUID     string
	Status       RefreshStatus
	Action       string // refreshed, unchanged
	Mode         string // full, incremental
	Strategy     string // none, buckets, full
	Reason       string // coded: why not a better strategy, or why it failed
	Error        string
	Engine       string
	SnapshotID   int64 // storage snapshot published, NoSnapshot if none
	Buckets      int64 // recomputed
	BucketsTotal int64 // known to exist, 0 if unknown
	Rows         int64 // written
	BytesRead    int64
	BytesWritten int64
	CPUSeconds   float64
	Phases       map[string]time.Duration // detect, plan, execute, publish
	Started      time.Time
	Ended        time.Time
	Percent      float64
	Generation   int64 // the newest manual request that this run answers
}
