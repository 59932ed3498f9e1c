package sqltext

import (
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
)

// Edit replaces the bytes [Start, End) of a text.
type Edit struct {
	Start, End int
	Text       string
}

// Rewrite applies edits to the text of q. They may come in any order but must not overlap.
// It does not look at what the edits mean: [RewriteTables] does.
func Rewrite(q *Query, edits []Edit) (string, error) {
	sorted := slices.Clone(edits)
	sort.SliceStable(sorted, func(i, j int) bool { return sorted[i].Start < sorted[j].Start })
	var b strings.Builder
	at := 0
	for _, e := range sorted {
		if e.Start < at || e.End < e.Start || e.End > len(q.Text) {
			return "", fmt.Errorf("edit of bytes %d to %d overlaps another or lies outside the text", e.Start, e.End)
		}
		b.WriteString(q.Text[at:e.Start])
		b.WriteString(e.Text)
		at = e.End
	}
	b.WriteString(q.Text[at:])
	return b.String(), nil
}

// Replacement says what a table reference is replaced by.
type Replacement struct {
	Ref       int      // [TableRef.Index]
	Name      []string // unquoted parts of the table to read instead; empty keeps the name
	Predicate string   // restricts its rows; empty reads them all
	Select    string   // a query to read instead of Name (an inlined view); no Predicate then
}

// RewriteTables replaces table references of q in its text: FROM t becomes
// FROM (SELECT * FROM "name" WHERE predicate) AS "t". Aliases and column aliases stay.
// It fails rather than return a text that could mean something else: if a reference
// picks a version or samples, if columns are qualified by more than the alias, if hidden
// columns are read, and if the new text does not parse to the old tree with only those
// references exchanged.
func RewriteTables(q *Query, reps []Replacement) (string, error) {
	if err := q.checkRewritable(); err != nil {
		return "", err
	}
	want := shapeOf(q)
	var edits []Edit
	for _, r := range reps {
		if r.Ref < 0 || r.Ref >= len(q.refs) {
			return "", fmt.Errorf("the query has no table reference %d", r.Ref)
		}
		t := q.refs[r.Ref]
		text, err := q.replacement(t, r)
		if err != nil {
			return "", err
		}
		before := q.Text[t.start:t.end]
		edit := Edit{t.start, t.end, text}
		if t.statement {
			before = q.Text[t.parts[0].start:t.end]
			edit.Text = "SELECT * FROM " + text
		}
		edits = append(edits, edit)
		if err := want.exchange(q.Dialect, before, text); err != nil {
			return "", err
		}
	}
	out, err := Rewrite(q, edits)
	if err != nil {
		return "", err
	}
	after, err := Parse(q.Dialect, out)
	if err != nil {
		return "", fmt.Errorf("the rewritten query does not parse: %w", err)
	}
	if got := shapeOf(after); !maps.Equal(got, want) {
		return "", fmt.Errorf("the rewritten query has another shape than the original (%s)", want.difference(got))
	}
	return out, nil
}

// replacement is the text that stands for a table reference.
func (q *Query) replacement(t *tableName, r Replacement) (string, error) {
	at := q.Position(t.start)
	switch {
	case t.timeTravel:
		return "", fmt.Errorf("%s: %s picks a version of the table itself", at, t.ref())
	case t.sampled:
		return "", fmt.Errorf("%s: %s is sampled", at, t.ref())
	case t.file:
		return "", fmt.Errorf("%s: %s is a file, not a table", at, t.ref())
	}
	d := q.Dialect
	inner := r.Select
	if inner == "" {
		name := q.Text[t.parts[0].start:t.parts[len(t.parts)-1].end]
		if len(r.Name) > 0 {
			name = QuoteName(d, r.Name)
		}
		inner = "SELECT * FROM " + name
		if r.Predicate != "" {
			inner += " WHERE " + r.Predicate
		}
	}
	// On its own, the text must be one query, so that none of it can end the brackets.
	if _, err := Parse(d, inner); err != nil {
		return "", fmt.Errorf("what replaces %s does not parse: %w", t.ref(), err)
	}
	if r.Select != "" {
		inner += "\n" // ends a trailing line comment
	}
	alias := t.aliasText
	as := "AS " + Quote(d, t.ref().Name())
	if alias.end > alias.start {
		as = q.Text[alias.start:alias.end]
	}
	return "(" + inner + ") " + as, nil
}

// QuoteName writes a dotted name with each part quoted.
func QuoteName(d Dialect, parts []string) string {
	quoted := make([]string, len(parts))
	for i, p := range parts {
		quoted[i] = Quote(d, p)
	}
	return strings.Join(quoted, ".")
}

