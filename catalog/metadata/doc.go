// Package metadata edits Iceberg table and view metadata documents without decoding
// them: a document is an ordered list of top-level members, and an edit replaces or
// appends only the members, array elements and object members it touches. Everything
// else keeps the bytes its writer chose, so members this package has never heard of,
// 64-bit longs and decimal defaults survive every commit at every level.
//
// [Table] and [View] follow the rules of Iceberg's own Java builders (which ids are
// reused, which references a removal drops, how logs are trimmed, the texts of failed
// requirements), with a stricter policy where Java trusts its caller: a uuid can't be
// reassigned, a location can't be empty, statistics must belong to a snapshot.
//
// The package is pure: no I/O, no clock, no randomness. Its only error type is [*Error].
package metadata
