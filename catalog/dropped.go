package catalog

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/catalogd/catalogd/catalog/metadata"
)

// Dropped is an object that was dropped: as it was, and what will become of it.
type Dropped struct {
	ID        int64 // of the drop, since an object can be dropped more than once
	Pointer   Pointer
	DroppedAt time.Time
	ExpiresAt time.Time // until then it can come back
	Purge     bool      // its files go when it expires
	// Registration is what the layer of materialized views knew about it. The catalog never
	// reads it.
	Registration json.RawMessage
}

// DroppedMatch picks dropped objects. Empty members match everything.
type DroppedMatch struct {
	UUID  string
	Ident TableIdent
	// StorageOf picks the storage table that was dropped together with a view; it is the
	// drop of the view.
	StorageOf *Dropped
}

// DroppedPage asks for a page of dropped objects, the newest first.
type DroppedPage struct {
	PageRequest           // After is what Next was
	Namespace   Namespace // nil: all
}

// Life is the part of a [Store] that knows about objects after their drop, and about
// those that may not be dropped.
type Life interface {
	// ListDropped lists what can come back, without storage tables unless p asks for them.
	// KindNoSuchWarehouse.
	ListDropped(ctx context.Context, warehouse string, p DroppedPage) (Page[Dropped], error)
	// FindDropped finds what can come back, the newest first.
	FindDropped(ctx context.Context, warehouse string, m DroppedMatch) ([]Dropped, error)
	// ExpireDropped takes the way back from a dropped object, and from what was dropped
	// with it; with purge their files are deleted, too. KindNotFound if there is none.
	ExpireDropped(ctx context.Context, warehouse string, id int64, purge bool) error
	// Obsolete names the table that has outgrown a metadata file which is about to be
	// deleted; empty if the file is none of those.
	Obsolete(ctx context.Context, metadataLocation string) (table string, err error)
	// Protected reports whether an object is protected. KindNoSuch{Table,View,Namespace}.
	Protected(ctx context.Context, warehouse string, target Target) (bool, error)
	// SetProtected protects an object from being dropped, or lifts that.
	// KindNoSuch{Table,View,Namespace}.
	SetProtected(ctx context.Context, warehouse string, target Target, protected bool) error
}

// UndropProposal is a dropped object about to come back.
type UndropProposal struct {
	Warehouse Warehouse
	Object    Dropped
	To        TableIdent
	// Storage is the storage table that was dropped with the view, nil if there is none.
	Storage *Dropped
	// StorageTo is the name that the guard gives to Storage.
	StorageTo TableIdent
	// View is the view's document if the guard has edited it.
	View       *metadata.View
	Attachment any
}

// UndropRequest names a dropped object by its uuid, its name, or both.
type UndropRequest struct {
	UUID  string
	Ident TableIdent
	To    TableIdent // another name for it; zero: its own
}

// ListDropped lists the objects of a warehouse that can come back, the newest first.
func (s *Service) ListDropped(ctx context.Context, warehouse string, p DroppedPage) (Page[Dropped], error) {
	return s.store.ListDropped(ctx, warehouse, p)
}

// ExpireDropped takes the way back from a dropped object before its time is over.
func (s *Service) ExpireDropped(ctx context.Context, warehouse, uuid string, purge bool) error {
	d, err := s.findDropped(ctx, warehouse, DroppedMatch{UUID: uuid})
	if err != nil {
		return err
	}
	if d.Pointer.StorageOf != "" {
		return s.belongsToView(ctx, warehouse, d)
	}
	return s.store.ExpireDropped(ctx, warehouse, d.ID, purge)
}

