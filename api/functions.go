package api

import (
	"context"

	"github.com/catalogd/catalogd/api/managerest"
	"github.com/catalogd/catalogd/api/rest"
)

// ListFunctions handles GET /v1/{prefix}/namespaces/{namespace}/functions.
func (s *server) ListFunctions(ctx context.Context, req rest.ListFunctionsRequestObject) (rest.ListFunctionsResponseObject, error) {
	ns, err := namespaceOf(req.Namespace)
	if err != nil {
		return nil, err
	}
	l := listing{"functions", req.Prefix, ns}
	p, err := l.page(req.Params.PageToken, req.Params.PageSize)
	if err != nil {
		return nil, err
	}
	page, err := s.catalog.ListFunctions(ctx, req.Prefix, ns, p)
	if err != nil {
		return nil, err
	}
	return rest.ListFunctions200JSONResponse(identifiers(l, page)), nil
}

// LoadFunction handles GET /v1/{prefix}/namespaces/{namespace}/functions/{function}.
func (s *server) LoadFunction(ctx context.Context, req rest.LoadFunctionRequestObject) (rest.LoadFunctionResponseObject, error) {
	id, err := identOf(req.Namespace, req.Function)
	if err != nil {
		return nil, err
	}
	f, err := s.catalog.LoadFunction(ctx, req.Prefix, id)
	if err != nil {
		return nil, err
	}
	return rest.LoadFunction200JSONResponse{Metadata: f}, nil
}

// PutFunction handles PUT /catalogd/v1/{warehouse}/namespaces/{namespace}/functions/{function}.
func (s *manageServer) PutFunction(ctx context.Context, req managerest.PutFunctionRequestObject) (managerest.PutFunctionResponseObject, error) {
	id, err := identOf(req.Namespace, req.Function)
	if err != nil {
		return nil, err
	}
	if err := s.functions.PutFunction(ctx, req.Warehouse, id, *req.Body); err != nil {
		return nil, err
	}
	return managerest.PutFunction204Response{}, nil
}

// DropFunction handles DELETE /catalogd/v1/{warehouse}/namespaces/{namespace}/functions/{function}.
func (s *manageServer) DropFunction(ctx context.Context, req managerest.DropFunctionRequestObject) (managerest.DropFunctionResponseObject, error) {
	id, err := identOf(req.Namespace, req.Function)
	if err != nil {
		return nil, err
	}
	if err := s.functions.DropFunction(ctx, req.Warehouse, id); err != nil {
		return nil, err
	}
	return managerest.DropFunction204Response{}, nil
}
