package scan

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/google/uuid"
	"pgregory.net/rapid"
)

// kind is a column type of the tests with values around its edges.
type kind struct {
	typ        iceberg.Type
	values     []any
	transforms []string
}

func bigs(ns ...int64) (out []any) {
	for _, n := range ns {
		out = append(out, big.NewInt(n))
	}
	return out
}

var kinds = []kind{
	{iceberg.PrimitiveTypes.Int32, []any{int64(math.MinInt32), int64(-11), int64(-10), int64(-1), int64(0), int64(1), int64(9), int64(10), int64(11), int64(math.MaxInt32)}, []string{"identity", "bucket[3]", "truncate[10]", "void"}},
	{iceberg.PrimitiveTypes.Int64, []any{int64(math.MinInt64), int64(-21), int64(-20), int64(-1), int64(0), int64(5), int64(19), int64(20), int64(math.MaxInt64)}, []string{"identity", "bucket[3]", "truncate[10]"}},
	{iceberg.PrimitiveTypes.Bool, []any{false, true}, []string{"identity"}},
	{iceberg.PrimitiveTypes.Float64, []any{math.Inf(-1), -1.5, math.Copysign(0, -1), 0.0, 1.5, 2.5, math.Inf(1), math.NaN()}, []string{"identity"}},
	{iceberg.PrimitiveTypes.Float32, []any{-1.5, math.Copysign(0, -1), 0.0, float64(float32(0.1)), 1.5, math.NaN()}, []string{"identity"}},
	{iceberg.DecimalTypeOf(9, 2), bigs(-1001, -1000, -1, 0, 1, 99, 100, 101, 99999), []string{"identity", "bucket[3]", "truncate[100]"}},
	{iceberg.PrimitiveTypes.String, []any{"", "a", "ab", "abc", "abcd", "abd", "b", "é", "éa", "\U0010ffff", "\U0010ffffz"}, []string{"identity", "bucket[3]", "truncate[2]"}},
	{iceberg.PrimitiveTypes.Binary, []any{[]byte{}, []byte{0}, []byte{0, 1}, []byte{0, 1, 2}, []byte{0xff}, []byte{0xff, 0xff, 1}}, []string{"identity", "bucket[3]", "truncate[2]"}},
	{iceberg.PrimitiveTypes.Date, []any{int64(-366), int64(-365), int64(-1), int64(0), int64(30), int64(31), int64(365)}, []string{"identity", "bucket[3]", "year", "month", "day"}},
	{iceberg.PrimitiveTypes.Timestamp, []any{int64(-3_600_000_001), int64(-1), int64(0), int64(1), int64(3_600_000_000), int64(86_399_999_999), int64(86_400_000_000), int64(2_678_400_000_000)}, []string{"identity", "bucket[3]", "year", "month", "day", "hour"}},
	{iceberg.PrimitiveTypes.TimestampTzNs, []any{int64(-3_600_000_000_001), int64(-1), int64(0), int64(1), int64(86_399_999_999_999), int64(86_400_000_000_000)}, []string{"identity", "year", "month", "day", "hour"}},
	{iceberg.PrimitiveTypes.UUID, []any{[16]byte(uuid.MustParse("00000000-0000-4000-8000-000000000001")), [16]byte(uuid.MustParse("f0000000-0000-4000-8000-000000000001"))}, []string{"identity", "bucket[3]"}},
}

// filterGen draws filters on column c as the JSON that clients send, together with the
// function that evaluates them.
type filterGen struct {
	k      kind
	column string
}

// logic is how an engine sees comparisons that the standards leave open.
type logic struct {
	nanGreatest bool // else every comparison with NaN is false
}

// tri is SQL's truth: -1 false, 0 unknown, 1 true.
type tri int

// rowFilter says whether a row passes.
type rowFilter func(l logic, v any) tri

func (g filterGen) draw(t *rapid.T, depth int) (string, rowFilter) {
	if depth > 0 {
		switch rapid.SampledFrom([]string{"leaf", "and", "or", "not"}).Draw(t, "shape") {
		case "and":
			a, fa := g.draw(t, depth-1)
			b, fb := g.draw(t, depth-1)
			return fmt.Sprintf(`{"type":"and","left":%s,"right":%s}`, a, b), func(l logic, v any) tri { return min(fa(l, v), fb(l, v)) }
		case "or":
			a, fa := g.draw(t, depth-1)
			b, fb := g.draw(t, depth-1)
			return fmt.Sprintf(`{"type":"or","left":%s,"right":%s}`, a, b), func(l logic, v any) tri { return max(fa(l, v), fb(l, v)) }
		case "not":
			a, fa := g.draw(t, depth-1)
			return fmt.Sprintf(`{"type":"not","child":%s}`, a), func(l logic, v any) tri { return -fa(l, v) }
		}
	}
	return g.leaf(t)
}

