package api

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/catalogd/catalogd/api/rest"
	"github.com/catalogd/catalogd/catalog"
)

// ListTables handles GET /v1/{prefix}/namespaces/{namespace}/tables.
func (s *server) ListTables(ctx context.Context, req rest.ListTablesRequestObject) (rest.ListTablesResponseObject, error) {
	ns, err := namespaceOf(req.Namespace)
	if err != nil {
		return nil, err
	}
	l := listing{"tables", req.Prefix, ns}
	p, err := l.page(req.Params.PageToken, req.Params.PageSize)
	if err != nil {
		return nil, err
	}
	if p.StorageTables, err = flag(req.Params.ListStorageTables, "list-storage-tables"); err != nil {
		return nil, err
	}
	page, err := s.catalog.ListTables(ctx, req.Prefix, ns, p)
	if err != nil {
		return nil, err
	}
	return rest.ListTables200JSONResponse(identifiers(l, page)), nil
}

func identifiers(l listing, page catalog.Page[catalog.TableIdent]) rest.IdentifierList {
	out := rest.IdentifierList{Identifiers: []rest.Identifier{}, NextPageToken: l.token(page.Next)}
	for _, id := range page.Items {
		out.Identifiers = append(out.Identifiers, rest.Identifier{Namespace: rest.Namespace(id.Namespace), Name: id.Name})
	}
	return out
}

// CreateTable handles POST /v1/{prefix}/namespaces/{namespace}/tables.
func (s *server) CreateTable(ctx context.Context, req rest.CreateTableRequestObject) (rest.CreateTableResponseObject, error) {
	create, ns, err := createTableRequest(req)
	if err != nil {
		return nil, err
	}
	l, err := s.catalog.CreateTable(ctx, req.Prefix, ns, create)
	if err != nil {
		return nil, err
	}
	return answerLoaded(ctx, l, shapeAll)
}

func createTableRequest(req rest.CreateTableRequestObject) (out catalog.CreateTableRequest, ns catalog.Namespace, err error) {
	ns, err = namespaceOf(req.Namespace)
	if err != nil {
		return out, nil, err
	}
	body := req.Body
	if err := nameIn(ns, body.Name); err != nil {
		return out, nil, err
	}
	if err := object(body.Schema, "schema"); err != nil {
		return out, nil, err
	}
	spec, err := optionalObject(body.PartitionSpec, "partition-spec")
	if err != nil {
		return out, nil, err
	}
	order, err := optionalObject(body.WriteOrder, "write-order")
	if err != nil {
		return out, nil, err
	}
	location, err := locationIn(text(body.Location), "location")
	if err != nil {
		return out, nil, err
	}
	props, err := properties(body.Properties, "properties")
	if err != nil {
		return out, nil, err
	}
	return catalog.CreateTableRequest{
		Name: body.Name, Location: location, Schema: body.Schema, PartitionSpec: spec, WriteOrder: order,
		StageCreate: body.StageCreate != nil && *body.StageCreate, Properties: props,
	}, ns, nil
}

// nameIn checks the name of a table or view that a body wants to make.
func nameIn(ns catalog.Namespace, name string) error {
	if name == "" {
		return invalid("Missing member name")
	}
	return catalog.CheckIdent(catalog.TableIdent{Namespace: ns, Name: name})
}

func locationIn(location, member string) (string, error) {
	if strings.ContainsRune(location, 0) {
		return "", invalid("Invalid member %s: it holds a NUL character", member)
	}
	return location, nil
}

// optionalObject is nil for an absent member; JSON null counts as absent.
func optionalObject(raw *rest.Opaque, member string) (json.RawMessage, error) {
	if raw == nil || len(*raw) == 0 || string(*raw) == "null" {
		return nil, nil
	}
	return *raw, object(*raw, member)
}

// RegisterTable handles POST /v1/{prefix}/namespaces/{namespace}/register.
func (s *server) RegisterTable(ctx context.Context, req rest.RegisterTableRequestObject) (rest.RegisterTableResponseObject, error) {
	ns, err := namespaceOf(req.Namespace)
	if err != nil {
		return nil, err
	}
	location, err := registration(ns, req.Body.Name, req.Body.MetadataLocation)
	if err != nil {
		return nil, err
	}
	overwrite := req.Body.Overwrite != nil && *req.Body.Overwrite
	l, err := s.catalog.RegisterTable(ctx, req.Prefix, ns, req.Body.Name, location, overwrite)
	if err != nil {
		return nil, err
	}
	return answerLoaded(ctx, l, shapeAll)
}

// registration checks what a body wants to register, and returns the file.
func registration(ns catalog.Namespace, name, metadataLocation string) (string, error) {
	if err := nameIn(ns, name); err != nil {
		return "", err
	}
	location, err := locationIn(metadataLocation, "metadata-location")
	if err == nil && location == "" {
		err = invalid("Missing member metadata-location")
	}
	return location, err
}

// UnregisterTable handles POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/unregister.
func (s *server) UnregisterTable(ctx context.Context, req rest.UnregisterTableRequestObject) (rest.UnregisterTableResponseObject, error) {
	id, err := identOf(req.Namespace, req.Table)
	if err != nil {
		return nil, err
	}
	l, err := s.catalog.UnregisterTable(ctx, req.Prefix, id)
	if err != nil {
		return nil, err
	}
	return answerLoaded(ctx, l, shapeAll)
}

// LoadCredentials handles GET /v1/{prefix}/namespaces/{namespace}/tables/{table}/credentials.
// A file warehouse has none to give: whoever can read the folder needs none.
func (s *server) LoadCredentials(ctx context.Context, req rest.LoadCredentialsRequestObject) (rest.LoadCredentialsResponseObject, error) {
	id, err := identOf(req.Namespace, req.Table)
	if err != nil {
		return nil, err
	}
	if err := s.catalog.TableExists(ctx, req.Prefix, id); err != nil {
		return nil, err
	}
	return rest.LoadCredentials200JSONResponse{StorageCredentials: []rest.Credential{}}, nil
}

