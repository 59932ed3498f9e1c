package conformance_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"
)

// names are the names in a list of identifiers, sorted.
func (r reply) names(t *testing.T) []string {
	t.Helper()
	var doc struct {
		Identifiers []struct {
			Name string `json:"name"`
		} `json:"identifiers"`
	}
	if err := json.Unmarshal(r.body, &doc); err != nil {
		t.Fatalf("%s: %v", r.call, err)
	}
	out := []string{}
	for _, id := range doc.Identifiers {
		out = append(out, id.Name)
	}
	sort.Strings(out)
	return out
}

// lists checks what tables and views a namespace shows.
func (s space) lists(kind string, want ...string) {
	s.t.Helper()
	if want == nil {
		want = []string{}
	}
	if got := s.must("GET", s.path()+"/"+kind, nil).names(s.t); !reflect.DeepEqual(got, want) {
		s.t.Errorf("%s of %v = %v, want %v", kind, s.levels, got, want)
	}
}

func (s space) status(method, path string, want int) reply {
	s.t.Helper()
	r := s.do(method, path, nil)
	if r.status != want {
		s.t.Errorf("%s = %d %s, want %d", r.call, r.status, r.body, want)
	}
	if method == "HEAD" && len(r.body) > 0 {
		s.t.Errorf("%s has a body: %s", r.call, r.body)
	}
	return r
}

func TestNamespaces(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	child := space{s.client, append(slices.Clone(s.levels), "child")}
	s.must("POST", restBase+"/namespaces", object{"namespace": child.levels, "properties": object{"owner": "me", "empty": ""}})
	child.must("GET", child.path(), nil).want(t, `""`, "properties", "empty")
	child.status("HEAD", child.path(), 204)
	s.status("HEAD", s.path()+"x", 404)
	if got := s.must("GET", restBase+"/namespaces?parent="+encodeNamespace(s.levels), nil).at(t, "namespaces", 0, 1); got != `"child"` {
		t.Errorf("child namespace = %s", got)
	}
	r := s.must("POST", child.path()+"/properties", object{"removals": list{"owner", "nothing"}, "updates": object{"a": "b"}})
	r.want(t, `["a"]`, "updated")
	r.want(t, `["owner"]`, "removed")
	r.want(t, `["nothing"]`, "missing")
	child.must("GET", child.path(), nil).want(t, `"b"`, "properties", "a")
	s.unchanged(child.path(), func() {
		s.do("POST", child.path()+"/properties", object{"removals": list{"a"}, "updates": object{"a": "c"}}).refused(t, 422, "UnprocessableEntityException", "a")
		s.do("POST", restBase+"/namespaces", object{"namespace": child.levels, "properties": object{"a": "c"}}).refused(t, 409, "AlreadyExistsException", "Namespace already exists", "child")
	})
	s.do("DELETE", s.path(), nil).refused(t, 409, "NamespaceNotEmptyException", s.levels[0], "is not empty")
	child.createTable("t")
	s.do("DELETE", child.path(), nil).refused(t, 409, "NamespaceNotEmptyException", "child", "is not empty")
	s.status("DELETE", child.table("t"), 204)
	s.status("DELETE", child.path(), 204)
	s.status("DELETE", s.path(), 204)
	s.do("DELETE", s.path(), nil).refused(t, 404, "NoSuchNamespaceException", "Namespace does not exist: "+s.levels[0])
	s.do("GET", s.path(), nil).refused(t, 404, "NoSuchNamespaceException", "Namespace does not exist: "+s.levels[0])
	s.do("POST", s.path()+"/properties", object{"updates": object{"a": "b"}}).refused(t, 404, "NoSuchNamespaceException", s.levels[0])
}

func TestNamespaces_Pages(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	want := []string{}
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		s.createTable(name)
		want = append(want, name)
	}
	got, token := []string{}, ""
	for range len(want) {
		r := s.must("GET", s.path()+"/tables?pageSize=2&pageToken="+url.QueryEscape(token), nil)
		names := r.names(t)
		if len(names) > 2 {
			t.Errorf("a page of 2 has %v", names)
		}
		got = append(got, names...)
		var page struct {
			Next *string `json:"next-page-token"`
		}
		if err := json.Unmarshal(r.body, &page); err != nil {
			t.Fatal(err)
		}
		if page.Next == nil {
			break
		}
		token = *page.Next
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("pages hold %v, want %v", got, want)
	}
	s.do("GET", s.path()+"/tables?pageToken=garbage", nil).refused(t, 400, "BadRequestException", "pageToken")
	s.do("GET", s.path()+"/tables?pageSize=0", nil).refused(t, 400, "BadRequestException", "pageSize")
}

