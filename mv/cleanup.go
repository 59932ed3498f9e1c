package mv

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/catalogd/catalogd/catalog"
)

// CleanupAge is how long a file stays after it was written, and after the last snapshot
// that needed it was removed: for queries that still read it and commits under way.
const CleanupAge = time.Hour

// strangersAge is the age for files that catalogd did not name. Another engine may write
// for days before it commits; this is the default of Iceberg's own orphan removal.
const strangersAge = 72 * time.Hour

// Sighting is a storage table as it was at a moment. What it did not need then, and does
// not need later, nobody has needed in between: a file never comes back into use.
type Sighting struct {
	TableUUID        string
	MetadataLocation string
	At               time.Time
}

// DroppedStorage is a storage table that was dropped with its view.
type DroppedStorage struct {
	TableUUID string
	Location  string
	Name      string // for people
	At        time.Time
}

// StorageNow is a storage table with what keeps its files in use apart from its metadata.
type StorageNow struct {
	Pointer catalog.Pointer
	// Runs are the refreshes whose folders are not to be touched: they run, ended after the
	// sighting, or are given up for lost by others while their process still lives.
	Runs []string
}

// Sweep says which files of a storage table are in use and which may go.
type Sweep struct {
	Location  string
	Documents [][]byte        // every snapshot in one of them keeps its files
	Keep      []string        // further files
	Runs      map[string]bool // refreshes whose folders stay
	// Files that catalogd named go if they were last modified before OwnBefore, all others
	// if before StrangersBefore.
	OwnBefore, StrangersBefore time.Time
}

// Swept counts files.
type Swept struct {
	Listed  int // all that were found
	Young   int // needed by nothing, but too young or of a running refresh
	Removed int
	Bytes   int64 // of Removed
}

// CleanupRegistry knows which storage tables there are; mv/postgres implements it.
type CleanupRegistry interface {
	// Sightings lists the storage tables that changed or were refreshed in the given time,
	// as they are now.
	Sightings(ctx context.Context, within time.Duration) ([]Sighting, error)
	// StorageNow reads a storage table; ok is false if it is gone, or is none any more.
	StorageNow(ctx context.Context, seen Sighting) (now StorageNow, ok bool, err error)
	// Claims names the objects, other than self, that have the table's uuid, or whose files
	// lie in the folder or around it.
	Claims(ctx context.Context, folder, tableUUID string, self Key) ([]string, error)
}

// Sweeper removes files; mv/publish implements it.
type Sweeper interface {
	// Sweep removes the files of a storage table that nothing needs. If it is not certain
	// what is needed, it removes nothing and fails.
	Sweep(ctx context.Context, s Sweep) (Swept, error)
	// RemoveTable removes everything below a location, unless a file there was modified
	// after a moment: used is the name of one.
	RemoveTable(ctx context.Context, location string, after time.Time) (swept Swept, used string, err error)
}

// DocumentReader reads metadata documents; *catalog.Service does.
type DocumentReader interface {
	Document(ctx context.Context, p catalog.Pointer) ([]byte, error)
}

// Cleaner keeps the files of storage tables from growing for ever.
type Cleaner struct {
	registry  CleanupRegistry
	documents DocumentReader
	sweeper   Sweeper
	log       *slog.Logger
	now       func() time.Time
}

// CleanerConfig is what a [Cleaner] needs.
type CleanerConfig struct {
	Registry  CleanupRegistry
	Documents DocumentReader
	Sweeper   Sweeper
	Log       *slog.Logger
	Now       func() time.Time // nil: time.Now
}

// NewCleaner returns a Cleaner.
func NewCleaner(c CleanerConfig) *Cleaner {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Cleaner{registry: c.Registry, documents: c.Documents, sweeper: c.Sweeper, log: c.Log, now: c.Now}
}

// Sightings lists the storage tables that are worth a cleanup, as they are now. Clean
// them [CleanupAge] later.
func (c *Cleaner) Sightings(ctx context.Context, within time.Duration) ([]Sighting, error) {
	return c.registry.Sightings(ctx, within)
}

