package conformance_test

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// foreign is a member that no specification has. Its numbers are longer than a float64,
// and its text has what encoders like to rewrite.
const foreign = `{"big":9223372036854775807,"odd":9007199254740993,"dec":1234567890123456789012345678.0123456789,"exp":1E+2,"text":"é<\u0026>","none":null,"list":[1.10,-0]}`

// planted is `,"x-foreign-<at>":<foreign>`, to be put behind another member.
func planted(at string) string { return `,"x-foreign-` + at + `":` + foreign }

// longDefault and decimalDefault are default values that do not survive a float64.
const (
	longDefault    = `9007199254740993`
	longMax        = `9223372036854775807`
	decimalDefault = `"99999999999999999999999999999999999.123"`
)

// plantedSchema is a schema with a foreign member at every level, nested ones included.
func plantedSchema(id int) string {
	return fmt.Sprintf(`{"type":"struct","schema-id":%d,"fields":[`+
		`{"id":1,"name":"id","required":false,"type":"long","initial-default":%s,"write-default":%s%s},`+
		`{"id":2,"name":"amount","required":false,"type":"decimal(38,3)","initial-default":%s,"write-default":%s},`+
		`{"id":3,"name":"place","required":false,"type":{"type":"struct","fields":[{"id":6,"name":"x","required":false,"type":"int"%s}]%s}},`+
		`{"id":4,"name":"tags","required":false,"type":{"type":"list","element-id":7,"element":"string","element-required":false%s}},`+
		`{"id":5,"name":"attributes","required":false,"type":{"type":"map","key-id":8,"key":"string","value-id":9,"value":"long","value-required":false%s}}`+
		`]%s}`, id, longDefault, longMax, planted("field"), decimalDefault, decimalDefault,
		planted("nested-field"), planted("struct"), planted("list"), planted("map"), planted("schema"))
}

// schemaPlants are the places in [plantedSchema] that hold a foreign member.
func schemaPlants(schema ...any) []plant {
	fields := func(rest ...any) []any { return join(schema, append([]any{"fields"}, rest...)...) }
	return []plant{
		{"schema", schema},
		{"field", fields(0)},
		{"struct", fields(2, "type")},
		{"nested-field", fields(2, "type", "fields", 0)},
		{"list", fields(3, "type")},
		{"map", fields(4, "type")},
	}
}

// plant is where in a document a foreign member has to be.
type plant struct {
	name string
	path []any
}

func join(path []any, more ...any) []any {
	return append(append([]any{}, path...), more...)
}

// holds checks that every plant is where it was put, byte for byte.
func (r reply) holds(t *testing.T, plants []plant) {
	t.Helper()
	for _, p := range plants {
		raw, err := walk(r.body, join(p.path, "x-foreign-"+p.name))
		if err != nil {
			t.Errorf("%s: foreign member of %s is lost: %v", r.call, p.name, err)
			continue
		}
		if string(raw) != foreign {
			t.Errorf("%s: foreign member of %s = %s, want %s", r.call, p.name, raw, foreign)
		}
	}
}

// exactDefaults checks the default values of [plantedSchema].
func (r reply) exactDefaults(t *testing.T, schema ...any) {
	t.Helper()
	r.want(t, longDefault, join(schema, "fields", 0, "initial-default")...)
	r.want(t, longMax, join(schema, "fields", 0, "write-default")...)
	r.want(t, decimalDefault, join(schema, "fields", 1, "initial-default")...)
	r.want(t, decimalDefault, join(schema, "fields", 1, "write-default")...)
}

// forms are the ways in which a table is loaded.
var forms = []struct{ query, encoding string }{
	{"", "identity"},
	{"", "gzip"},
	{"?snapshots=all", "gzip"},
	{"?snapshots=refs", "identity"},
	{"?snapshots=refs", "gzip"},
}

// threeCommits changes properties only, which must leave the rest alone.
func (s space) threeCommits(path string) {
	s.t.Helper()
	for i := range 3 {
		r := s.commit(path, list{object{"action": "set-properties", "updates": object{"round": strconv.Itoa(i)}}})
		if r.status != 200 {
			s.t.Fatalf("commit %d: %s", i, r.body)
		}
	}
}

