package metadata_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/apache/iceberg-go/table"

	"github.com/catalogd/catalogd/catalog/metadata"
)

// withHistory is a version 2 table with snapshots 1 ← 2 ← 3, main at 3, tag t at 1 and
// statistics for 1 and 3.
func withHistory(t testing.TB, version string) *metadata.Table {
	t.Helper()
	tbl := newTable(t, version)
	for i := int64(1); i <= 3; i++ {
		seq, first := i, int64(-1)
		if version == "1" {
			seq = 0
		}
		if version == "3" {
			first = 10 * (i - 1)
		}
		mustApply(t, tbl, i, addSnapshot(i, i-1, seq, i, first, 10), setMain(i))
	}
	mustApply(t, tbl, 4, `{"action":"set-snapshot-ref","ref-name":"t","type":"tag","snapshot-id":1,"max-ref-age-ms":5}`,
		stats(1, "s1"), stats(3, "s3"), `{"action":"set-partition-statistics","partition-statistics":{"snapshot-id":1,"statistics-path":"p1","file-size-in-bytes":1}}`)
	return reparse(t, tbl)
}

func stats(id int64, path string) string {
	return fmt.Sprintf(`{"action":"set-statistics","snapshot-id":%d,"statistics":{"snapshot-id":%d,"statistics-path":%q,"file-size-in-bytes":10,"file-footer-size-in-bytes":1,"blob-metadata":[]}}`, id, id, path)
}

