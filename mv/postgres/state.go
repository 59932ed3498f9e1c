package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/catalogd/catalogd/catalog"
	"github.com/catalogd/catalogd/mv"
)

// stateSQL reads everything there is to know about the views of its first part and the
// materialized views below them. It is one statement on purpose: PostgreSQL runs it on
// one snapshot, so no two heads belong to different moments. Each row is one object with
// a tag that says which. OFFSET 0 makes PostgreSQL follow the indexes row by row: it cannot
// guess how few rows a recursion yields, and would read whole tables to be safe.
const stateSQL = `
, reach (view_uuid) AS (
    SELECT view_uuid FROM root
    UNION
    SELECT u.view_uuid
      FROM reach r
     CROSS JOIN LATERAL (SELECT * FROM materialized_view_source s WHERE s.view_uuid = r.view_uuid OFFSET 0) s
     CROSS JOIN LATERAL (
           SELECT v.view_uuid FROM materialized_view v
            WHERE v.catalog_name = s.catalog_name AND v.namespace = s.namespace AND v.name = s.name
           UNION ALL
           SELECT v.view_uuid FROM materialized_view v
            WHERE v.catalog_name = s.catalog_name AND v.storage_namespace = s.namespace AND v.storage_name = s.name
           OFFSET 0) u
), registered AS (
    SELECT m.* FROM reach r
     CROSS JOIN LATERAL (SELECT * FROM materialized_view v WHERE v.view_uuid = r.view_uuid OFFSET 0) m
), read_name AS (
    SELECT s.view_uuid, s.catalog_name, s.namespace, s.name FROM reach r
     CROSS JOIN LATERAL (SELECT * FROM materialized_view_source s WHERE s.view_uuid = r.view_uuid OFFSET 0) s
), object_name AS (
    SELECT catalog_name, namespace, name FROM read_name
    UNION
    SELECT catalog_name, namespace, name FROM registered
    UNION
    SELECT catalog_name, storage_namespace, storage_name FROM registered
), object AS (
    SELECT t.* FROM object_name n
     CROSS JOIN LATERAL (SELECT * FROM iceberg_tables t
            WHERE t.catalog_name = n.catalog_name AND t.table_namespace = n.namespace AND t.table_name = n.name OFFSET 0) t
)
SELECT 'clock', jsonb_build_object('at', clock_timestamp(), 'root', (SELECT view_uuid FROM root LIMIT 1))
UNION ALL
SELECT 'view', jsonb_build_object('uuid', m.view_uuid, 'warehouse', m.catalog_name, 'namespace', m.namespace, 'name', m.name,
       'version', m.view_version_id, 'storage-uuid', m.storage_uuid, 'storage-namespace', m.storage_namespace,
       'storage-name', m.storage_name, 'definition', m.definition, 'mode', m.refresh_mode, 'max-staleness', m.max_staleness_ms,
       'stale-since', m.stale_since, 'not-before', m.not_before, 'suspended', m.suspended, 'failures', m.failures,
       'last-error', m.last_error, 'permanent-inputs', m.permanent_inputs, 'generation', m.generation,
       'full-generation', m.full_generation, 'live', ` + live + `,
       'ended', (SELECT ` + refreshDocument + ` FROM refresh r WHERE r.view_uuid = m.view_uuid
                  AND r.status IN ('succeeded', 'failed') ORDER BY r.started_at DESC LIMIT 1),
       'running', (SELECT ` + refreshDocument + ` FROM refresh r WHERE r.view_uuid = m.view_uuid
                    AND r.status = 'running' ORDER BY r.started_at DESC LIMIT 1))
  FROM registered m
UNION ALL
SELECT 'name', jsonb_build_object('view', view_uuid, 'warehouse', catalog_name, 'namespace', namespace, 'name', name)
  FROM read_name
UNION ALL
SELECT 'object', jsonb_build_object('warehouse', t.catalog_name, 'namespace', t.table_namespace, 'name', t.table_name,
       'type', t.iceberg_type, 'uuid', t.object_uuid, 'metadata-location', t.metadata_location, 'location', t.location,
       'snapshot', t.snapshot_id, 'schema', t.schema_id, 'version', t.view_version_id, 'materialized', t.is_materialized,
       'storage-of', t.storage_of, 'changed', t.changed_at)
  FROM object t
UNION ALL
SELECT 'unchanged', jsonb_build_object('table', t.object_uuid, 'snapshots', jsonb_agg(l.snapshot_id))
  FROM (SELECT DISTINCT object_uuid FROM object) t
 CROSS JOIN LATERAL (SELECT snapshot_id FROM change_log c WHERE c.table_uuid = t.object_uuid AND c.kind = 'none'
                      ORDER BY c.created_at DESC LIMIT 1000) l
 GROUP BY t.object_uuid
UNION ALL
SELECT 'leased', jsonb_build_object('table', t.object_uuid, 'snapshots', jsonb_agg(l.snapshot_id))
  FROM (SELECT DISTINCT object_uuid FROM object) t
 CROSS JOIN LATERAL (SELECT * FROM snapshot_lease s WHERE s.table_uuid = t.object_uuid AND s.until > clock_timestamp() OFFSET 0) l
 GROUP BY t.object_uuid`

