package sqltext_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/mv/sqltext"
)

func parse(t *testing.T, d sqltext.Dialect, text string) *sqltext.Query {
	t.Helper()
	q, err := sqltext.Parse(d, text)
	if err != nil {
		t.Fatalf("Parse(%s, %q): %v", d, text, err)
	}
	return q
}

func TestParse_refuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		d            sqltext.Dialect
		text, want   string
		line, column int
	}{
		{sqltext.DuckDB, "", "holds no query", 1, 1},
		{sqltext.DuckDB, " -- nothing\n", "holds no query", 2, 1},
		{sqltext.DuckDB, "INSERT INTO t VALUES (1)", "INSERT statements are refused", 1, 1},
		{sqltext.DuckDB, "  copy t TO 'x'", "COPY statements are refused", 1, 3},
		{sqltext.DuckDB, "ATTACH 'x.db'", "ATTACH statements are refused", 1, 1},
		{sqltext.DuckDB, "SET memory_limit = '1GB'", "SET statements are refused", 1, 1},
		{sqltext.DuckDB, "PRAGMA version", "PRAGMA statements are refused", 1, 1},
		{sqltext.DuckDB, "INSTALL httpfs", "INSTALL statements are refused", 1, 1},
		{sqltext.DuckDB, "LOAD 'x'", "LOAD statements are refused", 1, 1},
		{sqltext.DuckDB, "EXPLAIN SELECT 1", "EXPLAIN statements are refused", 1, 1},
		{sqltext.DuckDB, "CALL pragma_version()", "CALL statements are refused", 1, 1},
		{sqltext.DuckDB, "(DELETE FROM t)", "DELETE statements are refused", 1, 2},
		{sqltext.DuckDB, "PIVOT t ON x", "PIVOT statements are refused", 1, 1},
		{sqltext.DuckDB, "CREATE TABLE t AS SELECT 1", "CREATE statements are refused", 1, 1},
		{sqltext.DuckDB, "SELECT 1; SELECT 2", "another statement", 1, 11},
		{sqltext.DuckDB, "SELECT 1;\n\nDROP TABLE t", "another statement", 3, 1},
		{sqltext.DuckDB, "WITH c AS (SELECT 1) INSERT INTO t SELECT * FROM c", "WITH … INSERT is refused", 1, 22},
		{sqltext.DuckDB, "WITH c AS (INSERT INTO t SELECT 1 RETURNING x) SELECT * FROM c", "INSERT statements are refused", 1, 12},
		{sqltext.DuckDB, "SELECT * FROM (DELETE FROM t RETURNING *)", "DELETE statements are refused", 1, 16},
		{sqltext.DuckDB, "SELECT x INTO y FROM t", "SELECT … INTO is refused", 1, 10},
		{sqltext.Spark, "SELECT TRANSFORM(a) USING 'cat' AS b FROM t", "runs a script", 1, 8},
		{sqltext.DuckDB, "SELECT (1", "not closed", 1, 8},
		{sqltext.DuckDB, "SELECT 1)", "closes nothing", 1, 9},
		{sqltext.DuckDB, "SELECT (1]", "closes nothing", 1, 10},
		{sqltext.DuckDB, "SELECT 'abc", "does not end", 1, 8},
		{sqltext.DuckDB, "SELECT \"abc", "does not end", 1, 8},
		{sqltext.DuckDB, "SELECT 1 /* /* */", "does not end", 1, 10},
		{sqltext.DuckDB, "SELECT $$abc", "does not end", 1, 8},
		{sqltext.DuckDB, "SELECT `a` FROM t", "unexpected character", 1, 8},
		{sqltext.Trino, "SELECT `a` FROM t", "unexpected character", 1, 8},
		{sqltext.DuckDB, "SELECT (1;)", "inside brackets", 1, 10},
		{sqltext.DuckDB, "SELECT", "expected an expression, found the end", 1, 7},
		{sqltext.DuckDB, "SELECT x FROM", "expected a table, found the end", 1, 14},
		{sqltext.DuckDB, "SELECT x FROM t WHERE", "expected an expression", 1, 22},
		{sqltext.DuckDB, "SELECT x\nFROM t\nWHERE GROUP BY x", "expected an expression, found \"GROUP\"", 3, 7},
		{sqltext.DuckDB, "SELEC x FROM t", "not with \"SELEC\"", 1, 1},
		{sqltext.DuckDB, "SELECT 'ä' , FROM WHERE", "expected a table", 1, 19},
		{"mysql", "SELECT 1", "unknown SQL dialect", 1, 1},
		{sqltext.DuckDB, strings.Repeat("(", 5000) + "SELECT 1" + strings.Repeat(")", 5000), "too deeply", 1, 0},
		{sqltext.DuckDB, "SELECT " + strings.Repeat("(", 5000) + "1" + strings.Repeat(")", 5000), "too deeply", 1, 0},
		{sqltext.DuckDB, "SELECT " + strings.Repeat("- ", 5000) + "1", "too deeply", 1, 0},
	} {
		name := c.text[:min(len(c.text), 60)]
		_, err := sqltext.Parse(c.d, c.text)
		var serr *sqltext.SyntaxError
		if !errors.As(err, &serr) {
			t.Errorf("Parse(%q) = %v, want a syntax error", name, err)
			continue
		}
		if !strings.Contains(err.Error(), c.want) || serr.Line != c.line || c.column != 0 && serr.Column != c.column {
			t.Errorf("Parse(%q) = %v, want %q at line %d, column %d", name, err, c.want, c.line, c.column)
		}
	}
}

