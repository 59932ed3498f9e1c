package exectest

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/catalogd/catalogd/catalog"
	"github.com/catalogd/catalogd/mv"
)

var describeTests = []testCase{
	{name: "Types", run: describeTypes},
	{name: "SourceTypesSurvive", run: describeSources},
	{name: "RefusedTypes", run: describeRefused},
	{name: "Names", run: describeNames},
	{name: "ErrorsNamePositions", run: describeErrors},
	{name: "TimeZone", run: describeZone},
	{name: "MatchesRun", run: describeMatchesRun},
}

func stub(fields string) mv.Relation {
	return mv.Relation{Name: "src", Schema: schemaJSON(fields)}
}

const stubFields = `{"id":1,"name":"id","required":true,"type":"int"},{"id":2,"name":"n","required":false,"type":"long"},{"id":3,"name":"d","required":false,"type":"decimal(10, 2)"},
	{"id":4,"name":"ts","required":false,"type":"timestamptz"},{"id":5,"name":"g","required":false,"type":"geometry"},{"id":6,"name":"s","required":false,"type":{"type":"struct","fields":[{"id":7,"name":"v","required":false,"type":"variant"}]}}`

func describe(t *testing.T, e mv.Engine, sql string) ([]mv.EngineColumn, error) {
	t.Helper()
	return e.Describe(t.Context(), mv.DescribeRequest{SQL: sql, Relations: []mv.Relation{stub(stubFields)}})
}

func describeTypes(t *testing.T, e mv.Engine) {
	cases := []struct {
		expr, typ string
		coerced   bool
	}{
		{"true", "boolean", false},
		{"1::TINYINT", "int", false},
		{"1::SMALLINT", "int", false},
		{"id", "int", false},
		{"n", "long", false},
		{"sum(n)", "long", true},
		{"1::UTINYINT", "int", false},
		{"1::UINTEGER", "long", false},
		{"1::UBIGINT", "decimal(20, 0)", false},
		{"1::FLOAT", "float", false},
		{"avg(n)", "double", false},
		{"sum(d)", "decimal(38, 2)", false},
		{"count(*)", "long", false},
		{"'x'", "string", false},
		{"'x'::BLOB", "binary", false},
		{"uuid()", "uuid", false},
		{"TIMESTAMP '2024-01-01'", "timestamp", false},
		{"TIMESTAMP_NS '2024-01-01'", "timestamp_ns", false},
		{"max(ts)", "timestamptz", false},
		{"DATE '2024-01-01'", "date", false},
		{"TIME '10:00'", "time", false},
		{"'a'::ENUM('a')", "string", false},
		{"'{}'::JSON", "string", false},
		{"{'a': 1, 'b': ['x']}", `{"type":"struct","fields":[{"id":1,"name":"a","required":false,"type":"int"},{"id":2,"name":"b","required":false,"type":{"type":"list","element-id":3,"element":"string","element-required":false}}]}`, false},
		{"MAP {'k': 1::HUGEINT}", `{"type":"map","key-id":1,"key":"string","value-id":2,"value":"long","value-required":false}`, true},
	}
	exprs := make([]string, len(cases))
	want := make([]mv.EngineColumn, len(cases))
	for i, c := range cases {
		name := "c" + string(rune('a'+i))
		exprs[i] = "any_value(" + c.expr + ")"
		if strings.Contains(c.expr, "(n)") || strings.Contains(c.expr, "(d)") || strings.Contains(c.expr, "(ts)") || strings.Contains(c.expr, "(*)") {
			exprs[i] = c.expr
		}
		exprs[i] += " AS " + name
		want[i] = mv.EngineColumn{Name: name, Type: c.typ, Coerced: c.coerced, Nullable: true}
	}
	got, err := describe(t, e, "SELECT "+strings.Join(exprs, ", ")+" FROM src;")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
}

