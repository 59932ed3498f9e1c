package catalog

import (
	"context"
	"strings"

	"github.com/catalogd/catalogd/catalog/metadata"
)

// propGC says whether files of a table may be deleted at all. It is false where several
// tables share files.
const propGC = "gc.enabled"

// DropTable removes a table from the catalog. Its files stay, unless purge asks that they
// be deleted: at once, or when the warehouse's time for changing one's mind is over.
func (s *Service) DropTable(ctx context.Context, warehouse string, id TableIdent, purge bool) error {
	return onceOnly(ctx, s, warehouse, func() error { return s.drop(ctx, warehouse, id, TypeTable, purge, nil) })
}

func (s *Service) drop(ctx context.Context, warehouse string, id TableIdent, typ ObjectType, purge bool, options any) error {
	row, err := s.leaving(ctx, warehouse, id, typ, purge)
	if err != nil {
		return err
	}
	p := &DropProposal{Warehouse: Warehouse{Name: row.Warehouse}, Row: row, Options: options}
	if err := s.guard.Drop(ctx, p); err != nil {
		return err
	}
	changes, err := s.prepareAll(ctx, p.Extra)
	if err != nil {
		return err
	}
	return s.commit(ctx, append([]Change{{Op: OpDrop, Pointer: row, Purge: purge}}, changes...))
}

// leaving reads the row of an object that is to be dropped. The row that another catalog
// implementation wrote gets from its file what it needs to come back.
func (s *Service) leaving(ctx context.Context, warehouse string, id TableIdent, typ ObjectType, purge bool) (Pointer, error) {
	l, err := s.store.Load(ctx, warehouse, id, typ, NoDocument)
	if err != nil {
		return Pointer{}, err
	}
	row := l.Pointer
	if row.UUID == "" {
		// A file that cannot be read does not keep anybody from dropping the table.
		_, _ = s.readDocument(ctx, &row)
	}
	if !purge {
		return row, nil
	}
	plain, err := s.Document(ctx, row)
	if KindOf(err) == KindNotFound {
		return row, nil // nothing is left that could be purged
	}
	if err != nil {
		return Pointer{}, err
	}
	if t, err := metadata.ParseTable(plain); err == nil {
		if !CollectsGarbage(t) {
			return Pointer{}, Errorf(KindConflict, "Cannot purge table %s: its property %s is false, because deleting its files may corrupt other tables. Drop it without purge", id, propGC)
		}
	}
	return row, nil
}

// CollectsGarbage reports whether the files of a table may be deleted with it.
func CollectsGarbage(t *metadata.Table) bool {
	value, ok := t.Property(propGC)
	return !ok || !strings.EqualFold(strings.TrimSpace(value), "false")
}
