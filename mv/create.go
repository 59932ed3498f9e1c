package mv

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"

	"github.com/catalogd/catalogd/catalog"
)

// Service is what people and programs ask about materialized views.
type Service struct {
	registry Registry
	requests Requests
	catalog  Catalog
	engine   Engine
}

var _ API = (*Service)(nil)

// ServiceConfig is what a [Service] needs.
type ServiceConfig struct {
	Registry Registry
	Requests Requests
	Catalog  Catalog
	Engine   Engine
}

// NewService returns a Service.
func NewService(c ServiceConfig) *Service {
	return &Service{registry: c.Registry, requests: c.Requests, catalog: c.Catalog, engine: c.Engine}
}

// Create implements [API]. The view is created like any other, with a version that names
// a storage table: the guard does the rest.
func (s *Service) Create(ctx context.Context, warehouse string, req CreateRequest) (Freshness, error) {
	w, err := s.catalog.Config(ctx, warehouse)
	if err != nil {
		return Freshness{}, err
	}
	if err := complete(&req); err != nil {
		return Freshness{}, err
	}
	columns, err := s.describe(ctx, w.Name, req)
	if err != nil {
		return Freshness{}, err
	}
	parts, err := viewParts(req, columns)
	if err != nil {
		return Freshness{}, err
	}
	existing, found, err := s.catalog.Find(ctx, w.Name, req.Ident)
	if err != nil {
		return Freshness{}, err
	}
	if found && existing.Type == catalog.TypeView && req.OrReplace {
		err = s.replace(ctx, w.Name, req, existing, parts)
	} else {
		_, err = s.catalog.CreateView(ctx, w.Name, req.Ident.Namespace, catalog.CreateViewRequest{
			Name: req.Ident.Name, Schema: parts.schema, ViewVersion: parts.version, Properties: parts.properties,
			Body: parts.body, Options: createOptions{req.Options},
		})
	}
	if err != nil {
		return Freshness{}, err
	}
	return s.Freshness(ctx, w.Name, req.Ident)
}

// complete checks a request and fills in its defaults.
func complete(req *CreateRequest) error {
	if err := catalog.CheckIdent(req.Ident); err != nil {
		return err
	}
	if req.SQL == "" {
		return ErrInput("the materialized view %s has no sql", req.Ident)
	}
	if req.Dialect == "" {
		req.Dialect = DuckDB
	}
	if req.Dialect != DuckDB && req.Dialect != Trino && req.Dialect != Spark {
		return ErrInput("dialect %q is unknown: it can be duckdb, trino or spark", req.Dialect)
	}
	if req.DefaultNS == nil {
		req.DefaultNS = req.Ident.Namespace
	}
	if req.MaxStaleness == nil {
		req.MaxStaleness = &Staleness{} // always exact
	}
	if !req.MaxStaleness.Unbounded && req.MaxStaleness.Max < 0 {
		return ErrInput("max-staleness-ms is negative")
	}
	if req.Options.StorageName == "" {
		req.Options.StorageName = storageName(req.Ident.Name)
	}
	if req.Options.StorageName == req.Ident.Name {
		return ErrInput("the storage table needs another name than the view %s", req.Ident)
	}
	return nil
}

// describe works out the columns, which the view's schema needs before the view exists.
func (s *Service) describe(ctx context.Context, warehouse string, req CreateRequest) ([]EngineColumn, error) {
	zone := req.Properties[PropTimeZone]
	if zone == "" {
		zone = "UTC"
	}
	t := text{Dialect: req.Dialect, SQL: req.SQL, DefaultNS: req.DefaultNS, Zone: zone}
	found, err := analyse(ctx, live{s.catalog}, warehouse, KeyOf(warehouse, req.Ident), t)
	if err != nil {
		return nil, err
	}
	return describeColumns(ctx, s.engine, found, zone)
}

// parts are the pieces of a createView body.
type parts struct {
	schema, version, body json.RawMessage
	properties            map[string]string
}

func viewParts(req CreateRequest, columns []EngineColumn) (parts, error) {
	cols := make([]Column, len(columns))
	for i, c := range columns {
		cols[i] = Column{Name: c.Name, Type: c.Type, ID: i + 1}
	}
	var (
		p   parts
		err error
	)
	if p.schema, err = schemaJSON(cols); err != nil {
		return parts{}, err
	}
	p.version, err = json.Marshal(map[string]any{
		"version-id": 1, "schema-id": 0, "timestamp-ms": 0,
		"summary":           map[string]string{"engine-name": "catalogd"},
		"default-namespace": req.DefaultNS,
		"representations":   []map[string]string{{"type": "sql", "sql": req.SQL, "dialect": string(req.Dialect)}},
		"storage-table":     map[string]any{"namespace": req.Ident.Namespace, "name": req.Options.StorageName},
	})
	if err != nil {
		return parts{}, fmt.Errorf("view version: %w", err)
	}
	p.properties = maps.Clone(req.Properties)
	if p.properties == nil {
		p.properties = map[string]string{}
	}
	if req.Comment != "" {
		p.properties["comment"] = req.Comment
	}
	if !req.MaxStaleness.Unbounded {
		p.properties[PropMaxStaleness] = strconv.FormatInt(req.MaxStaleness.Max.Milliseconds(), 10)
	}
	p.body, err = json.Marshal(map[string]any{"name": req.Ident.Name})
	if err != nil {
		return parts{}, fmt.Errorf("view: %w", err)
	}
	return p, nil
}

// replace gives an existing view another query.
func (s *Service) replace(ctx context.Context, warehouse string, req CreateRequest, row catalog.Pointer, p parts) error {
	updates := []map[string]any{
		{"action": "add-schema", "schema": p.schema},
		{"action": "add-view-version", "view-version": json.RawMessage(withSchemaID(p.version))},
		{"action": "set-current-view-version", "view-version-id": -1},
	}
	if len(p.properties) > 0 {
		updates = append(updates, map[string]any{"action": "set-properties", "updates": p.properties})
	}
	if req.MaxStaleness.Unbounded {
		updates = append(updates, map[string]any{"action": "remove-properties", "removals": []string{PropMaxStaleness}})
	}
	c := catalog.CommitRequest{Options: createOptions{req.Options}}
	for _, u := range append([]map[string]any{{"type": "assert-view-uuid", "uuid": row.UUID}}, updates...) {
		raw, err := json.Marshal(u)
		if err != nil {
			return fmt.Errorf("replace view: %w", err)
		}
		if _, isUpdate := u["action"]; isUpdate {
			c.Updates = append(c.Updates, raw)
		} else {
			c.Requirements = append(c.Requirements, raw)
		}
	}
	_, err := s.catalog.ReplaceView(ctx, warehouse, req.Ident, c)
	return err
}

// withSchemaID makes a version use the schema that is added in the same commit.
func withSchemaID(version json.RawMessage) []byte {
	var v map[string]json.RawMessage
	if json.Unmarshal(version, &v) != nil {
		return version
	}
	v["schema-id"] = json.RawMessage("-1")
	out, err := json.Marshal(v)
	if err != nil {
		return version
	}
	return out
}
