package catalog

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"io"
	"sync"

	"github.com/klauspost/compress/flate"

	"github.com/catalogd/catalogd/catalog/metadata"
)

// deflateLevel favours speed: a commit pays for it, and JSON compresses well at any level.
const deflateLevel = flate.BestSpeed

var deflaters = sync.Pool{New: func() any {
	w, err := flate.NewWriter(io.Discard, deflateLevel)
	if err != nil {
		panic(err) // the level is a constant that flate knows
	}
	return w
}}

// Encode compresses a JSON text into the form that is stored and served.
func Encode(plain []byte) Encoded {
	var out bytes.Buffer
	out.Grow(len(plain)/6 + 64)
	w := deflaters.Get().(*flate.Writer)
	defer deflaters.Put(w)
	w.Reset(&out)
	// Neither call can fail on a bytes.Buffer. Flush, not Close: the run must not end in
	// a final block, because an answer continues after it.
	_, _ = w.Write(plain)
	_ = w.Flush()
	return Encoded{Deflate: out.Bytes(), CRC32: crc32.ChecksumIEEE(plain), Size: int64(len(plain))}
}

// Plain decompresses e and checks its length and CRC.
func (e Encoded) Plain() ([]byte, error) {
	r := flate.NewReader(bytes.NewReader(e.Deflate))
	defer r.Close()
	plain := make([]byte, e.Size)
	if _, err := io.ReadFull(r, plain); err != nil {
		return nil, fmt.Errorf("stored document: %w", err)
	}
	if crc := crc32.ChecksumIEEE(plain); crc != e.CRC32 {
		return nil, fmt.Errorf("stored document: crc %08x, want %08x", crc, e.CRC32)
	}
	return plain, nil
}

// Empty reports whether e holds nothing.
func (e Encoded) Empty() bool { return e.Size == 0 }

// bytes is the memory that d keeps alive, for the cache's limit.
func (d *Document) bytes() int64 {
	n := int64(len(d.All.Deflate) + len(d.Refs.Deflate) + len(d.MetadataLocation))
	if d.table != nil {
		n += parsedFactor * d.All.Size
	}
	return n
}

const (
	// parsedFactor is about how much more memory a parsed document takes than its text.
	parsedFactor = 3
	// maxParsed bounds the documents that are kept parsed. Of a large one, parsing is a
	// small part of the commit.
	maxParsed = 256 << 10
)

// keep remembers the parsed form of a document that nobody else has seen yet.
func (d *Document) keep(t *metadata.Table) {
	if d.All.Size <= maxParsed {
		d.table = t
	}
}

// NewDocument encodes a metadata file. refs is the snapshots=refs form; when it equals
// the whole, only one of them is kept.
func NewDocument(location string, all, refs []byte) *Document {
	d := &Document{MetadataLocation: location, All: Encode(all)}
	if len(refs) > 0 && !bytes.Equal(all, refs) {
		d.Refs = Encode(refs)
	}
	return d
}

// ForRefs is the form to serve for snapshots=refs.
func (d *Document) ForRefs() Encoded {
	if d.Refs.Empty() {
		return d.All
	}
	return d.Refs
}
