package catalog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/catalogd/catalogd/catalog/metadata"
)

// DefaultCacheBytes bounds the documents that a process keeps in memory.
const DefaultCacheBytes = 256 << 20

// Service carries out the catalog's operations.
type Service struct {
	store Store
	files Files
	guard Guard
	cache *cache
	turns *turns
	now   func() time.Time
	log   *slog.Logger
	stat  bool

	reporter *Reporter // nil: metrics reports are not kept
}

// Config is what a [Service] needs.
type Config struct {
	Store Store
	Files Files
	Guard Guard // nil: no materialized views
	// CacheBytes bounds the in-process document cache; 0 means [DefaultCacheBytes], a
	// negative number no cache.
	CacheBytes int64
	// NoStat skips the check that a served metadata file still exists.
	NoStat bool
	Now    func() time.Time // nil: time.Now
	Log    *slog.Logger
}

// NewService returns a service.
func NewService(c Config) *Service {
	if c.Guard == nil {
		c.Guard = Unguarded{}
	}
	if c.CacheBytes == 0 {
		c.CacheBytes = DefaultCacheBytes
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &Service{
		store: c.Store, files: c.Files, guard: c.Guard, cache: newCache(c.CacheBytes), turns: newTurns(),
		now: c.Now, log: c.Log, stat: !c.NoStat,
	}
}

// SetGuard replaces the guard. It exists because the guard needs the service to resolve
// names and the service needs the guard; call it before the first request.
func (s *Service) SetGuard(g Guard) { s.guard = g }

// Config returns the warehouse that a client asked for, the default one for "".
func (s *Service) Config(ctx context.Context, warehouse string) (Warehouse, error) {
	return s.store.Warehouse(ctx, warehouse)
}

// load reads an object and makes sure that its document is there.
func (s *Service) load(ctx context.Context, warehouse string, id TableIdent, typ ObjectType) (Loaded, error) {
	held := s.cache.held(warehouse, id)
	known := ""
	if held != nil {
		known = held.MetadataLocation
	}
	l, err := s.store.Load(ctx, warehouse, id, typ, known)
	if err != nil {
		return Loaded{}, err
	}
	switch {
	case l.Document != nil:
	case held != nil && held.MetadataLocation == l.Pointer.MetadataLocation:
		l.Document = held
		if l.Pointer.UUID == "" {
			return l, s.complete(&l) // a row of another catalog implementation says little
		}
		return l, nil
	default:
		// A row that another catalog implementation wrote: its file is read once.
		if l.Document, err = s.readDocument(ctx, &l.Pointer); err != nil {
			return Loaded{}, err
		}
	}
	s.cache.put(warehouse, id, l.Document)
	return l, nil
}

// complete fills in what the row of l lacks from its document.
func (s *Service) complete(l *Loaded) error {
	plain, err := s.plain(*l)
	if err != nil {
		return err
	}
	_, err = describe(&l.Pointer, plain)
	return err
}

// readDocument reads the metadata file of p and fills in what its row lacks.
func (s *Service) readDocument(ctx context.Context, p *Pointer) (*Document, error) {
	plain, err := s.read(ctx, p.MetadataLocation)
	if err != nil {
		return nil, err
	}
	refs, err := describe(p, plain)
	if err != nil {
		return nil, err
	}
	return NewDocument(p.MetadataLocation, plain, refs), nil
}

// describe fills in what a row says of its metadata file, and returns the file's refs form.
func describe(p *Pointer, plain []byte) (refs []byte, err error) {
	if p.Type == TypeView {
		v, err := metadata.ParseView(plain)
		if err != nil {
			return nil, Errorf(KindInternal, "view metadata of %s cannot be read", p.Ident).Because(err)
		}
		describeView(p, v)
		return nil, nil
	}
	t, err := metadata.ParseTable(plain)
	if err != nil {
		return nil, Errorf(KindInternal, "table metadata of %s cannot be read", p.Ident).Because(err)
	}
	describeTable(p, t)
	return t.RefsBytes(), nil
}

// checkFile makes a load of a table whose metadata file has vanished fail as it would on
// a server that reads the file.
func (s *Service) checkFile(ctx context.Context, p Pointer) error {
	if !s.stat {
		return nil
	}
	ok, err := s.files.Exists(ctx, p.MetadataLocation)
	if err != nil || ok {
		return err
	}
	return Errorf(KindNotFound, "Failed to open input stream for file: %s", p.MetadataLocation)
}

// Document returns the stored document behind a metadata location, from memory, the
// database, or the file.
func (s *Service) Document(ctx context.Context, p Pointer) ([]byte, error) {
	d := s.cache.get(p.MetadataLocation)
	if d == nil {
		docs, err := s.store.Documents(ctx, []string{p.MetadataLocation})
		if err != nil {
			return nil, err
		}
		if stored, ok := docs[p.MetadataLocation]; ok {
			d = &stored
		}
	}
	if d == nil {
		return s.read(ctx, p.MetadataLocation)
	}
	plain, err := d.All.Plain()
	if err != nil {
		return nil, Errorf(KindInternal, "stored metadata of %s is damaged", p.Ident).Because(err)
	}
	return plain, nil
}

func (s *Service) plain(l Loaded) ([]byte, error) {
	plain, err := l.Document.All.Plain()
	if err != nil {
		return nil, Errorf(KindInternal, "stored metadata of %s is damaged", l.Pointer.Ident).Because(err)
	}
	return plain, nil
}

// commit writes nothing itself: it hands the changes to the store and keeps the cache
// in step. written are the files of the changes, removed again if nothing was committed.
func (s *Service) commit(ctx context.Context, changes []Change) error {
	if changes[0].Document != nil {
		answersWith(ctx, changes[0].Pointer.MetadataLocation)
	}
	err := s.store.Commit(ctx, changes)
	if err == nil {
		for _, c := range changes {
			if c.Document != nil {
				s.cache.put(c.Pointer.Warehouse, c.Pointer.Ident, c.Document)
			}
		}
		return nil
	}
	if KindOf(err) == KindCommitStateUnknown {
		return err // the files may be live
	}
	for _, c := range changes {
		if c.Document == nil {
			continue
		}
		// The client may be gone; the file must go all the same.
		if rmErr := s.files.Remove(context.WithoutCancel(ctx), c.Document.MetadataLocation); rmErr != nil {
			s.log.WarnContext(ctx, "metadata file of a refused commit was left behind",
				slog.String("metadata_location", c.Document.MetadataLocation), slog.Any("error", rmErr))
		}
	}
	return err
}

// prepare writes the file of a proposed change and turns it into a [Change].
func (s *Service) prepare(ctx context.Context, p Proposed) (Change, error) {
	c := Change{Op: p.Op, Pointer: p.Row, From: p.From, To: p.To, Claim: p.Claim, Attachment: p.Attachment}
	var err error
	switch {
	case p.Table != nil:
		describeTable(&c.Pointer, p.Table)
		c.Obsolete = obsolete(p.Table)
		c.Document, err = s.write(ctx, file{
			location: p.Table.Location(), previous: p.From, properties: p.Table.Properties(),
			all: p.Table.Bytes(), refs: p.Table.RefsBytes(),
		})
		if err == nil {
			c.Document.keep(p.Table)
		}
	case p.View != nil:
		describeView(&c.Pointer, p.View)
		c.Document, err = s.write(ctx, file{
			location: p.View.Location(), previous: p.From, properties: p.View.Properties(), all: p.View.Bytes(),
		})
	default:
		return c, nil
	}
	if err != nil {
		return Change{}, err
	}
	c.Pointer.MetadataLocation = c.Document.MetadataLocation
	return c, nil
}

// maxParallelWrites bounds the files that one transaction writes at a time.
const maxParallelWrites = 8

// prepareAll is prepare for several; on failure the files already written are removed.
func (s *Service) prepareAll(ctx context.Context, ps []Proposed) ([]Change, error) {
	changes := make([]Change, len(ps))
	if len(ps) == 1 {
		var err error
		changes[0], err = s.prepare(ctx, ps[0])
		return changes, err
	}
	group, writing := errgroup.WithContext(ctx)
	group.SetLimit(maxParallelWrites)
	for i, p := range ps {
		group.Go(func() (err error) {
			changes[i], err = s.prepare(writing, p)
			return err
		})
	}
	err := group.Wait()
	if err == nil {
		return changes, nil
	}
	for _, done := range changes {
		if done.Document != nil {
			_ = s.files.Remove(context.WithoutCancel(ctx), done.Document.MetadataLocation) // best effort, as in commit
		}
	}
	return nil, err
}

// Apply prepares and commits changes that the caller has built, in one transaction.
func (s *Service) Apply(ctx context.Context, ps ...Proposed) ([]Change, error) {
	changes, err := s.prepareAll(ctx, ps)
	if err != nil {
		return nil, err
	}
	if err = s.commit(ctx, changes); err != nil {
		return nil, err
	}
	return changes, nil
}

func describeTable(p *Pointer, t *metadata.Table) {
	p.Type = TypeTable
	p.UUID = t.UUID()
	p.Location = t.Location()
	p.SnapshotID = t.CurrentSnapshotID()
	p.SchemaID = t.CurrentSchemaID()
}

func describeView(p *Pointer, v *metadata.View) {
	p.Type = TypeView
	p.UUID = v.UUID()
	p.Location = v.Location()
	p.SnapshotID = -1
	p.ViewVersionID = v.CurrentVersionID()
	p.IsMaterialized = v.CurrentVersion().StorageTable != nil
}

// refused turns an error of the document layer into one for the client.
func refused(err error) error {
	if e, ok := asDocumentError(err); ok {
		if e.Conflict {
			return Errorf(KindCommitFailed, "%s", e.Msg)
		}
		return Errorf(KindInvalid, "%s", e.Msg)
	}
	return fmt.Errorf("metadata: %w", err)
}

func newUUID() string { return uuid.NewString() }

// refusedView is [refused] for view documents. Java's callers of a view builder expect an
// IllegalArgumentException. For tables they must not get one: only after a
// BadRequestException do they delete the manifests that they wrote for the commit.
func refusedView(err error) error {
	err = refused(err)
	if e, ok := errors.AsType[*Error](err); ok && e.Kind == KindInvalid {
		return Errorf(KindIllegalArgument, "%s", e.Msg)
	}
	return err
}

// Find returns the row of a table or view of any type, ok false if the name is free.
func (s *Service) Find(ctx context.Context, warehouse string, id TableIdent) (p Pointer, ok bool, err error) {
	for _, typ := range []ObjectType{TypeTable, TypeView} {
		l, err := s.store.Load(ctx, warehouse, id, typ, NoDocument)
		switch KindOf(err) {
		case KindNoSuchTable, KindNoSuchView:
			continue
		}
		if err != nil {
			return Pointer{}, false, err
		}
		return l.Pointer, true, nil
	}
	return Pointer{}, false, nil
}
