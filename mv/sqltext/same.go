package sqltext

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// sameFunctions are the functions that give the same result in DuckDB as in the dialect of
// the key, for all arguments that the checks below let through. What is missing is
// missing for a reason: upper('ß') is 'ẞ' in DuckDB only, avg of decimals is a double
// there, min_by skips other NULLs than Trino's, greatest ignores NULLs and Trino's does
// not, round and trim differ in details, approximate aggregates have no common result.
var sameFunctions = map[Dialect]map[string]bool{
	Trino: words(sameCommon),
	Spark: words(sameCommon, `greatest least`),
}

const sameCommon = `count sum min max count_if bool_and bool_or abs coalesce nullif date_trunc extract year quarter
	month day hour minute length row_number rank dense_rank like`

// sameOperators are the operators with the same result. Division is none of them: DuckDB's
// / of integers is a double. % and DIV differ for zero.
var sameOperators = map[Dialect]map[string]bool{
	Trino: words(`+ - * = <> != < > <= >= and or not ||`),
	Spark: words(`+ - * = == <> != < > <= >= and or not`),
}

// sameUnits are the units of date_trunc and extract that all dialects share.
var sameUnits = words(`year quarter month week day hour minute second`)

// SameSemantics lists the functions and operators that [CheckSame] lets through, sorted.
func SameSemantics(from Dialect) []string {
	all := maps.Clone(sameFunctions[from])
	if all == nil {
		return nil
	}
	maps.Copy(all, sameOperators[from])
	return slices.Sorted(maps.Keys(all))
}

// CheckSame reports whether q gives the same rows when DuckDB runs its normalised text as
// in its own dialect. It works from a list of what is known to be the same and names the
// first thing that is not on it. opt.Columns must know the tables; opt.TimeZone is the
// zone of the DuckDB session.
func CheckSame(q *Query, opt Options) error {
	if q.Dialect == DuckDB {
		return nil
	}
	if o := q.Opaque(); len(o) > 0 {
		return fmt.Errorf("%s: %s is not known to mean the same in DuckDB", q.Position(o[0].Start), o[0].Reason)
	}
	c := &sameCheck{q: q, opt: opt, kinds: kindsOf(q, opt)}
	w := walker{query: c.query, sel: c.selects, group: c.group, table: c.table, expr: c.expr}
	w.walkQuery(q.root)
	return c.err
}

type sameCheck struct {
	q     *Query
	opt   Options
	kinds kinds
	err   error
}

func (c *sameCheck) refuse(at int, format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf("%s: %s is not known to mean the same in DuckDB as in %s", c.q.Position(at), fmt.Sprintf(format, args...), c.q.Dialect)
	}
}

func (c *sameCheck) query(n *queryNode) {
	if n.recursive {
		c.refuse(n.start, "WITH RECURSIVE")
	}
	if n.limited {
		c.order(n.order)
	}
	c.bodies(n.body)
}

func (c *sameCheck) bodies(b bodyNode) {
	switch b := b.(type) {
	case *setNode:
		if b.byName || c.q.Dialect == Spark && b.op == "EXCEPT" {
			c.refuse(bodyStart(b), "%s", b.op)
		}
		c.branches(b)
		c.bodies(b.left)
		c.bodies(b.right)
	case *valuesNode:
		c.refuse(bodyStart(b), "VALUES")
	}
}

// branches refuses set operations whose branches may have different types, which the
// dialects unify each in their way.
func (c *sameCheck) branches(n *setNode) {
	l, r := firstSelect(&queryNode{body: n.left}), firstSelect(&queryNode{body: n.right})
	if l == nil || r == nil || len(l.items) != len(r.items) {
		c.refuse(bodyStart(n), "%s of branches that cannot be compared", n.op)
		return
	}
	for i := range l.items {
		if x, y := c.kinds.of(l.items[i].expr), c.kinds.of(r.items[i].expr); l.items[i].expr.kind == exStar ||
			r.items[i].expr.kind == exStar || !maps.Equal(x, y) || x["float"] && !n.all {
			c.refuse(l.items[i].start, "%s of branches that may have different types", n.op)
		}
	}
}

