package scan

import (
	"slices"
	"strings"

	"github.com/apache/iceberg-go"

	"github.com/catalogd/catalogd/catalog"
)

// filePathFieldID is the column of a position delete file that names data files.
const filePathFieldID = 2147483546

// deleteFile is a delete file with what finding its data files needs.
type deleteFile struct {
	seq    int64
	lo, hi string // paths that a position delete file names lie between them; empty: unknown
	ids    []int  // of the columns that an equality delete compares
	stats  *stats // of an equality delete
	json   []byte // as answers show it
}

// deleteIndex finds the deletes of a data file.
type deleteIndex struct {
	columns   map[int]iceberg.Type // at the top level of the table's schemas
	size      int
	vectors   map[string][]*deleteFile // by data file
	byPath    map[string][]*deleteFile // position deletes of one data file
	positions map[string][]*deleteFile // other position deletes, by partition
	equality  map[string][]*deleteFile // by partition
	global    []*deleteFile            // equality deletes of unpartitioned specs
}

func newDeleteIndex(d *document) *deleteIndex {
	columns := make(map[int]iceberg.Type)
	for _, sc := range d.schemas {
		for _, f := range sc.Fields() {
			columns[f.ID] = d.columnType(f.ID)
		}
	}
	return &deleteIndex{
		columns: columns, vectors: make(map[string][]*deleteFile), byPath: make(map[string][]*deleteFile),
		positions: make(map[string][]*deleteFile), equality: make(map[string][]*deleteFile),
	}
}

// add indexes a delete file of a manifest.
func (x *deleteIndex) add(e entry, s *spec) error {
	f := &deleteFile{seq: e.seq, json: s.appendFile(nil, e, nil)}
	x.size++
	if e.file.ContentType() == iceberg.EntryContentEqDeletes {
		f.ids, f.stats = e.file.EqualityFieldIDs(), statsOf(e.file)
		if s.unpartitioned {
			x.global = append(x.global, f)
			return nil
		}
		key := string(s.appendKey(nil, e.tuple))
		x.equality[key] = append(x.equality[key], f)
		return nil
	}
	path := ""
	if ref := e.file.ReferencedDataFile(); ref != nil {
		path = *ref
	}
	if e.file.FileFormat() == iceberg.PuffinFile {
		if path == "" {
			return unplannable("the deletion vector in %s names no data file", e.file.FilePath())
		}
		x.vectors[path] = append(x.vectors[path], f)
		return nil
	}
	lower, upper := e.file.LowerBoundValues()[filePathFieldID], e.file.UpperBoundValues()[filePathFieldID]
	f.lo, f.hi = string(lower), string(upper)
	if path == "" && single(lower, upper) && whole(f.lo) {
		path = f.lo
	}
	if path != "" {
		x.byPath[path] = append(x.byPath[path], f)
		return nil
	}
	key := string(s.appendKey(nil, e.tuple))
	x.positions[key] = append(x.positions[key], f)
	return nil
}

// whole reports whether a bound is a whole path. Some writers cut both bounds off and
// leave them equal; those are taken for the beginning of several paths.
func whole(path string) bool {
	return strings.HasSuffix(path, ".parquet") || strings.HasSuffix(path, ".orc") || strings.HasSuffix(path, ".avro")
}

// of lists the deletes that apply to a data file.
func (x *deleteIndex) of(e entry, s *spec, key []byte, own func() *stats) ([]*deleteFile, error) {
	if x == nil || x.size == 0 {
		return nil, nil
	}
	path := e.file.FilePath()
	var found []*deleteFile
	for _, f := range x.global {
		if x.hits(f, e, own) {
			found = append(found, f)
		}
	}
	if !s.unpartitioned {
		for _, f := range x.equality[string(key)] {
			if x.hits(f, e, own) {
				found = append(found, f)
			}
		}
	}
	vectors := applicable(x.vectors[path], e.seq)
	switch len(vectors) {
	case 0:
	case 1:
		return append(found, vectors[0]), nil // holds the positions of all older delete files
	default:
		return nil, catalog.Errorf(catalog.KindInvalid, "The table is damaged: data file %s has %d deletion vectors", path, len(vectors))
	}
	found = append(found, applicable(x.byPath[path], e.seq)...)
	for _, f := range applicable(x.positions[string(key)], e.seq) {
		if f.mayName(path) {
			found = append(found, f)
		}
	}
	return found, nil
}

// applicable are the position deletes that are not older than a data file.
func applicable(files []*deleteFile, seq int64) []*deleteFile {
	older := func(f *deleteFile) bool { return f.seq < seq && f.seq >= 0 }
	if !slices.ContainsFunc(files, older) {
		return files
	}
	var found []*deleteFile
	for _, f := range files {
		if !older(f) {
			found = append(found, f)
		}
	}
	return found
}

// mayName reports whether a position delete file may name a data file.
func (f *deleteFile) mayName(path string) bool {
	if f.lo != "" && path < f.lo {
		return false
	}
	// An upper bound that was cut off may have been left too small.
	return f.hi == "" || path <= f.hi || strings.HasPrefix(path, f.hi)
}

// hits reports whether an equality delete may hit a row of a data file: it must be newer,
// and the bounds of the columns that it compares must meet.
func (x *deleteIndex) hits(f *deleteFile, e entry, own func() *stats) bool {
	if f.seq <= e.seq && f.seq >= 0 && e.seq >= 0 {
		return false
	}
	for _, id := range f.ids {
		typ := x.columns[id]
		if typ == nil || isFloat(typ) || !hasBounds(typ) {
			continue
		}
		c := column{id: id, typ: typ}
		data, del := own().about(c, true), f.stats.about(c, true)
		if data.null && del.null {
			continue
		}
		if !data.values || !del.values { // one of them has only NULLs, the other has none
			return false
		}
		if order, ok := compare(data.lo, del.hi); ok && order > 0 {
			return false
		}
		if order, ok := compare(data.hi, del.lo); ok && order < 0 {
			return false
		}
	}
	return true
}
