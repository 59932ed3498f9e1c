package exectest

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/schema"
	"github.com/apache/iceberg-go"

	"github.com/catalogd/catalogd/catalog"
	"github.com/catalogd/catalogd/mv"
)

var writeTests = []testCase{
	{name: "FieldIDs", run: writeFieldIDs},
	{name: "CastsByPosition", run: writeCasts},
	{name: "OverflowNamesColumn", run: writeOverflow},
	{name: "LossyCastsRefused", run: writeLossy},
	{name: "MismatchedTypesRefused", run: writeMismatch},
	{name: "ColumnCount", run: writeCount},
	{name: "NoRowsNoFiles", run: writeNothing},
	{name: "UniqueNames", run: writeUnique},
	{name: "BytesRead", run: writeBytesRead},
	{name: "CommentsAndSemicolon", run: writeComments},
	{name: "Enums", run: writeEnums},
	{name: "InfiniteTimes", run: writeInfinity},
}

// one is an input with one row, for queries that do not look at it.
func one(t *testing.T) mv.Input {
	t.Helper()
	s := newSource(t, tableSpec{version: 2, schema: iceberg.NewSchema(0, nf(1, "id", p.Int32))})
	s.append(`[{"id":1}]`)
	return s.input("src")
}

func col(name, typ string, id int) mv.Column { return mv.Column{Name: name, Type: typ, ID: id} }

func writeFieldIDs(t *testing.T, e mv.Engine) {
	cols := []mv.Column{
		col("a b", "long", 11),
		col("l", `{"type":"list","element-id":13,"element":{"type":"struct","fields":[{"id":14,"name":"x","required":false,"type":"int"},{"id":15,"name":"y","required":false,"type":"string"}]},"element-required":false}`, 12),
		col("m", `{"type":"map","key-id":17,"key":"string","value-id":18,"value":"double","value-required":false}`, 16),
	}
	tk := task(t, "SELECT 1::BIGINT, [{'x': 1, 'y': 'a'}], MAP {'k': 0.5::DOUBLE} FROM src", cols, one(t))
	res, err := e.Run(t.Context(), tk, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Files) != 1 {
		t.Fatalf("files = %+v, want one", res.Files)
	}
	same(t, []string{"a b 11", "l 12", "element 13", "x 14", "y 15", "m 16", "key 17", "value 18"}, fieldIDs(t, res.Files[0].Path))
	info, err := os.Stat(res.Files[0].Path)
	if err != nil || info.Size() != res.Files[0].Bytes || res.Files[0].Records != 1 {
		t.Errorf("file = %+v, stat %v %v", res.Files[0], info, err)
	}
	same(t, []string{`a b=1 l=[{"x":1,"y":"a"}] m=[{"key":"k","value":0.5}] `}, storage(t, tk, res).rows())
}

// fieldIDs lists the named columns of a Parquet file with their ids.
func fieldIDs(t *testing.T, path string) []string {
	t.Helper()
	r, err := file.OpenParquetFile(path, false)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var out []string
	var walk func(n schema.Node)
	walk = func(n schema.Node) {
		if n.FieldID() >= 0 {
			out = append(out, n.Name()+" "+strconv.Itoa(int(n.FieldID())))
		}
		if g, ok := n.(*schema.GroupNode); ok {
			for i := range g.NumFields() {
				walk(g.Field(i))
			}
		}
	}
	root := r.MetaData().Schema.Root()
	for i := range root.NumFields() {
		walk(root.Field(i))
	}
	return out
}