const (
	rootByUUID      = `WITH RECURSIVE root AS (SELECT view_uuid FROM materialized_view WHERE view_uuid = $1)`
	rootByName      = `WITH RECURSIVE root AS (SELECT view_uuid FROM materialized_view WHERE catalog_name = $1 AND namespace = $2 AND name = $3)`
	rootByWarehouse = `WITH RECURSIVE root AS (SELECT view_uuid FROM materialized_view WHERE catalog_name = $1)`
)

// State implements [mv.Registry].
func (r *Registry) State(ctx context.Context, viewUUID string) (mv.State, error) {
	s, err := r.read(ctx, rootByUUID+stateSQL, viewUUID)
	if err == nil && s.Root == "" {
		return mv.State{}, noSuchView(viewUUID)
	}
	return s, err
}

// Named implements [mv.Registry].
func (r *Registry) Named(ctx context.Context, warehouse string, id catalog.TableIdent) (mv.State, error) {
	s, err := r.read(ctx, rootByName+stateSQL, warehouse, catalog.EncodeNamespace(id.Namespace), id.Name)
	if err == nil && s.Root == "" {
		return mv.State{}, catalog.Errorf(catalog.KindNoSuchView, "Materialized view does not exist: %s", id)
	}
	return s, err
}

// All implements [mv.Registry].
func (r *Registry) All(ctx context.Context, warehouse string) (mv.State, error) {
	s, err := r.read(ctx, rootByWarehouse+stateSQL, warehouse)
	s.Root = ""
	return s, err
}

func (r *Registry) read(ctx context.Context, sql string, args ...any) (mv.State, error) {
	rows, err := r.pool.Query(ctx, sql, args...) //nolint:rowserrcheck // pgx.ForEachRow checks it
	if err != nil {
		return mv.State{}, translate(err)
	}
	s := mv.State{
		Views: map[string]mv.ViewState{}, Objects: map[mv.Key]catalog.Pointer{},
		Unchanged: map[string]map[int64]bool{}, Leased: map[string]map[int64]bool{},
	}
	names := map[string][]mv.Key{}
	var tag string
	var doc []byte
	_, err = pgx.ForEachRow(rows, []any{&tag, &doc}, func() error {
		return decodeStateRow(&s, names, tag, doc)
	})
	if err != nil {
		return mv.State{}, translate(err)
	}
	for id, keys := range names {
		v, ok := s.Views[id]
		if !ok {
			continue
		}
		slices.SortFunc(keys, compareKeys)
		v.Names = keys
		s.Views[id] = v
	}
	return s, nil
}

func decodeStateRow(s *mv.State, names map[string][]mv.Key, tag string, doc []byte) (err error) {
	switch tag {
	case "clock":
		var d struct {
			At   time.Time `json:"at"`
			Root string    `json:"root"`
		}
		err = json.Unmarshal(doc, &d)
		s.At, s.Root = d.At, d.Root
	case "view":
		var d viewRow
		if err = json.Unmarshal(doc, &d); err == nil {
			s.Views[d.UUID] = d.view()
		}
	case "name":
		var d nameRow
		err = json.Unmarshal(doc, &d)
		names[d.View] = append(names[d.View], mv.Key{Warehouse: d.Warehouse, Namespace: d.Namespace, Name: d.Name})
	case "object":
		var d objectRow
		if err = json.Unmarshal(doc, &d); err == nil {
			s.Objects[mv.Key{Warehouse: d.Warehouse, Namespace: d.Namespace, Name: d.Name}] = d.pointer()
		}
	case "unchanged":
		err = addSnapshots(s.Unchanged, doc)
	case "leased":
		err = addSnapshots(s.Leased, doc)
	}
	if err != nil {
		return fmt.Errorf("registry row %q: %w", tag, err)
	}
	return nil
}

