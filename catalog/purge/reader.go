package purge

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

// reader reads manifest lists and manifests.
type reader struct {
	fs iceio.IO
}

// list reads the manifests of a snapshot; there is false if the list is gone.
func (r reader) list(ctx context.Context, s snapshot) (list []iceberg.ManifestFile, there bool, err error) {
	if s.ManifestList == "" {
		for _, path := range s.Manifests {
			list = append(list, iceberg.NewManifestFile(1, path, 0, 0, s.ID).
				AddedFiles(-1).ExistingFiles(-1).DeletedFiles(-1).AddedRows(-1).ExistingRows(-1).DeletedRows(-1).Build())
		}
		return list, true, nil
	}
	f, there, err := r.open(ctx, s.ManifestList)
	if err != nil || !there {
		return nil, there, err
	}
	defer f.Close()
	defer damaged(s.ManifestList, &err)
	// The decoder must not take a file that ends early for the end of the list.
	data, err := io.ReadAll(f)
	if err != nil {
		return nil, true, err
	}
	list, err = iceberg.ReadManifestList(bytes.NewReader(data))
	return list, true, err
}

// entries calls visit with the file of each entry of a manifest, also of those that the
// manifest records as removed. It holds one entry in memory at a time. there is false if
// the manifest is gone. A manifest that holds fewer live files than its list says is
// damaged: what it named is not known.
func (r reader) entries(ctx context.Context, m iceberg.ManifestFile, visit func(path string) error) (there bool, err error) {
	f, there, err := r.open(ctx, m.FilePath())
	if err != nil || !there {
		return there, err
	}
	defer f.Close()
	entries, err := openManifest(m, f)
	if err != nil {
		return true, err
	}
	defer entries.Close()
	var live int64
	for {
		e, more, err := next(m, entries)
		if err != nil {
			return true, err
		}
		if !more {
			break
		}
		if e.Status() != iceberg.EntryStatusDELETED {
			live++
		}
		if err := visit(e.DataFile().FilePath()); err != nil {
			return true, err
		}
	}
	added, existing := int64(m.AddedDataFiles()), int64(m.ExistingDataFiles())
	if added >= 0 && existing >= 0 && live != added+existing {
		return true, catalog.Errorf(catalog.KindUnavailable, "manifest %s holds %d files, its list says %d", m.FilePath(), live, added+existing)
	}
	return true, nil
}

func openManifest(m iceberg.ManifestFile, f io.Reader) (r *iceberg.ManifestReader, err error) {
	defer damaged(m.FilePath(), &err)
	return iceberg.NewManifestReaderWithProjection(m, f, iceberg.ManifestEntryProjection{})
}

func next(m iceberg.ManifestFile, r *iceberg.ManifestReader) (e iceberg.ManifestEntry, more bool, err error) {
	defer damaged(m.FilePath(), &err)
	e, err = r.ReadEntry()
	if errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, false, nil
	}
	return e, err == nil, err
}

func (r reader) open(ctx context.Context, location string) (f iceio.File, there bool, err error) {
	if err := ctx.Err(); err != nil {
		return nil, false, err
	}
	f, err = r.fs.Open(location)
	switch {
	case err == nil:
		return f, true, nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, false, nil
	}
	return nil, false, catalog.Errorf(catalog.KindUnavailable, "cannot read %s", location).Because(err)
}

// damaged turns a failure to decode, panics of the decoder included, into an error that
// names the file.
func damaged(location string, err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("decoder: %v", p)
	}
	if *err != nil {
		*err = catalog.Errorf(catalog.KindUnavailable, "file %s is damaged", location).Because(*err)
	}
}
