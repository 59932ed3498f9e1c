package mv

import (
	"context"
	"time"

	"github.com/catalogd/catalogd/catalog"
)

// CreateOptions is how our own API and CLI describe a materialized view beyond what a
// view holds. It travels in catalog.CreateViewRequest.Options.
type CreateOptions struct {
	StorageName string            // default <view>__storage
	Partition   []string          // storage partitioning, e.g. "day(d)", "bucket(16, id)", "none"
	Sort        []string          // storage sort order, e.g. "carrier asc"
	Properties  map[string]string // storage table properties
	Location    string            // storage table location
}

// CreateRequest is the body of POST …/materialized-views.
type CreateRequest struct {
	Ident        catalog.TableIdent
	SQL          string
	Dialect      Dialect           // default duckdb
	DefaultNS    catalog.Namespace // for unqualified names; default: the view's own namespace
	MaxStaleness *Staleness        // nil: 0, always exact
	Comment      string
	Properties   map[string]string // view properties
	OrReplace    bool
	Options      CreateOptions
}

// RefreshRequest asks for a run that starts after the call.
type RefreshRequest struct {
	Full bool
}

// Ticket names the run that will answer a [RefreshRequest].
type Ticket struct {
	ViewUUID   string
	Generation int64
}

// API is what package api calls; [*Service] implements it.
type API interface {
	// Create makes a materialized view and returns its freshness.
	Create(ctx context.Context, warehouse string, req CreateRequest) (Freshness, error)
	// List returns the freshness of all of a warehouse's materialized views, by name.
	List(ctx context.Context, warehouse string) ([]Freshness, error)
	// Freshness returns KindNoSuchView if id is not a materialized view.
	Freshness(ctx context.Context, warehouse string, id catalog.TableIdent) (Freshness, error)
	// Refresh requests a run; WaitRefresh blocks until it has ended or ctx is done.
	Refresh(ctx context.Context, warehouse string, id catalog.TableIdent, req RefreshRequest) (Ticket, error)
	WaitRefresh(ctx context.Context, t Ticket, poll time.Duration) (Refresh, error)
	// Refreshes lists runs, newest first. Refreshes of a dropped view are gone.
	Refreshes(ctx context.Context, warehouse string, id catalog.TableIdent, limit int) ([]Refresh, error)
	// SetSuspended suspends or resumes automatic refreshes.
	SetSuspended(ctx context.Context, warehouse string, id catalog.TableIdent, suspended bool) error
	// Drop drops the view; its storage goes with it unless keepStorage leaves a plain table.
	Drop(ctx context.Context, warehouse string, id catalog.TableIdent, keepStorage bool) error
}