func TestDocument_ForeignMembersOfCreate(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	body := `{"name":"t","schema":` + plantedSchema(0) +
		`,"partition-spec":{"spec-id":0,"fields":[{"source-id":1,"field-id":1000,"name":"id_bucket","transform":"bucket[4]"` + planted("spec-field") + `}]` + planted("spec") + `}` +
		`,"write-order":{"order-id":1,"fields":[{"source-id":1,"transform":"identity","direction":"asc","null-order":"nulls-first"` + planted("order-field") + `}]` + planted("order") + `}` +
		`,"properties":{"format-version":"3"}}`
	created := s.must("POST", s.path()+"/tables", body)
	plants := append(
		schemaPlants("metadata", "schemas", 0),
		plant{"spec", []any{"metadata", "partition-specs", 0}},
		plant{"spec-field", []any{"metadata", "partition-specs", 0, "fields", 0}},
		plant{"order", []any{"metadata", "sort-orders", 0}},
		plant{"order-field", []any{"metadata", "sort-orders", 0, "fields", 0}},
	)
	created.holds(t, plants)
	created.exactDefaults(t, "metadata", "schemas", 0)
	s.threeCommits(s.table("t"))
	for _, f := range forms {
		r := s.must("GET", s.table("t")+f.query, nil, "Accept-Encoding", f.encoding)
		r.holds(t, plants)
		r.exactDefaults(t, "metadata", "schemas", 0)
		r.want(t, `"2"`, "metadata", "properties", "round")
	}
}

func TestDocument_ForeignMembersOfCommits(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.must("POST", s.path()+"/tables", object{"name": "t", "schema": sampleSchema(), "properties": object{"format-version": "3"}})
	const id = longMax
	now := strconv.FormatInt(time.Now().UnixMilli(), 10)
	updates := `{"requirements":[],"updates":[` +
		`{"action":"add-schema","schema":` + plantedSchema(1) + `},` +
		`{"action":"add-spec","spec":{"spec-id":1,"fields":[{"source-id":1,"field-id":1000,"name":"b","transform":"bucket[4]"` + planted("spec-field") + `}]` + planted("spec") + `}},` +
		`{"action":"add-sort-order","sort-order":{"order-id":1,"fields":[{"source-id":1,"transform":"identity","direction":"asc","null-order":"nulls-first"` + planted("order-field") + `}]` + planted("order") + `}},` +
		`{"action":"add-snapshot","snapshot":{"snapshot-id":` + id + `,"sequence-number":1,"timestamp-ms":` + now + `,"manifest-list":"file:///none.avro","summary":{"operation":"append","x-foreign":"kept"},"schema-id":0,"first-row-id":0,"added-rows":0` + planted("snapshot") + `}},` +
		`{"action":"set-snapshot-ref","ref-name":"main","type":"branch","snapshot-id":` + id + `},` +
		`{"action":"set-statistics","statistics":{"snapshot-id":` + id + `,"statistics-path":"file:///s.puffin","file-size-in-bytes":9007199254740993,"file-footer-size-in-bytes":1,"blob-metadata":[{"type":"apache-datasketches-theta-v1","snapshot-id":` + id + `,"sequence-number":1,"fields":[1]` + planted("blob") + `}]` + planted("statistics") + `}},` +
		`{"action":"set-partition-statistics","partition-statistics":{"snapshot-id":` + id + `,"statistics-path":"file:///p.parquet","file-size-in-bytes":9007199254740993` + planted("partition-statistics") + `}},` +
		`{"action":"add-encryption-key","encryption-key":{"key-id":"k","encrypted-key-metadata":"AA=="` + planted("key") + `}}` +
		`]}`
	s.must("POST", s.table("t"), updates)
	s.threeCommits(s.table("t"))
	plants := append(
		schemaPlants("metadata", "schemas", 1),
		plant{"spec", []any{"metadata", "partition-specs", 1}},
		plant{"spec-field", []any{"metadata", "partition-specs", 1, "fields", 0}},
		plant{"order", []any{"metadata", "sort-orders", 1}},
		plant{"order-field", []any{"metadata", "sort-orders", 1, "fields", 0}},
		plant{"snapshot", []any{"metadata", "snapshots", 0}},
		plant{"statistics", []any{"metadata", "statistics", 0}},
		plant{"blob", []any{"metadata", "statistics", 0, "blob-metadata", 0}},
		plant{"partition-statistics", []any{"metadata", "partition-statistics", 0}},
		plant{"key", []any{"metadata", "encryption-keys", 0}},
	)
	for _, f := range forms {
		r := s.must("GET", s.table("t")+f.query, nil, "Accept-Encoding", f.encoding)
		r.holds(t, plants)
		r.exactDefaults(t, "metadata", "schemas", 1)
		r.want(t, id, "metadata", "current-snapshot-id")
		r.want(t, id, "metadata", "snapshots", 0, "snapshot-id")
		r.want(t, id, "metadata", "refs", "main", "snapshot-id")
		r.want(t, now, "metadata", "snapshots", 0, "timestamp-ms")
		r.want(t, `"kept"`, "metadata", "snapshots", 0, "summary", "x-foreign")
		r.want(t, longDefault, "metadata", "statistics", 0, "file-size-in-bytes")
	}
}

