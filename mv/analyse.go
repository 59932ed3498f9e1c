package mv

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/catalogd/catalogd/catalog"
	"github.com/catalogd/catalogd/catalog/metadata"
	"github.com/catalogd/catalogd/mv/sqltext"
)

// The limits of a view's text. Its analysis is bounded by them: generated SQL of megabytes
// would keep a processor busy for minutes.
const (
	maxViewDepth   = 32        // how deep views may be nested
	maxTextBytes   = 100 << 10 // of one text
	maxReferences  = 500       // to tables, in one text
	analysisBudget = time.Minute
)

// objects finds what names mean: live in the catalog when a view is defined, in one
// pinned [State] when it is refreshed.
type objects interface {
	object(ctx context.Context, k Key) (catalog.Pointer, bool, error)
	Document(ctx context.Context, p catalog.Pointer) ([]byte, error)
}

// text is a query with the context that its names are read in.
type text struct {
	Dialect   Dialect
	SQL       string
	DefaultNS catalog.Namespace
	// Catalog is the client's own name of this catalog, if the view says so.
	Catalog string
	// Zone is the session time zone that the view is always run in.
	Zone string
}

// relation is a table that a query reads, under the name the engine knows it by.
type relation struct {
	Name     string
	Source   catalog.TableIdent // the table's own name (of a materialized view: its storage)
	Row      catalog.Pointer
	Document []byte
	Table    *metadata.Table
	Refs     int // how often the query reads it
}

// analysis is what a query turned out to be.
type analysis struct {
	Query     *sqltext.Query        // in DuckDB's words
	Replace   []sqltext.Replacement // what its references are replaced by to run
	Inlined   bool                  // some reference is a plain view
	Relations []*relation
	Sources   []Source
	Views     []catalog.Pointer // rows of the views it reads, materialized ones included
	Names     []Key             // every name that was looked up, found or not
}

// analyse reads a query: what its names mean, down to tables, and how to run it. self is
// the view that is being defined or refreshed.
func analyse(ctx context.Context, o objects, warehouse string, self Key, t text) (*analysis, error) {
	a := &analyser{objects: o, warehouse: warehouse, self: self, zone: t.Zone, probed: map[Key]bool{}, byUUID: map[string]*relation{}}
	q, reps, err := a.read(ctx, t, frame{})
	if err != nil {
		return nil, err
	}
	out := &analysis{Query: q, Replace: reps, Relations: a.relations, Sources: a.sources, Views: a.views, Inlined: a.inlined}
	for k := range a.probed {
		out.Names = append(out.Names, k)
	}
	slices.SortFunc(out.Names, compareKeys)
	return out, nil
}

