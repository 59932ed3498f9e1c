package publish

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"time"

	"github.com/apache/iceberg-go"
	iceio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"
	"github.com/google/uuid"

	"github.com/catalogd/catalogd/catalog"
	"github.com/catalogd/catalogd/mv"
)

// DefaultKeep is how many of its newest snapshots a storage table keeps.
const DefaultKeep = 100

// Remover deletes files; package catalog/storage implements it.
type Remover interface {
	// Remove deletes one file; a missing one is no error.
	Remove(ctx context.Context, location string) error
	// RemoveAll deletes every file below a folder.
	RemoveAll(ctx context.Context, folder string) error
}

// Publisher writes snapshots of storage tables.
type Publisher struct {
	fs      iceio.WriteFileIO
	files   Remover
	now     func() time.Time
	perFile int // live entries that fill a manifest
	small   int // half-empty manifests that are tolerated
}

// Option changes a [Publisher].
type Option func(*Publisher)

// WithClock replaces time.Now.
func WithClock(now func() time.Time) Option { return func(p *Publisher) { p.now = now } }

// WithManifestEntries sets how many files a manifest lists at most.
func WithManifestEntries(n int) Option { return func(p *Publisher) { p.perFile = max(n, 2) } }

// New returns a Publisher that reads and writes through fs and cleans up through files.
func New(fs iceio.WriteFileIO, files Remover, options ...Option) *Publisher {
	p := &Publisher{fs: fs, files: files, now: time.Now, perFile: 500, small: 8}
	for _, o := range options {
		o(p)
	}
	return p
}

var _ mv.Publisher = (*Publisher)(nil)

// Commit is a snapshot that is written, but not yet part of the table, with what it cost.
type Commit struct {
	mv.Staged
	Expired      []int64 // snapshots that the commit removes
	Rows         int64   // added
	RowsRemoved  int64
	BytesAdded   int64
	Manifests    int // in the new manifest list
	ManifestsIn  int // read
	ManifestsOut int // written
}

// Replace implements [mv.Publisher]. It fails with KindCommitFailed if the document's head
// is not the expected one or does not list a file to remove: plan again.
func (p *Publisher) Replace(ctx context.Context, pub mv.Publication) (mv.Staged, error) {
	c, err := p.Stage(ctx, pub)
	if err != nil {
		return mv.Staged{}, err
	}
	return c.Staged, nil
}

// Stage is [Publisher.Replace] with the details.
func (p *Publisher) Stage(ctx context.Context, pub mv.Publication) (*Commit, error) {
	st, err := p.begin(pub)
	if err != nil {
		return nil, err
	}
	c, err := p.replace(ctx, st, pub)
	return p.finish(ctx, st, c, err)
}

func (p *Publisher) replace(ctx context.Context, st *stage, pub mv.Publication) (*Commit, error) {
	added, err := p.dataFiles(ctx, st.meta, pub.Add)
	if err != nil {
		return nil, err
	}
	change, err := newChange(pub, added)
	if err != nil {
		return nil, err
	}
	manifests, err := st.rewrite(ctx, change)
	if err != nil {
		return nil, err
	}
	return st.commit(pub, table.OpOverwrite, manifests, change.summary(!st.meta.PartitionSpec().IsUnpartitioned()))
}

// NoData implements [mv.Publisher]: a replace snapshot that lists the same manifests as the
// head and differs only in its summary. The manifest list is a new file: two snapshots
// never share one, so that expiring the older cannot take the newer one's away.
func (p *Publisher) NoData(ctx context.Context, pub mv.Publication) (mv.Staged, error) {
	st, err := p.begin(pub)
	if err != nil {
		return mv.Staged{}, err
	}
	if st.head == nil {
		return mv.Staged{}, catalog.Errorf(catalog.KindUnprocessable, "storage table %s has no snapshot to carry on", st.meta.TableUUID())
	}
	if pub.All || pub.Remove != nil || len(pub.Add) > 0 {
		return mv.Staged{}, catalog.Errorf(catalog.KindUnprocessable, "a snapshot without data cannot add or remove files")
	}
	c, err := st.commit(pub, table.OpReplace, st.manifests, summary{})
	if c, err = p.finish(ctx, st, c, err); err != nil {
		return mv.Staged{}, err
	}
	return c.Staged, nil
}

// finish removes what a failed attempt wrote.
func (p *Publisher) finish(ctx context.Context, st *stage, c *Commit, err error) (*Commit, error) {
	if err == nil {
		return c, nil
	}
	ctx = context.WithoutCancel(ctx)
	for _, location := range st.written {
		err = errors.Join(err, p.files.Remove(ctx, location))
	}
	return nil, err
}

// stage is a snapshot under construction.
type stage struct {
	*Publisher
	meta       table.Metadata
	head       *table.Snapshot // nil: the table has none
	manifests  []iceberg.ManifestFile
	attempt    uuid.UUID
	snapshotID int64
	sequence   int64
	written    []string
	read       int
	wrote      int
}

