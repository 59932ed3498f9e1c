package sqltext

import "strings"

// selectBody reads SELECT … or, where the dialect has it, FROM … [SELECT …].
func (p *parser) selectBody() *selectNode {
	first := p.pos
	s := &selectNode{}
	if p.accept("FROM") {
		s.from = p.tableList()
		if p.isWord("SELECT") {
			p.selectList(s)
		} else {
			s.items = []*selectItem{starItem(p.toks[first].Start)}
		}
	} else {
		p.selectList(s)
		if p.isWord("INTO") {
			panic(failure{err: syntaxError(p.text, p.tok().Start, "a view is one query; SELECT … INTO is refused"), hard: true})
		}
		if p.accept("FROM") {
			s.from = p.tableList()
		}
	}
	p.clauses(s)
	s.span = p.from(first)
	return s
}

// clauses reads what follows FROM.
func (p *parser) clauses(s *selectNode) {
	for {
		switch {
		case p.accept("WHERE"):
			s.where = p.slot()
		case p.isWord("GROUP", "BY"):
			s.group = p.groupBy()
		case p.accept("HAVING"):
			s.having = p.slot()
		case p.isWord("WINDOW") && p.isName(1) && p.word(2) == "AS":
			p.pos++
			p.windowList(s)
		case p.accept("QUALIFY"):
			s.qualify = p.slot()
		case p.d == DuckDB && p.accept("USING", "SAMPLE"):
			s.sampled = true
			s.opaque = append(s.opaque, p.opaque("USING SAMPLE", p.stop))
		default:
			return
		}
	}
}

func (p *parser) windowList(s *selectNode) {
	for {
		w := namedWindow{name: p.name()}
		p.expect("AS")
		w.spec = p.windowSpec()
		s.windows = append(s.windows, w)
		if !p.acceptOp(",") {
			return
		}
	}
}

func (p *parser) selectList(s *selectNode) {
	p.expect("SELECT")
	if p.accept("DISTINCT") {
		s.distinct = true
		if p.accept("ON") {
			s.distinctOn = p.bracketList()
		}
	} else {
		p.accept("ALL")
	}
	if p.d == Spark && p.isWord("TRANSFORM") && p.isOp(1, "(") && p.pair[p.pos+1] > 0 && strings.EqualFold(p.toks[p.pair[p.pos+1]+1].Value, "USING") {
		panic(failure{err: syntaxError(p.text, p.tok().Start, "SELECT TRANSFORM runs a script and is refused"), hard: true})
	}
	for {
		s.items = append(s.items, p.selectItem())
		if !p.acceptOp(",") || p.d == DuckDB && (p.isWord("FROM") || p.tok().Kind == TokenEnd || p.isOp(0, ")")) {
			return
		}
	}
}

func (p *parser) selectItem() *selectItem {
	first := p.pos
	it := &selectItem{}
	if p.d == DuckDB && p.isName(0) && p.isOp(1, ":") {
		it.alias = p.name()
		p.pos++
	}
	if it.expr = p.star(); it.expr == nil {
		it.expr = p.slot()
	}
	if it.expr.kind != exOpaque || p.isWord("AS") {
		p.itemAlias(it)
	}
	it.span = p.from(first)
	return it
}

// itemAlias reads [AS] name after a select expression.
func (p *parser) itemAlias(it *selectItem) {
	switch {
	case p.accept("AS"):
		if t := p.tok(); t.Kind == TokenString && p.d != Trino {
			p.pos++
			it.alias = ident{name: t.Value, quoted: true, span: span{t.Start, t.End}}
			return
		}
		if p.isOp(0, "(") && it.expr.kind != exStar { // Spark: AS (a, b) of a generator
			it.expr = &expr{kind: exOpaque, span: it.expr.span, args: []*expr{it.expr}, reason: "several aliases"}
			p.nameList()
			return
		}
		it.alias = p.name()
	case p.tok().Kind == TokenQuoted, p.tok().Kind == TokenWord && !p.stopsAlias():
		it.alias = p.name()
	}
}

func (p *parser) stopsAlias() bool {
	w := p.word(0)
	return clauseWords[w] || p.d == Spark && sparkStopWords[w]
}

// star reads *, t.* and what may follow them; nil if there is none.
func (p *parser) star() *expr {
	first := p.pos
	n := 0
	for p.isName(n) && p.isOp(n+1, ".") {
		n += 2
	}
	if !p.isOp(n, "*") {
		return nil
	}
	e := &expr{kind: exStar}
	for range n / 2 {
		e.parts = append(e.parts, p.name())
		p.pos++
	}
	p.pos++
	for {
		switch w := p.word(0); w {
		case "EXCLUDE", "EXCEPT", "REPLACE", "RENAME":
			if (w == "EXCEPT" || w == "EXCLUDE") && !p.isOp(1, "(") && (w == "EXCEPT" || !p.isName(1)) {
				e.span = p.from(first)
				return e
			}
			e.name = w
			p.pos++
			if p.isOp(0, "(") {
				e.args = append(e.args, p.starChanges()...)
			} else {
				p.pos++
				if p.accept("AS") {
					p.name()
				}
			}
			continue
		case "LIKE", "ILIKE", "SIMILAR", "NOT", "GLOB":
			e.name = w
			e.args = append(e.args, p.opaque("star with a pattern", p.stop))
			continue
		}
		e.span = p.from(first)
		return e
	}
}

// starChanges reads the brackets after EXCLUDE, REPLACE or RENAME.
func (p *parser) starChanges() []*expr {
	p.expectOp("(")
	var list []*expr
	for {
		list = append(list, p.slot())
		if p.accept("AS") {
			p.name()
		}
		if !p.acceptOp(",") {
			break
		}
	}
	p.expectOp(")")
	return list
}

func (p *parser) groupBy() *groupNode {
	first := p.pos
	p.pos += 2
	g := &groupNode{}
	if p.isWord("ALL") && !p.isOp(1, "(") || p.isOp(0, "*") {
		p.pos++
		g.all = true
		g.span = p.from(first)
		return g
	}
	_ = p.accept("DISTINCT") || p.accept("ALL")
	for {
		p.groupItem(g)
		if !p.acceptOp(",") {
			break
		}
	}
	if p.accept("WITH", "ROLLUP") || p.accept("WITH", "CUBE") {
		g.multi, g.sets, g.plain = true, g.plain, nil
	}
	if p.isWord("GROUPING", "SETS") { // Spark: GROUP BY a, b GROUPING SETS (…)
		g.sets, g.plain = g.plain, nil
		p.groupItem(g)
	}
	g.span = p.from(first)
	return g
}

func (p *parser) groupItem(g *groupNode) {
	switch {
	case p.isWord("ROLLUP") && p.isOp(1, "("), p.isWord("CUBE") && p.isOp(1, "("):
		p.pos++
		g.multi = true
		g.sets = append(g.sets, p.bracketList()...)
	case p.isWord("GROUPING", "SETS"):
		p.pos += 2
		g.multi = true
		g.sets = append(g.sets, p.groupingSets()...)
	case p.isOp(0, "(") && p.isOp(1, ")"):
		p.pos += 2
	default:
		g.plain = append(g.plain, p.slot())
	}
}

// groupingSets reads the brackets of GROUPING SETS and returns all expressions in them.
func (p *parser) groupingSets() []*expr {
	p.enter()
	defer p.leave()
	p.expectOp("(")
	var list []*expr
	for {
		g := &groupNode{}
		p.groupItem(g)
		list = append(append(list, g.plain...), g.sets...)
		if !p.acceptOp(",") {
			break
		}
	}
	p.expectOp(")")
	return list
}
