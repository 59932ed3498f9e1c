package api

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/catalogd/catalogd/api/rest"
	"github.com/catalogd/catalogd/catalog"
)

var _ rest.StrictServerInterface = (*server)(nil)

// endpoints lists the operations that are routed, in the protocol's notation. It is read
// off the router, so that it names what works and nothing else. getConfig is left out:
// whoever reads the list has called it.
func endpoints(routes []*echo.Route) []string {
	out := []string{}
	for _, r := range routes {
		if !strings.HasPrefix(r.Path, "/v1/:prefix/") {
			continue
		}
		segments := strings.Split(r.Path, "/")
		for i, s := range segments {
			if name, ok := strings.CutPrefix(s, ":"); ok {
				segments[i] = "{" + name + "}"
			}
		}
		out = append(out, r.Method+" "+strings.Join(segments, "/"))
	}
	slices.Sort(out)
	return out
}

// GetConfig handles GET /v1/config.
func (s *server) GetConfig(ctx context.Context, req rest.GetConfigRequestObject) (rest.GetConfigResponseObject, error) {
	w, err := s.catalog.Config(ctx, text(req.Params.Warehouse))
	if err != nil {
		return nil, err
	}
	lifetime := fmt.Sprintf("PT%dM", int(catalog.ReceiptLifetime.Minutes())) // ISO 8601
	return rest.GetConfig200JSONResponse{
		Defaults: map[string]string{},
		Overrides: map[string]string{
			"prefix":              url.PathEscape(w.Name), // clients put it into paths as it is
			"namespace-separator": namespaceSeparatorEscaped,
		},
		Endpoints:              s.endpoints,
		IdempotencyKeyLifetime: &lifetime,
	}, nil
}

// ListNamespaces handles GET /v1/{prefix}/namespaces.
func (s *server) ListNamespaces(ctx context.Context, req rest.ListNamespacesRequestObject) (rest.ListNamespacesResponseObject, error) {
	var parent catalog.Namespace
	if p := text(req.Params.Parent); p != "" {
		var err error
		if parent, err = namespaceOf(p); err != nil {
			return nil, err
		}
	}
	l := listing{"namespaces", req.Prefix, parent}
	p, err := l.page(req.Params.PageToken, req.Params.PageSize)
	if err != nil {
		return nil, err
	}
	page, err := s.catalog.ListNamespaces(ctx, req.Prefix, parent, p)
	if err != nil {
		return nil, err
	}
	out := rest.ListNamespaces200JSONResponse{Namespaces: []rest.Namespace{}, NextPageToken: l.token(page.Next)}
	for _, ns := range page.Items {
		out.Namespaces = append(out.Namespaces, rest.Namespace(ns))
	}
	return out, nil
}

// CreateNamespace handles POST /v1/{prefix}/namespaces.
func (s *server) CreateNamespace(ctx context.Context, req rest.CreateNamespaceRequestObject) (rest.CreateNamespaceResponseObject, error) {
	ns, err := namespaceIn(req.Body.Namespace, "namespace")
	if err != nil {
		return nil, err
	}
	props, err := properties(req.Body.Properties, "properties")
	if err != nil {
		return nil, err
	}
	stored, err := s.catalog.CreateNamespace(ctx, req.Prefix, ns, props)
	if err != nil {
		return nil, err
	}
	return rest.CreateNamespace200JSONResponse{Namespace: rest.Namespace(ns), Properties: orEmpty(stored)}, nil
}

// LoadNamespaceMetadata handles GET /v1/{prefix}/namespaces/{namespace}.
func (s *server) LoadNamespaceMetadata(ctx context.Context, req rest.LoadNamespaceMetadataRequestObject) (rest.LoadNamespaceMetadataResponseObject, error) {
	ns, err := namespaceOf(req.Namespace)
	if err != nil {
		return nil, err
	}
	props, err := s.catalog.LoadNamespace(ctx, req.Prefix, ns)
	if err != nil {
		return nil, err
	}
	return rest.LoadNamespaceMetadata200JSONResponse{Namespace: rest.Namespace(ns), Properties: orEmpty(props)}, nil
}

// NamespaceExists handles HEAD /v1/{prefix}/namespaces/{namespace}.
func (s *server) NamespaceExists(ctx context.Context, req rest.NamespaceExistsRequestObject) (rest.NamespaceExistsResponseObject, error) {
	ns, err := namespaceOf(req.Namespace)
	if err != nil {
		return nil, err
	}
	if _, err := s.catalog.LoadNamespace(ctx, req.Prefix, ns); err != nil {
		return nil, err
	}
	return rest.NamespaceExists204Response{}, nil
}

// DropNamespace handles DELETE /v1/{prefix}/namespaces/{namespace}.
func (s *server) DropNamespace(ctx context.Context, req rest.DropNamespaceRequestObject) (rest.DropNamespaceResponseObject, error) {
	ns, err := namespaceOf(req.Namespace)
	if err != nil {
		return nil, err
	}
	if err := s.catalog.DropNamespace(ctx, req.Prefix, ns); err != nil {
		return nil, err
	}
	return rest.DropNamespace204Response{}, nil
}

// UpdateProperties handles POST /v1/{prefix}/namespaces/{namespace}/properties.
func (s *server) UpdateProperties(ctx context.Context, req rest.UpdatePropertiesRequestObject) (rest.UpdatePropertiesResponseObject, error) {
	ns, err := namespaceOf(req.Namespace)
	if err != nil {
		return nil, err
	}
	updates, err := properties(req.Body.Updates, "updates")
	if err != nil {
		return nil, err
	}
	for i, key := range req.Body.Removals {
		if strings.ContainsRune(key, 0) {
			return nil, invalid("Invalid member removals[%d]: it holds a NUL character", i)
		}
	}
	u, err := s.catalog.UpdateNamespace(ctx, req.Prefix, ns, req.Body.Removals, updates)
	if err != nil {
		return nil, err
	}
	return rest.UpdateProperties200JSONResponse{Updated: list(u.Updated), Removed: list(u.Removed), Missing: list(u.Missing)}, nil
}

// orEmpty and list keep JSON null out of answers: clients expect an object or an array.
func orEmpty(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}

func list(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}
