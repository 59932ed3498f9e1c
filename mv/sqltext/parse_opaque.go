package sqltext

import "strings"

// opaque consumes tokens up to stop at the same bracket level and makes them an opaque
// part. Queries in brackets inside it are read, so that their tables are known.
func (p *parser) opaque(reason string, stop func() bool) *expr {
	first := p.pos
	e := &expr{kind: exOpaque, reason: reason}
	for p.tok().Kind != TokenEnd && !stop() {
		if p.isOp(0, "(") || p.isOp(0, "[") || p.isOp(0, "{") {
			p.opaqueBracket(e)
			continue
		}
		if p.isOp(0, ")") || p.isOp(0, "]") || p.isOp(0, "}") {
			break
		}
		switch p.word(0) {
		case "FROM", "JOIN", "TABLE", "USING", "INTO", "SELECT", "REDUCE":
			e.tables = true
		}
		p.pos++
	}
	if p.pos == first {
		p.unexpected("an expression")
	}
	e.span = p.from(first)
	return e
}

// opaqueBracket consumes a bracketed part of an opaque one.
func (p *parser) opaqueBracket(e *expr) {
	end := p.pair[p.pos]
	if q, next := p.bracketQuery(); q != nil {
		e.queries = append(e.queries, q)
		p.pos = next
		return
	}
	p.pos++
	inner := p.opaqueRest(end)
	e.queries = append(e.queries, inner.queries...)
	e.tables = e.tables || inner.tables
	p.pos = end + 1
}

// opaqueRest scans the tokens up to a closing bracket for queries.
func (p *parser) opaqueRest(end int) *expr {
	p.enter()
	defer p.leave()
	e := &expr{kind: exOpaque}
	for p.pos < end {
		if p.isOp(0, "(") || p.isOp(0, "[") || p.isOp(0, "{") {
			p.opaqueBracket(e)
			continue
		}
		switch p.word(0) {
		case "FROM", "JOIN", "TABLE", "USING", "INTO", "SELECT", "REDUCE":
			e.tables = true
		}
		p.pos++
	}
	return e
}

// bracketQuery reads the bracket at the position as a query. It returns nil if it is
// not one; the position stays.
func (p *parser) bracketQuery() (q *queryNode, next int) {
	if !p.isOp(0, "(") {
		return nil, 0
	}
	start := p.pos
	if m, ok := p.memo[start]; ok {
		return m.query, m.end
	}
	i := start
	for p.toks[i].Kind == TokenOp && p.toks[i].Value == "(" {
		i++
	}
	if !p.startsQuery(i) {
		if t := p.toks[i]; i == start+1 && t.Kind == TokenWord {
			p.refuseNested(i)
		}
		p.memo[start] = memoised{}
		return nil, 0
	}
	p.attempt(func() {
		p.pos++
		q = p.query()
		p.expectOp(")")
		q.span = p.from(start)
		next = p.pos
	})
	if next == 0 {
		q = nil
	}
	p.pos = start
	p.memo[start] = memoised{q, next}
	return q, next
}

// refuseNested fails for good on a bracket that holds a statement which changes data.
func (p *parser) refuseNested(i int) {
	switch up := strings.ToUpper(p.toks[i].Value); up {
	case "INSERT", "UPDATE", "DELETE", "MERGE", "COPY":
		if next := p.toks[i+1]; next.Kind == TokenWord {
			panic(failure{err: syntaxError(p.text, p.toks[i].Start, "a view is one query; %s statements are refused", up), hard: true})
		}
	}
}
