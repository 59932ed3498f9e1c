package metadata_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"testing"

	"github.com/apache/iceberg-go/table"

	"github.com/catalogd/catalogd/catalog/metadata"
)

var sizes = []int{10, 100, 1000, 9000}

// BenchmarkCommit is the whole work on the document of an append: parse, check, apply,
// render both forms.
func BenchmarkCommit(b *testing.B) {
	for _, n := range sizes {
		doc := big(b, n)
		reqs := raws(`{"type":"assert-table-uuid","uuid":"`+tableUUID+`"}`,
			fmt.Sprintf(`{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":%d}`, 1000+n))
		updates := raws(wide(addSnapshot(5, int64(1000+n), int64(n+1), int64(n+1), -1, 0)), setMain(5))
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			b.SetBytes(int64(len(doc)))
			b.ReportAllocs()
			for b.Loop() {
				t, err := metadata.ParseTable(doc)
				if err != nil {
					b.Fatal(err)
				}
				if err := t.Check(reqs); err != nil {
					b.Fatal(err)
				}
				if err := t.Apply(updates, metadata.ApplyContext{Now: at(int64(n + 1)), PreviousLocation: "x"}); err != nil {
					b.Fatal(err)
				}
				if len(t.Bytes()) <= len(doc) || len(t.RefsBytes()) >= len(doc)*2 {
					b.Fatal("wrong size")
				}
			}
		})
	}
}

func BenchmarkParseTable(b *testing.B) {
	for _, n := range sizes {
		doc := big(b, n)
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			b.SetBytes(int64(len(doc)))
			for b.Loop() {
				if _, err := metadata.ParseTable(doc); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkRefsBytes(b *testing.B) {
	for _, n := range sizes {
		t, err := metadata.ParseTable(big(b, n))
		if err != nil {
			b.Fatal(err)
		}
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			for b.Loop() {
				t.RefsBytes()
			}
		})
	}
}

// BenchmarkFloor compares one pass of encoding/json's validator and a commit done by
// iceberg-go over the same document.
func BenchmarkFloor(b *testing.B) {
	doc := big(b, 1000)
	b.Run("json.Valid", func(b *testing.B) {
		b.SetBytes(int64(len(doc)))
		for b.Loop() {
			json.Valid(doc)
		}
	})
	b.Run("iceberg-go", func(b *testing.B) {
		b.SetBytes(int64(len(doc)))
		raw := []byte("[" + wide(addSnapshot(5, 2000, 1001, 1001, -1, 0)) + "," + setMain(5) + "]")
		for b.Loop() {
			m, err := table.ParseMetadataBytes(doc)
			if err != nil {
				b.Fatal(err)
			}
			var ups table.Updates
			if err := json.Unmarshal(raw, &ups); err != nil {
				b.Fatal(err)
			}
			if m, err = table.UpdateTableMetadata(m, ups, "x"); err != nil {
				b.Fatal(err)
			}
			if _, err := json.Marshal(m); err != nil {
				b.Fatal(err)
			}
		}
	})
}
