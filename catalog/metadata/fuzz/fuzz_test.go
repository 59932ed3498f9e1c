package fuzz_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/catalogd/catalogd/catalog/metadata"
)

// This folder holds the fuzz targets of package metadata. They are apart from its tests
// because fuzzing instruments every dependency, and those tests import iceberg-go.
//
// The targets look for panics and for three broken promises: bytes that change
// without a change, output that we can't read again, and output that is not JSON.

const (
	tableUUID = "9c12d441-03fe-4693-9a96-a0705ddf69c1"
	viewUUID  = "fa6506c3-7681-40c8-86dc-e36561f83385"
	schema    = `{"type":"struct","identifier-field-ids":[1],"fields":[{"id":1,"name":"id","required":true,"type":"long"},{"id":2,"name":"l","required":false,"type":{"type":"list","element-id":3,"element-required":false,"element":"int"}},{"id":4,"name":"m","required":false,"type":{"type":"map","key-id":5,"key":"string","value-id":6,"value-required":false,"value":{"type":"struct","fields":[{"id":7,"name":"d","required":false,"type":"decimal(9,2)","initial-default":"1.50"}]}}}]}`
)

func at(second int64) time.Time { return time.UnixMilli(1_700_000_000_000 + 1000*second) }

func raws(texts ...string) []json.RawMessage {
	out := make([]json.RawMessage, len(texts))
	for i, s := range texts {
		out[i] = json.RawMessage(s)
	}
	return out
}

func addSnapshot(id, parent, seq, second int64) string {
	return fmt.Sprintf(`{"action":"add-snapshot","snapshot":{"snapshot-id":%d,"parent-snapshot-id":%d,"sequence-number":%d,"timestamp-ms":%d,"first-row-id":%d,"added-rows":10,"manifest-list":"m","summary":{"operation":"append"},"schema-id":0}}`,
		id, parent, seq, at(second).UnixMilli(), 10*(id-1))
}

func setMain(id int64) string {
	return fmt.Sprintf(`{"action":"set-snapshot-ref","ref-name":"main","type":"branch","snapshot-id":%d}`, id)
}

func stats(id int64) string {
	return fmt.Sprintf(`{"action":"set-statistics","statistics":{"snapshot-id":%d,"statistics-path":"s","file-size-in-bytes":1,"file-footer-size-in-bytes":1,"blob-metadata":[{"type":"t","snapshot-id":1,"sequence-number":1,"fields":[1]}]}}`, id)
}

// history is a version 3 table with three snapshots, a tag and statistics.
func history(f *testing.F) []byte {
	f.Helper()
	t, err := metadata.NewTable(metadata.NewTableRequest{
		UUID: tableUUID, Location: "l", Schema: json.RawMessage(schema), Properties: map[string]string{"format-version": "3", "owner": "ann"}, Now: at(0),
		PartitionSpec: json.RawMessage(`{"fields":[{"source-id":1,"name":"b","transform":"bucket[4]"}]}`),
	})
	if err != nil {
		f.Fatal(err)
	}
	err = t.Apply(raws(addSnapshot(1, 0, 1, 1), setMain(1), addSnapshot(2, 1, 2, 2), addSnapshot(3, 2, 3, 3), setMain(3), stats(1),
		`{"action":"set-snapshot-ref","ref-name":"t","type":"tag","snapshot-id":1}`), metadata.ApplyContext{Now: at(4), PreviousLocation: "p"})
	if err != nil {
		f.Fatal(err)
	}
	return t.Bytes()
}

func version(id, schemaID int, extra string) string {
	return fmt.Sprintf(`{"version-id":%d,"timestamp-ms":1,"schema-id":%d,"summary":{"a":"b"},"default-namespace":["ns"],"representations":[{"type":"sql","sql":"select %d","dialect":"spark"},{"type":"x","p":1}]%s}`, id, schemaID, id, extra)
}