// Undrop brings back a dropped object, with its storage table if it is a materialized
// view, as it was.
func (s *Service) Undrop(ctx context.Context, warehouse string, req UndropRequest) (Pointer, error) {
	w, err := s.store.Warehouse(ctx, warehouse)
	if err != nil {
		return Pointer{}, err
	}
	d, err := s.findDropped(ctx, w.Name, DroppedMatch{UUID: req.UUID, Ident: req.Ident})
	if err != nil {
		return Pointer{}, err
	}
	if d.Pointer.StorageOf != "" {
		return Pointer{}, s.belongsToView(ctx, w.Name, d)
	}
	p := &UndropProposal{Warehouse: w, Object: d, To: req.To}
	if p.To.Name == "" {
		p.To = d.Pointer.Ident
	}
	if err := CheckIdent(p.To); err != nil {
		return Pointer{}, err
	}
	if d.Pointer.Type == TypeView {
		with, err := s.store.FindDropped(ctx, w.Name, DroppedMatch{StorageOf: &d})
		if err != nil {
			return Pointer{}, err
		}
		if len(with) > 0 {
			p.Storage, p.StorageTo = &with[0], with[0].Pointer.Ident
		}
	}
	if err := s.guard.Undrop(ctx, p); err != nil {
		return Pointer{}, err
	}
	return s.bringBack(ctx, p)
}

// bringBack commits what the guard has agreed to.
func (s *Service) bringBack(ctx context.Context, p *UndropProposal) (Pointer, error) {
	row := p.Object.Pointer
	row.Ident = p.To
	changes := []Change{{Op: OpCreate, Pointer: row, Undrop: p.Object.ID, Attachment: p.Attachment}}
	if p.Storage != nil {
		storage := p.Storage.Pointer
		storage.Ident = p.StorageTo
		changes = append(changes, Change{Op: OpCreate, Pointer: storage, Undrop: p.Storage.ID})
	}
	if p.View != nil {
		edited, err := s.prepare(ctx, Proposed{Op: OpSwap, Row: row, From: row.MetadataLocation, View: p.View})
		if err != nil {
			return Pointer{}, err
		}
		changes = append(changes, edited)
		row = edited.Pointer
	}
	err := s.commit(ctx, changes)
	if KindOf(err) == KindAlreadyExists {
		// The store knows that the name is taken, not by what.
		if other, ok, findErr := s.Find(ctx, row.Warehouse, p.To); findErr == nil && ok {
			return Pointer{}, Errorf(KindAlreadyExists, "Cannot undrop %s as %s. %s already exists: give it another name",
				p.Object.Pointer.Ident, p.To, other.Type.word()).Because(err)
		}
	}
	if err != nil {
		return Pointer{}, err
	}
	return row, nil
}

// findDropped finds one object. Of several drops of the same object the latest counts; a
// name that different objects had does not say which of them is meant.
func (s *Service) findDropped(ctx context.Context, warehouse string, m DroppedMatch) (Dropped, error) {
	if m.UUID == "" && m.Ident.Name == "" {
		return Dropped{}, Errorf(KindInvalid, "Name the dropped object by its uuid or its name")
	}
	found, err := s.store.FindDropped(ctx, warehouse, m)
	if err != nil {
		return Dropped{}, err
	}
	if len(found) == 0 {
		what := m.UUID
		if what == "" {
			what = m.Ident.String()
		}
		return Dropped{}, Errorf(KindNotFound, "Nothing that was dropped and can come back is called %s: list it with `catalogd table dropped`", what)
	}
	var several []string
	for _, d := range found {
		if d.Pointer.UUID != found[0].Pointer.UUID {
			several = append(several, d.Pointer.UUID+" (dropped "+d.DroppedAt.UTC().Format(time.RFC3339)+")")
		}
	}
	if len(several) > 0 {
		first := found[0].Pointer.UUID + " (dropped " + found[0].DroppedAt.UTC().Format(time.RFC3339) + ")"
		return Dropped{}, Errorf(KindConflict, "Several dropped objects were called %s, name one by its uuid: %s, %s", m.Ident, first, strings.Join(several, ", "))
	}
	return found[0], nil
}

// belongsToView is the refusal to treat a dropped storage table apart from its view.
func (s *Service) belongsToView(ctx context.Context, warehouse string, storage Dropped) error {
	views, err := s.store.FindDropped(ctx, warehouse, DroppedMatch{UUID: storage.Pointer.StorageOf})
	if err != nil {
		return err
	}
	name := storage.Pointer.StorageOf
	if len(views) > 0 {
		name = views[0].Pointer.Ident.String()
	}
	return Errorf(KindConflict, "%s is the storage table of materialized view %s: name the view instead", storage.Pointer.Ident, name)
}
