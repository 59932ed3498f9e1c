package mv

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/catalogd/catalogd/catalog"
	"github.com/catalogd/catalogd/catalog/metadata"
)

// twinName matches the names that are kept for read-only twins of a table: its name and a
// snapshot id, possibly a schema id as well.
var twinName = regexp.MustCompile(`~\d+$`)

// checkName refuses names that belong to catalogd.
func checkName(id catalog.TableIdent) error {
	if twinName.MatchString(id.Name) {
		return catalog.Errorf(catalog.KindForbidden, "%s: names that end in ~ and digits stand for a table at one snapshot, they are read-only and cannot be created", id)
	}
	return nil
}

// Table implements [catalog.Guard]: it decides who may commit to a storage table.
func (g *Guard) Table(ctx context.Context, p *catalog.TableProposal) error {
	if p.Row == nil {
		return checkName(p.Ident)
	}
	if p.Row.StorageOf == "" || p.Request.Internal {
		return nil
	}
	s, err := g.registry.State(ctx, p.Row.StorageOf)
	if catalog.KindOf(err) == catalog.KindNoSuchView {
		return nil // the view is gone, nobody reads the table as its storage
	}
	if err != nil {
		return err
	}
	c := storageCommit{proposal: p, state: s, view: s.Views[s.Root]}
	if p.Base == nil {
		return c.refuse("registering another metadata file")
	}
	return c.judge()
}

// storageCommit is a commit to a storage table by somebody other than catalogd.
type storageCommit struct {
	proposal *catalog.TableProposal
	state    State
	view     ViewState
}

// harmless are the updates that cannot change what the view returns.
var harmless = map[string]bool{
	"set-statistics": true, "remove-statistics": true,
	"set-partition-statistics": true, "remove-partition-statistics": true,
}

func (c storageCommit) judge() error {
	var adds []int64
	for _, raw := range c.proposal.Request.Updates {
		var u storageUpdate
		if err := json.Unmarshal(raw, &u); err != nil {
			return catalog.Errorf(catalog.KindInvalid, "an update of %s cannot be read", c.proposal.Ident).Because(err)
		}
		switch {
		case harmless[u.Action]:
		case u.Action == "remove-snapshots":
			if err := c.removable(u.SnapshotIDs); err != nil {
				return err
			}
		case u.Action == "add-snapshot":
			adds = append(adds, u.Snapshot.ID)
		case u.Action == "set-snapshot-ref" && u.RefName == "main":
			// Judged below, by the snapshot that main ends at.
		default:
			return c.refuse("update %s", u.Action)
		}
	}
	if c.proposal.Base.CurrentSnapshotID() == c.proposal.Table.CurrentSnapshotID() {
		if len(adds) > 0 {
			return c.refuse("a snapshot that does not become current")
		}
		return nil
	}
	// Some writers overwrite in two steps, a delete and an append: the state that counts is
	// that of the last one.
	last := len(adds) - 1
	if last < 0 || adds[last] != c.proposal.Table.CurrentSnapshotID() {
		return c.refuse("moving main to another snapshot than the one that is added")
	}
	return c.refresh(adds[last])
}

// storageUpdate is as much of an update as its judgement needs.
type storageUpdate struct {
	Action      string  `json:"action"`
	RefName     string  `json:"ref-name"`
	SnapshotIDs []int64 `json:"snapshot-ids"`
	Snapshot    struct {
		ID int64 `json:"snapshot-id"`
	} `json:"snapshot"`
}

func (c storageCommit) removable(ids []int64) error {
	for _, id := range ids {
		if id == c.proposal.Base.CurrentSnapshotID() {
			return c.refuse("removing the current snapshot")
		}
		if c.state.Leased[c.proposal.Row.UUID][id] {
			return catalog.Errorf(catalog.KindConflict, "snapshot %d of %s is leased by running queries, remove it later", id, c.proposal.Ident)
		}
	}
	return nil
}

