package sqltext

import (
	"maps"
	"slices"
	"strings"
)

// from returns the scope of a FROM clause.
func (a *analyser) from(list []tableNode) *scope {
	var out *scope
	for _, t := range list {
		s := a.tableScope(t)
		if out == nil {
			out = s
			continue
		}
		out = a.join(out, s, &joinNode{kind: "CROSS"})
	}
	if out == nil {
		out = &scope{refs: refSet{}}
	}
	return out
}

func single(name string, r *relation) *scope {
	s := &scope{refs: refSet{}}
	s.add(name, r)
	return s
}

func (a *analyser) tableScope(t tableNode) *scope {
	switch t := t.(type) {
	case *tableName:
		return single(t.ref().Name(), a.named(t).rename(t.as.columns))
	case *derivedTable:
		return single(t.as.alias.name, a.query(t.query).rename(t.as.columns))
	case *functionTable:
		return single(functionName(t.as, t.call), a.functionRelation(t.call, t.as.columns))
	case *viewTable:
		right := single(functionName(t.as, t.call), a.functionRelation(t.call, t.as.columns))
		return a.join(a.tableScope(t.left), right, &joinNode{kind: "CROSS"})
	case *joinNode:
		return a.join(a.tableScope(t.left), a.tableScope(t.right), t)
	}
	return &scope{open: true, refs: refSet{}}
}

func functionName(as aliasClause, call *expr) string {
	if as.alias.name != "" {
		return as.alias.name
	}
	return call.name
}

// functionRelation is a table function; how many columns it has is only known from a
// column list.
func (a *analyser) functionRelation(call *expr, names []ident) *relation {
	r := &relation{open: len(names) == 0, refs: a.refsOfExprs(call)}
	for _, n := range names {
		r.cols = append(r.cols, &relColumn{name: n.name})
	}
	return r
}

// named returns the relation of a table or of a common table expression.
func (a *analyser) named(t *tableName) *relation {
	if c := t.cte; c != nil {
		if c.query == nil {
			return &relation{open: true, refs: refSet{}}
		}
		r, ok := a.ctes[c]
		if !ok {
			a.ctes[c] = (&relation{open: true}).fix(a.refsOfQuery(c.query)) // while it is read: a recursion
			r = a.query(c.query).rename(c.columns)
			a.ctes[c] = r
		}
		return r
	}
	r := &relation{refs: refSet{t.index: true}}
	var cols []Column
	if a.opt.Columns != nil {
		cols = a.opt.Columns(t.ref())
	}
	if cols == nil {
		r.open = true
		a.note(CodeUnknownColumns, t.start, "the columns of %s are not known", t.ref())
	}
	for _, c := range cols {
		r.cols = append(r.cols, &relColumn{c.Name, &carrier{
			bucket:  Bucket{Kind: Identity, Type: c.Type, Result: c.Type},
			drivers: []driver{{t.index, c.Name}},
			fixed:   refSet{},
		}})
	}
	return r
}

// join returns the scope of two joined ones. The rows of one side keep their claims as
// long as the other side stays as it is, unless the join can give them up for NULLs;
// columns that the join equates let both sides be restricted together.
func (a *analyser) join(left, right *scope, j *joinNode) *scope {
	using := j.using
	if j.natural {
		using = common(left, right)
	}
	fixed := a.refsOfExprs(j.on)
	keepLeft, keepRight := true, true
	switch j.kind {
	case "LEFT", "SEMI", "ANTI":
		keepRight = false
	case "RIGHT":
		keepLeft = false
	case "FULL":
		keepLeft, keepRight = false, false
		a.note(CodeOuterJoin, a.start(j), "FULL JOIN gives rows whose bucket is NULL for want of a match")
	case "ASOF", "POSITIONAL":
		keepLeft, keepRight = false, false
		a.note(CodeJoin, a.start(j), "%s JOIN matches rows across buckets", j.kind)
	}
	equal := a.equated(left, right, j.on, using)
	for c, m := range equal {
		equal[c] = m.with(fixed)
	}
	if left.refs.overlaps(right.refs) {
		a.note(CodeSelfJoin, a.start(j), "both sides of a join read the same table reference")
	}
	if left.choosy && keepRight || right.choosy && keepLeft {
		a.note(CodeNondeterministic, a.start(j), "one side of a join depends on the order of rows")
	}
	keepLeft, keepRight = keepLeft && !right.choosy, keepRight && !left.choosy
	l := left.side(keepLeft, right.refs.union(fixed), equal)
	r := right.side(keepRight, left.refs.union(fixed), equal)
	if !keepLeft || !keepRight {
		a.noteOuter(j, left, right, keepLeft, keepRight)
	}
	return a.combine(l, r, j, using)
}

func (a *analyser) start(j *joinNode) int {
	if j.on != nil {
		return j.on.start
	}
	return 0
}

// noteOuter records why the claims of a null-supplying side are lost.
func (a *analyser) noteOuter(j *joinNode, left, right *scope, keepLeft, keepRight bool) {
	lost := left
	if keepLeft && !keepRight {
		lost = right
	}
	for _, c := range lost.star {
		if c.carrier != nil && (j.kind == "LEFT" || j.kind == "RIGHT") && len(lost.refs) > 0 {
			a.note(CodeOuterJoin, a.start(j), "the bucket comes from the side of a %s JOIN that may be missing", j.kind)
			return
		}
	}
}

