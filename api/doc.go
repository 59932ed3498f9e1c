// Package api is catalogd's HTTP surface: the Iceberg REST catalog protocol
// (openapi/catalog.yaml), catalogd's own operations on materialized views
// (openapi/mv.yaml), health and metrics.
//
// Handlers decode and check what a client sent, make one call into the domain, and encode
// the answer. Table and view metadata is never decoded here: a stored document is a run
// of deflate blocks, and an answer is written around it. Failures leave
// through one error handler, which owns the only translation from [catalog.Kind] to an
// HTTP status and an Iceberg exception name.
//
// # Namespaces in URLs
//
// The levels of a namespace are joined with the unit separator (0x1F), the default of the
// protocol. Another separator could be announced, and some clients would then send that
// one and others (those from before the announcement existed) still 0x1F. Every printable
// candidate, however, may occur inside a level: with "." announced, "a.b" would be one
// level to one client and two to another. So 0x1F is announced, explicitly, because an
// override also corrects a client that was configured otherwise; a dot is an ordinary
// character of a level; and a level that holds 0x1F itself is refused, since no URL could
// name it.
//
// # Commits
//
// Iceberg clients read a 5xx on a commit as "the outcome is unknown": they keep files that
// a failed commit orphaned, and give up. So on updateTable and replaceView a failure that
// is known to have changed nothing is 409 CommitFailedException, whatever its cause, and
// 500 CommitStateUnknownException is for everything else. See [TableWriter]. A commit with
// an Idempotency-Key is the exception: that this copy of it changed nothing says nothing
// about an earlier copy, so what the catalog has not recorded is 500, and the client asks
// again with its key. createTable
// keeps its 503: the only 409 that clients know there is "already exists", which would be
// wrong, and IF NOT EXISTS would believe it.
package api
