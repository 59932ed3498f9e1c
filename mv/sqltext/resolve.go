package sqltext

import (
	"slices"
	"sort"
	"strings"
)

// resolver tells the names of common table expressions from those of tables.
type resolver struct {
	q       *Query
	scope   []*cteNode // visible, innermost last
	pending []*cteNode // of WITH RECURSIVE lists, defined further on
	nested  int        // depth of subqueries inside expressions
	with    *cteNode   // whose text is being read
}

// resolve fills in Query.refs and the CTEs that table names stand for.
func resolve(q *Query) {
	r := &resolver{q: q}
	r.query(q.root)
	sort.SliceStable(q.refs, func(i, j int) bool { return q.refs[i].start < q.refs[j].start })
	for i, t := range q.refs {
		t.index = i
	}
}

func (r *resolver) query(n *queryNode) {
	if n == nil {
		return
	}
	scope, pending := len(r.scope), len(r.pending)
	if n.recursive {
		r.pending = append(r.pending, n.ctes...)
	}
	for _, c := range n.ctes {
		if n.recursive {
			r.pending = r.pending[:copy(r.pending, without(r.pending, c))]
			r.scope = append(r.scope, c)
		}
		outer := r.with
		r.with = c
		r.query(c.query)
		r.expr(c.opaque)
		r.with = outer
		if !n.recursive {
			r.scope = append(r.scope, c)
		}
	}
	r.body(n.body)
	r.order(n.order)
	r.exprs(n.limits)
	r.exprs(n.opaque)
	r.scope, r.pending = r.scope[:scope], r.pending[:min(pending, len(r.pending))]
}

func without(list []*cteNode, c *cteNode) []*cteNode {
	var out []*cteNode
	for _, x := range list {
		if x != c {
			out = append(out, x)
		}
	}
	return out
}

func (r *resolver) body(b bodyNode) {
	switch b := b.(type) {
	case *queryNode:
		r.query(b)
	case *setNode:
		r.body(b.left)
		r.body(b.right)
	case *valuesNode:
		r.exprs(b.rows)
	case *selectNode:
		r.selectBody(b)
	}
}

func (r *resolver) selectBody(s *selectNode) {
	r.exprs(s.distinctOn)
	for _, it := range s.items {
		r.expr(it.expr)
	}
	for _, t := range s.from {
		r.table(t)
	}
	r.expr(s.where)
	if s.group != nil {
		r.exprs(s.group.plain)
		r.exprs(s.group.sets)
	}
	r.expr(s.having)
	for _, w := range s.windows {
		r.window(w.spec)
	}
	r.expr(s.qualify)
	r.exprs(s.opaque)
}

func (r *resolver) table(t tableNode) {
	switch t := t.(type) {
	case *tableName:
		r.name(t)
	case *derivedTable:
		r.query(t.query)
	case *functionTable:
		r.expr(t.call)
	case *viewTable:
		r.table(t.left)
		r.expr(t.call)
	case *joinNode:
		r.table(t.left)
		r.table(t.right)
		r.expr(t.on)
	case *opaqueTable:
		if t.inner != nil {
			r.table(t.inner)
		}
		r.expr(t.part)
	}
}

// name decides what a table name stands for.
func (r *resolver) name(t *tableName) {
	t.inExpression = r.nested > 0
	t.with = r.with
	if len(t.parts) == 1 {
		name := t.parts[0].name
		for _, v := range slices.Backward(r.scope) {
			if strings.EqualFold(v.name.name, name) {
				t.cte = v
				return
			}
		}
		for _, c := range r.pending {
			if strings.EqualFold(c.name.name, name) {
				// Engines disagree on whether this is the later CTE or a table.
				r.q.root.opaque = append(r.q.root.opaque, &expr{
					kind: exOpaque, span: t.span, tables: true,
					reason: "reference to " + name + " before its definition",
				})
			}
		}
	}
	r.q.refs = append(r.q.refs, t)
}

func (r *resolver) exprs(list []*expr) {
	for _, e := range list {
		r.expr(e)
	}
}

func (r *resolver) order(list []orderItem) {
	for _, o := range list {
		r.expr(o.expr)
	}
}

func (r *resolver) window(w *windowSpec) {
	if w == nil {
		return
	}
	r.exprs(w.partition)
	r.order(w.order)
	r.exprs(w.frame)
}

func (r *resolver) expr(e *expr) {
	if e == nil {
		return
	}
	r.exprs(e.args)
	r.order(e.order)
	r.expr(e.filter)
	r.window(e.over)
	r.nested++
	r.query(e.query)
	for _, q := range e.queries {
		r.query(q)
	}
	r.nested--
}
