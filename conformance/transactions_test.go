package conformance_test

import (
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
)

const transactions = restBase + "/transactions/commit"

func (s space) change(name string, requirements, updates list) object {
	return object{"identifier": s.ident(name), "requirements": requirements, "updates": updates}
}

func setProperty(key, value string) list {
	return list{object{"action": "set-properties", "updates": object{key: value}}}
}

func TestTransaction_AllOrNothing(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.createTable("a")
	s.createTable("b")
	s.must("POST", transactions, object{"table-changes": list{
		s.change("a", list{}, setProperty("k", "1")), s.change("b", list{}, setProperty("k", "1")),
	}})
	for _, name := range []string{"a", "b"} {
		s.must("GET", s.table(name), nil).want(t, `"1"`, "metadata", "properties", "k")
	}
	wrong := list{object{"type": "assert-table-uuid", "uuid": uuid.NewString()}}
	s.unchanged(s.table("a"), func() {
		s.do("POST", transactions, object{"table-changes": list{
			s.change("a", list{}, setProperty("k", "2")), s.change("b", wrong, setProperty("k", "2")),
		}}).refused(t, 409, conflict, "Requirement failed: UUID does not match", s.full("b"))
		s.do("POST", transactions, object{"table-changes": list{
			s.change("a", list{}, setProperty("k", "2")), s.change("missing", list{}, setProperty("k", "2")),
		}}).refused(t, 404, "NoSuchTableException", s.full("missing"))
		s.do("POST", transactions, object{"table-changes": list{
			s.change("a", list{}, setProperty("k", "2")), s.change("b", list{}, list{object{"action": "conquer"}}),
		}}).refused(t, 400, "BadRequestException", "conquer")
		s.do("POST", transactions, object{"table-changes": list{
			s.change("a", list{}, setProperty("k", "2")), s.change("a", list{}, setProperty("k", "3")),
		}}).refused(t, 400, "BadRequestException", s.full("a"), "twice")
	})
	s.must("POST", transactions, object{"table-changes": list{}})
	s.do("POST", "/v1/nowhere/transactions/commit", object{"table-changes": list{}}).refused(t, 404, "NoSuchWarehouseException", "nowhere")
}

// A staged table comes into being in the transaction, beside changes of others.
func TestTransaction_StagedCreate(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.createTable("a")
	create := func(name string) object {
		staged := s.must("POST", s.path()+"/tables", object{"name": name + "-staged", "schema": sampleSchema(), "stage-create": true})
		return s.change(name, list{object{"type": "assert-create"}}, list{
			object{"action": "assign-uuid", "uuid": uuid.NewString()},
			object{"action": "upgrade-format-version", "format-version": 2},
			object{"action": "add-schema", "schema": sampleSchema()},
			object{"action": "set-current-schema", "schema-id": -1},
			object{"action": "add-spec", "spec": object{"spec-id": 0, "fields": list{}}},
			object{"action": "set-default-spec", "spec-id": -1},
			object{"action": "add-sort-order", "sort-order": object{"order-id": 0, "fields": list{}}},
			object{"action": "set-default-sort-order", "sort-order-id": -1},
			object{"action": "set-location", "location": staged.text(t, "metadata", "location")},
			object{"action": "set-properties", "updates": object{"made": "here"}},
		})
	}
	s.must("POST", transactions, object{"table-changes": list{create("new"), s.change("a", list{}, setProperty("k", "1")), create("newer")}})
	for _, name := range []string{"new", "newer"} {
		s.must("GET", s.table(name), nil).want(t, `"here"`, "metadata", "properties", "made")
	}
	s.unchanged(s.table("a"), func() {
		s.do("POST", transactions, object{"table-changes": list{s.change("a", list{}, setProperty("k", "2")), create("new")}}).
			refused(t, 409, conflict, "table already exists")
	})
	s.do("GET", s.table("newest"), nil).refused(t, 404, "NoSuchTableException")
}

