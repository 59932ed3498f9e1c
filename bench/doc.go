// Command bench measures catalogd against floors that run on the same machine in the
// same minutes: go run -tags duckdb_arrow ./bench (make bench).
//
// # Method
//
// A rate alone says little, because it is the machine's as much as the server's. So every
// number stands beside that of a floor: the smallest Go server that does what a catalog
// cannot avoid, with the same routes and the same Postgres cluster, which is durable
// (fsync on). The floor of a load SELECTs pointer and document by primary key and writes
// the bytes that catalogd answered. The floor of a commit decodes the request, writes a
// file of the size that catalogd's metadata has after as many snapshots, makes the file
// and its folder durable, and then runs the same transaction on the same schema: BEGIN, one
// batch that swaps the pointer and stores the document in both forms, COMMIT. What catalogd
// does for materialized views is not in it. catalogd is loaded from without its cache and
// with it; a second floor that holds bytes in memory shows what is left of the latter.
//
// The other neighbour is Apache's reference REST server (RESTCatalogServer, Java) with its
// JDBC catalog on the same Postgres. It gets catalogd's own metadata files registered, so
// that both serve the same documents, and is kept busy before each kind of measurement
// until Java has compiled what it runs. It needs java and mvn; without them its lines are
// left out, which the report says.
//
// Servers take short turns, in reverse order every other time, and a ratio is the median
// over the turns of the quotient within one turn: a slow moment of the machine hits both
// sides. Turns are bounded in count and in time. Rates are medians of the turns,
// percentiles are taken over all operations. Clients work in closed loops, each on a
// connection of its own, with requests that are rendered beforehand: the clients share
// the CPUs with the servers, and what they use takes the same from both sides but
// dampens the ratios at eight clients. The CPU time of each server is therefore shown by
// itself, read from the kernel for its process; that of its database connections is in
// the column beside it. Every server is a process of its own.
//
// A wrong server must not look fast. The first answer to a load is read in full and
// compared with what was committed; the following must have the same ETag and the same
// metadata, byte for byte after decompression. (Bytes that were found right once are
// recognised by a hash.) A 304 has no body. The answers to commits are kept, and read in
// full after the turn together with the tables. Materialized rows are compared with sums
// that this program makes itself. One wrong answer makes the exit status 1. A missed
// target does not: the machine may be busy, which the load average and the time of an
// fsync at the top give away.
//
// On the hot table each of eight clients loads, commits on what it saw, and begins anew
// after a 409; what counts is the time until its commit got through. Fair is a server whose
// worst served client waits not much longer than the best served one: the ratio of their
// 95th percentiles within a turn. Afterwards all acknowledged commits must be in the table,
// in one line.
//
// The memory part registers tables of a megabyte that hardly compresses, more than the
// cache may hold, and loads all of them in a loop on a server of its own. Its measure is how
// much more the process has in RAM than before, against the cache's limit; garbage that
// Go's collector has not collected yet is allowed for, as much as is alive.
//
// The refresh part appends a day to a source of a year that was committed day by day, and
// waits until the view is up to date in a new storage snapshot. Its total contains the
// server's wait for further commits (one second unless configured otherwise), which the
// phases of the run do not.
//
// The last table has a line for each target: the worst of the lines that speak of it.
package main
