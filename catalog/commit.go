package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/catalogd/catalogd/catalog/metadata"
)

const (
	// maxCommitAttempts bounds how often a commit that lost a race is tried again while
	// its requirements still hold.
	maxCommitAttempts = 10
	// maxTransaction bounds the tables of one transaction: all of them are in memory, and
	// their rows are locked, at the same time.
	maxTransaction = 1000
)

// CommitTable applies updates to a table while the requirements hold. A commit that lost
// a race is rebased on the winner and tried again.
func (s *Service) CommitTable(ctx context.Context, warehouse string, id TableIdent, req CommitRequest) (Loaded, error) {
	return once(ctx, s, warehouse, func() (Loaded, error) {
		out, err := s.commitTables(ctx, warehouse, []TableCommit{{Ident: id, CommitRequest: req}})
		if err != nil {
			return Loaded{}, err
		}
		return out[0], nil
	}, s.loadedAgain(ctx, warehouse, id, TypeTable))
}

// CommitTransaction makes all of the commits, or none of them.
func (s *Service) CommitTransaction(ctx context.Context, warehouse string, commits []TableCommit) error {
	return onceOnly(ctx, s, warehouse, func() error {
		if len(commits) > maxTransaction {
			return Errorf(KindInvalid, "The transaction changes %d tables, %d are allowed", len(commits), maxTransaction)
		}
		seen := make(map[hintKey]bool, len(commits))
		for _, c := range commits {
			key := hintOf(warehouse, c.Ident)
			if seen[key] {
				return Errorf(KindInvalid, "The transaction names table %s twice: put its requirements and updates into one change", c.Ident)
			}
			seen[key] = true
		}
		if len(commits) == 0 {
			_, err := s.store.Warehouse(ctx, warehouse)
			return err
		}
		_, err := s.commitTables(ctx, warehouse, commits)
		return err
	})
}

func (s *Service) commitTables(ctx context.Context, warehouse string, commits []TableCommit) ([]Loaded, error) {
	keys := make([]hintKey, len(commits))
	for i, c := range commits {
		keys[i] = hintOf(warehouse, c.Ident)
	}
	turn, err := s.turns.take(ctx, keys...)
	if err != nil {
		return nil, err
	}
	defer turn.end(ctx)
	for range maxCommitAttempts {
		var (
			out  []Loaded
			lost bool
		)
		out, lost, err = s.tryCommit(ctx, warehouse, commits, turn)
		if !lost {
			return out, err
		}
	}
	return nil, Errorf(KindCommitFailed, "Commit failed: table %s was changed by others %d times in a row, try again", commits[0].Ident, maxCommitAttempts).Because(err)
}

// draft is what one commit of a transaction comes to.
type draft struct {
	key     hintKey
	base    *state          // nil: the table is to be created
	after   *metadata.Table // nil: nothing changes
	propose Proposed
}

func (s *Service) tryCommit(ctx context.Context, warehouse string, commits []TableCommit, turn *turn) (out []Loaded, lost bool, err error) {
	drafts := make([]draft, len(commits))
	var proposed []Proposed
	creates := false
	for i, c := range commits {
		d, err := s.draft(ctx, warehouse, c, turn)
		if err != nil {
			return nil, false, about(err, c.Ident, len(commits) > 1)
		}
		drafts[i] = d
		creates = creates || d.base == nil
		if d.after != nil {
			proposed = append(proposed, d.propose)
		}
	}
	since := time.Now()
	var changes []Change
	if len(proposed) > 0 {
		changes, err = s.Apply(ctx, proposed...)
	} else {
		answersWith(ctx, drafts[0].base.loaded.Pointer.MetadataLocation)
	}
	out = make([]Loaded, len(commits))
	for i, d := range drafts {
		switch {
		case err != nil:
			turn.hand(d.key, nil) // who knows
		case d.after == nil:
			out[i] = d.base.loaded
		default:
			out[i] = Loaded{Pointer: changes[0].Pointer, Document: changes[0].Document}
			changes = changes[1:]
			turn.change(d.key, &state{since: since, loaded: out[i], table: d.after})
		}
	}
	if creates && KindOf(err) == KindAlreadyExists {
		return nil, false, Errorf(KindCommitFailed, "Requirement failed: table already exists").Because(err)
	}
	return out, KindOf(err) == KindCommitFailed, err
}

