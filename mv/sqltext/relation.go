package sqltext

import (
	"slices"
	"strings"
)

// refSet is a set of table references by index.
type refSet map[int]bool

func (s refSet) union(o refSet) refSet {
	u := refSet{}
	for k := range s {
		u[k] = true
	}
	for k := range o {
		u[k] = true
	}
	return u
}

func (s refSet) overlaps(o refSet) bool {
	for k := range s {
		if o[k] {
			return true
		}
	}
	return false
}

// driver is a table reference and the column of it that is bucketed.
type driver struct {
	ref    int
	column string
}

// carrier is the claim that a column of a relation is a bucket: for every set of buckets,
// restricting the drivers to it gives exactly the rows of the relation whose column lies
// in it. The claim holds with the relation's other references left alone; these are fixed.
// A reference that is read in two places can be both, and then there is no claim.
type carrier struct {
	bucket  Bucket
	drivers []driver // sorted
	fixed   refSet
}

func (c *carrier) driving() refSet {
	s := refSet{}
	for _, d := range c.drivers {
		s[d.ref] = true
	}
	return s
}

// with returns the claim with further fixed references, nil if it does not survive them.
func (c *carrier) with(fixed refSet) *carrier {
	if c == nil || c.driving().overlaps(fixed) {
		return nil
	}
	return &carrier{c.bucket, c.drivers, c.fixed.union(fixed)}
}

// merge returns the claim that follows from two claims about columns that are equal or
// that stand at the same place of a set operation.
func (c *carrier) merge(o *carrier) *carrier {
	if c == nil || o == nil || c.bucket != o.bucket {
		return nil
	}
	drivers := slices.Concat(c.drivers, o.drivers)
	slices.SortFunc(drivers, func(x, y driver) int {
		if x.ref != y.ref {
			return x.ref - y.ref
		}
		return strings.Compare(x.column, y.column)
	})
	drivers = slices.Compact(drivers)
	for i := 1; i < len(drivers); i++ {
		if drivers[i].ref == drivers[i-1].ref { // restricted by two columns at once
			return nil
		}
	}
	m := &carrier{c.bucket, drivers, c.fixed.union(o.fixed)}
	if m.driving().overlaps(m.fixed) {
		return nil
	}
	return m
}

// implies reports whether rows that agree on c agree on o.
func (c *carrier) implies(o *carrier) bool {
	return c != nil && o != nil && slices.Equal(c.drivers, o.drivers) && c.bucket.Refines(o.bucket)
}

// relColumn is a column of a relation.
type relColumn struct {
	name    string
	carrier *carrier
}

// relation is what is known about a table expression or a query.
type relation struct {
	cols []*relColumn
	open bool // has columns that are not known
	refs refSet
	// choosy tells that some of its rows are a choice (of equal rows, or by order), which
	// may fall differently in the next run.
	choosy bool
}

// binding is a relation under the name that qualifies its columns.
type binding struct {
	name string
	*relation
}

// scope is the FROM clause of a select: what names can mean, and SELECT *.
type scope struct {
	binds  []binding
	merged map[string]*relColumn // columns of USING, by lower-case name
	star   []*relColumn
	open   bool
	choosy bool
	refs   refSet
}

func (s *scope) add(name string, r *relation) {
	s.binds = append(s.binds, binding{name, r})
	s.star = append(s.star, r.cols...)
	s.open = s.open || r.open
	s.choosy = s.choosy || r.choosy
	s.refs = s.refs.union(r.refs)
}

// column finds what a column reference means. ok tells that it is certainly no column of
// the scope.
func (s *scope) column(parts []ident) (c *relColumn, absent bool) {
	name := parts[len(parts)-1].name
	switch len(parts) {
	case 1:
		if c, ok := s.merged[strings.ToLower(name)]; ok {
			return c, false
		}
		found := s.find("", name)
		if len(found) == 1 {
			return found[0], false
		}
		return nil, len(found) == 0 && !s.open
	case 2:
		// t.c and c.field look alike; if both readings are possible, nothing is known.
		found := s.find(parts[0].name, name)
		if len(found) == 1 && len(s.find("", parts[0].name)) == 0 {
			return found[0], false
		}
	}
	return nil, false
}

