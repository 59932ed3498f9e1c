package scan

import (
	"slices"

	"github.com/apache/iceberg-go"
)

// op is an operation of an expression.
type op uint8

const (
	opTrue op = iota
	opFalse
	opAnd
	opOr
	opIsNull
	opNotNull
	opIsNaN
	opNotNaN
	opLess
	opLessEqual
	opGreater
	opGreaterEqual
	opEqual
	opNotEqual
	opIn
	opNotIn
	opStartsWith
	opNotStartsWith
	// opOpaque is a predicate that this server passes on and never decides, for example
	// one that compares two columns.
	opOpaque
	numOps
)

// opNames are the operations of predicates on the wire.
var opNames = [numOps]string{
	opIsNull: "is-null", opNotNull: "not-null", opIsNaN: "is-nan", opNotNaN: "not-nan",
	opLess: "lt", opLessEqual: "lt-eq", opGreater: "gt", opGreaterEqual: "gt-eq", opEqual: "eq", opNotEqual: "not-eq",
	opIn: "in", opNotIn: "not-in", opStartsWith: "starts-with", opNotStartsWith: "not-starts-with",
	opAnd: "and", opOr: "or",
}

// negated is the operation that holds for the other rows. Rows whose value is NULL are in
// neither or in both, as the client sees it; no file is left out on their account.
var negated = [numOps]op{
	opTrue: opFalse, opFalse: opTrue, opAnd: opOr, opOr: opAnd,
	opIsNull: opNotNull, opNotNull: opIsNull, opIsNaN: opNotNaN, opNotNaN: opIsNaN,
	opLess: opGreaterEqual, opGreaterEqual: opLess, opGreater: opLessEqual, opLessEqual: opGreater,
	opEqual: opNotEqual, opNotEqual: opEqual, opIn: opNotIn, opNotIn: opIn,
	opStartsWith: opNotStartsWith, opNotStartsWith: opStartsWith,
}

// unary reports whether an operation has no literal.
func (o op) unary() bool { return o >= opIsNull && o <= opNotNaN }

// set reports whether an operation has several literals.
func (o op) set() bool { return o == opIn || o == opNotIn }

// flipped is the operation with its sides exchanged.
func (o op) flipped() op {
	switch o {
	case opLess:
		return opGreater
	case opLessEqual:
		return opGreaterEqual
	case opGreater:
		return opLess
	case opGreaterEqual:
		return opLessEqual
	default:
		return o
	}
}

// expr is a filter without negations: they are pushed down to the predicates.
type expr struct {
	op   op
	kids []*expr // of opAnd and opOr
	pred *predicate
}

var (
	exprTrue  = &expr{op: opTrue}
	exprFalse = &expr{op: opFalse}
)

// predicate is a leaf of a filter.
type predicate struct {
	op   op
	col  column
	term transform // what is compared; the identity unless the filter says otherwise
	typ  iceberg.Type
	lits []any  // in order
	raw  []byte // opOpaque: as the client wrote it

	// For evaluation: on whole numbers x < 5 is taken as x <= 4.
	strict op
	edge   any
}

// settle fills in what evaluation needs.
func (p *predicate) settle() {
	p.strict = p.op
	if len(p.lits) == 0 {
		return
	}
	p.edge = p.lits[0]
	if p.op.set() {
		slices.SortFunc(p.lits, func(a, b any) int {
			order, _ := compare(a, b)
			return order
		})
	}
	if !discrete(p.typ) {
		return
	}
	switch p.op {
	case opLess:
		if v, ok := step(p.edge, -1); ok {
			p.strict, p.edge = opLessEqual, v
		}
	case opGreater:
		if v, ok := step(p.edge, 1); ok {
			p.strict, p.edge = opGreaterEqual, v
		}
	}
}

// verdict says for how many rows of a set a predicate holds.
type verdict uint8

const (
	maybe  verdict = iota
	never          // for no row
	always         // for every row
)

// judge evaluates an expression, given what its predicates come to.
func (e *expr) judge(leaf func(*predicate) verdict) verdict {
	switch e.op {
	case opTrue:
		return always
	case opFalse:
		return never
	case opAnd, opOr:
		decided, neutral := never, always
		if e.op == opOr {
			decided, neutral = always, never
		}
		out := neutral
		for _, k := range e.kids {
			v := k.judge(leaf)
			if v == decided {
				return decided
			}
			if v == maybe {
				out = maybe
			}
		}
		return out
	default:
		return leaf(e.pred)
	}
}

// simplify replaces the predicates that are decided.
func (e *expr) simplify(leaf func(*predicate) verdict) *expr {
	switch e.op {
	case opTrue, opFalse:
		return e
	case opAnd, opOr:
		kids := make([]*expr, 0, len(e.kids))
		for _, k := range e.kids {
			kids = append(kids, k.simplify(leaf))
		}
		return combine(e.op, kids)
	}
	switch leaf(e.pred) {
	case always:
		return exprTrue
	case never:
		return exprFalse
	default:
		return e
	}
}

// combine joins expressions by opAnd or opOr.
func combine(o op, kids []*expr) *expr {
	decided, neutral := exprFalse, exprTrue
	if o == opOr {
		decided, neutral = exprTrue, exprFalse
	}
	out := make([]*expr, 0, len(kids))
	for _, k := range kids {
		switch k.op {
		case decided.op:
			return decided
		case neutral.op:
		case o:
			out = append(out, k.kids...)
		default:
			out = append(out, k)
		}
	}
	switch len(out) {
	case 0:
		return neutral
	case 1:
		return out[0]
	default:
		return &expr{op: o, kids: out}
	}
}

// predicates lists the leaves.
func (e *expr) predicates() []*predicate {
	if e.pred != nil {
		return []*predicate{e.pred}
	}
	var found []*predicate
	for _, k := range e.kids {
		found = append(found, k.predicates()...)
	}
	return found
}
