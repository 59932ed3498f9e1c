package mv

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/catalogd/catalogd/catalog"
	"github.com/catalogd/catalogd/catalog/metadata"
)

// View properties that belong to this package.
const (
	PropMaxStaleness = "max-staleness-ms"
	PropRefresh      = "catalogd.refresh"   // managed or external
	PropTimeZone     = "catalogd.time-zone" // of zone-dependent expressions, default UTC
)

// Guard takes part in catalog operations: it turns a view with a storage table into a
// materialized one, and keeps storage tables to what their views return.
type Guard struct {
	registry  Registry
	objects   objects
	engine    Engine
	publisher Publisher
	now       func() time.Time
	log       *slog.Logger
}

var _ catalog.Guard = (*Guard)(nil)

// GuardConfig is what a [Guard] needs.
type GuardConfig struct {
	Registry  Registry
	Catalog   Catalog
	Engine    Engine
	Publisher Publisher
	Now       func() time.Time // nil: time.Now
	Log       *slog.Logger
}

// NewGuard returns a Guard.
func NewGuard(c GuardConfig) *Guard {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &Guard{registry: c.Registry, objects: live{c.Catalog}, engine: c.Engine, publisher: c.Publisher, now: c.Now, log: c.Log}
}

// live looks names up in the catalog as it is now.
type live struct{ Catalog }

func (l live) object(ctx context.Context, k Key) (catalog.Pointer, bool, error) {
	return l.Find(ctx, k.Warehouse, catalog.TableIdent{Namespace: catalog.DecodeNamespace(k.Namespace), Name: k.Name})
}

// View implements [catalog.Guard].
func (g *Guard) View(ctx context.Context, p *catalog.ViewProposal) error {
	if p.BaseRow == nil {
		if err := checkName(p.Ident); err != nil {
			return err
		}
	}
	if err := carryStorage(p); err != nil {
		return err
	}
	version := p.View.CurrentVersion()
	if version.StorageTable == nil {
		return g.plain(ctx, p, version)
	}
	d := &definer{guard: g, p: p, version: version, storage: version.StorageTable}
	d.opts, _ = p.Options.(createOptions)
	return d.define(ctx)
}

// carryStorage keeps a materialized view materialized when a writer that does not know
// storage tables replaces it.
func carryStorage(p *catalog.ViewProposal) error {
	if p.Base == nil {
		return nil
	}
	before, now := p.Base.CurrentVersion(), p.View.CurrentVersion()
	if before.StorageTable == nil || now.StorageTable != nil {
		return nil
	}
	if err := p.View.SetStorageTable(now.ID, *before.StorageTable); err != nil {
		return fmt.Errorf("keep storage table: %w", err)
	}
	return nil
}

// plain checks a view that is not materialized.
func (g *Guard) plain(ctx context.Context, p *catalog.ViewProposal, version metadata.Version) error {
	if ms := p.View.MaxStaleness(); len(ms) > 0 && string(ms) != "null" {
		return ErrInput("%s is set on %s, which is no materialized view: give its version a storage-table", PropMaxStaleness, p.Ident)
	}
	if p.BaseRow == nil {
		return nil // nothing can read a name that did not exist through a cycle
	}
	t, ok := anyRepresentation(version)
	if !ok {
		return nil
	}
	// A plain view may hold any text, so only a cycle counts.
	_, err := analyse(ctx, g.objects, p.Warehouse.Name, KeyOf(p.Warehouse.Name, p.Ident), t)
	if isCycle(err) {
		return err
	}
	return nil
}

// definer works out what a proposed materialized view is.
type definer struct {
	guard   *Guard
	p       *catalog.ViewProposal
	version metadata.Version
	storage *metadata.StorageTable
	opts    createOptions

	def   Definition
	found *analysis
	keeps bool // the stored rows answer the new version
}

func (d *definer) define(ctx context.Context) error {
	if err := d.describe(); err != nil {
		return err
	}
	if d.storage.Catalog != "" {
		d.register()
		return nil
	}
	if known, err := d.sameQuery(ctx); err != nil || known {
		return err
	}
	if err := d.query(ctx); err != nil {
		return err
	}
	if err := d.place(ctx); err != nil {
		return err
	}
	d.register()
	return nil
}

