package purge

import (
	"context"
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/apache/iceberg-go"

	"github.com/catalogd/catalogd/catalog"
)

const (
	// referrersPage is how many tables are asked for at a time.
	referrersPage = 200
	// maxFolders bounds what is kept of one table: more folders are joined to those above.
	maxFolders = 256
	// maxShared bounds the names of shared files in memory. A table that shares more keeps
	// all of its files.
	maxShared = 1_000_000
)

// files is a set of files, by the spellings that can lead to them.
type files map[string]struct{}

func (f files) add(location string) {
	for _, key := range spellings(location) {
		f[key] = struct{}{}
	}
}

func (f files) has(location string) bool {
	for _, key := range spellings(location) {
		if _, ok := f[key]; ok {
			return true
		}
	}
	return false
}

// spellings are the keys of a location as it is written and with its escapes undone,
// since some readers of local files undo them.
func spellings(location string) []string {
	key := catalog.LocationKey(location)
	if strings.Contains(key, "%") {
		if decoded, err := url.PathUnescape(key); err == nil && decoded != key {
			return []string{key, decoded}
		}
	}
	return []string{key}
}

// sharedFiles finds the files inside a folder that other tables of the catalog name.
func (p *Purger) sharedFiles(ctx context.Context, d catalog.Dropped, folder string) (files, error) {
	shared := files{}
	after := ""
	for {
		page, err := p.registry.Referrers(ctx, d, after, referrersPage)
		if err != nil {
			return nil, err
		}
		for _, r := range page {
			if err := p.askReferrer(ctx, r, folder, shared); err != nil {
				return nil, err
			}
			after = r.Pointer.MetadataLocation
		}
		if len(page) < referrersPage {
			return shared, nil
		}
	}
}

// askReferrer adds to shared what a table has inside folder, and notes what it has
// outside of its own location for the next time.
func (p *Purger) askReferrer(ctx context.Context, r catalog.Referrer, folder string, shared files) error {
	row := r.Pointer
	known := r.Known
	var doc *document
	if known == nil || known.MetadataLocation != row.MetadataLocation {
		var err error
		doc, err = p.document(ctx, row)
		if catalog.KindOf(err) == catalog.KindNotFound {
			// Nobody can read a table without its metadata, so nobody reads P's files through it.
			p.log.WarnContext(ctx, "a table has no metadata file", slog.String("table", row.Ident.String()), slog.String("metadata_location", row.MetadataLocation))
			return nil
		}
		if err != nil {
			return err
		}
		if known, err = p.refers(ctx, row, doc, known); err != nil {
			return err
		}
	}
	// Its own location counts as well: a row that another catalog implementation wrote does
	// not say where its table is.
	places := append([]string{catalog.LocationKey(known.Location) + "/"}, known.Folders...)
	if !slices.ContainsFunc(places, func(f string) bool { return overlaps(f, folder) }) {
		return nil
	}
	if doc == nil {
		var err error
		if doc, err = p.document(ctx, row); err != nil {
			return err
		}
	}
	_, err := p.every(ctx, row, doc, nil, func(path string) error {
		if !insideOf(path, folder) {
			return nil
		}
		if shared.add(path); len(shared) > maxShared {
			return catalog.Errorf(catalog.KindUnprocessable, "table %s shares more than %d files of %s: nothing is deleted", row.Ident, maxShared, folder)
		}
		return nil
	})
	return err
}