func addVersion(id, schemaID int, extra string) string {
	return `{"action":"add-view-version","view-version":` + version(id, schemaID, extra) + `}`
}

const setLast = `{"action":"set-current-view-version","view-version-id":-1}`

// newView is a view whose second version is materialized.
func newView(f *testing.F) []byte {
	f.Helper()
	v, err := metadata.NewView(metadata.NewViewRequest{
		UUID: viewUUID, Location: "l", Schema: json.RawMessage(schema), ViewVersion: json.RawMessage(version(1, 0, "")),
		Body: json.RawMessage(`{"max-staleness-ms":5,"x":1}`), Now: at(0),
	})
	if err != nil {
		f.Fatal(err)
	}
	if err := v.Apply(raws(addVersion(2, 0, `,"storage-table":{"namespace":["a"],"name":"s","catalog":"c"}`), setLast), metadata.ApplyContext{Now: at(1)}); err != nil {
		f.Fatal(err)
	}
	return v.Bytes()
}

func FuzzParseTable(f *testing.F) {
	f.Add(history(f))
	f.Add([]byte(`{"format-version":1,"location":"l","last-updated-ms":1,"last-column-id":1,"schema":{"type":"struct","fields":[]},"partition-spec":[]}`))
	f.Add([]byte(strings.Repeat(`{"a":[`, 400)))
	f.Fuzz(func(t *testing.T, doc []byte) {
		tbl, err := metadata.ParseTable(doc)
		if err != nil {
			return
		}
		if string(tbl.Bytes()) != string(doc) || !json.Valid(doc) {
			t.Fatalf("Bytes() differ or are no JSON: %q", tbl.Bytes())
		}
		readAll(tbl)
		refs, err := metadata.ParseTable(tbl.RefsBytes())
		if err != nil || refs.CurrentSnapshotID() != tbl.CurrentSnapshotID() || len(refs.Refs()) != len(tbl.Refs()) {
			t.Fatalf("the refs form is another table: %v\n%s", err, tbl.RefsBytes())
		}
	})
}

// readAll calls every accessor that decodes something.
func readAll(tbl *metadata.Table) {
	for _, err := range tbl.Snapshots() {
		_ = err // the next snapshot may be readable
	}
	_, _ = tbl.CurrentSnapshot()
	_, _ = tbl.MetadataLog()
	_, _ = tbl.Statistics()
	_ = tbl.Properties()
	_ = tbl.CurrentSchema()
	_ = tbl.DefaultSpec()
}

func FuzzTableApply(f *testing.F) {
	base := history(f)
	for _, updates := range []string{
		addSnapshot(4, 3, 4, 5) + "," + setMain(4), setMain(1), stats(1), `{"action":"remove-snapshots","snapshot-ids":[1,2]}`,
		`{"action":"add-schema","schema":` + schema + `},{"action":"set-current-schema","schema-id":-1}`,
		`{"action":"add-spec","spec":{"fields":[{"source-ids":[1,2],"name":"z","transform":"zorder"}]}},{"action":"set-default-spec","spec-id":-1}`,
		`{"action":"add-sort-order","sort-order":{"fields":[{"source-id":1,"transform":"identity","direction":"asc","null-order":"nulls-first"}]}}`,
		`{"action":"set-properties","updates":{"a":"\ud800"}},{"action":"remove-properties","removals":["owner"]}`,
		`{"action":"add-encryption-key","encryption-key":{"key-id":"a","encrypted-key-metadata":"x"}},{"action":"remove-encryption-key","key-id":"a"}`,
		`{"action":"set-snapshot-ref","ref-name":"b","type":"branch","snapshot-id":2,"x":{}},{"action":"remove-snapshot-ref","ref-name":"main"}`,
		`{"action":"set-location","location":"l"},{"action":"upgrade-format-version","format-version":3},{"action":"assign-uuid","uuid":"x"}`,
		`{"action":"remove-schemas","schema-ids":[1]},{"action":"remove-partition-specs","spec-ids":[1]},{"action":"set-default-sort-order","sort-order-id":0}`,
		`{"action":"set-partition-statistics","partition-statistics":{"snapshot-id":2,"statistics-path":"p","file-size-in-bytes":1}},{"action":"remove-statistics","snapshot-id":1}`,
	} {
		f.Add(base, []byte("["+updates+"]"))
	}
	f.Fuzz(func(t *testing.T, doc, updates []byte) {
		var list []json.RawMessage
		if json.Unmarshal(updates, &list) != nil {
			return
		}
		for _, build := range []func() (*metadata.Table, error){
			func() (*metadata.Table, error) { return metadata.ParseTable(doc) },
			func() (*metadata.Table, error) { return metadata.NewEmptyTable(0, tableUUID) },
		} {
			tbl, err := build()
			if err != nil {
				continue
			}
			before := string(tbl.Bytes())
			_ = tbl.Check(list)
			if err := tbl.Apply(list, metadata.ApplyContext{Now: at(100), PreviousLocation: "p"}); err != nil {
				continue
			}
			if !tbl.Changed() && string(tbl.Bytes()) != before {
				t.Fatal("bytes changed without a change")
			}
			if _, err := metadata.ParseTable(tbl.Bytes()); err != nil || !json.Valid(tbl.Bytes()) {
				t.Fatalf("can't read our own output: %v\n%s", err, tbl.Bytes())
			}
			readAll(tbl)
			tbl.RefsBytes()
		}
	})
}

