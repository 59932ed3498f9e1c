package conformance_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestProtocol_Config(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	for _, query := range []string{"", "?warehouse=main"} {
		r := c.must("GET", "/v1/config"+query, nil, "Authorization", "Bearer None")
		prefix, err := walk(r.body, []any{"overrides", "prefix"})
		if err != nil || string(prefix) != `"main"` {
			t.Errorf("/v1/config%s: prefix %s, %v", query, prefix, err)
		}
		for _, e := range []string{
			"POST /v1/{prefix}/namespaces/{namespace}/tables/{table}", "POST /v1/{prefix}/views/rename",
			"POST /v1/{prefix}/namespaces/{namespace}/register", "HEAD /v1/{prefix}/namespaces/{namespace}/views/{view}",
		} {
			if !strings.Contains(r.at(t, "endpoints"), `"`+e+`"`) {
				t.Errorf("endpoints lack %s", e)
			}
		}
	}
	c.do("GET", "/v1/config?warehouse=none", nil).refused(t, 404, "NoSuchWarehouseException", "none")
	c.do("GET", "/v1/none/namespaces", nil).refused(t, 404, "NoSuchWarehouseException", "none")
	c.do("GET", "/v1/main/elsewhere", nil).refused(t, 404, "NotFoundException")
}

func TestProtocol_HabitsOfClients(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.createTable("t")
	pyIceberg := []string{"Authorization", "Bearer None", "X-Iceberg-Access-Delegation", "vended-credentials"}
	s.must("GET", s.table("t"), nil, pyIceberg...)
	if got := s.must("GET", s.path()+"/tables?pageToken=&unknown=1", nil).names(t); len(got) != 1 {
		t.Errorf("tables with an empty page token = %v", got)
	}
	if r := s.must("POST", s.table("not_yet")+"/metrics", object{"report-type": "commit-report", "table-name": "x"}); r.status != 204 {
		t.Errorf("metrics of a table that does not exist = %d", r.status)
	}
	// Trino sets a property to nothing and removes it in the same commit.
	r := s.commit(s.table("t"), list{
		object{"action": "set-properties", "updates": object{"write.parquet.compression-codec": "", "kept": ""}},
		object{"action": "remove-properties", "removals": list{"write.parquet.compression-codec", "never-there"}},
	})
	if _, err := walk(r.body, []any{"metadata", "properties", "write.parquet.compression-codec"}); r.status != 200 || err == nil {
		t.Errorf("property set and removed: %s", r.body)
	}
	r.want(t, `""`, "metadata", "properties", "kept")
	s.do("DELETE", s.table("t")+"?purgeRequested=False", nil)
	s.status("GET", s.table("t"), 404)
	s.createTable("u")
	s.do("DELETE", s.table("u")+"?purgeRequested=perhaps", nil).refused(t, 400, "BadRequestException", "purgeRequested")
	s.status("HEAD", s.table("u"), 204)
}

func TestProtocol_Probes(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.createTable("t")
	for _, path := range []string{
		s.table("none"), s.view("none"), s.view("t"), s.view("t~12"), s.table("t~12"),
		restBase + "/namespaces/nowhere/tables/t",
		restBase + "/namespaces/nowhere/views/t",
		restBase + "/namespaces/" + s.levels[0] + "%1Ft/tables/snapshots", // Spark: the metadata table of t
		restBase + "/namespaces/" + s.levels[0] + ".t/tables/snapshots",
	} {
		r := s.status("GET", path, 404)
		if kind := r.text(t, "error", "type"); !strings.HasPrefix(kind, "NoSuch") {
			t.Errorf("GET %s = %s", path, r.body)
		}
		s.status("HEAD", path, 404)
	}
}

