package catalog

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"regexp"
	"strings"

	"github.com/catalogd/catalogd/catalog/metadata"
)

// maxCommitAttempts bounds how often a commit that lost a race is tried again while its
// requirements still hold.
const maxCommitAttempts = 10

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
	out := Page[TableIdent]{Items: make([]TableIdent, len(names.Items)), Next: names.Next}
	for i, name := range names.Items {
		out.Items[i] = TableIdent{Namespace: ns, Name: name}
	}
	return out, nil
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
		return Loaded{Pointer: row, Document: NewDocument("", t.Bytes(), nil)}, nil
	}
	return s.one(ctx, Proposed{Op: OpCreate, Row: row, Table: t, Attachment: proposal.Attachment})
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
			return Warehouse{}, Errorf(KindAlreadyExists, "%s with same name already exists: %s", typ.word(), id)
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

// CommitTable applies updates to a table while the requirements hold. A commit that lost
// a race is rebased on the winner and tried again.
func (s *Service) CommitTable(ctx context.Context, warehouse string, id TableIdent, req CommitRequest) (Loaded, error) {
	var err error
	for range maxCommitAttempts {
		var (
			out  Loaded
			lost bool
		)
		out, lost, err = s.tryCommitTable(ctx, warehouse, id, req)
		if !lost {
			return out, err
		}
	}
	return Loaded{}, Errorf(KindCommitFailed, "Commit failed: table %s was changed by others %d times in a row, try again", id, maxCommitAttempts).Because(err)
}

func (s *Service) tryCommitTable(ctx context.Context, warehouse string, id TableIdent, req CommitRequest) (out Loaded, lost bool, err error) {
	base, err := s.load(ctx, warehouse, id, TypeTable)
	if KindOf(err) == KindNoSuchTable {
		create, badErr := metadata.IsCreate(req.Requirements)
		if badErr != nil {
			return Loaded{}, false, refused(badErr)
		}
		if create {
			out, err = s.createByCommit(ctx, warehouse, id, req)
			return out, false, err
		}
	}
	if err != nil {
		return Loaded{}, false, err
	}
	plain, err := s.plain(base)
	if err != nil {
		return Loaded{}, false, err
	}
	before, err := metadata.ParseTable(plain)
	if err != nil {
		return Loaded{}, false, Errorf(KindInternal, "table metadata of %s cannot be read", id).Because(err)
	}
	if err := before.Check(req.Requirements); err != nil {
		return Loaded{}, false, refused(err)
	}
	after := before.Clone()
	err = after.Apply(req.Updates, metadata.ApplyContext{Now: s.now(), PreviousLocation: base.Pointer.MetadataLocation})
	if err != nil {
		return Loaded{}, false, refused(err)
	}
	p := &TableProposal{
		Warehouse: Warehouse{Name: base.Pointer.Warehouse}, Ident: id, Row: &base.Pointer, Base: before, Table: after, Request: req,
	}
	if err := s.guard.Table(ctx, p); err != nil {
		return Loaded{}, false, err
	}
	if !after.Changed() {
		return base, false, nil
	}
	out, err = s.one(ctx, Proposed{
		Op: OpSwap, Row: base.Pointer, From: base.Pointer.MetadataLocation, Table: after, Attachment: p.Attachment,
	})
	return out, KindOf(err) == KindCommitFailed, err
}

// createByCommit is the second half of a staged create.
func (s *Service) createByCommit(ctx context.Context, warehouse string, id TableIdent, req CommitRequest) (Loaded, error) {
	if err := CheckIdent(id); err != nil {
		return Loaded{}, err
	}
	w, err := s.free(ctx, warehouse, id, TypeTable)
	if err != nil {
		return Loaded{}, err
	}
	if err := metadata.CheckCreate(req.Requirements); err != nil {
		return Loaded{}, refused(err)
	}
	t, err := metadata.NewEmptyTable(0, newUUID())
	if err != nil {
		return Loaded{}, refused(err)
	}
	if err := t.Apply(req.Updates, metadata.ApplyContext{Now: s.now()}); err != nil {
		return Loaded{}, refused(err)
	}
	if t.Location() == "" {
		if err := s.locate(ctx, w, id, t); err != nil {
			return Loaded{}, err
		}
	}
	p := &TableProposal{Warehouse: w, Ident: id, Table: t, Request: req}
	if err := s.guard.Table(ctx, p); err != nil {
		return Loaded{}, err
	}
	if err := s.files.Prepare(ctx, t.Location()); err != nil {
		return Loaded{}, err
	}
	row := Pointer{Warehouse: w.Name, Ident: id, Type: TypeTable}
	out, err := s.one(ctx, Proposed{Op: OpCreate, Row: row, Table: t, Attachment: p.Attachment})
	if KindOf(err) == KindAlreadyExists {
		return Loaded{}, Errorf(KindCommitFailed, "Requirement failed: table already exists").Because(err)
	}
	return out, err
}

