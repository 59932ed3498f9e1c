package scan

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/iceberg-go"
)

// contents are the kinds of files as answers name them.
var contents = map[iceberg.ManifestEntryContent]string{
	iceberg.EntryContentData: "data", iceberg.EntryContentPosDeletes: "position-deletes", iceberg.EntryContentEqDeletes: "equality-deletes",
}

// appendFile writes a file as answers show it, with the statistics of the wanted columns.
func (s *spec) appendFile(dst []byte, e entry, stats map[int]bool) []byte {
	f := e.file
	dst = append(dst, `{"spec-id":`...)
	dst = strconv.AppendInt(dst, int64(s.id), 10)
	dst = append(dst, `,"partition":[`...)
	for i, field := range s.fields {
		if i > 0 {
			dst = append(dst, ',')
		}
		v, ok := partitionValue(field.typ, e.tuple[field.id])
		if !ok || field.typ == nil {
			v = nil // no client could read it without a type
		}
		dst = appendValue(dst, field.typ, v)
	}
	dst = append(dst, `],"content":"`...)
	dst = append(dst, contents[f.ContentType()]...)
	dst = append(dst, `","file-path":`...)
	dst = appendString(dst, f.FilePath())
	dst = append(dst, `,"file-format":`...)
	dst = appendString(dst, strings.ToLower(string(f.FileFormat())))
	dst = appendLong(dst, "file-size-in-bytes", f.FileSizeBytes())
	dst = appendLong(dst, "record-count", f.Count())
	if key := f.KeyMetadata(); key != nil {
		dst = appendHex(append(dst, `,"key-metadata":`...), key)
	}
	if splits := f.SplitOffsets(); usable(splits, f.FileSizeBytes()) {
		dst = appendLongs(dst, "split-offsets", splits)
	}
	if id := f.SortOrderID(); id != nil {
		dst = appendLong(dst, "sort-order-id", int64(*id))
	}
	if f.ContentType() == iceberg.EntryContentData {
		if id := f.FirstRowID(); id != nil {
			dst = appendLong(dst, "first-row-id", *id)
		}
		return append(appendStats(dst, f, stats), '}')
	}
	return append(appendDelete(dst, f), '}')
}

// appendDelete writes what only delete files have.
func appendDelete(dst []byte, f iceberg.DataFile) []byte {
	if f.ContentType() == iceberg.EntryContentEqDeletes {
		return appendLongs(dst, "equality-ids", f.EqualityFieldIDs())
	}
	if path := f.ReferencedDataFile(); path != nil {
		dst = appendString(append(dst, `,"referenced-data-file":`...), *path)
	}
	if at := f.ContentOffset(); at != nil {
		dst = appendLong(dst, "content-offset", *at)
	}
	if size := f.ContentSizeInBytes(); size != nil {
		dst = appendLong(dst, "content-size-in-bytes", *size)
	}
	return dst
}

// usable reports whether split offsets are what they should be; clients refuse others.
func usable(offsets []int64, size int64) bool {
	for i, at := range offsets {
		if at < 0 || at >= size || (i > 0 && at <= offsets[i-1]) {
			return false
		}
	}
	return len(offsets) > 0
}

func appendLong(dst []byte, name string, n int64) []byte {
	dst = append(dst, `,"`...)
	dst = append(dst, name...)
	dst = append(dst, `":`...)
	return strconv.AppendInt(dst, n, 10)
}

func appendLongs[T int | int64](dst []byte, name string, values []T) []byte {
	dst = append(dst, `,"`...)
	dst = append(dst, name...)
	dst = append(dst, `":`...)
	return appendNumbers(dst, values)
}

func appendNumbers[T int | int64](dst []byte, values []T) []byte {
	dst = append(dst, '[')
	for i, v := range values {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendInt(dst, int64(v), 10)
	}
	return append(dst, ']')
}

// appendStats writes the statistics of the wanted columns. Bounds are the bytes of the
// manifest, as Java writes and reads them.
func appendStats(dst []byte, f iceberg.DataFile, wanted map[int]bool) []byte {
	if len(wanted) == 0 {
		return dst
	}
	number := func(dst []byte, n int64) []byte { return strconv.AppendInt(dst, n, 10) }
	dst = appendMap(dst, "column-sizes", f.ColumnSizes(), wanted, number)
	dst = appendMap(dst, "value-counts", f.ValueCounts(), wanted, number)
	dst = appendMap(dst, "null-value-counts", f.NullValueCounts(), wanted, number)
	dst = appendMap(dst, "nan-value-counts", f.NaNValueCounts(), wanted, number)
	dst = appendMap(dst, "lower-bounds", f.LowerBoundValues(), wanted, appendHex)
	return appendMap(dst, "upper-bounds", f.UpperBoundValues(), wanted, appendHex)
}

func appendMap[V any](dst []byte, name string, m map[int]V, wanted map[int]bool, value func([]byte, V) []byte) []byte {
	keys := make([]int, 0, len(wanted))
	for k := range m {
		if wanted[k] {
			keys = append(keys, k)
		}
	}
	if len(keys) == 0 {
		return dst
	}
	slices.SortFunc(keys, cmp.Compare[int])
	dst = append(dst, `,"`...)
	dst = append(dst, name...)
	dst = append(dst, `":{"keys":`...)
	dst = appendNumbers(dst, keys)
	dst = append(dst, `,"values":[`...)
	for i, k := range keys {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = value(dst, m[k])
	}
	return append(dst, "]}"...)
}

// tasks collects file scan tasks and the delete files that they refer to.
type tasks struct {
	count   int
	rows    int64 // of files without deletes and without a residual: certainly wanted
	body    []byte
	deletes []byte
	at      map[*deleteFile]int
}

// add writes a task.
func (t *tasks) add(s *spec, e entry, stats map[int]bool, deletes []*deleteFile, residual []byte) {
	if t.count > 0 {
		t.body = append(t.body, ',')
	}
	t.count++
	t.body = append(t.body, `{"data-file":`...)
	t.body = s.appendFile(t.body, e, stats)
	for i, f := range deletes {
		if i == 0 {
			t.body = append(t.body, `,"delete-file-references":[`...)
		} else {
			t.body = append(t.body, ',')
		}
		t.body = strconv.AppendInt(t.body, int64(t.place(f)), 10)
	}
	if len(deletes) > 0 {
		t.body = append(t.body, ']')
	}
	t.body = append(t.body, `,"residual-filter":`...)
	t.body = append(t.body, residual...)
	t.body = append(t.body, '}')
	if len(deletes) == 0 && string(residual) == "true" {
		t.rows += max(e.file.Count(), 0)
	}
}

// place is the index of a delete file in the answer.
func (t *tasks) place(f *deleteFile) int {
	if i, ok := t.at[f]; ok {
		return i
	}
	if t.at == nil {
		t.at = make(map[*deleteFile]int)
	}
	i := len(t.at)
	t.at[f] = i
	if i > 0 {
		t.deletes = append(t.deletes, ',')
	}
	t.deletes = append(t.deletes, f.json...)
	return i
}

// members writes the tasks as members of an object, without its braces.
func (t *tasks) members() []byte {
	out := make([]byte, 0, len(t.body)+len(t.deletes)+64)
	out = append(out, `"file-scan-tasks":[`...)
	out = append(out, t.body...)
	out = append(out, ']')
	if len(t.at) > 0 { // clients refuse delete files that no task refers to
		out = append(out, `,"delete-files":[`...)
		out = append(out, t.deletes...)
		out = append(out, ']')
	}
	return out
}
