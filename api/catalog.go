package api

import (
	"context"
	"encoding/json"

	"github.com/catalogd/catalogd/catalog"
)

// Catalog is the part of *catalog.Service that the handlers call. A warehouse that does
// not exist is KindNoSuchWarehouse in every method.
type Catalog interface {
	Namespaces
	Tables
	TableWriter
	Views
	Functions
}

// Namespaces is how the handlers reach warehouses and namespaces.
type Namespaces interface {
	// Config finds a warehouse; the empty name means the default one.
	Config(ctx context.Context, warehouse string) (catalog.Warehouse, error)
	// ListNamespaces lists the children of parent, the top level if parent is empty.
	// KindNoSuchNamespace, and KindInvalid for a page that cannot be.
	ListNamespaces(ctx context.Context, warehouse string, parent catalog.Namespace, p catalog.PageRequest) (catalog.Page[catalog.Namespace], error)
	// CreateNamespace returns the properties as stored. KindAlreadyExists,
	// KindNoSuchNamespace for a missing parent.
	CreateNamespace(ctx context.Context, warehouse string, ns catalog.Namespace, props map[string]string) (map[string]string, error)
	// LoadNamespace returns the properties. KindNoSuchNamespace.
	LoadNamespace(ctx context.Context, warehouse string, ns catalog.Namespace) (map[string]string, error)
	// DropNamespace fails with KindNoSuchNamespace and KindNamespaceNotEmpty.
	DropNamespace(ctx context.Context, warehouse string, ns catalog.Namespace) error
	// UpdateNamespace fails with KindUnprocessable for a key that is both set and removed.
	UpdateNamespace(ctx context.Context, warehouse string, ns catalog.Namespace, removals []string, updates map[string]string) (catalog.NamespaceUpdate, error)
}

// Tables is how the handlers find, rename and drop tables.
type Tables interface {
	// ListTables leaves out storage tables. KindNoSuchNamespace.
	ListTables(ctx context.Context, warehouse string, ns catalog.Namespace, p catalog.PageRequest) (catalog.Page[catalog.TableIdent], error)
	// LoadTable returns the pointer and always the document. KindNoSuchTable, also for a
	// view of that name and for a missing namespace; KindNotFound if the file is gone.
	LoadTable(ctx context.Context, warehouse string, id catalog.TableIdent) (catalog.Loaded, error)
	// TableExists returns nil or KindNoSuchTable.
	TableExists(ctx context.Context, warehouse string, id catalog.TableIdent) error
	// DropTable fails with KindNoSuchTable and KindForbidden.
	DropTable(ctx context.Context, warehouse string, id catalog.TableIdent, purge bool) error
	// RenameTable fails with KindNoSuchTable, KindNoSuchNamespace, KindAlreadyExists.
	RenameTable(ctx context.Context, warehouse string, from, to catalog.TableIdent) error
	// ReportMetrics takes a client's report, also about a table that does not exist.
	ReportMetrics(ctx context.Context, warehouse string, id catalog.TableIdent, report json.RawMessage) error
}

// TableWriter is how the handlers make tables and commit to them.
type TableWriter interface {
	// CreateTable returns the new table; a staged one has no metadata location.
	// KindNoSuchNamespace, KindAlreadyExists, KindInvalid.
	CreateTable(ctx context.Context, warehouse string, ns catalog.Namespace, req catalog.CreateTableRequest) (catalog.Loaded, error)
	// CommitTable returns KindCommitStateUnknown whenever the commit may have taken
	// effect. Every other *catalog.Error, KindInternal and KindUnavailable included,
	// promises that nothing was changed; an error without a kind promises nothing.
	CommitTable(ctx context.Context, warehouse string, id catalog.TableIdent, req catalog.CommitRequest) (catalog.Loaded, error)
	// RegisterTable names an existing metadata file; overwrite moves a table that has the
	// name already. KindAlreadyExists, KindNotFound for a missing file.
	RegisterTable(ctx context.Context, warehouse string, ns catalog.Namespace, name, metadataLocation string, overwrite bool) (catalog.Loaded, error)
	// UnregisterTable forgets a table, leaves its files, and returns its last state.
	// KindNoSuchTable, KindForbidden.
	UnregisterTable(ctx context.Context, warehouse string, id catalog.TableIdent) (catalog.Loaded, error)
	// CommitTransaction makes all of the commits or none, and keeps the promise of
	// CommitTable.
	CommitTransaction(ctx context.Context, warehouse string, commits []catalog.TableCommit) error
}

// Views is how the handlers reach views, materialized or not.
type Views interface {
	// ListViews fails with KindNoSuchNamespace.
	ListViews(ctx context.Context, warehouse string, ns catalog.Namespace, p catalog.PageRequest) (catalog.Page[catalog.TableIdent], error)
	// CreateView fails with KindNoSuchNamespace, KindAlreadyExists, KindInvalid.
	CreateView(ctx context.Context, warehouse string, ns catalog.Namespace, req catalog.CreateViewRequest) (catalog.Loaded, error)
	// LoadView fails with KindNoSuchView, also for a table of that name.
	LoadView(ctx context.Context, warehouse string, id catalog.TableIdent) (catalog.Loaded, error)
	// ReplaceView keeps the promise of [TableWriter.CommitTable].
	ReplaceView(ctx context.Context, warehouse string, id catalog.TableIdent, req catalog.CommitRequest) (catalog.Loaded, error)
	// RegisterView names an existing metadata file. KindAlreadyExists, KindNotFound.
	RegisterView(ctx context.Context, warehouse string, ns catalog.Namespace, name, metadataLocation string) (catalog.Loaded, error)
	// DropView drops a materialized view's storage table, too.
	DropView(ctx context.Context, warehouse string, id catalog.TableIdent) error
	// RenameView fails with KindNoSuchView, KindNoSuchNamespace, KindAlreadyExists.
	RenameView(ctx context.Context, warehouse string, from, to catalog.TableIdent) error
	// ViewExists returns nil or KindNoSuchView.
	ViewExists(ctx context.Context, warehouse string, id catalog.TableIdent) error
}

// Functions is how the handlers reach the functions of a namespace.
type Functions interface {
	// ListFunctions fails with KindNoSuchNamespace.
	ListFunctions(ctx context.Context, warehouse string, ns catalog.Namespace, p catalog.PageRequest) (catalog.Page[catalog.TableIdent], error)
	// LoadFunction returns the function's metadata. KindNoSuchFunction,
	// KindNoSuchNamespace.
	LoadFunction(ctx context.Context, warehouse string, id catalog.TableIdent) (json.RawMessage, error)
}

var _ Catalog = (*catalog.Service)(nil)
