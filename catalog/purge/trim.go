package purge

import (
	"context"
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
// after it was cut off.
func (t *Trimmer) Trim(ctx context.Context) error {
	for {
		batch, err := t.outgrown.ObsoleteMetadata(ctx, trimBatch)
		if err != nil || len(batch) == 0 {
			return err
		}
		done := make([]string, 0, len(batch))
		for _, f := range batch {
			err = t.files.Remove(ctx, f.MetadataLocation)
			if catalog.KindOf(err) == catalog.KindInvalid {
				t.log.WarnContext(ctx, "metadata file stays: this server may not write there",
					slog.String("metadata_location", f.MetadataLocation), slog.String("table_uuid", f.UUID))
				err = nil
			}
			if err != nil {
				break
			}
			done = append(done, f.MetadataLocation)
		}
		if forgetErr := t.outgrown.ForgetObsolete(ctx, done); err == nil {
			err = forgetErr
		}
		if err != nil {
			return err
		}
	}
}
