package catalog

import (
	"context"
	"regexp"
	"strings"

	"github.com/catalogd/catalogd/catalog/metadata"
)

// ListTables lists the tables of a namespace, without the storage tables of
// materialized views unless p asks for them.
func (s *Service) ListTables(ctx context.Context, warehouse string, ns Namespace, p PageRequest) (Page[TableIdent], error) {
	return s.list(ctx, warehouse, ns, TypeTable, p)
}

func (s *Service) list(ctx context.Context, warehouse string, ns Namespace, typ ObjectType, p PageRequest) (Page[TableIdent], error) {
	names, err := s.store.List(ctx, warehouse, ns, typ, p)
	if err != nil {
		return Page[TableIdent]{}, err
	}
	return named(ns, names), nil
}

// named turns a page of names into one of identifiers.
func named(ns Namespace, names Page[string]) Page[TableIdent] {
	out := Page[TableIdent]{Items: make([]TableIdent, len(names.Items)), Next: names.Next}
	for i, name := range names.Items {
		out.Items[i] = TableIdent{Namespace: ns, Name: name}
	}
	return out
}

// LoadTable returns a table and its document.
func (s *Service) LoadTable(ctx context.Context, warehouse string, id TableIdent) (Loaded, error) {
	l, err := s.load(ctx, warehouse, id, TypeTable)
	if err != nil {
		return Loaded{}, err
	}
	return l, s.checkFile(ctx, l.Pointer)
}

// TableExists returns nil or KindNoSuchTable.
func (s *Service) TableExists(ctx context.Context, warehouse string, id TableIdent) error {
	_, err := s.store.Load(ctx, warehouse, id, TypeTable, NoDocument)
	return err
}

// CreateTable creates a table, or only composes its metadata when the request stages it.
func (s *Service) CreateTable(ctx context.Context, warehouse string, ns Namespace, req CreateTableRequest) (Loaded, error) {
	id := TableIdent{Namespace: ns, Name: req.Name}
	return once(ctx, s, warehouse,
		func() (Loaded, error) { return s.createTable(ctx, warehouse, id, req) },
		s.loadedAgain(ctx, warehouse, id, TypeTable))
}

func (s *Service) createTable(ctx context.Context, warehouse string, id TableIdent, req CreateTableRequest) (Loaded, error) {
	if err := CheckIdent(id); err != nil {
		return Loaded{}, err
	}
	w, err := s.free(ctx, warehouse, id, TypeTable)
	if err != nil {
		return Loaded{}, err
	}
	location, err := s.place(ctx, w, id, req.Location)
	if err != nil {
		return Loaded{}, err
	}
	t, err := metadata.NewTable(metadata.NewTableRequest{
		UUID: newUUID(), Location: location, Schema: req.Schema, PartitionSpec: req.PartitionSpec,
		WriteOrder: req.WriteOrder, Properties: req.Properties, Now: s.now(),
	})
	if err != nil {
		return Loaded{}, refused(err)
	}
	proposal := &TableProposal{Warehouse: w, Ident: id, Table: t}
	if err := s.guard.Table(ctx, proposal); err != nil {
		return Loaded{}, err
	}
	if err := s.files.Prepare(ctx, location); err != nil {
		return Loaded{}, err
	}
	row := Pointer{Warehouse: w.Name, Ident: id, Type: TypeTable}
	if req.StageCreate {
		describeTable(&row, t)
		if r := ReceiptOf(ctx); r != nil {
			r.Outcome = Outcome{Detail: t.Bytes()}
		}
		return Loaded{Pointer: row, Document: NewDocument("", t.Bytes(), nil)}, nil
	}
	return s.one(ctx, Proposed{Op: OpCreate, Row: row, Table: t, Claim: true, Attachment: proposal.Attachment})
}

// free makes sure that a name can be created: the namespace exists and nothing has the
// name. The transaction checks again; this answer is early and cheap. Java clients tell by
// the words whether the taker is of the kind that was to be created.
func (s *Service) free(ctx context.Context, warehouse string, id TableIdent, as ObjectType) (Warehouse, error) {
	w, err := s.store.Warehouse(ctx, warehouse)
	if err != nil {
		return Warehouse{}, err
	}
	for _, typ := range []ObjectType{TypeTable, TypeView} {
		_, err := s.store.Load(ctx, w.Name, id, typ, NoDocument)
		switch KindOf(err) {
		case KindNoSuchTable, KindNoSuchView:
			continue
		}
		if err != nil {
			return Warehouse{}, err
		}
		if typ != as {
			return Warehouse{}, takenByOther(typ, id)
		}
		return Warehouse{}, Taken(typ, id)
	}
	return w, nil
}

