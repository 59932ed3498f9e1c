package duckdb

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/iceberg-go/table/dv"
	driverduckdb "github.com/duckdb/duckdb-go/v2"

	"github.com/catalogd/catalogd/catalog"
	"github.com/catalogd/catalogd/mv"
)

// Reserved field ids of position delete files.
const (
	deletePathID = 2147483546
	deletePosID  = 2147483545
)

// deletes loads the deletes of b into tables of the engine and returns the conditions
// under which a row of b is live.
func (s *scanner) deletes(ctx context.Context, b *branch) ([]string, error) {
	var out []string
	masked, err := s.positions(ctx, b)
	if err != nil {
		return nil, err
	}
	if masked != "" {
		out = append(out, masked)
	}
	for i := range b.keySets {
		cond, err := s.equality(ctx, b, i)
		if err != nil {
			return nil, err
		}
		out = append(out, cond)
	}
	return out, nil
}

// positions collects the deleted positions of b's files: from its deletion vector where a
// file has one, which then replaces older position deletes, else from position deletes.
func (s *scanner) positions(ctx context.Context, b *branch) (string, error) {
	table := "pos_" + strconv.Itoa(b.id)
	pairs := make(map[string]*deletePairs)
	var vectors []int
	for i, f := range b.files {
		if f.DeletionVector != nil {
			vectors = append(vectors, i)
			continue
		}
		for _, d := range f.PositionDeletes {
			if pairs[d.Path] == nil {
				pairs[d.Path] = &deletePairs{}
			}
			pairs[d.Path].add(f.Path, i)
		}
	}
	if len(pairs) == 0 && len(vectors) == 0 {
		return "", nil
	}
	create := "CREATE TABLE " + internalSchema + "." + table + " (f UBIGINT, p BIGINT)"
	if err := s.in.exec(ctx, create); err != nil {
		return "", runError("deletes", err)
	}
	for _, i := range vectors {
		if err := s.vector(ctx, table, b.files[i], i); err != nil {
			return "", err
		}
	}
	for path, p := range pairs {
		if err := s.positionFile(ctx, table, path, p); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("NOT EXISTS (SELECT 1 FROM %[1]s.%[2]s AS d WHERE d.f = %[3]s.file_index AND d.p = %[3]s.file_row_number)",
		internalSchema, table, b.alias()), nil
}

// deletePairs are the data files that one position delete file applies to.
type deletePairs struct {
	paths   []string
	indexes []string
}

func (p *deletePairs) add(path string, index int) {
	p.paths = append(p.paths, path)
	p.indexes = append(p.indexes, strconv.Itoa(index))
}

func (s *scanner) positionFile(ctx context.Context, table, location string, pairs *deletePairs) error {
	local, foot, err := s.openDelete(location)
	if err != nil {
		return err
	}
	path, pos := deleteColumn(foot, deletePathID, "file_path"), deleteColumn(foot, deletePosID, "pos")
	if path < 0 || pos < 0 {
		return unprocessable("file %s has no file_path and pos columns: it is not a position delete file", location)
	}
	s.extra += foot.columns[path].bytes + foot.columns[pos].bytes
	stmt := fmt.Sprintf(`INSERT INTO %s.%s SELECT DISTINCT m.f, x.c%d FROM %s
		JOIN (SELECT unnest(%s) AS path, unnest([%s]::UBIGINT[]) AS f) AS m ON x.c%d = m.path`,
		internalSchema, table, pos, readParquet([]string{local}, "x", "c", len(foot.columns)),
		quoteList(pairs.paths), strings.Join(pairs.indexes, ", "), path)
	if err := s.in.exec(ctx, stmt); err != nil {
		return runError("position delete file "+location, err)
	}
	return nil
}

// openDelete opens a delete file and returns the path that DuckDB reads.
func (s *scanner) openDelete(location string) (string, *footer, error) {
	local, err := localFile(location)
	if err != nil {
		return "", nil, unprocessable("%s", err)
	}
	foot, err := openFooter(location, local)
	if err != nil {
		return "", nil, err
	}
	plain, err := s.in.plain(local)
	if err != nil {
		return "", nil, catalog.Errorf(catalog.KindUnavailable, "file %s cannot be linked to", location).Because(err)
	}
	return plain, foot, nil
}

// deleteColumn finds a column by its reserved id; writers that leave ids out use the
// reserved name.
func deleteColumn(foot *footer, id int, name string) int {
	if i := byID(foot.columns, id); i >= 0 {
		return i
	}
	for i, c := range foot.columns {
		if c.name == name && c.id == noID {
			return i
		}
	}
	return -1
}

// vector decodes a deletion vector in Go, which checks length, magic and CRC.
func (s *scanner) vector(ctx context.Context, table string, f *source, index int) error {
	blob, err := readBlob(f.DeletionVector)
	if err != nil {
		return err
	}
	s.extra += int64(len(blob))
	bitmap, err := dv.DeserializeDV(blob, -1)
	if err != nil {
		return unprocessable("deletion vector of %s in %s at offset %d is damaged: %s", f.Path, f.DeletionVector.Path, f.DeletionVector.Offset, err)
	}
	return s.in.conn.Raw(func(dc any) error {
		app, err := driverduckdb.NewAppenderFromConn(dc.(driver.Conn), internalSchema, table)
		if err != nil {
			return runError("deletion vector of "+f.Path, err)
		}
		for pos := range bitmap.Positions() {
			if pos >= uint64(f.foot.rows) {
				_ = app.Close() // the refusal below is what matters
				return unprocessable("deletion vector of %s deletes position %d, but the file has %d rows", f.Path, pos, f.foot.rows)
			}
			if err := app.AppendRow(uint64(index), int64(pos)); err != nil {
				_ = app.Close() // the first error is what matters
				return runError("deletion vector of "+f.Path, err)
			}
		}
		if err := app.CloseWithCancel(ctx); err != nil {
			return runError("deletion vector of "+f.Path, err)
		}
		return nil
	})
}

// maxVectorBytes bounds a blob: its length field has 32 bits, and no file of sane size
// comes near this.
const maxVectorBytes = 1 << 30

func readBlob(d *mv.DeleteFile) ([]byte, error) {
	local, err := localFile(d.Path)
	if err != nil {
		return nil, unprocessable("%s", err)
	}
	if d.Length <= 0 || d.Length > maxVectorBytes || d.Offset < 0 {
		return nil, unprocessable("deletion vector in %s has offset %d and length %d", d.Path, d.Offset, d.Length)
	}
	f, err := os.Open(local)
	if err != nil {
		return nil, fileError(d.Path, err)
	}
	defer f.Close()
	blob := make([]byte, d.Length)
	if _, err := io.ReadFull(io.NewSectionReader(f, d.Offset, d.Length), blob); err != nil {
		return nil, unprocessable("deletion vector in %s at offset %d is cut short: %s", d.Path, d.Offset, err)
	}
	return blob, nil
}

// keySet is a set of equality key ids and the delete files that use it.
type keySet struct {
	ids    string
	fields []field
	exprs  []string // how the branch's own rows render the keys
}

// keySetsOf returns the distinct key sets among the equality deletes of f.
func (s *scanner) keySetsOf(f *source, r *relation) ([]keySet, error) {
	var out []keySet
	for _, d := range f.EqualityDeletes {
		ids := idsKey(d.EqualityIDs)
		if slices.ContainsFunc(out, func(k keySet) bool { return k.ids == ids }) {
			continue
		}
		if len(d.EqualityIDs) == 0 {
			return nil, unprocessable("equality delete file %s has no equality ids", d.Path)
		}
		fields, err := s.keyFields(d, r)
		if err != nil {
			return nil, err
		}
		out = append(out, keySet{ids: ids, fields: fields})
	}
	slices.SortFunc(out, func(a, b keySet) int { return strings.Compare(a.ids, b.ids) })
	return out, nil
}

func idsKey(ids []int) string {
	sorted := slices.Clone(ids)
	slices.Sort(sorted)
	return fmt.Sprint(sorted)
}

// keyFields gives the types of d's keys: from the schema, or for a column that was
// dropped since, from the delete file itself.
func (s *scanner) keyFields(d mv.DeleteFile, r *relation) ([]field, error) {
	ids := slices.Clone(d.EqualityIDs)
	slices.Sort(ids)
	var foot *footer
	out := make([]field, 0, len(ids))
	for _, id := range ids {
		if f, ok := fieldByID(r.fields, id); ok {
			out = append(out, f)
			continue
		}
		if foot == nil {
			var err error
			if _, foot, err = s.openDelete(d.Path); err != nil {
				return nil, err
			}
		}
		i := byID(foot.columns, id)
		if i < 0 || foot.columns[i].shape != shapeLeaf {
			return nil, unprocessable("equality delete file %s: key field %d is in neither the table's schema nor the file", d.Path, id)
		}
		typ, ok := fromDuck(foot.columns[i].duck)
		if !ok {
			return nil, unprocessable("equality delete file %s: key %q has type %s", d.Path, foot.columns[i].name, foot.columns[i].duck)
		}
		out = append(out, field{id: id, name: foot.columns[i].name, typ: typ})
	}
	return out, nil
}

// fromDuck is the Iceberg type of a leaf that only a file knows.
func fromDuck(duck string) (icebergType, bool) {
	for name, k := range plainTypes {
		if t := (icebergType{kind: k, text: name}); k != kUnknown && k != kTimestamptzNS && t.duck() == duck {
			return t, true
		}
	}
	var p, s int
	if _, err := fmt.Sscanf(duck, "DECIMAL(%d,%d)", &p, &s); err == nil {
		return icebergType{kind: kDecimal, text: duck, precision: p, scale: s}, true
	}
	return icebergType{}, false
}

func keysSignature(keys []keySet) []any {
	out := make([]any, 0, len(keys))
	for _, k := range keys {
		out = append(out, []any{k.ids, k.exprs})
	}
	return out
}

func fileError(location string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return catalog.Errorf(catalog.KindNotFound, "file %s is missing", location).Because(err)
	}
	return catalog.Errorf(catalog.KindUnavailable, "file %s cannot be read", location).Because(err)
}