func compareKeys(a, b Key) int {
	return cmp.Or(strings.Compare(a.Warehouse, b.Warehouse), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

type analyser struct {
	objects
	warehouse string
	self      Key
	zone      string
	probed    map[Key]bool
	relations []*relation
	byUUID    map[string]*relation
	sources   []Source
	views     []catalog.Pointer
	inlined   bool
}

// frame is where in a chain of views a text stands.
type frame struct {
	via   catalog.TableIdent // the plain view whose text it is; zero for the query itself
	depth int
	// probing is true below a materialized view: its text is followed to find cycles, but
	// what it reads is its own business.
	probing bool
}

// read parses a text and looks its references up.
func (a *analyser) read(ctx context.Context, t text, f frame) (*sqltext.Query, []sqltext.Replacement, error) {
	if f.depth > maxViewDepth {
		return nil, nil, ErrInput("views are nested more than %d deep", maxViewDepth)
	}
	if len(t.SQL) > maxTextBytes {
		return nil, nil, ErrInput("the query has %d bytes, a view may have %d", len(t.SQL), maxTextBytes)
	}
	q, err := sqltext.Parse(sqltext.Dialect(t.Dialect), t.SQL)
	if err != nil {
		return nil, nil, ErrInput("SQL of dialect %s: %s", t.Dialect, err.Error())
	}
	if n := len(q.Tables()); n > maxReferences {
		return nil, nil, ErrInput("the query names %d tables, a view may name %d", n, maxReferences)
	}
	if unread := q.Unread(); len(unread) > 0 {
		return nil, nil, ErrInput("%s: the query has a part that catalogd cannot read (%s), so its sources are unknown", q.Position(unread[0].Start), unread[0].Reason)
	}
	var reps []sqltext.Replacement
	columns := map[int][]sqltext.Column{}
	for _, ref := range q.Tables() {
		found, err := a.reference(ctx, t, q, ref, f)
		if err != nil {
			return nil, nil, err
		}
		reps = append(reps, found.replacement)
		columns[ref.Index] = found.columns
	}
	if f.probing || t.Dialect == DuckDB {
		return q, reps, nil
	}
	q, err = toDuckDB(q, sqltext.Options{
		Columns: func(r sqltext.TableRef) []sqltext.Column { return columns[r.Index] }, TimeZone: a.zone,
	})
	return q, reps, err
}

// toDuckDB brings a query into DuckDB's dialect, if DuckDB gives it the same meaning.
func toDuckDB(q *sqltext.Query, opt sqltext.Options) (*sqltext.Query, error) {
	if err := sqltext.CheckSame(q, opt); err != nil {
		return nil, ErrInput("SQL of dialect %s cannot be run by DuckDB with the same meaning: %s. Write it in dialect duckdb, or add a duckdb representation to the view", q.Dialect, err.Error())
	}
	normal, err := sqltext.Normalise(q)
	if err != nil {
		return nil, ErrInput("SQL of dialect %s: %s", q.Dialect, err.Error())
	}
	return normal, nil
}

// referenced is what a table reference turned out to be.
type referenced struct {
	replacement sqltext.Replacement
	columns     []sqltext.Column
}

// reference finds out what one table reference is.
func (a *analyser) reference(ctx context.Context, t text, q *sqltext.Query, ref sqltext.TableRef, f frame) (referenced, error) {
	none := referenced{}
	if ref.File {
		return none, ErrInput("%s: %s is a file, a view reads tables of the catalog only", q.Position(ref.Start), ref)
	}
	row, err := a.resolve(ctx, t, q, ref, f)
	if err != nil {
		return none, err
	}
	if KeyOf(a.warehouse, row.Ident) == a.self {
		return none, ErrInput("%s: %s would read itself%s", q.Position(ref.Start), row.Ident, f.through())
	}
	if row.Type == catalog.TypeTable {
		if f.probing {
			return none, nil
		}
		a.add(Source{Kind: SourceTable, Ident: row.Ident, UUID: row.UUID, Via: f.via})
		r, err := a.relation(ctx, row)
		if err != nil {
			return none, err
		}
		return r.referenced(ref), nil
	}
	return a.view(ctx, t, row, ref, f)
}

func (f frame) through() string {
	if f.via.Name == "" {
		return ""
	}
	return fmt.Sprintf(" (through view %s)", f.via)
}

// view handles a reference to a view: a plain one is inlined, a materialized one is read
// from its storage table.
func (a *analyser) view(ctx context.Context, t text, row catalog.Pointer, ref sqltext.TableRef, f frame) (referenced, error) {
	none := referenced{}
	doc, err := a.Document(ctx, row)
	if err != nil {
		return none, err
	}
	v, err := metadata.ParseView(doc)
	if err != nil {
		return none, catalog.Errorf(catalog.KindInternal, "metadata of view %s cannot be read", row.Ident).Because(err)
	}
	version := v.CurrentVersion()
	inner, ok := representation(version, t.Dialect)
	below := frame{via: row.Ident, depth: f.depth + 1, probing: f.probing || version.StorageTable != nil}
	if version.StorageTable == nil && !ok {
		return none, ErrInput("VIEW_DIALECT: view %s has no text in dialect %s, so it cannot be read through", row.Ident, t.Dialect)
	}
	if !f.probing {
		a.views = append(a.views, row)
	}
	if version.StorageTable != nil {
		if !ok { // only to find cycles: any of its texts will do
			inner, ok = anyRepresentation(version)
		}
		if ok {
			if _, _, err := a.read(ctx, inner, below); err != nil && catalog.KindOf(err) != catalog.KindInvalid || isCycle(err) {
				return none, err
			}
		}
		if f.probing {
			return none, nil
		}
		return a.storage(ctx, row, version, ref, f)
	}
	q, reps, err := a.read(ctx, inner, below)
	if err != nil || f.probing {
		return none, err
	}
	a.add(Source{Kind: SourceView, Ident: row.Ident, UUID: row.UUID, Via: f.via})
	a.inlined = true
	body, err := sqltext.RewriteTables(q, reps)
	if err != nil {
		return none, ErrInput("view %s: %s", row.Ident, err.Error())
	}
	columns, err := declaredColumns(v, version)
	if err != nil {
		return none, err
	}
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = sqltext.Quote(sqltext.DuckDB, c.Name)
	}
	inlined := "SELECT * FROM (" + body + "\n) AS v (" + strings.Join(names, ", ") + ")"
	return referenced{sqltext.Replacement{Ref: ref.Index, Select: inlined}, columns}, nil
}

// isCycle recognises the error of a view that would read itself.
func isCycle(err error) bool {
	e, ok := errors.AsType[*catalog.Error](err)
	return ok && strings.Contains(e.Msg, "would read itself")
}

// declaredColumns are the view's own columns: its text may name them otherwise.
func declaredColumns(v *metadata.View, version metadata.Version) ([]sqltext.Column, error) {
	raw, ok := v.Schema(version.SchemaID)
	if !ok {
		return nil, catalog.Errorf(catalog.KindInternal, "view %s lacks schema %d", v.UUID(), version.SchemaID)
	}
	fields, err := schemaFields(raw)
	if err != nil {
		return nil, err
	}
	return columnsOf(fields), nil
}

func columnsOf(fields []field) []sqltext.Column {
	out := make([]sqltext.Column, len(fields))
	for i, f := range fields {
		out[i] = sqltext.Column{Name: f.Name, Type: typeText(f.Type)}
	}
	return out
}

func (r *relation) referenced(ref sqltext.TableRef) referenced {
	return referenced{sqltext.Replacement{Ref: ref.Index, Name: []string{r.Name}}, r.columns()}
}

// storage handles a reference to a materialized view.
func (a *analyser) storage(ctx context.Context, row catalog.Pointer, version metadata.Version, ref sqltext.TableRef, f frame) (referenced, error) {
	none := referenced{}
	st := version.StorageTable
	if st.Catalog != "" {
		return none, ErrInput("%s is materialized in another catalog (%s), catalogd cannot read it", row.Ident, st.Catalog)
	}
	id := catalog.TableIdent{Namespace: st.Namespace, Name: st.Name}
	key := KeyOf(a.warehouse, id)
	a.probed[key] = true
	table, ok, err := a.object(ctx, key)
	if err != nil {
		return none, err
	}
	if !ok {
		return none, catalog.Errorf(catalog.KindNoSuchTable, "the storage table %s of %s does not exist", id, row.Ident)
	}
	a.add(Source{Kind: SourceMV, Ident: row.Ident, UUID: row.UUID, Storage: id, Via: f.via})
	r, err := a.relation(ctx, table)
	if err != nil {
		return none, err
	}
	return r.referenced(ref), nil
}

func (a *analyser) add(s Source) {
	same := func(o Source) bool { return o.Kind == s.Kind && o.UUID == s.UUID && o.Ident.Equal(s.Ident) }
	if !slices.ContainsFunc(a.sources, same) {
		a.sources = append(a.sources, s)
	}
}

func (a *analyser) relation(ctx context.Context, row catalog.Pointer) (*relation, error) {
	if r, ok := a.byUUID[row.UUID]; ok {
		r.Refs++
		return r, nil
	}
	doc, err := a.Document(ctx, row)
	if err != nil {
		return nil, err
	}
	t, err := metadata.ParseTable(doc)
	if err != nil {
		return nil, catalog.Errorf(catalog.KindInternal, "metadata of %s cannot be read", row.Ident).Because(err)
	}
	r := &relation{Name: fmt.Sprintf("catalogd_s%d", len(a.relations)), Source: row.Ident, Row: row, Document: doc, Table: t, Refs: 1}
	a.relations = append(a.relations, r)
	a.byUUID[row.UUID] = r
	return r, nil
}

// representation picks a version's text in a dialect.
func representation(v metadata.Version, d Dialect) (text, bool) {
	for _, r := range v.Representations {
		if r.Type == "sql" && strings.EqualFold(r.Dialect, string(d)) {
			return textOf(v, r), true
		}
	}
	return text{}, false
}

func anyRepresentation(v metadata.Version) (text, bool) {
	for _, d := range []Dialect{DuckDB, Trino, Spark} {
		if t, ok := representation(v, d); ok {
			return t, true
		}
	}
	return text{}, false
}

func textOf(v metadata.Version, r metadata.Representation) text {
	return text{
		Dialect: Dialect(strings.ToLower(r.Dialect)), SQL: r.SQL,
		DefaultNS: v.DefaultNamespace, Catalog: v.DefaultCatalog,
	}
}
