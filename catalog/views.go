package catalog

import (
	"context"

	"github.com/catalogd/catalogd/catalog/metadata"
)

// ListViews lists the views of a namespace, materialized ones included.
func (s *Service) ListViews(ctx context.Context, warehouse string, ns Namespace, p PageRequest) (Page[TableIdent], error) {
	return s.list(ctx, warehouse, ns, TypeView, p)
}

// LoadView returns a view and its document.
func (s *Service) LoadView(ctx context.Context, warehouse string, id TableIdent) (Loaded, error) {
	l, err := s.load(ctx, warehouse, id, TypeView)
	if err != nil {
		return Loaded{}, err
	}
	return l, s.checkFile(ctx, l.Pointer)
}

// ViewExists returns nil or KindNoSuchView.
func (s *Service) ViewExists(ctx context.Context, warehouse string, id TableIdent) error {
	_, err := s.store.Load(ctx, warehouse, id, TypeView, NoDocument)
	return err
}

// CreateView creates a view; if its version names a storage table, a materialized one.
func (s *Service) CreateView(ctx context.Context, warehouse string, ns Namespace, req CreateViewRequest) (Loaded, error) {
	id := TableIdent{Namespace: ns, Name: req.Name}
	return once(ctx, s, warehouse,
		func() (Loaded, error) { return s.createView(ctx, warehouse, id, req) },
		s.loadedAgain(ctx, warehouse, id, TypeView))
}

func (s *Service) createView(ctx context.Context, warehouse string, id TableIdent, req CreateViewRequest) (Loaded, error) {
	if err := CheckIdent(id); err != nil {
		return Loaded{}, err
	}
	w, err := s.free(ctx, warehouse, id, TypeView)
	if err != nil {
		return Loaded{}, err
	}
	location, err := s.place(ctx, w, id, req.Location)
	if err != nil {
		return Loaded{}, err
	}
	v, err := metadata.NewView(metadata.NewViewRequest{
		UUID: newUUID(), Location: location, Schema: req.Schema, ViewVersion: req.ViewVersion,
		Properties: req.Properties, Body: req.Body, Now: s.now(),
	})
	if err != nil {
		return Loaded{}, refusedView(err)
	}
	p := &ViewProposal{Warehouse: w, Ident: id, UUID: v.UUID(), View: v, Options: req.Options}
	if err := s.guard.View(ctx, p); err != nil {
		return Loaded{}, err
	}
	row := Pointer{Warehouse: w.Name, Ident: id, Type: TypeView}
	return s.one(ctx, Proposed{Op: OpCreate, Row: row, View: p.View, Attachment: p.Attachment}, p.Extra...)
}

// ReplaceView applies updates to a view while the requirements hold.
func (s *Service) ReplaceView(ctx context.Context, warehouse string, id TableIdent, req CommitRequest) (Loaded, error) {
	return once(ctx, s, warehouse,
		func() (Loaded, error) { return s.replaceView(ctx, warehouse, id, req) },
		s.loadedAgain(ctx, warehouse, id, TypeView))
}

func (s *Service) replaceView(ctx context.Context, warehouse string, id TableIdent, req CommitRequest) (Loaded, error) {
	turn, err := s.turns.take(ctx, hintOf(warehouse, id))
	if err != nil {
		return Loaded{}, err
	}
	defer turn.end(ctx)
	for range maxCommitAttempts {
		var (
			out  Loaded
			lost bool
		)
		out, lost, err = s.tryReplaceView(ctx, warehouse, id, req)
		if !lost {
			return out, err
		}
	}
	return Loaded{}, Errorf(KindCommitFailed, "Commit failed: view %s was changed by others %d times in a row, try again", id, maxCommitAttempts).Because(err)
}

func (s *Service) tryReplaceView(ctx context.Context, warehouse string, id TableIdent, req CommitRequest) (out Loaded, lost bool, err error) {
	base, err := s.load(ctx, warehouse, id, TypeView)
	if err != nil {
		return Loaded{}, false, err
	}
	plain, err := s.plain(base)
	if err != nil {
		return Loaded{}, false, err
	}
	before, err := metadata.ParseView(plain)
	if err != nil {
		return Loaded{}, false, Errorf(KindInternal, "view metadata of %s cannot be read", id).Because(err)
	}
	if err := before.Check(req.Requirements); err != nil {
		return Loaded{}, false, refusedView(err)
	}
	after := before.Clone()
	if err := after.Apply(req.Updates, metadata.ApplyContext{Now: s.now(), PreviousLocation: base.Pointer.MetadataLocation}); err != nil {
		return Loaded{}, false, refusedView(err)
	}
	w, err := s.store.Warehouse(ctx, base.Pointer.Warehouse)
	if err != nil {
		return Loaded{}, false, err
	}
	p := &ViewProposal{
		Warehouse: w, Ident: id, UUID: after.UUID(), BaseRow: &base.Pointer, Base: before, View: after, Options: req.Options,
	}
	if err := s.guard.View(ctx, p); err != nil {
		return Loaded{}, false, err
	}
	if !p.View.Changed() && len(p.Extra) == 0 {
		answersWith(ctx, base.Pointer.MetadataLocation)
		return base, false, nil
	}
	out, err = s.one(ctx, Proposed{
		Op: OpSwap, Row: base.Pointer, From: base.Pointer.MetadataLocation, View: p.View, Attachment: p.Attachment,
	}, p.Extra...)
	return out, KindOf(err) == KindCommitFailed, err
}

// DropView drops a view, and with a materialized one its storage table.
func (s *Service) DropView(ctx context.Context, warehouse string, id TableIdent) error {
	return s.DropViewWith(ctx, warehouse, id, nil)
}

// DropViewWith is [Service.DropView] with options for the guard.
func (s *Service) DropViewWith(ctx context.Context, warehouse string, id TableIdent, options any) error {
	return onceOnly(ctx, s, warehouse, func() error { return s.drop(ctx, warehouse, id, TypeView, false, options) })
}

// RenameView moves a view to another name; the storage of a materialized one goes along.
func (s *Service) RenameView(ctx context.Context, warehouse string, from, to TableIdent) error {
	return onceOnly(ctx, s, warehouse, func() error { return s.rename(ctx, warehouse, from, to, TypeView) })
}
