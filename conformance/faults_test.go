package conformance_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const (
	bad      = "BadRequestException"
	illegal  = "IllegalArgumentException" // of view documents only: see catalog.Service
	conflict = "CommitFailedException"
)

// tooLong is one character longer than a name may be.
var tooLong = strings.Repeat("n", 256)

func TestFaults_Create(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	tables, views := s.path()+"/tables", s.path()+"/views"
	schema := sampleSchema()
	tests := []struct {
		name, path string
		body       any
		says       string
	}{
		{"malformed", tables, `{"name":"t","schema":`, "Malformed JSON"},
		{"two documents", tables, `{"name":"t"} {}`, "JSON"},
		{"no object", tables, `[1]`, "object"},
		{"empty body", tables, ``, "body"},
		{"name of another type", tables, object{"name": 5, "schema": schema}, "name"},
		{"no name", tables, object{"schema": schema}, "name"},
		{"empty name", tables, object{"name": "", "schema": schema}, "name"},
		{"long name", tables, object{"name": tooLong, "schema": schema}, "longer than 255"},
		{"NUL in the name", tables, object{"name": "a\x00b", "schema": schema}, "NUL"},
		{"no schema", tables, object{"name": "t"}, "schema"},
		{"schema of another type", tables, object{"name": "t", "schema": 5}, "schema"},
		{"unknown type", tables, `{"name":"t","schema":{"type":"struct","fields":[{"id":1,"name":"c","required":false,"type":"quaternion"}]}}`, "quaternion"},
		{"field without a name", tables, `{"name":"t","schema":{"type":"struct","fields":[{"id":1,"required":false,"type":"int"}]}}`, "name"},
		{"two fields of one name", tables, `{"name":"t","schema":{"type":"struct","fields":[{"id":1,"name":"c","required":false,"type":"int"},{"id":2,"name":"c","required":false,"type":"int"}]}}`, "c"},
		{"spec of a missing column", tables, object{"name": "t", "schema": schema, "partition-spec": object{"spec-id": 0, "fields": list{object{"source-id": 99, "field-id": 1000, "name": "p", "transform": "identity"}}}}, "99"},
		{"spec of another type", tables, object{"name": "t", "schema": schema, "partition-spec": "day"}, "spec"},
		{"property that is no string", tables, object{"name": "t", "schema": schema, "properties": object{"k": 5}}, "properties"},
		{"format version", tables, object{"name": "t", "schema": schema, "properties": object{"format-version": "99"}}, "99"},
		{"location elsewhere", tables, object{"name": "t", "schema": schema, "location": "gopher://x/y"}, "gopher://x/y"},
		{"view without a version", views, object{"name": "v", "schema": idSchema(), "properties": object{}}, "view-version"},
		{"view without a text", views, `{"name":"v","schema":{"type":"struct","schema-id":0,"fields":[]},"view-version":{"version-id":1,"schema-id":0,"timestamp-ms":1,"summary":{},"default-namespace":["a"],"representations":[]},"properties":{}}`, "representation"},
		{"view with a long name", views, s.newView(tooLong, "SELECT 1"), "longer than 255"},
		{"namespace of another type", restBase + "/namespaces", object{"namespace": "a"}, "namespace"},
		{"namespace without levels", restBase + "/namespaces", object{"namespace": list{}}, "amespace"},
		{"namespace with an empty level", restBase + "/namespaces", object{"namespace": list{"a", ""}}, "level 2"},
		{"namespace with a long level", restBase + "/namespaces", object{"namespace": list{tooLong}}, "255"},
		{"namespace property", restBase + "/namespaces", object{"namespace": list{s.levels[0] + "2"}, "properties": object{"k": list{}}}, "properties"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			exception := bad
			if tt.name == "view without a text" {
				exception = illegal
			}
			s.client.do("POST", tt.path, tt.body).refused(t, 400, exception, tt.says)
		})
	}
	s.do("POST", restBase+"/namespaces/nowhere/tables", object{"name": "t", "schema": schema}).refused(t, 404, "NoSuchNamespaceException", "Namespace does not exist: nowhere")
	s.do("POST", restBase+"/namespaces/nowhere/views", s.newView("v", "SELECT 1")).refused(t, 404, "NoSuchNamespaceException", "Namespace does not exist: nowhere")
	s.lists("tables")
	s.lists("views")
	s.status("GET", restBase+"/namespaces/"+s.levels[0]+"2", 404)
}