func FuzzParseView(f *testing.F) {
	f.Add(newView(f))
	f.Fuzz(func(t *testing.T, doc []byte) {
		v, err := metadata.ParseView(doc)
		if err != nil {
			return
		}
		if string(v.Bytes()) != string(doc) || !json.Valid(doc) {
			t.Fatalf("Bytes() differ or are no JSON: %q", v.Bytes())
		}
		if len(v.Versions()) == 0 || v.CurrentVersion().ID != v.CurrentVersionID() {
			t.Fatal("the current version can't be decoded")
		}
		_, _ = v.MaxStaleness(), v.CheckMaxStaleness()
		c := v.Clone()
		if err := c.SetStorageTable(c.CurrentVersionID(), metadata.StorageTable{Namespace: []string{"a"}, Name: "b"}); err != nil {
			t.Fatal(err)
		}
		if again, err := metadata.ParseView(c.Bytes()); err != nil || again.CurrentVersion().StorageTable.Name != "b" {
			t.Fatalf("SetStorageTable: %v\n%s", err, c.Bytes())
		}
	})
}

func FuzzViewApply(f *testing.F) {
	base := newView(f)
	for _, updates := range []string{
		addVersion(3, 0, "") + "," + setLast, `{"action":"add-view-version"}`, `{"action":"add-schema"}`,
		`{"action":"add-schema","schema":` + schema + `},` + addVersion(3, -1, ""),
		`{"action":"set-properties","updates":{"max-staleness-ms":"5","version.history.num-entries":"1"}}`,
		`{"action":"remove-properties","removals":["comment"]},{"action":"set-location","location":"l"},{"action":"upgrade-format-version","format-version":1}`,
	} {
		f.Add(base, []byte("["+updates+"]"))
	}
	f.Fuzz(func(t *testing.T, doc, updates []byte) {
		var list []json.RawMessage
		if json.Unmarshal(updates, &list) != nil {
			return
		}
		v, err := metadata.ParseView(doc)
		if err != nil {
			return
		}
		_ = v.Check(list)
		if err := v.Apply(list, metadata.ApplyContext{Now: at(100)}); err != nil {
			return
		}
		if !v.Changed() && string(v.Bytes()) != string(doc) {
			t.Fatal("bytes changed without a change")
		}
		if _, err := metadata.ParseView(v.Bytes()); err != nil || !json.Valid(v.Bytes()) {
			t.Fatalf("can't read our own output: %v\n%s", err, v.Bytes())
		}
	})
}
