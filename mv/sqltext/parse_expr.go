package sqltext

import "strings"

// slot reads an expression where one is expected. What cannot be read up to the next
// comma, bracket or clause becomes an opaque part.
func (p *parser) slot() *expr {
	var e *expr
	if p.attempt(func() {
		e = p.binary(0)
		if !p.delimited() {
			p.unexpected("the end of the expression")
		}
	}) {
		return e
	}
	return p.opaque("expression at "+p.describe(p.pos), p.stop)
}

// delimited reports whether an expression can end before the current token. A word can
// be an alias or a keyword of the clause around it.
func (p *parser) delimited() bool {
	switch t := p.tok(); t.Kind {
	case TokenEnd, TokenWord, TokenQuoted:
		return true
	case TokenOp:
		switch t.Value {
		case ",", ")", "]", "}", ":", "%":
			return true
		}
	}
	return false
}

// stop reports whether an opaque part ends before the current token.
func (p *parser) stop() bool {
	if p.isOp(0, ",") {
		return true
	}
	w := p.word(0)
	switch w {
	case "FROM", "WHERE", "HAVING", "QUALIFY", "ORDER", "LIMIT", "OFFSET", "FETCH", "UNION", "INTERSECT", "EXCEPT", "AS", "JOIN":
		return true
	case "GROUP":
		return p.word(1) == "BY"
	case "WINDOW":
		return p.word(2) == "AS"
	case "INNER", "LEFT", "RIGHT", "FULL", "CROSS", "NATURAL":
		return !p.isOp(1, "(")
	}
	return false
}

// Binding powers of infix operators, from loose to tight.
const (
	precOr = iota + 1
	precAnd
	precNot
	precArrow
	precIs
	precCompare
	precLike
	precOther
	precAdd
	precMul
	precPow
	precZone
	precUnary
)

// infixOps maps operator tokens to their binding power; what is not listed binds like ||.
var infixOps = map[string]int{
	"=": precCompare, "==": precCompare, "<": precCompare, ">": precCompare, "<=": precCompare, ">=": precCompare,
	"<>": precCompare, "!=": precCompare, "<=>": precCompare,
	"->": precArrow, "->>": precArrow,
	"+": precAdd, "-": precAdd, "*": precMul, "/": precMul, "%": precMul, "//": precMul, "^": precPow, "**": precPow,
}

