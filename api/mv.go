package api

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/catalogd/catalogd/api/mvrest"
	"github.com/catalogd/catalogd/catalog"
	"github.com/catalogd/catalogd/mv"
)

const (
	waitDefault    = time.Minute
	waitMax        = 10 * time.Minute
	refreshesLimit = 100
	refreshesMax   = 1000
)

// viewServer implements catalogd's own operations.
type viewServer struct {
	views mv.API
	poll  time.Duration
}

var _ mvrest.StrictServerInterface = (*viewServer)(nil)

// ListMaterializedViews handles GET /catalogd/v1/{warehouse}/materialized-views.
func (s *viewServer) ListMaterializedViews(ctx context.Context, req mvrest.ListMaterializedViewsRequestObject) (mvrest.ListMaterializedViewsResponseObject, error) {
	all, err := s.views.List(ctx, req.Warehouse)
	if err != nil {
		return nil, err
	}
	out := mvrest.ListMaterializedViews200JSONResponse{MaterializedViews: []mvrest.MaterializedView{}}
	for _, f := range all {
		out.MaterializedViews = append(out.MaterializedViews, materializedView(f))
	}
	return out, nil
}

// CreateMaterializedView handles POST /catalogd/v1/{warehouse}/materialized-views.
func (s *viewServer) CreateMaterializedView(ctx context.Context, req mvrest.CreateMaterializedViewRequestObject) (mvrest.CreateMaterializedViewResponseObject, error) {
	create, err := createRequest(req.Body)
	if err != nil {
		return nil, err
	}
	f, err := s.views.Create(ctx, req.Warehouse, create)
	if err != nil {
		return nil, err
	}
	return mvrest.CreateMaterializedView201JSONResponse(materializedView(f)), nil
}

func createRequest(body *mvrest.NewMaterializedView) (out mv.CreateRequest, err error) {
	out = mv.CreateRequest{SQL: body.SQL, Dialect: mv.DuckDB, Comment: text(body.Comment)}
	out.OrReplace = body.OrReplace != nil && *body.OrReplace
	if body.Dialect != nil {
		out.Dialect = mv.Dialect(*body.Dialect)
	}
	ns, err := namespaceIn(body.Namespace, "namespace")
	if err != nil {
		return out, err
	}
	if err := nameIn(ns, body.Name); err != nil {
		return out, err
	}
	out.Ident = catalog.TableIdent{Namespace: ns, Name: body.Name}
	if body.SQL == "" {
		return out, invalid("Missing member sql")
	}
	if len(body.DefaultNamespace) > 0 {
		if out.DefaultNS, err = namespaceIn(body.DefaultNamespace, "default-namespace"); err != nil {
			return out, err
		}
	}
	if out.MaxStaleness, err = staleness(body.MaxStalenessMs); err != nil {
		return out, err
	}
	if out.Properties, err = properties(body.Properties, "properties"); err != nil {
		return out, err
	}
	out.Options, err = storageOptions(ns, body.Storage)
	return out, err
}

func storageOptions(ns catalog.Namespace, in *mvrest.StorageOptions) (out mv.CreateOptions, err error) {
	if in == nil {
		return out, nil
	}
	out = mv.CreateOptions{StorageName: text(in.Name), Partition: in.Partition, Sort: in.Sort}
	if in.Name != nil {
		if err := catalog.CheckIdent(catalog.TableIdent{Namespace: ns, Name: *in.Name}); err != nil {
			return out, invalid("Invalid member storage.name: %s", err.Error())
		}
	}
	if out.Location, err = locationIn(text(in.Location), "storage.location"); err != nil {
		return out, err
	}
	out.Properties, err = properties(in.Properties, "storage.properties")
	return out, err
}