func (p *Publisher) begin(pub mv.Publication) (*stage, error) {
	meta, err := table.ParseMetadataBytesDeferredSnapshots(pub.Document)
	if err != nil {
		return nil, catalog.Errorf(catalog.KindUnprocessable, "metadata of the storage table cannot be read").Because(err)
	}
	if meta.Version() != 2 {
		return nil, catalog.Errorf(catalog.KindUnprocessable,
			"storage table %s has format version %d, only version 2 can be published to", meta.TableUUID(), meta.Version())
	}
	st := &stage{Publisher: p, meta: meta, attempt: uuid.New(), sequence: meta.LastSequenceNumber() + 1}
	for name, ref := range meta.Refs() {
		if name == table.MainBranch {
			st.head = meta.SnapshotByID(ref.SnapshotID)
		}
	}
	if got := headID(st.head); got != pub.Head {
		return nil, catalog.Errorf(catalog.KindCommitFailed,
			"storage table %s is at snapshot %d, not at %d that the refresh was planned from", meta.TableUUID(), got, pub.Head)
	}
	if st.snapshotID, err = newSnapshotID(meta); err != nil {
		return nil, err
	}
	if st.head != nil {
		if st.manifests, err = st.head.Manifests(p.fs); err != nil {
			return nil, catalog.Errorf(catalog.KindUnavailable, "cannot read manifest list %s", st.head.ManifestList).Because(err)
		}
	}
	return st, nil
}

func headID(s *table.Snapshot) int64 {
	if s == nil {
		return mv.NoSnapshot
	}
	return s.SnapshotID
}

// newSnapshotID picks a positive id that the table does not use.
func newSnapshotID(meta table.Metadata) (int64, error) {
	for {
		var b [8]byte
		if _, err := rand.Read(b[:]); err != nil {
			return 0, err
		}
		id := int64(binary.LittleEndian.Uint64(b[:]) & math.MaxInt64)
		if id > 0 && meta.SnapshotByID(id) == nil {
			return id, nil
		}
	}
}

// commit writes the manifest list and assembles the requirements and updates.
func (st *stage) commit(pub mv.Publication, op table.Operation, manifests []iceberg.ManifestFile, sum summary) (*Commit, error) {
	location, err := st.writeList(manifests)
	if err != nil {
		return nil, err
	}
	props := sum.properties(st.head)
	maps.Copy(props, pub.Summary)
	snap := table.Snapshot{
		SnapshotID: st.snapshotID, SequenceNumber: st.sequence, ManifestList: location,
		TimestampMs: max(st.now().UnixMilli(), st.meta.LastUpdatedMillis()),
		Summary:     &table.Summary{Operation: op, Properties: props},
	}
	schemaID := st.meta.CurrentSchema().ID
	snap.SchemaID = &schemaID
	var parent *int64
	if st.head != nil {
		parent = &st.head.SnapshotID
	}
	snap.ParentSnapshotID = parent
	expired := st.expired(pub)
	requirements := []table.Requirement{table.AssertTableUUID(st.meta.TableUUID()), table.AssertRefSnapshotID(table.MainBranch, parent)}
	updates := []table.Update{table.NewAddSnapshotUpdate(&snap), st.moveMain()}
	if len(expired) > 0 {
		updates = append(updates, table.NewRemoveSnapshotsUpdate(expired, false))
	}
	c := &Commit{
		Staged: mv.Staged{SnapshotID: st.snapshotID, Written: st.written}, Expired: expired, Rows: sum.addedRecords, RowsRemoved: sum.removedRecords,
		BytesAdded: sum.addedBytes, Manifests: len(manifests), ManifestsIn: st.read, ManifestsOut: st.wrote,
	}
	if c.Requirements, err = marshalAll(requirements); err != nil {
		return nil, err
	}
	c.Updates, err = marshalAll(updates)
	return c, err
}

// moveMain keeps the retention settings of the branch.
func (st *stage) moveMain() table.Update {
	var refAge, snapAge int64
	var keep int
	for name, ref := range st.meta.Refs() {
		if name != table.MainBranch {
			continue
		}
		if ref.MaxRefAgeMs != nil {
			refAge = *ref.MaxRefAgeMs
		}
		if ref.MaxSnapshotAgeMs != nil {
			snapAge = *ref.MaxSnapshotAgeMs
		}
		if ref.MinSnapshotsToKeep != nil {
			keep = *ref.MinSnapshotsToKeep
		}
	}
	return table.NewSetSnapshotRefUpdate(table.MainBranch, st.snapshotID, table.BranchRef, refAge, snapAge, keep)
}

func marshalAll[T any](items []T) ([]json.RawMessage, error) {
	out := make([]json.RawMessage, len(items))
	for i, item := range items {
		raw, err := json.Marshal(item)
		if err != nil {
			return nil, err
		}
		out[i] = raw
	}
	return out, nil
}
