package exectest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/apache/iceberg-go"

	"github.com/catalogd/catalogd/catalog"
	"github.com/catalogd/catalogd/mv"
)

var fileTests = []testCase{
	{name: "WithoutFieldIDsByName", run: fileByName},
	{name: "WithoutFieldIDsByMapping", run: fileByMapping},
	{name: "NestedByMapping", run: fileNestedByMapping},
	{name: "IdentityPartitionInjected", run: filePartition},
	{name: "IdentityPartitionTypes", run: filePartitionTypes},
	{name: "OddNames", run: fileOddNames},
	{name: "LocationSpellings", run: fileSpellings},
	{name: "OtherFormatsRefused", run: fileFormats},
	{name: "RemoteLocationRefused", run: fileRemote},
	{name: "MissingFile", run: fileMissing},
	{name: "NotParquet", run: fileNotParquet},
	{name: "WrongTypeRefused", run: fileWrongType},
	{name: "RequiredColumnMissing", run: fileRequiredMissing},
	{name: "NanosecondsUTC", run: fileNanosUTC},
	{name: "UnreadableTypeOnlyIfUsed", run: fileOpaque},
	{name: "UnannotatedPhysicalTypes", run: filePhysical},
	{name: "DateReadAsTimestamp", run: fileDatePromoted},
}

// rawFile writes a Parquet file outside of any table. Field ids are those in the schema's
// metadata, if any.
func rawFile(t *testing.T, path string, fields []arrow.Field, rows string) mv.InputFile {
	t.Helper()
	sc := arrow.NewSchema(fields, nil)
	rec, _, err := array.RecordFromJSON(memory.DefaultAllocator, sc, strings.NewReader(rows))
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Release()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w, err := pqarrow.NewFileWriter(sc, f, parquet.NewWriterProperties(parquet.WithVersion(parquet.V2_LATEST)), pqarrow.DefaultWriterProps())
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(rec); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return mv.InputFile{Path: path, Format: "PARQUET", Records: rec.NumRows()}
}

func af(name string, typ arrow.DataType) arrow.Field {
	return arrow.Field{Name: name, Type: typ, Nullable: true}
}

// fid gives a field an id in the Parquet file.
func fid(f arrow.Field, id string) arrow.Field {
	f.Metadata = arrow.NewMetadata([]string{"PARQUET:field_id"}, []string{id})
	return f
}

func schemaJSON(fields string) json.RawMessage {
	return json.RawMessage(`{"type":"struct","schema-id":0,"fields":[` + fields + `]}`)
}

func rawInput(schema string, files ...mv.InputFile) mv.Input {
	return mv.Input{Relation: mv.Relation{Name: "src", Schema: schemaJSON(schema)}, Files: files}
}

const idAndName = `{"id":1,"name":"id","required":false,"type":"int"},{"id":2,"name":"name","required":false,"type":"string"}`

var idAndNameColumns = []mv.Column{{Name: "id", Type: "int", ID: 1}, {Name: "name", Type: "string", ID: 2}}

func fileByName(t *testing.T, e mv.Engine) {
	f := rawFile(t, filepath.Join(t.TempDir(), "f.parquet"), []arrow.Field{af("name", arrow.BinaryTypes.String), af("other", arrow.PrimitiveTypes.Int64), af("id", arrow.PrimitiveTypes.Int32)},
		`[{"name":"a","other":9,"id":1}]`)
	got := runRows(t, e, task(t, "SELECT * FROM src", idAndNameColumns, rawInput(idAndName, f)))
	same(t, []string{`id=1 name="a" `}, got)
}

func fileByMapping(t *testing.T, e mv.Engine) {
	f := rawFile(t, filepath.Join(t.TempDir(), "f.parquet"), []arrow.Field{af("name", arrow.PrimitiveTypes.Int32), af("old", arrow.BinaryTypes.String)},
		`[{"name":1,"old":"a"}]`)
	in := rawInput(idAndName, f)
	in.NameMapping = json.RawMessage(`[{"field-id":1,"names":["x","name"]},{"field-id":2,"names":["old"]}]`)
	same(t, []string{`id=1 name="a" `}, runRows(t, e, task(t, "SELECT * FROM src", idAndNameColumns, in)))
	quoted, err := json.Marshal(string(in.NameMapping))
	if err != nil {
		t.Fatal(err)
	}
	in.NameMapping = quoted // as the table property holds it
	same(t, []string{`id=1 name="a" `}, runRows(t, e, task(t, "SELECT * FROM src", idAndNameColumns, in)))
}

