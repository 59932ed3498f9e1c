package sqltext_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/mv/sqltext"
)

func TestRewriteTables(t *testing.T) {
	t.Parallel()
	twin := []string{"ns", "t~7"}
	for _, c := range []struct {
		d    sqltext.Dialect
		text string
		reps []sqltext.Replacement
		want string
	}{
		{sqltext.DuckDB, "SELECT * FROM t", []sqltext.Replacement{{Name: twin, Predicate: "d = 1"}}, `SELECT * FROM (SELECT * FROM "ns"."t~7" WHERE d = 1) AS "t"`},
		{sqltext.DuckDB, "SELECT t.x FROM a.b.T WHERE x OR y -- end", []sqltext.Replacement{{Name: twin}}, `SELECT t.x FROM (SELECT * FROM "ns"."t~7") AS "T" WHERE x OR y -- end`},
		{sqltext.DuckDB, "SELECT * FROM t /* c */ AS x (a, b), u", []sqltext.Replacement{{Name: twin}}, `SELECT * FROM (SELECT * FROM "ns"."t~7") AS x (a, b), u`},
		{
			sqltext.DuckDB, "SELECT * FROM t x JOIN t y USING (k)",
			[]sqltext.Replacement{{Ref: 1, Predicate: "k > 1"}, {Ref: 0, Name: twin}},
			`SELECT * FROM (SELECT * FROM "ns"."t~7") x JOIN (SELECT * FROM t WHERE k > 1) y USING (k)`,
		},
		{sqltext.DuckDB, "SELECT * FROM s: t", []sqltext.Replacement{{Name: twin}}, `SELECT * FROM (SELECT * FROM "ns"."t~7") AS "s"`},
		{sqltext.DuckDB, "FROM t SELECT x", []sqltext.Replacement{{Name: twin}}, `FROM (SELECT * FROM "ns"."t~7") AS "t" SELECT x`},
		{sqltext.DuckDB, "WITH t AS (SELECT * FROM t) SELECT * FROM t", []sqltext.Replacement{{Name: twin}}, `WITH t AS (SELECT * FROM (SELECT * FROM "ns"."t~7") AS "t") SELECT * FROM t`},
		{sqltext.DuckDB, "SELECT * FROM v", []sqltext.Replacement{{Select: "SELECT a FROM x -- why"}}, "SELECT * FROM (SELECT a FROM x -- why\n) AS \"v\""},
		{sqltext.DuckDB, `SELECT x FROM "a""b" WHERE x IN (SELECT y FROM u)`, []sqltext.Replacement{{Ref: 1, Name: twin}}, `SELECT x FROM "a""b" WHERE x IN (SELECT y FROM (SELECT * FROM "ns"."t~7") AS "u")`},
		{sqltext.Spark, "SELECT * FROM `a b`.t LATERAL VIEW explode(x) AS y", []sqltext.Replacement{{Name: twin, Predicate: "`d` IS NULL"}}, "SELECT * FROM (SELECT * FROM `ns`.`t~7` WHERE `d` IS NULL) AS `t` LATERAL VIEW explode(x) AS y"},
		{sqltext.Trino, `SELECT * FROM "T" CROSS JOIN UNNEST("T".a) AS u (b)`, []sqltext.Replacement{{Name: twin}}, `SELECT * FROM (SELECT * FROM "ns"."t~7") AS "T" CROSS JOIN UNNEST("T".a) AS u (b)`},
		{sqltext.DuckDB, "TABLE ns.t ORDER BY 1", []sqltext.Replacement{{Name: twin}}, `SELECT * FROM (SELECT * FROM "ns"."t~7") AS "t" ORDER BY 1`},
		{sqltext.DuckDB, "SELECT t.s.f FROM t", []sqltext.Replacement{{Name: twin}}, `SELECT t.s.f FROM (SELECT * FROM "ns"."t~7") AS "t"`},
	} {
		got, err := sqltext.RewriteTables(parse(t, c.d, c.text), c.reps)
		if err != nil || got != c.want {
			t.Errorf("RewriteTables(%q)\n got %q, %v\nwant %q", c.text, got, err, c.want)
		}
	}
}

