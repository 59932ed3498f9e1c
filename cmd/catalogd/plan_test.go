package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/catalogd/catalogd/catalog/postgres/pgtest"
)

// plannedScan is what the test looks at of a plan.
type plannedScan struct {
	Status    string            `json:"status"`
	PlanID    string            `json:"plan-id"`
	PlanTasks []string          `json:"plan-tasks"`
	Tasks     []json.RawMessage `json:"file-scan-tasks"`
}

// TestPlan_outlivesItsProcess submits a plan and kills the process that has to make it.
// Another one does, and answers for it.
func TestPlan_outlivesItsProcess(t *testing.T) {
	t.Parallel()
	dsn, warehouse := pgtest.URL(t), t.TempDir()
	begin := func() *process {
		return start(t, []string{"CATALOGD_DATABASE_URL=" + dsn}, "serve", "--warehouse", warehouse, "--listen", "127.0.0.1:0", "--log-level", "warn",
			"--plan-async-files", "1", "--plan-page-files", "1")
	}
	first := begin()
	w := attach(t, first)
	w.events("ev.t", nil, nil)
	const files = 3
	l := newLedger()
	for range files {
		if err := l.append(t.Context(), w.c, "ev.t"); err != nil {
			t.Fatal(err)
		}
	}
	const path = "/v1/main/namespaces/ev/tables/t"
	var plan plannedScan
	first.call(http.MethodPost, path+"/plan", `{}`, http.StatusOK, &plan)
	if plan.Status != "submitted" || plan.PlanID == "" {
		t.Fatalf("plan = %+v, want submitted", plan)
	}
	first.kill()

	// Whatever came of the job, the process that is gone now has it and is not done.
	db, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close(context.WithoutCancel(t.Context())) }()
	for _, sql := range []string{
		`UPDATE scan_plan SET status = 'submitted', pages = 0`,
		`UPDATE river_job SET state = 'running', finalized_at = NULL, attempt = 1, attempted_at = now(), attempted_by = ARRAY['gone'] WHERE kind = 'scan_plan'`,
	} {
		if tag, err := db.Exec(t.Context(), sql); err != nil || tag.RowsAffected() != 1 {
			t.Fatalf("%s: %v, %v", sql, tag, err)
		}
	}
	second, third := begin(), begin()
	eventually(t, 2*time.Minute, "the plan is completed", func() error {
		status, raw, err := second.try(http.MethodGet, path+"/plan/"+plan.PlanID, nil)
		if err != nil || status != http.StatusOK {
			return errors.Join(err, errors.New(string(raw)))
		}
		if err := json.Unmarshal(raw, &plan); err != nil {
			return err
		}
		if plan.Status != "completed" {
			return errors.New(plan.Status)
		}
		return nil
	})
	found := len(plan.Tasks)
	for _, token := range plan.PlanTasks {
		var page plannedScan
		third.call(http.MethodPost, path+"/tasks", map[string]string{"plan-task": token}, http.StatusOK, &page)
		found += len(page.Tasks)
	}
	if found != files || len(plan.PlanTasks) == 0 {
		t.Errorf("%d files are planned in %d pages, want %d in several", found, 1+len(plan.PlanTasks), files)
	}
	third.call(http.MethodDelete, path+"/plan/"+plan.PlanID, nil, http.StatusNoContent, nil)
	var pages int
	if err := db.QueryRow(t.Context(), `SELECT count(*) FROM scan_plan_page`).Scan(&pages); err != nil || pages != 0 {
		t.Errorf("%d pages are left after the cancellation, %v", pages, err)
	}
	second.call(http.MethodGet, path+"/plan/"+plan.PlanID, nil, http.StatusOK, &plan)
	if plan.Status != "cancelled" {
		t.Errorf("the plan is %s, want cancelled", plan.Status)
	}
}