func fileNestedByMapping(t *testing.T, e mv.Engine) {
	point := arrow.StructOf(af("p", arrow.PrimitiveTypes.Int32), af("q", arrow.PrimitiveTypes.Int32))
	f := rawFile(t, filepath.Join(t.TempDir(), "f.parquet"), []arrow.Field{af("l", arrow.ListOf(point))}, `[{"l":[{"p":1,"q":2}]}]`)
	typ := `{"type":"list","element-id":2,"element-required":false,"element":{"type":"struct","fields":[{"id":3,"name":"q","required":false,"type":"int"},{"id":4,"name":"p","required":false,"type":"int"}]}}`
	in := rawInput(`{"id":1,"name":"l","required":false,"type":`+typ+`}`, f)
	in.NameMapping = json.RawMessage(`[{"field-id":1,"names":["l"],"fields":[{"field-id":2,"names":["element"],"fields":[{"field-id":3,"names":["p"]},{"field-id":4,"names":["q"]}]}]}]`)
	got := runRows(t, e, task(t, "SELECT l[1].q AS q, l[1].p AS p FROM src", []mv.Column{{Name: "q", Type: "int", ID: 1}, {Name: "p", Type: "int", ID: 2}}, in))
	same(t, []string{"q=1 p=2 "}, got)
}

func filePartition(t *testing.T, e mv.Engine) {
	dir := t.TempDir()
	fields := []arrow.Field{fid(af("id", arrow.PrimitiveTypes.Int32), "1")}
	a := rawFile(t, filepath.Join(dir, "name=wrong/a.parquet"), fields, `[{"id":1}]`)
	a.Partition = map[string]json.RawMessage{"2": json.RawMessage(`"it's"`)}
	b := rawFile(t, filepath.Join(dir, "b.parquet"), fields, `[{"id":2}]`)
	b.Partition = map[string]json.RawMessage{"2": json.RawMessage(`null`)}
	c := rawFile(t, filepath.Join(dir, "c.parquet"), append(fields, fid(af("name", arrow.BinaryTypes.String), "2")), `[{"id":3,"name":"own"}]`)
	got := runRows(t, e, task(t, "SELECT * FROM src", idAndNameColumns, rawInput(idAndName, a, b, c)))
	same(t, []string{`id=1 name="it's" `, `id=2 name=null `, `id=3 name="own" `}, got)
}

func filePartitionTypes(t *testing.T, e mv.Engine) {
	f := rawFile(t, filepath.Join(t.TempDir(), "f.parquet"), []arrow.Field{fid(af("id", arrow.PrimitiveTypes.Int32), "1")}, `[{"id":1}]`)
	types := []struct{ typ, value, want string }{
		{"date", `"1969-12-31"`, `"1969-12-31"`},
		{"date", `-1`, `"1969-12-31"`},
		{"timestamp", `"2024-02-29T01:02:03.000004"`, `"2024-02-29T01:02:03.000004"`},
		{"timestamp", `-1`, `"1969-12-31T23:59:59.999999"`},
		{"timestamptz", `"2024-02-29T01:02:03+02:00"`, `"2024-02-28T23:02:03Z"`},
		{"decimal(38, 2)", `"-12.30"`, `"-12.3"`},
		{"long", `9223372036854775807`, `9223372036854775807`},
		{"uuid", `"00112233-4455-6677-8899-aabbccddeeff"`, `"00112233-4455-6677-8899-aabbccddeeff"`},
		{"binary", `"00ff"`, `"AP8="`},
		{"boolean", `true`, `true`},
		{"double", `1e300`, `1e+300`},
		{"time", `"10:11:12.000001"`, `"10:11:12.000001"`},
	}
	var schema, want strings.Builder
	schema.WriteString(`{"id":1,"name":"id","required":false,"type":"int"}`)
	want.WriteString("id=1 ")
	cols := []mv.Column{{Name: "id", Type: "int", ID: 1}}
	f.Partition = make(map[string]json.RawMessage)
	for i, c := range types {
		n, name := i+2, "c"+string(rune('a'+i))
		key, _ := json.Marshal(n)
		schema.WriteString(`,{"id":` + string(key) + `,"name":"` + name + `","required":false,"type":"` + c.typ + `"}`)
		cols = append(cols, mv.Column{Name: name, Type: c.typ, ID: n})
		f.Partition[string(key)] = json.RawMessage(c.value)
		want.WriteString(name + "=" + c.want + " ")
	}
	same(t, []string{want.String()}, runRows(t, e, task(t, "SELECT * FROM src", cols, rawInput(schema.String(), f))))
}

