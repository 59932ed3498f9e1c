package sqltext

// walker calls its functions, where set, on every node of a tree, parents first.
type walker struct {
	query func(*queryNode)
	sel   func(*selectNode)
	group func(*groupNode)
	table func(tableNode)
	expr  func(*expr)
}

func (w *walker) walkQuery(q *queryNode) {
	if q == nil {
		return
	}
	if w.query != nil {
		w.query(q)
	}
	for _, c := range q.ctes {
		w.walkQuery(c.query)
		w.walkExpr(c.opaque)
	}
	w.walkBody(q.body)
	w.walkOrder(q.order)
	w.walkExprs(q.limits)
	w.walkExprs(q.opaque)
}

func (w *walker) walkBody(b bodyNode) {
	switch b := b.(type) {
	case *queryNode:
		w.walkQuery(b)
	case *setNode:
		w.walkBody(b.left)
		w.walkBody(b.right)
	case *valuesNode:
		w.walkExprs(b.rows)
	case *selectNode:
		w.walkSelect(b)
	}
}

func (w *walker) walkSelect(s *selectNode) {
	if w.sel != nil {
		w.sel(s)
	}
	w.walkExprs(s.distinctOn)
	for _, it := range s.items {
		w.walkExpr(it.expr)
	}
	for _, t := range s.from {
		w.walkTable(t)
	}
	w.walkExpr(s.where)
	if s.group != nil {
		if w.group != nil {
			w.group(s.group)
		}
		w.walkExprs(s.group.plain)
		w.walkExprs(s.group.sets)
	}
	w.walkExpr(s.having)
	for _, n := range s.windows {
		w.walkWindow(n.spec)
	}
	w.walkExpr(s.qualify)
	w.walkExprs(s.opaque)
}

func (w *walker) walkTable(t tableNode) {
	if t == nil {
		return
	}
	if w.table != nil {
		w.table(t)
	}
	switch t := t.(type) {
	case *derivedTable:
		w.walkQuery(t.query)
	case *functionTable:
		w.walkExpr(t.call)
	case *viewTable:
		w.walkTable(t.left)
		w.walkExpr(t.call)
	case *joinNode:
		w.walkTable(t.left)
		w.walkTable(t.right)
		w.walkExpr(t.on)
	case *opaqueTable:
		w.walkTable(t.inner)
		w.walkExpr(t.part)
	}
}

func (w *walker) walkExpr(e *expr) {
	if e == nil {
		return
	}
	if w.expr != nil {
		w.expr(e)
	}
	w.walkExprs(e.args)
	w.walkOrder(e.order)
	w.walkExpr(e.filter)
	w.walkWindow(e.over)
	w.walkQuery(e.query)
	for _, q := range e.queries {
		w.walkQuery(q)
	}
}

func (w *walker) walkExprs(list []*expr) {
	for _, e := range list {
		w.walkExpr(e)
	}
}

func (w *walker) walkOrder(list []orderItem) {
	for _, o := range list {
		w.walkExpr(o.expr)
	}
}

func (w *walker) walkWindow(s *windowSpec) {
	if s == nil {
		return
	}
	w.walkExprs(s.partition)
	w.walkOrder(s.order)
	w.walkExprs(s.frame)
}