func TestTable_UpdatesAccepted(t *testing.T) {
	t.Parallel()
	type want map[string]string // path in dots → compact JSON
	wider := `{"type":"struct","fields":[{"id":1,"name":"id","required":true,"type":"long"},{"id":2,"name":"day","required":false,"type":"date"},{"id":9,"name":"n","required":false,"type":"string","doc":"d"}]}`
	sorted := `{"action":"add-sort-order","sort-order":{"order-id":1,"fields":[{"source-id":1,"transform":"identity","direction":"desc","null-order":"nulls-last"}]}}`
	for name, c := range map[string]struct {
		version string
		updates []string
		want    want
	}{
		"assign-uuid same": {
			"2",
			[]string{`{"action":"assign-uuid","uuid":"` + tableUUID + `"}`, `{"action":"set-properties","updates":{"a":"b"}}`},
			want{"table-uuid": `"` + tableUUID + `"`},
		},
		"upgrade 1 to 2": {
			"1",
			[]string{`{"action":"upgrade-format-version","format-version":2}`},
			want{"format-version": "2", "last-sequence-number": "0", "schema": "null", "partition-spec": "null"},
		},
		"upgrade 2 to 3": {
			"2",
			[]string{`{"action":"upgrade-format-version","format-version":3}`},
			want{"format-version": "3", "next-row-id": "0", "last-sequence-number": "3", "current-snapshot-id": "3"},
		},
		"add-schema": {
			"2",
			[]string{`{"action":"add-schema","schema":` + wider + `}`},
			want{"schemas.1.schema-id": "1", "current-schema-id": "0", "last-column-id": "9", "schemas.1.fields.2.doc": `"d"`},
		},
		"set-current-schema last added": {
			"1",
			[]string{`{"action":"add-schema","schema":` + wider + `}`, `{"action":"set-current-schema","schema-id":-1}`},
			want{"current-schema-id": "1", "schema.schema-id": "1"},
		},
		"back to an earlier schema": {
			"2",
			[]string{
				`{"action":"add-schema","schema":` + wider + `}`, `{"action":"set-current-schema","schema-id":-1}`,
				`{"action":"add-schema","schema":` + strings.Replace(wider, `"id":9,"name":"n"`, `"id":10,"name":"n"`, 1) + `}`, `{"action":"add-schema","schema":` + wider + `}`, `{"action":"set-current-schema","schema-id":-1}`,
			},
			want{"current-schema-id": "1", "schemas.2.schema-id": "2", "last-column-id": "10"},
		},
		"remove-schemas": {
			"2",
			[]string{`{"action":"add-schema","schema":` + wider + `}`, `{"action":"remove-schemas","schema-ids":[1,44]}`},
			want{"schemas.0.schema-id": "0", "last-column-id": "9"},
		},
		"add-spec without ids": {
			"2",
			[]string{`{"action":"add-spec","spec":{"fields":[{"source-id":1,"name":"b","transform":"bucket[4]"},{"source-id":2,"name":"day","transform":"identity"}]}}`, `{"action":"set-default-spec","spec-id":-1}`},
			want{"partition-specs.1.spec-id": "1", "partition-specs.1.fields.0.field-id": "1001", "partition-specs.1.fields.1.field-id": "1000", "last-partition-id": "1001", "default-spec-id": "1"},
		},
		"add-spec reused": {
			"2",
			[]string{`{"action":"add-spec","spec":{"spec-id":8,"fields":[{"field-id":1000,"source-id":2,"name":"day","transform":"identity"}]}}`, `{"action":"set-default-spec","spec-id":-1}`, `{"action":"set-properties","updates":{"a":"b"}}`},
			want{"default-spec-id": "0", "last-partition-id": "1000"},
		},
		"multi-argument transform": {
			"3",
			[]string{`{"action":"add-spec","spec":{"fields":[{"source-ids":[1,2],"name":"z","transform":"zorder"}]}}`},
			want{"partition-specs.1.fields.0": `{"field-id":1001,"name":"z","source-ids":[1,2],"transform":"zorder"}`},
		},
		"remove-partition-specs": {
			"2",
			[]string{`{"action":"add-spec","spec":{"fields":[]}}`, `{"action":"set-default-spec","spec-id":1}`, `{"action":"remove-partition-specs","spec-ids":[0]}`},
			want{"partition-specs": `[{"fields":[],"spec-id":1}]`, "default-spec-id": "1", "last-partition-id": "1000"},
		},
		"add-sort-order": {
			"2",
			[]string{sorted, `{"action":"set-default-sort-order","sort-order-id":-1}`},
			want{"sort-orders.1.order-id": "1", "default-sort-order-id": "1"},
		},
		"add-sort-order reused": {
			"2",
			[]string{sorted, sorted, `{"action":"add-sort-order","sort-order":{"order-id":0,"fields":[]}}`, `{"action":"set-default-sort-order","sort-order-id":-1}`},
			want{"default-sort-order-id": "0", "sort-orders.1.order-id": "1"},
		},
		"set-location": {"2", []string{`{"action":"set-location","location":"s3://b/x/"}`}, want{"location": `"s3://b/x"`}},
		"set-properties old name": {
			"2",
			[]string{`{"action":"set-properties","updated":{"a":"é\u000a"}}`, `{"action":"remove-properties","removed":["owner"]}`},
			want{"properties": `{"a":"é\n","write.parquet.compression-codec":"zstd"}`},
		},
		"add-snapshot": {
			"3",
			[]string{addSnapshot(4, 3, 4, 5, 40, 7)},
			want{"last-sequence-number": "4", "next-row-id": "47", "current-snapshot-id": "3", "snapshots.3.snapshot-id": "4"},
		},
		"null parent": {
			"2",
			[]string{strings.Replace(addSnapshot(4, 0, 4, 5, -1, 0), `"snapshot-id":4,`, `"snapshot-id":4,"parent-snapshot-id":null,`, 1)},
			want{"snapshots.3": `{"manifest-list":"file:///w/ns/t/metadata/snap-4.avro","schema-id":0,"sequence-number":4,"snapshot-id":4,"summary":{"operation":"append","total-records":"10"},"timestamp-ms":1700000005000}`},
		},
		"passing snapshots leave no history": {
			"2",
			[]string{addSnapshot(4, 3, 4, 5, -1, 0), setMain(4), addSnapshot(5, 4, 5, 6, -1, 0), setMain(5)},
			want{"snapshot-log.3.snapshot-id": "5", "snapshot-log.3.timestamp-ms": "1700000006000", "current-snapshot-id": "5"},
		},
		"rollback": {
			"2",
			[]string{setMain(1)},
			want{"current-snapshot-id": "1", "refs.main.snapshot-id": "1", "snapshot-log.3": `{"snapshot-id":1,"timestamp-ms":1700000050000}`},
		},
		"branch": {
			"2",
			[]string{`{"action":"set-snapshot-ref","ref-name":"b","type":"BRANCH","snapshot-id":2,"min-snapshots-to-keep":2,"max-snapshot-age-ms":3,"max-ref-age-ms":null}`},
			want{"refs.b": `{"max-snapshot-age-ms":3,"min-snapshots-to-keep":2,"snapshot-id":2,"type":"branch"}`, "current-snapshot-id": "3"},
		},
		"retention dropped": {
			"2",
			[]string{`{"action":"set-snapshot-ref","ref-name":"t","type":"tag","snapshot-id":1}`},
			want{"refs.t": `{"snapshot-id":1,"type":"tag"}`},
		},
		"remove-snapshots": {
			"2",
			[]string{`{"action":"remove-snapshots","snapshot-ids":[1,1]}`},
			want{"snapshots.0.snapshot-id": "2", "refs": `{"main":{"snapshot-id":3,"type":"branch"}}`, "snapshot-log.0.snapshot-id": "2", "statistics.0.snapshot-id": "3", "partition-statistics": "[]"},
		},
		"remove the current snapshot": {
			"3",
			[]string{`{"action":"remove-snapshots","snapshot-ids":[3]}`},
			want{"current-snapshot-id": "null", "refs": `{"t":{"max-ref-age-ms":5,"snapshot-id":1,"type":"tag"}}`, "snapshot-log": "[]"},
		},
		"remove-snapshot-ref main": {
			"2",
			[]string{`{"action":"remove-snapshot-ref","ref-name":"main"}`, `{"action":"remove-snapshot-ref","ref-name":"zz"}`},
			want{"current-snapshot-id": "-1", "refs.main": "null", "snapshot-log.2.snapshot-id": "3"},
		},
		"statistics replaced": {
			"2",
			[]string{stats(1, "again"), `{"action":"remove-statistics","snapshot-id":3}`},
			want{"statistics.0.statistics-path": `"again"`},
		},
		"statistics before their snapshot": {"2", []string{stats(4, "s4"), addSnapshot(4, 3, 4, 5, -1, 0)}, want{"statistics.2.snapshot-id": "4"}},
		"partition statistics": {
			"2",
			[]string{`{"action":"set-partition-statistics","partition-statistics":{"snapshot-id":2,"statistics-path":"p2","file-size-in-bytes":1}}`, `{"action":"remove-partition-statistics","snapshot-id":1}`},
			want{"partition-statistics": `[{"file-size-in-bytes":1,"snapshot-id":2,"statistics-path":"p2"}]`},
		},
		"encryption keys": {
			"3",
			[]string{
				`{"action":"add-encryption-key","encryption-key":{"key-id":"a","encrypted-key-metadata":"aGk=","encrypted-by-id":"x"}}`,
				`{"action":"add-encryption-key","encryption-key":{"key-id":"b","encrypted-key-metadata":"aGk=","encrypted-by-id":"x"}}`,
				`{"action":"add-encryption-key","encryption-key":{"key-id":"b","encrypted-key-metadata":"ignored"}}`,
				`{"action":"remove-encryption-key","key-id":"a"}`, `{"action":"remove-encryption-key","key-id":"zz"}`,
			},
			want{"encryption-keys": `[{"encrypted-by-id":"x","encrypted-key-metadata":"aGk=","key-id":"b"}]`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tbl := withHistory(t, c.version)
			before := len(member(t, tbl.Bytes(), "metadata-log").([]any))
			mustApply(t, tbl, 50, c.updates...)
			for path, want := range c.want {
				var steps []any
				for s := range strings.SplitSeq(path, ".") {
					if len(s) == 1 && s[0] >= '0' && s[0] <= '9' {
						steps = append(steps, int(s[0]-'0'))
						continue
					}
					steps = append(steps, s)
				}
				if got := compact(member(t, tbl.Bytes(), steps...)); got != want {
					t.Errorf("%s = %s, want %s", path, got, want)
				}
			}
			if !tbl.Changed() {
				t.Error("Changed() = false")
			}
			log := member(t, tbl.Bytes(), "metadata-log").([]any)
			if len(log) != before+1 || compact(log[before]) != `{"metadata-file":"file:///w/ns/t/metadata/00050.json","timestamp-ms":1700000004000}` {
				t.Errorf("metadata-log ends in %s", compact(log[len(log)-1]))
			}
			if got := compact(member(t, tbl.Bytes(), "last-updated-ms")); got != "1700000050000" {
				t.Errorf("last-updated-ms = %s", got)
			}
			reparse(t, tbl)
			if _, err := table.ParseMetadataBytes(tbl.Bytes()); err != nil {
				t.Errorf("iceberg-go: %v", err)
			}
		})
	}
}

