package sqltext

import (
	"fmt"
	"strings"
)

// TableRef is a reference to a table or view in FROM. Names of common table expressions
// are no references.
type TableRef struct {
	Index        int      // position among the references of the query
	Parts        []string // the name without quotes, case kept as written
	Start, End   int      // byte span of the whole reference: name, time travel, sample, alias
	Alias        string   // empty if there is none
	Columns      []string // column aliases
	TimeTravel   bool     // picks a version of the table
	Sampled      bool     // TABLESAMPLE
	InExpression bool     // inside a subquery of an expression (IN, EXISTS, scalar)
	File         bool     // the engine would read it as a file
}

// Name is the name by which columns can be qualified: the alias or the last part.
func (t TableRef) Name() string {
	if t.Alias != "" {
		return t.Alias
	}
	return t.Parts[len(t.Parts)-1]
}

// String writes the name with dots, for messages.
func (t TableRef) String() string { return strings.Join(t.Parts, ".") }

func (t *tableName) ref() TableRef {
	r := TableRef{
		Index: t.index, Start: t.start, End: t.end, Alias: t.as.alias.name, TimeTravel: t.timeTravel,
		Sampled: t.sampled, InExpression: t.inExpression, File: t.file,
	}
	for _, p := range t.parts {
		r.Parts = append(r.Parts, p.name)
	}
	for _, c := range t.as.columns {
		r.Columns = append(r.Columns, c.name)
	}
	return r
}

// Tables returns the references to tables, in order of the text. A table that is read
// twice is returned twice. The list is complete only if [Query.TablesComplete].
func (q *Query) Tables() []TableRef {
	refs := make([]TableRef, len(q.refs))
	for i, t := range q.refs {
		refs[i] = t.ref()
	}
	return refs
}

// TablesComplete reports whether the query can read nothing that [Query.Tables] lacks: no
// opaque part that may name a table, and no table function that reads more than its
// arguments. If it is false, the query must not be materialized: its sources are not known.
func (q *Query) TablesComplete() bool {
	return len(q.Unread()) == 0
}

// Unread returns what makes [Query.TablesComplete] false, each part with its reason.
func (q *Query) Unread() []OpaquePart {
	var parts []OpaquePart
	w := walker{
		expr: func(e *expr) {
			if e.kind == exOpaque && e.tables {
				parts = append(parts, OpaquePart{e.start, e.end, e.reason})
			}
		},
		table: func(t tableNode) {
			if f, ok := t.(*functionTable); ok && !rowFunctions[f.call.callName()] {
				parts = append(parts, OpaquePart{f.call.start, f.call.end, "table function " + f.call.callName() + " reads more than its arguments"})
			}
		},
	}
	w.walkQuery(q.root)
	return parts
}

// OpaquePart is a part of the text that the package cannot read.
type OpaquePart struct {
	Start, End int
	Reason     string
}

// Opaque returns the parts that the package cannot read. A query that has any is only
// ever refreshed in full.
func (q *Query) Opaque() []OpaquePart {
	var parts []OpaquePart
	for _, o := range q.opaqueParts() {
		parts = append(parts, OpaquePart{o.start, o.end, o.reason})
	}
	return parts
}

func (q *Query) opaqueParts() []*expr {
	var parts []*expr
	w := walker{expr: func(e *expr) {
		if e.kind == exOpaque {
			parts = append(parts, e)
		}
	}}
	w.walkQuery(q.root)
	return parts
}

// FunctionCall is a call of a function or an operator.
type FunctionCall struct {
	Name     string // lower case, with its qualifiers; an operator as written
	Offset   int
	Args     int
	Operator bool
	Table    bool // in FROM
	Window   bool // with OVER
	Distinct bool
	Filter   bool
	Ordered  bool // ORDER BY inside the brackets or WITHIN GROUP
}

