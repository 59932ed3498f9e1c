package sqltext

import "strings"

// Dialect is the SQL dialect of a text.
type Dialect string

// The dialects that the package reads.
const (
	DuckDB Dialect = "duckdb"
	Trino  Dialect = "trino"
	Spark  Dialect = "spark"
)

// Known reports whether d is one of the dialects that the package reads.
func (d Dialect) Known() bool {
	return d == DuckDB || d == Trino || d == Spark
}

// Quote writes ident as a quoted identifier.
func Quote(d Dialect, ident string) string {
	if d == Spark {
		return "`" + strings.ReplaceAll(ident, "`", "``") + "`"
	}
	return `"` + strings.ReplaceAll(ident, `"`, `""`) + `"`
}

// QuoteString writes s as a string literal.
func QuoteString(d Dialect, s string) string {
	if d != Spark {
		return "'" + strings.ReplaceAll(s, "'", "''") + "'"
	}
	var b strings.Builder
	b.WriteByte('\'')
	for i := range len(s) {
		switch c := s[i]; c {
		case '\'', '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case '\n':
			b.WriteString(`\n`)
		case '\r':
			b.WriteString(`\r`)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('\'')
	return b.String()
}

// words makes a lookup table of space-separated words.
func words(lists ...string) map[string]bool {
	m := map[string]bool{}
	for _, l := range lists {
		for w := range strings.FieldsSeq(l) {
			m[w] = true
		}
	}
	return m
}

// duckReserved are the words that DuckDB takes as an identifier only in quotes.
var duckReserved = words(`ALL ANALYSE ANALYZE AND ANY ARRAY AS ASC ASYMMETRIC BOTH CASE CAST CHECK COLLATE
	COLUMN CONSTRAINT CREATE DEFAULT DEFERRABLE DESC DESCRIBE DISTINCT DO ELSE END EXCEPT FALSE FETCH FOR
	FOREIGN FROM GROUP HAVING IN INITIALLY INTERSECT INTO LAMBDA LATERAL LEADING LIMIT NOT NULL OFFSET ON
	ONLY OR ORDER PIVOT PIVOT_LONGER PIVOT_WIDER PLACING PRIMARY QUALIFY REFERENCES RETURNING SELECT SHOW
	SOME SUMMARIZE SYMMETRIC TABLE THEN TO TRAILING TRUE UNION UNIQUE UNPIVOT USING VARIADIC WHEN WHERE
	WINDOW WITH ANTI ASOF AT AUTHORIZATION BINARY BY COLLATION COLUMNS CONCURRENTLY CROSS FREEZE FULL
	GENERATED GLOB ILIKE INNER IS ISNULL JOIN LEFT LIKE MAP NATURAL NOTNULL OUTER OVERLAPS POSITIONAL
	RIGHT SEMI SIMILAR STRUCT TABLESAMPLE TRY_CAST UNPACK VERBOSE`)

// clauseWords end an expression: none of them can be an alias without AS, or continue
// an operand.
var clauseWords = words(`FROM WHERE GROUP HAVING WINDOW QUALIFY ORDER LIMIT OFFSET FETCH UNION INTERSECT
	EXCEPT AS ON USING INTO FOR WHEN THEN ELSE END AND OR`)

// softWords are clause words that Trino and Spark take as names where an operand has to
// stand.
var softWords = words(`WINDOW QUALIFY LIMIT OFFSET FETCH`)

// tableStopWords cannot be a table alias without AS.
var tableStopWords = words(`WHERE GROUP HAVING WINDOW QUALIFY ORDER LIMIT OFFSET FETCH UNION INTERSECT EXCEPT
	AS ON USING INTO FOR JOIN INNER LEFT RIGHT FULL CROSS NATURAL TABLESAMPLE PIVOT UNPIVOT LATERAL SELECT
	SET WITH FROM WHEN THEN ELSE END AND OR NOT`)

// sparkStopWords are further words that Spark does not take as an alias.
var sparkStopWords = words(`MINUS SEMI ANTI CLUSTER DISTRIBUTE SORT`)

// bareCalls are functions that the standard writes without parentheses.
var bareCalls = words(`current_date current_time current_timestamp localtime localtimestamp current_user
	session_user user current_role current_catalog current_schema current_path current_database`)
