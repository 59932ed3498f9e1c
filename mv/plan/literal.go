package plan

import (
	"encoding/hex"
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"github.com/catalogd/catalogd/mv/sqltext"
)

// literal writes a value of an Iceberg type in DuckDB's SQL; not ok for a type that has
// no exact literal.
func literal(typ string, v any) (string, bool) {
	switch x := v.(type) {
	case int64:
		lit, err := sqltext.Literal(sqltext.DuckDB, typ, x)
		return lit, err == nil
	case string:
		return sqltext.QuoteString(sqltext.DuckDB, x), typ == "string"
	case bool:
		return strconv.FormatBool(x), typ == "boolean"
	case *big.Int:
		p, s, ok := decimalType(typ)
		if !ok {
			return "", false
		}
		return fmt.Sprintf("CAST('%s' AS DECIMAL(%d, %d))", unscaled(x, s), p, s), true
	case []byte:
		return "from_hex('" + hex.EncodeToString(x) + "')", typ == "binary" || strings.HasPrefix(typ, "fixed")
	case [16]byte:
		return fmt.Sprintf("CAST('%x-%x-%x-%x-%x' AS UUID)", x[0:4], x[4:6], x[6:8], x[8:10], x[10:16]), typ == "uuid"
	}
	return "", false
}

func decimalType(typ string) (precision, scale int, ok bool) {
	n, err := fmt.Sscanf(strings.ReplaceAll(typ, " ", ""), "decimal(%d,%d)", &precision, &scale)
	return precision, scale, err == nil && n == 2
}

func unscaled(x *big.Int, scale int) string {
	digits := new(big.Int).Abs(x).String()
	if scale > 0 {
		for len(digits) <= scale {
			digits = "0" + digits
		}
		digits = digits[:len(digits)-scale] + "." + digits[len(digits)-scale:]
	}
	if x.Sign() < 0 {
		return "-" + digits
	}
	return digits
}

// Predicate writes "the value of column is in s" for rows of a relation in DuckDB's SQL.
// It is never null. It is not ok if a value has no exact literal.
func (s Set) Predicate(column, typ string) (string, bool) {
	var terms []string
	for _, i := range s.Intervals {
		t, ok := i.predicate(column, typ)
		if !ok {
			return "", false
		}
		terms = append(terms, t)
	}
	name := sqltext.Quote(sqltext.DuckDB, column)
	switch {
	case len(terms) == 0 && !s.Null:
		return "false", true
	case len(terms) == 0:
		return name + " IS NULL", true
	}
	in := "(" + name + " IS NOT NULL AND (" + strings.Join(terms, " OR ") + "))"
	if s.Null {
		in = "(" + name + " IS NULL OR " + in + ")"
	}
	return in, true
}

// Not is the predicate of the rows that are not in s. It is never null either.
func (s Set) Not(column, typ string) (string, bool) {
	p, ok := s.Predicate(column, typ)
	return "NOT " + p, ok
}

func (i Interval) predicate(column, typ string) (string, bool) {
	name := sqltext.Quote(sqltext.DuckDB, column)
	below := " < "
	if i.Closed {
		below = " <= "
	}
	var terms []string
	for _, end := range []struct {
		value any
		op    string
	}{{i.Lo, " >= "}, {i.Hi, below}} {
		if end.value == nil {
			continue
		}
		lit, ok := literal(typ, end.value)
		if !ok {
			return "", false
		}
		terms = append(terms, name+end.op+lit)
	}
	if len(terms) == 0 {
		return "true", true
	}
	return strings.Join(terms, " AND "), true
}