// Taken is the error of a name that is in use already.
func Taken(typ ObjectType, id TableIdent) *Error {
	if typ == TypeView {
		return Errorf(KindAlreadyExists, "View already exists: %s", id)
	}
	return Errorf(KindAlreadyExists, "Table already exists: %s", id)
}

// takenByOther is the error of a name that is in use for something of the other type.
func takenByOther(typ ObjectType, id TableIdent) *Error {
	return Errorf(KindAlreadyExists, "%s with same name already exists: %s", typ.word(), id)
}

var unsafeInPath = regexp.MustCompile(`[^A-Za-z0-9_.=-]+`)

// place chooses a new object's location: what the client asks for, else below the
// namespace's own location, else below the warehouse. A suffix makes it unique, so that
// a name that is dropped or renamed and used again never meets old files.
func (s *Service) place(ctx context.Context, w Warehouse, id TableIdent, asked string) (string, error) {
	if asked != "" {
		return strings.TrimRight(asked, "/"), nil
	}
	props, err := s.store.Namespace(ctx, w.Name, id.Namespace)
	if err != nil {
		return "", err
	}
	root := strings.TrimRight(props["location"], "/")
	if root == "" {
		levels := make([]string, 0, len(id.Namespace))
		for _, level := range id.Namespace {
			levels = append(levels, pathSegment(level))
		}
		root = strings.TrimRight(w.Location, "/") + "/" + strings.Join(levels, "/")
	}
	return root + "/" + pathSegment(id.Name) + "-" + strings.ReplaceAll(newUUID(), "-", ""), nil
}

// pathSegment keeps a name readable in a path without anything that a client would have
// to decode.
func pathSegment(name string) string {
	safe := strings.Trim(unsafeInPath.ReplaceAllString(name, "_"), ".")
	if safe == "" {
		return "_"
	}
	if len(safe) > 120 {
		return safe[:120]
	}
	return safe
}

// one carries out a single proposed change and returns the object as it is now.
func (s *Service) one(ctx context.Context, p Proposed, extra ...Proposed) (Loaded, error) {
	changes, err := s.Apply(ctx, append([]Proposed{p}, extra...)...)
	if err != nil {
		return Loaded{}, err
	}
	return Loaded{Pointer: changes[0].Pointer, Document: changes[0].Document}, nil
}

// RenameTable moves a table to another name, possibly in another namespace.
func (s *Service) RenameTable(ctx context.Context, warehouse string, from, to TableIdent) error {
	return onceOnly(ctx, s, warehouse, func() error { return s.rename(ctx, warehouse, from, to, TypeTable) })
}

func (s *Service) rename(ctx context.Context, warehouse string, from, to TableIdent, typ ObjectType) error {
	if err := CheckIdent(to); err != nil {
		return err
	}
	l, err := s.store.Load(ctx, warehouse, from, typ, NoDocument)
	if err != nil {
		return err
	}
	if from.Equal(to) {
		return cannotRename(from, to, typ)
	}
	p := &RenameProposal{Warehouse: Warehouse{Name: l.Pointer.Warehouse}, Row: l.Pointer, To: to}
	if err := s.guard.Rename(ctx, p); err != nil {
		return err
	}
	changes, err := s.prepareAll(ctx, p.Extra)
	if err != nil {
		return err
	}
	first := Change{Op: OpRename, Pointer: l.Pointer, To: to, Attachment: p.Attachment}
	err = s.commit(ctx, append([]Change{first}, changes...))
	if KindOf(err) == KindAlreadyExists {
		// The store knows that the name is taken, not by what.
		if other, ok, findErr := s.Find(ctx, l.Pointer.Warehouse, to); findErr == nil && ok {
			return cannotRename(from, to, other.Type).Because(err)
		}
	}
	return err
}

func cannotRename(from, to TableIdent, taken ObjectType) *Error {
	return Errorf(KindAlreadyExists, "Cannot rename %s to %s. %s already exists", from, to, taken.word())
}

// word is the type in a sentence.
func (t ObjectType) word() string {
	if t == TypeView {
		return "View"
	}
	return "Table"
}