// find returns the columns of a name, within one binding if it is given.
func (s *scope) find(bind, name string) []*relColumn {
	var found []*relColumn
	for _, b := range s.binds {
		if bind != "" && !strings.EqualFold(b.name, bind) {
			continue
		}
		for _, c := range b.cols {
			if strings.EqualFold(c.name, name) {
				found = append(found, c)
			}
		}
	}
	return found
}

// rename returns the relation with the column aliases of an alias clause.
func (r *relation) rename(names []ident) *relation {
	if len(names) == 0 {
		return r
	}
	out := &relation{open: r.open, refs: r.refs, choosy: r.choosy}
	for i, c := range r.cols {
		d := &relColumn{c.name, c.carrier}
		if i < len(names) {
			d.name = names[i].name
		}
		out.cols = append(out.cols, d)
	}
	return out
}

// fix adds fixed references to every claim.
func (r *relation) fix(refs refSet) *relation {
	out := &relation{open: r.open, refs: r.refs.union(refs), choosy: r.choosy}
	for _, c := range r.cols {
		out.cols = append(out.cols, &relColumn{c.name, c.carrier.with(refs)})
	}
	return out
}

// drop takes every claim away.
func (r *relation) drop() *relation {
	out := &relation{open: r.open, refs: r.refs, choosy: r.choosy}
	for _, c := range r.cols {
		out.cols = append(out.cols, &relColumn{name: c.name})
	}
	return out
}

func (r *relation) carries() bool {
	return slices.ContainsFunc(r.cols, func(c *relColumn) bool { return c.carrier != nil })
}

// query returns what is known about a query.
func (a *analyser) query(q *queryNode) *relation {
	if q.recursive {
		a.note(CodeRecursive, q.start, "WITH RECURSIVE reads its own result")
		return (&relation{open: true}).fix(a.refsOfQuery(q))
	}
	return a.body(q.body)
}

func (a *analyser) body(b bodyNode) *relation {
	switch b := b.(type) {
	case *queryNode:
		return a.query(b)
	case *selectNode:
		return a.selectRelation(b)
	case *setNode:
		return a.setOperation(b)
	case *valuesNode:
		r := &relation{refs: refSet{}}
		if len(b.rows) > 0 {
			width := 1
			if b.rows[0].kind == exRow {
				width = len(b.rows[0].args)
			}
			for range width {
				r.cols = append(r.cols, &relColumn{})
			}
		}
		return r
	}
	return &relation{open: true, refs: refSet{}}
}

// setOperation keeps the claims that both branches make at the same place. UNION,
// INTERSECT and EXCEPT compare whole rows, so that rows of different buckets never meet.
func (a *analyser) setOperation(n *setNode) *relation {
	left, right := a.body(n.left), a.body(n.right)
	out := &relation{refs: left.refs.union(right.refs), choosy: left.choosy || right.choosy}
	if left.open || right.open || n.byName || len(left.cols) != len(right.cols) {
		out.open = true
		a.note(CodeSetOperation, bodyStart(n), "the branches of %s cannot be matched column by column", n.op)
		return out
	}
	for i, c := range left.cols {
		out.cols = append(out.cols, &relColumn{c.name, c.carrier.merge(right.cols[i].carrier)})
	}
	if !out.carries() {
		a.note(CodeSetOperation, bodyStart(n), "no column is the same bucket in both branches of %s", n.op)
	}
	return out
}

func bodyStart(b bodyNode) int {
	switch b := b.(type) {
	case *queryNode:
		return b.start
	case *selectNode:
		return b.start
	case *setNode:
		return bodyStart(b.left)
	}
	return 0
}

// refsOfQuery returns all references under a query, those of the common table
// expressions that it names included.
func (a *analyser) refsOfQuery(q *queryNode) refSet {
	s := refSet{}
	seen := map[*cteNode]bool{}
	w := walker{}
	w.table = func(t tableNode) {
		n, ok := t.(*tableName)
		switch {
		case !ok:
		case n.cte == nil:
			s[n.index] = true
		case !seen[n.cte]:
			seen[n.cte] = true
			w.walkQuery(n.cte.query)
		}
	}
	w.walkQuery(q)
	return s
}

// refsOfExprs returns the references in subqueries of expressions.
func (a *analyser) refsOfExprs(list ...*expr) refSet {
	s := refSet{}
	for _, e := range list {
		eachLocal(e, func(x *expr) {
			if x.query != nil {
				s = s.union(a.refsOfQuery(x.query))
			}
		})
	}
	return s
}
