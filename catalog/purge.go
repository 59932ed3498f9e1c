package catalog

// Claim is an object that may use the files of another one: it has the same uuid, or its
// location is the same, inside, or around.
type Claim struct {
	Pointer Pointer
	// Dropped is set if the object was dropped and can still come back.
	Dropped *Dropped
}

// OutsideReference says in which folders outside of its location a table has files. It
// may name more than there are, never less.
type OutsideReference struct {
	UUID             string
	MetadataLocation string // what it was read from last
	Location         string
	Snapshots        []int64 // those that were looked at
	Folders          []string
}

// Referrer is a table that is asked for its files outside of its location.
type Referrer struct {
	Pointer Pointer
	Known   *OutsideReference // nil: nothing is known yet
}

// ObsoleteMetadata is a metadata file that fell off the log of a table.
type ObsoleteMetadata struct {
	MetadataLocation string
	UUID             string // of the table
}