func TestProtocol_StagedCreate(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	staged := s.must("POST", s.path()+"/tables", object{"name": "t", "schema": sampleSchema(), "stage-create": true})
	if raw, err := walk(staged.body, []any{"metadata-location"}); err == nil && string(raw) != "null" {
		t.Errorf("a staged table has a metadata location: %s", raw)
	}
	s.status("GET", s.table("t"), 404)
	s.lists("tables")
	folder := folderOf(t, staged.text(t, "metadata", "location"))
	for _, sub := range []string{"metadata", "data"} {
		if info, err := os.Stat(filepath.Join(folder, sub)); err != nil || !info.IsDir() {
			t.Errorf("%s/ of a staged table: %v", sub, err)
		}
	}
	updates := list{
		object{"action": "assign-uuid", "uuid": staged.text(t, "metadata", "table-uuid")},
		object{"action": "upgrade-format-version", "format-version": 2},
		object{"action": "add-schema", "schema": sampleSchema(), "last-column-id": 3},
		object{"action": "set-current-schema", "schema-id": -1},
		object{"action": "add-spec", "spec": object{"spec-id": 0, "fields": list{}}},
		object{"action": "set-default-spec", "spec-id": -1},
		object{"action": "add-sort-order", "sort-order": object{"order-id": 0, "fields": list{}}},
		object{"action": "set-default-sort-order", "sort-order-id": -1},
		object{"action": "set-location", "location": staged.text(t, "metadata", "location")},
	}
	create := object{"type": "assert-create"}
	if r := s.commit(s.table("t"), updates, create); r.status != 200 {
		t.Fatalf("commit of a staged table: %s", r.body)
	}
	loaded := s.must("GET", s.table("t"), nil)
	loaded.want(t, staged.at(t, "metadata", "table-uuid"), "metadata", "table-uuid")
	s.commit(s.table("t"), updates, create).refused(t, 409, "CommitFailedException", "Requirement failed: table already exists")
}

func TestProtocol_ETags(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.createTable("t")
	s.createView("v", "SELECT id FROM t")
	for _, path := range []string{s.table("t"), s.table("t") + "?snapshots=refs", s.view("v")} {
		plain := s.must("GET", path, nil)
		zipped := s.must("GET", path, nil, "Accept-Encoding", "gzip")
		if zipped.header.Get("Content-Encoding") != "gzip" || !bytes.Equal(plain.body, zipped.body) {
			t.Errorf("GET %s: gzip (%q) and identity differ", path, zipped.header.Get("Content-Encoding"))
		}
		tag := plain.header.Get("ETag")
		if tag == "" || tag != zipped.header.Get("ETag") {
			t.Errorf("GET %s: ETag %q, with gzip %q", path, tag, zipped.header.Get("ETag"))
		}
		for _, encoding := range []string{"identity", "gzip"} {
			for _, match := range []string{tag, `"other", ` + tag, "W/" + tag} {
				r := s.do("GET", path, nil, "If-None-Match", match, "Accept-Encoding", encoding)
				if r.status != 304 || len(r.body) > 0 || r.header.Get("ETag") != tag {
					t.Errorf("GET %s If-None-Match %s (%s) = %d %q %s", path, match, encoding, r.status, r.header.Get("ETag"), r.body)
				}
			}
		}
		if r := s.do("GET", path, nil, "If-None-Match", `"other"`); r.status != 200 {
			t.Errorf("GET %s with another tag = %d", path, r.status)
		}
		object0, _, _ := strings.Cut(path, "?")
		if r := s.commit(object0, list{object{"action": "set-properties", "updates": object{"path": path}}}); r.status != 200 {
			t.Fatalf("commit: %s", r.body)
		}
		if r := s.do("GET", path, nil, "If-None-Match", tag); r.status != 200 || r.header.Get("ETag") == tag {
			t.Errorf("GET %s after a commit with the old tag = %d, tag %q", path, r.status, r.header.Get("ETag"))
		}
	}
	all, refs := s.must("GET", s.table("t"), nil), s.must("GET", s.table("t")+"?snapshots=refs", nil)
	if all.header.Get("ETag") == refs.header.Get("ETag") {
		t.Error("the forms all and refs share an ETag")
	}
	s.do("GET", s.table("t")+"?snapshots=some", nil).refused(t, 400, "BadRequestException", "snapshots", "some")
}

// A request may be compressed, and must not be anything but JSON.
func TestProtocol_Bodies(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.do("POST", s.path()+"/tables", `{"name":"t"}`, "Content-Type", "text/plain").refused(t, 415, "UnsupportedMediaTypeException", "application/json")
	s.do("POST", s.path()+"/tables", `{"name":"t"}`, "Content-Encoding", "br").refused(t, 415, "UnsupportedMediaTypeException", "br")
	s.lists("tables")
}