// staleness reads max-staleness-ms: absent means always exact, null any age.
func staleness(raw json.RawMessage) (*mv.Staleness, error) {
	switch string(raw) {
	case "":
		return nil, nil
	case "null":
		return &mv.Staleness{Unbounded: true}, nil
	}
	ms, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil || ms < 0 || ms > int64(1<<63-1)/int64(time.Millisecond) {
		return nil, invalid("Invalid member max-staleness-ms: a number of milliseconds from 0 on is expected, or null for any age")
	}
	return &mv.Staleness{Max: time.Duration(ms) * time.Millisecond}, nil
}

// DropMaterializedView handles DELETE /catalogd/v1/{warehouse}/namespaces/{namespace}/views/{view}.
func (s *viewServer) DropMaterializedView(ctx context.Context, req mvrest.DropMaterializedViewRequestObject) (mvrest.DropMaterializedViewResponseObject, error) {
	id, err := identOf(req.Namespace, req.View)
	if err != nil {
		return nil, err
	}
	keep, err := flag(req.Params.KeepStorage, "keepStorage")
	if err != nil {
		return nil, err
	}
	if err := s.views.Drop(ctx, req.Warehouse, id, keep); err != nil {
		return nil, err
	}
	return mvrest.DropMaterializedView204Response{}, nil
}

// GetFreshness handles GET …/views/{view}/freshness.
func (s *viewServer) GetFreshness(ctx context.Context, req mvrest.GetFreshnessRequestObject) (mvrest.GetFreshnessResponseObject, error) {
	id, err := identOf(req.Namespace, req.View)
	if err != nil {
		return nil, err
	}
	f, err := s.views.Freshness(ctx, req.Warehouse, id)
	if err != nil {
		return nil, err
	}
	return mvrest.GetFreshness200JSONResponse(materializedView(f)), nil
}

// RefreshMaterializedView handles POST …/views/{view}/refresh.
func (s *viewServer) RefreshMaterializedView(ctx context.Context, req mvrest.RefreshMaterializedViewRequestObject) (mvrest.RefreshMaterializedViewResponseObject, error) {
	id, err := identOf(req.Namespace, req.View)
	if err != nil {
		return nil, err
	}
	wait, err := flag(req.Params.Wait, "wait")
	if err != nil {
		return nil, err
	}
	timeout, err := timeoutOf(req.Params.Timeout)
	if err != nil {
		return nil, err
	}
	full := req.Body != nil && req.Body.Full != nil && *req.Body.Full
	ticket, err := s.views.Refresh(ctx, req.Warehouse, id, mv.RefreshRequest{Full: full})
	if err != nil {
		return nil, err
	}
	asked := mvrest.RefreshMaterializedView202JSONResponse(refreshTicket(ticket))
	if !wait {
		return asked, nil
	}
	if x := exchangeOf(ctx); x.conn != nil {
		_ = x.conn.SetWriteDeadline(time.Now().Add(timeout + writeTimeout)) // a recorder in a test has none
	}
	waiting, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	run, err := s.views.WaitRefresh(waiting, ticket, s.poll)
	switch {
	case err == nil:
		return mvrest.RefreshMaterializedView200JSONResponse(refreshRun(run)), nil
	case ctx.Err() == nil && errors.Is(waiting.Err(), context.DeadlineExceeded):
		return asked, nil // the request stands, only the waiting is over
	default:
		return nil, err
	}
}

// timeoutOf reads a length of time, in seconds if it has no unit.
func timeoutOf(value *string) (time.Duration, error) {
	if text(value) == "" {
		return waitDefault, nil
	}
	d, err := time.ParseDuration(*value)
	if seconds, numErr := strconv.ParseUint(*value, 10, 16); numErr == nil {
		d, err = time.Duration(seconds)*time.Second, nil
	}
	if err != nil || d < 0 || d > waitMax {
		return 0, invalid("Invalid parameter timeout: %q is not a length of time up to %s, such as 90 or 90s", *value, waitMax)
	}
	return d, nil
}

