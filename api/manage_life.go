package api

import (
	"context"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/catalogd/catalogd/api/managerest"
	"github.com/catalogd/catalogd/catalog"
)

// ListDropped handles GET /catalogd/v1/{warehouse}/dropped.
func (s *manageServer) ListDropped(ctx context.Context, req managerest.ListDroppedRequestObject) (managerest.ListDroppedResponseObject, error) {
	var (
		p   catalog.DroppedPage
		err error
	)
	if text(req.Params.Namespace) != "" {
		if p.Namespace, err = namespaceOf(*req.Params.Namespace); err != nil {
			return nil, err
		}
	}
	l := listing{"dropped", req.Warehouse, p.Namespace}
	if p.PageRequest, err = l.page(req.Params.PageToken, req.Params.PageSize); err != nil {
		return nil, err
	}
	if p.StorageTables, err = flag(req.Params.ListStorageTables, "list-storage-tables"); err != nil {
		return nil, err
	}
	page, err := s.life.ListDropped(ctx, req.Warehouse, p)
	if err != nil {
		return nil, err
	}
	out := managerest.ListDropped200JSONResponse{Dropped: []managerest.DroppedObject{}, NextPageToken: l.token(page.Next)}
	for _, d := range page.Items {
		out.Dropped = append(out.Dropped, managerest.DroppedObject{
			Type: typeWord(d.Pointer), Identifier: identifierOf(d.Pointer.Ident), UUID: d.Pointer.UUID, MetadataLocation: present(d.Pointer.MetadataLocation),
			Location: present(d.Pointer.Location), DroppedAt: d.DroppedAt.UTC(), ExpiresAt: d.ExpiresAt.UTC(), Purge: d.Purge,
		})
	}
	return out, nil
}

func typeWord(p catalog.Pointer) string {
	switch {
	case p.Type == catalog.TypeView && p.IsMaterialized:
		return "materialized-view"
	case p.Type == catalog.TypeView:
		return "view"
	}
	return "table"
}

func identifierOf(id catalog.TableIdent) managerest.Identifier {
	return managerest.Identifier{Namespace: id.Namespace, Name: id.Name}
}