// LoadTable handles GET /v1/{prefix}/namespaces/{namespace}/tables/{table}.
func (s *server) LoadTable(ctx context.Context, req rest.LoadTableRequestObject) (rest.LoadTableResponseObject, error) {
	id, err := identOf(req.Namespace, req.Table)
	if err != nil {
		return nil, err
	}
	shape, err := shapeOf(req.Params.Snapshots)
	if err != nil {
		return nil, err
	}
	// The catalog is asked before a 304, too: the table may be gone, and what a load
	// leaves behind (rights, leases) it leaves behind for a 304 as well.
	l, err := s.catalog.LoadTable(ctx, req.Prefix, id)
	if err != nil {
		return nil, err
	}
	out, err := answerLoaded(ctx, l, shape)
	if err != nil {
		return nil, err
	}
	if matches(req.Params.IfNoneMatch, out.etag) {
		return notModified{out.etag}, nil
	}
	return out, nil
}

func shapeOf(snapshots *string) (string, error) {
	switch strings.ToLower(text(snapshots)) {
	case "", shapeAll:
		return shapeAll, nil
	case shapeRefs:
		return shapeRefs, nil
	}
	return "", invalid("Invalid parameter snapshots: %q is neither all nor refs", *snapshots)
}

// TableExists handles HEAD /v1/{prefix}/namespaces/{namespace}/tables/{table}.
func (s *server) TableExists(ctx context.Context, req rest.TableExistsRequestObject) (rest.TableExistsResponseObject, error) {
	id, err := identOf(req.Namespace, req.Table)
	if err != nil {
		return nil, err
	}
	if err := s.catalog.TableExists(ctx, req.Prefix, id); err != nil {
		return nil, err
	}
	return rest.TableExists204Response{}, nil
}

// UpdateTable handles POST /v1/{prefix}/namespaces/{namespace}/tables/{table}.
func (s *server) UpdateTable(ctx context.Context, req rest.UpdateTableRequestObject) (rest.UpdateTableResponseObject, error) {
	id, err := identOf(req.Namespace, req.Table)
	if err != nil {
		return nil, err
	}
	if req.Body.Requirements == nil {
		return nil, invalid("Missing member requirements: it may be empty, but must be there")
	}
	commit, err := commitRequest(id, req.Body.Identifier, req.Body.Requirements, req.Body.Updates)
	if err != nil {
		return nil, err
	}
	l, err := s.catalog.CommitTable(ctx, req.Prefix, id, commit)
	if err != nil {
		return nil, err
	}
	return answerLoaded(ctx, l, shapeAll)
}

// commitRequest checks the shape of a commit; what its parts mean is the catalog's to say.
func commitRequest(id catalog.TableIdent, named *rest.Identifier, requirements, updates []json.RawMessage) (catalog.CommitRequest, error) {
	if updates == nil {
		return catalog.CommitRequest{}, invalid("Missing member updates: it may be empty, but must be there")
	}
	if named != nil {
		other, err := identIn(named.Namespace, named.Name, "identifier")
		if err != nil {
			return catalog.CommitRequest{}, err
		}
		if !other.Equal(id) {
			return catalog.CommitRequest{}, invalid("The commit is for %s, but the URL names %s", other, id)
		}
	}
	if err := objects(requirements, "requirements"); err != nil {
		return catalog.CommitRequest{}, err
	}
	if err := objects(updates, "updates"); err != nil {
		return catalog.CommitRequest{}, err
	}
	return catalog.CommitRequest{Requirements: requirements, Updates: updates}, nil
}

// DropTable handles DELETE /v1/{prefix}/namespaces/{namespace}/tables/{table}.
func (s *server) DropTable(ctx context.Context, req rest.DropTableRequestObject) (rest.DropTableResponseObject, error) {
	id, err := identOf(req.Namespace, req.Table)
	if err != nil {
		return nil, err
	}
	purge, err := flag(req.Params.PurgeRequested, "purgeRequested")
	if err != nil {
		return nil, err
	}
	if err := s.catalog.DropTable(ctx, req.Prefix, id, purge); err != nil {
		return nil, err
	}
	return rest.DropTable204Response{}, nil
}

// RenameTable handles POST /v1/{prefix}/tables/rename.
func (s *server) RenameTable(ctx context.Context, req rest.RenameTableRequestObject) (rest.RenameTableResponseObject, error) {
	from, to, err := renaming(req.Body)
	if err != nil {
		return nil, err
	}
	if err := s.catalog.RenameTable(ctx, req.Prefix, from, to); err != nil {
		return nil, err
	}
	return rest.RenameTable204Response{}, nil
}

func renaming(body *rest.Renaming) (from, to catalog.TableIdent, err error) {
	if from, err = identIn(body.Source.Namespace, body.Source.Name, "source"); err != nil {
		return from, to, err
	}
	to, err = identIn(body.Destination.Namespace, body.Destination.Name, "destination")
	return from, to, err
}

// ReportMetrics handles POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/metrics.
func (s *server) ReportMetrics(ctx context.Context, req rest.ReportMetricsRequestObject) (rest.ReportMetricsResponseObject, error) {
	id, err := identOf(req.Namespace, req.Table)
	if err != nil {
		return nil, err
	}
	if err := s.catalog.ReportMetrics(ctx, req.Prefix, id, *req.Body); err != nil {
		return nil, err
	}
	return rest.ReportMetrics204Response{}, nil
}