// TestParse_isNotExponential parses texts that a naive parser backtracks on for ever.
func TestParse_isNotExponential(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"SELECT " + strings.Repeat("(SELECT (", 60) + "1" + strings.Repeat(") 'x' 'y')", 60),
		"SELECT " + strings.Repeat("((SELECT 1) + ", 90) + "1" + strings.Repeat(")", 90),
		"SELECT * FROM " + strings.Repeat("(", 150) + "t JOIN u USING (k)" + strings.Repeat(" JOIN u USING (k))", 150),
		"SELECT " + strings.Repeat("CAST(", 150) + "x" + strings.Repeat(" AS)", 150),
		"SELECT x FROM " + strings.Repeat("(SELECT x FROM ", 90) + "t ~~~ u" + strings.Repeat(" ~~~ )", 90),
	} {
		_, _ = sqltext.Parse(sqltext.DuckDB, text) // the test's timeout is the assertion
	}
}

func TestQuery_Tables(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		d    sqltext.Dialect
		text string
		want []string // as they stand in the text
	}{
		{sqltext.DuckDB, "WITH t AS (SELECT * FROM t) SELECT * FROM t", []string{"t"}},
		{sqltext.DuckDB, "WITH RECURSIVE t AS (SELECT 1 UNION ALL SELECT x FROM t) SELECT * FROM t", nil},
		{sqltext.DuckDB, "WITH a AS (SELECT * FROM b), b AS (SELECT 1) SELECT * FROM a, B, s.b", []string{"b", "s.b"}},
		{sqltext.DuckDB, "SELECT * FROM (WITH c AS (SELECT 1) SELECT * FROM c) x, c AS y", []string{"c AS y"}},
		{sqltext.DuckDB, "SELECT (SELECT max(x) FROM u WHERE EXISTS (FROM v)) FROM t a(b, c) WHERE x IN (SELECT 1 FROM w)", []string{"u", "v", "t a(b, c)", "w"}},
		{sqltext.DuckDB, "SELECT * FROM t PIVOT (sum(x) FOR y IN (SELECT z FROM u))", []string{"t", "u"}},
		{sqltext.Trino, `SELECT * FROM "A b"."t$snapshots" FOR VERSION AS OF 5 AS x TABLESAMPLE SYSTEM (5)`, []string{`"A b"."t$snapshots" FOR VERSION AS OF 5 AS x TABLESAMPLE SYSTEM (5)`}},
		{sqltext.Spark, "SELECT * FROM `a``b`.`c` VERSION AS OF 5 `x y` LATERAL VIEW explode(z) AS k", []string{"`a``b`.`c` VERSION AS OF 5 `x y`"}},
		{sqltext.DuckDB, "SELECT x FROM t ORDER BY (SELECT y FROM u) LIMIT (SELECT z FROM v)", []string{"t", "u", "v"}},
		{sqltext.DuckDB, "SELECT sum(x) OVER (PARTITION BY (SELECT 1 FROM a)) FROM t GROUP BY ROLLUP ((SELECT 1 FROM b)) HAVING (SELECT true FROM c)", []string{"a", "t", "b", "c"}},
		{sqltext.DuckDB, "SELECT a @@@ (SELECT x FROM hidden) FROM t", []string{"hidden", "t"}},
	} {
		q := parse(t, c.d, c.text)
		var got []string
		for i, ref := range q.Tables() {
			if ref.Index != i {
				t.Errorf("%s: reference %d has index %d", c.text, i, ref.Index)
			}
			got = append(got, q.Text[ref.Start:ref.End])
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: tables %q, want %q", c.text, got, c.want)
		}
	}
}