// locate gives a table without a location one of the server's choice.
func (s *Service) locate(ctx context.Context, w Warehouse, id TableIdent, t *metadata.Table) error {
	location, err := s.place(ctx, w, id, "")
	if err != nil {
		return err
	}
	update, err := json.Marshal(map[string]string{"action": "set-location", "location": location})
	if err != nil {
		return fmt.Errorf("choose location: %w", err)
	}
	return t.Apply([]json.RawMessage{update}, metadata.ApplyContext{Now: s.now()})
}

// RegisterTable gives a name to an existing metadata file. With overwrite an existing
// table of that name is pointed at it.
func (s *Service) RegisterTable(ctx context.Context, warehouse string, ns Namespace, name, location string, overwrite bool) (Loaded, error) {
	id := TableIdent{Namespace: ns, Name: name}
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
	}
	plain, err := s.files.Read(ctx, location)
	if err != nil {
		return Loaded{}, err
	}
	t, err := metadata.ParseTable(plain)
	if err != nil {
		return Loaded{}, Errorf(KindInvalid, "%s is not the metadata file of an Iceberg table: %s", location, err.Error())
	}
	p := &TableProposal{Warehouse: w, Ident: id, Row: current, Table: t}
	if err := s.guard.Table(ctx, p); err != nil {
		return Loaded{}, err
	}
	c := Change{
		Op: OpCreate, Pointer: Pointer{Warehouse: w.Name, Ident: id}, Attachment: p.Attachment,
		Document: NewDocument(location, plain, t.RefsBytes()),
	}
	describeTable(&c.Pointer, t)
	c.Pointer.MetadataLocation = location
	if current != nil {
		c.Op, c.From = OpSwap, current.MetadataLocation
	}
	// Not s.commit: the file is the client's and stays, whatever happens.
	if err := s.store.Commit(ctx, []Change{c}); err != nil {
		return Loaded{}, err
	}
	return Loaded{Pointer: c.Pointer, Document: c.Document}, nil
}

// DropTable removes a table from the catalog. Its files stay.
func (s *Service) DropTable(ctx context.Context, warehouse string, id TableIdent, purge bool) error {
	return s.drop(ctx, warehouse, id, TypeTable, purge, nil)
}

func (s *Service) drop(ctx context.Context, warehouse string, id TableIdent, typ ObjectType, purge bool, options any) error {
	l, err := s.store.Load(ctx, warehouse, id, typ, NoDocument)
	if err != nil {
		return err
	}
	p := &DropProposal{Warehouse: Warehouse{Name: l.Pointer.Warehouse}, Row: l.Pointer, Options: options}
	if err := s.guard.Drop(ctx, p); err != nil {
		return err
	}
	changes, err := s.prepareAll(ctx, p.Extra)
	if err != nil {
		return err
	}
	return s.commit(ctx, append([]Change{{Op: OpDrop, Pointer: l.Pointer, Purge: purge}}, changes...))
}

// RenameTable moves a table to another name, possibly in another namespace.
func (s *Service) RenameTable(ctx context.Context, warehouse string, from, to TableIdent) error {
	return s.rename(ctx, warehouse, from, to, TypeTable)
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
		return Errorf(KindAlreadyExists, "Cannot rename %s to %s. %s already exists", from, to, typ.word())
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
	return s.commit(ctx, append([]Change{first}, changes...))
}

// word is the type in a sentence.
func (t ObjectType) word() string {
	if t == TypeView {
		return "View"
	}
	return "Table"
}

// ReportMetrics accepts a scan or commit report. Engines send them for tables that do
// not exist yet, so only the warehouse is checked.
func (s *Service) ReportMetrics(ctx context.Context, warehouse string, id TableIdent, report json.RawMessage) error {
	if _, err := s.store.Warehouse(ctx, warehouse); err != nil {
		return err
	}
	s.log.DebugContext(ctx, "metrics report", slog.String("table", id.String()), slog.Int("bytes", len(report)))
	return nil
}