// refresh accepts a snapshot that an engine wrote as a refresh of the view.
func (c storageCommit) refresh(id int64) error {
	snap, ok := c.proposal.Table.Snapshot(id)
	if !ok || !HasRefreshState(snap.Summary) {
		return c.refuse("a snapshot without refresh-state")
	}
	rec, err := DecodeRefreshState(snap.Summary)
	if err != nil {
		return c.refuse("its refresh-state (%v)", err)
	}
	d := c.view.Definition
	current := c.state.Objects[KeyOf(d.Warehouse, d.Ident)].ViewVersionID
	if rec.ViewVersionID != current {
		return c.refuse("a refresh-state of view version %d, the current one is %d", rec.ViewVersionID, current)
	}
	return c.known(rec)
}

// known checks that the recorded sources are sources of the view.
func (c storageCommit) known(rec RefreshState) error {
	uuids := map[string]bool{}
	for _, p := range c.state.Objects {
		uuids[p.UUID] = true
	}
	for _, s := range rec.Sources {
		if s.Catalog == "" && !uuids[s.UUID] {
			return c.refuse("a refresh-state that names source %s with uuid %s, which the view does not read", s.Name, s.UUID)
		}
	}
	return nil
}

func (c storageCommit) refuse(format string, args ...any) error {
	what := fmt.Sprintf(format, args...)
	return catalog.Errorf(catalog.KindForbidden,
		"%s is the storage table of materialized view %s and holds what its query returns: %s is refused. Change the sources or the view; `catalogd mv refresh %s` recomputes it",
		c.proposal.Ident, c.view.Definition.Ident, what, c.view.Definition.Ident)
}

// Drop implements [catalog.Guard]: a storage table goes with its view only.
func (g *Guard) Drop(ctx context.Context, p *catalog.DropProposal) error {
	if p.Row.StorageOf != "" {
		return g.storageIsNot(ctx, p.Row, "dropped")
	}
	if p.Row.Type != catalog.TypeView || !p.Row.IsMaterialized {
		return nil
	}
	s, err := g.registry.State(ctx, p.Row.UUID)
	if catalog.KindOf(err) == catalog.KindNoSuchView {
		return nil
	}
	if err != nil {
		return err
	}
	d := s.Views[s.Root].Definition
	storage, ok := s.Objects[KeyOf(d.Warehouse, d.Storage)]
	if !ok || storage.StorageOf != p.Row.UUID {
		return nil // in another catalog, or gone already
	}
	if opts, ok := p.Options.(DropOptions); !ok || !opts.KeepStorage {
		p.Extra = append(p.Extra, catalog.Proposed{Op: catalog.OpDrop, Row: storage})
		return nil
	}
	released, err := g.release(ctx, storage, p.Row.Ident)
	if err != nil {
		return err
	}
	p.Extra = append(p.Extra, released)
	return nil
}

// DropOptions travel with our own API's drop of a materialized view.
type DropOptions struct {
	KeepStorage bool
}

// propReleased notes on a former storage table which view it belonged to.
const propReleased = "catalogd.released-from"

// release turns a storage table into a plain table.
func (g *Guard) release(ctx context.Context, storage catalog.Pointer, view catalog.TableIdent) (catalog.Proposed, error) {
	doc, err := g.objects.Document(ctx, storage)
	if err != nil {
		return catalog.Proposed{}, err
	}
	t, err := metadata.ParseTable(doc)
	if err != nil {
		return catalog.Proposed{}, catalog.Errorf(catalog.KindInternal, "metadata of %s cannot be read", storage.Ident).Because(err)
	}
	update, err := json.Marshal(map[string]any{"action": "set-properties", "updates": map[string]string{propReleased: view.String()}})
	if err != nil {
		return catalog.Proposed{}, fmt.Errorf("release storage: %w", err)
	}
	err = t.Apply([]json.RawMessage{update}, metadata.ApplyContext{Now: g.now(), PreviousLocation: storage.MetadataLocation})
	if err != nil {
		return catalog.Proposed{}, fmt.Errorf("release storage: %w", err)
	}
	from := storage.MetadataLocation
	storage.StorageOf = ""
	return catalog.Proposed{Op: catalog.OpSwap, Row: storage, From: from, Table: t}, nil
}

