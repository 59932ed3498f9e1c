package purge

import (
	"context"
	"errors"
	"log/slog"

	"github.com/catalogd/catalogd/catalog"
)

// Outgrown knows the metadata files that fell off the logs of tables; package
// catalog/postgres implements it.
type Outgrown interface {
	// ObsoleteMetadata lists files that may be deleted now: nothing names them, neither a
	// table nor a dropped one nor an answer that may have to be given again, and they do not
	// lie in the location of another table.
	ObsoleteMetadata(ctx context.Context, limit int) ([]catalog.ObsoleteMetadata, error)
	// ForgetObsolete forgets files that were deleted.
	ForgetObsolete(ctx context.Context, locations []string) error
	// PutOff lets files that could not be deleted wait for an hour.
	PutOff(ctx context.Context, locations []string) error
}

// trimBatch is how many files are deleted before they are forgotten.
const trimBatch = 100

// Trimmer deletes metadata files that tables have outgrown.
type Trimmer struct {
	outgrown Outgrown
	files    Files
	log      *slog.Logger
}

// NewTrimmer returns a Trimmer.
func NewTrimmer(outgrown Outgrown, files Files, log *slog.Logger) *Trimmer {
	return &Trimmer{outgrown: outgrown, files: files, log: log}
}

// Trim deletes the files that commits have noted. It may be run again at any time, also
// after it was cut off. A file that cannot be deleted does not keep the others.
func (t *Trimmer) Trim(ctx context.Context) error {
	for {
		batch, err := t.outgrown.ObsoleteMetadata(ctx, trimBatch)
		if err != nil || len(batch) == 0 {
			return err
		}
		done := make([]string, 0, len(batch))
		var failed []string
		for _, f := range batch {
			err = t.files.Remove(ctx, f.MetadataLocation)
			if catalog.KindOf(err) == catalog.KindInvalid {
				t.log.WarnContext(ctx, "metadata file stays: this server may not write there",
					slog.String("metadata_location", f.MetadataLocation), slog.String("table_uuid", f.UUID))
				err = nil
			}
			if err == nil {
				done = append(done, f.MetadataLocation)
				continue
			}
			if ctx.Err() != nil {
				break
			}
			t.log.WarnContext(ctx, "metadata file cannot be deleted: tried again in an hour",
				slog.String("metadata_location", f.MetadataLocation), slog.String("table_uuid", f.UUID), slog.Any("error", err))
			failed = append(failed, f.MetadataLocation)
		}
		// Files that are neither forgotten nor put off would come again at once.
		if err := errors.Join(ctx.Err(), t.outgrown.ForgetObsolete(ctx, done), t.outgrown.PutOff(ctx, failed)); err != nil {
			return err
		}
	}
}