func isNaN(v any) bool {
	f, ok := v.(float64)
	return ok && math.IsNaN(f)
}

func (g filterGen) literal(t *rapid.T) any {
	return rapid.SampledFrom(g.k.values).Filter(func(v any) bool {
		f, ok := v.(float64)
		return !ok || !math.IsNaN(f) && !math.IsInf(f, 0)
	}).Draw(t, "literal")
}

func (g filterGen) leaf(t *rapid.T) (string, rowFilter) {
	ops := []string{"is-null", "not-null", "lt", "lt-eq", "gt", "gt-eq", "eq", "not-eq", "in", "not-in"}
	if isFloat(g.k.typ) {
		ops = append(ops, "is-nan", "not-nan")
	}
	if g.k.typ.Equals(iceberg.PrimitiveTypes.String) {
		ops = append(ops, "starts-with", "not-starts-with")
	}
	o := rapid.SampledFrom(ops).Draw(t, "op")
	var lits []any
	switch {
	case strings.HasSuffix(o, "null") || strings.HasSuffix(o, "nan"):
		return fmt.Sprintf(`{"type":%q,"term":%q}`, o, g.column), unaryFilter(o)
	case o == "in" || o == "not-in":
		for range rapid.IntRange(0, 3).Draw(t, "literals") {
			lits = append(lits, g.literal(t))
		}
		texts := make([]string, 0, len(lits))
		for _, l := range lits {
			texts = append(texts, string(appendValue(nil, g.k.typ, l)))
		}
		return fmt.Sprintf(`{"type":%q,"term":%q,"values":[%s]}`, o, g.column, strings.Join(texts, ",")), literalFilter(o, lits)
	default:
		lits = []any{g.literal(t)}
		return fmt.Sprintf(`{"type":%q,"term":%q,"value":%s}`, o, g.column, appendValue(nil, g.k.typ, lits[0])), literalFilter(o, lits)
	}
}

func truth(b bool) tri {
	if b {
		return 1
	}
	return -1
}

func unaryFilter(o string) rowFilter {
	return func(_ logic, v any) tri {
		switch o {
		case "is-null":
			return truth(v == nil)
		case "not-null":
			return truth(v != nil)
		}
		if v == nil {
			return 0
		}
		return truth(isNaN(v) == (o == "is-nan"))
	}
}

// order compares as the engine does; floats numerically.
func order(l logic, a, b any) (int, bool) {
	x, isFloat := a.(float64)
	if !isFloat {
		c, _ := compare(a, b)
		return c, true
	}
	y := b.(float64)
	switch {
	case math.IsNaN(x):
		return 1, l.nanGreatest
	case x < y:
		return -1, true
	case x > y:
		return 1, true
	default:
		return 0, true
	}
}

func literalFilter(o string, lits []any) rowFilter {
	return func(l logic, v any) tri {
		if v == nil {
			return 0
		}
		if strings.HasSuffix(o, "starts-with") {
			return truth(strings.HasPrefix(v.(string), lits[0].(string)) == (o == "starts-with"))
		}
		if o == "in" || o == "not-in" {
			found := slices.ContainsFunc(lits, func(lit any) bool {
				c, ok := order(l, v, lit)
				return ok && c == 0
			})
			return truth(found == (o == "in"))
		}
		c, ok := order(l, v, lits[0])
		if !ok {
			return truth(o == "not-eq")
		}
		return truth(map[string]bool{"lt": c < 0, "lt-eq": c <= 0, "gt": c > 0, "gt-eq": c >= 0, "eq": c == 0, "not-eq": c != 0}[o])
	}
}

