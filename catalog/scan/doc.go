// Package scan plans scans on the server: which data files of a table a query has to
// read, with the delete files that apply to each and what is left of the filter.
//
// A plan never leaves out a file that may hold a wanted row. Everything that decides is
// one function, [know.judge]: given what is known about a column in a file, a partition
// or a manifest, it says whether a predicate holds for no row, for every row, or maybe.
// Whatever is not known (a transform, a type, a bound) counts as maybe.
//
// Small plans are answered at once. A larger one is cut into pages of whole manifests,
// which are read when a client asks for them, so that the first page costs what it
// shows. A very large one is carried out by a job that stores its pages.
package scan