// Transactions over the same tables in different orders neither lock each other out nor
// mix: both tables always say the same.
func TestTransaction_Concurrent(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.createTable("a")
	s.createTable("b")
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for round := range 5 {
				value := fmt.Sprintf("%d.%d", i, round)
				changes := list{s.change("a", list{}, setProperty("k", value)), s.change("b", list{}, setProperty("k", value))}
				if i%2 == 0 {
					changes[0], changes[1] = changes[1], changes[0]
				}
				if r := s.do("POST", transactions, object{"table-changes": changes}); r.status != 204 {
					t.Errorf("%d %s", r.status, r.body)
				}
			}
		})
	}
	group.Wait()
	a, b := s.must("GET", s.table("a"), nil), s.must("GET", s.table("b"), nil)
	if x, y := a.at(t, "metadata", "properties", "k"), b.at(t, "metadata", "properties", "k"); x != y {
		t.Errorf("the last transaction set %s in one table and %s in the other", x, y)
	}
}

func key() string { return uuid.Must(uuid.NewV7()).String() }

// A request that is sent again with its key changes nothing and gets the first answer.
func TestIdempotency(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	again := func(method, path string, body any) (first reply) {
		t.Helper()
		k := key()
		first = s.do(method, path, body, "Idempotency-Key", k)
		second := s.do(method, path, body, "Idempotency-Key", k)
		if first.status != second.status || string(first.body) != string(second.body) {
			t.Errorf("%s %s: first %d %s\nthen %d %s", method, path, first.status, first.body, second.status, second.body)
		}
		if first.status >= 500 {
			t.Errorf("%s %s = %d %s", method, path, first.status, first.body)
		}
		return first
	}
	ok := func(r reply) reply {
		t.Helper()
		if r.status/100 != 2 {
			t.Errorf("%s = %d %s", r.call, r.status, r.body)
		}
		return r
	}
	inner := s.path() + "%1Finner"
	ok(again("POST", restBase+"/namespaces", object{"namespace": append(append([]string{}, s.levels...), "inner"), "properties": object{"a": "b"}}))
	ok(again("POST", inner+"/properties", object{"removals": list{"a", "x"}, "updates": object{"c": "d"}}))
	ok(again("DELETE", inner, nil))
	again("DELETE", inner, nil).refused(t, 404, "NoSuchNamespaceException")
	ok(again("POST", s.path()+"/tables", object{"name": "t", "schema": sampleSchema()}))
	ok(again("POST", s.path()+"/tables", object{"name": "staged", "schema": sampleSchema(), "stage-create": true}))
	again("POST", s.path()+"/tables", object{"name": "t", "schema": sampleSchema()}).refused(t, 409, "AlreadyExistsException")
	versions := func() string { return s.must("GET", s.table("t"), nil).at(t, "metadata", "metadata-log") }
	committed := ok(again("POST", s.table("t"), object{"requirements": list{}, "updates": setProperty("k", "1")}))
	if n := strings.Count(versions(), "metadata-file"); n != 1 {
		t.Errorf("%d commits were made, want 1", n)
	}
	// The answer is the one of that commit, also when the table has moved on.
	k := key()
	body := object{"requirements": list{}, "updates": setProperty("k", "2")}
	mine := s.must("POST", s.table("t"), body, "Idempotency-Key", k)
	s.must("POST", s.table("t"), object{"requirements": list{}, "updates": setProperty("k", "3")})
	if replay := s.must("POST", s.table("t"), body, "Idempotency-Key", k); string(replay.body) != string(mine.body) || string(replay.body) == string(committed.body) {
		t.Errorf("the replay is %s, the first answer was %s", replay.body, mine.body)
	}
	s.do("POST", s.table("t"), object{"requirements": list{}, "updates": setProperty("k", "4")}, "Idempotency-Key", k).
		refused(t, 400, "BadRequestException", k)
	again("POST", s.table("t"), object{"requirements": list{object{"type": "assert-table-uuid", "uuid": uuid.NewString()}}, "updates": list{}}).
		refused(t, 409, conflict, "UUID does not match")
	ok(again("POST", s.table("t"), object{"requirements": list{}, "updates": list{}})) // which changes nothing
	ok(again("POST", transactions, object{"table-changes": list{s.change("t", list{}, setProperty("k", "5"))}}))
	ok(again("POST", restBase+"/tables/rename", object{"source": s.ident("t"), "destination": s.ident("u")}))
	ok(again("POST", s.path()+"/views", s.newView("v", "SELECT 1 AS id")))
	ok(again("POST", restBase+"/views/rename", object{"source": s.ident("v"), "destination": s.ident("w")}))
	ok(again("DELETE", s.view("w"), nil))
	forgotten := ok(again("POST", s.table("u")+"/unregister", nil))
	ok(again("POST", s.path()+"/register", object{"name": "r", "metadata-location": forgotten.text(t, "metadata-location")}))
	ok(again("DELETE", s.table("r"), nil))
	s.lists("tables")
}

