package mv

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/catalogd/catalogd/catalog"
)

// maxReplans bounds how often a run starts over because its storage table or the names it
// reads moved under it.
const maxReplans = 5

// Catalog is the part of *catalog.Service that this package calls.
type Catalog interface {
	Config(ctx context.Context, warehouse string) (catalog.Warehouse, error)
	Document(ctx context.Context, p catalog.Pointer) ([]byte, error)
	CreateView(ctx context.Context, warehouse string, ns catalog.Namespace, req catalog.CreateViewRequest) (catalog.Loaded, error)
	ReplaceView(ctx context.Context, warehouse string, id catalog.TableIdent, req catalog.CommitRequest) (catalog.Loaded, error)
	DropViewWith(ctx context.Context, warehouse string, id catalog.TableIdent, options any) error
	CommitTable(ctx context.Context, warehouse string, id catalog.TableIdent, req catalog.CommitRequest) (catalog.Loaded, error)
	Find(ctx context.Context, warehouse string, id catalog.TableIdent) (catalog.Pointer, bool, error)
}

// Refresher brings the storage tables of materialized views up to date.
type Refresher struct {
	registry  Registry
	catalog   Catalog
	sources   Sources
	publisher Publisher
	engine    Engine
	log       *slog.Logger
	limits    Limits
	now       func() time.Time
	observe   func(Refresh)
}

// RefresherConfig is what a [Refresher] needs.
type RefresherConfig struct {
	Registry  Registry
	Catalog   Catalog
	Sources   Sources
	Publisher Publisher
	Engine    Engine
	Limits    Limits
	Log       *slog.Logger
	Now       func() time.Time // nil: time.Now
	Observe   func(Refresh)    // called with every run that ended; may be nil
}

// NewRefresher returns a Refresher.
func NewRefresher(c RefresherConfig) *Refresher {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Observe == nil {
		c.Observe = func(Refresh) {}
	}
	return &Refresher{
		observe: c.Observe, registry: c.Registry, catalog: c.Catalog, sources: c.Sources, publisher: c.Publisher, engine: c.Engine,
		log: c.Log, limits: c.Limits, now: c.Now,
	}
}

// Run makes one attempt to bring a view up to date. Everything that is wrong with the
// view or its sources is in the attempt; an error means that nothing is known about it.
func (r *Refresher) Run(ctx context.Context, viewUUID string, info RunInfo) (Attempt, error) {
	state, err := r.registry.State(ctx, viewUUID)
	if err != nil {
		return Attempt{}, err
	}
	attempt := attemptOf(state, viewUUID)
	v := state.Views[viewUUID]
	if held, until := v.held(attempt.Inputs, state.At); held {
		attempt.Outcome, attempt.NotBefore = OutcomeHeld, until
		return attempt, nil
	}
	if waitsForSource(state, v) {
		attempt.Outcome = OutcomeParked
		return attempt, nil
	}
	run := &Refresh{
		ID: uuid.NewString(), ViewUUID: viewUUID, Status: RefreshRunning, Engine: r.engine.Name(), SnapshotID: NoSnapshot,
		Generation: v.Generation, Started: state.At, Phases: map[string]time.Duration{},
	}
	if err := r.registry.Begin(ctx, *run, info.JobID); err != nil {
		return Attempt{}, err
	}
	state, err = r.replan(ctx, state, run)
	attempt = attemptOf(state, viewUUID)
	attempt.Refresh = run
	r.conclude(ctx, &attempt, err)
	return attempt, ctx.Err()
}

func attemptOf(s State, viewUUID string) Attempt {
	return Attempt{ViewUUID: viewUUID, Inputs: s.InputsOf(viewUUID), At: s.At}
}