func TestTable_UpdatesRefused(t *testing.T) {
	t.Parallel()
	action := func(name, rest string) string { return `{"action":"` + name + `"` + rest + `}` }
	for name, c := range map[string]struct {
		version, update string
		conflict        bool
		want            string
	}{
		"unknown action":        {"2", action("explode", ""), false, "Unknown table update action: explode"},
		"view action":           {"2", action("add-view-version", ""), false, "Unknown table update action: add-view-version"},
		"no action":             {"2", `{}`, false, "Cannot parse missing string: action"},
		"not an object":         {"2", `[]`, false, "Cannot parse a non-object: []"},
		"assign-uuid":           {"2", action("assign-uuid", `,"uuid":"`+viewUUID+`"`), false, "Cannot reassign uuid"},
		"assign-uuid missing":   {"2", action("assign-uuid", ""), false, "Cannot parse missing string: uuid"},
		"downgrade":             {"2", action("upgrade-format-version", `,"format-version":1`), false, "Cannot downgrade v2 table to v1"},
		"upgrade to 4":          {"2", action("upgrade-format-version", `,"format-version":4`), false, "Cannot upgrade table to unsupported format version: v4"},
		"add-schema payload":    {"2", action("add-schema", ""), false, "Cannot parse missing field: schema"},
		"add-schema null":       {"2", action("add-schema", `,"schema":null`), false, "Cannot parse missing field: schema"},
		"add-schema v3 type":    {"2", action("add-schema", `,"schema":{"type":"struct","fields":[{"id":1,"name":"a","required":false,"type":"timestamp_ns"}]}`), false, "timestamp_ns is not supported until v3"},
		"unknown schema":        {"2", action("set-current-schema", `,"schema-id":8`), false, "Cannot set current schema to unknown schema: 8"},
		"no last schema":        {"2", action("set-current-schema", `,"schema-id":-1`), false, "Cannot set last added schema: no schema has been added"},
		"current schema":        {"2", action("remove-schemas", `,"schema-ids":[0]`), false, "Cannot remove the current schema"},
		"add-spec payload":      {"2", action("add-spec", ""), false, "Cannot parse missing field: spec"},
		"some ids":              {"2", action("add-spec", `,"spec":{"fields":[{"source-id":1,"name":"a","transform":"identity","field-id":1005},{"source-id":1,"name":"b","transform":"void"}]}`), false, "Cannot parse spec with missing field IDs: 1 missing of 2 fields."},
		"both sources":          {"3", action("add-spec", `,"spec":{"fields":[{"source-id":1,"source-ids":[1],"name":"a","transform":"identity"}]}`), false, "Cannot use both source-id and source-ids"},
		"not sequential":        {"1", action("add-spec", `,"spec":{"fields":[{"source-id":1,"name":"b","transform":"bucket[4]","field-id":1004}]}`), false, "Spec does not use sequential IDs that are required in v1"},
		"source gone":           {"2", action("add-spec", `,"spec":{"fields":[{"source-id":99,"name":"b","transform":"identity"}]}`), false, "Cannot find source column for partition field"},
		"source is a list":      {"2", action("add-spec", `,"spec":{"fields":[{"source-id":3,"name":"b","transform":"identity"}]}`), false, "Cannot partition by non-primitive source field: tags"},
		"source in a list":      {"2", action("add-spec", `,"spec":{"fields":[{"source-id":6,"name":"b","transform":"identity"}]}`), false, "Invalid partition field parent"},
		"zero buckets":          {"2", action("add-spec", `,"spec":{"fields":[{"source-id":1,"name":"b","transform":"bucket[0]"}]}`), false, "must be a positive int"},
		"name twice":            {"2", action("add-spec", `,"spec":{"fields":[{"source-id":1,"name":"b","transform":"bucket[2]"},{"source-id":2,"name":"b","transform":"month"}]}`), false, "Cannot use partition name more than once: b"},
		"unknown spec":          {"2", action("set-default-spec", `,"spec-id":8`), false, "Cannot set default partition spec to unknown spec: 8"},
		"no last spec":          {"2", action("set-default-spec", `,"spec-id":-1`), false, "Cannot set last added spec: no spec has been added"},
		"default spec":          {"2", action("remove-partition-specs", `,"spec-ids":[0]`), false, "Cannot remove the default partition spec"},
		"order payload":         {"2", action("add-sort-order", ""), false, "Cannot parse missing field: sort-order"},
		"order 0":               {"2", action("add-sort-order", `,"sort-order":{"order-id":0,"fields":[{"source-id":1,"transform":"identity","direction":"asc","null-order":"nulls-first"}]}`), false, "Sort order ID 0 is reserved for unsorted order"},
		"direction":             {"2", action("add-sort-order", `,"sort-order":{"order-id":1,"fields":[{"source-id":1,"transform":"identity","direction":"up","null-order":"nulls-first"}]}`), false, "Invalid sort direction: up"},
		"unknown order":         {"2", action("set-default-sort-order", `,"sort-order-id":8`), false, "Cannot set default sort order to unknown sort order: 8"},
		"no last order":         {"2", action("set-default-sort-order", `,"sort-order-id":-1`), false, "Cannot set last added sort order: no sort order has been added"},
		"snapshot payload":      {"2", action("add-snapshot", ""), false, "Cannot parse missing field: snapshot"},
		"snapshot twice":        {"2", addSnapshot(3, 2, 9, 9, -1, 0), false, "Snapshot already exists for id: 3"},
		"stale sequence number": {"2", addSnapshot(4, 2, 3, 9, -1, 0), true, "Validation failed, please retry: Cannot add snapshot with sequence number 3 older than last sequence number 3"},
		"sequence number in v1": {"1", addSnapshot(4, 3, 4, 9, -1, 0), false, "Sequence number must be 0 in v1"},
		"no row lineage":        {"3", addSnapshot(4, 3, 4, 9, -1, 0), false, "Cannot add a snapshot: first-row-id is null"},
		"stale first row":       {"3", addSnapshot(4, 3, 4, 9, 29, 5), true, "first-row-id is behind table next-row-id: 29 < 30"},
		"row overflow":          {"3", addSnapshot(4, 3, 4, 9, 30, 9223372036854775800), false, "overflows"},
		"negative rows":         {"3", addSnapshot(4, 3, 4, 9, 30, -5), false, "Invalid added-rows (cannot be negative): -5"},
		"id as a float":         {"2", strings.Replace(addSnapshot(4, 3, 4, 9, -1, 0), `"snapshot-id":4`, `"snapshot-id":4.0`, 1), false, "Cannot parse to a long value: snapshot-id: 4.0"},
		"id too big":            {"2", strings.Replace(addSnapshot(4, 3, 4, 9, -1, 0), `"snapshot-id":4`, `"snapshot-id":9223372036854775808`, 1), false, "Cannot parse to a long value: snapshot-id: 9223372036854775808"},
		"no manifest list":      {"2", strings.Replace(addSnapshot(4, 3, 4, 9, -1, 0), `manifest-list`, `manifest-lost`, 1), false, "manifest-list is missing"},
		"summary number":        {"2", strings.Replace(addSnapshot(4, 3, 4, 9, -1, 0), `"10"`, `10`, 1), false, "Cannot parse to a string value: total-records: 10"},
		"no operation":          {"2", strings.Replace(addSnapshot(4, 3, 4, 9, -1, 0), `"operation"`, `"op"`, 1), false, "its summary has no operation"},
		"main to a tag":         {"2", action("set-snapshot-ref", `,"ref-name":"main","type":"tag","snapshot-id":1`), false, "Cannot set main to a tag, it must be a branch"},
		"unknown snapshot":      {"2", setMain(77), false, "Cannot set main to unknown snapshot: 77"},
		"tag retention":         {"2", action("set-snapshot-ref", `,"ref-name":"x","type":"tag","snapshot-id":1,"min-snapshots-to-keep":1`), false, "Tags do not support setting minSnapshotsToKeep"},
		"retention 0":           {"2", action("set-snapshot-ref", `,"ref-name":"x","type":"branch","snapshot-id":1,"max-ref-age-ms":0`), false, "Max reference age must be greater than 0"},
		"ref type":              {"2", action("set-snapshot-ref", `,"ref-name":"x","type":"twig","snapshot-id":1`), false, "Invalid snapshot ref type: twig"},
		"ref name":              {"2", action("set-snapshot-ref", `,"type":"branch","snapshot-id":1`), false, "Cannot parse missing string: ref-name"},
		"remove null":           {"2", action("remove-snapshots", `,"snapshot-ids":null`), false, "Invalid set of snapshot ids to remove: must be non-null"},
		"remove text":           {"2", action("remove-snapshots", `,"snapshot-ids":["1"]`), false, "Cannot parse long from non-long value in snapshot-ids"},
		"remove ref":            {"2", action("remove-snapshot-ref", ""), false, "Cannot parse missing string: ref-name"},
		"empty location":        {"2", action("set-location", `,"location":"/"`), false, "Cannot set location: it must not be empty"},
		"property number":       {"2", action("set-properties", `,"updates":{"a":1}`), false, "Cannot parse to a string value: a: 1"},
		"property null":         {"2", action("set-properties", `,"updates":null`), false, "Cannot parse string map from non-object value: updates: null"},
		"removals":              {"2", action("remove-properties", `,"removals":"a"`), false, "removals: Cannot parse a non-array"},
		"unknown statistics":    {"2", stats(77, "s"), false, "Cannot set statistics for unknown snapshot: 77"},
		"statistics payload":    {"2", action("set-statistics", ""), false, "Cannot parse missing field: statistics"},
		"statistics blob":       {"2", strings.Replace(stats(1, "s"), `"blob-metadata":[]`, `"blob-metadata":[{}]`, 1), false, "blob-metadata: Cannot parse missing string: type"},
		"remove statistics":     {"2", action("remove-statistics", ""), false, "Cannot parse missing long: snapshot-id"},
		"partition statistics":  {"2", action("set-partition-statistics", `,"partition-statistics":{"snapshot-id":1}`), false, "file-size-in-bytes"},
		"remove partition st.":  {"2", action("remove-partition-statistics", ""), false, "Cannot parse missing long: snapshot-id"},
		"key in v2":             {"2", action("add-encryption-key", `,"encryption-key":{"key-id":"a","encrypted-key-metadata":"x"}`), false, "not supported until v3"},
		"key payload":           {"3", action("add-encryption-key", `,"encryption-key":{"key-id":"a"}`), false, "encrypted-key-metadata"},
		"remove key":            {"3", action("remove-encryption-key", ""), false, "Cannot parse missing string: key-id"},
		"log bound":             {"2", action("set-properties", `,"updates":{"write.metadata.previous-versions-max":"few"}`), false, "write.metadata.previous-versions-max"},
		"duplicate member":      {"2", `{"action":"set-location","location":"a","location":"b"}`, false, `duplicate member "location"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tbl := withHistory(t, c.version)
			err := tbl.Apply(raws(c.update), metadata.ApplyContext{Now: at(50), PreviousLocation: "x"})
			wantError(t, err, c.conflict, c.want)
		})
	}
}

// A replacement starts a history of its own: it may have been prepared before commits that
// it does not know, and must not take the table's sequence number back.
func TestTable_StaleReplacement(t *testing.T) {
	t.Parallel()
	for _, seq := range []int64{2, 3} {
		tbl := withHistory(t, "2")
		mustApply(t, tbl, 50, addSnapshot(4, 0, seq, 9, -1, 0), setMain(4))
		if got := tbl.LastSequenceNumber(); got != 3 {
			t.Errorf("after a replacement with sequence number %d the last one is %d, want 3", seq, got)
		}
		again, err := metadata.ParseTable(tbl.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		if id := again.CurrentSnapshotID(); id != 4 {
			t.Errorf("current snapshot = %d, want 4", id)
		}
	}
	v3 := withHistory(t, "3")
	err := v3.Apply(raws(addSnapshot(4, 0, 3, 9, 29, 5)), metadata.ApplyContext{Now: at(50)})
	wantError(t, err, true, "first-row-id is behind table next-row-id: 29 < 30") // row ids are never given twice
}

func TestTable_DefaultsMustFitTheSchema(t *testing.T) {
	t.Parallel()
	tbl := withHistory(t, "2")
	err := tbl.Apply(raws(`{"action":"add-schema","schema":{"type":"struct","fields":[{"id":1,"name":"id","required":true,"type":"long"}]}}`,
		`{"action":"set-current-schema","schema-id":-1}`), metadata.ApplyContext{Now: at(50)})
	wantError(t, err, false, "Cannot find source column for partition field: day: identity(2)")
}

func TestTable_Clocks(t *testing.T) {
	t.Parallel()
	tbl := withHistory(t, "2")
	wantError(t, tbl.Clone().Apply(raws(addSnapshot(4, 3, 4, 200, -1, 0), setMain(4)), metadata.ApplyContext{Now: at(50)}), false,
		"Invalid update timestamp 1700000050000: before last snapshot log entry at 1700000200000")
	wantError(t, tbl.Clone().Apply(raws(addSnapshot(4, 3, 4, -100, -1, 0), setMain(4)), metadata.ApplyContext{Now: at(50)}), false,
		"before last snapshot log entry at 1700000003000")
	c := tbl.Clone() // our own clock went back: last-updated-ms does not
	mustApply(t, c, -30, `{"action":"set-properties","updates":{"a":"b"}}`)
	if c.LastUpdatedMS() != tbl.LastUpdatedMS() {
		t.Errorf("last-updated-ms went from %d to %d", tbl.LastUpdatedMS(), c.LastUpdatedMS())
	}
}

func TestTable_MetadataLogIsTrimmed(t *testing.T) {
	t.Parallel()
	tbl := newTable(t, "2")
	mustApply(t, tbl, 1, `{"action":"set-properties","updates":{"write.metadata.previous-versions-max":"3"}}`)
	for i := int64(2); i < 9; i++ {
		mustApply(t, tbl, i, fmt.Sprintf(`{"action":"set-properties","updates":{"n":"%d"}}`, i))
	}
	log, err := tbl.MetadataLog()
	if err != nil || len(log) != 3 {
		t.Fatalf("MetadataLog() = %v, %v", log, err)
	}
	if log[0].MetadataFile != "file:///w/ns/t/metadata/00006.json" || log[2].TimestampMS != baseMS+7000 {
		t.Errorf("MetadataLog() = %v", log)
	}
	mustApply(t, tbl, 9, `{"action":"set-properties","updates":{"write.metadata.previous-versions-max":"-1"}}`)
	if log, _ := tbl.MetadataLog(); len(log) != 1 {
		t.Errorf("with -1 the log keeps %d entries, want 1", len(log))
	}
}

func TestTable_Accessors(t *testing.T) {
	t.Parallel()
	tbl := withHistory(t, "3")
	s, ok := tbl.CurrentSnapshot()
	if !ok || s.ID != 3 || *s.ParentID != 2 || s.SequenceNumber != 3 || s.TimestampMS != baseMS+3000 || *s.SchemaID != 0 ||
		s.Summary["total-records"] != "10" || s.Operation() != "append" || *s.FirstRowID != 20 || !strings.HasSuffix(s.ManifestList, "snap-3.avro") {
		t.Errorf("CurrentSnapshot() = %+v", s)
	}
	var ids []int64
	for s, err := range tbl.Snapshots() {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, s.ID)
	}
	if !slices.Equal(ids, tbl.SnapshotIDs()) || !slices.Equal(ids, []int64{1, 2, 3}) {
		t.Errorf("snapshots %v and %v", ids, tbl.SnapshotIDs())
	}
	if got := slices.Sorted(maps.Keys(tbl.Refs())); !slices.Equal(got, []string{"main", "t"}) || *tbl.Refs()["t"].MaxRefAgeMS != 5 {
		t.Errorf("Refs() = %v", tbl.Refs())
	}
	if _, ok := tbl.Snapshot(99); ok || tbl.HasSnapshot(99) || tbl.NextRowID() != 30 || tbl.LastSequenceNumber() != 3 || tbl.FormatVersion() != 3 {
		t.Error("accessors disagree with the document")
	}
	files, err := tbl.Statistics()
	if err != nil || len(files) != 3 || files[2].Path != "p1" || !files[2].Partition || files[1].SnapshotID != 3 {
		t.Errorf("Statistics() = %v, %v", files, err)
	}
	if v, ok := tbl.Property("owner"); !ok || v != "ann" || tbl.Properties()["owner"] != "ann" {
		t.Errorf("Property(owner) = %q", v)
	}
}

func TestTable_CloneIsIndependent(t *testing.T) {
	t.Parallel()
	tbl := withHistory(t, "2")
	before := string(tbl.Bytes())
	c := tbl.Clone()
	mustApply(t, c, 50, addSnapshot(4, 3, 4, 5, -1, 0), setMain(4), `{"action":"remove-snapshots","snapshot-ids":[1]}`,
		`{"action":"set-properties","updates":{"owner":"bob"}}`, `{"action":"add-spec","spec":{"fields":[]}}`)
	if string(tbl.Bytes()) != before || len(tbl.SnapshotIDs()) != 3 || tbl.CurrentSnapshotID() != 3 || tbl.Properties()["owner"] != "ann" || len(tbl.Specs()) != 1 {
		t.Error("a change of the clone reached the original")
	}
	if again, err := metadata.ParseTable([]byte(before)); err != nil || again.CurrentSnapshotID() != 3 {
		t.Errorf("the original's bytes were modified: %v", err)
	}
	mustApply(t, tbl, 50, `{"action":"set-properties","updates":{"owner":"eve"}}`)
	if c.Properties()["owner"] != "bob" {
		t.Error("a change of the original reached the clone")
	}
}
