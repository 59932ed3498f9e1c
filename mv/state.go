package mv

// Keys of a storage snapshot's summary.
const (
	KeyRefreshState       = "refresh-state"
	KeySourceTables       = "source-table-states" // older form, written too
	KeySourceViews        = "source-view-states"  // older form, written too
	KeyViewUUID           = "catalogd.view-uuid"
	KeyRefreshID          = "catalogd.refresh-id"
	KeyMode               = "catalogd.mode"     // full or incremental
	KeyStrategy           = "catalogd.strategy" // none, append, buckets, full
	KeyReason             = "catalogd.reason"
	KeyEngine             = "catalogd.engine"
	KeyTimeZone           = "catalogd.time-zone"
	KeyBase               = "catalogd.base" // {base table uuid: snapshot id} through all levels
	NoSnapshot      int64 = -1              // a table that has no snapshot yet
)

// RefreshState is what a storage snapshot says it reflects (Iceberg materialized view
// specification, apache/iceberg#11041).
type RefreshState struct {
	ViewVersionID  int
	StartTimestamp int64 // milliseconds
	Sources        []SourceState
	// Schemas holds the schema id of each source table by its uuid (our key
	// catalogd.schemas): a schema can change without a new snapshot.
	Schemas map[string]int
}

// SourceState is one entry of source-states.
type SourceState struct {
	Type       string // table or view
	Catalog    string
	Namespace  []string
	Name       string
	UUID       string
	SnapshotID int64  // tables
	Ref        string // tables; empty means main
	VersionID  int    // views
}
