package scan

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/apache/iceberg-go"

	"github.com/catalogd/catalogd/catalog"
)

// parser reads a filter in the protocol's JSON form, in its old spelling (term, value)
// and its new one (child, left, right), and binds it to a schema.
type parser struct {
	schema        *iceberg.Schema
	caseSensitive bool
}

// node has the members of every kind of expression.
type node struct {
	Type      string            `json:"type"`
	Left      json.RawMessage   `json:"left"`
	Right     json.RawMessage   `json:"right"`
	Child     json.RawMessage   `json:"child"`
	Term      json.RawMessage   `json:"term"`
	Value     json.RawMessage   `json:"value"`
	Values    json.RawMessage   `json:"values"`
	ID        *int              `json:"id"`
	Name      *string           `json:"name"`
	Transform *string           `json:"transform"`
	DataType  json.RawMessage   `json:"data-type"`
	Function  json.RawMessage   `json:"function"`
	Arguments []json.RawMessage `json:"arguments"`
}

func badFilter(format string, args ...any) *catalog.Error {
	return catalog.Errorf(catalog.KindInvalid, "Invalid member filter: "+format, args...)
}

// short is a piece of a filter for a message.
func short(raw json.RawMessage) string {
	const limit = 80
	if len(raw) <= limit {
		return string(raw)
	}
	return strings.ToValidUTF8(string(raw[:limit]), "") + "…"
}