func TestFaults_Updates(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.createTable("t")
	tests := []struct{ name, updates, says string }{
		{"unknown", `[{"action":"frobnicate"}]`, "frobnicate"},
		{"no action", `[{"updates":{}}]`, "action"},
		{"action of another type", `[{"action":7}]`, "action"},
		{"no object", `[7]`, ""},
		{"location of another type", `[{"action":"set-location","location":5}]`, "location"},
		{"schema that is missing", `[{"action":"set-current-schema","schema-id":55}]`, "55"},
		{"spec that is missing", `[{"action":"set-default-spec","spec-id":56}]`, "56"},
		{"order that is missing", `[{"action":"set-default-sort-order","sort-order-id":57}]`, "57"},
		{"ref to a missing snapshot", `[{"action":"set-snapshot-ref","ref-name":"main","type":"branch","snapshot-id":58}]`, "58"},
		{"downgrade", `[{"action":"upgrade-format-version","format-version":1}]`, "1"},
		{"other uuid", `[{"action":"assign-uuid","uuid":"no uuid"}]`, "uuid"},
		{"snapshot without its list", `[{"action":"add-snapshot","snapshot":{"snapshot-id":1}}]`, ""},
		{"first of two is fine", `[{"action":"set-properties","updates":{"a":"b"}},{"action":"frobnicate"}]`, "frobnicate"},
		{"property that is no string", `[{"action":"set-properties","updates":{"a":1}}]`, "a"},
		{"long that overflows", `[{"action":"remove-snapshots","snapshot-ids":[9223372036854775808]}]`, "9223372036854775808"},
	}
	s.unchanged(s.table("t"), func() {
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				s.client.do("POST", s.table("t"), `{"requirements":[],"updates":`+tt.updates+`}`).refused(t, 400, bad, tt.says)
			})
		}
		s.do("POST", s.table("t"), `{"requirements":[],"updates":{}}`).refused(t, 400, bad, "updates")
		s.do("POST", s.table("t"), `{"requirements":[]`).refused(t, 400, bad, "JSON")
	})
	s.commit(s.table("none"), list{}).refused(t, 404, "NoSuchTableException", "Table does not exist: "+s.full("none"))
}

// The words are those by which Java clients decide what to do next.
func TestFaults_Requirements(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	uuid := s.createTable("t").text(t, "metadata", "table-uuid")
	tests := []struct {
		requirement string
		status      int
		says        string
	}{
		{`{"type":"assert-create"}`, 409, "Requirement failed: table already exists"},
		{`{"type":"assert-table-uuid","uuid":"other"}`, 409, "Requirement failed: UUID does not match: expected " + uuid + " != other"},
		{`{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":7}`, 409, "Requirement failed: branch or tag main is missing, expected 7"},
		{`{"type":"assert-last-assigned-field-id","last-assigned-field-id":9}`, 409, "Requirement failed: last assigned field id changed: expected id 9 != 3"},
		{`{"type":"assert-current-schema-id","current-schema-id":9}`, 409, "Requirement failed: current schema changed: expected id 9 != 0"},
		{`{"type":"assert-last-assigned-partition-id","last-assigned-partition-id":9}`, 409, "Requirement failed: last assigned partition id changed: expected id 9 != 999"},
		{`{"type":"assert-default-spec-id","default-spec-id":9}`, 409, "Requirement failed: default partition spec changed: expected id 9 != 0"},
		{`{"type":"assert-default-sort-order-id","default-sort-order-id":9}`, 409, "Requirement failed: default sort order changed: expected id 9 != 0"},
		{`{"type":"assert-moon-phase"}`, 400, "assert-moon-phase"},
		{`{"type":"assert-default-spec-id","default-spec-id":"x"}`, 400, "default-spec-id"},
		{`{}`, 400, "type"},
	}
	s.unchanged(s.table("t"), func() {
		for _, tt := range tests {
			t.Run(tt.says, func(t *testing.T) {
				exception := conflict
				if tt.status == 400 {
					exception = bad
				}
				s.client.do("POST", s.table("t"), `{"requirements":[`+tt.requirement+`],"updates":[{"action":"set-properties","updates":{"a":"b"}}]}`).
					refused(t, tt.status, exception, tt.says)
			})
		}
	})
}