func describeSources(t *testing.T, e mv.Engine) {
	types := []string{"boolean", "int", "long", "float", "double", "decimal(38, 10)", "date", "time", "timestamp", "timestamptz", "timestamp_ns", "string", "uuid", "binary"}
	var fields, want []string
	for i, typ := range types {
		name := "c" + string(rune('a'+i))
		fields = append(fields, `{"id":`+string(rune('1'+i%9))+`,"name":"`+name+`","required":false,"type":"`+typ+`"}`)
		want = append(want, typ)
	}
	cols, err := e.Describe(t.Context(), mv.DescribeRequest{SQL: "SELECT * FROM src", Relations: []mv.Relation{stub(strings.Join(fields, ","))}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range cols {
		got = append(got, c.Type)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("SELECT * changes types (-want +got):\n%s", diff)
	}
}

// invalid expects a refusal with all the given texts.
func invalid(t *testing.T, e mv.Engine, sql string, texts ...string) {
	t.Helper()
	cols, err := describe(t, e, sql)
	if err == nil {
		t.Errorf("%s is accepted: %v", sql, cols)
		return
	}
	if k := catalog.KindOf(err); k != catalog.KindInvalid {
		t.Errorf("%s: kind %d, want KindInvalid: %v", sql, k, err)
	}
	for _, text := range texts {
		if !strings.Contains(func() *catalog.Error {
			target := &catalog.Error{}
			_ = errors.As(err, &target)
			return target
		}().Msg, text) {
			t.Errorf("%s: %q does not say %q", sql, func() *catalog.Error {
				target := &catalog.Error{}
				_ = errors.As(err, &target)
				return target
			}().Msg, text)
		}
	}
}

func describeRefused(t *testing.T, e mv.Engine) {
	invalid(t, e, "SELECT id, INTERVAL 1 DAY AS step FROM src", `"step"`, "INTERVAL", "CAST")
	invalid(t, e, "SELECT TIMETZ '10:00+02' AS x FROM src", `"x"`, "TIME WITH TIME ZONE", "AS TIME")
	invalid(t, e, "SELECT '101'::BIT AS x FROM src", `"x"`, "BIT")
	invalid(t, e, "SELECT 1::UNION(a INTEGER) AS x FROM src", `"x"`, "UNION")
	invalid(t, e, "SELECT 1::VARIANT AS x FROM src", `"x"`, "VARIANT")
	invalid(t, e, "SELECT 1::UHUGEINT AS x FROM src", `"x"`, "UHUGEINT")
	invalid(t, e, "SELECT [INTERVAL 1 DAY] AS x FROM src", `"x"`, "INTERVAL")
	invalid(t, e, "SELECT * FROM src", `"g"`)
	invalid(t, e, "SELECT s FROM src", `"s"`)
}

func describeNames(t *testing.T, e mv.Engine) {
	invalid(t, e, "SELECT id, n AS id FROM src", `"id"`, "twice", "AS")
	invalid(t, e, `SELECT id, n AS "ID" FROM src`, `"ID"`, "twice")
}

func describeErrors(t *testing.T, e mv.Engine) {
	invalid(t, e, "SELECT id,\n  ä.x,\n  zz FROM src, (SELECT 1 AS x) ä", "line 3, column 3", "zz")
	invalid(t, e, "SELECT id FROM src WHERE", "line 1", "syntax error")
	invalid(t, e, "SELECT frobnicate(id) FROM src", "line 1, column 8", "frobnicate")
	invalid(t, e, "SELECT id\nFROM nowhere", "line 2, column 6", "nowhere")
	invalid(t, e, "SELECT id FROM src GROUP BY n", "id")
	invalid(t, e, "SELECT id FROM src WHERE id = ?", "parameter")
	invalid(t, e, "", "single SELECT")
	invalid(t, e, "SELECT '\x00'", "UTF-8")
	_, err := describe(t, e, "SELECT zz FROM src")
	for _, noise := range []string{"LINE 1", "Binder Error", "{", "\n", "pg_"} {
		if err == nil || strings.Contains(func() *catalog.Error {
			target := &catalog.Error{}
			_ = errors.As(err, &target)
			return target
		}().Msg, noise) {
			t.Errorf("the message %v holds %q", err, noise)
		}
	}
}

func describeZone(t *testing.T, e mv.Engine) {
	_, err := e.Describe(t.Context(), mv.DescribeRequest{SQL: "SELECT 1 AS a", TimeZone: "Mars/Olympus"})
	if catalog.KindOf(err) != catalog.KindInvalid || !strings.Contains(err.Error(), "Mars/Olympus") {
		t.Errorf("Describe in an unknown zone: %v", err)
	}
}

// describeMatchesRun writes what Describe promised.
func describeMatchesRun(t *testing.T, e mv.Engine) {
	s := numbersTable(t, 2, nil)
	s.append(numbers(0, 20))
	in := s.input("src")
	sql := "SELECT part, count(*) AS c, sum(id) AS total, avg(id) AS mean, list(s ORDER BY s) AS l, {'a': min(id)} AS st FROM src GROUP BY part"
	described, err := e.Describe(t.Context(), mv.DescribeRequest{SQL: sql, Relations: []mv.Relation{in.Relation}})
	if err != nil {
		t.Fatal(err)
	}
	var cols []mv.Column
	for i, c := range described {
		cols = append(cols, mv.Column{Name: c.Name, Type: strings.NewReplacer(`"id":1`, `"id":101`, `"element-id":1`, `"element-id":100`).Replace(c.Type), ID: i + 1})
	}
	if got := runRows(t, e, task(t, sql, cols, in)); len(got) != 3 {
		t.Errorf("rows = %q, want 3", got)
	}
}
