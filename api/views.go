package api

import (
	"context"
	"encoding/json"

	"github.com/catalogd/catalogd/api/rest"
	"github.com/catalogd/catalogd/catalog"
)

// ListViews handles GET /v1/{prefix}/namespaces/{namespace}/views.
func (s *server) ListViews(ctx context.Context, req rest.ListViewsRequestObject) (rest.ListViewsResponseObject, error) {
	ns, err := namespaceOf(req.Namespace)
	if err != nil {
		return nil, err
	}
	l := listing{"views", req.Prefix, ns}
	p, err := l.page(req.Params.PageToken, req.Params.PageSize)
	if err != nil {
		return nil, err
	}
	page, err := s.catalog.ListViews(ctx, req.Prefix, ns, p)
	if err != nil {
		return nil, err
	}
	return rest.ListViews200JSONResponse(identifiers(l, page)), nil
}

// newView is the part of createView's body that the catalog wants by itself.
type newView struct {
	Name        string              `json:"name"`
	Location    *string             `json:"location"`
	Schema      json.RawMessage     `json:"schema"`
	ViewVersion json.RawMessage     `json:"view-version"`
	Properties  *map[string]*string `json:"properties"`
}

// CreateView handles POST /v1/{prefix}/namespaces/{namespace}/views.
func (s *server) CreateView(ctx context.Context, req rest.CreateViewRequestObject) (rest.CreateViewResponseObject, error) {
	ns, err := namespaceOf(req.Namespace)
	if err != nil {
		return nil, err
	}
	create, err := createViewRequest(ns, *req.Body)
	if err != nil {
		return nil, err
	}
	l, err := s.catalog.CreateView(ctx, req.Prefix, ns, create)
	if err != nil {
		return nil, err
	}
	return answerLoaded(ctx, l, shapeAll)
}

func createViewRequest(ns catalog.Namespace, raw json.RawMessage) (out catalog.CreateViewRequest, err error) {
	var body newView
	if err := json.Unmarshal(raw, &body); err != nil {
		return out, bodyError(err, raw)
	}
	if err := nameIn(ns, body.Name); err != nil {
		return out, err
	}
	if err := object(body.Schema, "schema"); err != nil {
		return out, err
	}
	if err := object(body.ViewVersion, "view-version"); err != nil {
		return out, err
	}
	location, err := locationIn(text(body.Location), "location")
	if err != nil {
		return out, err
	}
	props, err := properties(body.Properties, "properties")
	if err != nil {
		return out, err
	}
	return catalog.CreateViewRequest{
		Name: body.Name, Location: location, Schema: body.Schema, ViewVersion: body.ViewVersion,
		Properties: props, Body: raw,
	}, nil
}

// RegisterView handles POST /v1/{prefix}/namespaces/{namespace}/register-view.
func (s *server) RegisterView(ctx context.Context, req rest.RegisterViewRequestObject) (rest.RegisterViewResponseObject, error) {
	ns, err := namespaceOf(req.Namespace)
	if err != nil {
		return nil, err
	}
	location, err := registration(ns, req.Body.Name, req.Body.MetadataLocation)
	if err != nil {
		return nil, err
	}
	l, err := s.catalog.RegisterView(ctx, req.Prefix, ns, req.Body.Name, location)
	if err != nil {
		return nil, err
	}
	return answerLoaded(ctx, l, shapeAll)
}

// LoadView handles GET /v1/{prefix}/namespaces/{namespace}/views/{view}.
func (s *server) LoadView(ctx context.Context, req rest.LoadViewRequestObject) (rest.LoadViewResponseObject, error) {
	id, err := identOf(req.Namespace, req.View)
	if err != nil {
		return nil, err
	}
	l, err := s.catalog.LoadView(ctx, req.Prefix, id)
	if err != nil {
		return nil, err
	}
	out, err := answerLoaded(ctx, l, shapeAll)
	if err != nil {
		return nil, err
	}
	if matches(req.Params.IfNoneMatch, out.etag) {
		return notModified{out.etag}, nil
	}
	return out, nil
}

// ViewExists handles HEAD /v1/{prefix}/namespaces/{namespace}/views/{view}.
func (s *server) ViewExists(ctx context.Context, req rest.ViewExistsRequestObject) (rest.ViewExistsResponseObject, error) {
	id, err := identOf(req.Namespace, req.View)
	if err != nil {
		return nil, err
	}
	if err := s.catalog.ViewExists(ctx, req.Prefix, id); err != nil {
		return nil, err
	}
	return rest.ViewExists204Response{}, nil
}

// ReplaceView handles POST /v1/{prefix}/namespaces/{namespace}/views/{view}.
func (s *server) ReplaceView(ctx context.Context, req rest.ReplaceViewRequestObject) (rest.ReplaceViewResponseObject, error) {
	id, err := identOf(req.Namespace, req.View)
	if err != nil {
		return nil, err
	}
	commit, err := commitRequest(id, req.Body.Identifier, req.Body.Requirements, req.Body.Updates)
	if err != nil {
		return nil, err
	}
	l, err := s.catalog.ReplaceView(ctx, req.Prefix, id, commit)
	if err != nil {
		return nil, err
	}
	return answerLoaded(ctx, l, shapeAll)
}

// DropView handles DELETE /v1/{prefix}/namespaces/{namespace}/views/{view}.
func (s *server) DropView(ctx context.Context, req rest.DropViewRequestObject) (rest.DropViewResponseObject, error) {
	id, err := identOf(req.Namespace, req.View)
	if err != nil {
		return nil, err
	}
	if err := s.catalog.DropView(ctx, req.Prefix, id); err != nil {
		return nil, err
	}
	return rest.DropView204Response{}, nil
}

// RenameView handles POST /v1/{prefix}/views/rename.
func (s *server) RenameView(ctx context.Context, req rest.RenameViewRequestObject) (rest.RenameViewResponseObject, error) {
	from, to, err := renaming(req.Body)
	if err != nil {
		return nil, err
	}
	if err := s.catalog.RenameView(ctx, req.Prefix, from, to); err != nil {
		return nil, err
	}
	return rest.RenameView204Response{}, nil
}
