package duckdb

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/catalogd/catalogd/mv"
)

// chains splits b so that in each part the delete files of every data file are a subset
// of those of the data file before it. Sequence numbers make that so within a partition.
// A delete file then applies to the first n files of a part, and one comparison with the
// file's index replaces a list of pairs.
func (s *scanner) chains(b *branch) []*branch {
	if len(b.keySets) == 0 {
		return []*branch{s.number(b)}
	}
	files := slices.Clone(b.files)
	sets := make(map[*source]map[string]bool, len(files))
	for _, f := range files {
		sets[f] = make(map[string]bool)
		for _, d := range f.EqualityDeletes {
			sets[f][d.Path] = true
		}
	}
	slices.SortStableFunc(files, func(x, y *source) int { return len(sets[y]) - len(sets[x]) })
	var parts [][]*source
	for _, f := range files {
		placed := false
		for i, p := range parts {
			if subset(sets[f], sets[p[len(p)-1]]) {
				parts[i], placed = append(p, f), true
				break
			}
		}
		if !placed {
			parts = append(parts, []*source{f})
		}
	}
	out := make([]*branch, 0, len(parts))
	for _, p := range parts {
		out = append(out, s.number(&branch{rel: b.rel, files: p, exprs: b.exprs, keySets: slices.Clone(b.keySets)}))
	}
	return out
}

func subset(a, b map[string]bool) bool {
	for k := range a {
		if !b[k] {
			return false
		}
	}
	return true
}

// equality loads the keys of one key set and returns the condition that a row is not
// among them. NULL equals NULL, as Iceberg wants it.
func (s *scanner) equality(ctx context.Context, b *branch, set int) (string, error) {
	k := b.keySets[set]
	table := fmt.Sprintf("%s.eq_%d_%d", internalSchema, b.id, set)
	cols := []string{"upto UBIGINT"}
	for i, f := range k.fields {
		cols = append(cols, fmt.Sprintf("k%d %s", i, f.typ.duck()))
	}
	if err := s.in.exec(ctx, "CREATE TABLE "+table+" ("+strings.Join(cols, ", ")+")"); err != nil {
		return "", runError("deletes", err)
	}
	applies := make(map[string]int) // delete file → index of the last data file it applies to
	byPath := make(map[string]mv.DeleteFile)
	for i, f := range b.files {
		for _, d := range f.EqualityDeletes {
			if idsKey(d.EqualityIDs) == k.ids {
				applies[d.Path], byPath[d.Path] = i, d
			}
		}
	}
	for _, path := range slices.Sorted(maps.Keys(byPath)) {
		if err := s.equalityFile(ctx, b, table, k, deleteUpTo{path, applies[path]}); err != nil {
			return "", err
		}
	}
	conds := []string{"e.upto >= " + b.alias() + ".file_index"}
	for i, expr := range k.exprs {
		conds = append(conds, fmt.Sprintf("e.k%d IS NOT DISTINCT FROM %s", i, expr))
	}
	return "NOT EXISTS (SELECT 1 FROM " + table + " AS e WHERE " + strings.Join(conds, " AND ") + ")", nil
}

type deleteUpTo struct {
	location string
	upto     int
}

func (s *scanner) equalityFile(ctx context.Context, b *branch, table string, k keySet, d deleteUpTo) error {
	local, foot, err := s.openDelete(d.location)
	if err != nil {
		return err
	}
	if !hasIDs(foot.columns) {
		assignIDs(foot.columns, shapeStruct, b.rel.mapping)
	}
	nanos, err := findNanos(local, foot.columns)
	if err != nil {
		return unprocessable("equality delete file %s cannot be read: %s", d.location, err)
	}
	exprs := []string{strconv.Itoa(d.upto)}
	for _, f := range k.fields {
		found := false
		for i, c := range foot.columns {
			leaf, at := findLeaf(c, f.id, "c"+strconv.Itoa(i))
			if leaf == nil {
				continue
			}
			found = true
			expr, err := convert(leaf, f.typ, at, 0)
			if err == nil && nanos[i] {
				err = fmt.Errorf("%s", finerThanMicros)
			}
			if err != nil {
				return unprocessable("equality delete file %s: key %q: %s", d.location, f.name, err)
			}
			s.extra += leaf.bytes
			exprs = append(exprs, expr)
		}
		if !found {
			return unprocessable("equality delete file %s lacks its key %q (field %d)", d.location, f.name, f.id)
		}
	}
	stmt := fmt.Sprintf("INSERT INTO %s SELECT DISTINCT %s FROM %s", table, strings.Join(exprs, ", "),
		readParquet([]string{local}, "x", "c", len(foot.columns)))
	if err := s.in.exec(ctx, stmt); err != nil {
		return runError("equality delete file "+d.location, err)
	}
	return nil
}
