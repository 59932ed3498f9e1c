package scan

import (
	"container/list"
	"context"
	"encoding/json"
	"sync"

	"github.com/catalogd/catalogd/catalog"
)

// document finds what a request needs in the metadata of a table. The form without the
// history is enough for most, and much shorter.
func (s *Service) document(l catalog.Loaded, r Request) (*document, error) {
	plain, err := l.Document.ForRefs().Plain()
	if err != nil {
		return nil, damaged(l, err)
	}
	doc, err := parseDocument(plain)
	if err != nil {
		return nil, err
	}
	if l.Document.Refs.Empty() || !r.incremental() && (r.SnapshotID == nil || doc.byID[*r.SnapshotID] != nil) {
		return doc, nil
	}
	if plain, err = l.Document.All.Plain(); err != nil {
		return nil, damaged(l, err)
	}
	return parseDocument(plain)
}

func damaged(l catalog.Loaded, err error) error {
	return catalog.Errorf(catalog.KindInternal, "stored metadata of %s is damaged", l.Pointer.Ident).Because(err)
}

// current returns the scan of a plan, nil if its pages are stored. It fails with
// KindNoSuchPlanTask if a snapshot that the plan needs has expired: files may be gone.
func (s *Service) current(ctx context.Context, l catalog.Loaded, p Plan) (*Scan, error) {
	scan, location := s.ready.get(p.ID)
	if location == l.Pointer.MetadataLocation && scan != nil {
		return scan, nil
	}
	if p.Stored && p.MetadataLocation == l.Pointer.MetadataLocation {
		return nil, nil
	}
	if p.Stored || scan != nil {
		ok, err := stillThere(l, p.Request)
		if err != nil {
			return nil, err
		}
		if !ok {
			s.ready.drop(p.ID)
			return nil, gone(p.Request)
		}
		if scan != nil {
			s.ready.put(p.ID, l.Pointer.MetadataLocation, scan)
		}
		return scan, nil
	}
	doc, err := s.document(l, p.Request)
	if err != nil {
		return nil, err
	}
	if !doc.has(p.Request) {
		return nil, gone(p.Request)
	}
	if scan, err = prepare(ctx, s.files, doc, p.Request); err != nil {
		return nil, err
	}
	scan.cut(s.limits)
	s.ready.put(p.ID, l.Pointer.MetadataLocation, scan)
	return scan, nil
}

func gone(r Request) error {
	id := r.SnapshotID
	if r.incremental() {
		id = r.EndSnapshotID
	}
	return catalog.Errorf(catalog.KindNoSuchPlanTask, "The plan cannot go on: snapshot %d has expired since it was made; plan again", *id)
}

// has reports whether a document still has the snapshot of a settled request.
func (d *document) has(r Request) bool {
	id := r.SnapshotID
	if r.incremental() {
		id = r.EndSnapshotID
	}
	return id == nil || d.byID[*id] != nil
}

// stillThere is [document.has] without a whole document.
func stillThere(l catalog.Loaded, r Request) (bool, error) {
	for _, form := range []catalog.Encoded{l.Document.Refs, l.Document.All} {
		if form.Empty() {
			continue
		}
		plain, err := form.Plain()
		if err != nil {
			return false, damaged(l, err)
		}
		d := document{byID: make(map[int64]*snapshot)}
		var part struct {
			Snapshots []*snapshot `json:"snapshots"`
		}
		if err := json.Unmarshal(plain, &part); err != nil {
			return false, damaged(l, err)
		}
		for _, s := range part.Snapshots {
			d.byID[s.ID] = s
		}
		if d.has(r) {
			return true, nil
		}
	}
	return false, nil
}

// shelf keeps a few prepared scans in memory, with the delete files that they have read:
// the pages of a plan are mostly asked for one after the other. It is only a shortcut.
type shelf struct {
	mu    sync.Mutex
	order *list.List // front: most recently used
	held  map[string]*list.Element
}

type shelved struct {
	plan     string
	location string // of the metadata in which the scan was found to be possible
	scan     *Scan
}

// shelfScans bounds the shelf. A scan holds its manifest lists and delete files, which
// are fewer than a job would be asked to plan for.
const shelfScans = 16

func newShelf() *shelf { return &shelf{order: list.New(), held: make(map[string]*list.Element)} }

func (s *shelf) get(plan string) (scan *Scan, location string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.held[plan]
	if !ok {
		return nil, ""
	}
	s.order.MoveToFront(e)
	x := e.Value.(shelved)
	return x.scan, x.location
}

func (s *shelf) put(plan, location string, scan *Scan) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, ok := s.held[plan]; ok {
		s.order.Remove(e)
	}
	s.held[plan] = s.order.PushFront(shelved{plan, location, scan})
	for s.order.Len() > shelfScans {
		last := s.order.Back()
		s.order.Remove(last)
		delete(s.held, last.Value.(shelved).plan)
	}
}

func (s *shelf) drop(plan string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, ok := s.held[plan]; ok {
		s.order.Remove(e)
		delete(s.held, plan)
	}
}
