// Package publish turns the files that an engine wrote into one snapshot of a storage
// table, and hands it over as the requirements and updates of a commit. It writes the
// manifests and the manifest list; it never commits.
//
// The snapshot removes whole files and adds whole files. Its cost follows the change:
// only manifests that list a removed file are read and written again, together with small
// ones once there are too many of those, so that the number of manifests stays bounded
// by the number of live files. iceberg-go's ReplaceFiles, the oracle of the tests, reads
// every manifest of the table, never joins any, and needs a snapshot to start from.
package publish