func TestTables(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	created := s.createTable("t")
	uuid := created.text(t, "metadata", "table-uuid")
	loaded := s.must("GET", s.table("t"), nil)
	if got, want := loaded.at(t, "metadata"), created.at(t, "metadata"); got != want {
		t.Errorf("loaded metadata = %s, created %s", got, want)
	}
	s.status("HEAD", s.table("t"), 204)
	s.status("HEAD", s.table("u"), 404)
	s.lists("tables", "t")

	first := loaded.text(t, "metadata-location")
	r := s.commit(s.table("t"), list{object{"action": "set-properties", "updates": object{"k": "v"}}}, object{"type": "assert-table-uuid", "uuid": uuid})
	second := r.text(t, "metadata-location")
	if first == second {
		t.Errorf("a commit left the metadata at %s", first)
	}
	r.want(t, `"`+first+`"`, "metadata", "metadata-log", 0, "metadata-file")
	if raw, err := os.ReadFile(folderOf(t, second)); err != nil || string(raw) != r.at(t, "metadata") {
		t.Errorf("metadata file: %v, %s; served %s", err, raw, r.at(t, "metadata"))
	}

	other := space{s.client, append(slices.Clone(s.levels), "other")}
	s.must("POST", restBase+"/namespaces", object{"namespace": other.levels})
	s.must("POST", restBase+"/tables/rename", object{"source": s.ident("t"), "destination": other.ident("moved")})
	s.status("GET", s.table("t"), 404)
	if got := s.must("GET", other.table("moved"), nil).text(t, "metadata", "table-uuid"); got != uuid {
		t.Errorf("renamed table has uuid %s, want %s", got, uuid)
	}
	s.status("DELETE", other.table("moved"), 204)
	if _, err := os.Stat(folderOf(t, second)); err != nil {
		t.Errorf("a drop without purge removed the metadata: %v", err)
	}
	s.must("POST", s.path()+"/register", object{"name": "back", "metadata-location": second}).want(t, `"`+uuid+`"`, "metadata", "table-uuid")
	s.must("GET", s.table("back"), nil).want(t, `"v"`, "metadata", "properties", "k")
}

// Java writes the metadata of views compressed, and that of tables on request.
func TestRegister_Compressed(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	properties := object{"write.metadata.compression-codec": "gzip"}
	view := s.newView("v", "SELECT 1 AS id")
	view["properties"] = properties
	for _, tt := range []struct {
		name, path, register string
		body                 object
	}{
		{"t", s.path() + "/tables", s.path() + "/register", object{"name": "t", "schema": sampleSchema(), "properties": properties}},
		{"v", s.path() + "/views", s.path() + "/register-view", view},
	} {
		created := s.must("POST", tt.path, tt.body)
		location := created.text(t, "metadata-location")
		b, err := os.ReadFile(folderOf(t, location))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.HasPrefix(b, []byte{0x1f, 0x8b}) || !strings.HasSuffix(location, ".gz.metadata.json") {
			t.Errorf("%s is not compressed: %q", location, b)
		}
		s.status("DELETE", tt.path+"/"+tt.name, 204)
		s.must("POST", tt.register, object{"name": "again", "metadata-location": location})
		got := s.must("GET", tt.path+"/again", nil)
		if got, want := got.at(t, "metadata"), created.at(t, "metadata"); got != want {
			t.Errorf("registered metadata is %s, want %s", got, want)
		}
		s.status("DELETE", tt.path+"/again", 204)
	}
}

func TestTables_AlreadyThere(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.createTable("t")
	s.createTable("u")
	s.createView("v", "SELECT id FROM t")
	location := s.must("GET", s.table("u"), nil).text(t, "metadata-location")
	s.unchanged(s.table("t"), func() {
		s.do("POST", s.path()+"/tables", object{"name": "t", "schema": sampleSchema()}).refused(t, 409, "AlreadyExistsException", "Table already exists: "+s.full("t"))
		s.do("POST", s.path()+"/register", object{"name": "t", "metadata-location": location}).refused(t, 409, "AlreadyExistsException", "Table already exists: "+s.full("t"))
		s.do("POST", restBase+"/tables/rename", object{"source": s.ident("u"), "destination": s.ident("t")}).
			refused(t, 409, "AlreadyExistsException", "Cannot rename "+s.full("u")+" to "+s.full("t")+". Table already exists")
		s.do("POST", restBase+"/views/rename", object{"source": s.ident("v"), "destination": s.ident("t")}).
			refused(t, 409, "AlreadyExistsException", "Cannot rename "+s.full("v")+" to "+s.full("t")+". Table already exists")
		s.do("POST", s.path()+"/views", s.newView("t", "SELECT id FROM u")).refused(t, 409, "AlreadyExistsException", "Table with same name already exists: "+s.full("t"))
	})
	s.unchanged(s.view("v"), func() {
		s.do("POST", s.path()+"/tables", object{"name": "v", "schema": sampleSchema()}).refused(t, 409, "AlreadyExistsException", "View with same name already exists: "+s.full("v"))
		s.do("POST", restBase+"/tables/rename", object{"source": s.ident("u"), "destination": s.ident("v")}).
			refused(t, 409, "AlreadyExistsException", "Cannot rename "+s.full("u")+" to "+s.full("v")+". View already exists")
		s.do("POST", s.path()+"/register", object{"name": "v", "metadata-location": location}).refused(t, 409, "AlreadyExistsException", "View with same name already exists: "+s.full("v"))
	})
	s.lists("tables", "t", "u")
	s.lists("views", "v")
	s.do("POST", restBase+"/tables/rename", object{"source": s.ident("none"), "destination": s.ident("x")}).refused(t, 404, "NoSuchTableException", s.full("none"))
	s.do("POST", restBase+"/tables/rename", object{"source": s.ident("u"), "destination": object{"namespace": list{"nowhere"}, "name": "x"}}).refused(t, 404, "NoSuchNamespaceException", "nowhere")
	s.lists("tables", "t", "u")
}

