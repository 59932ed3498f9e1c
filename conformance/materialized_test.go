package conformance_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// dailySQL is what most of the views here materialize.
const dailySQL = "SELECT day, count(*) AS n FROM t GROUP BY day"

func dailySchema() object {
	return object{"type": "struct", "schema-id": 0, "fields": list{
		object{"id": 1, "name": "day", "required": false, "type": "date"},
		object{"id": 2, "name": "n", "required": false, "type": "long"},
	}}
}

// dailyVersion is a view version with a storage table, without one if storage is nil.
func (s space) dailyVersion(id int, sql string, storage object) object {
	v := s.version(id, sql)
	if storage != nil {
		v["storage-table"] = storage
	}
	return v
}

// dailyView is the body of a createView.
func (s space) dailyView(name string, storage object) object {
	return object{"name": name, "schema": dailySchema(), "view-version": s.dailyVersion(1, dailySQL, storage), "properties": object{}}
}

// materialize creates a materialized view through catalogd's own API.
func (s space) materialize(name, sql string) {
	s.t.Helper()
	s.must("POST", ownBase+"/materialized-views", object{"namespace": s.levels, "name": name, "sql": sql})
}

// refresh waits for a run that started after this call and has to succeed.
func (s space) refresh(view string) reply {
	s.t.Helper()
	r := s.must("POST", s.own(view, "/refresh?wait=true&timeout=90s"), object{})
	if r.status != 200 || r.text(s.t, "status") != "succeeded" {
		s.t.Fatalf("refresh of %s = %d %s", view, r.status, r.body)
	}
	return r
}

// verdict checks how fresh a view is.
func (s space) verdict(view, status string, upToDate bool, reason string) reply {
	s.t.Helper()
	r := s.must("GET", s.own(view, "/freshness"), nil)
	got := fmt.Sprintf("%s %s %s", r.text(s.t, "status"), r.at(s.t, "up-to-date"), r.text(s.t, "reason"))
	if want := fmt.Sprintf("%s %t %s", status, upToDate, reason); got != want {
		s.t.Errorf("freshness of %s = %s, want %s: %s", view, got, want, r.body)
	}
	return r
}

// idle waits until no run of a view is queued or running.
func (s space) idle(view string) {
	s.t.Helper()
	s.eventually("job of "+view+" ends", func() bool {
		return s.must("GET", s.own(view, "/freshness"), nil).text(s.t, "job") == "none"
	})
}

func (s space) eventually(what string, done func() bool) {
	s.t.Helper()
	for end := time.Now().Add(time.Minute); !done(); <-time.After(100 * time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("not within a minute: %s", what)
		}
	}
}

func TestMaterialized_CreateView(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.createTable("t")
	body := s.dailyView("v", s.ident("rows"))
	body["max-staleness-ms"] = 60000
	created := s.must("POST", s.path()+"/views", body)
	created.want(t, "60000", "metadata", "max-staleness-ms")
	created.want(t, `"60000"`, "metadata", "properties", "max-staleness-ms")
	s.lists("tables", "t")
	s.lists("views", "v")
	storage := s.must("GET", s.table("rows"), nil)
	if got := storage.at(t, "metadata", "schemas", 0, "fields"); !strings.Contains(got, `"day"`) || !strings.Contains(got, `"n"`) {
		t.Errorf("storage table has %s", got)
	}
	s.refresh("v")
	r := s.verdict("v", "fresh", true, "UP_TO_DATE")
	r.want(t, "60000", "definition", "max-staleness-ms")
	snapshot := s.must("GET", s.table("rows"), nil)
	var state struct {
		Version int `json:"view-version-id"`
		Sources []struct {
			UUID string `json:"uuid"`
		} `json:"source-states"`
	}
	if err := json.Unmarshal([]byte(snapshot.text(t, "metadata", "snapshots", -1, "summary", "refresh-state")), &state); err != nil {
		t.Fatalf("refresh-state: %v", err)
	}
	want := s.must("GET", s.table("t"), nil).text(t, "metadata", "table-uuid")
	if state.Version != 1 || len(state.Sources) != 1 || state.Sources[0].UUID != want {
		t.Errorf("refresh-state = %+v, want version 1 and source %s", state, want)
	}
}

