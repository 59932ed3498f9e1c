// Package purge deletes the files of dropped tables, and the metadata files that tables
// have outgrown. It never deletes what another table uses.
//
// The rule for a dropped table P:
//
//  1. Nothing is deleted while a lease on one of its snapshots runs, or if gc.enabled is
//     false.
//  2. Nothing is deleted if another object, in any warehouse, has P's uuid (P was
//     registered twice) or a location that is P's, inside it, or around it. Dropped
//     objects that can come back count like all others.
//  3. Only files below P's own location are deleted, and only those that its metadata
//     names: data files, delete files and deletion vectors, manifests, manifest lists,
//     statistics, and the metadata files themselves.
//  4. A file that the metadata of any other table names stays (a table that was made of
//     P's files by add_files or a snapshot procedure). To know that without reading the
//     catalog for each purge, the folders that a table uses outside of its own location are
//     kept, and only snapshots that are new are read. If one cannot be read, nothing is
//     deleted.
//
// Files go before what names them: data files before their manifest, manifests before
// their list, the current metadata file last, then the row. A purge that was killed
// starts again; what is missing was done.
package purge