// sameQuery takes over the registered definition if the commit changes none of what a
// query means: properties of a view can be set even while one of its sources is missing.
func (d *definer) sameQuery(ctx context.Context) (bool, error) {
	if d.p.Base == nil || d.p.Base.CurrentVersionID() != d.version.ID {
		return false, nil
	}
	s, err := d.guard.registry.State(ctx, d.p.UUID)
	if catalog.KindOf(err) == catalog.KindNoSuchView {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	v := s.Views[s.Root]
	old := v.Definition
	if old.VersionID != d.version.ID || old.TimeZone != d.def.TimeZone || !old.Storage.Equal(d.def.Storage) {
		return false, nil
	}
	old.MaxStaleness, old.Mode = d.def.MaxStaleness, d.def.Mode
	d.p.Attachment = &Registration{Definition: old, Names: v.Names, KeepsData: true}
	return true, nil
}

// describe fills in what the view document says.
func (d *definer) describe() error {
	stale, err := stalenessOf(d.p.View)
	if err != nil {
		return err
	}
	mode := Managed
	if m, ok := d.p.View.Property(PropRefresh); ok {
		if mode = RefreshMode(m); mode != Managed && mode != External {
			return ErrInput("property %s is %q, it can be managed or external", PropRefresh, m)
		}
	}
	zone := "UTC"
	if z, ok := d.p.View.Property(PropTimeZone); ok {
		if _, err := time.LoadLocation(z); err != nil || z == "" || z == "Local" {
			return ErrInput("property %s is %q, which is no IANA time zone", PropTimeZone, z)
		}
		zone = z
	}
	d.def = Definition{
		ViewUUID: d.p.UUID, Warehouse: d.p.Warehouse.Name, Ident: d.p.Ident, VersionID: d.version.ID,
		DefaultNS: d.version.DefaultNamespace, DefaultCat: d.version.DefaultCatalog,
		Storage:      catalog.TableIdent{Namespace: d.storage.Namespace, Name: d.storage.Name},
		MaxStaleness: stale, Mode: mode, TimeZone: zone,
	}
	return nil
}

// stalenessOf reads max-staleness-ms. Null means any age, as the specification had it.
func stalenessOf(v *metadata.View) (Staleness, error) {
	raw := v.MaxStaleness()
	if len(raw) == 0 || string(raw) == "null" {
		return Staleness{Unbounded: true}, nil
	}
	ms, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil || ms < 0 || ms > int64(time.Duration(1<<63-1)/time.Millisecond) {
		return Staleness{}, ErrInput("%s is %s, it must be a whole number of milliseconds, 0 or more", PropMaxStaleness, raw)
	}
	return Staleness{Max: time.Duration(ms) * time.Millisecond}, nil
}

// query analyses the view's text and works out its columns. catalogd runs DuckDB's own
// text if there is one, else the first that DuckDB runs with the same meaning.
func (d *definer) query(ctx context.Context) error {
	candidates := d.texts()
	if len(candidates) == 0 {
		return ErrInput("view %s has no SQL text", d.p.Ident)
	}
	var first error
	for _, t := range candidates {
		err := d.try(ctx, t)
		if err == nil || catalog.KindOf(err) != catalog.KindInvalid {
			return err
		}
		if first == nil {
			first = err
		}
	}
	return first
}

func (d *definer) texts() []text {
	if t, ok := representation(d.version, DuckDB); ok {
		t.Zone = d.def.TimeZone
		return []text{t}
	}
	var out []text
	for _, r := range d.version.Representations {
		if r.Type == "sql" {
			t := textOf(d.version, r)
			t.Zone = d.def.TimeZone
			out = append(out, t)
		}
	}
	return out
}

func (d *definer) try(ctx context.Context, t text) error {
	self := KeyOf(d.def.Warehouse, d.def.Ident)
	found, err := analyse(ctx, d.guard.objects, d.def.Warehouse, self, t)
	if err != nil {
		return err
	}
	described, err := describeColumns(ctx, d.guard.engine, found, d.def.TimeZone)
	if err != nil {
		return err
	}
	d.found, d.def.Sources, d.def.Dialect, d.def.SQL = found, found.Sources, t.Dialect, t.SQL
	return d.columns(described)
}

// describeColumns binds the query against the schemas of what it reads.
func describeColumns(ctx context.Context, e Engine, a *analysis, zone string) ([]EngineColumn, error) {
	ctx, cancel := context.WithTimeout(ctx, analysisBudget)
	defer cancel()
	sql, err := a.runnable(nil)
	if err != nil {
		return nil, err
	}
	req := DescribeRequest{SQL: sql, TimeZone: zone}
	for _, r := range a.Relations {
		req.Relations = append(req.Relations, Relation{Name: r.Name, Schema: r.Table.CurrentSchema()})
	}
	columns, err := e.Describe(ctx, req)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return nil, ErrInput("the query takes more than %s to plan: make it simpler", analysisBudget)
	}
	return columns, err
}

// columns matches the view's declared schema with what the engine computes, by position.
func (d *definer) columns(described []EngineColumn) error {
	raw, ok := d.p.View.Schema(d.version.SchemaID)
	if !ok {
		return ErrInput("view version %d names schema %d, which the view does not have", d.version.ID, d.version.SchemaID)
	}
	fields, err := schemaFields(raw)
	if err != nil {
		return err
	}
	if len(fields) != len(described) {
		return ErrInput("the view's schema has %d columns, its query returns %d", len(fields), len(described))
	}
	d.def.Columns = make([]Column, len(fields))
	for i, f := range fields {
		declared := typeText(f.Type)
		if !castable(described[i].Type, declared) {
			return ErrInput("column %s is declared %s, its query returns %s", f.Name, declared, described[i].Type)
		}
		d.def.Columns[i] = Column{Name: f.Name, Type: declared, ID: i + 1}
	}
	return nil
}

// register hands the definition to the transaction.
func (d *definer) register() {
	reg := &Registration{Definition: d.def, KeepsData: d.keeps}
	if d.found != nil {
		reg.Names = d.found.Names
	}
	d.p.Attachment = reg
}

// schemaJSON is the Iceberg schema of columns, without an id.
func schemaJSON(columns []Column) (json.RawMessage, error) {
	fields := make([]field, len(columns))
	for i, c := range columns {
		t, err := typeJSON(c.Type)
		if err != nil {
			return nil, fmt.Errorf("schema: %w", err)
		}
		fields[i] = field{ID: c.ID, Name: c.Name, Type: t}
	}
	return json.Marshal(map[string]any{"type": "struct", "schema-id": 0, "fields": fields})
}