func TestMaterialized_StorageBelongsToTheView(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.createTable("t")
	s.must("POST", s.path()+"/views", s.dailyView("v", s.ident("rows")))
	s.refresh("v")
	s.idle("v")
	loaded := s.must("GET", s.table("rows"), nil)
	current := json.RawMessage(loaded.at(t, "metadata", "current-snapshot-id"))
	const forbidden = "ForbiddenException"
	s.unchanged(s.table("rows"), func() {
		s.do("DELETE", s.table("rows"), nil).refused(t, 403, forbidden, s.full("rows"), s.full("v"))
		s.do("DELETE", s.table("rows")+"?purgeRequested=true", nil).refused(t, 403, forbidden, s.full("rows"))
		s.do("POST", restBase+"/tables/rename", object{"source": s.ident("rows"), "destination": s.ident("x")}).refused(t, 403, forbidden, s.full("rows"), s.full("v"))
		for _, update := range []object{
			{"action": "set-properties", "updates": object{"a": "b"}},
			{"action": "remove-properties", "removals": list{"a"}},
			{"action": "set-location", "location": "file:///tmp/x"},
			{"action": "add-schema", "schema": sampleSchema()},
			{"action": "set-snapshot-ref", "ref-name": "b", "type": "branch", "snapshot-id": current},
			{"action": "remove-snapshot-ref", "ref-name": "main"},
			{"action": "remove-snapshots", "snapshot-ids": list{current}},
			{"action": "upgrade-format-version", "format-version": 3},
		} {
			s.commit(s.table("rows"), list{update}).refused(t, 403, forbidden, s.full("rows"), s.full("v"))
		}
		location := s.must("GET", s.table("t"), nil).text(t, "metadata-location")
		s.do("POST", s.path()+"/register", object{"name": "rows", "metadata-location": location, "overwrite": true}).refused(t, 403, forbidden, s.full("rows"), s.full("v"))
		append1 := list{
			object{"action": "add-snapshot", "snapshot": object{
				"snapshot-id": 7, "parent-snapshot-id": current, "sequence-number": 9, "timestamp-ms": time.Now().UnixMilli(),
				"manifest-list": "file:///none.avro", "summary": object{"operation": "append"}, "schema-id": 0,
			}},
			object{"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 7},
		}
		s.commit(s.table("rows"), append1).refused(t, 403, forbidden, "catalogd mv refresh "+s.full("v"))
	})
	statistics := object{"snapshot-id": current, "statistics-path": "file:///s.puffin", "file-size-in-bytes": 1, "file-footer-size-in-bytes": 1, "blob-metadata": list{}}
	if r := s.commit(s.table("rows"), list{object{"action": "set-statistics", "statistics": statistics}}); r.status != 200 {
		t.Errorf("set-statistics on a storage table = %s", r.body)
	}
	s.verdict("v", "fresh", true, "UP_TO_DATE")
}

func TestMaterialized_AdoptedStorage(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.createTable("t")
	s.createTable("misfit")
	s.must("POST", s.path()+"/tables", object{"name": "empty", "schema": dailySchema()})
	s.must("POST", s.path()+"/tables", object{"name": "used", "schema": dailySchema()})
	filled := s.commit(s.table("used"), list{
		object{"action": "add-snapshot", "snapshot": object{
			"snapshot-id": 1, "sequence-number": 1, "timestamp-ms": time.Now().UnixMilli(),
			"manifest-list": "file:///none.avro", "summary": object{"operation": "append"}, "schema-id": 0,
		}},
		object{"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 1},
	})
	if filled.status != 200 {
		t.Fatalf("snapshot: %s", filled.body)
	}
	s.createView("plain", "SELECT id FROM t")
	for _, name := range []string{"used", "misfit", "plain", "t"} {
		s.do("POST", s.path()+"/views", s.dailyView("v", s.ident(name))).refused(t, 409, "ConflictException", s.full(name))
	}
	s.lists("views", "plain")
	s.lists("tables", "empty", "misfit", "t", "used")
	s.must("POST", s.path()+"/views", s.dailyView("v", s.ident("empty")))
	s.lists("tables", "misfit", "t", "used")
	s.do("POST", s.path()+"/views", s.dailyView("w", s.ident("empty"))).refused(t, 409, "ConflictException", s.full("empty"))
	s.refresh("v")
}

func TestMaterialized_Drop(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.createTable("t")
	s.materialize("v", dailySQL)
	s.refresh("v")
	s.status("HEAD", s.table("v__storage"), 204)
	s.status("DELETE", s.view("v"), 204)
	s.status("HEAD", s.table("v__storage"), 404)
	s.do("GET", s.own("v", "/freshness"), nil).refused(t, 404, "NoSuchViewException", s.full("v"))

	s.materialize("v", dailySQL)
	s.refresh("v")
	s.status("DELETE", s.own("v", "?keepStorage=true"), 204)
	s.lists("views")
	s.lists("tables", "t", "v__storage")
	if r := s.commit(s.table("v__storage"), list{object{"action": "set-properties", "updates": object{"mine": "now"}}}); r.status != 200 {
		t.Errorf("a kept storage table refuses a commit: %s", r.body)
	}
	s.status("DELETE", s.table("v__storage"), 204)
}

func TestMaterialized_Rename(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.createTable("t")
	s.materialize("v", dailySQL)
	s.refresh("v")
	uuid := s.must("GET", s.table("v__storage"), nil).text(t, "metadata", "table-uuid")
	s.must("POST", restBase+"/views/rename", object{"source": s.ident("v"), "destination": s.ident("w")})
	s.must("GET", s.table("w__storage"), nil).want(t, `"`+uuid+`"`, "metadata", "table-uuid")
	s.status("HEAD", s.table("v__storage"), 404)
	s.must("GET", s.view("w"), nil).want(t, `"w__storage"`, "metadata", "versions", 0, "storage-table", "name")
	s.verdict("w", "fresh", true, "UP_TO_DATE")
	s.refresh("w")
	s.do("GET", s.own("v", "/freshness"), nil).refused(t, 404, "NoSuchViewException", s.full("v"))

	s.createTable("x__storage")
	s.do("POST", restBase+"/views/rename", object{"source": s.ident("w"), "destination": s.ident("x")}).refused(t, 409, "AlreadyExistsException", "x__storage")
	s.verdict("w", "fresh", true, "UP_TO_DATE")
}

func TestMaterialized_Replace(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.createTable("t")
	s.materialize("v", dailySQL)
	s.refresh("v")
	s.idle("v")
	if r := s.do("POST", s.own("v", "/suspend"), nil); r.status != 204 {
		t.Fatalf("suspend: %s", r.body)
	}
	replace := func(id int, sql string) {
		t.Helper()
		r := s.commit(s.view("v"), list{
			object{"action": "add-view-version", "view-version": s.version(id, sql)}, // without a storage-table
			object{"action": "set-current-view-version", "view-version-id": -1},
		})
		if r.status != 200 {
			t.Fatalf("replace: %s", r.body)
		}
		r.want(t, `"v__storage"`, "metadata", "versions", -1, "storage-table", "name")
	}
	replace(2, "-- the same\n"+strings.ReplaceAll(dailySQL, " FROM", "\n  FROM /* all */")+" ;")
	s.verdict("v", "fresh", true, "UP_TO_DATE")
	replace(3, strings.Replace(dailySQL, "count(*)", "count(*) + 1", 1))
	s.verdict("v", "invalid", false, "DEFINITION_CHANGED")
	// Asked for while it is suspended, it is this run and no other that rebuilds.
	s.refresh("v").want(t, `"DEFINITION_CHANGED"`, "reason")
	s.must("POST", s.own("v", "/resume"), nil)
	s.verdict("v", "fresh", true, "UP_TO_DATE")
}

func TestMaterialized_Cycles(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.createTable("t")
	s.materialize("a", "SELECT id FROM t")
	s.createView("b", "SELECT id FROM a")
	s.materialize("c", "SELECT id FROM b")
	for _, view := range []string{"a", "b"} {
		s.unchanged(s.view(view), func() {
			s.commit(s.view(view), list{
				object{"action": "add-view-version", "view-version": s.version(2, "SELECT id FROM c")},
				object{"action": "set-current-view-version", "view-version-id": -1},
			}).refused(t, 400, bad, s.full(view), "would read itself")
		})
	}
	s.do("POST", ownBase+"/materialized-views", object{"namespace": s.levels, "name": "self", "sql": "SELECT id FROM self"}).refused(t, 400, bad, "self")
	s.lists("views", "a", "b", "c")
}

func TestMaterialized_Settings(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.createTable("t")
	plain := s.newView("p", "SELECT id FROM t")
	plain["max-staleness-ms"] = 5
	s.do("POST", s.path()+"/views", plain).refused(t, 400, bad, "max-staleness-ms", s.full("p"))
	plain = s.newView("p", "SELECT id FROM t")
	plain["properties"] = object{"max-staleness-ms": "5"}
	s.do("POST", s.path()+"/views", plain).refused(t, 400, bad, "max-staleness-ms", s.full("p"))
	two := s.dailyView("v", s.ident("rows"))
	two["max-staleness-ms"], two["properties"] = 5, object{"max-staleness-ms": "6"}
	s.do("POST", s.path()+"/views", two).refused(t, 400, illegal, "max-staleness-ms")
	for _, value := range []any{-1, "soon", 1.5, list{}} {
		body := s.dailyView("v", s.ident("rows"))
		body["max-staleness-ms"] = value
		s.do("POST", s.path()+"/views", body).refused(t, 400, illegal, "max-staleness-ms")
		s.do("POST", ownBase+"/materialized-views", object{"namespace": s.levels, "name": "v", "sql": dailySQL, "max-staleness-ms": value}).refused(t, 400, bad, "max-staleness-ms")
	}
	wrong := s.dailyView("v", s.ident("rows"))
	wrong["properties"] = object{"catalogd.refresh": "sometimes"}
	s.do("POST", s.path()+"/views", wrong).refused(t, 400, bad, "catalogd.refresh", "sometimes")
	s.lists("views")
	s.lists("tables", "t")

	s.materialize("v", dailySQL)
	s.unchanged(s.view("v"), func() {
		s.commit(s.view("v"), list{object{"action": "set-properties", "updates": object{"max-staleness-ms": "never"}}}).refused(t, 400, illegal, "max-staleness-ms")
	})
	s.commit(s.view("v"), list{object{"action": "set-properties", "updates": object{"max-staleness-ms": "7000"}}}).
		want(t, "7000", "metadata", "max-staleness-ms")
	s.must("GET", s.own("v", "/freshness"), nil).want(t, "7000", "definition", "max-staleness-ms")
	s.commit(s.view("v"), list{object{"action": "remove-properties", "removals": list{"max-staleness-ms"}}})
	s.must("GET", s.own("v", "/freshness"), nil).want(t, "null", "definition", "max-staleness-ms")
}

func TestMaterialized_ReservedNames(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.createTable("t")
	s.createView("v", "SELECT id FROM t")
	const forbidden = "ForbiddenException"
	s.do("POST", s.path()+"/tables", object{"name": "t~12", "schema": sampleSchema()}).refused(t, 403, forbidden, "t~12")
	s.do("POST", s.path()+"/views", s.newView("v~12", "SELECT id FROM t")).refused(t, 403, forbidden, "v~12")
	s.do("POST", ownBase+"/materialized-views", object{"namespace": s.levels, "name": "m~1", "sql": dailySQL}).refused(t, 403, forbidden, "m~1")
	s.do("POST", restBase+"/tables/rename", object{"source": s.ident("t"), "destination": s.ident("t~1")}).refused(t, 403, forbidden, "t~1")
	s.do("POST", restBase+"/views/rename", object{"source": s.ident("v"), "destination": s.ident("v~1")}).refused(t, 403, forbidden, "v~1")
	s.createTable("t~x")
	s.lists("tables", "t", "t~x")
	s.lists("views", "v")
}

func TestMaterialized_StorageElsewhere(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.createTable("t")
	s.must("POST", s.path()+"/views", s.dailyView("v", object{"namespace": list{"far"}, "name": "away", "catalog": "other"}))
	s.verdict("v", "undetermined", false, "STORAGE_ELSEWHERE")
	s.do("POST", s.own("v", "/refresh?wait=true&timeout=5"), object{}).refused(t, 409, "ConflictException", s.full("v"), "far.away")
	s.status("DELETE", s.view("v"), 204)
}

func TestMaterialized_Operations(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.createTable("t")
	body := object{"namespace": s.levels, "name": "v", "sql": dailySQL}
	created := s.must("POST", ownBase+"/materialized-views", body)
	if created.status != 201 {
		t.Errorf("create = %d", created.status)
	}
	s.do("POST", ownBase+"/materialized-views", body).refused(t, 409, "AlreadyExistsException", s.full("v"))
	body["or-replace"] = true
	body["sql"] = "SELECT day, count(*) AS n, min(id) AS lowest FROM t GROUP BY day"
	s.must("POST", ownBase+"/materialized-views", body)
	run := s.refresh("v")
	got := s.must("GET", s.own("v", "/refreshes/"+run.text(t, "id")), nil)
	got.want(t, run.at(t, "snapshot-id"), "snapshot-id")
	s.must("GET", s.own("v", "/refreshes?limit=1"), nil).want(t, run.at(t, "id"), "refreshes", 0, "id")
	if all := s.must("GET", ownBase+"/materialized-views", nil); !strings.Contains(string(all.body), created.text(t, "view-uuid")) {
		t.Errorf("the list of materialized views lacks %s", created.text(t, "view-uuid"))
	}
	if got := s.must("GET", s.table("v__storage"), nil).at(t, "metadata", "schemas", -1, "fields", 2, "name"); got != `"lowest"` {
		t.Errorf("new column of the storage table = %s", got)
	}
	ticket := s.must("POST", s.own("v", "/refresh"), nil)
	if ticket.status != 202 {
		t.Errorf("refresh without wait = %d", ticket.status)
	}
	s.eventually("the ticket is answered", func() bool {
		return s.must("GET", s.own("v", "/refreshes/"+ticket.at(t, "generation")), nil).status == 200
	})
	full := s.must("POST", s.own("v", "/refresh?wait=true"), object{"full": true})
	full.want(t, `"full"`, "strategy")
	full.want(t, `"REQUESTED"`, "reason")
	s.createView("plain", "SELECT id FROM t")
	for _, view := range []string{"plain", "none"} {
		s.do("GET", s.own(view, "/freshness"), nil).refused(t, 404, "NoSuchViewException", s.full(view))
		s.do("POST", s.own(view, "/refresh"), nil).refused(t, 404, "NoSuchViewException", s.full(view))
		s.do("POST", s.own(view, "/suspend"), nil).refused(t, 404, "NoSuchViewException", s.full(view))
	}
	s.do("POST", s.own("v", "/refresh?wait=perhaps"), nil).refused(t, 400, bad, "wait")
	s.do("POST", s.own("v", "/refresh?wait=true&timeout=1d"), nil).refused(t, 400, bad, "timeout")
	s.do("POST", s.own("v", "/refresh"), object{"full": "yes"}).refused(t, 400, bad, "full")
	s.do("GET", s.own("v", "/refreshes/none"), nil).refused(t, 404, "NotFoundException", "none")
	s.do("GET", s.own("v", "/refreshes?limit=0"), nil).refused(t, 400, bad, "limit")
	s.do("GET", "/catalogd/v1/none/materialized-views", nil).refused(t, 404, "NoSuchWarehouseException", "none")
}