// Copies of one commit that are under way together are made once.
func TestIdempotency_Race(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.createTable("t")
	k := key()
	none := list{object{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": nil}}
	body := object{"requirements": none, "updates": list{
		object{"action": "add-snapshot", "snapshot": object{
			"snapshot-id": 1, "sequence-number": 1, "timestamp-ms": time.Now().UnixMilli(), "manifest-list": "file:///none.avro",
			"summary": object{"operation": "append"}, "schema-id": 0,
		}},
		object{"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 1},
	}}
	var (
		group   sync.WaitGroup
		replies [8]reply
	)
	for i := range replies {
		group.Go(func() { replies[i] = s.do("POST", s.table("t"), body, "Idempotency-Key", k) })
	}
	group.Wait()
	for _, r := range replies {
		if r.status != 200 || string(r.body) != string(replies[0].body) {
			t.Errorf("%d %s", r.status, r.body)
		}
	}
}

func TestUnregister(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.createTable("t")
	s.commit(s.table("t"), setProperty("k", "1"))
	loaded := s.must("GET", s.table("t"), nil)
	gone := s.must("POST", s.table("t")+"/unregister", nil)
	if a, b := loaded.at(t, "metadata"), gone.at(t, "metadata"); a != b {
		t.Errorf("unregistered %s, loaded before %s", b, a)
	}
	s.do("GET", s.table("t"), nil).refused(t, 404, "NoSuchTableException", s.full("t"))
	s.commit(s.table("t"), setProperty("k", "2")).refused(t, 404, "NoSuchTableException")
	s.do("POST", s.table("t")+"/unregister", nil).refused(t, 404, "NoSuchTableException", s.full("t"))
	back := s.must("POST", s.path()+"/register", object{"name": "t2", "metadata-location": gone.text(t, "metadata-location")})
	if a, b := loaded.at(t, "metadata"), back.at(t, "metadata"); a != b {
		t.Errorf("registered again: %s, before %s", b, a)
	}
	s.materialize("mv", "SELECT day, count(*) AS n FROM "+s.full("t2")+" GROUP BY day")
	s.do("POST", s.table("mv__storage")+"/unregister", nil).refused(t, 403, "ForbiddenException", "mv")
}

func TestRegisterView(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	made := s.must("POST", s.path()+"/views", s.newView("v", "SELECT 1 AS id"))
	location := made.text(t, "metadata-location")
	s.must("DELETE", s.view("v"), nil)
	back := s.must("POST", s.path()+"/register-view", object{"name": "v2", "metadata-location": location})
	if back.text(t, "metadata-location") != location || back.at(t, "metadata") != made.at(t, "metadata") {
		t.Errorf("registered %s, made %s", back.body, made.body)
	}
	s.createTable("t")
	register := func(name, location string) reply {
		return s.do("POST", s.path()+"/register-view", object{"name": name, "metadata-location": location})
	}
	register("v2", location).refused(t, 409, "AlreadyExistsException", "View already exists: "+s.full("v2"))
	register("t", location).refused(t, 409, "AlreadyExistsException", "Table with same name already exists: "+s.full("t"))
	register("x", strings.Replace(location, "metadata.json", "nothing.json", 1)).refused(t, 404, "NotFoundException")
	register("x", "").refused(t, 400, "BadRequestException", "metadata-location")
	table := s.must("GET", s.table("t"), nil).text(t, "metadata-location")
	register("x", table).refused(t, 400, "BadRequestException", "view")
	s.lists("views", "v2")
}

// parent is the folder of a location.
func parent(location string) string { return location[:strings.LastIndex(location, "/")] }

// A place belongs to one table.
func TestLocations_NeverOverlap(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.createTable("first")
	root := parent(s.must("GET", s.table("first"), nil).text(t, "metadata", "location"))
	create := func(name, location string) reply {
		return s.do("POST", s.path()+"/tables", object{"name": name, "schema": sampleSchema(), "location": location})
	}
	if r := create("t", root+"/x/y"); r.status != 200 {
		t.Fatalf("%d %s", r.status, r.body)
	}
	for _, taken := range []string{root + "/x/y", root + "/x/y/", root + "/x", root + "/x/y/z", strings.Replace(root, "file://", "file:", 1) + "/x/y/z"} {
		create("u", taken).refused(t, 403, "ForbiddenException", s.full("t"))
	}
	s.do("GET", s.table("u"), nil).refused(t, 404, "NoSuchTableException")
	if r := create("u", root+"/x/y2"); r.status != 200 {
		t.Errorf("a neighbour: %d %s", r.status, r.body)
	}
	s.unchanged(s.table("u"), func() {
		s.commit(s.table("u"), list{object{"action": "set-location", "location": root + "/x"}}).refused(t, 403, "ForbiddenException", s.full("t"))
	})
	// Also one that is registered a second time under another name.
	location := s.must("GET", s.table("t"), nil).text(t, "metadata-location")
	s.do("POST", s.path()+"/register", object{"name": "twice", "metadata-location": location}).refused(t, 403, "ForbiddenException", s.full("t"))
	s.must("DELETE", s.table("t"), nil)
	s.must("POST", s.path()+"/register", object{"name": "once", "metadata-location": location})
}

func TestFunctions(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	if got := s.must("GET", s.path()+"/functions", nil).at(t, "identifiers"); got != "[]" {
		t.Errorf("functions of a new namespace: %s", got)
	}
	s.do("GET", s.path()+"/functions/"+url.PathEscape("né"), nil).refused(t, 404, "NoSuchFunctionException", s.full("né"))
	s.do("GET", restBase+"/namespaces/nowhere/functions", nil).refused(t, 404, "NoSuchNamespaceException", "nowhere")
	s.do("GET", restBase+"/namespaces/nowhere/functions/f", nil).refused(t, 404, "NoSuchNamespaceException", "nowhere")
	own := ownBase + "/namespaces/" + encodeNamespace(s.levels) + "/functions/double"
	const metadata = `{"function-uuid":"0197d1c2-4a10-7c3d-8e21-5a6b7c8d9e0f","format-version":1,"x-foreign":12345678901234567890,` +
		`"definitions":[{"definition-id":"int","parameters":[{"name":"x","type":"int"}],"return-type":"int","function-type":"udf",` +
		`"current-version-id":1,"versions":[{"version-id":1,"representations":[{"type":"sql","dialect":"trino","sql":"x * 2"}]}]}],"definition-log":[]}`
	s.must("PUT", own, metadata)
	if got := s.must("GET", s.path()+"/functions/double", nil).at(t, "metadata"); got != metadata {
		t.Errorf("loaded %s", got)
	}
	s.must("GET", s.path()+"/functions", nil).want(t, `"double"`, "identifiers", 0, "name")
	for _, wrong := range []string{"function-uuid", "format-version", "definition-log", "return-type", "current-version-id"} {
		s.do("PUT", own, strings.Replace(metadata, wrong, "x", 1)).refused(t, 400, "BadRequestException", wrong)
	}
	s.do("PUT", ownBase+"/namespaces/nowhere/functions/f", metadata).refused(t, 404, "NoSuchNamespaceException", "nowhere")
	s.do("DELETE", s.path(), nil).refused(t, 409, "NamespaceNotEmptyException", "function")
	s.must("DELETE", own, nil)
	s.do("DELETE", own, nil).refused(t, 404, "NoSuchFunctionException", "double")
}