// refers looks at the snapshots of a table that are not known yet.
func (p *Purger) refers(ctx context.Context, row catalog.Pointer, doc *document, known *catalog.OutsideReference) (*catalog.OutsideReference, error) {
	uuid := row.UUID
	if uuid == "" {
		uuid = doc.UUID
	}
	own := catalog.LocationKey(doc.Location) + "/"
	folders, seen := map[string]bool{}, map[int64]bool{}
	if known != nil && known.Location == doc.Location {
		for _, f := range known.Folders {
			folders[f] = true
		}
		for _, id := range known.Snapshots {
			seen[id] = true
		}
	}
	missing, err := p.every(ctx, row, doc, seen, func(path string) error {
		if insideOf(path, own) {
			return nil
		}
		for _, key := range spellings(path) {
			if i := strings.LastIndexByte(key, '/'); i >= 0 {
				key = key[:i]
			}
			folders[key+"/"] = true
		}
		if len(folders) > maxFolders {
			folders = joined(folders)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	out := &catalog.OutsideReference{
		UUID: uuid, MetadataLocation: row.MetadataLocation, Location: doc.Location, Snapshots: []int64{},
		Folders: slices.AppendSeq([]string{}, maps.Keys(folders)),
	}
	slices.Sort(out.Folders)
	for _, s := range doc.Snapshots {
		if !missing[s.ID] {
			out.Snapshots = append(out.Snapshots, s.ID)
		}
	}
	if len(missing) > 0 {
		out.MetadataLocation = "" // so that it is asked again
	}
	if uuid == "" {
		return out, nil // an old table that has no name of its own is read each time
	}
	return out, p.registry.Refers(ctx, *out)
}

// every calls visit with all files that a table's metadata names, but for those that came
// with snapshots in known. A manifest is read once. Nobody can read a snapshot whose list
// or manifests are gone now; it is in missing, because they may come back.
func (p *Purger) every(ctx context.Context, row catalog.Pointer, doc *document, known map[int64]bool, visit func(path string) error) (missing map[int64]bool, err error) {
	for _, path := range slices.Concat([]string{row.MetadataLocation}, doc.statistics(), doc.log()) {
		if err := visit(path); err != nil {
			return nil, err
		}
	}
	missing = map[int64]bool{}
	read := map[string]bool{} // manifests, and whether they are there
	for _, s := range doc.Snapshots {
		if known[s.ID] {
			continue
		}
		list, there, err := p.reader.list(ctx, s)
		if err != nil {
			return nil, err
		}
		if !there {
			missing[s.ID] = true
			if err := p.onStorage(ctx, row, s.ManifestList); err != nil {
				return nil, err
			}
			continue
		}
		if s.ManifestList != "" {
			if err := visit(s.ManifestList); err != nil {
				return nil, err
			}
		}
		for _, m := range list {
			if known[m.SnapshotID()] {
				continue
			}
			there, again := read[m.FilePath()]
			if !again {
				if there, err = p.manifest(ctx, row, m, visit); err != nil {
					return nil, err
				}
				read[m.FilePath()] = there
			}
			if !there {
				// Once the snapshot that added it counts as known, it is not read any more.
				missing[s.ID], missing[m.SnapshotID()] = true, true
			}
		}
	}
	return missing, nil
}

// manifest calls visit with a manifest of a table and the files that it names.
func (p *Purger) manifest(ctx context.Context, row catalog.Pointer, m iceberg.ManifestFile, visit func(path string) error) (there bool, err error) {
	if err := visit(m.FilePath()); err != nil {
		return false, err
	}
	if there, err = p.reader.entries(ctx, m, visit); err != nil || there {
		return there, err
	}
	return false, p.onStorage(ctx, row, m.FilePath())
}

// onStorage fails if a table's own metadata file is not there either: then its storage is
// more likely away for the moment than the file missing is gone for good.
func (p *Purger) onStorage(ctx context.Context, row catalog.Pointer, missing string) error {
	f, there, err := p.reader.open(ctx, row.MetadataLocation)
	if err != nil {
		return err
	}
	if !there {
		return catalog.Errorf(catalog.KindUnavailable,
			"table %s: neither %s nor its metadata file %s is on storage, so nobody knows what it uses: nothing is deleted until its files are back, or it is dropped",
			row.Ident, missing, row.MetadataLocation)
	}
	return f.Close()
}

// insideOf reports whether a file may lie below a folder: in some spelling of both.
func insideOf(location, folder string) bool {
	return slices.ContainsFunc(spellings(location), func(key string) bool { return below(key, folder) })
}

// certainlyInside reports whether a file lies below a folder however it is spelled.
func certainlyInside(location, folder string) bool {
	return !slices.ContainsFunc(spellings(location), func(key string) bool { return !below(key, folder) })
}

func below(key, folder string) bool {
	return slices.ContainsFunc(spellings(folder), func(f string) bool { return strings.HasPrefix(key, strings.TrimRight(f, "/")+"/") })
}

// overlaps reports whether one of two folders holds the other. The empty one is everywhere.
func overlaps(a, b string) bool {
	return a == "" || b == "" || insideOf(a, b) || insideOf(b, a) || strings.TrimRight(a, "/") == strings.TrimRight(b, "/")
}
