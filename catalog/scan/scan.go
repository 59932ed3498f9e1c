package scan

import (
	"context"
	"errors"
	"math"
	"sync"

	"github.com/apache/iceberg-go"
)

// Limits say how plans are cut. Files are counted as manifest lists do, before a filter
// has looked at them.
type Limits struct {
	// PageFiles is how many files a page has at least, since it consists of whole
	// manifests; 2,000 if zero.
	PageFiles int64
	// InlineFiles is how many files are answered at once; two and a half pages if zero.
	InlineFiles int64
	// AsyncFiles is from how many files on a job makes the plan; 100,000 if zero.
	AsyncFiles int64
}

func (l Limits) withDefaults() Limits {
	if l.PageFiles == 0 {
		l.PageFiles = 2000
	}
	if l.InlineFiles == 0 {
		l.InlineFiles = l.PageFiles * 5 / 2
	}
	if l.AsyncFiles == 0 {
		l.AsyncFiles = 100_000
	}
	return l
}

// unknownFiles is what a manifest counts for whose list does not say how many files it has.
const unknownFiles = 1000

// Scan is a scan of a table that is ready to be planned, page by page. It is safe for
// concurrent use.
type Scan struct {
	files    FS
	doc      *document
	request  Request
	match    *matcher
	stats    map[int]bool
	snapshot *snapshot // nil: there is none
	schemaID int
	data     []iceberg.ManifestFile
	deletes  []iceberg.ManifestFile
	appended map[int64]bool  // incremental: the snapshots whose files are wanted
	seen     map[string]bool // manifests
	pages    [][]iceberg.ManifestFile

	mu    sync.Mutex
	index *deleteIndex // nil until it is needed
}

// prepare binds a request to a table and reads the manifest lists that it needs.
func prepare(ctx context.Context, files FS, doc *document, r Request) (*Scan, error) {
	s := &Scan{files: files, doc: doc, request: r, seen: make(map[string]bool)}
	snaps, err := s.snapshots()
	if err != nil {
		return nil, err
	}
	sc, err := doc.schema(s.schemaID)
	if err != nil {
		return nil, err
	}
	if s.stats, err = r.columns(sc); err != nil {
		return nil, err
	}
	filter, err := parser{schema: sc, caseSensitive: !r.CaseInsensitive}.filter(r.Filter)
	if err != nil {
		return nil, err
	}
	s.match = newMatcher(doc, filter)
	for _, snap := range snaps {
		list, err := doc.list(ctx, files, snap)
		if err != nil {
			return nil, err
		}
		for _, m := range list {
			if err := s.add(snap, m); err != nil {
				return nil, err
			}
		}
	}
	s.dropOldDeletes()
	return s, nil
}

// snapshots finds the snapshots whose manifest lists are needed, and the schema.
func (s *Scan) snapshots() ([]*snapshot, error) {
	d, r := s.doc, s.request
	s.schemaID = d.CurrentSchemaID
	at := d.CurrentSnapshotID
	switch {
	case r.incremental():
		at = r.EndSnapshotID
	case r.SnapshotID != nil:
		at = r.SnapshotID
	}
	if at == nil || (at == d.CurrentSnapshotID && *at == -1) {
		return nil, nil
	}
	var ok bool
	if s.snapshot, ok = d.byID[*at]; !ok {
		return nil, invalid("Cannot find snapshot with ID %d: it never was or has expired", *at)
	}
	switch {
	case r.SchemaID != nil:
		s.schemaID = *r.SchemaID
	case r.UseSnapshotSchema && s.snapshot.SchemaID != nil:
		s.schemaID = *s.snapshot.SchemaID
	}
	if !r.incremental() {
		return []*snapshot{s.snapshot}, nil
	}
	found, ok := d.appends(*r.StartSnapshotID, *at)
	if !ok {
		return nil, invalid("Invalid scan: start-snapshot-id %d is not an ancestor of end-snapshot-id %d", *r.StartSnapshotID, *at)
	}
	s.appended = make(map[int64]bool, len(found))
	for _, f := range found {
		s.appended[f.ID] = true
	}
	return found, nil
}

// add takes a manifest if it may matter.
func (s *Scan) add(snap *snapshot, m iceberg.ManifestFile) error {
	if _, ok := s.doc.specs[int(m.PartitionSpecID())]; !ok {
		return unplannable("manifest %s has partition spec %d, which the metadata does not list", m.FilePath(), m.PartitionSpecID())
	}
	if s.request.incremental() {
		// Files that a later snapshot only carried on are in the manifest of the snapshot
		// that added them.
		if m.SnapshotID() != snap.ID || m.ManifestContent() != iceberg.ManifestContentData || m.AddedDataFiles() == 0 {
			return nil
		}
	}
	// Version 1 snapshots that list their manifests themselves share them.
	if s.seen[m.FilePath()] {
		return nil
	}
	s.seen[m.FilePath()] = true
	if (m.AddedDataFiles() == 0 && m.ExistingDataFiles() == 0) || !s.match.manifest(m) {
		return nil
	}
	if m.ManifestContent() == iceberg.ManifestContentDeletes {
		s.deletes = append(s.deletes, m)
	} else {
		s.data = append(s.data, m)
	}
	return nil
}