// order refuses sort keys whose place for NULLs is left to the dialect where it differs.
func (c *sameCheck) order(list []orderItem) {
	for _, o := range list {
		if c.q.Dialect == Spark && o.nulls == "" {
			c.refuse(o.expr.start, "ORDER BY without NULLS FIRST or NULLS LAST")
		}
		c.noFloat(o.expr, "a floating-point sort key")
	}
}

func (c *sameCheck) noFloat(e *expr, what string) {
	if c.kinds.has(e, "float") {
		c.refuse(e.start, "%s", what)
	}
}

func (c *sameCheck) selects(s *selectNode) {
	if s.distinctOn != nil || s.sampled || s.qualify != nil {
		c.refuse(s.start, "DISTINCT ON, QUALIFY or a sample")
	}
	for _, it := range s.items {
		if it.expr.kind == exStar && it.expr.name != "" {
			c.refuse(it.start, "a changed star")
		}
		if s.distinct {
			c.noFloat(it.expr, "DISTINCT of a floating-point value")
		}
	}
	for _, w := range s.windows {
		c.window(w.spec)
	}
}

func (c *sameCheck) group(g *groupNode) {
	if g.all || g.multi && c.q.Dialect == Spark {
		c.refuse(g.start, "GROUP BY ALL, ROLLUP or CUBE")
	}
	for _, e := range slices.Concat(g.plain, g.sets) {
		c.noFloat(e, "a floating-point group key")
		if e.kind == exRow {
			c.refuse(e.start, "a row as a group key")
		}
	}
}

func (c *sameCheck) table(t tableNode) {
	switch t := t.(type) {
	case *tableName:
		if t.timeTravel || t.sampled || t.file {
			c.refuse(t.start, "time travel or a sample")
		}
	case *functionTable:
		c.refuse(t.start, "table function %s", t.call.callName())
	case *viewTable:
		c.refuse(t.call.start, "LATERAL VIEW")
	case *derivedTable:
		if t.lateral || t.sampled {
			c.refuse(t.start, "LATERAL")
		}
	case *joinNode:
		switch t.kind {
		case "INNER", "LEFT", "RIGHT", "FULL", "CROSS":
		default:
			c.refuse(c.joinStart(t), "%s JOIN", t.kind)
		}
		if t.natural || len(t.using) > 0 {
			c.refuse(c.joinStart(t), "JOIN with USING or NATURAL")
		}
	}
}

func (c *sameCheck) joinStart(j *joinNode) int {
	if len(j.using) > 0 {
		return j.using[0].start
	}
	if n, ok := j.right.(*tableName); ok {
		return n.start
	}
	return 0
}

func (c *sameCheck) expr(e *expr) {
	switch e.kind {
	case exColumn, exStar, exString, exNumber, exKeyword, exSubquery, exExists, exCase:
	case exTyped:
		c.typed(e)
	case exCall:
		c.call(e)
	case exUnary, exBinary:
		c.operator(e)
	case exIn, exBetween, exIs:
		if e.name == "between symmetric" || e.name == "not between symmetric" {
			c.refuse(e.start, "BETWEEN SYMMETRIC")
		}
		if e.name != "is null" && e.name != "is not null" {
			c.compared(e)
		}
	case exCast:
		c.cast(e)
	case exInterval:
		c.refuse(e.start, "an interval")
	default:
		c.refuse(e.start, "expression %s", c.q.Text[e.start:e.end])
	}
}

