package conformance_test

import (
	"testing"
)

// TestPlan_protocol walks through the life of a plan of a table without rows; the rows are
// pyiceberg/planning.py's business.
func TestPlan_protocol(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.createTable("t")
	path := s.table("t")
	plan := s.must("POST", path+"/plan", object{
		"filter": object{"type": "and", "left": true, "right": object{"type": "gt-eq", "term": "day", "value": "2024-01-01"}},
		"select": list{"id", "day"}, "stats-fields": list{"id"}, "case-sensitive": true, "use-snapshot-schema": false, "min-rows-requested": 10,
	})
	plan.want(t, `"completed"`, "status")
	plan.want(t, `[]`, "file-scan-tasks")
	id := plan.text(t, "plan-id")

	s.must("GET", path+"/plan/"+id, nil).want(t, `"completed"`, "status")
	for range 2 { // a client that got no answer asks again
		if r := s.must("DELETE", path+"/plan/"+id, nil); r.status != 204 || len(r.body) != 0 {
			t.Errorf("%s = %d %q, want 204 without a body", r.call, r.status, r.body)
		}
	}
	s.must("GET", path+"/plan/"+id, nil).want(t, `"cancelled"`, "status")

	// A plan belongs to its table, whatever that is called.
	kept := s.must("POST", path+"/plan", object{}).text(t, "plan-id")
	s.createTable("other")
	s.do("GET", s.table("other")+"/plan/"+kept, nil).refused(t, 404, "NoSuchPlanIdException", kept)
	s.do("DELETE", s.table("other")+"/plan/"+kept, nil).refused(t, 404, "NoSuchPlanIdException", kept)
	s.must("POST", restBase+"/tables/rename", object{"source": s.ident("t"), "destination": s.ident("moved")})
	s.must("GET", s.table("moved")+"/plan/"+kept, nil).want(t, `"completed"`, "status")
}

func TestPlan_refusals(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.createTable("t")
	path := s.table("t")
	s.do("GET", path+"/plan/none", nil).refused(t, 404, "NoSuchPlanIdException", "none")
	s.do("DELETE", path+"/plan/00000000-0000-4000-8000-000000000000", nil).refused(t, 404, "NoSuchPlanIdException")
	s.do("POST", path+"/tasks", object{"plan-task": "none"}).refused(t, 404, "NoSuchPlanTaskException")
	s.do("POST", path+"/tasks", object{}).refused(t, 400, "BadRequestException", "plan-task")
	for _, absent := range []string{s.table("none"), restBase + "/namespaces/none/tables/t"} {
		s.do("POST", absent+"/plan", object{}).refused(t, 404, "NoSuchTableException")
		s.do("GET", absent+"/plan/none", nil).refused(t, 404, "NoSuchTableException")
		s.do("DELETE", absent+"/plan/none", nil).refused(t, 404, "NoSuchTableException")
		s.do("POST", absent+"/tasks", object{"plan-task": "none"}).refused(t, 404, "NoSuchTableException")
	}
	for _, c := range []struct {
		body  any
		names string
	}{
		{object{"snapshot-id": 5}, "5"},
		{object{"snapshot-id": "5"}, "snapshot-id"},
		{object{"snapshot-id": 5, "start-snapshot-id": 1, "end-snapshot-id": 5}, "together"},
		{object{"start-snapshot-id": 1}, "end-snapshot-id"},
		{object{"select": list{"nope"}}, "nope"},
		{object{"stats-fields": list{"nope"}}, "nope"},
		{object{"filter": object{"type": "like", "term": "note", "value": "x"}}, "like"},
		{object{"filter": object{"type": "eq", "term": "nope", "value": 1}}, "nope"},
		{object{"filter": object{"type": "eq", "term": "day", "value": "yesterday"}}, "yesterday"},
		{object{"filter": list{}}, "filter"},
		{object{"min-rows-requested": -1}, "min-rows-requested"},
		{`[]`, "object"},
	} {
		s.do("POST", path+"/plan", c.body).refused(t, 400, "BadRequestException", c.names)
	}
}