// checkRewritable refuses texts whose columns could bind differently once a table is
// replaced by a subquery.
func (q *Query) checkRewritable() error {
	if err := q.checkQualifiers(); err != nil {
		return err
	}
	var err error
	w := walker{expr: func(e *expr) {
		if err == nil && e.kind == exColumn && hiddenColumn(q.Dialect, e.parts[len(e.parts)-1].name) {
			err = fmt.Errorf("%s: hidden column %s cannot be read through a restricted table", q.Position(e.start), q.Text[e.start:e.end])
		}
	}}
	w.walkQuery(q.root)
	return err
}

// checkQualifiers refuses columns that are qualified by more than the name of a table
// (ns.t.c): a subquery in the table's place has no namespace.
func (q *Query) checkQualifiers() error {
	names := map[string]bool{}
	for _, t := range q.refs {
		names[strings.ToLower(t.ref().Name())] = true
	}
	var err error
	w := walker{expr: func(e *expr) {
		if err != nil || e.kind != exColumn && e.kind != exStar || len(e.parts) == 0 {
			return
		}
		last := len(e.parts) - 1
		if e.kind == exStar {
			last++
		}
		for i := 1; i < last; i++ {
			if names[strings.ToLower(e.parts[i].name)] {
				err = fmt.Errorf("%s: column %s is qualified by more than its table; write %s instead", q.Position(e.start),
					q.Text[e.start:e.end], q.Text[e.parts[i].start:e.end])
				return
			}
		}
	}}
	w.walkQuery(q.root)
	return err
}

// sparkHidden are metadata columns of Iceberg tables in Spark.
var sparkHidden = words(`_file _pos _spec_id _partition _deleted _metadata _row_id _last_updated_sequence_number`)

// hiddenColumn reports whether a name is a column that SELECT * does not return.
func hiddenColumn(d Dialect, name string) bool {
	switch d {
	case DuckDB:
		return strings.EqualFold(name, "rowid")
	case Trino:
		return strings.HasPrefix(name, "$")
	}
	return sparkHidden[strings.ToLower(name)]
}

// shape counts the nodes of a tree by what they are.
type shape map[string]int

func shapeOf(q *Query) shape {
	s := shape{}
	w := walker{
		query: func(n *queryNode) {
			s["query"]++
			s["cte"] += len(n.ctes)
			s["order"] += len(n.order)
			s["limit"] += len(n.limits)
		},
		sel: func(n *selectNode) {
			s["select"]++
			s["item"] += len(n.items)
			s["from"] += len(n.from)
			for _, it := range n.items {
				if it.alias.name != "" {
					s["item "+it.alias.name]++
				}
			}
		},
		group: func(g *groupNode) { s["key"] += len(g.plain) + len(g.sets) },
		table: func(t tableNode) { s.table(t) },
		expr: func(e *expr) {
			s[fmt.Sprintf("expression %d %s", e.kind, e.callName())]++
			for _, p := range e.parts {
				s["part "+p.name]++
			}
		},
	}
	w.walkQuery(q.root)
	maps.DeleteFunc(s, func(_ string, n int) bool { return n == 0 })
	return s
}

func (s shape) table(t tableNode) {
	switch t := t.(type) {
	case *tableName:
		kind := "table "
		if t.cte != nil {
			kind = "common table "
		}
		s[kind+t.ref().String()]++
		s["alias "+t.as.alias.name]++
	case *derivedTable:
		s["derived table"]++
		s["alias "+t.as.alias.name]++
	case *functionTable, *viewTable:
		s["table function"]++
	case *joinNode:
		s["join "+t.kind]++
	case *opaqueTable:
		s["opaque table"]++
	}
}

// exchange takes the shape of a table expression out and puts another one in.
func (s shape) exchange(d Dialect, before, after string) error {
	for i, text := range []string{before, after} {
		q, err := Parse(d, "SELECT * FROM "+text)
		if err != nil {
			return fmt.Errorf("the table expression %s does not parse: %w", text, err)
		}
		for k, n := range shapeOf(q) {
			s[k] += n * (2*i - 1)
			if s[k] == 0 {
				delete(s, k)
			}
		}
	}
	return nil
}

// difference names one kind of node whose count differs.
func (s shape) difference(got shape) string {
	keys := slices.Sorted(maps.Keys(s))
	keys = append(keys, slices.Sorted(maps.Keys(got))...)
	for _, k := range keys {
		if s[k] != got[k] {
			return fmt.Sprintf("%s: %d instead of %d", k, got[k], s[k])
		}
	}
	return "none"
}