// Functions returns the calls of the query in order of the tree, operators and calls in
// FROM included. An opaque part can hold further calls.
func (q *Query) Functions() []FunctionCall {
	inFrom := map[*expr]bool{}
	var calls []FunctionCall
	w := walker{
		table: func(t tableNode) {
			switch t := t.(type) {
			case *functionTable:
				inFrom[t.call] = true
			case *viewTable:
				inFrom[t.call] = true
			}
		},
		expr: func(e *expr) {
			c := FunctionCall{
				Name: e.callName(), Offset: e.start, Args: len(e.args), Table: inFrom[e], Window: e.window,
				Distinct: e.distinct, Filter: e.filter != nil, Ordered: len(e.order) > 0,
			}
			switch e.kind {
			case exCall:
				c.Operator = len(e.parts) == 0 && !bareCalls[e.name]
			case exUnary, exBinary, exIn, exIs, exBetween, exQuantified:
				c.Operator = true
			default:
				return
			}
			calls = append(calls, c)
		},
	}
	w.walkQuery(q.root)
	return calls
}

// callName is the name of a call with its qualifiers, in lower case.
func (e *expr) callName() string {
	if e.kind != exCall || len(e.parts) < 2 {
		return e.name
	}
	names := make([]string, len(e.parts))
	for i, p := range e.parts {
		names[i] = strings.ToLower(p.name)
	}
	return strings.Join(names, ".")
}

// Output is a column of the result as the text has it.
type Output struct {
	Name       string // alias, or the column's own name; empty for another expression and a star
	Expr       string // text of the expression
	Aliased    bool
	Star       bool
	Start, End int
}

// Outputs returns the select list of the query, of its first branch if it is a set
// operation. A query that lists no expressions (VALUES) has none.
func (q *Query) Outputs() []Output {
	s := firstSelect(q.root)
	if s == nil {
		return nil
	}
	var outs []Output
	for _, it := range s.items {
		o := Output{Start: it.start, End: it.end, Aliased: it.alias.name != "", Star: it.expr.kind == exStar}
		o.Expr = q.Text[it.expr.start:it.expr.end]
		if it.implicit {
			o.Expr = "*"
		}
		o.Name = itemName(it)
		outs = append(outs, o)
	}
	return outs
}

func itemName(it *selectItem) string {
	switch {
	case it.alias.name != "":
		return it.alias.name
	case it.expr.kind == exColumn:
		return it.expr.parts[len(it.expr.parts)-1].name
	case it.expr.kind == exField:
		return it.expr.name
	}
	return ""
}

func firstSelect(q *queryNode) *selectNode {
	b := q.body
	for {
		switch n := b.(type) {
		case *queryNode:
			b = n.body
		case *setNode:
			b = n.left
		case *selectNode:
			return n
		default:
			return nil
		}
	}
}

// GroupKeys returns the texts of the group keys of the query's own select, nil if it has
// no GROUP BY.
func (q *Query) GroupKeys() []string {
	s := firstSelect(q.root)
	if s == nil || s.group == nil {
		return nil
	}
	keys := []string{}
	if s.group.all {
		for _, it := range s.items {
			if !hasAggregate(it.expr) {
				keys = append(keys, q.Text[it.expr.start:it.expr.end])
			}
		}
		return keys
	}
	for _, e := range append(append([]*expr{}, s.group.plain...), s.group.sets...) {
		keys = append(keys, q.Text[e.start:e.end])
	}
	return keys
}

// Aggregates returns the aggregate calls of the whole query, window calls left out.
func (q *Query) Aggregates() []FunctionCall {
	var out []FunctionCall
	for _, c := range q.Functions() {
		if !c.Window && !c.Table && aggregates[c.Name] {
			out = append(out, c)
		}
	}
	return out
}

// Position names a byte offset of the text for a message.
func (q *Query) Position(offset int) string {
	line, column := position(q.Text, offset)
	return fmt.Sprintf("line %d, column %d", line, column)
}
