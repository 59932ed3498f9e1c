package conformance_test

import (
	"bytes"
	"compress/gzip"
	"slices"
	"strings"
	"testing"
)

// Names in a query are found relative to the view's default namespace, in full, and with
// the name in front by which a client mounts the catalog.
func TestSources_Names(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	inner := space{s.client, append(slices.Clone(s.levels), "a.b", "c d")}
	for n := 2; n <= 3; n++ {
		s.must("POST", restBase+"/namespaces", object{"namespace": inner.levels[:n]})
	}
	uuid := inner.createTable(`odd "name"`).text(t, "metadata", "table-uuid")
	top := s.levels[0]
	for i, sql := range []string{
		`SELECT id FROM "odd ""name"""`,
		`SELECT id FROM "` + top + `"."a.b"."c d"."odd ""name"""`,
		`SELECT id FROM mounted."` + top + `"."a.b"."c d"."odd ""name""" AS x`,
	} {
		view := strings.Repeat("v", i+1)
		inner.materialize(view, sql)
		inner.refresh(view)
		inner.verdict(view, "fresh", true, "UP_TO_DATE").want(t, `"`+uuid+`"`, "sources", 0, "uuid")
	}
	// Another default namespace than the view's own.
	s.must("POST", ownBase+"/materialized-views", object{
		"namespace": s.levels, "name": "elsewhere", "sql": `SELECT id FROM "odd ""name"""`, "default-namespace": inner.levels,
	})
	s.refresh("elsewhere")
	s.verdict("elsewhere", "fresh", true, "UP_TO_DATE").want(t, `"`+uuid+`"`, "sources", 0, "uuid")
}

// What a plain view stands for is a source, and so is the view: replacing it makes the
// materialized one stale.
func TestSources_PlainViews(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	uuid := s.createTable("t").text(t, "metadata", "table-uuid")
	s.createView("one", "SELECT id FROM t WHERE id > 0")
	s.createView("two", "SELECT id FROM one")
	s.materialize("v", "SELECT count(*) AS n FROM two")
	s.refresh("v")
	s.idle("v")
	f := s.verdict("v", "fresh", true, "UP_TO_DATE")
	if sources := f.at(t, "sources"); !strings.Contains(sources, uuid) || !strings.Contains(sources, `"one"`) || !strings.Contains(sources, `"two"`) {
		t.Errorf("sources = %s, want the table and both views", sources)
	}
	s.must("POST", s.own("v", "/suspend"), nil)
	r := s.commit(s.view("one"), list{
		object{"action": "add-view-version", "view-version": s.version(2, "SELECT id FROM t WHERE id > 1")},
		object{"action": "set-current-view-version", "view-version-id": -1},
	})
	if r.status != 200 {
		t.Fatalf("replace: %s", r.body)
	}
	s.verdict("v", "stale", false, "SOURCE_VIEW_CHANGED")
	s.status("DELETE", s.view("one"), 204)
	s.verdict("v", "invalid", false, "SOURCE_MISSING")
	s.createView("one", "SELECT id FROM t")
	s.must("POST", s.own("v", "/resume"), nil)
	s.refresh("v")
	s.verdict("v", "fresh", true, "UP_TO_DATE")
}

// Text of another dialect is run only if DuckDB gives it the same meaning.
func TestSources_Dialects(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.createTable("t")
	s.must("POST", ownBase+"/materialized-views", object{"namespace": s.levels, "name": "trino", "dialect": "trino", "sql": `SELECT "day", count(*) AS n FROM t GROUP BY 1`})
	s.refresh("trino")
	s.must("POST", ownBase+"/materialized-views", object{"namespace": s.levels, "name": "spark", "dialect": "spark", "sql": "SELECT `day`, count(*) AS n FROM t GROUP BY `day`"})
	s.refresh("spark")
	for dialect, sql := range map[string]string{
		"trino": "SELECT approx_percentile(id, 0.5) AS x FROM t",
		"spark": "SELECT percentile_approx(id, 0.5) AS x FROM t",
	} {
		function, _, _ := strings.Cut(strings.TrimPrefix(sql, "SELECT "), "(")
		s.do("POST", ownBase+"/materialized-views", object{"namespace": s.levels, "name": "x", "dialect": dialect, "sql": sql}).refused(t, 400, bad, dialect, function)
	}
	s.lists("views", "spark", "trino")
}

func TestSources_StorageOptions(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.createTable("t")
	body := object{
		"namespace": s.levels, "name": "v", "sql": dailySQL, "comment": "by day", "max-staleness-ms": nil,
		"storage": object{"name": "kept_here", "partition": list{"month(day)", "bucket(4, n)"}, "sort": list{"day desc"}, "properties": object{"write.parquet.compression-codec": "zstd"}},
	}
	s.must("POST", ownBase+"/materialized-views", body).want(t, "null", "definition", "max-staleness-ms")
	s.must("GET", s.view("v"), nil).want(t, `"by day"`, "metadata", "properties", "comment")
	storage := s.must("GET", s.table("kept_here"), nil)
	for at, want := range map[int]string{0: `"month"`, 1: `"bucket[4]"`} {
		storage.want(t, want, "metadata", "partition-specs", 0, "fields", at, "transform")
	}
	storage.want(t, `"desc"`, "metadata", "sort-orders", 0, "fields", 0, "direction")
	storage.want(t, `"zstd"`, "metadata", "properties", "write.parquet.compression-codec")
	s.refresh("v")
	for _, wrong := range []object{
		{"partition": list{"day(missing)"}},
		{"partition": list{"frobnicate(day)"}},
		{"sort": list{"missing asc"}},
		{"name": "v2"},
		{"name": ""},
		{"location": "gopher://x"},
	} {
		body["name"], body["storage"] = "v2", wrong
		if r := s.do("POST", ownBase+"/materialized-views", body); r.status != 400 && len(wrong) > 0 && wrong["name"] != "" {
			t.Errorf("storage %v = %d %s, want 400", wrong, r.status, r.body)
		} else if r.status == 201 {
			s.status("DELETE", s.view("v2"), 204)
		}
	}
	s.lists("views", "v")
}

func TestProtocol_CompressedRequest(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	_, _ = w.Write([]byte(`{"name":"t","schema":` + plantedSchema(0) + `,"properties":{"format-version":"3"}}`)) // a buffer takes everything
	_ = w.Close()
	s.must("POST", s.path()+"/tables", zipped.Bytes(), "Content-Encoding", "gzip").exactDefaults(t, "metadata", "schemas", 0)
	s.do("POST", s.path()+"/tables", zipped.Bytes()[:20], "Content-Encoding", "gzip").refused(t, 400, bad)
	s.lists("tables", "t")
}
