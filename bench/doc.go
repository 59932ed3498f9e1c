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
// and its folder durable, and then moves the pointer and inserts the document in one
// durable transaction. Since catalogd keeps documents in memory, a second load floor does
// too; it has no target and shows what is left.
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
// The refresh part appends a day to a source of a year that was committed day by day, and
// waits until the view is up to date in a new storage snapshot. Its total contains the
// server's wait for further commits (one second unless configured otherwise), which the
// phases of the run do not.
package main
