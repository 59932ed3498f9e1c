package mv

import (
	"context"
	"encoding/json"

	"github.com/catalogd/catalogd/mv/plan"
)

// Touched says what may differ in a table between two snapshots: an upper bound, never
// less than the truth.
type Touched struct {
	None        bool   // no row differs
	OnlyReplace bool   // None, by compactions only
	Everything  bool   // any value of the column may be touched
	Reason      string // why Everything
	Ranges      []plan.Range
	Null        bool
	Snapshots   []int64 // in between, oldest first
	BytesRead   int64
}

// Restriction selects the rows whose value of a column lies in a set.
type Restriction struct {
	FieldID int
	Set     plan.Set
}

// Sources reads tables at pinned snapshots through their manifests; mv/changes
// implements it. A file that is missing is catalog.KindNotFound, a storage that does not
// answer catalog.KindUnavailable.
type Sources interface {
	// Between says what changed after snapshot from up to snapshot to, by the values of one
	// column (field id 0: only whether anything did).
	Between(ctx context.Context, doc []byte, from, to int64, fieldID int) (Touched, error)
	// Plan lists the files of a table at a snapshot; r leaves out what is provably outside.
	Plan(ctx context.Context, doc []byte, snapshotID int64, r *Restriction) (Planned, error)
}

// Planned is the files of a table at a snapshot.
type Planned struct {
	Schema      json.RawMessage
	NameMapping json.RawMessage
	Files       []InputFile
	Bytes       int64 // of Files
	TotalBytes  int64 // of all files of the snapshot
}

// Publication is one new snapshot of a storage table.
type Publication struct {
	Document []byte // storage metadata that the run was planned from
	Head     int64  // its current snapshot
	All      bool   // the new files replace everything
	Remove   *Stored
	Add      []OutputFile
	Summary  map[string]string
	Keep     int     // newest snapshots that stay
	Leased   []int64 // older snapshots that stay all the same
}

// Stored is files of a storage table, as [Publisher.Stored] found them.
type Stored struct {
	Files []InputFile
	Bytes int64
	// Whole says that every row of the files is provably in the restriction. Otherwise they
	// hold other rows too, which replacing the files would lose.
	Whole  bool
	Handle any // the publisher's own
}

// Staged is a snapshot that is written, but not committed.
type Staged struct {
	Requirements []json.RawMessage
	Updates      []json.RawMessage
	SnapshotID   int64
	Written      []string // manifests and manifest list: garbage if the commit fails
}

// Publisher writes the manifests of storage snapshots; mv/publish implements it. It
// commits nothing.
type Publisher interface {
	// Stored lists the files of the storage table that may hold rows of r; nil means all.
	Stored(ctx context.Context, doc []byte, r *Restriction) (Stored, error)
	// Replace stages one overwrite snapshot.
	Replace(ctx context.Context, p Publication) (Staged, error)
	// NoData stages a snapshot with the same rows and another summary.
	NoData(ctx context.Context, p Publication) (Staged, error)
	// Discard removes files that were written for nothing: those listed, and everything
	// below folder unless it is empty.
	Discard(ctx context.Context, written []string, folder string) error
}
