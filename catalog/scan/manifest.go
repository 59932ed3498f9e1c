package scan

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"math/big"
	"strconv"

	"github.com/apache/iceberg-go"
	iceio "github.com/apache/iceberg-go/io"

	"github.com/catalogd/catalogd/catalog"
)

// FS opens manifest lists and manifests; an iceberg-go IO is one.
type FS interface {
	Open(name string) (iceio.File, error)
}

// list reads the manifest list of a snapshot.
func (d *document) list(ctx context.Context, files FS, snap *snapshot) (list []iceberg.ManifestFile, err error) {
	if snap.ManifestList == "" {
		if len(d.specs) > 1 { // nothing says which of them a manifest belongs to
			return nil, unplannable("snapshot %d has no manifest list", snap.ID)
		}
		for _, path := range snap.Manifests {
			list = append(list, iceberg.NewManifestFile(1, path, 0, 0, snap.ID).
				AddedFiles(-1).ExistingFiles(-1).DeletedFiles(-1).AddedRows(-1).ExistingRows(-1).DeletedRows(-1).Build())
		}
		return list, nil
	}
	data, err := load(ctx, files, snap.ManifestList)
	if err != nil {
		return nil, err
	}
	defer corrupt(snap.ManifestList, &err)
	return iceberg.ReadManifestList(bytes.NewReader(data))
}

// detail says how much of a manifest's entries is decoded.
type detail uint8

const (
	detailPlain   detail = iota // what a task shows
	detailMetrics               // and the metrics that files are chosen by
	detailAll                   // and the sizes of columns
)

// entry is a live file of a manifest.
type entry struct {
	file   iceberg.DataFile
	tuple  map[int]any
	seq    int64 // data sequence number, -1 if unknown
	added  bool  // by the snapshot that wrote the manifest
	origin int64 // the snapshot that added it
}

// entries reads the live files of a manifest, in order.
func entries(ctx context.Context, files FS, m iceberg.ManifestFile, d detail, visit func(entry) error) (err error) {
	data, err := load(ctx, files, m.FilePath())
	if err != nil {
		return err
	}
	var refused error
	defer func() {
		if refused != nil {
			err = refused
			return
		}
		corrupt(m.FilePath(), &err)
	}()
	var r *iceberg.ManifestReader
	if d == detailAll {
		r, err = iceberg.NewManifestReader(m, bytes.NewReader(data))
	} else {
		r, err = iceberg.NewManifestReaderWithProjection(m, bytes.NewReader(data), iceberg.ManifestEntryProjection{IncludePruningStats: d == detailMetrics})
	}
	if err != nil {
		return err
	}
	defer r.Close()
	for {
		e, err := r.ReadEntry()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if e.Status() == iceberg.EntryStatusDELETED {
			continue
		}
		f := e.DataFile()
		refused = visit(entry{
			file: f, tuple: f.Partition(), seq: e.SequenceNum(), added: e.Status() == iceberg.EntryStatusADDED, origin: e.SnapshotID(),
		})
		if refused != nil {
			return refused
		}
	}
}

// load reads a whole file: manifests are small, and a decoder that stumbles over half a
// file must not be taken for the end of it.
func load(ctx context.Context, files FS, location string) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f, err := files.Open(location)
	if err != nil {
		return nil, unreadable(location, err)
	}
	defer f.Close()
	var data bytes.Buffer
	if info, statErr := f.Stat(); statErr == nil && info.Size() > 0 && info.Size() < math.MaxInt32 {
		data.Grow(int(info.Size()) + bytes.MinRead)
	}
	if _, err = data.ReadFrom(f); err != nil {
		return nil, unreadable(location, err)
	}
	return data.Bytes(), nil
}

// unreadable says which file of a table's metadata cannot be read.
func unreadable(location string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return catalog.Errorf(catalog.KindNotFound, "A file of the table's metadata is missing: %s", location).Because(err)
	}
	if _, ok := errors.AsType[*catalog.Error](err); ok {
		return err
	}
	return catalog.Errorf(catalog.KindUnavailable, "A file of the table's metadata cannot be read: %s", location).Because(err)
}

// corrupt turns a decoding failure, panics of the decoder included, into an error. It
// must be deferred, or called by what is.
func corrupt(location string, err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("decoder: %v", p)
	}
	if *err != nil {
		*err = unplannable("manifest file %s is damaged", location).Because(*err)
	}
}

// appendKey writes what identifies a partition across manifests: a spec and the values
// of all its fields. A value that was written before its column's type was widened is
// the same.
func (s *spec) appendKey(dst []byte, tuple map[int]any) []byte {
	dst = strconv.AppendInt(dst, int64(s.id), 10)
	for _, f := range s.fields {
		dst = append(dst, 0)
		v, ok := partitionValue(f.typ, tuple[f.id])
		if !ok {
			dst = fmt.Appendf(dst, "?%T%v", tuple[f.id], tuple[f.id])
			continue
		}
		switch x := v.(type) {
		case nil:
			dst = append(dst, '-')
		case bool:
			dst = strconv.AppendBool(append(dst, 'b'), x)
		case int64:
			dst = strconv.AppendInt(append(dst, 'n'), x, 10)
		case float64:
			dst = strconv.AppendUint(append(dst, 'f'), canonicalBits(x), 16)
		case *big.Int:
			dst = x.Append(append(dst, 'd'), 10)
		case string:
			dst = strconv.AppendQuote(append(dst, 's'), x)
		case []byte:
			dst = fmt.Appendf(append(dst, 'x'), "%x", x)
		case [16]byte:
			dst = append(append(dst, 'u'), x[:]...)
		}
	}
	return dst
}

// canonicalBits makes all NaNs the same and keeps zeros of different sign apart.
func canonicalBits(f float64) uint64 {
	if math.IsNaN(f) {
		f = math.NaN()
	}
	return math.Float64bits(f)
}
