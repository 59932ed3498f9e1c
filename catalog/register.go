package catalog

import (
	"cmp"
	"context"

	"github.com/catalogd/catalogd/catalog/metadata"
)

// RegisterTable gives a name to an existing metadata file. With overwrite an existing
// table of that name is pointed at it.
func (s *Service) RegisterTable(ctx context.Context, warehouse string, ns Namespace, name, location string, overwrite bool) (Loaded, error) {
	id := TableIdent{Namespace: ns, Name: name}
	return once(ctx, s, warehouse,
		func() (Loaded, error) { return s.registerTable(ctx, warehouse, id, location, overwrite) },
		s.loadedAgain(ctx, warehouse, id, TypeTable))
}

func (s *Service) registerTable(ctx context.Context, warehouse string, id TableIdent, location string, overwrite bool) (Loaded, error) {
	if err := CheckIdent(id); err != nil {
		return Loaded{}, err
	}
	w, err := s.store.Warehouse(ctx, warehouse)
	if err != nil {
		return Loaded{}, err
	}
	var current *Pointer
	l, err := s.store.Load(ctx, w.Name, id, TypeTable, NoDocument)
	switch {
	case err == nil && !overwrite:
		return Loaded{}, Taken(TypeTable, id)
	case err == nil:
		current = &l.Pointer
	case KindOf(err) != KindNoSuchTable:
		return Loaded{}, err
	default:
		// A wrong name is said first, before what is wrong with the file or its location.
		if _, err := s.store.Namespace(ctx, w.Name, id.Namespace); err != nil {
			return Loaded{}, err
		}
		if _, err := s.free(ctx, warehouse, id, TypeTable); err != nil {
			return Loaded{}, err
		}
	}
	if err := s.notObsolete(ctx, location); err != nil {
		return Loaded{}, err
	}
	plain, err := s.read(ctx, location)
	if err != nil {
		return Loaded{}, err
	}
	t, err := metadata.ParseTable(plain)
	if err != nil {
		return Loaded{}, Errorf(KindInvalid, "%s is not the metadata file of an Iceberg table: %s", location, err.Error())
	}
	if current != nil && current.UUID != t.UUID() {
		// Another table in its place is as good as a drop.
		target := Target{Type: TypeTable, Ident: id}
		if protected, err := s.store.Protected(ctx, w.Name, target); err != nil || protected {
			return Loaded{}, cmp.Or(err, error(ErrProtected(target)))
		}
	}
	p := &TableProposal{Warehouse: w, Ident: id, Row: current, Table: t}
	if err := s.guard.Table(ctx, p); err != nil {
		return Loaded{}, err
	}
	c := Change{
		Op: OpCreate, Pointer: Pointer{Warehouse: w.Name, Ident: id}, Attachment: p.Attachment,
		Document: NewDocument(location, plain, t.RefsBytes()), Claim: true,
	}
	describeTable(&c.Pointer, t)
	if current != nil {
		c.Op, c.From, c.Claim = OpSwap, current.MetadataLocation, t.Location() != current.Location
	}
	return s.register(ctx, c)
}

// RegisterView gives a name to the metadata file of a view. One that names a storage table
// becomes a materialized view here; its metadata is written anew if that changes it.
func (s *Service) RegisterView(ctx context.Context, warehouse string, ns Namespace, name, location string) (Loaded, error) {
	id := TableIdent{Namespace: ns, Name: name}
	return once(ctx, s, warehouse,
		func() (Loaded, error) { return s.registerView(ctx, warehouse, id, location) },
		s.loadedAgain(ctx, warehouse, id, TypeView))
}

func (s *Service) registerView(ctx context.Context, warehouse string, id TableIdent, location string) (Loaded, error) {
	if err := CheckIdent(id); err != nil {
		return Loaded{}, err
	}
	w, err := s.free(ctx, warehouse, id, TypeView)
	if err != nil {
		return Loaded{}, err
	}
	plain, err := s.read(ctx, location)
	if err != nil {
		return Loaded{}, err
	}
	v, err := metadata.ParseView(plain)
	if err != nil {
		return Loaded{}, Errorf(KindInvalid, "%s is not the metadata file of an Iceberg view: %s", location, err.Error())
	}
	p := &ViewProposal{Warehouse: w, Ident: id, UUID: v.UUID(), View: v}
	if err := s.guard.View(ctx, p); err != nil {
		return Loaded{}, err
	}
	row := Pointer{Warehouse: w.Name, Ident: id, Type: TypeView}
	if p.View.Changed() || len(p.Extra) > 0 {
		return s.one(ctx, Proposed{Op: OpCreate, Row: row, View: p.View, Attachment: p.Attachment}, p.Extra...)
	}
	describeView(&row, p.View)
	return s.register(ctx, Change{Op: OpCreate, Pointer: row, Attachment: p.Attachment, Document: NewDocument(location, plain, nil)})
}

// register commits a pointer to a file that is the client's: unlike in [Service.commit], it
// stays, whatever happens.
func (s *Service) register(ctx context.Context, c Change) (Loaded, error) {
	c.Pointer.MetadataLocation = c.Document.MetadataLocation
	answersWith(ctx, c.Pointer.MetadataLocation)
	// Its own table may have outgrown it since it was read.
	if err := s.notObsolete(ctx, c.Pointer.MetadataLocation); err != nil {
		return Loaded{}, err
	}
	if err := s.store.Commit(ctx, []Change{c}); err != nil {
		return Loaded{}, err
	}
	s.cache.put(c.Pointer.Warehouse, c.Pointer.Ident, c.Document)
	return Loaded{Pointer: c.Pointer, Document: c.Document}, nil
}

// notObsolete refuses a metadata file that will be gone soon.
func (s *Service) notObsolete(ctx context.Context, location string) error {
	table, err := s.store.Obsolete(ctx, location)
	if err != nil || table == "" {
		return err
	}
	return Errorf(KindConflict, "%s is about to be deleted, because table %s has outgrown it (%s): register a newer metadata file, or a copy of it",
		location, table, propDeleteMetadata)
}

// UnregisterTable forgets a table and leaves all its files. It returns the last state:
// the drop takes place only if that is still the current one.
func (s *Service) UnregisterTable(ctx context.Context, warehouse string, id TableIdent) (Loaded, error) {
	return once(ctx, s, warehouse, func() (Loaded, error) {
		turn, err := s.turns.take(ctx, hintOf(warehouse, id))
		if err != nil {
			return Loaded{}, err
		}
		defer turn.end(ctx)
		for range maxCommitAttempts {
			var out Loaded
			out, err = s.unregister(ctx, warehouse, id)
			if KindOf(err) != KindCommitFailed {
				return out, err
			}
		}
		return Loaded{}, err
	}, s.loadedAgain(ctx, warehouse, id, TypeTable))
}

func (s *Service) unregister(ctx context.Context, warehouse string, id TableIdent) (Loaded, error) {
	l, err := s.load(ctx, warehouse, id, TypeTable)
	if err != nil {
		return Loaded{}, err
	}
	p := &DropProposal{Warehouse: Warehouse{Name: l.Pointer.Warehouse}, Row: l.Pointer}
	if err := s.guard.Drop(ctx, p); err != nil {
		return Loaded{}, err
	}
	changes, err := s.prepareAll(ctx, p.Extra)
	if err != nil {
		return Loaded{}, err
	}
	answersWith(ctx, l.Pointer.MetadataLocation)
	drop := Change{Op: OpDrop, Pointer: l.Pointer, From: l.Pointer.MetadataLocation, Forget: true}
	return l, s.commit(ctx, append([]Change{drop}, changes...))
}