func absent(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

// maxFilterBytes bounds a filter: every level of it is read once for each level around it.
const maxFilterBytes = 2 << 20

// filter reads a whole filter.
func (p parser) filter(raw json.RawMessage) (*expr, error) {
	if absent(raw) {
		return exprTrue, nil
	}
	if len(raw) > maxFilterBytes {
		return nil, badFilter("it is over the limit of %d bytes", maxFilterBytes)
	}
	return p.parse(raw, false)
}

// parse reads an expression; negate reads its negation.
func (p parser) parse(raw json.RawMessage, negate bool) (*expr, error) {
	raw = bytes.TrimSpace(raw)
	switch string(raw) {
	case "true":
		return constant(!negate), nil
	case "false":
		return constant(negate), nil
	case "":
		return nil, badFilter("an expression is missing where one is expected")
	}
	var n node
	if raw[0] != '{' {
		return nil, badFilter("%s is neither true, nor false, nor an object", short(raw))
	}
	if err := json.Unmarshal(raw, &n); err != nil {
		return nil, badFilter("%s cannot be read", short(raw)).Because(err)
	}
	kind := strings.ReplaceAll(strings.ToLower(n.Type), "_", "-")
	switch kind {
	case "true", "false":
		return constant((kind == "true") != negate), nil
	case "literal":
		switch string(n.Value) {
		case "true", "false":
			return constant((string(n.Value) == "true") != negate), nil
		}
		return nil, badFilter("a literal stands for a predicate only if it is true or false, not %s", short(n.Value))
	case "not":
		return p.parse(n.Child, !negate)
	case "and", "or":
		return p.junction(kind, n, negate)
	}
	o := op(slices.Index(opNames[:], kind))
	if kind == "" || o >= numOps {
		return nil, badFilter("unknown expression type %q", n.Type)
	}
	return p.leaf(o, n, raw, negate)
}

func constant(v bool) *expr {
	if v {
		return exprTrue
	}
	return exprFalse
}

func (p parser) junction(kind string, n node, negate bool) (*expr, error) {
	left, err := p.parse(n.Left, negate)
	if err != nil {
		return nil, err
	}
	right, err := p.parse(n.Right, negate)
	if err != nil {
		return nil, err
	}
	o := opAnd
	if kind == "or" {
		o = opOr
	}
	if negate {
		o = negated[o]
	}
	return combine(o, []*expr{left, right}), nil
}

// leaf reads a predicate.
func (p parser) leaf(o op, n node, raw json.RawMessage, negate bool) (*expr, error) {
	operand, literal, o, err := sides(o, n)
	if err != nil {
		return nil, err
	}
	t, err := p.operand(operand)
	if err != nil {
		return nil, err
	}
	if !o.unary() && !o.set() && !t.opaque && isOperand(literal) { // two columns
		if _, err = p.operand(literal); err != nil {
			return nil, err
		}
		t.opaque = true
	}
	if t.opaque {
		return opaque(raw, negate), nil
	}
	pred := &predicate{op: o, col: t.col, term: t.transform, typ: t.typ}
	if negate {
		pred.op = negated[o]
	}
	if err := checkOp(o, t); err != nil {
		return nil, err
	}
	if pred.lits, err = p.literals(o, t, literal); err != nil {
		return nil, err
	}
	pred.settle()
	return &expr{op: pred.op, pred: pred}, nil
}

func opaque(raw json.RawMessage, negate bool) *expr {
	if negate {
		raw = slices.Concat([]byte(`{"type":"not","child":`), raw, []byte("}"))
	}
	return &expr{op: opOpaque, pred: &predicate{op: opOpaque, raw: raw}}
}

// sides finds what a predicate compares with what, in either spelling. A literal on the
// left changes sides.
func sides(o op, n node) (operand, literal json.RawMessage, _ op, err error) {
	name := opNames[o]
	switch {
	case o.unary():
		operand = n.Child
		if !absent(n.Value) || !absent(n.Values) {
			return nil, nil, o, badFilter("%s takes no value", name)
		}
	case o.set():
		operand, literal = n.Child, n.Values
		if absent(literal) {
			return nil, nil, o, badFilter("%s needs values", name)
		}
	default:
		operand, literal = n.Left, n.Right
		if absent(literal) {
			literal = n.Value
		}
		if absent(literal) {
			return nil, nil, o, badFilter("%s needs a value", name)
		}
		if o <= opNotEqual && !absent(operand) && !isOperand(operand) && isOperand(literal) {
			operand, literal, o = literal, operand, o.flipped()
		}
	}
	if absent(operand) {
		operand = n.Term
	}
	if absent(operand) {
		return nil, nil, o, badFilter("%s names no column: it needs a term", name)
	}
	return operand, literal, o, nil
}

// isOperand reports whether a value is a reference, a transform or a function.
func isOperand(raw json.RawMessage) bool {
	var n struct {
		Type string `json:"type"`
	}
	if raw = bytes.TrimSpace(raw); len(raw) == 0 || raw[0] != '{' || json.Unmarshal(raw, &n) != nil {
		return false
	}
	return n.Type == "reference" || n.Type == "transform" || n.Type == "apply"
}

// operand is the column of a predicate, maybe transformed.
type operand struct {
	col       column
	transform transform
	typ       iceberg.Type // of what is compared
	opaque    bool
}

func (p parser) operand(raw json.RawMessage) (operand, error) {
	raw = bytes.TrimSpace(raw)
	var name string
	if json.Unmarshal(raw, &name) == nil {
		return p.reference(name)
	}
	var n node
	if err := json.Unmarshal(raw, &n); err != nil {
		return operand{}, badFilter("%s is no column", short(raw))
	}
	switch n.Type {
	case "reference":
		return p.referenceIn(n, raw)
	case "transform":
		return p.transformIn(n, raw)
	case "apply":
		for _, arg := range n.Arguments {
			if !isOperand(arg) {
				continue
			}
			if _, err := p.operand(arg); err != nil {
				return operand{}, err
			}
		}
		return operand{opaque: true}, nil
	default:
		return operand{}, badFilter("%s is no column: unknown type %q", short(raw), n.Type)
	}
}

func (p parser) reference(name string) (operand, error) {
	col, ok := find(p.schema, name, p.caseSensitive)
	if !ok {
		return operand{}, badFilter("the schema has no column %q", name)
	}
	return ofColumn(col)
}

func ofColumn(col column) (operand, error) {
	if col.repeated {
		return operand{}, badFilter("column %q lies in a list or a map: a row has many values of it", col.name)
	}
	return operand{col: col, transform: transform{form: formIdentity, from: col.typ}, typ: col.typ}, nil
}

// referenceIn reads a reference by name (Java writes "term", the specification "name")
// or by field id.
func (p parser) referenceIn(n node, raw json.RawMessage) (operand, error) {
	var name string
	switch {
	case n.Name != nil:
		return p.reference(*n.Name)
	case n.ID != nil:
		col, ok := describe(p.schema, *n.ID)
		if !ok {
			return operand{}, badFilter("the schema has no column with id %d", *n.ID)
		}
		return ofColumn(col)
	case json.Unmarshal(n.Term, &name) == nil:
		return p.reference(name)
	default:
		return operand{}, badFilter("%s names no column", short(raw))
	}
}

func (p parser) transformIn(n node, raw json.RawMessage) (operand, error) {
	if n.Transform == nil || absent(n.Term) {
		return operand{}, badFilter("%s needs a transform and a term", short(raw))
	}
	inner, err := p.operand(n.Term)
	if err != nil || inner.opaque {
		return inner, err
	}
	if inner.transform.form != formIdentity {
		return operand{}, badFilter("%s transforms what is transformed already", short(raw))
	}
	parsed, err := iceberg.ParseTransform(*n.Transform)
	if err != nil {
		return operand{}, badFilter("unknown transform %q", *n.Transform).Because(err)
	}
	t := transformOf(parsed, inner.col.typ)
	if t.form == formUnknown || !parsed.CanTransform(inner.col.typ) {
		return operand{}, badFilter("transform %q cannot be applied to column %q of type %s", *n.Transform, inner.col.name, inner.col.typ)
	}
	if t.form == formVoid {
		return operand{opaque: true}, nil
	}
	inner.transform, inner.typ = t, parsed.ResultType(inner.col.typ)
	return inner, nil
}

// checkOp refuses operations that a column's type does not have.
func checkOp(o op, t operand) error {
	_, primitive := t.typ.(iceberg.PrimitiveType)
	switch o {
	case opIsNull, opNotNull:
		return nil
	case opIsNaN, opNotNaN:
		if !isFloat(t.typ) {
			return badFilter("%s needs a column of floating-point numbers, and %q is %s", opNames[o], t.col.name, t.typ)
		}
	case opStartsWith, opNotStartsWith:
		if _, ok := t.typ.(iceberg.StringType); !ok {
			return badFilter("%s needs a string column, and %q is %s", opNames[o], t.col.name, t.typ)
		}
	}
	if !primitive {
		return badFilter("%s cannot compare column %q of type %s", opNames[o], t.col.name, t.typ)
	}
	return nil
}
