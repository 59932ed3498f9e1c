package duckdb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/catalogd/catalogd/catalog"
	"github.com/catalogd/catalogd/mv"
)

// relation is an input of a run with its files opened.
type relation struct {
	name    string
	fields  []field
	mapping []mappedField
	files   []*source
}

// scanner builds the views that the query reads.
type scanner struct {
	in       *instance
	branches []*branch
	extra    int64 // bytes of delete files
}

// branch is one read_parquet call: files of the same layout whose columns are rendered by
// the same expressions, with the deletes that apply to them.
type branch struct {
	id    int
	rel   *relation
	files []*source
	exprs []string
	// keySets are the sets of equality key ids among the deletes of files.
	keySets []keySet
}

func (b *branch) alias() string  { return "g" + strconv.Itoa(b.id) }
func (b *branch) prefix() string { return b.alias() + "_c" }

// openRelation reads the footers of an input's files.
func (s *scanner) openRelation(ctx context.Context, input mv.Input) (*relation, error) {
	fields, err := relationFields(input.Relation)
	if err != nil {
		return nil, unprocessable("table %s: %s", input.Name, err)
	}
	mapping, err := nameMapping(input.NameMapping, fields)
	if err != nil {
		return nil, unprocessable("table %s: %s", input.Name, err)
	}
	r := &relation{name: input.Name, fields: fields, mapping: mapping, files: make([]*source, len(input.Files))}
	group, _ := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, f := range input.Files {
		group.Go(func() error {
			var err error
			r.files[i], err = s.openSource(f, mapping)
			return err
		})
	}
	return r, group.Wait()
}

func (s *scanner) openSource(f mv.InputFile, mapping []mappedField) (*source, error) {
	if !strings.EqualFold(f.Format, "PARQUET") && f.Format != "" {
		return nil, unprocessable("FILE_FORMAT: %s is a file of format %s; the DuckDB engine reads Parquet only: use another engine or rewrite the table's files", f.Path, f.Format)
	}
	local, err := localFile(f.Path)
	if err != nil {
		return nil, unprocessable("%s", err)
	}
	foot, err := openFooter(f.Path, local)
	if err != nil {
		return nil, err
	}
	if !hasIDs(foot.columns) {
		assignIDs(foot.columns, shapeStruct, mapping)
	}
	src := &source{InputFile: f, foot: foot}
	if src.plain, err = s.in.plain(local); err != nil {
		return nil, catalog.Errorf(catalog.KindUnavailable, "file %s cannot be linked to", f.Path).Because(err)
	}
	if src.nanos, err = findNanos(local, foot.columns); err != nil {
		return nil, unprocessable("file %s cannot be read: %s", f.Path, err)
	}
	return src, nil
}

// openFooter reads a footer and classifies what can go wrong.
func openFooter(location, local string) (*footer, error) {
	foot, err := readFooter(local)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, catalog.Errorf(catalog.KindNotFound, "file %s is missing", location).Because(err)
	case errors.Is(err, fs.ErrPermission):
		return nil, catalog.Errorf(catalog.KindUnavailable, "file %s may not be read", location).Because(err)
	case err != nil:
		return nil, unprocessable("file %s is not a readable Parquet file: %s", location, err)
	}
	return foot, nil
}

func unprocessable(format string, args ...any) *catalog.Error {
	return catalog.Errorf(catalog.KindUnprocessable, format, args...)
}

// view creates the view that the query knows as r.name.
func (s *scanner) view(ctx context.Context, r *relation) error {
	branches, err := s.split(r)
	if err != nil {
		return err
	}
	wants := make([]string, len(r.fields))
	for i, f := range r.fields {
		wants[i] = fmt.Sprintf("CAST(NULL AS %s) AS %s", f.typ.duck(), quoteIdent(f.name))
	}
	empty := "SELECT " + strings.Join(wants, ", ") + " WHERE false"
	wanted, err := s.in.bind(ctx, empty)
	if err != nil {
		return runError("table "+r.name, err)
	}
	parts := []string{empty}
	for _, b := range branches {
		if err := s.branchView(ctx, b); err != nil {
			return err
		}
		if err := s.sameTypes(ctx, wanted, b); err != nil {
			return err
		}
		parts = append(parts, "SELECT * FROM "+b.view())
	}
	if len(parts) > 1 {
		parts = parts[1:]
	}
	stmt := "CREATE VIEW main." + quoteIdent(r.name) + " AS " + strings.Join(parts, " UNION ALL ")
	if err := s.in.exec(ctx, stmt); err != nil {
		return runError("table "+r.name, err)
	}
	return nil
}

