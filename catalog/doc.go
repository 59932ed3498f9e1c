// Package catalog is the domain of catalogd: identifiers, errors, the [Service] that
// carries out every catalog operation, and the interfaces it needs from the outside.
//
// A table or a view is a pointer (one row) to an immutable metadata file. A commit
// checks requirements and applies updates to the document (package catalog/metadata,
// pure), writes the next file, and swaps the pointer in one transaction that also
// stores the document, marks the materialized views that went stale and enqueues
// their refresh. Nothing here knows Postgres, HTTP or River.
package catalog
