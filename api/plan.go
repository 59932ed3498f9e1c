package api

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/catalogd/catalogd/api/rest"
	"github.com/catalogd/catalogd/catalog"
	"github.com/catalogd/catalogd/catalog/scan"
)

// Planner plans scans; *scan.Service is one. Its answers are JSON. A table that does not
// exist is KindNoSuchTable in every method.
type Planner interface {
	// Plan plans a scan, or promises to. KindInvalid.
	Plan(ctx context.Context, warehouse string, id catalog.TableIdent, r scan.Request) ([]byte, error)
	// Result is the state of a plan. KindNoSuchPlan.
	Result(ctx context.Context, warehouse string, id catalog.TableIdent, plan string) (scan.Result, error)
	// Cancel frees what is kept for a plan, and may be repeated. KindNoSuchPlan.
	Cancel(ctx context.Context, warehouse string, id catalog.TableIdent, plan string) error
	// Tasks is one page of a plan. KindNoSuchPlanTask.
	Tasks(ctx context.Context, warehouse string, id catalog.TableIdent, task string) ([]byte, error)
}

var _ Planner = (*scan.Service)(nil)

// PlanTableScan handles POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/plan.
func (s *server) PlanTableScan(ctx context.Context, req rest.PlanTableScanRequestObject) (rest.PlanTableScanResponseObject, error) {
	id, err := identOf(req.Namespace, req.Table)
	if err != nil {
		return nil, err
	}
	plan, err := s.planner.Plan(ctx, req.Prefix, id, scanRequest(req.Body))
	if err != nil {
		return nil, err
	}
	return planned(plan), nil
}

func scanRequest(body *rest.ScanToPlan) scan.Request {
	r := scan.Request{
		SnapshotID: body.SnapshotID, StartSnapshotID: body.StartSnapshotID, EndSnapshotID: body.EndSnapshotID,
		Select: body.Select, StatsFields: body.StatsFields,
		CaseInsensitive:   body.CaseSensitive != nil && !*body.CaseSensitive,
		UseSnapshotSchema: body.UseSnapshotSchema != nil && *body.UseSnapshotSchema,
	}
	if body.Filter != nil {
		r.Filter = *body.Filter
	}
	if body.MinRowsRequested != nil {
		r.MinRows = *body.MinRowsRequested
	}
	return r
}

// failedPlan is the answer that tells why a plan failed, though asking for it did not.
func failedPlan(e *catalog.Error) ([]byte, error) {
	a := answerTo(e, noCommit)
	return json.Marshal(struct {
		Status scan.Status     `json:"status"`
		Error  rest.ErrorModel `json:"error"`
	}{scan.Failed, rest.ErrorModel{Code: a.status, Type: a.exception, Message: a.msg}})
}

// FetchPlanningResult handles GET /v1/{prefix}/namespaces/{namespace}/tables/{table}/plan/{plan-id}.
func (s *server) FetchPlanningResult(ctx context.Context, req rest.FetchPlanningResultRequestObject) (rest.FetchPlanningResultResponseObject, error) {
	id, err := identOf(req.Namespace, req.Table)
	if err != nil {
		return nil, err
	}
	plan, err := s.planner.Result(ctx, req.Prefix, id, req.PlanID)
	if err != nil {
		return nil, err
	}
	if plan.Failure != nil {
		body, err := failedPlan(plan.Failure)
		return planned(body), err
	}
	return planned(plan.Body), nil
}

// CancelPlanning handles DELETE /v1/{prefix}/namespaces/{namespace}/tables/{table}/plan/{plan-id}.
func (s *server) CancelPlanning(ctx context.Context, req rest.CancelPlanningRequestObject) (rest.CancelPlanningResponseObject, error) {
	id, err := identOf(req.Namespace, req.Table)
	if err != nil {
		return nil, err
	}
	if err := s.planner.Cancel(ctx, req.Prefix, id, req.PlanID); err != nil {
		return nil, err
	}
	return rest.CancelPlanning204Response{}, nil
}

// FetchScanTasks handles POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/tasks.
func (s *server) FetchScanTasks(ctx context.Context, req rest.FetchScanTasksRequestObject) (rest.FetchScanTasksResponseObject, error) {
	id, err := identOf(req.Namespace, req.Table)
	if err != nil {
		return nil, err
	}
	if req.Body.PlanTask == "" {
		return nil, invalid("Missing member plan-task")
	}
	tasks, err := s.planner.Tasks(ctx, req.Prefix, id, req.Body.PlanTask)
	if err != nil {
		return nil, err
	}
	return planned(tasks), nil
}

// planned is an answer that the planner has rendered.
type planned json.RawMessage

func (p planned) write(w http.ResponseWriter) error {
	w.Header().Set(echo.HeaderContentType, echo.MIMEApplicationJSON)
	w.WriteHeader(http.StatusOK)
	_, err := w.Write(p)
	return err
}

// VisitPlanTableScanResponse implements [rest.PlanTableScanResponseObject].
func (p planned) VisitPlanTableScanResponse(w http.ResponseWriter) error { return p.write(w) }

// VisitFetchPlanningResultResponse implements [rest.FetchPlanningResultResponseObject].
func (p planned) VisitFetchPlanningResultResponse(w http.ResponseWriter) error { return p.write(w) }

// VisitFetchScanTasksResponse implements [rest.FetchScanTasksResponseObject].
func (p planned) VisitFetchScanTasksResponse(w http.ResponseWriter) error { return p.write(w) }
