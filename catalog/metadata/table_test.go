package metadata_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/apache/iceberg-go/table"

	"github.com/catalogd/catalogd/catalog/metadata"
)

func TestNewTable_IsWhatJavaWouldWrite(t *testing.T) {
	t.Parallel()
	for version, current := range map[string]string{"1": "-1", "2": "-1", "3": "null"} {
		tbl := newTable(t, version)
		doc := tbl.Bytes()
		for path, want := range map[string]string{
			"format-version": version, "table-uuid": `"` + tableUUID + `"`, "location": `"file:///w/ns/t"`,
			"last-column-id": "8", "current-schema-id": "0", "default-spec-id": "0", "last-partition-id": "1000",
			"default-sort-order-id": "0", "sort-orders": `[{"fields":[],"order-id":0}]`, "current-snapshot-id": current,
			"refs": "{}", "snapshots": "[]", "statistics": "[]", "partition-statistics": "[]", "snapshot-log": "[]", "metadata-log": "[]",
			"partition-specs": `[{"fields":[{"field-id":1000,"name":"day","source-id":2,"transform":"identity"}],"spec-id":0}]`,
			"properties":      `{"owner":"ann","write.parquet.compression-codec":"zstd"}`,
		} {
			if got := compact(member(t, doc, path)); got != want {
				t.Errorf("v%s %s = %s, want %s", version, path, got, want)
			}
		}
		ids := compact([]any{
			member(t, doc, "schemas", 0, "fields", 0, "id"), member(t, doc, "schemas", 0, "fields", 1, "id"),
			member(t, doc, "schemas", 0, "fields", 2, "id"), member(t, doc, "schemas", 0, "fields", 3, "id"),
			member(t, doc, "schemas", 0, "fields", 2, "type", "element-id"),
			member(t, doc, "schemas", 0, "fields", 2, "type", "element", "fields", 0, "id"),
			member(t, doc, "schemas", 0, "fields", 3, "type", "key-id"), member(t, doc, "schemas", 0, "fields", 3, "type", "value-id"),
			member(t, doc, "schemas", 0, "identifier-field-ids"), member(t, doc, "schemas", 0, "schema-id"),
		})
		if want := "[1,2,3,4,5,6,7,8,[1],0]"; ids != want {
			t.Errorf("v%s ids = %s, want %s", version, ids, want)
		}
		if _, err := table.ParseMetadataBytes(doc); err != nil {
			t.Errorf("v%s: iceberg-go: %v", version, err)
		}
		has := tree(t, doc).(map[string]any)
		_, oldSchema := has["schema"]
		_, nextRow := has["next-row-id"]
		_, lastSeq := has["last-sequence-number"]
		if oldSchema != (version == "1") || nextRow != (version == "3") || lastSeq != (version != "1") {
			t.Errorf("v%s has the wrong members: %v", version, slices.Sorted(maps.Keys(has)))
		}
	}
}

