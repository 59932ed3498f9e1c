package exectest

import (
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"github.com/catalogd/catalogd/mv"
)

var partitionTests = []testCase{
	{name: "Transforms", run: partitionTransforms},
	{name: "TwoFields", run: partitionTwo},
	{name: "LongAndOddText", run: partitionText},
	{name: "ClashingColumnName", run: partitionClash},
}

// partitionRows hold the values that partition transforms get wrong: NULL, negative
// numbers, times before 1970, the ends of days in UTC, text outside ASCII.
const partitionRows = `[{},
 {"i":-1,"l":-10,"d":"-0.05","day":"1969-12-31","tod":"00:00:00.000001","ts":"1969-12-31 23:59:59.999999","tz":"1969-12-31 23:59:59.999999Z","ns":"1969-12-31 23:59:59.999999999","s":"iceberg","u":"f79c3e09-677c-4bbd-a479-3f349cb785e7","b":"AAECAw=="},
 {"i":0,"l":0,"d":"0.00","day":"1970-01-01","tod":"22:31:08","ts":"1970-01-01 00:00:00","tz":"1970-01-01 00:00:00Z","ns":"1970-01-01 00:00:00","s":"","u":"00000000-0000-0000-0000-000000000000","b":""},
 {"i":34,"l":9223372036854775807,"d":"14.20","day":"2017-11-16","tod":"22:31:08","ts":"2017-11-16 22:31:08","tz":"2017-11-16 22:31:08Z","ns":"2017-11-16 22:31:08.000001001","s":"añ🎉xyz","u":"ffffffff-ffff-ffff-ffff-ffffffffffff","b":"/////w=="},
 {"i":-2147483648,"l":-9223372036854775808,"d":"-9999999.99","day":"0001-01-01","tod":"23:59:59.999999","ts":"1900-02-28 23:00:00","tz":"2024-02-29 23:30:00Z","ns":"1700-12-31 23:59:59.5","s":"añ🎊xyz","u":"00112233-4455-6677-8899-aabbccddeeff","b":"AAEC"},
 {"i":35,"l":7,"d":"0.99","day":"2024-02-29","tod":"12:00:00","ts":"2024-12-31 23:59:59","tz":"2025-01-01 00:30:00Z","ns":"2024-02-29 00:00:00","s":"__HIVE_DEFAULT_PARTITION__","u":"f79c3e09-677c-4bbd-a479-3f349cb785e8","b":"AA=="}]`

func partitionSource(t *testing.T) *source {
	s := newSource(t, tableSpec{version: 3, schema: iceberg.NewSchema(0, nf(1, "i", p.Int32), nf(2, "l", p.Int64), nf(3, "d", iceberg.DecimalTypeOf(9, 2)),
		nf(4, "day", p.Date), nf(5, "tod", p.Time), nf(6, "ts", p.Timestamp), nf(7, "tz", p.TimestampTz), nf(8, "ns", p.TimestampNs),
		nf(9, "s", p.String), nf(10, "u", p.UUID), nf(11, "b", p.Binary))})
	s.append(partitionRows)
	return s
}

// partitionTransforms compares every file's tuple with iceberg-go's transform of every
// row in it.
func partitionTransforms(t *testing.T, e mv.Engine) {
	s := partitionSource(t)
	in := s.input("src")
	all := s.rows()
	cases := map[string][]string{
		"identity": {"i", "l", "d", "day", "tod", "ts", "tz", "ns", "s", "u", "b"},
		"year":     {"day", "ts", "tz", "ns"}, "month": {"day", "ts", "tz", "ns"}, "day": {"day", "ts", "tz", "ns"}, "hour": {"ts", "tz", "ns"},
		"bucket[5]":   {"i", "l", "d", "day", "tod", "ts", "tz", "ns", "s", "u", "b"},
		"truncate[3]": {"i", "l", "d", "s", "b"}, "truncate[10]": {"i", "l", "d"}, "void": {"i"},
	}
	for transform, columns := range cases {
		for _, c := range columns {
			t.Run(transform+"/"+c, func(t *testing.T) {
				t.Parallel()
				tk := task(t, "SELECT * FROM src", s.columns(), in)
				tk.TimeZone = "America/Los_Angeles" // must not matter
				tk.Partition = []mv.PartitionExpr{{FieldID: 1000, Column: c, Transform: transform}}
				res, err := e.Run(t.Context(), tk, nil)
				if err != nil {
					t.Fatal(err)
				}
				same(t, all, storage(t, tk, res).rows())
				tuples := checkTuples(t, tk, res)
				if transform != "void" && len(tuples) != len(res.Files) {
					t.Errorf("%d files for %d tuples", len(res.Files), len(tuples))
				}
			})
		}
	}
}