func TestFaults_MovedBranch(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.createTable("t")
	snapshot := func(id int) list {
		return list{
			object{"action": "add-snapshot", "snapshot": object{
				"snapshot-id": id, "sequence-number": id, "timestamp-ms": time.Now().UnixMilli(),
				"manifest-list": fmt.Sprintf("file:///none-%d.avro", id), "summary": object{"operation": "append"}, "schema-id": 0,
			}},
			object{"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": id},
		}
	}
	none := object{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": nil}
	if r := s.commit(s.table("t"), snapshot(1), none); r.status != 200 {
		t.Fatalf("first snapshot: %s", r.body)
	}
	s.unchanged(s.table("t"), func() {
		s.commit(s.table("t"), snapshot(2), none).refused(t, 409, conflict, "Requirement failed: branch main was created concurrently")
		s.commit(s.table("t"), snapshot(2), object{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 5}).
			refused(t, 409, conflict, "Requirement failed: branch main has changed: expected id 5 != 1")
	})
}

func TestFaults_Register(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	folder := s.tableFolder("t")
	location := s.must("GET", s.table("t"), nil).text(t, "metadata-location")
	secret := "root:x:0:0:not for clients"
	for name, content := range map[string]string{"text": secret, "empty": "", "json": `{"a":1}`, "cut": `{"format-version":2,"table-uuid":`, "zipped": "\x1f\x8b\x08 and no more"} {
		file := filepath.Join(folder, "metadata", name+".metadata.json")
		if err := os.WriteFile(file, []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
		r := s.do("POST", s.path()+"/register", object{"name": "r", "metadata-location": "file://" + file})
		r.refused(t, 400, bad, file, "metadata")
		if strings.Contains(string(r.body), "not for clients") {
			t.Errorf("register answers with what is in a file that it cannot read: %s", r.body)
		}
	}
	s.do("POST", s.path()+"/register", object{"name": "r", "metadata-location": "file://" + folder + "/none.json"}).refused(t, 404, "NotFoundException", "none.json")
	s.do("POST", s.path()+"/register", object{"name": "r", "metadata-location": "s3://elsewhere/none.json"}).refused(t, 400, bad, "s3://elsewhere/none.json")
	s.do("POST", s.path()+"/register", object{"name": "r"}).refused(t, 400, bad, "metadata-location")
	s.do("POST", s.path()+"/register", object{"name": "", "metadata-location": location}).refused(t, 400, bad, "name")
	s.do("POST", restBase+"/namespaces/nowhere/register", object{"name": "r", "metadata-location": location}).refused(t, 404, "NoSuchNamespaceException", "nowhere")
	s.lists("tables", "t")
}

func TestFaults_Rename(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.createTable("t")
	for _, kind := range []string{"tables", "views"} {
		path := restBase + "/" + kind + "/rename"
		s.do("POST", path, object{"source": s.ident("t")}).refused(t, 400, bad, "destination")
		s.do("POST", path, object{"source": s.ident("t"), "destination": s.ident("")}).refused(t, 400, bad, "name")
		s.do("POST", path, object{"source": s.ident("t"), "destination": s.ident(tooLong)}).refused(t, 400, bad, "255")
		s.do("POST", path, object{"source": s.ident("t"), "destination": object{"namespace": "a", "name": "b"}}).refused(t, 400, bad, "namespace")
	}
	s.do("POST", restBase+"/views/rename", object{"source": s.ident("t"), "destination": s.ident("x")}).refused(t, 404, "NoSuchViewException", s.full("t"))
	s.lists("tables", "t")
}
