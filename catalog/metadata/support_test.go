package metadata_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/catalogd/catalogd/catalog/metadata"
)

const (
	tableUUID = "9c12d441-03fe-4693-9a96-a0705ddf69c1"
	viewUUID  = "fa6506c3-7681-40c8-86dc-e36561f83385"
	baseMS    = int64(1_700_000_000_000)
)

// at returns a time that many seconds after the beginning of the tests' world.
func at(seconds int64) time.Time { return time.UnixMilli(baseMS + 1000*seconds) }

// flights is a schema whose ids must be reassigned: they start at 0 and jump.
const flights = `{"type":"struct","schema-id":7,"identifier-field-ids":[0],"fields":[
 {"id":0,"name":"id","required":true,"type":"long"},
 {"id":5,"name":"day","required":false,"type":"date"},
 {"id":9,"name":"tags","required":false,"type":{"type":"list","element-id":11,"element-required":false,"element":{"type":"struct","fields":[
   {"id":12,"name":"k","required":true,"type":"string"}]}}},
 {"id":10,"name":"m","required":false,"type":{"type":"map","key-id":13,"key":"string","value-id":14,"value-required":false,"value":"decimal(38,10)"}}]}`

// raws turns JSON texts into updates or requirements.
func raws(texts ...string) []json.RawMessage {
	out := make([]json.RawMessage, len(texts))
	for i, s := range texts {
		out[i] = json.RawMessage(s)
	}
	return out
}

func newTable(t testing.TB, version string) *metadata.Table {
	t.Helper()
	tbl, err := metadata.NewTable(metadata.NewTableRequest{
		UUID: tableUUID, Location: "file:///w/ns/t", Schema: json.RawMessage(flights),
		PartitionSpec: json.RawMessage(`{"spec-id":3,"fields":[{"source-id":5,"field-id":77,"name":"day","transform":"identity"}]}`),
		Properties:    map[string]string{"format-version": version, "owner": "ann"},
		Now:           at(0),
	})
	if err != nil {
		t.Fatal(err)
	}
	return reparse(t, tbl)
}

// reparse returns what the next commit will work on.
func reparse(t testing.TB, tbl *metadata.Table) *metadata.Table {
	t.Helper()
	out, err := metadata.ParseTable(tbl.Bytes())
	if err != nil {
		t.Fatalf("ParseTable of our own output: %v\n%s", err, tbl.Bytes())
	}
	return out
}

func mustApply(t testing.TB, tbl *metadata.Table, second int64, updates ...string) {
	t.Helper()
	ctx := metadata.ApplyContext{Now: at(second), PreviousLocation: fmt.Sprintf("file:///w/ns/t/metadata/%05d.json", second)}
	if err := tbl.Apply(raws(updates...), ctx); err != nil {
		t.Fatalf("Apply(%s): %v", strings.Join(updates, ","), err)
	}
}

// addSnapshot is an add-snapshot update; first < 0 leaves the row lineage out.
func addSnapshot(id, parent, seq, second, first, rows int64) string {
	s := fmt.Sprintf(`{"action":"add-snapshot","snapshot":{"snapshot-id":%d,"timestamp-ms":%d,`, id, baseMS+1000*second)
	if parent > 0 {
		s += fmt.Sprintf(`"parent-snapshot-id":%d,`, parent)
	}
	if seq > 0 {
		s += fmt.Sprintf(`"sequence-number":%d,`, seq)
	}
	if first >= 0 {
		s += fmt.Sprintf(`"first-row-id":%d,"added-rows":%d,`, first, rows)
	}
	return s + fmt.Sprintf(`"manifest-list":"file:///w/ns/t/metadata/snap-%d.avro","schema-id":0,"summary":{"operation":"append","total-records":"10"}}}`, id)
}

func setMain(id int64) string {
	return fmt.Sprintf(`{"action":"set-snapshot-ref","ref-name":"main","type":"branch","snapshot-id":%d}`, id)
}

// wantError asserts the kind and text of an error of this package.
func wantError(t testing.TB, err error, conflict bool, text string) {
	t.Helper()
	var e *metadata.Error
	if !errors.As(err, &e) {
		t.Fatalf("got error %v (%T), want *metadata.Error with %q", err, err, text)
	}
	if e.Conflict != conflict {
		t.Errorf("Conflict = %v, want %v: %s", e.Conflict, conflict, e.Msg)
	}
	if !strings.Contains(e.Msg, text) {
		t.Errorf("message %q does not contain %q", e.Msg, text)
	}
}

// tree decodes JSON with its numbers as they are written.
func tree(t testing.TB, doc []byte) any {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(doc))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("not JSON: %v\n%s", err, doc)
	}
	return v
}

// member walks down a decoded document by member names and array positions.
func member(t testing.TB, doc []byte, path ...any) any {
	t.Helper()
	v := tree(t, doc)
	for _, step := range path {
		switch s := step.(type) {
		case string:
			m, ok := v.(map[string]any)
			if !ok {
				t.Fatalf("%v: no object at %q", path, s)
			}
			v = m[s]
		case int:
			l, ok := v.([]any)
			if !ok || s >= len(l) {
				t.Fatalf("%v: no element %d", path, s)
			}
			v = l[s]
		}
	}
	return v
}

func compact(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// big makes a document with many snapshots, as a busy table has.
func big(t testing.TB, snapshots int) []byte {
	t.Helper()
	tbl := newTable(t, "2")
	var updates []json.RawMessage
	for i := int64(1); i <= int64(snapshots); i++ {
		updates = append(updates, json.RawMessage(wide(addSnapshot(1000+i, 0, i, i, -1, 10))))
	}
	updates = append(updates, json.RawMessage(setMain(1000+int64(snapshots))))
	if err := tbl.Apply(updates, metadata.ApplyContext{Now: at(int64(snapshots))}); err != nil {
		t.Fatal(err)
	}
	return tbl.Bytes()
}

// wide gives a snapshot the summary of a usual size.
func wide(update string) string {
	var extra strings.Builder
	extra.WriteString(`"summary":{`)
	for i := range 14 {
		fmt.Fprintf(&extra, `"some-longer-metric-name-%d":"%d",`, i, i*123456789)
	}
	return strings.Replace(update, `"summary":{`, extra.String(), 1)
}
