package mv

import (
	"context"
	"encoding/json"

	"github.com/catalogd/catalogd/catalog"
	"github.com/catalogd/catalogd/catalog/metadata"
)

// Undrop implements [catalog.Guard]: a materialized view comes back as what it was
// registered as, together with its storage table. Its query is not bound again, so that a
// source that is missing by now does not keep it away; how fresh it is follows from what
// its storage table recorded.
func (g *Guard) Undrop(ctx context.Context, p *catalog.UndropProposal) error {
	if err := checkName(p.To); err != nil {
		return err
	}
	row := p.Object.Pointer
	if row.Type != catalog.TypeView || len(p.Object.Registration) == 0 {
		return nil
	}
	var kept KeptRegistration
	if err := json.Unmarshal(p.Object.Registration, &kept); err != nil {
		return catalog.Errorf(catalog.KindInternal, "what was kept of materialized view %s cannot be read", row.Ident).Because(err)
	}
	d := kept.Definition
	if d.StorageUUID != "" {
		if p.Storage == nil {
			return catalog.Errorf(catalog.KindConflict,
				"%s cannot come back as a materialized view: its storage table %s was kept as a plain table when it was dropped. Create the view again with `catalogd mv create`",
				row.Ident, d.Storage)
		}
		d.Storage = p.Storage.Pointer.Ident
		if err := g.storageFollows(ctx, p, d); err != nil {
			return err
		}
	}
	old := map[Key]Key{KeyOf(d.Warehouse, row.Ident): KeyOf(d.Warehouse, p.To), KeyOf(d.Warehouse, d.Storage): KeyOf(d.Warehouse, p.StorageTo)}
	names := make([]Key, len(kept.Names))
	for i, n := range kept.Names {
		names[i] = Key(n)
		if now, ok := old[names[i]]; ok {
			names[i] = now
		}
	}
	d.Ident = p.To
	if p.Storage != nil {
		d.Storage = p.StorageTo
	}
	p.Attachment = &Registration{Definition: d, Names: names, Suspended: kept.Suspended}
	return nil
}

// storageFollows gives the storage table the name that goes with the view's new one.
func (g *Guard) storageFollows(ctx context.Context, p *catalog.UndropProposal, d Definition) error {
	if p.To.Equal(p.Object.Pointer.Ident) {
		return nil
	}
	p.StorageTo = followView(d.Storage, p.Object.Pointer.Ident, p.To)
	if p.StorageTo.Equal(d.Storage) {
		return nil
	}
	doc, err := g.objects.Document(ctx, p.Object.Pointer)
	if err != nil {
		return err
	}
	v, err := metadata.ParseView(doc)
	if err != nil {
		return catalog.Errorf(catalog.KindInternal, "metadata of %s cannot be read", p.Object.Pointer.Ident).Because(err)
	}
	if err := moveStorage(v, d.Storage, p.StorageTo); err != nil {
		return err
	}
	p.View = v
	return nil
}