// ListRefreshes handles GET …/views/{view}/refreshes.
func (s *viewServer) ListRefreshes(ctx context.Context, req mvrest.ListRefreshesRequestObject) (mvrest.ListRefreshesResponseObject, error) {
	id, err := identOf(req.Namespace, req.View)
	if err != nil {
		return nil, err
	}
	limit := refreshesLimit
	if value := text(req.Params.Limit); value != "" {
		if limit, err = strconv.Atoi(value); err != nil || limit < 1 || limit > refreshesMax {
			return nil, invalid("Invalid parameter limit: %q is not a number from 1 to %d", value, refreshesMax)
		}
	}
	runs, err := s.views.Refreshes(ctx, req.Warehouse, id, limit)
	if err != nil {
		return nil, err
	}
	out := mvrest.ListRefreshes200JSONResponse{Refreshes: []mvrest.RefreshRun{}}
	for _, r := range runs {
		out.Refreshes = append(out.Refreshes, refreshRun(r))
	}
	return out, nil
}

// GetRefresh handles GET …/views/{view}/refreshes/{refresh}.
func (s *viewServer) GetRefresh(ctx context.Context, req mvrest.GetRefreshRequestObject) (mvrest.GetRefreshResponseObject, error) {
	id, err := identOf(req.Namespace, req.View)
	if err != nil {
		return nil, err
	}
	runs, err := s.views.Refreshes(ctx, req.Warehouse, id, refreshesMax)
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(runs, func(r mv.Refresh) bool { return r.ID == req.Refresh }); i >= 0 {
		return mvrest.GetRefresh200JSONResponse(refreshRun(runs[i])), nil
	}
	generation, err := strconv.ParseInt(req.Refresh, 10, 64)
	if err != nil {
		return nil, catalog.Errorf(catalog.KindNotFound, "Refresh does not exist: %s of %s", req.Refresh, id)
	}
	return s.answerOf(ctx, req.Warehouse, id, runs, generation)
}

// answerOf finds the run that answers a ticket: the oldest one that covers its generation
// and did not get lost with its process.
func (s *viewServer) answerOf(ctx context.Context, warehouse string, id catalog.TableIdent, runs []mv.Refresh, generation int64) (mvrest.GetRefreshResponseObject, error) {
	for _, r := range slices.Backward(runs) {
		if r.Generation >= generation && r.Status != mv.RefreshLost {
			return mvrest.GetRefresh200JSONResponse(refreshRun(r)), nil
		}
	}
	f, err := s.views.Freshness(ctx, warehouse, id)
	if err != nil {
		return nil, err
	}
	return mvrest.GetRefresh202JSONResponse{ViewUUID: f.ViewUUID, Generation: generation}, nil
}

// SuspendMaterializedView handles POST …/views/{view}/suspend.
func (s *viewServer) SuspendMaterializedView(ctx context.Context, req mvrest.SuspendMaterializedViewRequestObject) (mvrest.SuspendMaterializedViewResponseObject, error) {
	if err := s.setSuspended(ctx, req.Warehouse, req.Namespace, req.View, true); err != nil {
		return nil, err
	}
	return mvrest.SuspendMaterializedView204Response{}, nil
}

// ResumeMaterializedView handles POST …/views/{view}/resume.
func (s *viewServer) ResumeMaterializedView(ctx context.Context, req mvrest.ResumeMaterializedViewRequestObject) (mvrest.ResumeMaterializedViewResponseObject, error) {
	if err := s.setSuspended(ctx, req.Warehouse, req.Namespace, req.View, false); err != nil {
		return nil, err
	}
	return mvrest.ResumeMaterializedView204Response{}, nil
}

func (s *viewServer) setSuspended(ctx context.Context, warehouse, namespace, view string, suspended bool) error {
	id, err := identOf(namespace, view)
	if err != nil {
		return err
	}
	return s.views.SetSuspended(ctx, warehouse, id, suspended)
}