func fileOddNames(t *testing.T, e mv.Engine) {
	dir := t.TempDir()
	fields := []arrow.Field{fid(af("id", arrow.PrimitiveTypes.Int32), "1"), fid(af("name", arrow.BinaryTypes.String), "2")}
	var files []mv.InputFile
	var want []string
	for i, name := range []string{"a=1/b%20c.parquet", "it's [1]*?.parquet", "ä 'x'.parquet", "a{b,c}.parquet", "it's 1xy.parquet"} {
		n := string(rune('1' + i))
		files = append(files, rawFile(t, filepath.Join(dir, name), fields, `[{"id":`+n+`,"name":"x"}]`))
		want = append(want, `id=`+n+` name="x" `)
	}
	same(t, want, runRows(t, e, task(t, "SELECT * FROM src", idAndNameColumns, rawInput(idAndName, files...))))
	// iceberg-go escapes the location that it records, but not the name of the file.
	escaped := rawFile(t, filepath.Join(dir, "k=a b/d.parquet"), fields, `[{"id":9,"name":"x"}]`)
	escaped.Path = strings.ReplaceAll(escaped.Path, " ", "%20")
	same(t, []string{`id=9 name="x" `}, runRows(t, e, task(t, "SELECT * FROM src", idAndNameColumns, rawInput(idAndName, escaped))))
	// A name that looks like a pattern must not match its neighbour.
	same(t, want[1:2], runRows(t, e, task(t, "SELECT * FROM src", idAndNameColumns, rawInput(idAndName, files[1]))))
}