// newView is the body of a createView with the columns of the query "SELECT id …".
func (s space) newView(name, sql string) object {
	return object{"name": name, "schema": idSchema(), "view-version": s.version(1, sql), "properties": object{}}
}

func idSchema() object {
	return object{"type": "struct", "schema-id": 0, "fields": list{object{"id": 1, "name": "id", "required": false, "type": "long"}}}
}

func (s space) version(id int, sql string) object {
	return object{
		"version-id": id, "schema-id": 0, "timestamp-ms": 1, "summary": object{}, "default-namespace": s.levels,
		"representations": list{object{"type": "sql", "sql": sql, "dialect": "duckdb"}},
	}
}

func (s space) createView(name, sql string) reply {
	s.t.Helper()
	return s.must("POST", s.path()+"/views", s.newView(name, sql))
}

func TestViews(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.createTable("t")
	created := s.createView("v", "SELECT id FROM t")
	uuid := created.text(t, "metadata", "view-uuid")
	if got := s.must("GET", s.view("v"), nil).at(t, "metadata"); got != created.at(t, "metadata") {
		t.Errorf("loaded %s, created %s", got, created.at(t, "metadata"))
	}
	s.status("HEAD", s.view("v"), 204)
	s.status("HEAD", s.view("u"), 404)
	s.status("GET", s.table("v"), 404)
	s.status("GET", s.view("t"), 404)
	s.lists("views", "v")
	s.lists("tables", "t")

	replace := list{
		object{"action": "add-view-version", "view-version": s.version(2, "SELECT id + 1 FROM t")},
		object{"action": "set-current-view-version", "view-version-id": -1},
	}
	s.unchanged(s.view("v"), func() {
		s.commit(s.view("v"), replace, object{"type": "assert-view-uuid", "uuid": "other"}).
			refused(t, 409, "CommitFailedException", "Requirement failed: view UUID does not match", uuid)
		s.do("POST", s.path()+"/views", s.newView("v", "SELECT id FROM t")).refused(t, 409, "AlreadyExistsException", "View already exists: "+s.full("v"))
		s.commit(s.view("v"), list{object{"action": "frobnicate"}}).refused(t, 400, illegal, "frobnicate")
		s.commit(s.view("v"), replace, object{"type": "assert-moon-phase"}).refused(t, 400, illegal, "assert-moon-phase")
		twice := s.version(2, "SELECT id FROM t")
		twice["representations"] = list{
			object{"type": "sql", "sql": "SELECT 1", "dialect": "trino"}, object{"type": "sql", "sql": "SELECT 2", "dialect": "Trino"},
		}
		s.commit(s.view("v"), list{object{"action": "add-view-version", "view-version": twice}}).
			refused(t, 400, illegal, "Invalid view version: Cannot add multiple queries for dialect trino")
		s.commit(s.view("v"), list{object{"action": "set-current-view-version", "view-version-id": 77}}).refused(t, 400, illegal, "77")
	})
	r := s.commit(s.view("v"), replace, object{"type": "assert-view-uuid", "uuid": uuid})
	r.want(t, "2", "metadata", "current-version-id")
	r.want(t, `"SELECT id + 1 FROM t"`, "metadata", "versions", 1, "representations", 0, "sql")
	s.must("GET", s.view("v"), nil).want(t, "2", "metadata", "version-log", 1, "version-id")

	s.createView("w", "SELECT id FROM t")
	s.unchanged(s.view("w"), func() {
		s.do("POST", restBase+"/views/rename", object{"source": s.ident("v"), "destination": s.ident("w")}).
			refused(t, 409, "AlreadyExistsException", "Cannot rename "+s.full("v")+" to "+s.full("w")+". View already exists")
	})
	s.must("POST", restBase+"/views/rename", object{"source": s.ident("v"), "destination": s.ident("x")})
	s.lists("views", "w", "x")
	s.status("DELETE", s.view("x"), 204)
	s.do("DELETE", s.view("x"), nil).refused(t, 404, "NoSuchViewException", "View does not exist: "+s.full("x"))
	s.do("GET", s.view("x"), nil).refused(t, 404, "NoSuchViewException", "View does not exist: "+s.full("x"))
	s.commit(s.view("x"), replace).refused(t, 404, "NoSuchViewException", "View does not exist: "+s.full("x"))
	s.do("DELETE", s.path(), nil).refused(t, 409, "NamespaceNotEmptyException", "is not empty")
}

