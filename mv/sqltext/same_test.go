package sqltext_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/mv/sqltext"
)

func TestNormalise(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		d          sqltext.Dialect
		text, want string
	}{
		{sqltext.Spark, "SELECT `a``b`, \"it's\" AS `show`, 'x\\'y' FROM `my ns`.t /*+ hint */ WHERE `c\"d` = 1", `SELECT "a` + "`" + `b", 'it''s' AS "show", 'x''y' FROM "my ns".t   WHERE "c""d" = 1`},
		{sqltext.Spark, "SELECT pivot, t.asof FROM t -- end", `SELECT "pivot", t."asof" FROM t  `},
		{sqltext.Spark, "SELECT 1a FROM t", `SELECT "1a" FROM t`},
		{sqltext.Trino, `SELECT U&'\2603' AS "A b", /* a /* b */ qualify FROM t`, `SELECT '☃' AS "A b",   "qualify" FROM t`},
		{sqltext.Trino, "SELECT date_trunc('day', ts), count(*) FROM t GROUP BY 1", "SELECT date_trunc('day', ts), count(*) FROM t GROUP BY 1"},
		{sqltext.DuckDB, "SELECT `", ""},
	} {
		if c.want == "" {
			continue
		}
		q, err := sqltext.Normalise(parse(t, c.d, c.text))
		if err != nil {
			t.Errorf("Normalise(%q): %v", c.text, err)
			continue
		}
		if q.Text != c.want || q.Dialect != sqltext.DuckDB {
			t.Errorf("Normalise(%q)\n got %q (%s)\nwant %q", c.text, q.Text, q.Dialect, c.want)
		}
	}
}

func TestNormalise_refuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		d          sqltext.Dialect
		text, want string
	}{
		{sqltext.Spark, "SELECT 'a''b' FROM t", "doubled quote"},
		{sqltext.Spark, "SELECT 'a' 'b' FROM t", "string next to a string"},
		{sqltext.Spark, "SELECT 1L FROM t", "number 1L"},
		{sqltext.Spark, "SELECT a <=> b FROM t", "operator <=>"},
		{sqltext.Spark, "SELECT X'61' FROM t", "binary literal"},
		{sqltext.Spark, "SELECT a ^ b FROM t", "operator ^"},
		{sqltext.Spark, "SELECT * FROM t VERSION AS OF 5", "another way"},
		{sqltext.Spark, "SELECT * FROM t LATERAL VIEW explode(x) AS y", ""},
		{sqltext.Trino, "SELECT x FROM t FOR VERSION AS OF 5", ""},
		{sqltext.Trino, "SELECT 0x1F FROM t", "number 0x1F"},
	} {
		q, err := sqltext.Normalise(parse(t, c.d, c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("Normalise(%q) = %+v, %v, want an error with %q", c.text, q, err, c.want)
		}
	}
}

func sameColumns(sqltext.TableRef) []sqltext.Column {
	return []sqltext.Column{
		{Name: "ts", Type: "timestamp"},
		{Name: "tz", Type: "timestamptz"},
		{Name: "d", Type: "date"},
		{Name: "s", Type: "string"},
		{Name: "f", Type: "double"},
		{Name: "m", Type: "decimal(10, 2)"},
		{Name: "i", Type: "int"},
		{Name: "l", Type: "long"},
	}
}