// notInfix are operator tokens that never join two operands.
var notInfix = words(`, ) ] } ( [ { . ; : := => :: |> $ ! \`)

// binary reads operands joined by operators that bind tighter than floor.
func (p *parser) binary(floor int) *expr {
	p.enter()
	defer p.leave()
	first := p.pos
	left := p.unary()
	for {
		next := p.infix(left, first, floor)
		if next == nil {
			return left
		}
		left = next
	}
}

// infix reads one operator and its right side; nil if none that binds tighter than floor comes next.
func (p *parser) infix(left *expr, first, floor int) *expr {
	t := p.tok()
	if t.Kind == TokenOp {
		if notInfix[t.Value] {
			return nil
		}
		prec, ok := infixOps[t.Value]
		if !ok {
			prec = precOther
		}
		if prec <= floor || t.Value == "%" && p.endsPercent() {
			return nil
		}
		p.pos++
		if prec == precCompare && (p.isWord("ANY") || p.isWord("ALL") || p.isWord("SOME")) && p.isOp(1, "(") {
			return p.quantified(left, first, t.Value)
		}
		return p.node(first, &expr{kind: exBinary, name: t.Value, args: []*expr{left, p.binary(prec)}})
	}
	if t.Kind == TokenWord {
		return p.infixWord(left, first, floor)
	}
	return nil
}

// endsPercent reports whether the % at the position belongs to LIMIT n %.
func (p *parser) endsPercent() bool {
	t := p.peek(1)
	return t.Kind == TokenEnd || t.Kind == TokenOp && t.Value == ")"
}

// node gives e the span from a token index to the last consumed token.
func (p *parser) node(first int, e *expr) *expr {
	e.span = p.from(first)
	return e
}

func (p *parser) quantified(left *expr, first int, op string) *expr {
	e := &expr{kind: exQuantified, name: op, args: []*expr{left}}
	p.pos++
	if q, next := p.bracketQuery(); q != nil {
		e.query, p.pos = q, next
	} else {
		e.args = append(e.args, p.bracketList()...)
	}
	return p.node(first, e)
}

func (p *parser) infixWord(left *expr, first, floor int) *expr {
	switch w := p.word(0); w {
	case "OR", "AND":
		prec := map[string]int{"OR": precOr, "AND": precAnd}[w]
		if prec <= floor {
			return nil
		}
		p.pos++
		return p.node(first, &expr{kind: exBinary, name: strings.ToLower(w), args: []*expr{left, p.binary(prec)}})
	case "DIV":
		if p.d != Spark || precMul <= floor || !p.startsOperand(1) {
			return nil
		}
		p.pos++
		return p.node(first, &expr{kind: exBinary, name: "div", args: []*expr{left, p.binary(precMul)}})
	case "IS":
		if precIs <= floor {
			return nil
		}
		return p.isTest(left, first)
	case "ISNULL", "NOTNULL":
		if precIs <= floor || p.d != DuckDB {
			return nil
		}
		p.pos++
		name := map[string]string{"ISNULL": "is null", "NOTNULL": "is not null"}[w]
		return p.node(first, &expr{kind: exIs, name: name, args: []*expr{left}})
	case "AT":
		if precZone <= floor || !p.isWord("AT", "TIME", "ZONE") {
			return nil
		}
		p.pos += 3
		return p.node(first, &expr{kind: exCall, name: "at time zone", args: []*expr{left, p.binary(precZone)}})
	case "COLLATE":
		if precZone <= floor {
			return nil
		}
		p.pos++
		p.typeName()
		return p.node(first, &expr{kind: exCall, name: "collate", args: []*expr{left}})
	}
	if precLike <= floor {
		return nil
	}
	return p.membership(left, first)
}

// startsOperand reports whether the token n ahead can start an operand.
func (p *parser) startsOperand(n int) bool {
	t := p.peek(n)
	return t.Kind == TokenNumber || t.Kind == TokenString || t.Kind == TokenQuoted || p.isOp(n, "(") ||
		t.Kind == TokenWord && !clauseWords[strings.ToUpper(t.Value)]
}

// membership reads [NOT] IN, BETWEEN and the LIKE family.
func (p *parser) membership(left *expr, first int) *expr {
	n := 0
	if p.isWord("NOT") {
		n = 1
	}
	not := map[int]string{1: "not "}[n]
	switch w := p.word(n); w {
	case "IN":
		p.pos += n + 1
		e := &expr{kind: exIn, name: not + "in", args: []*expr{left}}
		if q, next := p.bracketQuery(); q != nil {
			e.query, p.pos = q, next
		} else if p.isOp(0, "(") {
			e.args = append(e.args, p.bracketList()...)
		} else {
			e.args = append(e.args, p.binary(precLike))
		}
		return p.node(first, e)
	case "BETWEEN":
		p.pos += n + 1
		e := &expr{kind: exBetween, name: not + "between", args: []*expr{left}}
		if p.accept("SYMMETRIC") {
			e.name += " symmetric"
		} else {
			p.accept("ASYMMETRIC")
		}
		e.args = append(e.args, p.binary(precLike))
		p.expect("AND")
		e.args = append(e.args, p.binary(precLike))
		return p.node(first, e)
	case "LIKE", "ILIKE", "RLIKE", "REGEXP", "GLOB", "SIMILAR":
		if (w == "RLIKE" || w == "REGEXP") && p.d != Spark || w == "SIMILAR" && p.word(n+1) != "TO" {
			return nil
		}
		p.pos += n + 1
		p.accept("TO")
		e := &expr{kind: exCall, name: not + strings.ToLower(w), args: []*expr{left}}
		if (p.isWord("ANY") || p.isWord("ALL") || p.isWord("SOME")) && p.isOp(1, "(") {
			e.name += " " + strings.ToLower(p.word(0))
			p.pos++
			e.args = append(e.args, p.bracketList()...)
			return p.node(first, e)
		}
		e.args = append(e.args, p.binary(precLike))
		if p.accept("ESCAPE") {
			e.args = append(e.args, p.binary(precLike))
		}
		return p.node(first, e)
	}
	return nil
}

// isTest reads IS [NOT] NULL and its kin.
func (p *parser) isTest(left *expr, first int) *expr {
	p.pos++
	e := &expr{kind: exIs, name: "is ", args: []*expr{left}}
	if p.accept("NOT") {
		e.name = "is not "
	}
	switch w := p.word(0); w {
	case "NULL", "TRUE", "FALSE", "UNKNOWN":
		p.pos++
		e.name += strings.ToLower(w)
	case "DISTINCT":
		p.pos++
		p.expect("FROM")
		e.name += "distinct from"
		e.args = append(e.args, p.binary(precIs))
	default:
		p.unexpected("NULL")
	}
	return p.node(first, e)
}

func (p *parser) unary() *expr {
	first := p.pos
	if p.isWord("NOT") && !p.isOp(1, ",") {
		p.pos++
		return p.node(first, &expr{kind: exUnary, name: "not", args: []*expr{p.binary(precNot)}})
	}
	t := p.tok()
	if t.Kind == TokenOp {
		switch t.Value {
		case "+", "-", "~", "!", "@":
			p.pos++
			return p.node(first, &expr{kind: exUnary, name: t.Value, args: []*expr{p.binary(precUnary)}})
		}
	}
	return p.postfix(p.primary(), first)
}

// postfix reads casts, subscripts, fields and chained calls.
func (p *parser) postfix(e *expr, first int) *expr {
	for {
		switch {
		case p.acceptOp("::"):
			e = p.node(first, &expr{kind: exCast, args: []*expr{e}, name: p.typeName()})
		case p.isOp(0, "["):
			e = p.node(first, &expr{kind: exIndex, args: append([]*expr{e}, p.subscript()...)})
			e.span = p.from(first)
		case p.isOp(0, ".") && p.isName(1) && p.isOp(2, "("):
			p.pos++
			call := p.call([]ident{p.name()})
			call.args = append([]*expr{e}, call.args...)
			e = p.node(first, call)
		case p.isOp(0, ".") && p.isName(1):
			p.pos++
			e = p.node(first, &expr{kind: exField, name: p.name().name, args: []*expr{e}})
		default:
			return e
		}
	}
}

// subscript reads [i], [a:b] and [a:b:c].
func (p *parser) subscript() []*expr {
	end := p.pair[p.pos]
	p.pos++
	var list []*expr
	for p.pos < end {
		if p.acceptOp(":") || p.acceptOp(",") {
			continue
		}
		if p.isOp(0, "-") && (p.isOp(1, ":") || p.isOp(1, "]")) {
			p.pos++
			continue
		}
		list = append(list, p.slot())
	}
	p.expectOp("]")
	return list
}

// bracketList reads ( expression, … ), which may be empty.
func (p *parser) bracketList() []*expr {
	p.expectOp("(")
	list := p.list(")")
	p.expectOp(")")
	return list
}

// list reads expressions up to a closing bracket, which it leaves.
func (p *parser) list(closing string) []*expr {
	var list []*expr
	for !p.isOp(0, closing) {
		list = append(list, p.slot())
		if !p.acceptOp(",") {
			break
		}
	}
	return list
}

// typeName reads a type after :: or COLLATE and returns its text.
func (p *parser) typeName() string {
	first := p.pos
	p.name()
	for p.isOp(0, ".") && p.isName(1) {
		p.pos += 2
	}
	_ = p.accept("PRECISION") || p.accept("VARYING")
	p.typeArguments()
	_ = p.accept("WITH", "TIME", "ZONE") || p.accept("WITHOUT", "TIME", "ZONE") || p.accept("WITH", "LOCAL", "TIME", "ZONE")
	for p.isOp(0, "[") && (p.isOp(1, "]") || p.peek(1).Kind == TokenNumber && p.isOp(2, "]")) {
		p.pos = p.pair[p.pos] + 1
	}
	s := p.from(first)
	return normalType(p.text[s.start:s.end])
}

// typeArguments skips (…) or, for Spark, <…>.
func (p *parser) typeArguments() {
	if p.isOp(0, "(") {
		p.pos = p.pair[p.pos] + 1
		return
	}
	if p.d != Spark || !p.isOp(0, "<") {
		return
	}
	depth := 0
	for p.tok().Kind != TokenEnd {
		switch p.tok().Value {
		case "<":
			depth++
		case ">":
			depth--
		case ">>":
			depth -= 2
		case ">>>":
			depth -= 3
		}
		p.pos++
		if depth <= 0 {
			return
		}
	}
}

// normalType writes the text of a type in lower case with single spaces.
func normalType(s string) string {
	return strings.ToLower(strings.Join(strings.Fields(s), " "))
}