// oddNames are names that URLs, dotted notation and SQL like to trip over.
var oddNames = []string{"dot.ted", "a/b", "50%", "%2F", "with space", "Grüße 東京 🚀", "quo\"te'", "a+b&c=d?e#f", "..", "-", "x\ty", "back\\slash"}

func TestNames(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	for _, name := range oddNames {
		in := space{s.client, append(slices.Clone(s.levels), name, name)}
		s.must("POST", restBase+"/namespaces", object{"namespace": in.levels[:2]})
		s.must("POST", restBase+"/namespaces", object{"namespace": in.levels})
		created := in.createTable(name)
		if got := in.must("GET", in.table(name), nil).text(t, "metadata", "table-uuid"); got != created.text(t, "metadata", "table-uuid") {
			t.Errorf("%q: loaded uuid %s", name, got)
		}
		in.lists("tables", name)
		if r := in.commit(in.table(name), list{object{"action": "set-properties", "updates": object{name: name}}}); r.status != 200 {
			t.Errorf("%q: commit = %s", name, r.body)
		}
		// What clients put beside the metadata has to land in the same folder.
		folder := folderOf(t, created.text(t, "metadata", "location"))
		if _, err := os.Stat(filepath.Join(folder, "metadata")); err != nil || !strings.HasPrefix(folder, filepath.Dir(shared.folder)) {
			t.Errorf("%q: folder %s: %v", name, folder, err)
		}
		var parts struct {
			Namespaces [][]string `json:"namespaces"`
		}
		r := in.must("GET", restBase+"/namespaces?parent="+url.QueryEscape(strings.Join(in.levels[:2], "\x1f")), nil)
		if err := json.Unmarshal(r.body, &parts); err != nil || len(parts.Namespaces) != 1 || !reflect.DeepEqual(parts.Namespaces[0], in.levels) {
			t.Errorf("%q: children = %s, want %v", name, r.body, in.levels)
		}
		in.status("DELETE", in.table(name), 204)
		in.status("DELETE", in.path(), 204)
	}
}

// Writers that race for a table: those that require nothing all get in, of those that
// require the same branch exactly one does.
func TestTables_Race(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.createTable("t")
	const writers = 8
	replies := make(chan reply, 2*writers)
	now := time.Now().UnixMilli()
	for i := range writers {
		go func() {
			replies <- s.commit(s.table("t"), list{object{"action": "set-properties", "updates": object{fmt.Sprint("k", i): "v"}}})
		}()
		go func() {
			replies <- s.commit(s.table("t"), list{
				object{"action": "add-snapshot", "snapshot": object{
					"snapshot-id": i + 1, "sequence-number": 1, "timestamp-ms": now + 1000, "manifest-list": "file:///none.avro",
					"summary": object{"operation": "append"}, "schema-id": 0,
				}},
				object{"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": i + 1},
			}, object{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": nil})
		}()
	}
	won := 0
	for range 2 * writers {
		r := <-replies
		if r.status == 200 {
			won++
			continue
		}
		r.refused(t, 409, conflict, "main was created concurrently")
	}
	loaded := s.must("GET", s.table("t"), nil)
	var metadata struct {
		Metadata struct {
			Properties map[string]string `json:"properties"`
			Snapshots  []any             `json:"snapshots"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(loaded.body, &metadata); err != nil {
		t.Fatal(err)
	}
	for i := range writers {
		if metadata.Metadata.Properties[fmt.Sprint("k", i)] != "v" {
			t.Errorf("the commit of k%d is lost", i)
		}
	}
	if won != writers+1 || len(metadata.Metadata.Snapshots) != 1 {
		t.Errorf("%d commits succeeded and %d snapshots are there, want %d and 1", won, len(metadata.Metadata.Snapshots), writers+1)
	}
}