// registered is a table's metadata as another writer may have left it, with a foreign
// member at every level that a request cannot reach.
func registered(location string) string {
	snapshot := func(id, parent, name string) string {
		if parent != "" {
			parent = `"parent-snapshot-id":` + parent + `,`
		}
		return `{"snapshot-id":` + id + `,` + parent + `"sequence-number":1,"timestamp-ms":1700000000000,"manifest-list":"file:///none.avro","summary":{"operation":"append"},"schema-id":0` + planted(name) + `}`
	}
	return `{"format-version":2,"table-uuid":"11111111-2222-3333-4444-555555555555","location":"` + location + `",` +
		`"last-sequence-number":9007199254740993,"last-updated-ms":1700000000000,"last-column-id":9,"current-schema-id":0,` +
		`"schemas":[` + plantedSchema(0) + `],"default-spec-id":0,` +
		`"partition-specs":[{"spec-id":0,"fields":[]` + planted("spec") + `}],"last-partition-id":999,` +
		`"default-sort-order-id":0,"sort-orders":[{"order-id":0,"fields":[]` + planted("order") + `}],` +
		`"properties":{"owner":"somebody"},"current-snapshot-id":9007199254740993,` +
		`"refs":{"main":{"snapshot-id":9007199254740993,"type":"branch"` + planted("ref") + `},"old":{"snapshot-id":1,"type":"tag"` + planted("tag") + `}},` +
		`"snapshots":[` + snapshot("1", "", "first") + `,` + snapshot("9007199254740993", "1", "second") + `],` +
		`"snapshot-log":[{"snapshot-id":1,"timestamp-ms":1690000000000` + planted("log") + `},{"snapshot-id":9007199254740993,"timestamp-ms":1700000000000}],` +
		`"metadata-log":[{"metadata-file":"file:///old.metadata.json","timestamp-ms":1690000000000` + planted("metadata-log") + `}],` +
		`"statistics":[{"snapshot-id":1,"statistics-path":"file:///s.puffin","file-size-in-bytes":1,"file-footer-size-in-bytes":1,"blob-metadata":[]` + planted("statistics") + `}]` +
		planted("table") + `}`
}