// about names the table of a transaction that an error is about.
func about(err error, id TableIdent, several bool) error {
	e, ok := errors.AsType[*Error](err)
	if !several || !ok {
		return err
	}
	named := *e
	named.Msg = fmt.Sprintf("%s (table %s)", e.Msg, id)
	return &named
}

// draft works out what a commit does to the current state.
func (s *Service) draft(ctx context.Context, warehouse string, c TableCommit, turn *turn) (draft, error) {
	d := draft{key: hintOf(warehouse, c.Ident)}
	handed := turn.state(d.key)
	var err error
	if d.base, err = s.base(ctx, warehouse, c, turn); err != nil {
		return d, err
	}
	if d.base == nil {
		d.propose, err = s.draftCreate(ctx, warehouse, c)
		d.after = d.propose.Table
		return d, err
	}
	turn.hand(d.key, d.base)
	before := d.base.table
	if err := before.Check(c.Requirements); err != nil {
		turn.late = d.base == handed
		return d, refused(err)
	}
	row := d.base.loaded.Pointer
	after := before.Clone()
	err = after.Apply(c.Updates, metadata.ApplyContext{Now: s.now(), PreviousLocation: row.MetadataLocation})
	if err != nil {
		return d, refused(err)
	}
	p := &TableProposal{
		Warehouse: Warehouse{Name: row.Warehouse}, Ident: c.Ident, Row: &row, Base: before, Table: after, Request: c.CommitRequest,
	}
	if err := s.guard.Table(ctx, p); err != nil {
		return d, err
	}
	if !after.Changed() {
		return d, nil
	}
	d.after = after
	d.propose = Proposed{
		Op: OpSwap, Row: row, From: row.MetadataLocation, Table: after, Claim: after.Location() != before.Location(), Attachment: p.Attachment,
	}
	return d, nil
}

// base is the state that a commit starts from, nil if it creates the table.
func (s *Service) base(ctx context.Context, warehouse string, c TableCommit, turn *turn) (*state, error) {
	if left := turn.state(hintOf(warehouse, c.Ident)); left != nil {
		return left, nil
	}
	since := time.Now()
	loaded, err := s.load(ctx, warehouse, c.Ident, TypeTable)
	if KindOf(err) == KindNoSuchTable {
		create, badErr := metadata.IsCreate(c.Requirements)
		if badErr != nil {
			return nil, refused(badErr)
		}
		if create {
			return nil, nil //nolint:nilnil // documented
		}
	}
	if err != nil {
		return nil, err
	}
	if table := loaded.Document.table; table != nil {
		return &state{since: since, loaded: loaded, table: table}, nil
	}
	plain, err := s.plain(loaded)
	if err != nil {
		return nil, err
	}
	table, err := metadata.ParseTable(plain)
	if err != nil {
		return nil, Errorf(KindInternal, "table metadata of %s cannot be read", c.Ident).Because(err)
	}
	return &state{since: since, loaded: loaded, table: table}, nil
}

// draftCreate is the second half of a staged create.
func (s *Service) draftCreate(ctx context.Context, warehouse string, c TableCommit) (Proposed, error) {
	if err := CheckIdent(c.Ident); err != nil {
		return Proposed{}, err
	}
	w, err := s.free(ctx, warehouse, c.Ident, TypeTable)
	if err != nil {
		return Proposed{}, err
	}
	if err := metadata.CheckCreate(c.Requirements); err != nil {
		return Proposed{}, refused(err)
	}
	t, err := metadata.NewEmptyTable(0, newUUID())
	if err != nil {
		return Proposed{}, refused(err)
	}
	if err := t.Apply(c.Updates, metadata.ApplyContext{Now: s.now()}); err != nil {
		return Proposed{}, refused(err)
	}
	if t.Location() == "" {
		if err := s.locate(ctx, w, c.Ident, t); err != nil {
			return Proposed{}, err
		}
	}
	p := &TableProposal{Warehouse: w, Ident: c.Ident, Table: t, Request: c.CommitRequest}
	if err := s.guard.Table(ctx, p); err != nil {
		return Proposed{}, err
	}
	if err := s.files.Prepare(ctx, t.Location()); err != nil {
		return Proposed{}, err
	}
	row := Pointer{Warehouse: w.Name, Ident: c.Ident, Type: TypeTable}
	return Proposed{Op: OpCreate, Row: row, Table: t, Claim: true, Attachment: p.Attachment}, nil
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
