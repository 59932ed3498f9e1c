package mv

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/catalogd/catalogd/catalog"
)

// Freshness implements [API].
func (s *Service) Freshness(ctx context.Context, warehouse string, id catalog.TableIdent) (Freshness, error) {
	state, err := s.registry.Named(ctx, warehouse, id)
	if err != nil {
		return Freshness{}, err
	}
	docs, err := s.documents(ctx, state)
	if err != nil {
		return Freshness{}, err
	}
	return freshness(state, docs, state.Root), nil
}

// List implements [API].
func (s *Service) List(ctx context.Context, warehouse string) ([]Freshness, error) {
	w, err := s.catalog.Config(ctx, warehouse)
	if err != nil {
		return nil, err
	}
	state, err := s.registry.All(ctx, w.Name)
	if err != nil {
		return nil, err
	}
	docs, err := s.documents(ctx, state)
	if err != nil {
		return nil, err
	}
	out := make([]Freshness, 0, len(state.Views))
	for uuid, v := range state.Views {
		if v.Definition.Warehouse == w.Name {
			out = append(out, freshness(state, docs, uuid))
		}
	}
	slices.SortFunc(out, func(a, b Freshness) int { return strings.Compare(a.View.String(), b.View.String()) })
	return out, nil
}

// documents reads what [Judge] needs: the storage tables, and the sources that have moved
// since they were read. A document that cannot be had is left out, which makes the verdict
// undetermined instead of failing the whole answer.
func (s *Service) documents(ctx context.Context, state State) (Documents, error) {
	docs := Documents{}
	for _, v := range state.Views {
		d := v.Definition
		wanted := []Key{KeyOf(d.Warehouse, d.Storage)}
		for _, src := range d.Sources {
			switch src.Kind {
			case SourceTable:
				wanted = append(wanted, KeyOf(d.Warehouse, src.Ident))
			case SourceMV:
				wanted = append(wanted, KeyOf(d.Warehouse, src.Storage))
			case SourceView: // its version is in its row
			}
		}
		for _, k := range wanted {
			p, ok := state.Objects[k]
			if !ok || p.Type != catalog.TypeTable || docs[p.MetadataLocation] != nil {
				continue
			}
			doc, err := s.catalog.Document(ctx, p)
			if catalog.KindOf(err) == catalog.KindUnavailable {
				return nil, err
			}
			if err == nil {
				docs[p.MetadataLocation] = doc
			}
		}
	}
	return docs, nil
}

func freshness(state State, docs Documents, uuid string) Freshness {
	v := state.Views[uuid]
	d := v.Definition
	f := Freshness{
		View: d.Ident, ViewUUID: d.ViewUUID, VersionID: d.VersionID, Storage: d.Storage, StorageSnap: NoSnapshot,
		Dialect: d.Dialect, SQL: d.SQL, MaxStaleness: d.MaxStaleness, Mode: d.Mode, Sources: d.Sources,
		Suspended: v.Suspended, Failures: v.Failures, NotBefore: v.NotBefore, LastError: v.LastError,
		Job: v.Job, LastRefresh: v.LastRefresh,
	}
	if row, ok := state.Objects[KeyOf(d.Warehouse, d.Storage)]; ok {
		f.StorageSnap = row.SnapshotID
	}
	if !f.NotBefore.After(state.At) {
		f.NotBefore = time.Time{}
	}
	f.Direct, f.Recursive = Judge(state, docs, uuid)
	return f
}

// Refreshes implements [API].
func (s *Service) Refreshes(ctx context.Context, warehouse string, id catalog.TableIdent, limit int) ([]Refresh, error) {
	state, err := s.registry.Named(ctx, warehouse, id)
	if err != nil {
		return nil, err
	}
	return s.registry.Refreshes(ctx, state.Root, limit)
}

// Refresh implements [API].
func (s *Service) Refresh(ctx context.Context, warehouse string, id catalog.TableIdent, req RefreshRequest) (Ticket, error) {
	state, err := s.registry.Named(ctx, warehouse, id)
	if err != nil {
		return Ticket{}, err
	}
	d := state.Views[state.Root].Definition
	if d.StorageUUID == "" {
		return Ticket{}, catalog.Errorf(catalog.KindConflict, "%s cannot be refreshed here: its storage table %s is in another catalog", id, d.Storage)
	}
	if d.Mode == External {
		return Ticket{}, catalog.Errorf(catalog.KindConflict, "%s is refreshed by an external engine (catalogd.refresh=external), catalogd only judges its freshness", id)
	}
	generation, err := s.requests.Request(ctx, state.Root, req.Full)
	return Ticket{ViewUUID: state.Root, Generation: generation}, err
}

// WaitRefresh implements [API]. A run that failed is an answer, not an error.
func (s *Service) WaitRefresh(ctx context.Context, t Ticket, poll time.Duration) (Refresh, error) {
	for {
		runs, err := s.registry.Refreshes(ctx, t.ViewUUID, 20)
		if err != nil {
			return Refresh{}, err
		}
		for _, r := range slices.Backward(runs) {
			if r.Generation >= t.Generation && (r.Status == RefreshSucceeded || r.Status == RefreshFailed) {
				return r, nil
			}
		}
		if err := s.blocked(ctx, t); err != nil {
			return Refresh{}, err
		}
		select {
		case <-ctx.Done():
			return Refresh{}, ctx.Err()
		case <-time.After(poll):
		}
	}
}

// blocked fails if the run that t waits for cannot start: a materialized view below is
// suspended and not up to date.
func (s *Service) blocked(ctx context.Context, t Ticket) error {
	state, err := s.registry.State(ctx, t.ViewUUID)
	if err != nil {
		return err
	}
	v := state.Views[t.ViewUUID]
	for _, src := range v.Definition.Sources {
		below, ok := state.below(v, src)
		if ok && below.Suspended && !below.StaleSince.IsZero() && below.Job == JobNone {
			return catalog.Errorf(catalog.KindConflict, "%s reads %s, which is suspended and not up to date: run `catalogd mv resume %s` first",
				v.Definition.Ident, src.Ident, src.Ident)
		}
	}
	return nil
}

// below returns the materialized view behind a source.
func (s State) below(v ViewState, src Source) (ViewState, bool) {
	if src.Kind != SourceMV {
		return ViewState{}, false
	}
	row, ok := s.Objects[KeyOf(v.Definition.Warehouse, src.Ident)]
	if !ok {
		return ViewState{}, false
	}
	below, ok := s.Views[row.UUID]
	return below, ok
}

// SetSuspended implements [API].
func (s *Service) SetSuspended(ctx context.Context, warehouse string, id catalog.TableIdent, suspended bool) error {
	state, err := s.registry.Named(ctx, warehouse, id)
	if err != nil {
		return err
	}
	return s.requests.SetSuspended(ctx, state.Root, suspended)
}

// Drop implements [API].
func (s *Service) Drop(ctx context.Context, warehouse string, id catalog.TableIdent, keepStorage bool) error {
	if _, err := s.registry.Named(ctx, warehouse, id); err != nil {
		return err
	}
	return s.catalog.DropViewWith(ctx, warehouse, id, DropOptions{KeepStorage: keepStorage})
}