// checkTuples returns the distinct tuples after it has checked every row against them.
func checkTuples(t *testing.T, tk mv.Task, res mv.Result) map[string]bool {
	t.Helper()
	tuples := make(map[string]bool)
	for _, f := range res.Files {
		part := storage(t, tk, mv.Result{Files: []mv.OutputFile{f}})
		var tuple []string
		for _, p := range tk.Partition {
			want := transformed(t, part, p)
			if len(want) != 1 {
				t.Fatalf("file %s straddles the partitions %v of %s", f.Path, want, p.Transform)
			}
			if p.Transform == "void" {
				continue
			}
			got, ok := f.Partition[strconv.Itoa(p.FieldID)]
			if !ok || !want[string(got)] {
				t.Errorf("%s: tuple %s, iceberg-go has %v", f.Path, got, want)
			}
			tuple = append(tuple, string(got))
		}
		tuples[strings.Join(tuple, "|")] = true
	}
	return tuples
}

// transformed applies iceberg-go's transform to every value of a column.
func transformed(t *testing.T, s *source, p mv.PartitionExpr) map[string]bool {
	t.Helper()
	tr, err := iceberg.ParseTransform(p.Transform)
	if err != nil {
		t.Fatal(err)
	}
	f, _ := s.tbl.Schema().FindFieldByName(p.Column)
	out := make(map[string]bool)
	for _, lit := range literals(t, s, f) {
		out[literalJSON(t, tr.Apply(lit))] = true
	}
	return out
}

// literals reads a column through iceberg-go's bounds: each row becomes a literal.
func literals(t *testing.T, s *source, f iceberg.NestedField) []iceberg.Optional[iceberg.Literal] {
	t.Helper()
	tbl, err := s.tbl.Scan(table.WithSelectedFields(f.Name)).ToArrowTable(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tbl.Release()
	var out []iceberg.Optional[iceberg.Literal]
	for _, chunk := range tbl.Column(0).Data().Chunks() {
		for i := range chunk.Len() {
			if chunk.IsNull(i) {
				out = append(out, iceberg.Optional[iceberg.Literal]{})
				continue
			}
			out = append(out, iceberg.Optional[iceberg.Literal]{Valid: true, Val: literalOf(t, f.Type, chunk, i)})
		}
	}
	return out
}

func literalJSON(t *testing.T, v iceberg.Optional[iceberg.Literal]) string {
	t.Helper()
	if !v.Valid || v.Val == nil {
		return "null"
	}
	var b []byte
	var err error
	switch x := v.Val.Any().(type) {
	case []byte:
		b, err = json.Marshal(hex.EncodeToString(x))
	case iceberg.Decimal:
		b, err = json.Marshal(x.Val.ToString(int32(x.Scale)))
	default:
		b, err = json.Marshal(x)
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func partitionTwo(t *testing.T, e mv.Engine) {
	s := numbersTable(t, 2, nil)
	s.append(numbers(0, 42))
	s.append(`[{"id":null,"s":null,"part":1},{"id":7,"s":null,"part":null}]`)
	tk := task(t, "SELECT * FROM src", s.columns(), s.input("src"))
	tk.Partition = []mv.PartitionExpr{{FieldID: 1000, Column: "part", Transform: "identity"}, {FieldID: 1001, Column: "s", Transform: "truncate[1]"}, {FieldID: 1002, Column: "id", Transform: "bucket[3]"}}
	res, err := e.Run(t.Context(), tk, nil)
	if err != nil {
		t.Fatal(err)
	}
	same(t, s.rows(), storage(t, tk, res).rows())
	checkTuples(t, tk, res)
}

func partitionText(t *testing.T, e mv.Engine) {
	s := newSource(t, tableSpec{version: 2, schema: iceberg.NewSchema(0, nf(1, "s", p.String))})
	long := strings.Repeat("ä/..%", 200)
	rows, err := json.Marshal([]map[string]any{{"s": long}, {"s": long + "x"}, {"s": "../../etc"}, {"s": ""}, {"s": nil}, {"s": "a\nb'\""}})
	if err != nil {
		t.Fatal(err)
	}
	s.append(string(rows))
	tk := task(t, "SELECT * FROM src", s.columns(), s.input("src"))
	tk.Partition = []mv.PartitionExpr{{FieldID: 1000, Column: "s", Transform: "identity"}}
	res, err := e.Run(t.Context(), tk, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Files) != 6 {
		t.Errorf("%d files, want 6", len(res.Files))
	}
	same(t, s.rows(), storage(t, tk, res).rows())
	checkTuples(t, tk, res)
}

// partitionClash has a result column with the name of the engine's own partition column.
func partitionClash(t *testing.T, e mv.Engine) {
	s := newSource(t, tableSpec{version: 2, schema: iceberg.NewSchema(0, nf(1, "p1000", p.Int32), nf(2, "P1000x", p.Int32))})
	s.append(`[{"p1000":1,"P1000x":2},{"p1000":2,"P1000x":3}]`)
	tk := task(t, "SELECT * FROM src", s.columns(), s.input("src"))
	tk.Partition = []mv.PartitionExpr{{FieldID: 1000, Column: "p1000", Transform: "identity"}}
	same(t, s.rows(), runRows(t, e, tk))
}