func TestQuery_TableRef(t *testing.T) {
	t.Parallel()
	q := parse(t, sqltext.Spark, "SELECT * FROM `My ns`.T VERSION AS OF 3 TABLESAMPLE (5 ROWS) x WHERE a IN (SELECT b FROM parquet.`/f`)")
	refs := q.Tables()
	if len(refs) != 2 {
		t.Fatalf("tables %v, want 2", refs)
	}
	if r := refs[0]; r.String() != "My ns.T" || r.Alias != "x" || r.Name() != "x" || !r.TimeTravel || !r.Sampled || r.InExpression || r.File {
		t.Errorf("first reference is %+v", r)
	}
	if r := refs[1]; !r.File || !r.InExpression || r.Name() != "/f" {
		t.Errorf("second reference is %+v", r)
	}
	for _, text := range []string{"FROM 'x.parquet'", `FROM "x.csv"`, "FROM 's3://b/x'", `FROM "dir/file"`, "FROM x.parquet"} {
		if r := parse(t, sqltext.DuckDB, text).Tables(); len(r) != 1 || !r[0].File {
			t.Errorf("%s: references %+v, want a file", text, r)
		}
	}
}

func TestQuery_TablesComplete(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"SELECT * FROM t":                              true,
		"SELECT * FROM t, unnest(t.x)":                 true,
		"SELECT * FROM read_parquet('x')":              false,
		"SELECT * FROM query_table('t')":               false,
		"SELECT * FROM query('FROM t')":                false,
		"SELECT * FROM t FOR UPDATE":                   false,
		"SELECT f(x USING y) FROM t":                   false,
		"SELECT 'a' 'b' FROM t":                        true,
		"SELECT * FROM (DESCRIBE t)":                   false,
		"SELECT * FROM f(TABLE t)":                     false,
		"WITH c AS (PIVOT t ON x) SELECT * FROM c":     false,
		"SELECT * FROM t WHERE x IN (FROM u SELECT y)": true,
	} {
		if got := parse(t, sqltext.DuckDB, text).TablesComplete(); got != want {
			t.Errorf("%s: TablesComplete = %v, want %v", text, got, want)
		}
	}
}

func TestQuery_Functions(t *testing.T) {
	t.Parallel()
	q := parse(t, sqltext.DuckDB, `SELECT Sum(DISTINCT x) FILTER (WHERE y > 1), rank() OVER w, now(), current_date, a.b(c), extract(year FROM d), x || y
		FROM read_csv('f') r WHERE x NOT LIKE 'z' AND x BETWEEN 1 AND 2 WINDOW w AS (PARTITION BY "Abs"(z))`)
	got := map[string]sqltext.FunctionCall{}
	for _, c := range q.Functions() {
		got[c.Name] = c
	}
	for name, want := range map[string]sqltext.FunctionCall{
		"sum": {Args: 1, Distinct: true, Filter: true}, "rank": {Window: true}, "now": {}, "current_date": {}, "a.b": {Args: 1},
		"extract": {Args: 2}, "||": {Args: 2, Operator: true}, "read_csv": {Args: 1, Table: true}, "not like": {Args: 2, Operator: true},
		"between": {Args: 3, Operator: true}, "and": {Args: 2, Operator: true}, "abs": {Args: 1}, ">": {Args: 2, Operator: true},
	} {
		c, ok := got[name]
		want.Name, want.Offset = name, c.Offset
		if !ok || c != want {
			t.Errorf("%s: %+v, want %+v", name, c, want)
		}
		delete(got, name)
	}
	if len(got) > 0 {
		t.Errorf("further functions %v", got)
	}
}

func TestQuery_Outputs(t *testing.T) {
	t.Parallel()
	q := parse(t, sqltext.DuckDB, `SELECT a, t.b, c + 1, d AS "E e", count(*) n, t.*, f.g.h, k: x FROM t UNION ALL SELECT 1`)
	var got []string
	for _, o := range q.Outputs() {
		got = append(got, o.Name+"="+o.Expr)
	}
	want := []string{"a=a", "b=t.b", "=c + 1", "E e=d", "n=count(*)", "=t.*", "h=f.g.h", "k=x"}
	if !slices.Equal(got, want) {
		t.Errorf("outputs %q, want %q", got, want)
	}
}

func TestLex_values(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		d    sqltext.Dialect
		text string
		want []string
	}{
		{sqltext.DuckDB, `"a""b" 'it''s' E'\x41\n\'' $$x'y$$ $t$a$$b$t$`, []string{`a"b`, "it's", "A\n'", "x'y", "a$$b"}},
		{sqltext.Trino, `U&'\2603\+01F600 \\' U&"d\0061t"`, []string{"☃😀 \\", "dat"}},
		{sqltext.Spark, "`a``b` 'it\\'s' \"x\" r'\\n' '\\u0041\\%'", []string{"a`b", "it's", "x", `\n`, `A\%`}},
	} {
		toks, err := sqltext.Lex(c.d, c.text)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, tok := range toks {
			if tok.Kind == sqltext.TokenString || tok.Kind == sqltext.TokenQuoted {
				got = append(got, tok.Value)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("Lex(%s) = %q, want %q", c.text, got, c.want)
		}
	}
}