func TestDocument_ForeignMembersOfRegister(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	folder := s.tableFolder("staged")
	s.must("POST", s.table("staged")+"/unregister", nil) // its place is free for another one
	file := filepath.Join(folder, "metadata", "00000-registered.metadata.json")
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(registered("file://"+folder)), 0o666); err != nil {
		t.Fatal(err)
	}
	s.must("POST", s.path()+"/register", object{"name": "t", "metadata-location": "file://" + file})
	plants := append(
		schemaPlants("metadata", "schemas", 0),
		plant{"table", []any{"metadata"}},
		plant{"spec", []any{"metadata", "partition-specs", 0}},
		plant{"order", []any{"metadata", "sort-orders", 0}},
		plant{"ref", []any{"metadata", "refs", "main"}},
		plant{"tag", []any{"metadata", "refs", "old"}},
		plant{"first", []any{"metadata", "snapshots", 0}},
		plant{"second", []any{"metadata", "snapshots", 1}},
		plant{"log", []any{"metadata", "snapshot-log", 0}},
		plant{"metadata-log", []any{"metadata", "metadata-log", 0}},
		plant{"statistics", []any{"metadata", "statistics", 0}},
	)
	for round := range 2 {
		for _, f := range forms {
			r := s.must("GET", s.table("t")+f.query, nil, "Accept-Encoding", f.encoding)
			r.holds(t, plants)
			r.exactDefaults(t, "metadata", "schemas", 0)
			r.want(t, longDefault, "metadata", "last-sequence-number")
			r.want(t, longDefault, "metadata", "current-snapshot-id")
		}
		if round == 0 {
			s.threeCommits(s.table("t"))
		}
	}
}

// tableFolder creates a table and returns the folder where its files are.
func (s space) tableFolder(name string) string {
	s.t.Helper()
	return folderOf(s.t, s.createTable(name).text(s.t, "metadata", "location"))
}

func folderOf(t *testing.T, location string) string {
	t.Helper()
	u, err := url.Parse(location)
	if err != nil || u.Scheme != "file" {
		t.Fatalf("location %s is not in a file warehouse: %v", location, err)
	}
	return u.Path
}

func TestDocument_ForeignMembersOfViews(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.createTable("t")
	schema := `{"type":"struct","schema-id":0,"fields":[{"id":0,"name":"id","required":false,"type":"long"` + planted("field") + `}]` + planted("schema") + `}`
	version := func(id int, more string) string {
		return fmt.Sprintf(`{"version-id":%d,"schema-id":0,"timestamp-ms":9007199254740993,"summary":{"engine-name":"test","x":"kept"},`, id) +
			fmt.Sprintf(`"default-namespace":[%q],"representations":[{"type":"sql","sql":"SELECT id FROM t","dialect":"duckdb"`, s.levels[0]) + planted("representation") + `},` +
			`{"type":"future","payload":` + foreign + `}]` + more + planted("version") + `}`
	}
	storage := fmt.Sprintf(`,"storage-table":{"namespace":[%q],"name":"kept"%s}`, s.levels[0], planted("storage"))
	s.must("POST", s.path()+"/views", `{"name":"v","schema":`+schema+`,"view-version":`+version(1, storage)+`,"properties":{}`+`}`)
	versionPlants := func(at int) []plant {
		v := []any{"metadata", "versions", at}
		return []plant{
			{"version", v},
			{"representation", join(v, "representations", 0)},
			{"storage", join(v, "storage-table")},
		}
	}
	schemaAt := []plant{
		{"schema", []any{"metadata", "schemas", 0}},
		{"field", []any{"metadata", "schemas", 0, "fields", 0}},
	}
	s.threeCommits(s.view("v"))
	r := s.must("GET", s.view("v"), nil, "Accept-Encoding", "gzip")
	r.holds(t, append(versionPlants(0), schemaAt...))
	r.want(t, longDefault, "metadata", "versions", 0, "timestamp-ms")
	r.want(t, foreign, "metadata", "versions", 0, "representations", 1, "payload")

	// A client that does not know storage tables replaces the view.
	s.must("POST", s.view("v"), `{"requirements":[],"updates":[{"action":"add-view-version","view-version":`+
		strings.Replace(version(2, ""), "SELECT id FROM t", "SELECT id FROM t /* edited */", 1)+`},{"action":"set-current-view-version","view-version-id":-1}]}`)
	for _, encoding := range []string{"identity", "gzip"} {
		r := s.must("GET", s.view("v"), nil, "Accept-Encoding", encoding)
		r.want(t, "2", "metadata", "current-version-id")
		r.want(t, `"kept"`, "metadata", "versions", 1, "storage-table", "name")
		r.holds(t, append(versionPlants(0), schemaAt...))
		r.holds(t, versionPlants(1)[:2])
	}
}
