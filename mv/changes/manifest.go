package changes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/apache/iceberg-go"
	iceio "github.com/apache/iceberg-go/io"

	"github.com/catalogd/catalogd/catalog"
)

// session reads manifests for one call: each at most once, and counted.
type session struct {
	fs      iceio.IO
	cache   *cache // across calls; may be nil
	doc     *document
	lists   map[int64][]iceberg.ManifestFile
	entries map[string][]*entry
	read    int
	bytes   int64
}

// entry is a manifest entry with what matching needs.
type entry struct {
	iceberg.ManifestEntry
	file iceberg.DataFile
	spec *spec
	key  string // partitionKey
	seq  int64  // data sequence number, -1 if unknown
}

func (r *Reader) session(doc *document) *session {
	return &session{
		fs: r.fs, cache: r.cache, doc: doc, lists: make(map[int64][]iceberg.ManifestFile), entries: make(map[string][]*entry),
	}
}

// list reads the manifest list of a snapshot; nil has none.
func (s *session) list(ctx context.Context, snap *snapshot) ([]iceberg.ManifestFile, error) {
	if snap == nil {
		return nil, nil
	}
	if list, ok := s.lists[snap.ID]; ok {
		return list, nil
	}
	list, err := s.readList(ctx, snap)
	if err != nil {
		return nil, err
	}
	s.lists[snap.ID] = list
	return list, nil
}

func (s *session) readList(ctx context.Context, snap *snapshot) (list []iceberg.ManifestFile, err error) {
	if snap.ManifestList == "" {
		if len(s.doc.specs) > 1 { // nothing says which of them a manifest belongs to
			return nil, catalog.Errorf(catalog.KindUnavailable, "snapshot %d has no manifest list", snap.ID)
		}
		for _, path := range snap.Manifests {
			list = append(list, embedded(path, snap.ID))
		}
		return list, nil
	}
	data, err := s.load(ctx, snap.ManifestList)
	if err != nil {
		return nil, err
	}
	defer corrupt(snap.ManifestList, &err)
	return iceberg.ReadManifestList(bytes.NewReader(data))
}

// embedded describes a manifest that a version 1 snapshot names without a list.
func embedded(path string, snapshotID int64) iceberg.ManifestFile {
	return iceberg.NewManifestFile(1, path, 0, 0, snapshotID).
		AddedFiles(-1).ExistingFiles(-1).DeletedFiles(-1).AddedRows(-1).ExistingRows(-1).DeletedRows(-1).Build()
}

// manifest reads all entries of a manifest, deleted ones included.
func (s *session) manifest(ctx context.Context, m iceberg.ManifestFile) ([]*entry, error) {
	if found, ok := s.entries[m.FilePath()]; ok {
		return found, nil
	}
	raw, ok := s.cache.get(m.FilePath())
	if !ok {
		data, err := s.load(ctx, m.FilePath())
		if err != nil {
			return nil, err
		}
		if raw, err = readManifest(m, data); err != nil {
			return nil, err
		}
		s.cache.put(m.FilePath(), raw)
		s.read++
	}
	found, err := s.wrap(m, raw)
	if err != nil {
		return nil, err
	}
	s.entries[m.FilePath()] = found
	return found, nil
}

func readManifest(m iceberg.ManifestFile, data []byte) (raw []iceberg.ManifestEntry, err error) {
	defer corrupt(m.FilePath(), &err)
	return iceberg.ReadManifest(m, bytes.NewReader(data), false)
}

// wrap adds what matching needs to the entries of a manifest.
func (s *session) wrap(m iceberg.ManifestFile, raw []iceberg.ManifestEntry) (found []*entry, err error) {
	defer corrupt(m.FilePath(), &err)
	found = make([]*entry, 0, len(raw))
	for _, r := range raw {
		file := r.DataFile()
		sp, ok := s.doc.specs[int(file.SpecID())]
		if !ok {
			return nil, fmt.Errorf("partition spec %d is not in the table metadata", file.SpecID())
		}
		found = append(found, &entry{
			ManifestEntry: r, file: file, spec: sp, key: partitionKey(sp, file.Partition()), seq: r.SequenceNum(),
		})
	}
	return found, nil
}

// live reads the live entries of a manifest.
func (s *session) live(ctx context.Context, m iceberg.ManifestFile) ([]*entry, error) {
	all, err := s.manifest(ctx, m)
	if err != nil {
		return nil, err
	}
	found := make([]*entry, 0, len(all))
	for _, e := range all {
		if e.Status() != iceberg.EntryStatusDELETED {
			found = append(found, e)
		}
	}
	return found, nil
}

// load reads a whole file: manifests are small, and a decoder that stumbles over half a
// file must not be taken for the end of it.
func (s *session) load(ctx context.Context, location string) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f, err := s.fs.Open(location)
	if err != nil {
		return nil, unreadable(location, err)
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	if err != nil {
		return nil, unreadable(location, err)
	}
	s.bytes += int64(len(data))
	return data, nil
}

// unreadable says which file of a table's metadata cannot be read.
func unreadable(location string, err error) error {
	kind := catalog.KindUnavailable
	if errors.Is(err, fs.ErrNotExist) {
		kind = catalog.KindNotFound
	}
	return catalog.Errorf(kind, "cannot read %s", location).Because(err)
}

// corrupt turns a decoding failure, panics of the decoder included, into an error.
func corrupt(location string, err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("decoder: %v", p)
	}
	if *err != nil {
		*err = catalog.Errorf(catalog.KindUnavailable, "manifest file %s is damaged", location).Because(*err)
	}
}