// dropOldDeletes leaves out delete manifests that are older than every data file.
func (s *Scan) dropOldDeletes() {
	oldest := int64(math.MaxInt64)
	for _, m := range s.data {
		oldest = min(oldest, m.MinSequenceNum())
	}
	kept := s.deletes[:0]
	for _, m := range s.deletes {
		if m.SequenceNum() >= oldest {
			kept = append(kept, m)
		}
	}
	s.deletes = kept
}

// liveFiles is how many live files a manifest lists.
func liveFiles(m iceberg.ManifestFile) int64 {
	if m.AddedDataFiles() < 0 || m.ExistingDataFiles() < 0 {
		return unknownFiles
	}
	return int64(m.AddedDataFiles()) + int64(m.ExistingDataFiles())
}

// size is how many files the scan has to look at.
func (s *Scan) size() (n int64) {
	for _, list := range [][]iceberg.ManifestFile{s.data, s.deletes} {
		for _, m := range list {
			n += liveFiles(m)
		}
	}
	return n
}

// cut divides the data manifests into pages. The division depends on nothing but the
// manifests and the limits, so that every process finds the same.
func (s *Scan) cut(l Limits) {
	var total int64
	for _, m := range s.data {
		total += liveFiles(m)
	}
	if total <= l.InlineFiles {
		s.pages = [][]iceberg.ManifestFile{s.data}
		return
	}
	var page []iceberg.ManifestFile
	var n int64
	for _, m := range s.data {
		if n > 0 && n+liveFiles(m) > l.PageFiles {
			s.pages, page, n = append(s.pages, page), nil, 0
		}
		page, n = append(page, m), n+liveFiles(m)
	}
	s.pages = append(s.pages, page)
}

// deleteFiles reads the delete manifests, once.
func (s *Scan) deleteFiles(ctx context.Context) (*deleteIndex, error) {
	if len(s.deletes) == 0 {
		return nil, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.index != nil {
		return s.index, nil
	}
	x := newDeleteIndex(s.doc)
	for _, m := range s.deletes {
		spec := s.doc.specs[int(m.PartitionSpecID())]
		if err := entries(ctx, s.files, m, detailMetrics, func(e entry) error { return x.add(e, spec) }); err != nil {
			return nil, err
		}
	}
	s.index = x
	return x, nil
}

// errEnough ends a page early.
var errEnough = errors.New("the wanted rows are found")

// read plans the files of some manifests. emit is called after each.
func (s *Scan) read(ctx context.Context, manifests []iceberg.ManifestFile, into *tasks) error {
	if len(manifests) == 0 {
		return nil
	}
	index, err := s.deleteFiles(ctx)
	if err != nil {
		return err
	}
	p := &page{scan: s, index: index, into: into, known: make(map[string]*partition)}
	for _, m := range manifests {
		err := entries(ctx, s.files, m, s.detail(), func(e entry) error { return p.add(s.match.specs[int(m.PartitionSpecID())], e) })
		if errors.Is(err, errEnough) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// detail is what of a manifest's entries is needed.
func (s *Scan) detail() detail {
	switch {
	case len(s.stats) > 0:
		return detailAll
	case s.match.filter.op == opTrue && len(s.deletes) == 0:
		return detailPlain
	default:
		return detailMetrics
	}
}

// page is one walk over manifests.
type page struct {
	scan  *Scan
	index *deleteIndex
	into  *tasks
	known map[string]*partition
	key   []byte
}

// add plans one file.
func (p *page) add(sm *specMatcher, e entry) error {
	s := p.scan
	if s.appended != nil && (!e.added || !s.appended[e.origin]) {
		return nil
	}
	p.key = sm.spec.appendKey(p.key[:0], e.tuple)
	part, ok := p.known[string(p.key)]
	if !ok {
		part = sm.partition(e.tuple)
		p.known[string(p.key)] = part
	}
	var read *stats
	own := func() *stats {
		if read == nil {
			read = statsOf(e.file)
		}
		return read
	}
	if part.residual.op == opFalse || (part.residual.op != opTrue && !s.match.file(part.residual, own())) {
		return nil
	}
	deletes, err := p.index.of(e, sm.spec, p.key, own)
	if err != nil {
		return err
	}
	p.into.add(sm.spec, e, s.stats, deletes, part.json)
	if s.request.MinRows > 0 && p.into.rows >= s.request.MinRows {
		return errEnough
	}
	return nil
}
