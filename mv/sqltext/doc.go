// Package sqltext reads the SQL text of views in the DuckDB, Trino and Spark dialects.
//
// [Parse] lexes and parses one query. What it does not know becomes an opaque part of
// the tree instead of an error, as long as brackets balance, so that a view in a newer
// dialect can still be stored and fully refreshed; [Query.Opaque] lists those parts.
//
// On top of the tree the package answers what a materialized view needs to know: which
// tables the text reads ([Query.Tables]), which functions it calls ([Query.Functions]),
// what it returns ([Query.Outputs]), whether it gives the same rows whenever it runs
// ([Query.Nondeterministic]), and whether restricting a source to a set of buckets equals
// restricting the result to them ([Closed]). [RewriteTables] edits the original text by
// byte span at the table references; nothing is ever printed from the tree.
//
// The package is pure: it opens nothing, knows no catalog and no engine.
package sqltext
