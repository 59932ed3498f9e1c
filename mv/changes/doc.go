// Package changes reads the history of a source table from its manifests.
//
// [Reader.Plan] lists the files of a table at a pinned snapshot, each with exactly the
// deletes that apply to it. [Reader.Between] says which values of a column may be touched
// between two snapshots: the answer covers every row that was added, removed or changed,
// and is built from the manifests that each snapshot added, never from what its operation
// is called.
//
// Whatever cannot be proven widens the answer, up to [Touched].Everything with a coded
// reason. A file that cannot be read is an error, so that a view becomes undetermined
// rather than wrong.
package changes
