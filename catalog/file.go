package catalog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"

	"github.com/klauspost/compress/gzip"

	"github.com/catalogd/catalogd/catalog/metadata"
)

// Table properties that decide where metadata goes and how.
const (
	propMetadataPath  = "write.metadata.path"
	propMetadataCodec = "write.metadata.compression-codec"
)

// file is a metadata file about to be written.
type file struct {
	location   string // of the object
	previous   string // metadata location that it follows, empty for the first
	properties map[string]string
	all, refs  []byte
}

// write stores the file and returns its document.
func (s *Service) write(ctx context.Context, f file) (*Document, error) {
	location := f.metadataLocation()
	body := f.all
	if f.gzipped() {
		var err error
		if body, err = gzipped(f.all); err != nil {
			return nil, err
		}
	}
	// The disk and the processor work at the same time.
	written := make(chan error, 1)
	go func() { written <- s.files.Write(ctx, location, body) }()
	d := NewDocument(location, f.all, f.refs)
	if err := <-written; err != nil {
		return nil, err
	}
	return d, nil
}

// maxMetadata bounds what a compressed file may become in memory.
const maxMetadata = 1 << 30

// read returns the content of a metadata file. Java writes those of views compressed,
// those of tables where their properties ask for it. The name does not tell reliably: the
// first bytes do, with which no JSON begins.
func (s *Service) read(ctx context.Context, location string) ([]byte, error) {
	raw, err := s.files.Read(ctx, location)
	if err != nil || !bytes.HasPrefix(raw, []byte{0x1f, 0x8b}) {
		return raw, err
	}
	r, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		return nil, Errorf(KindInvalid, "%s is damaged: it cannot be decompressed", location).Because(err)
	}
	plain, err := io.ReadAll(io.LimitReader(r, maxMetadata+1))
	if err != nil {
		return nil, Errorf(KindInvalid, "%s is damaged: it cannot be decompressed", location).Because(err)
	}
	if len(plain) > maxMetadata {
		return nil, Errorf(KindInvalid, "%s is larger than %d bytes when decompressed", location, maxMetadata)
	}
	return plain, nil
}

// metadataLocation gives the next file a name that was never used: a version number for
// people and a UUID for safety.
func (f file) metadataLocation() string {
	folder := strings.TrimSuffix(f.properties[propMetadataPath], "/")
	if folder == "" {
		folder = strings.TrimSuffix(f.location, "/") + "/metadata"
	}
	ext := ".metadata.json"
	if f.gzipped() {
		ext = ".gz.metadata.json"
	}
	return fmt.Sprintf("%s/%05d-%s%s", folder, nextVersion(f.previous), newUUID(), ext)
}

func (f file) gzipped() bool {
	return strings.EqualFold(f.properties[propMetadataCodec], "gzip")
}

// nextVersion follows the number in a metadata file's name; 0 if there is none.
func nextVersion(previous string) int {
	number, _, ok := strings.Cut(path.Base(previous), "-")
	if !ok {
		return 0
	}
	v, err := strconv.Atoi(number)
	if err != nil || v < 0 {
		return 0
	}
	return v + 1
}

func gzipped(plain []byte) ([]byte, error) {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(plain); err != nil {
		return nil, fmt.Errorf("compress metadata: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("compress metadata: %w", err)
	}
	return out.Bytes(), nil
}

func asDocumentError(err error) (*metadata.Error, bool) {
	return errors.AsType[*metadata.Error](err)
}
