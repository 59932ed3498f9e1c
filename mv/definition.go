package mv

import (
	"time"

	"github.com/catalogd/catalogd/catalog"
)

// Dialect is the SQL dialect of a view's text.
type Dialect string

// The dialects that catalogd reads.
const (
	DuckDB Dialect = "duckdb"
	Trino  Dialect = "trino"
	Spark  Dialect = "spark"
)

// RefreshMode says who refreshes a materialized view (property catalogd.refresh).
type RefreshMode string

// The refresh modes.
const (
	Managed  RefreshMode = "managed"  // catalogd refreshes it
	External RefreshMode = "external" // engines refresh it, catalogd judges its freshness
)

// Staleness is the max-staleness-ms of a view.
type Staleness struct {
	Unbounded bool          `json:"unbounded"` // any age will do
	Max       time.Duration `json:"max-ns"`    // 0: always exact
}

// Definition is what a materialized view is, as registered when its view version was
// committed.
type Definition struct {
	ViewUUID     string             `json:"view-uuid"`
	Warehouse    string             `json:"warehouse"`
	Ident        catalog.TableIdent `json:"ident"`
	VersionID    int                `json:"version-id"`
	Dialect      Dialect            `json:"dialect"`
	SQL          string             `json:"sql"`
	DefaultNS    catalog.Namespace  `json:"default-namespace"` // of the view version, for unqualified names
	DefaultCat   string             `json:"default-catalog"`   // the client's name for this catalog, may be empty
	Storage      catalog.TableIdent `json:"storage"`
	StorageUUID  string             `json:"storage-uuid"`
	Columns      []Column           `json:"columns"`
	Sources      []Source           `json:"sources"`
	MaxStaleness Staleness          `json:"max-staleness"`
	Mode         RefreshMode        `json:"mode"`
	TimeZone     string             `json:"time-zone"` // engine session zone, default UTC
}

// Column is an output column. Type is an Iceberg type in its JSON text form
// ("long", "decimal(38, 0)", "timestamptz").
type Column struct {
	Name string `json:"name"`
	Type string `json:"type"`
	ID   int    `json:"id"` // field id in the storage table
}

// SourceKind says what a name in the FROM clause turned out to be.
type SourceKind string

// The kinds of source.
const (
	SourceTable SourceKind = "table" // an Iceberg table
	SourceView  SourceKind = "view"  // a plain view; its own sources are listed as well
	SourceMV    SourceKind = "mv"    // a materialized view: recursion stops at its storage table
)

// Source is an object that a materialized view reads, directly or through plain views.
type Source struct {
	Kind    SourceKind         `json:"kind"`
	Ident   catalog.TableIdent `json:"ident"`
	UUID    string             `json:"uuid"`    // when the definition was registered
	Storage catalog.TableIdent `json:"storage"` // SourceMV: the table that is read
	Via     catalog.TableIdent `json:"via"`     // the plain view that names it; zero if the query itself does
}
