package catalog

import "context"

// Files is where metadata files live; package catalog/storage implements it.
type Files interface {
	// Write stores data durably under a location that was never used before.
	// KindInvalid for a location outside of what this server may write.
	Write(ctx context.Context, location string, data []byte) error
	// Read returns KindNotFound if there is no such file, with the message
	// "Failed to open input stream for file: LOCATION" that Java clients know.
	Read(ctx context.Context, location string) ([]byte, error)
	// Exists is a cheap check; it reports true for stores where it would cost a round trip.
	Exists(ctx context.Context, location string) (bool, error)
	// Remove deletes a file; one that is gone already is no error.
	Remove(ctx context.Context, location string) error
	// Prepare makes the folders metadata and data below a table's location where the
	// store has folders at all: DuckDB expects them after a staged create.
	Prepare(ctx context.Context, location string) error
}