func TestRewriteTables_refuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		d    sqltext.Dialect
		text string
		rep  sqltext.Replacement
		want string
	}{
		{sqltext.DuckDB, "SELECT ns.t.x FROM ns.t", sqltext.Replacement{}, "write t.x instead"},
		{sqltext.DuckDB, "SELECT ns.t.* FROM ns.t", sqltext.Replacement{}, "write t.* instead"},
		{sqltext.DuckDB, "SELECT rowid FROM t", sqltext.Replacement{}, "hidden column rowid"},
		{sqltext.Trino, `SELECT "$path" FROM t`, sqltext.Replacement{}, `hidden column "$path"`},
		{sqltext.Spark, "SELECT _file FROM t", sqltext.Replacement{}, "hidden column _file"},
		{sqltext.DuckDB, "SELECT x FROM t TABLESAMPLE 5%", sqltext.Replacement{}, "sampled"},
		{sqltext.Trino, "SELECT x FROM t FOR VERSION AS OF 5", sqltext.Replacement{}, "picks a version"},
		{sqltext.DuckDB, "SELECT x FROM 't.csv'", sqltext.Replacement{}, "is a file"},
		{sqltext.DuckDB, "SELECT x FROM t", sqltext.Replacement{Ref: 1}, "no table reference 1"},
		{sqltext.DuckDB, "WITH c AS (SELECT 1) SELECT * FROM t, c", sqltext.Replacement{Name: []string{"C"}}, "another shape"},
		{sqltext.DuckDB, "WITH c AS (SELECT 1) SELECT * FROM v, c", sqltext.Replacement{Select: "SELECT * FROM c"}, "another shape"},
		{sqltext.DuckDB, "SELECT x FROM t", sqltext.Replacement{Predicate: "a) UNION (SELECT 1"}, "does not parse"},
		{sqltext.DuckDB, "SELECT x FROM t", sqltext.Replacement{Predicate: "'"}, "does not parse"},
	} {
		got, err := sqltext.RewriteTables(parse(t, c.d, c.text), []sqltext.Replacement{c.rep})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("RewriteTables(%q, %+v) = %q, %v, want an error with %q", c.text, c.rep, got, err, c.want)
		}
	}
}

// TestRewriteTables_corpus replaces every reference of every query and checks that the
// new text reads the new tables and nothing else, and that putting the old names back
// gives the query that had subqueries in their place all along.
func TestRewriteTables_corpus(t *testing.T) {
	t.Parallel()
	rewritten := 0
	for _, c := range corpus(t) {
		q, err := sqltext.Parse(c.dialect, c.text)
		if err != nil || !q.TablesComplete() {
			continue
		}
		var reps []sqltext.Replacement
		for _, ref := range q.Tables() {
			reps = append(reps, sqltext.Replacement{Ref: ref.Index, Name: []string{"twins", ref.String() + "~1"}, Predicate: "1 = 1"})
		}
		text, err := sqltext.RewriteTables(q, reps)
		if err != nil {
			if !strings.Contains(err.Error(), "version") && !strings.Contains(err.Error(), "sampled") && !strings.Contains(err.Error(), "file") && !strings.Contains(err.Error(), "hidden") {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		rewritten++
		after := parse(t, c.dialect, text)
		var got, want []string
		for _, ref := range after.Tables() {
			got = append(got, ref.String())
		}
		for _, ref := range q.Tables() {
			want = append(want, "twins."+ref.String()+"~1")
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: rewritten text reads %q, want %q", c.name, got, want)
		}
		if len(after.Outputs()) != len(q.Outputs()) || len(after.Aggregates()) != len(q.Aggregates()) || !slices.Equal(after.GroupKeys(), q.GroupKeys()) {
			t.Errorf("%s: rewritten text has other outputs, aggregates or keys", c.name)
		}
	}
	if rewritten < 150 {
		t.Errorf("only %d queries were rewritten", rewritten)
	}
}

func TestRewrite_edits(t *testing.T) {
	t.Parallel()
	q := parse(t, sqltext.DuckDB, "SELECT a FROM t")
	got, err := sqltext.Rewrite(q, []sqltext.Edit{{Start: 14, End: 15, Text: "u"}, {Start: 7, End: 8, Text: "b, c"}, {Start: 0, End: 0, Text: "/**/"}})
	if want := "/**/SELECT b, c FROM u"; err != nil || got != want {
		t.Errorf("Rewrite = %q, %v, want %q", got, err, want)
	}
	for _, bad := range [][]sqltext.Edit{{{Start: 1, End: 3}, {Start: 2, End: 4}}, {{Start: 3, End: 2}}, {{Start: 10, End: 16}}, {{Start: -1, End: 2}}} {
		if got, err := sqltext.Rewrite(q, bad); err == nil {
			t.Errorf("Rewrite(%v) = %q, want an error", bad, got)
		}
	}
}

func TestQuote(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"t", `a"b`, "c`d", "e.f", "ü ☃", "select"} {
		for _, d := range []sqltext.Dialect{sqltext.DuckDB, sqltext.Trino, sqltext.Spark} {
			refs := parse(t, d, "SELECT * FROM "+sqltext.QuoteName(d, []string{name, name})).Tables()
			if len(refs) != 1 || !slices.Equal(refs[0].Parts, []string{name, name}) {
				t.Errorf("%s reads the quoted name %q as %v", d, name, refs)
			}
		}
	}
	for _, s := range []string{"", "it's", `a\'b`, "x\ny", `"`, "☃", `\`, "''"} {
		for _, d := range []sqltext.Dialect{sqltext.DuckDB, sqltext.Trino, sqltext.Spark} {
			toks, err := sqltext.Lex(d, sqltext.QuoteString(d, s))
			if err != nil || len(toks) != 2 || toks[0].Value != s {
				t.Errorf("%s reads the quoted string %q as %v, %v", d, s, toks, err)
			}
		}
	}
}
