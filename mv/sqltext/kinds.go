package sqltext

import "strings"

// kinds maps lower-case column names to the kinds of type that a column of that name has
// anywhere in the query: int, decimal, float, string, time, zoned, other. It follows
// aliases by name, so that it errs towards too many kinds.
type kinds map[string]map[string]bool

func typeKind(t string) string {
	switch {
	case t == "int" || t == "long":
		return "int"
	case t == "float" || t == "double":
		return "float"
	case t == "string":
		return "string"
	case zoned(t):
		return "zoned"
	case timeType(t):
		return "time"
	case strings.HasPrefix(t, "decimal("):
		return "decimal"
	}
	return "other"
}

// kindsOf collects the kinds of all names of a query: source columns, then aliases until
// nothing is added.
func kindsOf(q *Query, opt Options) kinds {
	k := kinds{}
	for _, t := range q.Tables() {
		if opt.Columns == nil {
			continue
		}
		for i, c := range opt.Columns(t) {
			k.add(c.Name, typeKind(c.Type))
			if i < len(t.Columns) {
				k.add(t.Columns[i], typeKind(c.Type))
			}
		}
	}
	for changed := true; changed; {
		changed = false
		w := walker{
			sel: func(s *selectNode) {
				for _, it := range s.items {
					if it.alias.name == "" {
						continue
					}
					for kind := range k.of(it.expr) {
						changed = k.add(it.alias.name, kind) || changed
					}
				}
			},
			query: func(n *queryNode) { changed = k.renamed(n) || changed },
			table: func(t tableNode) {
				if d, ok := t.(*derivedTable); ok {
					changed = k.positions(d.query, d.as.columns) || changed
				}
			},
		}
		w.walkQuery(q.root)
	}
	return k
}

func (k kinds) renamed(n *queryNode) bool {
	changed := false
	for _, c := range n.ctes {
		if c.query != nil {
			changed = k.positions(c.query, c.columns) || changed
		}
	}
	return changed
}

// positions gives column aliases the kinds of the select items at their places. With a
// star, the places are not known, and so are the kinds.
func (k kinds) positions(q *queryNode, names []ident) bool {
	changed := false
	s := firstSelect(q)
	for i, n := range names {
		if s == nil || i >= len(s.items) || s.items[min(i, len(s.items)-1)].expr.kind == exStar {
			changed = k.add(n.name, "unknown") || changed
			continue
		}
		for kind := range k.of(s.items[i].expr) {
			changed = k.add(n.name, kind) || changed
		}
	}
	return changed
}

func (k kinds) add(name, kind string) bool {
	name = strings.ToLower(name)
	if k[name] == nil {
		k[name] = map[string]bool{}
	}
	if k[name][kind] {
		return false
	}
	k[name][kind] = true
	return true
}

// of returns the kinds that an expression can have.
func (k kinds) of(e *expr) map[string]bool {
	out := map[string]bool{}
	put := func(list ...*expr) {
		for _, a := range list {
			for kind := range k.of(a) {
				out[kind] = true
			}
		}
	}
	switch e.kind {
	case exColumn:
		known := k[strings.ToLower(e.parts[len(e.parts)-1].name)]
		if len(known) == 0 {
			return map[string]bool{"unknown": true}
		}
		return known
	case exNumber:
		return map[string]bool{numberKind(e.name): true}
	case exString:
		out["string"] = true
	case exKeyword:
		if e.name != "null" {
			out["other"] = true
		}
	case exTyped:
		out[map[bool]string{true: "time", false: "other"}[e.name == "date" || e.name == "timestamp"]] = true
	case exIn, exBetween, exIs, exExists, exQuantified:
		out["other"] = true
	case exUnary, exBinary:
		switch e.name {
		case "+", "-", "*":
			put(e.args...)
		case "||":
			out["string"] = true
		default:
			out["other"] = true
		}
	case exCase:
		put(caseResults(e)...)
	case exCast:
		return map[string]bool{castKind(e.name): true}
	case exCall:
		k.call(e, out, put)
	default:
		out["unknown"] = true
	}
	return out
}

// caseResults returns the values that a CASE can have.
func caseResults(e *expr) []*expr {
	var list []*expr
	args := e.args
	if e.name == "simple" {
		args = args[1:]
	}
	for i, a := range args {
		if i%2 == 1 || i == len(args)-1 {
			list = append(list, a)
		}
	}
	return list
}

func (k kinds) call(e *expr, out map[string]bool, put func(...*expr)) {
	switch e.name {
	case "count", "count_if", "length", "year", "quarter", "month", "day", "hour", "minute", "extract", "row_number", "rank", "dense_rank":
		out["int"] = true
	case "sum", "min", "max", "abs", "coalesce", "nullif", "greatest", "least":
		put(e.args...)
	case "date_trunc":
		if len(e.args) == 2 {
			put(e.args[1])
		}
	case "bool_and", "bool_or", "like", "not like":
		out["other"] = true
	default:
		out["unknown"] = true
	}
}

func numberKind(text string) string {
	switch {
	case strings.ContainsAny(text, "eE"):
		return "float"
	case strings.Contains(text, "."):
		return "decimal"
	}
	return "int"
}

func castKind(typ string) string {
	base, _, _ := strings.Cut(typ, "(")
	switch base {
	case "bigint", "integer", "int", "smallint", "tinyint":
		return "int"
	case "double", "real", "float":
		return "float"
	case "decimal":
		return "decimal"
	case "varchar", "string":
		return "string"
	case "date":
		return "time"
	}
	return "unknown"
}

// has reports whether an expression or anything in it can be of a kind. Names that are
// not known count as floats, too.
func (k kinds) has(e *expr, kind string) bool {
	found := false
	eachLocal(e, func(x *expr) {
		switch x.kind {
		case exColumn, exNumber, exCast, exTyped, exCall:
			of := k.of(x)
			found = found || of[kind] || of["unknown"] && (kind == "float" || kind == "decimal")
		}
	})
	return found
}

// only reports whether the value of an expression is of one of the kinds for certain.
func (k kinds) only(e *expr, allowed ...string) bool {
	of := k.of(e)
	for kind := range of {
		ok := false
		for _, a := range allowed {
			ok = ok || a == kind
		}
		if !ok {
			return false
		}
	}
	return len(of) > 0
}