func present(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// ExpireDropped handles DELETE /catalogd/v1/{warehouse}/dropped/{uuid}.
func (s *manageServer) ExpireDropped(ctx context.Context, req managerest.ExpireDroppedRequestObject) (managerest.ExpireDroppedResponseObject, error) {
	id, err := uuidIn(req.UUID, "parameter uuid")
	if err != nil {
		return nil, err
	}
	purge, err := flag(req.Params.Purge, "purge")
	if err != nil {
		return nil, err
	}
	if err := s.life.ExpireDropped(ctx, req.Warehouse, id, purge); err != nil {
		return nil, err
	}
	return managerest.ExpireDropped204Response{}, nil
}

func uuidIn(value, where string) (string, error) {
	id, err := uuid.Parse(value)
	if err != nil || len(value) != len(id.String()) {
		return "", invalid("Invalid %s: %q is not a UUID", where, value)
	}
	return id.String(), nil
}

// Undrop handles POST /catalogd/v1/{warehouse}/undrop.
func (s *manageServer) Undrop(ctx context.Context, req managerest.UndropRequestObject) (managerest.UndropResponseObject, error) {
	var (
		u   catalog.UndropRequest
		err error
	)
	if text(req.Body.UUID) != "" {
		if u.UUID, err = uuidIn(*req.Body.UUID, "member uuid"); err != nil {
			return nil, err
		}
	}
	for _, part := range []struct {
		in     *managerest.Identifier
		member string
		out    *catalog.TableIdent
	}{{req.Body.Identifier, "identifier", &u.Ident}, {req.Body.RenameTo, "rename-to", &u.To}} {
		if part.in == nil {
			continue
		}
		if *part.out, err = identIn(part.in.Namespace, part.in.Name, part.member); err != nil {
			return nil, err
		}
	}
	if u.UUID == "" && u.Ident.Name == "" {
		return nil, invalid("Missing member uuid or identifier: one of them must name the dropped object")
	}
	p, err := s.life.Undrop(ctx, req.Warehouse, u)
	if err != nil {
		return nil, err
	}
	return managerest.Undrop200JSONResponse{
		Type: typeWord(p), Identifier: identifierOf(p.Ident), UUID: p.UUID, MetadataLocation: p.MetadataLocation,
	}, nil
}

// target names what a protection is about.
func target(typ catalog.ObjectType, namespace, name string) (catalog.Target, error) {
	if typ == catalog.TypeNamespace {
		ns, err := namespaceOf(namespace)
		return catalog.Target{Type: typ, Ident: catalog.TableIdent{Namespace: ns}}, err
	}
	id, err := identOf(namespace, name)
	return catalog.Target{Type: typ, Ident: id}, err
}

func (s *manageServer) protection(ctx context.Context, warehouse string, typ catalog.ObjectType, namespace, name string) (managerest.Protection, error) {
	t, err := target(typ, namespace, name)
	if err != nil {
		return managerest.Protection{}, err
	}
	protected, err := s.life.Protected(ctx, warehouse, t)
	return managerest.Protection{Protected: protected}, err
}

func (s *manageServer) protect(ctx context.Context, warehouse string, t catalog.Target, body *managerest.ProtectionChange) (managerest.Protection, error) {
	if body.Protected == nil {
		return managerest.Protection{}, invalid("Missing member protected: true or false")
	}
	err := s.life.SetProtected(ctx, warehouse, t, *body.Protected)
	return managerest.Protection{Protected: *body.Protected}, err
}

// GetTableProtection handles GET …/tables/{table}/protection.
func (s *manageServer) GetTableProtection(ctx context.Context, req managerest.GetTableProtectionRequestObject) (managerest.GetTableProtectionResponseObject, error) {
	out, err := s.protection(ctx, req.Warehouse, catalog.TypeTable, req.Namespace, req.Table)
	if err != nil {
		return nil, err
	}
	return managerest.GetTableProtection200JSONResponse(out), nil
}

// SetTableProtection handles PUT …/tables/{table}/protection.
func (s *manageServer) SetTableProtection(ctx context.Context, req managerest.SetTableProtectionRequestObject) (managerest.SetTableProtectionResponseObject, error) {
	t, err := target(catalog.TypeTable, req.Namespace, req.Table)
	if err != nil {
		return nil, err
	}
	out, err := s.protect(ctx, req.Warehouse, t, req.Body)
	if err != nil {
		return nil, err
	}
	return managerest.SetTableProtection200JSONResponse(out), nil
}

// GetViewProtection handles GET …/views/{view}/protection.
func (s *manageServer) GetViewProtection(ctx context.Context, req managerest.GetViewProtectionRequestObject) (managerest.GetViewProtectionResponseObject, error) {
	out, err := s.protection(ctx, req.Warehouse, catalog.TypeView, req.Namespace, req.View)
	if err != nil {
		return nil, err
	}
	return managerest.GetViewProtection200JSONResponse(out), nil
}

// SetViewProtection handles PUT …/views/{view}/protection.
func (s *manageServer) SetViewProtection(ctx context.Context, req managerest.SetViewProtectionRequestObject) (managerest.SetViewProtectionResponseObject, error) {
	t, err := target(catalog.TypeView, req.Namespace, req.View)
	if err != nil {
		return nil, err
	}
	out, err := s.protect(ctx, req.Warehouse, t, req.Body)
	if err != nil {
		return nil, err
	}
	return managerest.SetViewProtection200JSONResponse(out), nil
}

// GetNamespaceProtection handles GET …/namespaces/{namespace}/protection.
func (s *manageServer) GetNamespaceProtection(ctx context.Context, req managerest.GetNamespaceProtectionRequestObject) (managerest.GetNamespaceProtectionResponseObject, error) {
	out, err := s.protection(ctx, req.Warehouse, catalog.TypeNamespace, req.Namespace, "")
	if err != nil {
		return nil, err
	}
	return managerest.GetNamespaceProtection200JSONResponse(out), nil
}

// SetNamespaceProtection handles PUT …/namespaces/{namespace}/protection.
func (s *manageServer) SetNamespaceProtection(ctx context.Context, req managerest.SetNamespaceProtectionRequestObject) (managerest.SetNamespaceProtectionResponseObject, error) {
	t, err := target(catalog.TypeNamespace, req.Namespace, "")
	if err != nil {
		return nil, err
	}
	out, err := s.protect(ctx, req.Warehouse, t, req.Body)
	if err != nil {
		return nil, err
	}
	return managerest.SetNamespaceProtection200JSONResponse(out), nil
}

// reportsPageSize bounds a page for clients that do not page: reports are large.
const reportsPageSize = 100

// ListMetricsReports handles GET …/tables/{table}/metrics-reports.
func (s *manageServer) ListMetricsReports(ctx context.Context, req managerest.ListMetricsReportsRequestObject) (managerest.ListMetricsReportsResponseObject, error) {
	id, err := identOf(req.Namespace, req.Table)
	if err != nil {
		return nil, err
	}
	p := catalog.ReportPage{Type: text(req.Params.Type)}
	if strings.ContainsRune(p.Type, 0) {
		return nil, invalid("Invalid parameter type: it holds a NUL character")
	}
	if p.Since, err = momentIn(req.Params.Since, "since"); err != nil {
		return nil, err
	}
	if p.Until, err = momentIn(req.Params.Until, "until"); err != nil {
		return nil, err
	}
	l := listing{"metrics-reports " + id.Name, req.Warehouse, id.Namespace}
	if p.PageRequest, err = l.page(req.Params.PageToken, req.Params.PageSize); err != nil {
		return nil, err
	}
	if p.Size == 0 {
		p.Size = reportsPageSize
	}
	p.Size = min(p.Size, pageSizeDefault)
	page, err := s.life.MetricsReports(ctx, req.Warehouse, id, p)
	if err != nil {
		return nil, err
	}
	out := managerest.ListMetricsReports200JSONResponse{Reports: []managerest.MetricsReport{}, NextPageToken: l.token(page.Next)}
	for _, r := range page.Items {
		out.Reports = append(out.Reports, managerest.MetricsReport{
			ID: r.ID, ReportType: r.Type, SnapshotID: r.SnapshotID, ReceivedAt: r.ReceivedAt.UTC(), Report: r.Body,
		})
	}
	return out, nil
}

func momentIn(value *string, parameter string) (time.Time, error) {
	if text(value) == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339Nano, *value)
	if err != nil {
		return t, invalid("Invalid parameter %s: %q is not a moment such as 2026-01-31T12:00:00Z", parameter, *value)
	}
	return t, nil
}
