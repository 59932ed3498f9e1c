package api

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"sync"

	"github.com/klauspost/compress/flate"

	"github.com/catalogd/catalogd/catalog"
)

// An answer with a stored document is prefix, document, suffix. The document is kept as
// deflate blocks without a final one, ending on a byte boundary. So the answer is ONE
// gzip member, made without compressing anything: the prefix as stored blocks, the run as
// it is, the suffix as the final stored block. Back-references in the run never reach
// beyond its own start, hence what stands before it does not matter. One member, because
// not every client reads on after the first.

// maxStored is the most that one stored block holds.
const maxStored = 1<<16 - 1

const storedHeader = 5

// gzipHeader is a member without name and time; 255 stands for an unknown file system.
var gzipHeader = [10]byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255}

const gzipTrailer = 8

// finalBlock ends a run of blocks for a decompressor.
var finalBlock = []byte{1, 0, 0, 0xff, 0xff}

// spliced is the answer's parts.
type spliced struct {
	prefix   []byte
	document catalog.Encoded
	suffix   []byte
}

// size is the length of the plain answer.
func (s spliced) size() int64 {
	return int64(len(s.prefix)) + s.document.Size + int64(len(s.suffix))
}

// gzipSize is the length of the compressed answer.
func (s spliced) gzipSize() int64 {
	return int64(len(gzipHeader)) + storedSize(len(s.prefix)) + int64(len(s.document.Deflate)) +
		storedSize(len(s.suffix)) + gzipTrailer
}

// writeGzip writes the answer as one gzip member.
func (s spliced) writeGzip(w io.Writer) error {
	head := make([]byte, 0, len(gzipHeader)+int(storedSize(len(s.prefix))))
	head = append(head, gzipHeader[:]...)
	head = appendStored(head, s.prefix, false)
	if _, err := w.Write(head); err != nil {
		return err
	}
	if _, err := w.Write(s.document.Deflate); err != nil {
		return err
	}
	crc := combineCRC(crc32.ChecksumIEEE(s.prefix), s.document.CRC32, s.document.Size)
	crc = crc32.Update(crc, crc32.IEEETable, s.suffix)
	tail := appendStored(nil, s.suffix, true)
	tail = binary.LittleEndian.AppendUint32(tail, crc)
	tail = binary.LittleEndian.AppendUint32(tail, uint32(s.size())) //nolint:gosec // gzip wants the length modulo 2^32
	_, err := w.Write(tail)
	return err
}

// inflaters are reused, because one holds a 32 KiB window.
var inflaters = sync.Pool{New: func() any { return flate.NewReader(bytes.NewReader(nil)) }}

// writePlain writes the answer without compression. A document that does not have its
// length or its CRC is an error, and the answer must then not look complete.
func (s spliced) writePlain(w io.Writer) error {
	if _, err := w.Write(s.prefix); err != nil {
		return err
	}
	r := inflaters.Get().(io.ReadCloser)
	defer inflaters.Put(r)
	run := io.MultiReader(bytes.NewReader(s.document.Deflate), bytes.NewReader(finalBlock))
	if err := r.(flate.Resetter).Reset(run, nil); err != nil {
		return fmt.Errorf("stored document: %w", err)
	}
	sum := crc32.NewIEEE()
	n, err := io.Copy(io.MultiWriter(w, sum), r)
	if err != nil {
		return fmt.Errorf("stored document: %w", err)
	}
	if n != s.document.Size || sum.Sum32() != s.document.CRC32 {
		return fmt.Errorf("stored document has %d bytes and CRC %08x, not %d and %08x",
			n, sum.Sum32(), s.document.Size, s.document.CRC32)
	}
	_, err = w.Write(s.suffix)
	return err
}

// storedSize is the length of n bytes as stored blocks; nothing is one empty block.
func storedSize(n int) int64 {
	blocks := max(1, (n+maxStored-1)/maxStored)
	return int64(blocks*storedHeader + n)
}

// appendStored appends data as stored deflate blocks, the last of them final if asked.
func appendStored(out, data []byte, final bool) []byte {
	for {
		n := min(len(data), maxStored)
		header := byte(0)
		if final && n == len(data) {
			header = 1
		}
		out = append(out, header)
		out = binary.LittleEndian.AppendUint16(out, uint16(n))
		out = binary.LittleEndian.AppendUint16(out, ^uint16(n))
		out = append(out, data[:n]...)
		if data = data[n:]; len(data) == 0 {
			return out
		}
	}
}
