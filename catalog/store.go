package catalog

import (
	"context"
	"time"

	"github.com/catalogd/catalogd/catalog/metadata"
)

// Warehouse is a named set of namespaces with a root location. Its name is the REST
// prefix and the catalog_name of every row.
type Warehouse struct {
	Name     string
	Location string // root of its tables, without a trailing slash
}

// Pointer is a table's or view's row: its name and the metadata file it points at, with
// the few facts of that file which other objects compare (so that freshness and hooks
// need no document).
type Pointer struct {
	Warehouse        string
	Ident            TableIdent
	Type             ObjectType
	UUID             string // table-uuid or view-uuid
	MetadataLocation string
	Location         string // the object's base location
	SnapshotID       int64  // tables: current snapshot, -1 if none
	SchemaID         int    // tables: current-schema-id
	ViewVersionID    int    // views: current-version-id
	StorageOf        string // storage tables: uuid of the materialized view; else empty
	IsMaterialized   bool   // views: the current version has a storage table
	ChangedAt        time.Time
}

// Document is an immutable metadata file as it is stored beside its pointer.
type Document struct {
	MetadataLocation string
	All              Encoded // the whole file
	Refs             Encoded // the snapshots=refs form; empty if it equals All

	// table is All, parsed, if it was at hand when the document was made: the next commit
	// starts from it.
	table *metadata.Table
}

// Encoded is a JSON text as a raw deflate stream that ends in a sync flush (no final
// block), so that an HTTP answer can be one gzip member spliced around it. CRC32 and
// Size are those of the plain text.
type Encoded struct {
	Deflate []byte
	CRC32   uint32
	Size    int64
}

// Loaded is the answer of one load: the pointer, and the document unless the caller
// already holds it.
type Loaded struct {
	Pointer  Pointer
	Document *Document // nil if MetadataLocation equals what the caller said it holds
}

// Page is one page of a listing.
type Page[T any] struct {
	Items []T
	Next  string // token of the next page, empty at the end
}

// PageRequest asks for the names after a token. Size 0 means everything.
type PageRequest struct {
	After string
	Size  int
	// StorageTables also lists the storage tables of materialized views.
	StorageTables bool
}

// NoDocument is the known location of a caller that wants the pointer only.
const NoDocument = "*"

// Reader is what the catalog reads from durable storage.
type Reader interface {
	// Warehouse returns KindNoSuchWarehouse if name is unknown; the empty name means the
	// default warehouse.
	Warehouse(ctx context.Context, name string) (Warehouse, error)
	// Load returns a table or view by name in one round trip. known is a metadata
	// location whose document the caller holds (may be empty). A missing object is
	// KindNoSuchTable or KindNoSuchView by typ; an object of the other type too.
	Load(ctx context.Context, warehouse string, id TableIdent, typ ObjectType, known string) (Loaded, error)
	// Namespace returns its properties, KindNoSuchNamespace if it does not exist.
	Namespace(ctx context.Context, warehouse string, ns Namespace) (map[string]string, error)
	// ListNamespaces lists the direct children of parent (nil: the top level);
	// KindNoSuchNamespace if parent does not exist.
	ListNamespaces(ctx context.Context, warehouse string, parent Namespace, p PageRequest) (Page[Namespace], error)
	// List lists tables or views of a namespace, without storage tables unless p asks for
	// them; KindNoSuchNamespace.
	List(ctx context.Context, warehouse string, ns Namespace, typ ObjectType, p PageRequest) (Page[string], error)
	// Documents returns the stored documents of the given metadata locations; a location
	// that is not stored is absent from the answer.
	Documents(ctx context.Context, locations []string) (map[string]Document, error)
}

// Store is the durable half of the catalog; package catalog/postgres implements it.
//
// Whatever it changes, it writes the receipt of ctx ([ReceiptOf]) in the same
// transaction, and says so in it.
type Store interface {
	Reader
	Receipts
	FunctionStore
	Life
	WarehouseStore
	ReportStore
	// Commit carries out changes in order in one transaction, with everything that
	// follows from them (documents, stale marks, refresh jobs). It fails with
	//   KindCommitFailed        a swap's From is no longer the current location
	//   KindAlreadyExists       a created or renamed-to name is taken
	//   KindForbidden           a claimed location is taken
	//   ErrRepeated             the receipt of ctx was written before
	//   KindNoSuch{Table,View,Namespace}
	//   KindCommitStateUnknown  the outcome of COMMIT is not known
	//   KindUnavailable         nothing was changed
	// and in every case but CommitStateUnknown nothing was changed.
	Commit(ctx context.Context, changes []Change) error
	// CreateNamespace fails with KindAlreadyExists. Missing parents come into being, as
	// with every other Iceberg catalog that keeps namespaces by name.
	CreateNamespace(ctx context.Context, warehouse string, ns Namespace, props map[string]string) error
	// UpdateNamespace returns which of remove did not exist.
	UpdateNamespace(ctx context.Context, warehouse string, ns Namespace, remove []string, set map[string]string) (missing []string, err error)
	// DropNamespace fails with KindNamespaceNotEmpty. Storage tables do not count, but a
	// view that owns one does.
	DropNamespace(ctx context.Context, warehouse string, ns Namespace) error
}

// Op says what a Change does.
type Op uint8

// The operations.
const (
	OpCreate Op = iota + 1 // insert Pointer (also register)
	OpSwap                 // move Pointer from From to Pointer.MetadataLocation
	OpDrop                 // delete the row of Pointer.Ident
	OpRename               // give the row of Pointer.Ident the name To
)

// Change is one change of one object inside [Store.Commit].
type Change struct {
	Op       Op
	Pointer  Pointer    // the state after the change; for OpDrop and OpRename the state before
	From     string     // OpSwap, OpDrop: the location that must be current (OpDrop: empty = any)
	To       TableIdent // OpRename
	Document *Document  // OpCreate, OpSwap
	Purge    bool       // OpDrop: the client asked for the files to be deleted
	// Forget, of OpDrop, gives the table up to its client: it is not kept for undrop.
	Forget bool
	// Undrop, of OpCreate, is the drop that is taken back: the row comes from there, but
	// for its name.
	Undrop int64
	// Claim says that a table takes Pointer.Location, which it did not have before. No
	// other table may have it, or one inside it or around it.
	Claim bool
	// Obsolete, of OpSwap, are the metadata files that may be deleted after the commit.
	Obsolete []string
	// Attachment is what the [Guard] prepared for the transaction's hook, for example
	// the registration of a materialized view. The catalog never reads it.
	Attachment any
}