func (b *branch) view() string { return internalSchema + ".b" + strconv.Itoa(b.id) }

// branchView loads the deletes of b and creates its view.
func (s *scanner) branchView(ctx context.Context, b *branch) error {
	conditions, err := s.deletes(ctx, b)
	if err != nil {
		return err
	}
	paths := make([]string, len(b.files))
	for i, f := range b.files {
		paths[i] = f.plain
	}
	stmt := fmt.Sprintf("CREATE VIEW %s AS SELECT %s FROM %s", b.view(), strings.Join(b.exprs, ", "),
		readParquet(paths, b.alias(), b.prefix(), len(b.files[0].foot.columns)))
	if len(conditions) > 0 {
		stmt += " WHERE " + strings.Join(conditions, " AND ")
	}
	if err := s.in.exec(ctx, stmt); err != nil {
		return runError("table "+b.rel.name+", file "+b.files[0].Path, err)
	}
	return nil
}

// readParquet renders a scan whose columns are named by position, so that no name in a
// file can clash with another, with a virtual column or with SQL.
func readParquet(paths []string, alias, prefix string, columns int) string {
	names := make([]string, columns)
	for i := range names {
		names[i] = prefix + strconv.Itoa(i)
	}
	return fmt.Sprintf("read_parquet(%s, hive_partitioning = false, union_by_name = false) AS %s(%s)",
		quoteList(paths), alias, strings.Join(names, ", "))
}

// sameTypes compares the types that DuckDB reads in b with the table's. They differ only
// if a prediction in [leafType] is wrong; a union of both would convert silently.
func (s *scanner) sameTypes(ctx context.Context, wanted []resultColumn, b *branch) error {
	got, err := s.in.bind(ctx, "SELECT * FROM "+b.view())
	if err != nil {
		return runError("table "+b.rel.name, err)
	}
	for i, w := range wanted {
		if want, have := sqlType(w.info, w.typ), sqlType(got[i].info, got[i].typ); want != have {
			return unprocessable("table %s, file %s: column %q is read as %s, not as %s", b.rel.name, b.files[0].Path, w.name, have, want)
		}
	}
	return nil
}

// split groups the files of r into branches.
func (s *scanner) split(r *relation) ([]*branch, error) {
	groups := make(map[string]*branch)
	var order []string
	for _, f := range r.files {
		keys, err := s.keySetsOf(f, r)
		if err != nil {
			return nil, err
		}
		b, signature, err := s.render(r, f, keys)
		if err != nil {
			return nil, unprocessable("table %s, file %s: %s", r.name, f.Path, err)
		}
		if old, ok := groups[signature]; ok {
			old.files = append(old.files, f)
			continue
		}
		groups[signature] = b
		order = append(order, signature)
	}
	var out []*branch
	for _, sig := range order {
		out = append(out, s.chains(groups[sig])...)
	}
	return out, nil
}

// render resolves the columns of one file. The alias of the file's columns is filled in
// later, when the branch has its number.
func (s *scanner) render(r *relation, f *source, keys []keySet) (*branch, string, error) {
	res := resolver{file: f, prefix: aliasMark}
	b := &branch{rel: r, files: []*source{f}, keySets: keys}
	for _, fd := range r.fields {
		expr, err := res.column(fd)
		if err != nil {
			return nil, "", err
		}
		b.exprs = append(b.exprs, expr+" AS "+quoteIdent(fd.name))
	}
	for i := range keys {
		for _, k := range keys[i].fields {
			expr, err := res.key(k, r.fields)
			if err != nil {
				return nil, "", err
			}
			keys[i].exprs = append(keys[i].exprs, expr)
		}
	}
	masked := len(f.PositionDeletes) > 0 || f.DeletionVector != nil
	sig, err := json.Marshal([]any{f.foot.layout, b.exprs, keysSignature(keys), masked})
	return b, string(sig), err
}

// aliasMark stands for the column prefix of a branch until the branch has a number. No
// schema can hold it: names are quoted, and a NUL is not valid in SQL text.
const aliasMark = "\x00c"

// number gives b its number and its final expressions.
func (s *scanner) number(b *branch) *branch {
	b.id = len(s.branches)
	s.branches = append(s.branches, b)
	fill := func(exprs []string) []string {
		out := slices.Clone(exprs)
		for i := range out {
			out[i] = strings.ReplaceAll(out[i], aliasMark, b.prefix())
		}
		return out
	}
	b.exprs = fill(b.exprs)
	for i := range b.keySets {
		b.keySets[i].exprs = fill(b.keySets[i].exprs)
	}
	return b
}
