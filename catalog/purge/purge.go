package purge

import (
	"context"
	"log/slog"
	"strings"
	"time"

	iceio "github.com/apache/iceberg-go/io"

	"github.com/catalogd/catalogd/catalog"
)

// Registry knows which objects there are; package catalog/postgres implements it.
type Registry interface {
	// Purging returns an object whose files are to be deleted now; ok is false if there is
	// none, because that was done or it came back.
	Purging(ctx context.Context, id int64) (d catalog.Dropped, ok bool, err error)
	// Claims lists those who may use the files of d. Objects that are being purged as well
	// are no hindrance.
	Claims(ctx context.Context, d catalog.Dropped) ([]catalog.Claim, error)
	// LeasedUntil is when the last lease on a snapshot of a table ends; zero if there is none.
	LeasedUntil(ctx context.Context, uuid string) (time.Time, error)
	// Referrers lists tables other than d, by their metadata locations, of which it is not
	// known that they have no files outside of their locations.
	Referrers(ctx context.Context, d catalog.Dropped, after string, limit int) ([]catalog.Referrer, error)
	// Refers notes what was found out about a table.
	Refers(ctx context.Context, r catalog.OutsideReference) error
	// Purged forgets the object.
	Purged(ctx context.Context, d catalog.Dropped) error
}

// Documents reads metadata documents; *catalog.Service does.
type Documents interface {
	Document(ctx context.Context, p catalog.Pointer) ([]byte, error)
}

// Files deletes files; package catalog/storage implements it.
type Files interface {
	// Remove deletes a file; one that is gone already is no error. KindInvalid for a
	// location that this server may not write to.
	Remove(ctx context.Context, location string) error
}

// Config is what a [Purger] needs.
type Config struct {
	Registry  Registry
	Documents Documents
	FS        iceio.IO // reads manifests
	Files     Files
	Log       *slog.Logger     // nil: nothing is logged
	Now       func() time.Time // nil: time.Now
}

// Purger deletes the files of dropped tables.
type Purger struct {
	registry  Registry
	documents Documents
	reader    reader
	files     Files
	log       *slog.Logger
	now       func() time.Time
}

// New returns a Purger.
func New(c Config) *Purger {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Purger{registry: c.Registry, documents: c.Documents, reader: reader{c.FS}, files: c.Files, log: c.Log, now: c.Now}
}

// Purge deletes the files of a dropped object and forgets it. It may be run again at any
// time, also after it was cut off. A wait that is not zero says that nothing can be
// deleted yet.
func (p *Purger) Purge(ctx context.Context, id int64) (wait time.Duration, err error) {
	d, ok, err := p.registry.Purging(ctx, id)
	if err != nil || !ok {
		return 0, err
	}
	log := p.log.With(slog.String("table", d.Pointer.Ident.String()), slog.String("table_uuid", d.Pointer.UUID),
		slog.String("location", d.Pointer.Location))
	keep := func(why string, attrs ...slog.Attr) (time.Duration, error) {
		log.LogAttrs(ctx, slog.LevelWarn, "purge keeps all files", append(attrs, slog.String("why", why))...)
		return 0, p.registry.Purged(ctx, d)
	}
	until, err := p.registry.LeasedUntil(ctx, d.Pointer.UUID)
	if err != nil {
		return 0, err
	}
	if left := until.Sub(p.now()); left > 0 {
		return left, nil
	}
	wait, with, err := p.claimed(ctx, d)
	switch {
	case err != nil || wait > 0:
		return wait, err
	case with != "":
		return keep("others use the location", slog.String("with", with))
	}
	doc, err := p.document(ctx, d.Pointer)
	switch {
	case catalog.KindOf(err) == catalog.KindNotFound:
		return keep("its metadata file is gone")
	case err != nil:
		return 0, err
	case d.Pointer.Type != catalog.TypeTable:
		return keep("it is a view, which has no data")
	case strings.EqualFold(strings.TrimSpace(doc.Properties["gc.enabled"]), "false"):
		return keep("gc.enabled is false")
	}
	run := &deletion{purger: p, object: d, doc: doc, folder: folderOf(d.Pointer, doc), parents: map[string]bool{}}
	if run.shared, err = p.sharedFiles(ctx, d, run.folder); err != nil {
		return 0, err
	}
	stopped, err := run.all(ctx)
	why := ""
	if stopped != nil {
		why, wait = stopped.Error(), stopped.wait
	}
	log.InfoContext(ctx, "purge", slog.Int64("removed", run.removed), slog.Int64("outside", run.outside),
		slog.Int64("shared", run.kept), slog.Int("unreadable", run.missing), slog.Bool("failed", err != nil), slog.String("stopped", why))
	if err != nil || wait > 0 {
		return wait, err
	}
	return 0, p.registry.Purged(ctx, d)
}

// folderOf is the key of the place whose files may be deleted, with a slash at the end.
func folderOf(row catalog.Pointer, doc *document) string {
	location := row.Location
	if location == "" {
		location = doc.Location
	}
	return catalog.LocationKey(location) + "/"
}

// claimed finds out whether somebody else may use the files: with names one, and wait
// says that the last of them may be gone later.
func (p *Purger) claimed(ctx context.Context, d catalog.Dropped) (wait time.Duration, with string, err error) {
	claims, err := p.registry.Claims(ctx, d)
	if err != nil {
		return 0, "", err
	}
	for _, c := range claims {
		// An object that leaves with its files, or that has other files, only has to go first.
		if c.Dropped == nil || c.Pointer.UUID == d.Pointer.UUID && !c.Dropped.Purge {
			return 0, c.Pointer.Warehouse + ":" + c.Pointer.Ident.String(), nil
		}
		wait = max(wait, c.Dropped.ExpiresAt.Sub(p.now())+time.Second)
	}
	return wait, "", nil
}
