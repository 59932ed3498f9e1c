package sqltext

// span is a range of byte offsets in the text.
type span struct{ start, end int }

// ident is a name as it stands in the text.
type ident struct {
	name   string // without quotes, case kept
	quoted bool
	span
}

// queryNode is a query expression: WITH, a body, ORDER BY and LIMIT.
type queryNode struct {
	span
	recursive bool
	ctes      []*cteNode
	body      bodyNode
	order     []orderItem
	limits    []*expr // LIMIT, OFFSET and FETCH counts
	limited   bool    // any of LIMIT, OFFSET, FETCH is present
	opaque    []*expr
}

// bodyNode is a selectNode, setNode, valuesNode or a parenthesised queryNode.
type bodyNode interface{ isBody() }

type cteNode struct {
	name    ident
	columns []ident
	query   *queryNode
	opaque  *expr // instead of query
}

type setNode struct {
	op          string // UNION, INTERSECT, EXCEPT
	all         bool
	byName      bool
	left, right bodyNode
}

type valuesNode struct{ rows []*expr }

type selectNode struct {
	span
	distinct   bool
	distinctOn []*expr
	items      []*selectItem
	from       []tableNode
	where      *expr
	group      *groupNode
	having     *expr
	windows    []namedWindow
	qualify    *expr
	sampled    bool
	opaque     []*expr
}

func (*queryNode) isBody()  {}
func (*setNode) isBody()    {}
func (*valuesNode) isBody() {}
func (*selectNode) isBody() {}

type selectItem struct {
	span
	expr     *expr // exStar for a star
	alias    ident
	implicit bool // FROM without SELECT
}

type groupNode struct {
	span
	all   bool
	plain []*expr // keys of every grouping set
	sets  []*expr // keys inside ROLLUP, CUBE and GROUPING SETS
	multi bool    // has ROLLUP, CUBE or GROUPING SETS
}

type orderItem struct {
	expr  *expr
	desc  bool
	nulls string // FIRST, LAST or empty
}

type namedWindow struct {
	name ident
	spec *windowSpec
}

type windowSpec struct {
	span
	base      string // name of a window it refines or is
	partition []*expr
	order     []orderItem
	frame     []*expr
	framed    bool
}

// tableNode is an element of FROM.
type tableNode interface{ isTable() }

// aliasClause is [AS] name [(columns)].
type aliasClause struct {
	alias   ident // name is empty if there is none
	columns []ident
}

type tableName struct {
	span         // everything: name, time travel, sample, alias
	parts        []ident
	as           aliasClause
	aliasText    span // of the alias clause, empty if none
	statement    bool // TABLE name: the span holds the keyword, too
	timeTravel   bool
	sampled      bool
	file         bool // names a file rather than a table
	cte          *cteNode
	index        int // among the references that are no CTEs
	inExpression bool
	with         *cteNode // the CTE whose text holds the reference
}

type derivedTable struct {
	span
	query   *queryNode
	lateral bool
	as      aliasClause
	sampled bool
}

type functionTable struct {
	span
	call    *expr
	lateral bool
	as      aliasClause
	sampled bool
}

// viewTable is Spark's LATERAL VIEW: a function applied to each row of left.
type viewTable struct {
	left tableNode
	call *expr
	as   aliasClause
}

type joinNode struct {
	left, right tableNode
	kind        string // INNER, LEFT, RIGHT, FULL, CROSS, SEMI, ANTI, ASOF, POSITIONAL
	natural     bool
	using       []ident
	on          *expr
}

// opaqueTable is a table expression whose meaning is not known (PIVOT, MATCH_RECOGNIZE).
type opaqueTable struct {
	inner tableNode // what it is applied to, may be nil
	part  *expr
}

func (*tableName) isTable()     {}
func (*derivedTable) isTable()  {}
func (*functionTable) isTable() {}
func (*viewTable) isTable()     {}
func (*joinNode) isTable()      {}
func (*opaqueTable) isTable()   {}

type exprKind uint8

const (
	exOpaque     exprKind = iota
	exColumn              // parts
	exStar                // parts: qualifier; name: "" or the modifiers' first word
	exNumber              // name: text
	exString              // name: value
	exKeyword             // name: true, false, null, default
	exTyped               // name: lower-case type; args[0]: exString
	exInterval            // name: unit or empty; args: count
	exParam               //
	exCall                // name: lower-case function name
	exUnary               // name: operator
	exBinary              // name: operator
	exCase                // args in order
	exCast                // name: type text; args[0]; try
	exSubquery            // scalar subquery
	exExists              // query
	exIn                  // args[0] IN args[1:] or query; name: in, not in
	exQuantified          // args[0] op ANY (query); name: operator
	exBetween             // args: value, low, high
	exIs                  // name: "is null", "is not null", "is distinct from", …
	exRow                 // (a, b)
	exArray               // [a, b]
	exStruct              // {a: b}
	exLambda              // args[0]: body
	exIndex               // args[0][args[1:]]
	exField               // args[0].name
)

// expr is an expression. Which fields are used depends on the kind.
type expr struct {
	kind exprKind
	span
	name     string
	parts    []ident
	args     []*expr
	query    *queryNode
	queries  []*queryNode // of an opaque part
	reason   string       // of an opaque part
	distinct bool
	try      bool
	window   bool // has OVER
	over     *windowSpec
	order    []orderItem
	filter   *expr
	params   []string // of a lambda
	tables   bool     // opaque part that may name tables
}
