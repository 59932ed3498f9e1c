package scan

import (
	"context"

	"github.com/catalogd/catalogd/catalog"
)

// Status is how far a plan is. The values are stored and sent.
type Status string

// The states of a plan.
const (
	Submitted Status = "submitted" // a job makes it
	Completed Status = "completed"
	Cancelled Status = "cancelled"
	Failed    Status = "failed"
)

// Plan is what is kept of a plan.
type Plan struct {
	ID               string // a uuid
	TableUUID        string
	MetadataLocation string // of the document that it was made from
	Status           Status
	Request          Request // with everything settled that the table decides
	Secret           []byte  // of its tokens
	// Stored is whether the pages are rows that a job has written. The pages of other
	// plans are made when they are asked for.
	Stored  bool
	Pages   int
	Failure *catalog.Error // of a failed plan
}

// Store keeps plans until they expire; catalog/postgres implements it. A plan that does
// not exist, or has expired, is KindNoSuchPlan in every method.
type Store interface {
	// CreatePlan stores a plan, and with a submitted one the job that makes it.
	CreatePlan(ctx context.Context, p Plan) error
	Plan(ctx context.Context, id string) (Plan, error)
	// CancelPlan frees what is stored for a plan.
	CancelPlan(ctx context.Context, id string) error
	// AddPage stores a page of a submitted plan, in place of an earlier attempt's. It is
	// KindNoSuchPlan, too, if the plan is not submitted any more.
	AddPage(ctx context.Context, id string, page int, body []byte) error
	// Page returns a stored page, KindNoSuchPlan if it is not there.
	Page(ctx context.Context, id string, page int) ([]byte, error)
	// FinishPlan ends a submitted plan with its pages or its failure. A plan in another
	// state stays as it is.
	FinishPlan(ctx context.Context, id string, pages int, failure *catalog.Error) error
	// ExpirePlans deletes old plans with all that belongs to them.
	ExpirePlans(ctx context.Context) error
}

// Tables is the part of the catalog that planning needs; *catalog.Service is one.
type Tables interface {
	// LoadTable returns a table and its document. KindNoSuchTable.
	LoadTable(ctx context.Context, warehouse string, id catalog.TableIdent) (catalog.Loaded, error)
	// Document returns the metadata file that a pointer names.
	Document(ctx context.Context, p catalog.Pointer) ([]byte, error)
}