func TestCheckSame(t *testing.T) {
	t.Parallel()
	both := []sqltext.Dialect{sqltext.Trino, sqltext.Spark}
	trino, spark := both[:1], both[1:]
	for _, c := range []struct {
		dialects []sqltext.Dialect
		text     string
		want     string // empty: accepted
	}{
		{both, "SELECT date_trunc('hour', ts) AS h, s, count(*), sum(l), min(m), max(d), count(DISTINCT s) FROM t WHERE i > 5 AND s IN ('a', 'b') OR d BETWEEN DATE '2024-01-01' AND DATE '2024-02-01' GROUP BY date_trunc('hour', ts), s HAVING count(*) > 1", ""},
		{both, "SELECT coalesce(s, 'x'), nullif(i, 0), abs(l), CASE WHEN s LIKE 'a%' THEN i + 1 ELSE -i END, length(s) FROM t WHERE NOT s IS NULL", ""},
		{both, "SELECT a.l, b.n FROM t a LEFT JOIN (SELECT l, count(*) AS n FROM t GROUP BY l) b ON a.l = b.l WHERE EXISTS (SELECT 1 FROM t c WHERE c.l = a.l)", ""},
		{both, "SELECT CAST(count(*) AS BIGINT), CAST(ts AS DATE), sum(f) FROM t GROUP BY CAST(ts AS DATE)", ""},
		{both, "SELECT date_trunc('day', tz), year(tz), extract(month FROM d) FROM t", ""},
		{both, "SELECT row_number() OVER (PARTITION BY s ORDER BY ts NULLS LAST) FROM t", ""},
		{both, "SELECT l FROM t UNION ALL SELECT l FROM t", ""},
		{trino, "SELECT s || 'x' FROM t", ""},
		{trino, "SELECT m * i FROM t", ""},
		{spark, "SELECT m * i FROM t", "arithmetic on decimals"},
		{spark, "SELECT greatest(i, l), f > 1 FROM t", ""},
		{trino, "SELECT greatest(i, l) FROM t", "function greatest"},
		{trino, "SELECT l FROM t WHERE f > 1", "comparison of floating-point values"},
		{trino, "SELECT l FROM (SELECT l, f * 2 AS g FROM t) x WHERE g > 1", "comparison of floating-point values"},
		{both, "SELECT i / 2 FROM t", "line 1, column 8: operator /"},
		{both, "SELECT i % 2 FROM t", "operator %"},
		{both, "SELECT avg(m) FROM t", "function avg"},
		{both, "SELECT upper(s) FROM t", "function upper"},
		{both, "SELECT min_by(s, ts) FROM t", "function min_by"},
		{both, "SELECT approx_distinct(s) FROM t", "function approx_distinct"},
		{both, "SELECT max(f) FROM t", "max of floating-point values"},
		{both, "SELECT f, count(*) FROM t GROUP BY f", "floating-point group key"},
		{both, "SELECT DISTINCT f FROM t", "DISTINCT of a floating-point value"},
		{both, "SELECT CAST(f AS BIGINT) FROM t", "CAST(… AS bigint)"},
		{both, "SELECT CAST(ts AS VARCHAR) FROM t", "CAST(… AS varchar)"},
		{both, "SELECT CAST(s AS DATE) FROM t", "CAST(… AS date)"},
		{both, "SELECT date_trunc('decade', ts) FROM t", "date_trunc with this unit"},
		{both, "SELECT d + INTERVAL '1' DAY FROM t", "arithmetic on what may be no number"},
		{both, "SELECT ts - ts FROM t", "arithmetic on what may be no number"},
		{both, "SELECT l FROM t WHERE ts > TIMESTAMP '2024-01-01 00:00:00 UTC'", "literal TIMESTAMP"},
		{both, "SELECT x FROM t CROSS JOIN UNNEST(a) AS u (x)", "table function unnest"},
		{both, "SELECT * FROM t NATURAL JOIN u", "NATURAL"},
		{both, "SELECT s LIKE i FROM t", "LIKE with this pattern"},
		{both, "SELECT l FROM t UNION ALL SELECT f FROM t", "different types"},
		{both, "SELECT a FROM (VALUES (1)) AS v (a)", "VALUES"},
		{spark, "SELECT row_number() OVER (ORDER BY ts) FROM t", "ORDER BY without NULLS"},
		{spark, "SELECT l FROM t MINUS SELECT i FROM t", "EXCEPT"},
		{spark, "SELECT l FROM t LEFT SEMI JOIN u ON t.l = u.l", "SEMI JOIN"},
		{spark, "SELECT a:b FROM t", "is not known to mean the same"},
	} {
		for _, d := range c.dialects {
			err := sqltext.CheckSame(parse(t, d, c.text), sqltext.Options{Columns: sameColumns, TimeZone: "UTC"})
			switch {
			case c.want == "" && err != nil:
				t.Errorf("%s %q: %v", d, c.text, err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("%s %q: %v, want %q", d, c.text, err, c.want)
			}
		}
	}
}

func TestCheckSame_timeZone(t *testing.T) {
	t.Parallel()
	q := parse(t, sqltext.Trino, "SELECT date_trunc('day', tz) FROM t")
	if err := sqltext.CheckSame(q, sqltext.Options{Columns: sameColumns, TimeZone: "Europe/Berlin"}); err == nil || !strings.Contains(err.Error(), "outside UTC") {
		t.Errorf("date_trunc of an instant in Berlin: %v, want a refusal", err)
	}
	q = parse(t, sqltext.Trino, "SELECT count(*) FROM t WHERE x + 1 > 2")
	if err := sqltext.CheckSame(q, sqltext.Options{}); err == nil {
		t.Error("columns that are not known: accepted, want a refusal")
	}
}

// TestSameSemantics_bindInDuckDB checks that DuckDB has every function of the list.
func TestSameSemantics_bindInDuckDB(t *testing.T) {
	t.Parallel()
	db := duckdb(t)
	syntax := strings.Fields("and or not like extract coalesce nullif greatest least row_number rank dense_rank")
	for _, d := range []sqltext.Dialect{sqltext.Trino, sqltext.Spark} {
		names := sqltext.SameSemantics(d)
		if len(names) < 30 {
			t.Errorf("%s: list has %d entries", d, len(names))
		}
		for _, n := range names {
			if strings.ContainsAny(n, "+-*=<>!|") || slices.Contains(syntax, n) {
				continue // syntax, not entries of the function table
			}
			if got := queryInts(t, db, "SELECT count(*) FROM duckdb_functions() WHERE function_name = '"+n+"'"); got[0] == 0 {
				t.Errorf("%s: DuckDB has no function %s", d, n)
			}
		}
	}
}
