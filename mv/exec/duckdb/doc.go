// Package duckdb runs refreshes in DuckDB, embedded and yet apart: every run happens in a
// child process of the same binary ([WorkerMain]) that has no secrets in its environment,
// so that a crash, an exhausted memory or a kill fails one run and never the server.
//
// # What a query may do
//
// A query is exactly one SELECT. DuckDB's own parse tree is walked: a table reference
// must be one of the task's inputs or a CTE in scope, a table function one of a short
// list that computes from its arguments, and a scalar function none that looks outside.
// Behind that stands a DuckDB instance that is locked before the query is bound: only the
// planned files and the output folder can be opened, no extension can be loaded, no
// setting can be changed.
//
// # Reading
//
// Columns are found by the field ids in each file's own footer, at every depth; files
// without ids go by the table's name mapping, else by name. Missing columns become the
// file's identity partition value, the initial default, or NULL. Files of one physical
// layout are one read_parquet call whose columns are named by position, so that no name
// in a file can mean anything. Deletion vectors replace position deletes; equality
// deletes are NULL-safe and apply to exactly the files that list them. What cannot be
// read exactly is refused when it is read: nanoseconds in timestamptz_ns, variants,
// geometries.
//
// # Types
//
// What a query may use, and what [Engine.Describe] says of its results:
//
//	Iceberg                      DuckDB                      described as
//	boolean, int, long           BOOLEAN, INTEGER, BIGINT    the same; TINYINT, SMALLINT, UTINYINT, USMALLINT: int; UINTEGER: long
//	                             HUGEINT                     long, coerced: every value is checked
//	                             UBIGINT                     decimal(20, 0)
//	float, double, decimal(P,S)  FLOAT, DOUBLE, DECIMAL      the same
//	date, time                   DATE, TIME                  the same
//	timestamp, timestamp_ns      TIMESTAMP, TIMESTAMP_NS     the same; TIMESTAMP_S, TIMESTAMP_MS: timestamp
//	timestamptz, timestamptz_ns  TIMESTAMP WITH TIME ZONE    timestamptz
//	string, uuid                 VARCHAR, UUID               the same; ENUM, JSON: string
//	fixed, binary                BLOB                        binary
//	struct, list, map            STRUCT, LIST, MAP           nested, with placeholder ids from 1; ARRAY: list
//	unknown                      INTEGER, all NULL           int
//	variant, geometry, geography an opaque type              refused
//
// INTERVAL, TIME WITH TIME ZONE, BIT, UNION, VARIANT, GEOMETRY, UHUGEINT and BIGNUM are
// refused with the CAST to write.
//
// # Writing
//
// Result columns are cast by position to the task's types. A cast that would change a
// value fails the run and names the column and the value; types that only a text form or
// a time zone connects are not cast at all. Files carry the field ids of the task's
// columns, and no file holds rows of two partitions. fixed and timestamptz_ns cannot be
// written.
package duckdb
