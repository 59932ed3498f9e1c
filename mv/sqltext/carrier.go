package sqltext

import "strings"

// scopeCarrier returns the claim of an expression over a scope.
func (a *analyser) scopeCarrier(sc *scope, e *expr) *carrier {
	s := &selection{a: a, node: &selectNode{}, scope: sc}
	return s.carrier(e)
}

// carrier returns the claim that an expression makes, nil for none. After GROUP BY only
// the keys and what is computed from them make one.
func (s *selection) carrier(e *expr) *carrier {
	if s.group {
		for _, k := range s.keys {
			if s.same(k.expr, e) {
				return k.carrier
			}
		}
	}
	switch e.kind {
	case exColumn:
		return s.columnCarrier(e)
	case exCast:
		return s.castCarrier(e.args[0], e.name)
	case exCall:
		return s.callCarrier(e)
	case exBinary:
		if e.name == "-" {
			return s.steppedCarrier(e)
		}
	}
	return nil
}

func (s *selection) columnCarrier(e *expr) *carrier {
	c, absent := s.scope.column(e.parts)
	if c != nil && !s.group {
		return c.carrier
	}
	// DuckDB and Spark let an expression name an alias of the list where no column has it.
	if !absent || len(e.parts) != 1 || s.a.q.Dialect == Trino {
		return nil
	}
	it := s.aliased(e.parts[0].name)
	if it == nil || s.naming[it] {
		return nil
	}
	s.naming[it] = true
	defer delete(s.naming, it)
	return s.carrier(it.expr)
}

func (s *selection) castCarrier(arg *expr, typ string) *carrier {
	in := s.carrier(arg)
	if in == nil {
		return nil
	}
	var b Bucket
	ok := false
	switch typ {
	case "date":
		b, ok = in.bucket.toDate()
	case "timestamp", "datetime", "timestamp without time zone", "timestamp(6)", "timestamp_ntz":
		if s.a.q.Dialect == Spark && typ != "timestamp_ntz" || s.a.q.Dialect == Trino && typ == "timestamp" {
			return nil // has a zone in Spark, and only milliseconds in Trino
		}
		b, ok = in.bucket.toTimestamp()
	}
	if !ok {
		return nil
	}
	return &carrier{b, in.drivers, in.fixed}
}

func (s *selection) callCarrier(e *expr) *carrier {
	if e.window || e.distinct || e.filter != nil || len(e.order) > 0 || len(e.parts) != 1 {
		return nil
	}
	switch {
	case e.name == "date_trunc" || e.name == "datetrunc" && s.a.q.Dialect == DuckDB:
		if len(e.args) != 2 || e.args[0].kind != exString {
			return nil
		}
		unit, ok := truncUnit(s.a.q.Dialect, e.args[0].name)
		in := s.carrier(e.args[1])
		if !ok || in == nil {
			return nil
		}
		if b, ok := in.bucket.truncate(s.a.q.Dialect, unit); ok {
			return &carrier{b, in.drivers, in.fixed}
		}
	case e.name == "time_bucket" && s.a.q.Dialect == DuckDB && len(e.args) == 2:
		in := s.carrier(e.args[1])
		if in == nil {
			return nil
		}
		if b, ok := in.bucket.timeBucket(e.args[0]); ok {
			return &carrier{b, in.drivers, in.fixed}
		}
	case (e.name == "date" || e.name == "to_date" && s.a.q.Dialect == Spark) && len(e.args) == 1:
		return s.castCarrier(e.args[0], "date")
	}
	return nil
}

// same reports whether two expressions of the select are the same: the same structure
// over the same columns. Literals are compared exactly.
func (s *selection) same(x, y *expr) bool {
	if x == y {
		return true
	}
	if x == nil || y == nil || x.kind != y.kind || len(x.args) != len(y.args) {
		return false
	}
	switch x.kind {
	case exColumn:
		cx, _ := s.scope.column(x.parts)
		cy, _ := s.scope.column(y.parts)
		if cx != nil || cy != nil {
			return cx == cy
		}
		return sameParts(x.parts, y.parts)
	case exString, exNumber, exKeyword, exTyped, exInterval, exCast, exUnary, exBinary, exIs, exCase, exField:
		if x.name != y.name || x.try != y.try {
			return false
		}
	case exCall:
		if x.name != y.name || !sameParts(x.parts, y.parts) || x.window || y.window || x.distinct || y.distinct ||
			x.filter != nil || y.filter != nil || len(x.order)+len(y.order) > 0 {
			return false
		}
	case exBetween, exIn:
		if x.name != y.name || x.query != nil || y.query != nil {
			return false
		}
	case exRow, exIndex:
	default:
		return false
	}
	for i := range x.args {
		if !s.same(x.args[i], y.args[i]) {
			return false
		}
	}
	return true
}

func sameParts(x, y []ident) bool {
	if len(x) != len(y) {
		return false
	}
	for i := range x {
		if !strings.EqualFold(x[i].name, y[i].name) {
			return false
		}
	}
	return true
}