func addSnapshots(to map[string]map[int64]bool, doc []byte) error {
	var d struct {
		Table     string  `json:"table"`
		Snapshots []int64 `json:"snapshots"`
	}
	if err := json.Unmarshal(doc, &d); err != nil {
		return err
	}
	set := make(map[int64]bool, len(d.Snapshots))
	for _, id := range d.Snapshots {
		set[id] = true
	}
	to[d.Table] = set
	return nil
}

type nameRow struct {
	View      string `json:"view"`
	Warehouse string `json:"warehouse"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

type viewRow struct {
	UUID             string         `json:"uuid"`
	Warehouse        string         `json:"warehouse"`
	Namespace        string         `json:"namespace"`
	Name             string         `json:"name"`
	Version          int            `json:"version"`
	StorageUUID      string         `json:"storage-uuid"`
	StorageNamespace string         `json:"storage-namespace"`
	StorageName      string         `json:"storage-name"`
	Definition       mv.Definition  `json:"definition"`
	Mode             mv.RefreshMode `json:"mode"`
	MaxStaleness     *int64         `json:"max-staleness"`
	StaleSince       time.Time      `json:"stale-since"`
	NotBefore        time.Time      `json:"not-before"`
	Suspended        bool           `json:"suspended"`
	Failures         int            `json:"failures"`
	LastError        string         `json:"last-error"`
	PermanentInputs  string         `json:"permanent-inputs"`
	Generation       int64          `json:"generation"`
	FullGeneration   int64          `json:"full-generation"`
	Live             bool           `json:"live"`
	Ended            *refreshRow    `json:"ended"`
	Running          *refreshRow    `json:"running"`
}

// view builds the state of a view. The columns outrank the stored definition: a rename
// changes only them.
func (d *viewRow) view() mv.ViewState {
	def := d.Definition
	def.ViewUUID, def.Warehouse, def.VersionID = d.UUID, d.Warehouse, d.Version
	def.Ident = identOf(d.Namespace, d.Name)
	def.Storage, def.StorageUUID = identOf(d.StorageNamespace, d.StorageName), d.StorageUUID
	def.Mode = d.Mode
	def.MaxStaleness = mv.Staleness{Unbounded: d.MaxStaleness == nil}
	if d.MaxStaleness != nil {
		def.MaxStaleness.Max = time.Duration(*d.MaxStaleness) * time.Millisecond
	}
	v := mv.ViewState{
		Definition: def, StaleSince: d.StaleSince, NotBefore: d.NotBefore, Suspended: d.Suspended, Failures: d.Failures,
		LastError: d.LastError, PermanentInputs: d.PermanentInputs, Generation: d.Generation, FullGeneration: d.FullGeneration,
	}
	if d.Ended != nil {
		last := d.Ended.refresh()
		v.LastRefresh = &last
	}
	if d.Running != nil {
		running := d.Running.refresh()
		v.Running = &running
	}
	// A job that waits for its time or for a free slot has no run yet.
	switch {
	case d.Live && d.Running != nil:
		v.Job = mv.JobRunning
	case d.Live:
		v.Job = mv.JobQueued
	}
	return v
}

type objectRow struct {
	Warehouse        string             `json:"warehouse"`
	Namespace        string             `json:"namespace"`
	Name             string             `json:"name"`
	Type             catalog.ObjectType `json:"type"`
	UUID             string             `json:"uuid"`
	MetadataLocation string             `json:"metadata-location"`
	Location         string             `json:"location"`
	Snapshot         *int64             `json:"snapshot"`
	Schema           int                `json:"schema"`
	Version          int                `json:"version"`
	Materialized     bool               `json:"materialized"`
	StorageOf        string             `json:"storage-of"`
	Changed          time.Time          `json:"changed"`
}

func (d *objectRow) pointer() catalog.Pointer {
	p := catalog.Pointer{
		Warehouse: d.Warehouse, Ident: identOf(d.Namespace, d.Name), Type: d.Type, UUID: d.UUID,
		MetadataLocation: d.MetadataLocation, Location: d.Location, SnapshotID: mv.NoSnapshot, SchemaID: d.Schema,
		ViewVersionID: d.Version, StorageOf: d.StorageOf, IsMaterialized: d.Materialized, ChangedAt: d.Changed,
	}
	if p.Type == "" {
		p.Type = catalog.TypeTable // rows of older clients
	}
	if d.Snapshot != nil {
		p.SnapshotID = *d.Snapshot
	}
	return p
}