func (g *Guard) storageIsNot(ctx context.Context, row catalog.Pointer, what string) error {
	s, err := g.registry.State(ctx, row.StorageOf)
	if catalog.KindOf(err) == catalog.KindNoSuchView {
		return nil
	}
	if err != nil {
		return err
	}
	view := s.Views[s.Root].Definition.Ident
	return catalog.Errorf(catalog.KindForbidden, "%s is the storage table of materialized view %s and cannot be %s by itself: drop or rename the view", row.Ident, view, what)
}

// Rename implements [catalog.Guard]: the storage of a materialized view goes along.
func (g *Guard) Rename(ctx context.Context, p *catalog.RenameProposal) error {
	if err := checkName(p.To); err != nil {
		return err
	}
	if p.Row.StorageOf != "" {
		return g.storageIsNot(ctx, p.Row, "renamed")
	}
	if p.Row.Type != catalog.TypeView || !p.Row.IsMaterialized {
		return nil
	}
	s, err := g.registry.State(ctx, p.Row.UUID)
	if catalog.KindOf(err) == catalog.KindNoSuchView {
		return nil
	}
	if err != nil {
		return err
	}
	d := s.Views[s.Root].Definition
	storage, ok := s.Objects[KeyOf(d.Warehouse, d.Storage)]
	if !ok || storage.StorageOf != p.Row.UUID {
		return nil
	}
	return g.renameWith(ctx, p, s.Views[s.Root], storage)
}

// renameWith moves the storage table to the name that follows the view's, and points
// the view's versions at it.
func (g *Guard) renameWith(ctx context.Context, p *catalog.RenameProposal, view ViewState, storage catalog.Pointer) error {
	d := view.Definition
	to := followView(d.Storage, p.Row.Ident, p.To)
	doc, err := g.objects.Document(ctx, p.Row)
	if err != nil {
		return err
	}
	v, err := metadata.ParseView(doc)
	if err != nil {
		return catalog.Errorf(catalog.KindInternal, "metadata of %s cannot be read", p.Row.Ident).Because(err)
	}
	if err := moveStorage(v, d.Storage, to); err != nil {
		return err
	}
	renamed := p.Row
	renamed.Ident = p.To
	if !to.Equal(d.Storage) {
		p.Extra = append(p.Extra, catalog.Proposed{Op: catalog.OpRename, Row: storage, To: to})
	}
	d.Ident, d.Storage = p.To, to
	p.Extra = append(p.Extra,
		catalog.Proposed{
			Op: catalog.OpSwap, Row: renamed, From: p.Row.MetadataLocation, View: v,
			Attachment: &Registration{Definition: d, Names: view.Names, KeepsData: true},
		})
	return nil
}

// moveStorage points the versions of a view at the new name of their storage table.
func moveStorage(v *metadata.View, from, to catalog.TableIdent) error {
	for _, version := range v.Versions() {
		if st := version.StorageTable; st != nil && st.Catalog == "" && st.Name == from.Name && from.Namespace.Equal(st.Namespace) {
			if err := v.SetStorageTable(version.ID, metadata.StorageTable{Namespace: to.Namespace, Name: to.Name}); err != nil {
				return fmt.Errorf("rename storage: %w", err)
			}
		}
	}
	return nil
}

// followView is the name of a view's storage table once the view has another name. A
// name that somebody chose stays.
func followView(storage, from, to catalog.TableIdent) catalog.TableIdent {
	name := storage.Name
	if name == storageName(from.Name) {
		name = storageName(to.Name)
	}
	return catalog.TableIdent{Namespace: to.Namespace, Name: name}
}

// storageName is the default name of a view's storage table.
func storageName(view string) string { return strings.ToLower(view) + "__storage" }
