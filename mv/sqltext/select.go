package sqltext

import (
	"strconv"
	"strings"
)

// selection is a select while it is analysed.
type selection struct {
	a      *analyser
	node   *selectNode
	scope  *scope
	keys   []groupKey // of a grouped select
	group  bool
	naming map[*selectItem]bool // aliases being looked up, against cycles
}

type groupKey struct {
	expr    *expr
	carrier *carrier
}

// selectRelation returns what is known about a select.
func (a *analyser) selectRelation(n *selectNode) *relation {
	s := &selection{a: a, node: n, scope: a.from(n.from), naming: map[*selectItem]bool{}}
	fixed := a.refsOfExprs(s.expressions()...)
	grouped := s.grouping()
	out := &relation{refs: s.scope.refs, choosy: s.scope.choosy || s.choosy()}
	for _, it := range n.items {
		s.output(out, it)
	}
	if !grouped {
		return out.drop().fix(fixed)
	}
	s.windows(out)
	if n.distinct && !out.carries() {
		a.note(CodeDistinct, n.start, "DISTINCT has no bucket among its columns")
	}
	before := out.carries()
	out = out.fix(fixed)
	if s.choosySubquery() {
		a.note(CodeNondeterministic, n.start, "a subquery's result depends on the order of rows")
		out = out.drop()
	}
	if before && !out.carries() {
		a.note(CodeSubquery, n.start, "a subquery reads the table that drives the buckets")
	}
	return out
}

// choosy reports whether the select has an aggregate or a window whose result depends on
// the order of equal rows.
func (s *selection) choosy() bool {
	found := false
	for _, e := range s.expressions() {
		eachLocal(e, func(x *expr) { found = found || x.window || isAggregate(x) && orderDependent[x.name] })
	}
	return found
}

// choosySubquery reports whether a subquery of an expression is choosy.
func (s *selection) choosySubquery() bool {
	found := false
	w := walker{expr: func(x *expr) { found = found || x.window || isAggregate(x) && orderDependent[x.name] }}
	for _, e := range s.expressions() {
		eachLocal(e, func(x *expr) { w.walkQuery(x.query) })
	}
	return found
}

// expressions returns every expression of the select, FROM aside.
func (s *selection) expressions() []*expr {
	n := s.node
	list := append([]*expr{n.where, n.having, n.qualify}, n.distinctOn...)
	for _, it := range n.items {
		list = append(list, it.expr)
	}
	if n.group != nil {
		list = append(append(list, n.group.plain...), n.group.sets...)
	}
	for _, w := range n.windows {
		list = append(list, w.spec.partition...)
		for _, o := range w.spec.order {
			list = append(list, o.expr)
		}
	}
	return list
}

// grouping finds the group keys. It returns false if the select is one aggregate over
// everything, or if its keys are not known.
func (s *selection) grouping() bool {
	n := s.node
	if n.group == nil {
		if n.having != nil || s.aggregates() {
			s.a.note(CodeNoGroupBy, n.start, "an aggregate without GROUP BY spans every bucket")
			return false
		}
		return true
	}
	var keys []*expr
	if n.group.all {
		for _, it := range n.items {
			switch {
			case it.expr.kind == exStar, hasWindow(it.expr):
				s.a.note(CodeNoGroupBy, n.group.start, "the keys of GROUP BY ALL are not plain")
				return false
			case !hasAggregate(it.expr):
				keys = append(keys, it.expr)
			}
		}
		if len(keys) == 0 {
			s.a.note(CodeNoGroupBy, n.group.start, "GROUP BY ALL has no key")
			return false
		}
	} else {
		for _, e := range n.group.plain {
			keys = append(keys, s.key(e))
		}
	}
	for _, k := range keys {
		s.keys = append(s.keys, groupKey{k, s.carrier(k)})
	}
	s.group = true
	if n.group.multi && !s.keyed() {
		s.a.note(CodeGroupingSets, n.group.start, "ROLLUP, CUBE and GROUPING SETS make totals that span buckets")
	}
	return true
}

func (s *selection) keyed() bool {
	for _, k := range s.keys {
		if k.carrier != nil {
			return true
		}
	}
	return false
}

func (s *selection) aggregates() bool {
	for _, it := range s.node.items {
		if hasAggregate(it.expr) {
			return true
		}
	}
	return hasAggregate(s.node.qualify)
}