func writeCasts(t *testing.T, e mv.Engine) {
	cols := []mv.Column{
		col("sum", "long", 1), col("n", "int", 2), col("d", "decimal(12, 2)", 3), col("f", "float", 4),
		col("u", "decimal(20, 0)", 5), col("l", `{"type":"list","element-id":7,"element":"long","element-required":false}`, 6),
		col("ts", "timestamp", 8), col("day", "date", 9), col("e", "double", 10),
	}
	sql := `SELECT sum(id) + 9223372036854775806, id::BIGINT, 1.50::DECIMAL(5,2), 0.5::DOUBLE, 18446744073709551615::UBIGINT, [sum(id), NULL],
		TIMESTAMP_NS '2024-01-01 00:00:00.000001', TIMESTAMP '2024-01-01 00:00:00', 3 FROM src GROUP BY id`
	got := runRows(t, e, task(t, sql, cols, one(t)))
	same(t, []string{`sum=9223372036854775807 n=1 d="1.5" f=0.5 u="18446744073709551615" l=[1,null] ts="2024-01-01T00:00:00.000001" day="2024-01-01" e=3 `}, got)
}

func writeOverflow(t *testing.T, e mv.Engine) {
	in := one(t)
	for _, c := range []struct{ expr, typ, value string }{
		{"9223372036854775808::HUGEINT", "long", "9223372036854775808"},
		{"-2147483649", "int", "-2147483649"},
		{"123456.78::DECIMAL(8,2)", "decimal(7, 2)", "123456.78"},
		{"[1::HUGEINT << 64]", `{"type":"list","element-id":7,"element":"long","element-required":false}`, "18446744073709551616"},
	} {
		refused(t, e, task(t, "SELECT id, "+c.expr+" AS anything FROM src", []mv.Column{col("id", "int", 1), col("total", c.typ, 2)}, in), catalog.KindUnprocessable, `"total"`)
		refused(t, e, task(t, "SELECT id, "+c.expr+" AS anything FROM src", []mv.Column{col("id", "int", 1), col("total", c.typ, 2)}, in), catalog.KindUnprocessable, c.value)
	}
}

func writeLossy(t *testing.T, e mv.Engine) {
	in := one(t)
	for _, c := range []struct{ expr, typ string }{
		{"0.1::DOUBLE", "float"},
		{"1.5::DOUBLE", "long"},
		{"1.55::DECIMAL(5,2)", "decimal(5, 1)"},
		{"TIMESTAMP '2024-01-01 00:00:01'", "date"},
		{"TIMESTAMP_NS '2024-01-01 00:00:00.000000001'", "timestamp"},
		{"9007199254740993", "double"},
	} {
		refused(t, e, task(t, "SELECT "+c.expr+" FROM src", []mv.Column{col("c", c.typ, 1)}, in), catalog.KindUnprocessable, `column "c": value `)
	}
}

func writeMismatch(t *testing.T, e mv.Engine) {
	in := one(t)
	for _, c := range []struct{ expr, typ string }{
		{"'1'", "int"},
		{"1", "string"},
		{"TIMESTAMP '2024-01-01 00:00:00'", "timestamptz"},
		{"TIMESTAMPTZ '2024-01-01 00:00:00+00'", "timestamp"},
		{"{'a': 1}", `{"type":"struct","fields":[{"id":2,"name":"b","required":false,"type":"int"}]}`},
		{"INTERVAL 1 DAY", "string"},
		{"'x'::BLOB", "fixed[1]"},
	} {
		refused(t, e, task(t, "SELECT "+c.expr+" FROM src", []mv.Column{col("c", c.typ, 1)}, in), catalog.KindUnprocessable, `column "c"`)
	}
}

func writeCount(t *testing.T, e mv.Engine) {
	refused(t, e, task(t, "SELECT id, id AS b FROM src", []mv.Column{col("id", "int", 1)}, one(t)), catalog.KindUnprocessable, "2 columns")
}

