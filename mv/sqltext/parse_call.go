package sqltext

import "strings"

// call reads the brackets of a call and what may follow them.
func (p *parser) call(parts []ident) *expr {
	first := p.pos
	e := &expr{kind: exCall, parts: parts, name: strings.ToLower(parts[len(parts)-1].name)}
	p.arguments(e)
	if p.accept("WITHIN", "GROUP") {
		p.expectOp("(")
		p.expect("ORDER", "BY")
		e.order = append(e.order, p.orderList()...)
		p.expectOp(")")
	}
	_ = p.accept("IGNORE", "NULLS") || p.accept("RESPECT", "NULLS")
	if p.isWord("FILTER") && p.isOp(1, "(") {
		p.pos += 2
		p.accept("WHERE")
		e.filter = p.slot()
		p.expectOp(")")
	}
	_ = p.accept("IGNORE", "NULLS") || p.accept("RESPECT", "NULLS")
	if p.isWord("OVER") && (p.isOp(1, "(") || p.isName(1)) {
		p.pos++
		e.window, e.over = true, p.windowSpec()
	}
	return p.node(first, e)
}

// arguments reads ( [DISTINCT] argument, … [ORDER BY …] ).
func (p *parser) arguments(e *expr) {
	end := p.pair[p.pos]
	p.expectOp("(")
	if p.accept("DISTINCT") {
		e.distinct = true
	} else if p.isWord("ALL") && !p.isOp(1, "(") {
		p.pos++
	}
	for p.pos < end {
		e.args = append(e.args, p.argument())
		if !p.acceptOp(",") {
			break
		}
	}
	if p.accept("ORDER", "BY") {
		e.order = p.orderList()
	}
	_ = p.accept("IGNORE", "NULLS") || p.accept("RESPECT", "NULLS")
	if p.pos < end {
		e.args = append(e.args, p.opaque("argument at "+p.describe(p.pos), func() bool { return false }))
	}
	p.expectOp(")")
}

// argument reads one argument: an expression, a star, a lambda or name => expression.
func (p *parser) argument() *expr {
	first := p.pos
	if s := p.star(); s != nil {
		return s
	}
	if params, n := p.lambdaParams(); n > 0 {
		p.pos += n
		return p.node(first, &expr{kind: exLambda, params: params, args: []*expr{p.slot()}})
	}
	if p.isName(0) && (p.isOp(1, "=>") || p.isOp(1, ":=")) {
		p.pos += 2
		return p.argument()
	}
	if p.isWord("TABLE") && p.isOp(1, "(") {
		p.pos++
		if q, next := p.bracketQuery(); q != nil {
			p.pos = next
			return p.node(first, &expr{kind: exSubquery, query: q})
		}
		p.pos = first
		return p.opaque("TABLE argument", p.stop)
	}
	return p.slot()
}

// lambdaParams recognises x -> …, (x, y) -> … and DuckDB's lambda x, y: …, and returns
// the number of tokens before the body.
func (p *parser) lambdaParams() ([]string, int) {
	if p.d == DuckDB && p.isWord("LAMBDA") && p.isName(1) {
		params := []string{p.peek(1).Value}
		n := 2
		for p.isOp(n, ",") && p.isName(n+1) {
			params = append(params, p.peek(n+1).Value)
			n += 2
		}
		if p.isOp(n, ":") {
			return params, n + 1
		}
		return nil, 0
	}
	if p.isName(0) && p.isOp(1, "->") && p.peek(2).Kind != TokenString {
		return []string{p.tok().Value}, 2
	}
	if !p.isOp(0, "(") || p.pair[p.pos]+1 >= len(p.toks) {
		return nil, 0
	}
	end := p.pair[p.pos] - p.pos
	if !p.isOp(end+1, "->") {
		return nil, 0
	}
	var params []string
	for i := 1; i < end; i += 2 {
		if !p.isName(i) || i+1 < end && !p.isOp(i+1, ",") {
			return nil, 0
		}
		params = append(params, p.peek(i).Value)
	}
	return params, end + 2
}

// windowSpec reads the name of a window or ( [base] [PARTITION BY …] [ORDER BY …] [frame] ).
func (p *parser) windowSpec() *windowSpec {
	first := p.pos
	w := &windowSpec{}
	if p.isName(0) {
		w.base = p.name().name
		w.span = p.from(first)
		return w
	}
	end := p.pair[p.pos]
	p.expectOp("(")
	if p.isName(0) && !p.isWord("PARTITION") && !p.isWord("ORDER") && !p.isWord("ROWS") && !p.isWord("RANGE") && !p.isWord("GROUPS") {
		w.base = p.name().name
	}
	if p.accept("PARTITION", "BY") || p.d == Spark && p.accept("DISTRIBUTE", "BY") {
		for {
			w.partition = append(w.partition, p.slot())
			if !p.acceptOp(",") {
				break
			}
		}
	}
	if p.accept("ORDER", "BY") || p.d == Spark && p.accept("SORT", "BY") {
		w.order = p.orderList()
	}
	if p.isWord("ROWS") || p.isWord("RANGE") || p.isWord("GROUPS") {
		w.framed = true
		p.pos++
		p.frame(w, end)
	}
	p.expectOp(")")
	w.span = p.from(first)
	return w
}

// frame reads the bounds of a window frame up to the closing bracket.
func (p *parser) frame(w *windowSpec, end int) {
	for p.pos < end {
		switch p.word(0) {
		case "BETWEEN", "AND", "UNBOUNDED", "PRECEDING", "FOLLOWING", "CURRENT", "ROW", "EXCLUDE", "NO", "OTHERS", "GROUP", "TIES":
			p.pos++
			continue
		}
		w.frame = append(w.frame, p.slot())
	}
}