func hasWindow(e *expr) bool {
	found := false
	eachLocal(e, func(x *expr) { found = found || x.window })
	return found
}

// key returns the expression that a GROUP BY item stands for: an ordinal is a select
// item, and so is an alias unless a column has its name.
func (s *selection) key(e *expr) *expr {
	if e.kind == exNumber {
		i, err := strconv.Atoi(e.name)
		if err != nil || i < 1 || i > len(s.node.items) {
			return e
		}
		for _, it := range s.node.items[:i] {
			if it.expr.kind == exStar {
				return e
			}
		}
		return s.node.items[i-1].expr
	}
	if e.kind != exColumn || len(e.parts) != 1 {
		return e
	}
	it := s.aliased(e.parts[0].name)
	if it == nil {
		return e
	}
	if c, absent := s.scope.column(e.parts); absent && s.a.q.Dialect != Trino {
		return it.expr
	} else if c != nil && s.carrier(it.expr) != nil && !s.same(it.expr, e) {
		s.a.note(CodeShadowed, e.start, "GROUP BY %s means the column of the source, not the alias", e.parts[0].name)
	}
	return e
}

// aliased returns the only select item with an alias.
func (s *selection) aliased(name string) *selectItem {
	var found *selectItem
	for _, it := range s.node.items {
		if it.alias.name != "" && strings.EqualFold(it.alias.name, name) {
			if found != nil {
				return nil
			}
			found = it
		}
	}
	return found
}

// generators are functions that can make several columns of one select item.
var generators = words(`columns unnest inline inline_outer stack json_tuple posexplode posexplode_outer explode explode_outer`)

// output adds the columns of a select item.
func (s *selection) output(out *relation, it *selectItem) {
	if it.expr.kind != exStar {
		c := &relColumn{name: itemName(it)}
		eachLocal(it.expr, func(x *expr) {
			if x.kind == exCall && generators[x.name] {
				s.a.note(CodeUnknownColumns, x.start, "it is not known how many columns %s makes", x.name)
				out.open = true
			}
		})
		c.carrier = s.carrier(it.expr)
		out.cols = append(out.cols, c)
		return
	}
	if it.expr.name != "" || s.scope.open || s.group || len(it.expr.parts) > 1 {
		out.open = true
		return
	}
	if len(it.expr.parts) == 0 {
		for _, c := range s.scope.star {
			out.cols = append(out.cols, &relColumn{c.name, c.carrier})
		}
		return
	}
	found := 0
	for _, b := range s.scope.binds {
		if strings.EqualFold(b.name, it.expr.parts[0].name) {
			found++
			for _, c := range b.cols {
				out.cols = append(out.cols, &relColumn{c.name, c.carrier})
			}
		}
	}
	if found != 1 {
		out.open = true
	}
}

// windows takes away the claims that a window breaks: one that is not implied by an
// expression of every PARTITION BY.
func (s *selection) windows(out *relation) {
	lost := false
	at := s.node.start
	check := func(e *expr) {
		eachLocal(e, func(x *expr) {
			if !x.window {
				return
			}
			at = x.start
			parts, known := s.partition(x.over)
			for _, c := range out.cols {
				if c.carrier == nil || known && implied(parts, c.carrier) {
					continue
				}
				c.carrier, lost = nil, true
			}
		})
	}
	for _, it := range s.node.items {
		check(it.expr)
	}
	check(s.node.qualify)
	if lost && !out.carries() {
		s.a.note(CodeWindow, at, "PARTITION BY of a window does not hold the bucket")
	}
}

func implied(parts []*carrier, c *carrier) bool {
	for _, p := range parts {
		if p.implies(c) {
			return true
		}
	}
	return false
}

// partition returns the claims among the PARTITION BY expressions of a window.
func (s *selection) partition(w *windowSpec) ([]*carrier, bool) {
	var parts []*carrier
	for depth := 0; ; depth++ {
		for _, e := range w.partition {
			if c := s.carrier(e); c != nil {
				parts = append(parts, c)
			}
		}
		if w.base == "" {
			return parts, true
		}
		base := s.window(w.base)
		if base == nil || depth > len(s.node.windows) {
			return nil, false
		}
		w = base
	}
}

func (s *selection) window(name string) *windowSpec {
	for _, w := range s.node.windows {
		if strings.EqualFold(w.name.name, name) {
			return w.spec
		}
	}
	return nil
}