// conclude turns the error of a run into its outcome.
func (r *Refresher) conclude(ctx context.Context, a *Attempt, err error) {
	run := a.Refresh
	run.Ended = r.now()
	defer func() { r.observe(*run) }()
	if err == nil {
		run.Status, a.Outcome = RefreshSucceeded, OutcomeDone
		r.log.InfoContext(ctx, "view refreshed",
			slog.String("view_uuid", a.ViewUUID), slog.String("strategy", run.Strategy), slog.String("reason", run.Reason),
			slog.Int64("snapshot_id", run.SnapshotID), slog.Int64("rows", run.Rows), slog.Int64("bytes_read", run.BytesRead))
		return
	}
	run.Status, a.Outcome = RefreshFailed, OutcomeFailed
	run.Error, run.Reason = message(err), string(failureReason(err))
	switch catalog.KindOf(err) {
	case catalog.KindInvalid, catalog.KindUnprocessable, catalog.KindNoSuchTable, catalog.KindNoSuchView, catalog.KindConflict:
		a.Outcome = OutcomePermanent // the same inputs fail the same way
	}
	r.log.WarnContext(ctx, "view refresh failed", slog.String("view_uuid", a.ViewUUID),
		slog.String("outcome", string(a.Outcome)), slog.Any("error", err))
}

func message(err error) string {
	if e, ok := errors.AsType[*catalog.Error](err); ok {
		return e.Msg
	}
	return err.Error()
}

// The reasons of failed runs.
const (
	reasonQuery     Reason = "QUERY_FAILED"
	reasonEngine    Reason = "ENGINE_FAILED"
	reasonContended Reason = "STORAGE_CONTENDED"
)

// engineError marks an error of the engine itself, as opposed to one of what it reads.
type engineError struct{ error }

func (e engineError) Unwrap() error { return e.error }

func failureReason(err error) Reason {
	kind := catalog.KindOf(err)
	if _, ok := errors.AsType[engineError](err); ok && kind == catalog.KindUnavailable {
		return reasonEngine
	}
	switch kind {
	case catalog.KindInvalid, catalog.KindUnprocessable:
		return reasonQuery
	case catalog.KindNoSuchTable, catalog.KindNoSuchView:
		return ReasonSourceMissing
	case catalog.KindNotFound, catalog.KindUnavailable:
		return ReasonSourceUnreadable
	case catalog.KindCommitFailed:
		return reasonContended
	}
	return reasonEngine
}

// replan refreshes, starting over with a new reading when somebody else moved the storage
// table, or when the view turns out to read other names than were registered. It returns
// the state that the result reflects.
func (r *Refresher) replan(ctx context.Context, state State, run *Refresh) (State, error) {
	var err error
	for range maxReplans {
		err = r.refresh(ctx, state, run)
		var names *unregistered
		switch {
		case err == nil:
			return state, nil
		case errors.As(err, &names):
			if err := r.registry.SetNames(ctx, run.ViewUUID, names.names); err != nil {
				return state, err
			}
		case catalog.KindOf(err) != catalog.KindCommitFailed:
			return state, err
		}
		next, stateErr := r.registry.State(ctx, run.ViewUUID)
		if stateErr != nil {
			return state, stateErr
		}
		state = next
	}
	return state, err
}

// unregistered says that a view reads other names than the registry knows.
type unregistered struct{ names []Key }

func (u *unregistered) Error() string { return fmt.Sprintf("the view reads %d names", len(u.names)) }

// manual reports whether a person's request is waiting for a run, and whether it wants a
// full one.
func (v ViewState) manual() (requested, full bool) {
	var answered int64
	if v.LastRefresh != nil {
		answered = v.LastRefresh.Generation
	}
	return v.Generation > answered, v.FullGeneration > answered
}

// held reports whether an automatic run is not due, and until when.
func (v ViewState) held(in Inputs, now time.Time) (held bool, until time.Time) {
	if v.Definition.Mode == External || v.Definition.StorageUUID == "" {
		return true, time.Time{}
	}
	if requested, _ := v.manual(); requested {
		return false, time.Time{}
	}
	switch {
	case v.Suspended:
		return true, time.Time{}
	case v.NotBefore.After(now):
		return true, v.NotBefore
	case v.PermanentInputs != "" && v.PermanentInputs == in.Digest():
		return true, time.Time{}
	}
	return false, time.Time{}
}

// waitsForSource reports whether a materialized view that v reads has to be refreshed
// first: reading it now would mix two moments.
func waitsForSource(s State, v ViewState) bool {
	for _, src := range v.Definition.Sources {
		below, ok := s.below(v, src)
		if !ok || below.Definition.Mode == External {
			continue
		}
		if !below.StaleSince.IsZero() || below.Job != JobNone {
			return true
		}
	}
	return false
}
