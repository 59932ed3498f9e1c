package mv

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/catalogd/catalogd/catalog"
)

// Key names an object across warehouses.
type Key struct {
	Warehouse string
	Namespace string // in the form of column table_namespace
	Name      string
}

// State is one consistent reading of a materialized view and of everything it reads,
// through all the materialized views below it. It comes from ONE SQL statement, so that
// no two of its heads belong to different moments.
type State struct {
	At      time.Time // Postgres clock of the reading
	Root    string    // view uuid that was asked for
	Views   map[string]ViewState
	Objects map[Key]catalog.Pointer // rows of every name involved; a missing name has none
	// Unchanged holds the source snapshots that the change log proves to have changed no
	// row (compactions), by table uuid.
	Unchanged map[string]map[int64]bool
	// Leased holds the snapshots that answers have named and that must stay, by table uuid.
	Leased map[string]map[int64]bool
}

// unchanged reports whether none of the snapshots changed a row.
func (s State) unchanged(tableUUID string, snapshots []int64) bool {
	for _, id := range snapshots {
		if !s.Unchanged[tableUUID][id] {
			return false
		}
	}
	return true
}

// ViewState is the registry's row of a materialized view.
type ViewState struct {
	Definition      Definition
	Names           []Key // materialized_view_source: every name it reads, sorted
	StaleSince      time.Time
	NotBefore       time.Time
	Suspended       bool
	Failures        int
	LastError       string
	PermanentInputs string // digest of inputs for which running again is useless
	Generation      int64
	FullGeneration  int64 // newest request that wants a full refresh
	Job             JobState
	LastRefresh     *Refresh // newest run that ended
	Running         *Refresh // the run under way, if any
}

// Inputs is what an attempt saw of the names that a view reads: their uuid and metadata
// location, or absence.
type Inputs map[Key]Observed

// Observed is one observed name. An absent name has the zero value.
type Observed struct {
	UUID             string
	MetadataLocation string
}

// InputsOf picks the rows behind a view's names, and its own view row, out of s.
func (s State) InputsOf(viewUUID string) Inputs {
	v := s.Views[viewUUID]
	in := make(Inputs, len(v.Names)+1)
	own := KeyOf(v.Definition.Warehouse, v.Definition.Ident)
	for _, k := range append(slices.Clone(v.Names), own) {
		p := s.Objects[k]
		in[k] = Observed{UUID: p.UUID, MetadataLocation: p.MetadataLocation}
	}
	return in
}

// Digest identifies in; two equal inputs have the same digest.
func (in Inputs) Digest() string {
	lines := make([]string, 0, len(in))
	for k, v := range in {
		lines = append(lines, fmt.Sprintf("%q %q %q %q %q", k.Warehouse, k.Namespace, k.Name, v.UUID, v.MetadataLocation))
	}
	slices.Sort(lines)
	sum := sha256.Sum256([]byte(strings.Join(lines, "\n")))
	return hex.EncodeToString(sum[:])
}

// Outcome says how an attempt ended.
type Outcome string

// The outcomes.
const (
	OutcomeDone      Outcome = "done"      // the storage table reflects the inputs
	OutcomeFailed    Outcome = "failed"    // try again later, with backoff
	OutcomePermanent Outcome = "permanent" // fails again until an input changes
	OutcomeParked    Outcome = "parked"    // a source materialized view has to go first
	OutcomeHeld      Outcome = "held"      // not due: backoff, suspension or an external view
)

// Attempt is what one run of a refresh job did, handed to the transaction that ends it.
type Attempt struct {
	ViewUUID  string
	Inputs    Inputs
	At        time.Time // State.At: the inputs were current then
	Outcome   Outcome
	Refresh   *Refresh // nil if nothing was tried (parked, held)
	NotBefore time.Time
	// Generation is the newest manual request that was known when the attempt began;
	// Refresh.Generation counts as well.
	Generation int64
}

// Registration is what the guard hands to the transaction of a view's commit
// (catalog.Change.Attachment): the definition to record, or its end.
type Registration struct {
	Definition Definition
	Names      []Key
	Remove     bool // the view is no materialized view any more
	// KeepsData is true if the stored rows still answer the new definition.
	KeepsData bool
	// Suspended is for a view that comes back after it was dropped: automatic runs stay off.
	Suspended bool
}

// KeptName is a [Key] as it is kept.
type KeptName struct {
	Warehouse string `json:"warehouse"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// KeptRegistration is what the registry remembers of a materialized view that was dropped
// and can come back. It is stored as JSON.
type KeptRegistration struct {
	Definition Definition `json:"definition"`
	Names      []KeptName `json:"names"`
	Suspended  bool       `json:"suspended"`
}

// Registry is the durable half of this package; mv/postgres implements it.
type Registry interface {
	// State reads a view, its sources and the views below. KindNoSuchView.
	State(ctx context.Context, viewUUID string) (State, error)
	// Named is State by name; KindNoSuchView if the name is no materialized view.
	Named(ctx context.Context, warehouse string, id catalog.TableIdent) (State, error)
	// All reads every materialized view of a warehouse in one State (Root is empty).
	All(ctx context.Context, warehouse string) (State, error)
	// SetNames replaces the names that a view reads, found by reading it again.
	SetNames(ctx context.Context, viewUUID string, names []Key) error
	// LogUnchanged records snapshots of a source that changed no row.
	LogUnchanged(ctx context.Context, tableUUID string, snapshots []int64) error
	// Begin records that a run has started; Report its progress (rate-limited by the caller).
	Begin(ctx context.Context, r Refresh, jobID int64) error
	Report(ctx context.Context, refreshID string, percent float64) error
	// Refreshes lists runs, newest first.
	Refreshes(ctx context.Context, viewUUID string, limit int) ([]Refresh, error)
}

// Requests is how people steer refreshes; mv/postgres implements it together with package
// jobs, which enqueues.
type Requests interface {
	// Request asks for a run that starts after the call: it advances the view's
	// generation, clears what holds it back and makes sure that a job exists.
	Request(ctx context.Context, viewUUID string, full bool) (generation int64, err error)
	// SetSuspended suspends or resumes automatic runs; resuming clears the failures.
	SetSuspended(ctx context.Context, viewUUID string, suspended bool) error
}

// KeyOf names id in warehouse.
func KeyOf(warehouse string, id catalog.TableIdent) Key {
	return Key{Warehouse: warehouse, Namespace: catalog.EncodeNamespace(id.Namespace), Name: id.Name}
}