// Clean removes the files that the table needed neither when it was seen nor needs now.
func (c *Cleaner) Clean(ctx context.Context, seen Sighting) error {
	log := c.log.With(slog.String("table_uuid", seen.TableUUID))
	if early := CleanupAge - c.now().Sub(seen.At); early > time.Minute { // clocks differ a little
		return catalog.Errorf(catalog.KindUnavailable, "storage table %s may be cleaned in %s", seen.TableUUID, early.Round(time.Second))
	}
	now, ok, err := c.registry.StorageNow(ctx, seen)
	if err != nil {
		return err
	}
	if !ok {
		log.InfoContext(ctx, "storage table not cleaned: it is gone")
		return nil
	}
	p := now.Pointer
	log = log.With(slog.String("table", p.Ident.String()))
	claims, err := c.registry.Claims(ctx, p.Location, p.UUID, KeyOf(p.Warehouse, p.Ident))
	if err != nil {
		return err
	}
	if len(claims) > 0 {
		log.WarnContext(ctx, "storage table not cleaned: its location is shared",
			slog.String("location", p.Location), slog.String("with", strings.Join(claims, ", ")))
		return nil
	}
	s := Sweep{
		Location: p.Location, Keep: []string{p.MetadataLocation, seen.MetadataLocation}, Runs: make(map[string]bool, len(now.Runs)),
		OwnBefore: seen.At.Add(-CleanupAge), StrangersBefore: seen.At.Add(-strangersAge),
	}
	for _, id := range now.Runs {
		s.Runs[id] = true
	}
	if s.Documents, err = c.read(ctx, p, seen); err != nil {
		return err
	}
	swept, err := c.sweeper.Sweep(ctx, s)
	log.InfoContext(ctx, "storage table cleaned", slog.Int("removed", swept.Removed), slog.Int64("bytes", swept.Bytes),
		slog.Int("young", swept.Young), slog.Int("listed", swept.Listed), slog.Bool("failed", err != nil))
	return err
}

// read returns the table's document, and the one that it was seen with.
func (c *Cleaner) read(ctx context.Context, p catalog.Pointer, seen Sighting) ([][]byte, error) {
	var docs [][]byte
	for _, location := range []string{p.MetadataLocation, seen.MetadataLocation} {
		if len(docs) == 1 && location == p.MetadataLocation {
			break
		}
		at := p
		at.MetadataLocation = location
		doc, err := c.documents.Document(ctx, at)
		if err == nil {
			doc, err = plainText(doc)
		}
		if err != nil {
			return nil, err
		}
		docs = append(docs, doc)
	}
	return docs, nil
}

// plainText undoes the compression that a table's properties may ask for.
func plainText(doc []byte) ([]byte, error) {
	if !bytes.HasPrefix(doc, []byte{0x1f, 0x8b}) {
		return doc, nil
	}
	r, err := gzip.NewReader(bytes.NewReader(doc))
	if err != nil {
		return nil, fmt.Errorf("read compressed metadata: %w", err)
	}
	plain, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("read compressed metadata: %w", err)
	}
	return plain, nil
}

// RemoveDropped removes what a dropped storage table has left, after its retention. It
// does nothing, and says so, unless the location is one that catalogd chose for this
// table alone and nobody has come back to.
func (c *Cleaner) RemoveDropped(ctx context.Context, d DroppedStorage) error {
	log := c.log.With(slog.String("table_uuid", d.TableUUID), slog.String("table", d.Name), slog.String("location", d.Location))
	kept := func(why string, attrs ...slog.Attr) error {
		log.LogAttrs(ctx, slog.LevelWarn, "dropped storage table not removed", append(attrs, slog.String("why", why))...)
		return nil
	}
	if !ownLocation(d.Location) {
		return kept("catalogd did not choose its location")
	}
	claims, err := c.registry.Claims(ctx, d.Location, d.TableUUID, Key{})
	if err != nil {
		return err
	}
	if len(claims) > 0 {
		return kept("its files belong to others", slog.String("with", strings.Join(claims, ", ")))
	}
	// A run that did not notice the drop may have written for a little longer.
	swept, used, err := c.sweeper.RemoveTable(ctx, d.Location, d.At.Add(CleanupAge))
	switch {
	case catalog.KindOf(err) == catalog.KindInvalid:
		return kept("this server may not write there", slog.Any("error", err))
	case used != "":
		return kept("somebody has used its location since", slog.String("file", used))
	}
	log.InfoContext(ctx, "dropped storage table removed", slog.Int("removed", swept.Removed), slog.Int64("bytes", swept.Bytes),
		slog.Bool("failed", err != nil))
	return err
}

// storageFolder begins the last segment of the locations that catalogd gives to storage
// tables; a uuid follows.
const storageFolder = "storage-"

// ownLocation reports whether a location is one that createStorage chose.
func ownLocation(location string) bool {
	location = strings.TrimRight(location, "/")
	id, ok := strings.CutPrefix(location[strings.LastIndexByte(location, '/')+1:], storageFolder)
	return ok && len(id) == 36 && uuid.Validate(id) == nil
}