func TestNewTable_Refuses(t *testing.T) {
	t.Parallel()
	good := `{"type":"struct","fields":[{"id":1,"name":"a","required":false,"type":"int"}]}`
	for name, c := range map[string]struct {
		schema, spec, order string
		props               map[string]string
		want                string
	}{
		"not a struct":    {schema: `{"type":"list"}`, want: "not a struct type"},
		"null schema":     {schema: `null`, want: "non-object"},
		"unknown type":    {schema: `{"type":"struct","fields":[{"id":1,"name":"a","required":false,"type":"intt"}]}`, want: "Cannot parse type string to primitive: intt"},
		"missing id":      {schema: `{"type":"struct","fields":[{"name":"a","required":false,"type":"int"}]}`, want: "Cannot parse missing int: id"},
		"id as a float":   {schema: `{"type":"struct","fields":[{"id":1.5,"name":"a","required":false,"type":"int"}]}`, want: "Cannot parse to an integer value: id: 1.5"},
		"duplicate id":    {schema: `{"type":"struct","fields":[{"id":1,"name":"a","required":false,"type":"int"},{"id":1,"name":"b","required":false,"type":"int"}]}`, want: "multiple fields for id 1: a and b"},
		"duplicate name":  {schema: `{"type":"struct","fields":[{"id":1,"name":"a","required":false,"type":"int"},{"id":2,"name":"a","required":false,"type":"int"}]}`, want: "multiple fields for name a"},
		"v3 type in v2":   {schema: `{"type":"struct","fields":[{"id":1,"name":"a","required":false,"type":"variant"}]}`, want: "Invalid type for a: variant is not supported until v3"},
		"default in v2":   {schema: `{"type":"struct","fields":[{"id":1,"name":"a","required":false,"type":"int","initial-default":5}]}`, want: "Invalid initial default for a"},
		"wrong default":   {schema: `{"type":"struct","fields":[{"id":1,"name":"a","required":false,"type":"int","initial-default":5000000000}]}`, props: map[string]string{"format-version": "3"}, want: "Cannot parse default as a int value: a: 5000000000"},
		"bad identifier":  {schema: `{"type":"struct","identifier-field-ids":[1],"fields":[{"id":1,"name":"a","required":false,"type":"int"}]}`, want: "Cannot add field a as an identifier field: not a required field"},
		"missing source":  {schema: good, spec: `{"fields":[{"source-id":9,"name":"p","transform":"identity"}]}`, want: "Cannot find source column for id: 9"},
		"bad transform":   {schema: good, spec: `{"fields":[{"source-id":1,"name":"p","transform":"day"}]}`, want: "Invalid source type int for transform: day"},
		"name taken":      {schema: `{"type":"struct","fields":[{"id":1,"name":"a","required":false,"type":"int"},{"id":2,"name":"b","required":false,"type":"int"}]}`, spec: `{"fields":[{"source-id":1,"name":"b","transform":"identity"}]}`, want: "Cannot create identity partition sourced from different field in schema: b"},
		"unsorted not 0":  {schema: good, order: `{"order-id":4,"fields":[]}`, want: "Unsorted order ID must be 0"},
		"bad version":     {schema: good, props: map[string]string{"format-version": "4"}, want: "Unsupported format version: v4"},
		"version text":    {schema: good, props: map[string]string{"format-version": "two"}, want: `"two" is not a number`},
		"metrics column":  {schema: good, props: map[string]string{"write.metadata.metrics.column.zz": "none"}, want: "could not find column zz"},
		"retries":         {schema: good, props: map[string]string{"commit.retry.num-retries": "many"}, want: "Table property commit.retry.num-retries must have integer value"},
		"encryption key":  {schema: good, props: map[string]string{"encryption.key-id": "k"}, want: "Invalid properties for v2: [encryption.key-id]"},
		"duplicate names": {schema: `{"type":"struct","type":"struct","fields":[]}`, want: `duplicate member "type"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := metadata.NewTable(metadata.NewTableRequest{
				UUID: tableUUID, Location: "file:///w/t", Schema: json.RawMessage(c.schema), PartitionSpec: json.RawMessage(c.spec),
				WriteOrder: json.RawMessage(c.order), Properties: c.props, Now: at(0),
			})
			wantError(t, err, false, c.want)
		})
	}
}

func TestNewEmptyTable_CreateByCommit(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"1", "2", "3"} {
		tbl, err := metadata.NewEmptyTable(0, "00000000-0000-4000-8000-000000000000")
		if err != nil {
			t.Fatal(err)
		}
		mustApply(t, tbl, 0, `{"action":"assign-uuid","uuid":"`+tableUUID+`"}`,
			`{"action":"upgrade-format-version","format-version":`+version+`}`,
			`{"action":"add-schema","schema":{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"a","required":false,"type":"int"}]},"last-column-id":1}`,
			`{"action":"set-current-schema","schema-id":-1}`, `{"action":"add-spec","spec":{"spec-id":0,"fields":[]}}`,
			`{"action":"set-default-spec","spec-id":-1}`, `{"action":"add-sort-order","sort-order":{"order-id":0,"fields":[]}}`,
			`{"action":"set-default-sort-order","sort-order-id":-1}`, `{"action":"set-location","location":"file:///w/t/"}`,
			`{"action":"set-properties","updates":{"a":"b"}}`)
		if _, err := table.ParseMetadataBytes(tbl.Bytes()); err != nil {
			t.Fatalf("v%s: iceberg-go: %v\n%s", version, err, tbl.Bytes())
		}
		got := reparse(t, tbl)
		if got.UUID() != tableUUID || got.Location() != "file:///w/t" || got.CurrentSchemaID() != 0 || got.DefaultSpecID() != 0 ||
			got.LastPartitionID() != 999 || got.LastColumnID() != 1 || got.CurrentSnapshotID() != -1 || !tbl.Changed() {
			t.Errorf("v%s: %s", version, tbl.Bytes())
		}
		if v := compact(member(t, tbl.Bytes(), "format-version")); v != version {
			t.Errorf("format-version = %s, want %s", v, version)
		}
	}
	tbl, _ := metadata.NewEmptyTable(0, tableUUID)
	wantError(t, tbl.Apply(raws(`{"action":"set-location","location":"file:///w/t"}`), metadata.ApplyContext{Now: at(0)}), false, "no current schema")
}

// TestTable_UnknownMembersSurvive plants a member at every level and looks for it after a
// create, three commits that touch each of these levels, and in the refs form.
func TestTable_UnknownMembersSurvive(t *testing.T) {
	t.Parallel()
	schema := strings.NewReplacer(
		`"schema-id":7,`, `"schema-id":7,"x-schema":{"a":[1,2]},`,
		`"name":"id",`, `"name":"id","x-field":9007199254740993,`,
		`"name":"k",`, `"name":"k","x-nested":true,`,
		`"type":"list",`, `"type":"list","x-list":1.10,`,
		`"type":"map",`, `"type":"map","x-map":null,`,
	).Replace(flights)
	tbl, err := metadata.NewTable(metadata.NewTableRequest{
		UUID: tableUUID, Location: "file:///w/ns/t", Schema: json.RawMessage(schema),
		PartitionSpec: json.RawMessage(`{"x-spec":1,"fields":[{"source-id":5,"name":"day","transform":"identity","x-specfield":2}]}`),
		WriteOrder:    json.RawMessage(`{"order-id":1,"x-order":1,"fields":[{"source-id":0,"transform":"identity","direction":"asc","null-order":"nulls-first","x-orderfield":2}]}`),
		Properties:    map[string]string{"format-version": "3"}, Now: at(0),
	})
	if err != nil {
		t.Fatal(err)
	}
	doc := []byte(strings.Replace(string(tbl.Bytes()), `{"format-version"`, `{"x-top":{"deep":[12345678901234567890123]},"format-version"`, 1))
	if tbl, err = metadata.ParseTable(doc); err != nil {
		t.Fatal(err)
	}
	add := strings.Replace(addSnapshot(1, 0, 1, 1, 0, 5), `"snapshot":{`, `"snapshot":{"x-snapshot":1e400,"key-id":"k1",`, 1)
	mustApply(t, tbl, 1, add, `{"action":"set-snapshot-ref","ref-name":"main","type":"branch","snapshot-id":1,"x-ref":"r"}`,
		`{"action":"set-statistics","statistics":{"snapshot-id":1,"statistics-path":"s","file-size-in-bytes":1,"file-footer-size-in-bytes":1,"x-stat":1,"blob-metadata":[{"type":"b","snapshot-id":1,"sequence-number":1,"fields":[1],"x-blob":1}]}}`,
		`{"action":"set-partition-statistics","partition-statistics":{"snapshot-id":1,"statistics-path":"p","file-size-in-bytes":1,"x-pstat":1}}`,
		`{"action":"add-encryption-key","encryption-key":{"key-id":"k1","encrypted-key-metadata":"aGk=","x-key":1}}`)
	tbl = reparse(t, tbl)
	mustApply(t, tbl, 2, addSnapshot(2, 1, 2, 2, 5, 5), setMain(2), `{"action":"set-snapshot-ref","ref-name":"t","type":"tag","snapshot-id":1,"x-tag":1}`,
		`{"action":"set-properties","updates":{"a":"1"}}`)
	tbl = reparse(t, tbl)
	mustApply(t, tbl, 3, addSnapshot(3, 2, 3, 3, 10, 0), setMain(3),
		`{"action":"add-schema","schema":{"type":"struct","fields":[{"id":1,"name":"id","required":true,"type":"long"},{"id":2,"name":"day","required":false,"type":"date"}]}}`,
		`{"action":"add-spec","spec":{"fields":[{"source-id":2,"name":"day_month","transform":"month"}]}}`)
	for form, doc := range map[string][]byte{"all": tbl.Bytes(), "refs": tbl.RefsBytes()} {
		for _, want := range []string{
			`"x-top":{"deep":[12345678901234567890123]}`, `"x-schema":{"a":[1,2]}`, `"x-field":9007199254740993`, `"x-nested":true`,
			`"x-list":1.10`, `"x-map":null`, `"x-spec":1`, `"x-specfield":2`, `"x-order":1`, `"x-orderfield":2`, `"x-snapshot":1e400`,
			`"key-id":"k1"`, `"x-ref":"r"`, `"x-tag":1`, `"x-stat":1`, `"x-blob":1`, `"x-pstat":1`, `"x-key":1`,
		} {
			if strings.Count(string(doc), want) == 0 {
				t.Errorf("%s form lost %s", form, want)
			}
		}
	}
	if n := len(reparse(t, tbl).SnapshotIDs()); n != 3 {
		t.Errorf("%d snapshots, want 3", n)
	}
	refs, err := metadata.ParseTable(tbl.RefsBytes())
	if err != nil {
		t.Fatal(err)
	}
	if got := refs.SnapshotIDs(); !slices.Equal(got, []int64{1, 3}) {
		t.Errorf("refs form has snapshots %v, want 1 and 3", got)
	}
	if got := len(member(t, tbl.RefsBytes(), "snapshot-log").([]any)); got != 3 {
		t.Errorf("refs form has %d log entries, want all 3", got)
	}
}

func TestTable_DefaultsStayExact(t *testing.T) {
	t.Parallel()
	fields := []string{
		`{"id":1,"name":"l","required":false,"type":"long","initial-default":9223372036854775807,"write-default":-9007199254740993}`,
		`{"id":2,"name":"d","required":false,"type":"decimal(38, 10)","initial-default":"1234567890123456789012345678.0123456789"}`,
		`{"id":3,"name":"f","required":false,"type":"double","write-default":1e300}`,
		`{"id":4,"name":"s","required":false,"type":"string","write-default":"\u00e9\n"}`,
	}
	tbl, err := metadata.NewTable(metadata.NewTableRequest{
		UUID: tableUUID, Location: "l", Schema: json.RawMessage(`{"type":"struct","schema-id":0,"fields":[` + strings.Join(fields, ",") + `]}`),
		Properties: map[string]string{"format-version": "3"}, Now: at(0),
	})
	if err != nil {
		t.Fatal(err)
	}
	for second := range int64(3) {
		mustApply(t, tbl, second+1, `{"action":"set-properties","updates":{"n":"`+string(rune('a'+second))+`"}}`)
		tbl = reparse(t, tbl)
	}
	for _, f := range fields {
		if !strings.Contains(string(tbl.CurrentSchema()), f) {
			t.Errorf("lost the bytes of %s", f)
		}
	}
}

func TestTable_NoChangeKeepsTheBytes(t *testing.T) {
	t.Parallel()
	doc := []byte("  " + strings.ReplaceAll(string(newTable(t, "2").Bytes()), `,"`, " ,\n\"") + "\n")
	tbl, err := metadata.ParseTable(doc)
	if err != nil {
		t.Fatal(err)
	}
	mustApply(t, tbl, 9, `{"action":"set-properties","updates":{"owner":"ann"}}`, `{"action":"remove-properties","removals":["nothing"]}`,
		`{"action":"assign-uuid","uuid":"`+strings.ToUpper(tableUUID)+`"}`, `{"action":"set-location","location":"file:///w/ns/t/"}`,
		`{"action":"upgrade-format-version","format-version":2}`, `{"action":"set-current-schema","schema-id":0}`,
		`{"action":"remove-snapshots","snapshot-ids":[5]}`, `{"action":"remove-snapshot-ref","ref-name":"gone"}`,
		`{"action":"remove-statistics","snapshot-id":5}`, `{"action":"add-spec","spec":{"fields":[{"source-id":2,"name":"day","transform":"IDENTITY"}]}}`,
		`{"action":"set-properties","updates":{"codec":""}}`, `{"action":"remove-properties","removals":["codec"]}`)
	if tbl.Changed() || string(tbl.Bytes()) != string(doc) {
		t.Errorf("Changed() = %v, document:\n%s", tbl.Changed(), tbl.Bytes())
	}
	if &tbl.RefsBytes()[0] != &doc[0] {
		t.Error("RefsBytes copied a document that has no historical snapshot")
	}
	if err := tbl.Apply(nil, metadata.ApplyContext{Now: at(9), PreviousLocation: "x"}); err != nil || tbl.Changed() {
		t.Errorf("Apply(nil): changed %v, %v", tbl.Changed(), err)
	}
}

func TestTable_OldVersion1Document(t *testing.T) {
	t.Parallel()
	doc := `{"format-version":1,"location":"l","last-updated-ms":1700000000000,"last-column-id":2,
 "schema":{"type":"struct","fields":[{"id":1,"name":"a","required":true,"type":"long"},{"id":2,"name":"b","required":true,"type":"long"}]},
 "partition-spec":[{"name":"a","transform":"identity","source-id":1}],"properties":{},
 "current-snapshot-id":7,"snapshots":[{"snapshot-id":7,"timestamp-ms":1700000000000,"manifests":["m"]}]}`
	tbl, err := metadata.ParseTable([]byte(doc))
	if err != nil {
		t.Fatal(err)
	}
	if r, ok := tbl.Ref("main"); !ok || r.SnapshotID != 7 || tbl.LastPartitionID() != 1000 {
		t.Errorf("main = %v, last partition id %d", r, tbl.LastPartitionID())
	}
	mustApply(t, tbl, 5, `{"action":"assign-uuid","uuid":"`+tableUUID+`"}`, `{"action":"upgrade-format-version","format-version":2}`)
	if _, err := table.ParseMetadataBytes(tbl.Bytes()); err != nil {
		t.Fatalf("iceberg-go: %v\n%s", err, tbl.Bytes())
	}
	got := reparse(t, tbl)
	if spec := string(got.DefaultSpec()); !strings.Contains(spec, `"field-id":1000`) {
		t.Errorf("spec = %s", spec)
	}
	if tree(t, tbl.Bytes()).(map[string]any)["schema"] != nil {
		t.Error("the member schema outlived version 1")
	}
}

func TestParseTable_Refuses(t *testing.T) {
	t.Parallel()
	good := string(newTable(t, "2").Bytes())
	for name, c := range map[string]struct{ old, new, want string }{
		"version":         {`"format-version":2`, `"format-version":4`, "Cannot read unsupported version 4"},
		"version type":    {`"format-version":2`, `"format-version":"2"`, "Cannot parse to an integer value: format-version"},
		"uuid":            {`"table-uuid"`, `"table-uid"`, "UUID is required in format v2"},
		"location":        {`"location"`, `"locaton"`, "Cannot parse missing string: location"},
		"schemas":         {`"schemas":[`, `"shemas":[`, "schemas must exist in format v2"},
		"current schema":  {`"current-schema-id":0`, `"current-schema-id":3`, "Cannot find schema with current-schema-id=3"},
		"default spec":    {`"default-spec-id":0`, `"default-spec-id":3`, "default-spec-id=3"},
		"default order":   {`"default-sort-order-id":0`, `"default-sort-order-id":3`, "default-sort-order-id=3"},
		"current":         {`"current-snapshot-id":-1`, `"current-snapshot-id":3`, "Cannot find current version"},
		"ref":             {`"refs":{}`, `"refs":{"b":{"snapshot-id":1,"type":"branch"}}`, "Snapshot for reference b does not exist"},
		"duplicate":       {`"refs":{}`, `"refs":{},"refs":{}`, `duplicate member "refs"`},
		"property":        {`"owner":"ann"`, `"owner":1`, "Cannot parse to a string value: owner: 1"},
		"snapshot id":     {`"snapshots":[]`, `"snapshots":[{"snapshot-id":1.5}]`, "Cannot parse to a long value: snapshot-id: 1.5"},
		"snapshot twice":  {`"snapshots":[]`, `"snapshots":[{"snapshot-id":1},{"snapshot-id":1}]`, "duplicate snapshot-id 1"},
		"sequence number": {`"snapshots":[]`, `"snapshots":[{"snapshot-id":1,"sequence-number":1}]`, "greater than last sequence number 0"},
		"trailing":        {`"metadata-log":[]}`, `"metadata-log":[]}x`, "expected the end"},
		"truncated":       {`"metadata-log":[]}`, `"metadata-log":[`, "unexpected end"},
		"utf-8":           {"ann", "\xff", "invalid UTF-8"},
		"depth":           {`"refs":{}`, `"refs":{},"x":` + strings.Repeat("[", 600) + strings.Repeat("]", 600), "nested deeper than 512 levels"},
		"control":         {"ann", "a\x01n", "control character"},
		"escape":          {"ann", `\x41`, "a string escape"},
		"leading zero":    {`"last-column-id":8`, `"last-column-id":08`, "',' or '}'"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			doc := strings.Replace(good, c.old, c.new, 1)
			if doc == good {
				t.Fatal("the case changes nothing")
			}
			_, err := metadata.ParseTable([]byte(doc))
			wantError(t, err, false, c.want)
		})
	}
}