func writeNothing(t *testing.T, e mv.Engine) {
	for _, part := range [][]mv.PartitionExpr{nil, {{FieldID: 1000, Column: "id", Transform: "identity"}}} {
		tk := task(t, "SELECT id FROM src WHERE id > 5", []mv.Column{col("id", "int", 1)}, one(t))
		tk.Partition = part
		res, err := e.Run(t.Context(), tk, nil)
		if err != nil || len(res.Files) != 0 || res.Rows != 0 {
			t.Errorf("Run = %+v, %v, want no files", res, err)
		}
		left, err := filepath.Glob(filepath.Join(tk.Output, "*.parquet"))
		if err != nil || len(left) != 0 {
			t.Errorf("left in the folder: %v %v", left, err)
		}
	}
}

func writeUnique(t *testing.T, e mv.Engine) {
	tk := task(t, "SELECT id FROM src", []mv.Column{col("id", "int", 1)}, one(t))
	tk.RefreshID = "a/../b c"
	var paths []string
	for range 2 { // into the same folder
		res, err := e.Run(t.Context(), tk, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range res.Files {
			if filepath.Dir(f.Path) != tk.Output || !strings.HasPrefix(filepath.Base(f.Path), "a_.._b_c-") {
				t.Errorf("file %s, want a name with the refresh id in %s", f.Path, tk.Output)
			}
			paths = append(paths, f.Path)
		}
	}
	slices.Sort(paths)
	if len(slices.Compact(paths)) != 2 {
		t.Errorf("files = %v, want two names", paths)
	}
}

func writeBytesRead(t *testing.T, e mv.Engine) {
	s := numbersTable(t, 2, nil)
	s.append(numbers(0, 3000))
	in := s.input("src")
	r, err := file.OpenParquetFile(strings.TrimPrefix(in.Files[0].Path, "file://"), false)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	chunk := func(i int) int64 {
		var n int64
		for rg := range r.NumRowGroups() {
			c, err := r.MetaData().RowGroup(rg).ColumnChunk(i)
			if err != nil {
				t.Fatal(err)
			}
			n += c.TotalCompressedSize()
		}
		return n
	}
	for _, c := range []struct {
		sql  string
		want int64
	}{
		{"SELECT id FROM src", chunk(0)},
		{"SELECT id FROM src WHERE part = 1", chunk(0) + chunk(2)},
		{"SELECT id FROM src WHERE s IN (SELECT s FROM src)", chunk(0) + 2*chunk(1)},
		{"SELECT 7 AS id", 0},
	} {
		res, err := e.Run(t.Context(), task(t, c.sql, []mv.Column{col("id", "int", 1)}, in), nil)
		if err != nil {
			t.Fatal(err)
		}
		if res.BytesRead != c.want {
			t.Errorf("%s: BytesRead = %d, want %d", c.sql, res.BytesRead, c.want)
		}
		if res.CPU <= 0 {
			t.Errorf("%s: CPU = %v, want some", c.sql, res.CPU)
		}
	}
}

func writeComments(t *testing.T, e mv.Engine) {
	in := one(t)
	for _, sql := range []string{"SELECT id FROM src -- end", "SELECT id FROM src;", "SELECT id FROM src; -- ; done\n", "/* ; */ SELECT id FROM src /* x */ ; /* ' */ ", "SELECT id FROM src WHERE ';' <> '--';"} {
		same(t, []string{"id=1 "}, runRows(t, e, task(t, sql, []mv.Column{col("id", "int", 1)}, in)))
	}
}

func writeEnums(t *testing.T, e mv.Engine) {
	same(t, []string{`s="b" `}, runRows(t, e, task(t, "SELECT 'b'::ENUM('a', 'b') FROM src", []mv.Column{col("s", "string", 1)}, one(t))))
}

func writeInfinity(t *testing.T, e mv.Engine) {
	in := one(t)
	for typ, expr := range map[string]string{"date": "DATE 'infinity'", "timestamp": "TIMESTAMP '-infinity'", "timestamptz": "TIMESTAMPTZ 'infinity'"} {
		refused(t, e, task(t, "SELECT "+expr+" FROM src", []mv.Column{col("c", typ, 1)}, in), catalog.KindUnprocessable, `column "c"`)
	}
}
