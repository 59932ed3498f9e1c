package scan_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"syscall"
	"testing"
	"time"

	"github.com/apache/iceberg-go"
	iceio "github.com/apache/iceberg-go/io"

	"github.com/catalogd/catalogd/catalog/scan"
)

// benchTable writes the metadata of a table with so many data files of 20 columns, in
// manifests of equal size. The data files themselves are not there: planning never opens
// them.
func benchTable(b *testing.B, files, perManifest int) (doc []byte, manifests []iceberg.ManifestFile) {
	b.Helper()
	dir := b.TempDir()
	fields := []iceberg.NestedField{{ID: 1, Name: "day", Type: iceberg.PrimitiveTypes.Date}}
	for i := 2; i <= 20; i++ {
		fields = append(fields, iceberg.NestedField{ID: i, Name: fmt.Sprintf("c%d", i), Type: iceberg.PrimitiveTypes.Int64})
	}
	schema := iceberg.NewSchema(0, fields...)
	spec := iceberg.NewPartitionSpec(iceberg.PartitionField{SourceIDs: []int{1}, FieldID: 1000, Name: "day", Transform: iceberg.IdentityTransform{}})
	write := func(name string, data []byte) string {
		w, err := iceio.LocalFS{}.Create(dir + "/" + name)
		if err != nil {
			b.Fatal(err)
		}
		if _, err = w.Write(data); err != nil {
			b.Fatal(err)
		}
		if err = w.Close(); err != nil {
			b.Fatal(err)
		}
		return dir + "/" + name
	}
	for from := 0; from < files; from += perManifest {
		var buf bytes.Buffer
		w, err := iceberg.NewManifestWriter(2, &buf, spec, schema, 1)
		if err != nil {
			b.Fatal(err)
		}
		for i := from; i < min(from+perManifest, files); i++ {
			if err := w.Add(benchEntry(b, spec, i)); err != nil {
				b.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			b.Fatal(err)
		}
		m, err := w.ToManifestFile(fmt.Sprintf("%s/m%d.avro", dir, from), int64(buf.Len()))
		if err != nil {
			b.Fatal(err)
		}
		write(fmt.Sprintf("m%d.avro", from), buf.Bytes())
		manifests = append(manifests, m)
	}
	var list bytes.Buffer
	seq := int64(1)
	if err := iceberg.WriteManifestList(2, &list, 1, nil, &seq, 0, manifests); err != nil {
		b.Fatal(err)
	}
	at := write("list.avro", list.Bytes())
	sc, err := json.Marshal(schema)
	if err != nil {
		b.Fatal(err)
	}
	doc = fmt.Appendf(nil, `{"format-version":2,"table-uuid":"t-1","current-schema-id":0,"schemas":[%s],"partition-specs":[{"spec-id":0,"fields":[{"field-id":1000,"source-id":1,"name":"day","transform":"identity"}]}],
		"current-snapshot-id":1,"snapshots":[{"snapshot-id":1,"sequence-number":1,"manifest-list":%q,"schema-id":0,"summary":{"operation":"append"}}]}`, sc, at)
	read, err := iceberg.ReadManifestList(bytes.NewReader(list.Bytes()))
	if err != nil {
		b.Fatal(err)
	}
	return doc, read
}

func benchEntry(b *testing.B, spec iceberg.PartitionSpec, i int) iceberg.ManifestEntry {
	b.Helper()
	f, err := iceberg.NewDataFileBuilder(spec, iceberg.EntryContentData, fmt.Sprintf("s3://bucket/warehouse/db/table/data/day=%d/00000-%d-some-uuid.parquet", i%365, i),
		iceberg.ParquetFile, map[int]any{1000: iceberg.Date(i % 365)}, map[int]string{1000: "date"}, nil, 1000, 1<<20)
	if err != nil {
		b.Fatal(err)
	}
	counts, nulls, lower, upper := map[int]int64{}, map[int]int64{}, map[int][]byte{}, map[int][]byte{}
	for id := 1; id <= 20; id++ {
		counts[id], nulls[id] = 1000, 0
		var lo, hi []byte
		if id == 1 {
			lo, _ = iceberg.DateLiteral(i % 365).MarshalBinary()
			hi = lo
		} else {
			lo, _ = iceberg.Int64Literal(i * 1000).MarshalBinary()
			hi, _ = iceberg.Int64Literal(i*1000 + 999).MarshalBinary()
		}
		lower[id], upper[id] = lo, hi
	}
	f.ColumnSizes(counts).ValueCounts(counts).NullValueCounts(nulls).LowerBoundValues(lower).UpperBoundValues(upper).SplitOffsets([]int64{4})
	one := int64(1)
	return iceberg.NewManifestEntryBuilder(iceberg.EntryStatusADDED, &one, f.Build()).Build()
}

// cpu reports the processor time of an operation, which other work on the machine does not
// change as it does the time on the wall.
func cpu(b *testing.B) func() {
	b.Helper()
	now := func() time.Duration {
		var r syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
			b.Fatal(err)
		}
		return time.Duration(r.Utime.Nano() + r.Stime.Nano())
	}
	start := now()
	return func() { b.ReportMetric(float64((now()-start).Microseconds())/1000/float64(b.N), "cpu-ms/op") }
}

// BenchmarkFirstPage compares the first page of a plan of 10,000 files with reading their
// manifests with iceberg-go and nothing else.
func BenchmarkFirstPage(b *testing.B) {
	for _, perManifest := range []int{100, 1000, 10_000} {
		doc, manifests := benchTable(b, 10_000, perManifest)
		b.Run(fmt.Sprintf("manifests=%d/read", len(manifests)), func(b *testing.B) {
			defer cpu(b)()
			for b.Loop() {
				n := 0
				for _, m := range manifests {
					f, err := iceio.LocalFS{}.Open(m.FilePath())
					if err != nil {
						b.Fatal(err)
					}
					data, err := io.ReadAll(f)
					if err != nil {
						b.Fatal(err)
					}
					if err := f.Close(); err != nil {
						b.Fatal(err)
					}
					entries, err := iceberg.ReadManifest(m, bytes.NewReader(data), true)
					if err != nil {
						b.Fatal(err)
					}
					n += len(entries)
				}
				if n != 10_000 {
					b.Fatal(n)
				}
			}
		})
		for name, c := range map[string]struct {
			limits scan.Limits
			r      scan.Request
		}{
			"plan":          {},
			"plan/one-page": {limits: scan.Limits{InlineFiles: 1 << 20}},
			"plan/filtered": {limits: scan.Limits{InlineFiles: 1 << 20}, r: scan.Request{Filter: json.RawMessage(`{"type":"lt","term":"c2","value":5000000}`)}},
			"plan/stats":    {limits: scan.Limits{InlineFiles: 1 << 20}, r: scan.Request{StatsFields: []string{"c2", "c3"}}},
		} {
			b.Run(fmt.Sprintf("manifests=%d/%s", len(manifests), name), func(b *testing.B) {
				mem := newMemory()
				mem.set(doc)
				s := scan.NewService(scan.Config{Tables: mem, Store: mem, Files: iceio.LocalFS{}, Limits: c.limits})
				defer cpu(b)()
				for b.Loop() {
					if _, err := s.Plan(b.Context(), "w", ident, c.r); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
