package sqltext

import "strings"

// primary reads an operand.
func (p *parser) primary() *expr {
	first := p.pos
	t := p.tok()
	switch t.Kind {
	case TokenNumber:
		p.pos++
		return p.node(first, &expr{kind: exNumber, name: t.Value})
	case TokenParam:
		p.pos++
		return p.node(first, &expr{kind: exParam})
	case TokenString:
		return p.stringLiteral()
	case TokenOp:
		return p.primaryOp()
	case TokenWord:
		if e := p.keyword(); e != nil {
			return e
		}
	}
	if t.Kind == TokenQuoted && t.Prefix == "U&" && p.word(1) == "UESCAPE" {
		p.unexpected("an expression")
	}
	return p.path()
}

// stringLiteral reads a string and those that the dialect joins to it.
func (p *parser) stringLiteral() *expr {
	first := p.pos
	t := p.tok()
	p.pos++
	e := &expr{kind: exString, name: t.Value}
	for p.tok().Kind == TokenString && (p.d == Spark || p.d == DuckDB && strings.Contains(p.text[p.toks[p.pos-1].End:p.tok().Start], "\n")) {
		e.name += p.tok().Value
		p.pos++
	}
	if t.Prefix == "U&" && p.isWord("UESCAPE") {
		p.unexpected("a string without UESCAPE")
	}
	if t.Prefix == "X" || t.Prefix == "B" {
		return p.node(first, &expr{kind: exTyped, name: strings.ToLower(t.Prefix), args: []*expr{p.node(first, e)}})
	}
	return p.node(first, e)
}

func (p *parser) primaryOp() *expr {
	first := p.pos
	switch {
	case p.isOp(0, "("):
		if q, next := p.bracketQuery(); q != nil {
			p.pos = next
			return p.node(first, &expr{kind: exSubquery, query: q})
		}
		list := p.bracketList()
		if len(list) == 1 {
			return list[0]
		}
		return p.node(first, &expr{kind: exRow, args: list})
	case p.isOp(0, "[") && p.d == DuckDB:
		return p.arrayLiteral(first)
	case p.isOp(0, "{") && p.d == DuckDB:
		return p.structLiteral(first)
	}
	p.unexpected("an expression")
	return nil
}

func (p *parser) arrayLiteral(first int) *expr {
	p.expectOp("[")
	e := &expr{kind: exArray, args: p.list("]")}
	if p.isWord("FOR") { // a list comprehension
		p.unexpected(`"]"`)
	}
	p.expectOp("]")
	return p.node(first, e)
}

func (p *parser) structLiteral(first int) *expr {
	p.expectOp("{")
	e := &expr{kind: exStruct}
	for !p.isOp(0, "}") {
		e.args = append(e.args, p.slot())
		p.expectOp(":")
		e.args = append(e.args, p.slot())
		if !p.acceptOp(",") {
			break
		}
	}
	p.expectOp("}")
	return p.node(first, e)
}

// keyword reads an operand that starts with a word of special meaning; nil if it is a name.
func (p *parser) keyword() *expr {
	first := p.pos
	w := p.word(0)
	switch w {
	case "CASE":
		return p.caseExpr()
	case "CAST", "TRY_CAST":
		if p.isOp(1, "(") {
			return p.cast()
		}
	case "EXISTS":
		if p.isOp(1, "(") {
			p.pos++
			if q, next := p.bracketQuery(); q != nil {
				p.pos = next
				return p.node(first, &expr{kind: exExists, query: q})
			}
			p.pos = first
		}
	case "INTERVAL":
		if t := p.peek(1); t.Kind == TokenString || t.Kind == TokenNumber || p.isOp(1, "(") || p.isOp(1, "-") || p.isOp(1, "+") {
			return p.interval()
		}
	case "EXTRACT", "POSITION", "TRIM", "SUBSTRING", "OVERLAY":
		if p.isOp(1, "(") {
			return p.keywordCall()
		}
	case "ARRAY", "ROW", "MAP":
		if e := p.constructor(w); e != nil {
			return e
		}
	case "TRUE", "FALSE", "NULL", "DEFAULT":
		p.pos++
		return p.node(first, &expr{kind: exKeyword, name: strings.ToLower(w)})
	}
	if clauseWords[w] && (p.d == DuckDB || !softWords[w]) || w == "SELECT" || w == "NOT" {
		p.unexpected("an expression")
	}
	if bareCalls[strings.ToLower(w)] && !p.isOp(1, "(") && !p.isOp(1, ".") {
		p.pos++
		return p.node(first, &expr{kind: exCall, name: strings.ToLower(w)})
	}
	return p.typedLiteral()
}

// typedLiteral reads DATE '…' and the like.
func (p *parser) typedLiteral() *expr {
	first := p.pos
	n := 1
	switch {
	case p.word(1) == "PRECISION":
		n = 2
	case (p.word(1) == "WITH" || p.word(1) == "WITHOUT") && p.word(2) == "TIME" && p.word(3) == "ZONE":
		n = 4
	}
	if p.isOp(1, "(") && p.pair[p.pos+1]+1 < len(p.toks) && p.toks[p.pair[p.pos+1]+1].Kind == TokenString && (p.isWord("DECIMAL") || p.isWord("TIMESTAMP") || p.isWord("VARCHAR") || p.isWord("CHAR")) {
		n = p.pair[p.pos+1] + 1 - p.pos
	}
	if p.peek(n).Kind != TokenString || p.word(0) == "" {
		return nil
	}
	text := p.text[p.tok().Start:p.toks[p.pos+n-1].End]
	p.pos += n
	return p.node(first, &expr{kind: exTyped, name: normalType(text), args: []*expr{p.stringLiteral()}})
}