// testDocument is the metadata of a table with one column c.
func testDocument(t *rapid.T, k kind, transforms ...string) *document {
	typ, err := json.Marshal(iceberg.NestedField{ID: 1, Name: "c", Type: k.typ})
	if err != nil {
		t.Fatal(err)
	}
	fields := make([]string, 0, len(transforms))
	for i, tr := range transforms {
		fields = append(fields, fmt.Sprintf(`{"field-id":%d,"source-id":1,"name":"p%d","transform":%q}`, 1000+i, i, tr))
	}
	d, err := parseDocument(fmt.Appendf(nil, `{"current-schema-id":0,"schemas":[{"type":"struct","schema-id":0,"fields":[%s]}],
		"partition-specs":[{"spec-id":0,"fields":[%s]}]}`, typ, strings.Join(fields, ",")))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func parseFilter(t *rapid.T, d *document, filter string) *expr {
	sc, err := d.schema(0)
	if err != nil {
		t.Fatal(err)
	}
	e, err := parser{schema: sc, caseSensitive: true}.filter(json.RawMessage(filter))
	if err != nil {
		t.Fatalf("%s: %v", filter, err)
	}
	return e
}

// check compares a verdict with the rows that it is about.
func check(t *rapid.T, what, filter string, v verdict, f rowFilter, rows []any) {
	for _, l := range []logic{{true}, {false}} {
		for _, row := range rows {
			if isNaN(row) && !l.nanGreatest && strings.Contains(filter, `"not"`) {
				continue // clients do not agree: those that push negations down find other rows
			}
			pass := f(l, row)
			if v == never && pass == 1 {
				t.Fatalf("%s: %s holds for no row, but it does for %v", what, filter, row)
			}
			if v == always && pass != 1 {
				t.Fatalf("%s: %s holds for every row, but not for %v", what, filter, row)
			}
		}
	}
}

// oracleTransform transforms with iceberg-go.
func oracleTransform(t *rapid.T, name string, typ iceberg.Type, v any) any {
	if v == nil || name == "void" {
		return nil
	}
	tr, err := iceberg.ParseTransform(name)
	if err != nil {
		t.Fatal(err)
	}
	if name == "identity" {
		return v
	}
	out := tr.Apply(iceberg.Optional[iceberg.Literal]{Valid: true, Val: typedLiteral(t, typ, v)})
	if !out.Valid {
		t.Fatalf("%s(%v) is not known", name, v)
	}
	res, ok := partitionValue(tr.ResultType(typ), out.Val.Any())
	if !ok {
		t.Fatalf("%s(%v) gave %T", name, v, out.Val.Any())
	}
	return res
}

func typedLiteral(t *rapid.T, typ iceberg.Type, v any) iceberg.Literal {
	switch x := v.(type) {
	case int64:
		switch typ.(type) {
		case iceberg.Int32Type:
			return iceberg.Int32Literal(x)
		case iceberg.Int64Type:
			return iceberg.Int64Literal(x)
		case iceberg.DateType:
			return iceberg.DateLiteral(x)
		case iceberg.TimestampType:
			return iceberg.TimestampLiteral(x)
		default:
			return iceberg.TimestampNsLiteral(x)
		}
	default:
		lit := literalOf(x, typ)
		if lit == nil {
			t.Fatalf("no literal for %T", v)
		}
		return lit
	}
}

func drawRows(t *rapid.T, pool []any) []any {
	return rapid.SliceOfN(rapid.SampledFrom(append(slices.Clone(pool), nil)), 1, 6).Draw(t, "rows")
}

// TestJudge_partition checks what partition tuples say about filters.
func TestJudge_partition(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		k := rapid.SampledFrom(kinds).Draw(t, "kind")
		transforms := rapid.SliceOfNDistinct(rapid.SampledFrom(k.transforms), 1, min(2, len(k.transforms)), rapid.ID).Draw(t, "transforms")
		d := testDocument(t, k, transforms...)
		filter, f := filterGen{k, "c"}.draw(t, 2)
		m := newMatcher(d, parseFilter(t, d, filter))
		// All rows with the tuple of one of them are its partition.
		chosen := rapid.SampledFrom(append(slices.Clone(k.values), nil)).Draw(t, "row")
		tuple := map[int]any{}
		for i, tr := range transforms {
			tuple[1000+i] = oracleTransform(t, tr, k.typ, chosen)
		}
		var rows []any
		for _, v := range append(slices.Clone(k.values), nil) {
			same := true
			for i, tr := range transforms {
				same = same && string(d.specs[0].appendKey(nil, map[int]any{1000 + i: oracleTransform(t, tr, k.typ, v)})) ==
					string(d.specs[0].appendKey(nil, map[int]any{1000 + i: tuple[1000+i]}))
			}
			if same {
				rows = append(rows, v)
			}
		}
		p := m.specs[0].partition(tuple)
		what := fmt.Sprintf("%v of %s in %v", transforms, k.typ, tuple)
		switch p.residual.op {
		case opTrue:
			check(t, what, filter, always, f, rows)
		case opFalse:
			check(t, what, filter, never, f, rows)
		}
	})
}

// encode writes a bound.
func encode(t *rapid.T, typ iceberg.Type, v any) []byte {
	var lit iceberg.Literal
	switch x := v.(type) {
	case bool:
		lit = iceberg.BoolLiteral(x)
	case float64:
		if typ.Equals(iceberg.PrimitiveTypes.Float32) {
			lit = iceberg.Float32Literal(x)
		} else {
			lit = iceberg.Float64Literal(x)
		}
	default:
		lit = typedLiteral(t, typ, v)
	}
	b, err := lit.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	if b == nil {
		b = []byte{}
	}
	return b
}

