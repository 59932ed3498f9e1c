package catalog

import (
	"context"

	"github.com/catalogd/catalogd/catalog/metadata"
)

// Guard is how the materialized-view layer takes part in catalog operations: it is asked
// after a request has been applied to the document and before anything is written. It
// may refuse, edit a proposed view, and add changes to the same transaction.
type Guard interface {
	// View sees the document that createView, replaceView or registerView would write.
	View(ctx context.Context, p *ViewProposal) error
	// Table sees a table that a request would create, or change by a commit.
	Table(ctx context.Context, p *TableProposal) error
	// Drop sees a table or view before it is dropped.
	Drop(ctx context.Context, p *DropProposal) error
	// Rename sees a table or view before it gets another name.
	Rename(ctx context.Context, p *RenameProposal) error
	// Undrop sees a dropped object before it comes back.
	Undrop(ctx context.Context, p *UndropProposal) error
}

// ViewProposal is a view about to be written.
type ViewProposal struct {
	Warehouse  Warehouse
	Ident      TableIdent
	UUID       string
	BaseRow    *Pointer       // nil for a new view
	Base       *metadata.View // nil for a new view
	View       *metadata.View // may be edited
	Options    any            // from the request
	Extra      []Proposed     // added by the guard, same transaction
	Attachment any
}

// TableProposal is a table about to be created (Row is nil) or changed.
type TableProposal struct {
	Warehouse Warehouse
	Ident     TableIdent
	Row       *Pointer
	Base      *metadata.Table // nil for a new table
	Table     *metadata.Table
	Request   CommitRequest
	// Attachment travels with the change to the transaction's hook.
	Attachment any
}

// DropProposal is an object about to be dropped.
type DropProposal struct {
	Warehouse Warehouse
	Row       Pointer
	Options   any
	Extra     []Proposed
}

// RenameProposal is an object about to get another name.
type RenameProposal struct {
	Warehouse  Warehouse
	Row        Pointer
	To         TableIdent
	Extra      []Proposed // added by the guard, same transaction
	Attachment any
}

// Proposed is a change that the guard adds. For OpCreate and OpSwap the document is
// Table or View, whose file the service writes.
type Proposed struct {
	Op         Op
	Row        Pointer // as in [Change]; MetadataLocation is filled in by the service
	From       string
	To         TableIdent
	Table      *metadata.Table
	View       *metadata.View
	Claim      bool // as in [Change]
	Attachment any
}

// Unguarded is the guard of a catalog without materialized views.
type Unguarded struct{}

// View implements [Guard].
func (Unguarded) View(context.Context, *ViewProposal) error { return nil }

// Table implements [Guard].
func (Unguarded) Table(context.Context, *TableProposal) error { return nil }

// Drop implements [Guard].
func (Unguarded) Drop(context.Context, *DropProposal) error { return nil }

// Rename implements [Guard].
func (Unguarded) Rename(context.Context, *RenameProposal) error { return nil }

// Undrop implements [Guard].
func (Unguarded) Undrop(context.Context, *UndropProposal) error { return nil }

var _ Guard = Unguarded{}