func (p *parser) caseExpr() *expr {
	first := p.pos
	p.pos++
	e := &expr{kind: exCase}
	if !p.isWord("WHEN") {
		e.args = append(e.args, p.binary(0))
		e.name = "simple"
	}
	for p.accept("WHEN") {
		e.args = append(e.args, p.binary(0))
		p.expect("THEN")
		e.args = append(e.args, p.binary(0))
	}
	if p.accept("ELSE") {
		e.args = append(e.args, p.binary(0))
	}
	p.expect("END")
	return p.node(first, e)
}

func (p *parser) cast() *expr {
	first := p.pos
	e := &expr{kind: exCast, try: p.isWord("TRY_CAST")}
	p.pos++
	end := p.pair[p.pos]
	p.pos++
	e.args = []*expr{p.slot()}
	p.expect("AS")
	if p.pos == end {
		p.unexpected("a type")
	}
	e.name = normalType(p.text[p.tok().Start:p.toks[end-1].End])
	p.pos = end + 1
	return p.node(first, e)
}

// intervalUnits are the units that may follow the count of an interval.
var intervalUnits = words(`YEAR YEARS MONTH MONTHS DAY DAYS HOUR HOURS MINUTE MINUTES SECOND SECONDS WEEK WEEKS
	QUARTER QUARTERS MILLISECOND MILLISECONDS MICROSECOND MICROSECONDS NANOSECOND NANOSECONDS DECADE DECADES
	CENTURY CENTURIES MILLENNIUM MILLENNIA`)

func (p *parser) interval() *expr {
	first := p.pos
	p.pos++
	e := &expr{kind: exInterval}
	for {
		sign := p.pos
		_ = p.acceptOp("-") || p.acceptOp("+")
		negative := p.pos > sign && p.toks[sign].Value == "-"
		count := p.primary()
		if negative {
			count = &expr{kind: exUnary, name: "-", args: []*expr{count}, span: p.from(sign)}
		}
		e.args = append(e.args, count)
		if !intervalUnits[p.word(0)] {
			break
		}
		unit := strings.TrimSuffix(strings.ToLower(p.word(0)), "s")
		p.pos++
		if p.isOp(0, "(") {
			p.pos = p.pair[p.pos] + 1
		}
		if p.accept("TO") {
			unit += " to " + strings.ToLower(p.word(0))
			p.pos++
			if p.isOp(0, "(") {
				p.pos = p.pair[p.pos] + 1
			}
		}
		if e.name != "" {
			e.name += " "
		}
		e.name += unit
		if p.d != Spark || p.tok().Kind != TokenNumber {
			break
		}
	}
	return p.node(first, e)
}

// keywordCall reads a call whose arguments are separated by words: EXTRACT(u FROM x),
// POSITION(a IN b), TRIM(BOTH a FROM b), SUBSTRING(a FROM b FOR c). The ordinary form
// of the same function is left to [parser.call].
func (p *parser) keywordCall() *expr {
	first := p.pos
	name := strings.ToLower(p.word(0))
	e := &expr{kind: exCall, name: name, parts: []ident{p.name()}}
	end := p.pair[p.pos]
	p.pos++
	if name == "extract" {
		e.args = append(e.args, p.node(p.pos, &expr{kind: exString, name: strings.ToLower(p.tok().Value), span: span{p.tok().Start, p.tok().End}}))
		p.pos++
		p.expect("FROM")
		e.args = append(e.args, p.slot())
		p.expectOp(")")
		return p.node(first, e)
	}
	_ = p.accept("BOTH") || p.accept("LEADING") || p.accept("TRAILING")
	for p.pos < end {
		if p.accept("FROM") || p.accept("FOR") || p.accept("PLACING") || p.acceptOp(",") {
			continue
		}
		if name == "position" && p.accept("IN") {
			continue
		}
		at := p.pos
		if name == "position" {
			e.args = append(e.args, p.binary(precLike))
		} else {
			e.args = append(e.args, p.binary(0))
		}
		if p.pos == at {
			p.unexpected("an argument")
		}
	}
	p.expectOp(")")
	return p.node(first, e)
}

// constructor reads ARRAY[…], ARRAY(SELECT …), ROW(…), MAP {…}; nil for a name or call.
func (p *parser) constructor(w string) *expr {
	first := p.pos
	switch {
	case w == "ARRAY" && p.isOp(1, "["):
		p.pos += 2
		e := &expr{kind: exArray, args: p.list("]")}
		p.expectOp("]")
		return p.node(first, e)
	case w == "ARRAY" && p.isOp(1, "("):
		p.pos++
		if q, next := p.bracketQuery(); q != nil {
			p.pos = next
			return p.node(first, &expr{kind: exSubquery, name: "array", query: q})
		}
		p.pos = first
	case w == "ROW" && p.isOp(1, "("):
		p.pos++
		return p.node(first, &expr{kind: exRow, args: p.bracketList()})
	case w == "MAP" && p.isOp(1, "{") && p.d == DuckDB:
		p.pos++
		e := p.structLiteral(first)
		e.name = "map"
		return e
	}
	return nil
}

// path reads a column reference or a call.
func (p *parser) path() *expr {
	first := p.pos
	parts := []ident{p.name()}
	for p.isOp(0, ".") && p.isName(1) {
		p.pos++
		parts = append(parts, p.name())
	}
	if p.isOp(0, "(") {
		return p.node(first, p.call(parts))
	}
	if p.isOp(0, ".") && p.isOp(1, "*") {
		p.pos += 2
		return p.node(first, &expr{kind: exStar, parts: parts})
	}
	return p.node(first, &expr{kind: exColumn, parts: parts})
}
