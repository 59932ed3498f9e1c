package sqltext

// topQuery reads the whole text as a query. What follows it becomes an opaque part.
func (p *parser) topQuery() *queryNode {
	q := p.query()
	if p.tok().Kind == TokenEnd {
		return q
	}
	if p.isOp(0, ")") || p.isOp(0, "]") || p.isOp(0, "}") {
		p.unexpected("the end of the text")
	}
	rest := p.opaque("unknown clause "+p.describe(p.pos), func() bool { return false })
	if p.tok().Kind != TokenEnd {
		p.unexpected("the end of the text")
	}
	rest.tables = true
	q.opaque = append(q.opaque, rest)
	return q
}

// query reads WITH, a body and what orders and limits it.
func (p *parser) query() *queryNode {
	p.enter()
	defer p.leave()
	first := p.pos
	q := &queryNode{}
	if p.accept("WITH") {
		p.with(q)
	}
	q.body = p.setBody(0)
	p.tail(q)
	q.span = p.from(first)
	return q
}

func (p *parser) with(q *queryNode) {
	q.recursive = p.accept("RECURSIVE")
	for {
		q.ctes = append(q.ctes, p.cte())
		if !p.acceptOp(",") {
			break
		}
	}
	if up := p.word(0); otherStatements[up] && up != "PIVOT" {
		panic(failure{err: syntaxError(p.text, p.tok().Start, "a view is one query; WITH … %s is refused", up), hard: true})
	}
}

func (p *parser) cte() *cteNode {
	c := &cteNode{name: p.name()}
	if p.isOp(0, "(") {
		c.columns = p.nameList()
	}
	if p.accept("USING") { // DuckDB: USING KEY (…)
		p.expect("KEY")
		c.opaque = p.opaque("USING KEY", func() bool { return p.isWord("AS") })
	}
	p.expect("AS")
	if !p.accept("MATERIALIZED") {
		p.accept("NOT", "MATERIALIZED")
	}
	query, next := p.bracketQuery()
	if query != nil {
		c.query, p.pos = query, next
	} else {
		if !p.isOp(0, "(") {
			p.unexpected(`"("`)
		}
		p.refuseNested(p.pos + 1)
		c.opaque = p.opaque("the query of "+c.name.name, func() bool { return !p.isOp(0, "(") })
		c.opaque.tables = true
	}
	if p.isWord("SEARCH") || p.isWord("CYCLE") {
		c.opaque = p.opaque(p.word(0), func() bool { return p.isOp(0, ",") || p.startsQuery(p.pos) })
	}
	return c
}

// nameList reads ( name, … ).
func (p *parser) nameList() []ident {
	p.expectOp("(")
	var names []ident
	for {
		names = append(names, p.name())
		if !p.acceptOp(",") {
			break
		}
	}
	p.expectOp(")")
	return names
}

// setBody reads selects joined by set operations; INTERSECT binds closer than the rest.
func (p *parser) setBody(floor int) bodyNode {
	p.enter()
	defer p.leave()
	left := p.primaryBody()
	for {
		prec := 0
		op := p.word(0)
		switch op {
		case "UNION", "EXCEPT":
			prec = 1
		case "MINUS":
			if p.d == Spark {
				op, prec = "EXCEPT", 1
			}
		case "INTERSECT":
			prec = 2
		}
		if prec == 0 || prec <= floor {
			return left
		}
		p.pos++
		n := &setNode{op: op, left: left}
		n.all = p.accept("ALL")
		if !n.all {
			p.accept("DISTINCT")
		}
		n.byName = p.accept("BY", "NAME") || p.accept("CORRESPONDING")
		n.right = p.setBody(prec)
		left = n
	}
}

func (p *parser) primaryBody() bodyNode {
	switch {
	case p.isOp(0, "("):
		q, next := p.bracketQuery()
		if q == nil {
			p.pos++
			p.unexpected("a query")
		}
		p.pos = next
		return q
	case p.isWord("SELECT"), p.isWord("FROM") && p.d != Trino:
		return p.selectBody()
	case p.isWord("VALUES"):
		return p.values()
	case p.isWord("TABLE") && p.startsQuery(p.pos):
		first := p.pos
		p.pos++
		n := p.tableName()
		n.statement, n.span = true, p.from(first)
		s := &selectNode{items: []*selectItem{starItem(n.start)}, from: []tableNode{n}, span: n.span}
		return s
	}
	p.unexpected("SELECT")
	return nil
}

func starItem(at int) *selectItem {
	s := span{at, at}
	return &selectItem{span: s, implicit: true, expr: &expr{kind: exStar, span: s}}
}

func (p *parser) values() *valuesNode {
	p.expect("VALUES")
	n := &valuesNode{}
	for {
		n.rows = append(n.rows, p.slot())
		if !p.acceptOp(",") {
			return n
		}
	}
}

// tail reads ORDER BY, LIMIT, OFFSET and FETCH in any order.
func (p *parser) tail(q *queryNode) {
	for {
		switch {
		case p.accept("ORDER", "BY"):
			q.order = append(q.order, p.orderList()...)
		case p.d == Spark && (p.accept("SORT", "BY") || p.accept("CLUSTER", "BY") || p.accept("DISTRIBUTE", "BY")):
			q.order = append(q.order, p.orderList()...)
		case p.accept("LIMIT"):
			q.limited = true
			if !p.accept("ALL") && !p.accept("NULL") {
				q.limits = append(q.limits, p.slot())
				p.acceptOp("%")
				p.accept("PERCENT")
			}
		case p.accept("OFFSET"):
			q.limited = true
			q.limits = append(q.limits, p.slot())
			_ = p.accept("ROW") || p.accept("ROWS")
		case p.isWord("FETCH", "FIRST"), p.isWord("FETCH", "NEXT"):
			q.limited = true
			p.pos += 2
			if !p.isWord("ROW") && !p.isWord("ROWS") {
				q.limits = append(q.limits, p.slot())
			}
			_ = p.accept("ROW") || p.accept("ROWS")
			_ = p.accept("ONLY") || p.accept("WITH", "TIES")
		default:
			return
		}
	}
}

func (p *parser) orderList() []orderItem {
	var list []orderItem
	for {
		o := orderItem{expr: p.slot()}
		if !p.accept("ASC") {
			o.desc = p.accept("DESC")
		}
		if p.accept("NULLS", "FIRST") {
			o.nulls = "FIRST"
		} else if p.accept("NULLS", "LAST") {
			o.nulls = "LAST"
		}
		list = append(list, o)
		if !p.acceptOp(",") {
			return list
		}
	}
}
