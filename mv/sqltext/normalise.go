package sqltext

import (
	"fmt"
	"strings"
)

// Normalise rewrites a Trino or Spark text so that DuckDB's parser reads it: quoted
// identifiers and strings in DuckDB's form, comments and hints gone, identifiers that
// DuckDB reserves quoted. It changes nothing else, and fails on what DuckDB has no token
// for or reads in another way. Whether the functions mean the same is [CheckSame]'s part.
func Normalise(q *Query) (*Query, error) {
	if q.Dialect == DuckDB {
		return q, nil
	}
	all, err := Lex(q.Dialect, q.Text)
	if err != nil {
		return nil, err
	}
	names := map[int]bool{}
	for _, n := range q.words {
		names[n.start] = true
	}
	var edits []Edit
	var before Token // last significant token
	for _, t := range all {
		text, err := q.duckToken(t, before, names)
		if err != nil {
			return nil, err
		}
		if text != q.Text[t.Start:t.End] {
			edits = append(edits, Edit{t.Start, t.End, text})
		}
		if t.Kind != TokenSpace && t.Kind != TokenComment {
			before = t
		}
	}
	out, err := Rewrite(q, edits)
	if err != nil {
		return nil, err
	}
	n, err := Parse(DuckDB, out)
	if err != nil {
		return nil, fmt.Errorf("in DuckDB's quoting: %w", err)
	}
	if want, got := shapeOf(q), shapeOf(n); len(want) != len(got) || want.difference(got) != "none" {
		return nil, fmt.Errorf("DuckDB reads the query in another way (%s)", want.difference(got))
	}
	return n, nil
}

// duckToken writes a token as DuckDB has it.
func (q *Query) duckToken(t, before Token, names map[int]bool) (string, error) {
	raw := q.Text[t.Start:t.End]
	refuse := func(what string) (string, error) {
		return "", fmt.Errorf("%s: %s %s has no equal in DuckDB", q.Position(t.Start), what, raw)
	}
	switch t.Kind {
	case TokenComment:
		return " ", nil
	case TokenQuoted:
		return Quote(DuckDB, t.Value), nil
	case TokenString:
		switch {
		case t.Prefix == "X":
			return refuse("binary literal")
		case before.Kind == TokenString:
			return refuse("string next to a string")
		case q.Dialect == Spark && strings.Contains(raw[1:len(raw)-1], "''"), q.Dialect == Spark && strings.Contains(raw[1:len(raw)-1], `""`):
			return refuse("doubled quote in") // joins two strings before Spark 4, one quote since
		case strings.ContainsRune(t.Value, 0):
			return refuse("string with a zero character")
		}
		return QuoteString(DuckDB, t.Value), nil
	case TokenNumber:
		if last := raw[len(raw)-1]; last != '.' && !isDigit(last) || strings.ContainsAny(raw, "xXoO_") {
			return refuse("number")
		}
	case TokenWord:
		if names[t.Start] && duckReserved[strings.ToUpper(raw)] {
			return Quote(DuckDB, raw), nil
		}
		if isDigit(raw[0]) {
			return Quote(DuckDB, raw), nil
		}
	case TokenOp:
		switch raw {
		case "<=>", "|>", ">>>", "^", "!", "&", "|", "<<", ">>", "~", "::", ":":
			return refuse("operator")
		}
	}
	return raw, nil
}