// plainTime matches dates and timestamps that all dialects read alike.
var plainTime = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}( \d{2}:\d{2}:\d{2}(\.\d{1,6})?)?$`)

func (c *sameCheck) typed(e *expr) {
	if (e.name != "date" && e.name != "timestamp") || !plainTime.MatchString(e.args[0].name) || e.name == "date" && len(e.args[0].name) != 10 {
		c.refuse(e.start, "literal %s", c.q.Text[e.start:e.end])
	}
	if e.name == "timestamp" && c.q.Dialect == Spark && !isUTC(c.opt.TimeZone) {
		c.refuse(e.start, "a timestamp outside UTC")
	}
}

// compared refuses comparisons of floats in Trino, for which NaN is no greater than
// anything, and of strings that are no literals with times.
func (c *sameCheck) compared(e *expr) {
	if c.q.Dialect == Trino {
		c.noFloat(e, "a comparison of floating-point values")
	}
}

func (c *sameCheck) operator(e *expr) {
	if !sameOperators[c.q.Dialect][e.name] {
		c.refuse(e.start, "operator %s", e.name)
	}
	switch e.name {
	case "=", "==", "<>", "!=", "<", ">", "<=", ">=":
		c.compared(e)
	case "+", "-", "*":
		// Spark rounds decimals of more than 38 digits, and dates and times have arithmetic
		// of their own everywhere.
		for _, k := range []string{"time", "zoned", "unknown"} {
			if c.kinds.has(e, k) {
				c.refuse(e.start, "arithmetic on what may be no number")
			}
		}
		if c.q.Dialect == Spark && c.kinds.has(e, "decimal") {
			c.refuse(e.start, "arithmetic on decimals")
		}
	case "||":
		for _, a := range e.args {
			if !c.kinds.only(a, "string") {
				c.refuse(e.start, "|| of what may be no string")
			}
		}
	}
}

func (c *sameCheck) call(e *expr) {
	name := strings.TrimPrefix(e.callName(), "not ")
	switch {
	case !sameFunctions[c.q.Dialect][name]:
		c.refuse(e.start, "function %s", name)
	case e.over != nil:
		c.window(e.over)
	case len(e.order) > 0:
		c.refuse(e.start, "ORDER BY inside %s", name)
	}
	switch name {
	case "date_trunc", "extract":
		if len(e.args) != 2 || e.args[0].kind != exString || !sameUnits[strings.ToLower(e.args[0].name)] || name == "extract" && !sameFunctions[c.q.Dialect][e.args[0].name] {
			c.refuse(e.start, "%s with this unit", name)
			return
		}
		c.zone(e, name)
	case "year", "quarter", "month", "day", "hour", "minute":
		c.zone(e, name)
	case "min", "max", "greatest", "least", "nullif":
		c.noFloat(e, name+" of floating-point values")
	case "count":
		if e.distinct {
			c.noFloat(e, "count(DISTINCT) of floating-point values")
		}
	case "like":
		if len(e.args) != 2 || e.args[1].kind != exString || c.q.Dialect == Spark && strings.Contains(e.args[1].name, `\`) {
			c.refuse(e.start, "LIKE with this pattern")
		}
	case "length":
		if !c.kinds.only(e.args[0], "string") {
			c.refuse(e.start, "length of what may be no string")
		}
	}
}

// zone refuses dates of instants unless the session runs in UTC: Trino takes the zone
// of the value, which Iceberg makes UTC, and Spark takes its session's.
func (c *sameCheck) zone(e *expr, name string) {
	if !isUTC(c.opt.TimeZone) && (c.kinds.has(e, "zoned") || c.kinds.has(e, "unknown") || c.q.Dialect == Spark) {
		c.refuse(e.start, "%s outside UTC", name)
	}
}

func (c *sameCheck) window(w *windowSpec) {
	c.order(w.order)
	for _, e := range w.partition {
		c.noFloat(e, "a floating-point window key")
	}
	for _, e := range w.frame {
		if e.kind != exNumber {
			c.refuse(e.start, "a window frame that is not counted in rows")
		}
	}
}

func (c *sameCheck) cast(e *expr) {
	arg, typ := e.args[0], e.name
	base, _, _ := strings.Cut(typ, "(")
	switch base {
	case "bigint", "integer", "int", "double", "decimal":
		if c.kinds.only(arg, "int") {
			return
		}
	case "varchar", "string":
		if typ == base && c.kinds.only(arg, "int", "string") {
			return
		}
	case "date":
		if c.kinds.only(arg, "time", "zoned") && (isUTC(c.opt.TimeZone) || c.kinds.only(arg, "time")) {
			return
		}
	}
	c.refuse(e.start, "CAST(… AS %s) of this value", typ)
}