// side returns a scope as one side of a join: without its claims, or with the other
// side's references fixed. Equated columns get the claim about both sides.
func (s *scope) side(keep bool, fixed refSet, equal map[*relColumn]*carrier) *scope {
	out := &scope{open: s.open, choosy: s.choosy, refs: s.refs, merged: map[string]*relColumn{}}
	moved := map[*relColumn]*relColumn{}
	move := func(c *relColumn) *relColumn {
		if m, ok := moved[c]; ok {
			return m
		}
		m := &relColumn{name: c.name}
		switch {
		case !keep:
		case equal[c] != nil:
			m.carrier = equal[c]
		default:
			m.carrier = c.carrier.with(fixed)
		}
		moved[c] = m
		return m
	}
	for _, b := range s.binds {
		r := &relation{open: b.open, refs: b.refs}
		for _, c := range b.cols {
			r.cols = append(r.cols, move(c))
		}
		out.binds = append(out.binds, binding{b.name, r})
	}
	for _, c := range s.star {
		out.star = append(out.star, move(c))
	}
	for name, c := range s.merged {
		out.merged[name] = move(c)
	}
	return out
}

// equated returns, for columns that a join equates, the claim about both sides. All
// columns that make the same claim get it.
func (a *analyser) equated(left, right *scope, on *expr, using []ident) map[*relColumn]*carrier {
	equal := map[*relColumn]*carrier{}
	pair := func(l, r *carrier) {
		m := l.merge(r)
		if m == nil {
			return
		}
		for _, side := range []struct {
			s *scope
			c *carrier
		}{{left, l}, {right, r}} {
			for _, c := range side.s.columns() {
				if side.c.implies(c.carrier) && c.carrier.implies(side.c) && c.carrier.bucket == side.c.bucket {
					equal[c] = m
				}
			}
		}
	}
	for _, u := range using {
		l, _ := left.column([]ident{u})
		r, _ := right.column([]ident{u})
		if l != nil && r != nil {
			pair(l.carrier, r.carrier)
		}
	}
	for _, e := range conjuncts(on) {
		if e.kind != exBinary || e.name != "=" && e.name != "==" {
			continue
		}
		x, y := e.args[0], e.args[1]
		lx, ry := a.scopeCarrier(left, x), a.scopeCarrier(right, y)
		if lx == nil || ry == nil {
			lx, ry = a.scopeCarrier(left, y), a.scopeCarrier(right, x)
		}
		if lx != nil && ry != nil {
			pair(lx, ry)
		}
	}
	return equal
}

// columns returns every column that the scope can name.
func (s *scope) columns() []*relColumn {
	list := append([]*relColumn{}, s.star...)
	for _, b := range s.binds {
		list = append(list, b.cols...)
	}
	for _, c := range s.merged {
		list = append(list, c)
	}
	return list
}

// conjuncts splits a condition at AND.
func conjuncts(e *expr) []*expr {
	if e == nil {
		return nil
	}
	if e.kind == exBinary && e.name == "and" {
		return append(conjuncts(e.args[0]), conjuncts(e.args[1])...)
	}
	return []*expr{e}
}

// common returns the columns that a natural join equates.
func common(left, right *scope) []ident {
	var names []ident
	for _, c := range left.star {
		if c.name != "" && len(right.find("", c.name)) > 0 {
			names = append(names, ident{name: c.name})
		}
	}
	return names
}

// combine puts two sides together; what SELECT * gives depends on the dialect.
func (a *analyser) combine(l, r *scope, j *joinNode, using []ident) *scope {
	out := &scope{open: l.open || r.open, choosy: l.choosy || r.choosy, refs: l.refs.union(r.refs), merged: l.merged}
	out.binds = append(append(out.binds, l.binds...), r.binds...)
	if j.kind == "SEMI" || j.kind == "ANTI" {
		out.binds, out.open, out.star = l.binds, l.open, l.star
		return out
	}
	maps.Copy(out.merged, r.merged)
	if j.natural && (l.open || r.open) {
		out.open = true
	}
	var first, rest []*relColumn
	joined := map[string]bool{}
	for _, u := range using {
		key := strings.ToLower(u.name)
		joined[key] = true
		lc, _ := l.column([]ident{u})
		rc, _ := r.column([]ident{u})
		m := &relColumn{name: u.name}
		switch {
		case j.kind == "RIGHT" && rc != nil:
			m.carrier = rc.carrier
		case j.kind != "FULL" && lc != nil:
			m.carrier = lc.carrier
		}
		out.merged[key] = m
		first = append(first, m)
	}
	for _, c := range l.star {
		switch {
		case !joined[strings.ToLower(c.name)]:
			rest = append(rest, c)
		case a.q.Dialect == DuckDB:
			rest = append(rest, out.merged[strings.ToLower(c.name)])
		}
	}
	for _, c := range r.star {
		if !joined[strings.ToLower(c.name)] {
			rest = append(rest, c)
		}
	}
	if a.q.Dialect == DuckDB {
		first = nil
	}
	out.star = slices.Concat(first, rest)
	return out
}