func fileSpellings(t *testing.T, e mv.Engine) {
	f := rawFile(t, filepath.Join(t.TempDir(), "f.parquet"), []arrow.Field{fid(af("id", arrow.PrimitiveTypes.Int32), "1")}, `[{"id":1}]`)
	for _, prefix := range []string{"file:", "file://", ""} {
		in := f
		in.Path = prefix + f.Path
		tk := task(t, "SELECT id FROM src", idAndNameColumns[:1], rawInput(idAndName, in))
		tk.Output = prefix + tk.Output
		res, err := e.Run(t.Context(), tk, nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(res.Files) != 1 || !strings.HasPrefix(res.Files[0].Path, tk.Output+"/") {
			t.Errorf("output %s gave %+v, want one file below it in the same spelling", tk.Output, res.Files)
		}
	}
}

// refused runs a task that must fail with the kind and a text.
func refused(t *testing.T, e mv.Engine, tk mv.Task, kind catalog.Kind, text string) {
	t.Helper()
	res, err := e.Run(t.Context(), tk, nil)
	if err == nil {
		t.Fatalf("Run = %+v, want an error with %q", res, text)
	}
	if got := catalog.KindOf(err); got != kind || !strings.Contains(err.Error(), text) {
		t.Errorf("Run = kind %d %q, want kind %d with %q", got, err, kind, text)
	}
}

func fileFormats(t *testing.T, e mv.Engine) {
	for _, format := range []string{"ORC", "AVRO"} {
		f := mv.InputFile{Path: filepath.Join(t.TempDir(), "f.orc"), Format: format}
		refused(t, e, task(t, "SELECT * FROM src", idAndNameColumns, rawInput(idAndName, f)), catalog.KindUnprocessable, "FILE_FORMAT")
	}
}

func fileRemote(t *testing.T, e mv.Engine) {
	f := mv.InputFile{Path: "s3://bucket/f.parquet", Format: "PARQUET"}
	refused(t, e, task(t, "SELECT * FROM src", idAndNameColumns, rawInput(idAndName, f)), catalog.KindUnprocessable, "s3://bucket/f.parquet")
}

func fileMissing(t *testing.T, e mv.Engine) {
	f := mv.InputFile{Path: filepath.Join(t.TempDir(), "gone.parquet"), Format: "PARQUET"}
	refused(t, e, task(t, "SELECT * FROM src", idAndNameColumns, rawInput(idAndName, f)), catalog.KindNotFound, "gone.parquet")
}

func fileNotParquet(t *testing.T, e mv.Engine) {
	path := filepath.Join(t.TempDir(), "f.parquet")
	if err := os.WriteFile(path, []byte("PAR1 not really PAR1"), 0o600); err != nil {
		t.Fatal(err)
	}
	refused(t, e, task(t, "SELECT * FROM src", idAndNameColumns, rawInput(idAndName, mv.InputFile{Path: path, Format: "PARQUET"})), catalog.KindUnprocessable, path)
}

func fileWrongType(t *testing.T, e mv.Engine) {
	f := rawFile(t, filepath.Join(t.TempDir(), "f.parquet"), []arrow.Field{fid(af("id", arrow.PrimitiveTypes.Int64), "1")}, `[{"id":1}]`)
	refused(t, e, task(t, "SELECT * FROM src", idAndNameColumns, rawInput(idAndName, f)), catalog.KindUnprocessable, `column "id"`)
}

func fileRequiredMissing(t *testing.T, e mv.Engine) {
	f := rawFile(t, filepath.Join(t.TempDir(), "f.parquet"), []arrow.Field{fid(af("id", arrow.PrimitiveTypes.Int32), "1")}, `[{"id":1}]`)
	in := rawInput(strings.Replace(idAndName, `"name":"name","required":false`, `"name":"name","required":true`, 1), f)
	refused(t, e, task(t, "SELECT * FROM src", idAndNameColumns, in), catalog.KindUnprocessable, `required column "name"`)
}

// fileNanosUTC: DuckDB cuts such values to microseconds without a word.
func fileNanosUTC(t *testing.T, e mv.Engine) {
	typ := &arrow.TimestampType{Unit: arrow.Nanosecond, TimeZone: "UTC"}
	fields := []arrow.Field{fid(af("id", arrow.PrimitiveTypes.Int32), "1"), fid(af("at", typ), "2")}
	dir := t.TempDir()
	whole := rawFile(t, filepath.Join(dir, "whole.parquet"), fields, `[{"id":1,"at":"1969-12-31 23:59:59.999999Z"},{"id":2,"at":null}]`)
	fine := rawFile(t, filepath.Join(dir, "fine.parquet"), fields, `[{"id":3,"at":"2024-01-01 00:00:00.000000001Z"}]`)
	schema := `{"id":1,"name":"id","required":false,"type":"int"},{"id":2,"name":"at","required":false,"type":"timestamptz_ns"}`
	cols := []mv.Column{{Name: "id", Type: "int", ID: 1}, {Name: "at", Type: "timestamptz", ID: 2}}
	same(t, []string{`id=1 at="1969-12-31T23:59:59.999999Z" `, "id=2 at=null "}, runRows(t, e, task(t, "SELECT * FROM src", cols, rawInput(schema, whole))))
	refused(t, e, task(t, "SELECT * FROM src", cols, rawInput(schema, whole, fine)), catalog.KindUnprocessable, `column "at"`)
	same(t, []string{"id=1 ", "id=2 ", "id=3 "}, runRows(t, e, task(t, "SELECT id FROM src", cols[:1], rawInput(schema, whole, fine))))
}

func fileOpaque(t *testing.T, e mv.Engine) {
	f := rawFile(t, filepath.Join(t.TempDir(), "f.parquet"), []arrow.Field{fid(af("id", arrow.PrimitiveTypes.Int32), "1"), fid(af("g", arrow.BinaryTypes.Binary), "2")}, `[{"id":1,"g":"AA=="}]`)
	schema := `{"id":1,"name":"id","required":false,"type":"int"},{"id":2,"name":"g","required":false,"type":"geometry"}`
	same(t, []string{"id=1 "}, runRows(t, e, task(t, "SELECT id FROM src", idAndNameColumns[:1], rawInput(schema, f))))
	cols := []mv.Column{{Name: "g", Type: "string", ID: 2}}
	refused(t, e, task(t, "SELECT g::VARCHAR FROM src", cols, rawInput(schema, f)), catalog.KindUnprocessable, `"g"`)
}

// filePhysical reads strings and UUIDs that a writer left without annotation.
func filePhysical(t *testing.T, e mv.Engine) {
	f := rawFile(t, filepath.Join(t.TempDir(), "f.parquet"), []arrow.Field{
		fid(af("s", arrow.BinaryTypes.Binary), "1"), fid(af("u", &arrow.FixedSizeBinaryType{ByteWidth: 16}), "2"), fid(af("n", arrow.PrimitiveTypes.Int16), "3"),
		fid(af("fx", &arrow.FixedSizeBinaryType{ByteWidth: 2}), "4"), fid(af("ms", &arrow.TimestampType{Unit: arrow.Millisecond}), "5"),
	}, `[{"s":"w6R4","u":"ABEiM0RVZneImaq7zN3u/w==","n":-7,"fx":"AP8=","ms":"1969-12-31 23:59:59.999"}]`)
	schema := `{"id":1,"name":"s","required":false,"type":"string"},{"id":2,"name":"u","required":false,"type":"uuid"},{"id":3,"name":"n","required":false,"type":"long"},
		{"id":4,"name":"fx","required":false,"type":"fixed[2]"},{"id":5,"name":"ms","required":false,"type":"timestamp"}`
	cols := []mv.Column{{Name: "s", Type: "string", ID: 1}, {Name: "u", Type: "uuid", ID: 2}, {Name: "n", Type: "long", ID: 3}, {Name: "fx", Type: "binary", ID: 4}, {Name: "ms", Type: "timestamp", ID: 5}}
	got := runRows(t, e, task(t, "SELECT * FROM src", cols, rawInput(schema, f)))
	same(t, []string{`s="äx" u="00112233-4455-6677-8899-aabbccddeeff" n=-7 fx="AP8=" ms="1969-12-31T23:59:59.999" `}, got)
}

func fileDatePromoted(t *testing.T, e mv.Engine) {
	f := rawFile(t, filepath.Join(t.TempDir(), "f.parquet"), []arrow.Field{fid(af("d", arrow.FixedWidthTypes.Date32), "1")}, `[{"d":"1969-12-31"},{"d":null}]`)
	for _, typ := range []string{"timestamp", "timestamp_ns"} {
		in := rawInput(`{"id":1,"name":"d","required":false,"type":"`+typ+`"}`, f)
		tk := task(t, "SELECT * FROM src", []mv.Column{{Name: "d", Type: typ, ID: 1}}, in)
		tk.TimeZone = "Asia/Tokyo"
		got := runRows(t, e, tk)
		if len(got) != 2 || !strings.HasPrefix(got[0], `d="1969-12-31T00:00:00`) || got[1] != "d=null " {
			t.Errorf("%s: %q", typ, got)
		}
	}
}

func damagedVector(t *testing.T, e mv.Engine) {
	s := numbersTable(t, 3, nil)
	s.append(numbers(0, 50))
	s.delete(iceberg.NewOr(id("=", 3), id("=", 7)))
	in := s.input("src")
	dv := in.Files[0].DeletionVector
	if dv == nil {
		t.Fatal("the table has no deletion vector")
	}
	b, err := os.ReadFile(strings.TrimPrefix(dv.Path, "file://"))
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []int64{0, 5, dv.Length / 2, dv.Length - 1} { // length, magic, bitmap, CRC
		bad := append([]byte{}, b...)
		bad[dv.Offset+at] ^= 0x10
		path := filepath.Join(t.TempDir(), "bad.puffin")
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		in.Files[0].DeletionVector = &mv.DeleteFile{Path: path, Offset: dv.Offset, Length: dv.Length}
		refused(t, e, task(t, "SELECT * FROM src", s.columns(), in), catalog.KindUnprocessable, "deletion vector")
	}
}
