// Package storage keeps metadata files: it implements [catalog.Files] for local folders
// and, through iceberg-go's IO registry, for every object store whose scheme the program
// has registered.
//
// A location is what a client or a metadata file says ("file:///w/t", "file:/w/t",
// "/w/t", "local:///w/t", "s3://bucket/t"). Local paths are taken literally, as Java,
// PyIceberg and DuckDB take them: a percent sign is a character of the name. iceberg-go
// writes the decoded name instead, so a file that is missing under its literal name is
// also looked for under the decoded one.
//
// Local writes never replace a file and are durable when they return: file and folder are
// synced. A file is visible while it is written, but under a name that nothing refers to.
package storage