// bounds are the least and the greatest value, as writers find them. Long texts are cut.
func bounds(t *rapid.T, typ iceberg.Type, rows []any, cut bool) (lo, hi []byte) {
	var least, most any
	for _, v := range rows {
		if v == nil || isNaN(v) {
			continue
		}
		if c, _ := order(logic{}, v, least2(least, v)); least == nil || c < 0 {
			least = v
		}
		if c, _ := order(logic{}, v, least2(most, v)); most == nil || c > 0 {
			most = v
		}
	}
	if least == nil {
		return nil, nil
	}
	if f, ok := least.(float64); ok && f == 0 {
		least = math.Copysign(0, -1)
	}
	if f, ok := most.(float64); ok && f == 0 {
		most = 0.0
	}
	if s, ok := least.(string); ok && cut && rapid.Bool().Draw(t, "cut") {
		least = prefix(s, 1)
	}
	if s, ok := most.(string); ok && cut && prefix(s, 1) != s && rapid.Bool().Draw(t, "cut") {
		r := []rune(s)[0]
		if r == 0x10ffff {
			return encode(t, typ, least), nil
		}
		most = string(r + 1)
	}
	return encode(t, typ, least), encode(t, typ, most)
}

func least2(v, or any) any {
	if v == nil {
		return or
	}
	return v
}

// TestJudge_metrics checks what metrics say about filters.
func TestJudge_metrics(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		k := rapid.SampledFrom(kinds).Draw(t, "kind")
		d := testDocument(t, k)
		g := filterGen{k, "c"}
		filter, f := g.draw(t, 2)
		e := parseFilter(t, d, filter)
		m := newMatcher(d, e)
		rows := drawRows(t, k.values)
		s := &stats{records: int64(len(rows)), lower: map[int][]byte{}, upper: map[int][]byte{}, nulls: map[int]int64{}, values: map[int]int64{}, nans: map[int]int64{}}
		if rapid.Bool().Draw(t, "counts") {
			s.values[1] = int64(len(rows))
			s.nulls[1] = 0
			for _, v := range rows {
				if v == nil {
					s.nulls[1]++
				}
			}
		}
		if rapid.Bool().Draw(t, "nans") && isFloat(k.typ) {
			s.nans[1] = 0
			for _, v := range rows {
				if isNaN(v) {
					s.nans[1]++
				}
			}
		}
		if lo, hi := bounds(t, k.typ, rows, true); rapid.Bool().Draw(t, "bounds") {
			if lo != nil {
				s.lower[1] = lo
			}
			if hi != nil {
				s.upper[1] = hi
			}
		}
		if !m.file(e, s) {
			check(t, fmt.Sprintf("%+v of %s %v", s, k.typ, rows), filter, never, f, rows)
		}
	})
}

// TestJudge_manifest checks what the summaries of a manifest say about filters.
func TestJudge_manifest(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		k := rapid.SampledFrom(kinds).Draw(t, "kind")
		name := rapid.SampledFrom(k.transforms).Draw(t, "transform")
		d := testDocument(t, k, name)
		filter, f := filterGen{k, "c"}.draw(t, 2)
		m := newMatcher(d, parseFilter(t, d, filter))
		rows := drawRows(t, k.values)
		tr, err := iceberg.ParseTransform(name)
		if err != nil {
			t.Fatal(err)
		}
		var images []any
		sum := iceberg.FieldSummary{}
		nan := false
		for _, v := range rows {
			image := oracleTransform(t, name, k.typ, v)
			images = append(images, image)
			sum.ContainsNull = sum.ContainsNull || image == nil
			nan = nan || isNaN(image)
		}
		if rapid.Bool().Draw(t, "nan known") {
			sum.ContainsNaN = &nan
		}
		typ := tr.ResultType(k.typ)
		if lo, hi := bounds(t, typ, images, false); lo != nil && hi != nil {
			sum.LowerBound, sum.UpperBound = &lo, &hi
		}
		mf := iceberg.NewManifestFile(2, "m", 1, 0, 1).Partitions([]iceberg.FieldSummary{sum}).Build()
		if !m.manifest(mf) {
			check(t, fmt.Sprintf("%s of %s in %+v %v", name, k.typ, sum, rows), filter, never, f, rows)
		}
	})
}

// TestFilter_roundTrip checks that a residual means what the filter meant.
func TestFilter_roundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		k := rapid.SampledFrom(kinds).Draw(t, "kind")
		d := testDocument(t, k)
		filter, _ := filterGen{k, "c"}.draw(t, 3)
		once := parseFilter(t, d, filter).appendJSON(nil)
		if twice := parseFilter(t, d, string(once)).appendJSON(nil); string(once) != string(twice) {
			t.Fatalf("%s\nwas written as %s\nand then as %s", filter, once, twice)
		}
	})
}
