package changes

import (
	"context"

	"github.com/apache/iceberg-go"

	"github.com/catalogd/catalogd/catalog"
)

// References lists the manifest lists, manifests and files that the snapshots of a table
// need, all of them. It fails if one manifest cannot be read, or holds less than its list
// says: what it named is not known then, and might be taken for garbage. Each manifest is
// read once, however many snapshots and documents share it.
func (r *Reader) References(ctx context.Context, docs ...[]byte) (map[string]bool, error) {
	found := make(map[string]bool)
	seen := make(map[string]bool) // manifest lists and manifests that were read
	for _, doc := range docs {
		d, err := parseDocument(doc)
		if err != nil {
			return nil, err
		}
		for _, snap := range d.Snapshots {
			if snap.ManifestList != "" && seen[snap.ManifestList] {
				continue
			}
			// A session keeps what it reads; one for each list keeps memory small.
			if err := r.session(d).references(ctx, snap, seen, found); err != nil {
				return nil, err
			}
			seen[snap.ManifestList] = true
		}
	}
	return found, nil
}

func (s *session) references(ctx context.Context, snap *snapshot, seen, found map[string]bool) error {
	list, err := s.list(ctx, snap)
	if err != nil {
		return err
	}
	if snap.ManifestList != "" {
		found[snap.ManifestList] = true
	}
	for _, m := range list {
		if seen[m.FilePath()] {
			continue
		}
		entries, err := s.manifest(ctx, m)
		if err != nil {
			return err
		}
		var live int64
		for _, e := range entries {
			gone := e.Status() == iceberg.EntryStatusDELETED
			if !gone {
				live++
			}
			// A delete file is read even after it has gone, to find out which rows came back.
			if !gone || m.ManifestContent() == iceberg.ManifestContentDeletes {
				found[e.file.FilePath()] = true
			}
		}
		if want := int64(m.AddedDataFiles()) + int64(m.ExistingDataFiles()); m.AddedDataFiles() >= 0 && m.ExistingDataFiles() >= 0 && live != want {
			return catalog.Errorf(catalog.KindUnavailable, "manifest %s holds %d files, its list says %d", m.FilePath(), live, want)
		}
		found[m.FilePath()], seen[m.FilePath()] = true, true
	}
	return nil
}
