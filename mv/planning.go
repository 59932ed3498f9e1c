package mv

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/catalogd/catalogd/catalog"
	"github.com/catalogd/catalogd/catalog/metadata"
	"github.com/catalogd/catalogd/mv/plan"
	"github.com/catalogd/catalogd/mv/sqltext"
)

// pinned looks names up in one [State]. A name that the state was not read for is an
// error that makes the run start over with it.
type pinned struct {
	state State
	view  ViewState
	docs  Catalog
}

func (p pinned) object(_ context.Context, k Key) (catalog.Pointer, bool, error) {
	row, ok := p.state.Objects[k]
	return row, ok, nil
}

func (p pinned) Document(ctx context.Context, row catalog.Pointer) ([]byte, error) {
	return p.docs.Document(ctx, row)
}

// situation is everything that a run is planned from: one moment of the catalog.
type situation struct {
	state    State
	view     ViewState
	found    *analysis
	storage  catalog.Pointer
	document []byte          // of the storage table
	table    *metadata.Table // the same, parsed
	recorded *RefreshState   // what the storage reflects; nil: unknown or nothing
	summary  map[string]string
	version  int // current view version
}

func (r *Refresher) situation(ctx context.Context, state State, viewUUID string) (*situation, error) {
	v := state.Views[viewUUID]
	d := v.Definition
	s := &situation{state: state, view: v}
	self := KeyOf(d.Warehouse, d.Ident)
	own, ok := state.Objects[self]
	if !ok {
		return nil, catalog.Errorf(catalog.KindNoSuchView, "View does not exist: %s", d.Ident)
	}
	s.version = own.ViewVersionID
	if s.storage, ok = state.Objects[KeyOf(d.Warehouse, d.Storage)]; !ok || s.storage.UUID != d.StorageUUID {
		return nil, catalog.Errorf(catalog.KindNoSuchTable, "the storage table %s of %s does not exist", d.Storage, d.Ident)
	}
	var err error
	t := text{Dialect: d.Dialect, SQL: d.SQL, DefaultNS: d.DefaultNS, Catalog: d.DefaultCat, Zone: d.TimeZone}
	if s.found, err = analyse(ctx, pinned{state: state, view: v, docs: r.catalog}, d.Warehouse, self, t); err != nil {
		return nil, sourceGone(err)
	}
	if missing := notIn(s.found.Names, v.Names); missing {
		return nil, &unregistered{names: s.found.Names}
	}
	if s.document, err = r.catalog.Document(ctx, s.storage); err != nil {
		return nil, err
	}
	if s.table, err = metadata.ParseTable(s.document); err != nil {
		return nil, catalog.Errorf(catalog.KindInternal, "metadata of %s cannot be read", d.Storage).Because(err)
	}
	if s.summary = RecordedSummary(s.table); s.summary != nil {
		if rec, err := DecodeRefreshState(s.summary); err == nil {
			s.recorded = &rec
		}
	}
	return s, nil
}

// sourceGone names the reason of a query that could be analysed once and no longer can.
func sourceGone(err error) error {
	if catalog.KindOf(err) == catalog.KindInvalid {
		return catalog.Errorf(catalog.KindNoSuchTable, "the query cannot be run any more: %s", message(err)).Because(err)
	}
	return err
}

func notIn(wanted, have []Key) bool {
	known := make(map[Key]bool, len(have))
	for _, k := range have {
		known[k] = true
	}
	for _, k := range wanted {
		if !known[k] {
			return true
		}
	}
	return false
}

// decision is what a run does.
type decision struct {
	plan.Decision
	bucket *bucketing // of the buckets strategy
}

// decide compares what the storage reflects with the pinned heads.
func (r *Refresher) decide(ctx context.Context, s *situation) (decision, error) {
	in := plan.Input{Full: s.mustRebuild()}
	b, notClosed := bucketOf(s.found, s.view.Definition)
	in.NotClosed = notClosed
	if in.Full != "" {
		return decision{Decision: plan.Choose(in)}, nil
	}
	for _, rel := range s.found.Relations {
		from := s.recorded.snapshotOf(rel.Row.UUID)
		fieldID := 0
		driving := b != nil && b.relation == rel
		if driving {
			fieldID = b.fieldID
		}
		touched, err := r.sources.Between(ctx, rel.Document, from, rel.Row.SnapshotID, fieldID)
		if err != nil {
			return decision{}, err
		}
		if touched.None && touched.OnlyReplace {
			if err := r.registry.LogUnchanged(ctx, rel.Row.UUID, touched.Snapshots); err != nil {
				return decision{}, err
			}
		}
		c := plan.Change{Source: rel.Source.String(), None: touched.None, Everything: touched.Everything, Reason: touched.Reason, Driving: driving}
		if driving && !touched.None && !touched.Everything {
			set, ok := b.cover(touched)
			if !ok {
				c.Everything, c.Reason = true, "BUCKET_RANGE"
			}
			c.Buckets = set
		}
		in.Changes = append(in.Changes, c)
	}
	return decision{Decision: plan.Choose(in), bucket: b}, nil
}

// mustRebuild returns the reason why nothing that is stored can be kept, empty if it can.
func (s *situation) mustRebuild() string {
	d := s.view.Definition
	_, full := s.view.manual()
	switch {
	case s.storage.SnapshotID == NoSnapshot:
		return "FIRST_REFRESH"
	case s.recorded == nil:
		return string(ReasonNoState)
	case full:
		return "REQUESTED"
	case s.recorded.ViewVersionID != s.version:
		return string(ReasonDefinition)
	case s.summary[KeyTimeZone] != d.TimeZone:
		return "TIME_ZONE"
	case !s.storageFits():
		return "STORAGE_SCHEMA"
	}
	if n := s.found.Query.Nondeterministic(); len(n) > 0 {
		return string(sqltext.CodeNondeterministic)
	}
	for _, rel := range s.found.Relations {
		if !s.recorded.knows(rel.Row.UUID) {
			return string(ReasonSourceRecreated)
		}
		if schema, ok := s.recorded.Schemas[rel.Row.UUID]; !ok || schema != rel.Row.SchemaID {
			return string(ReasonSourceSchema)
		}
	}
	for _, v := range s.found.Views {
		if !s.recorded.hasView(v.UUID, v.ViewVersionID) {
			return string(ReasonSourceView)
		}
	}
	return ""
}

// storageFits reports whether the storage table has the columns of the definition.
func (s *situation) storageFits() bool {
	fields, err := schemaFields(s.table.CurrentSchema())
	if err != nil || len(fields) != len(s.view.Definition.Columns) {
		return false
	}
	for i, f := range fields {
		c := s.view.Definition.Columns[i]
		if f.ID != c.ID || f.Name != c.Name || !sameType(typeText(f.Type), c.Type) {
			return false
		}
	}
	return true
}

func (r *RefreshState) snapshotOf(tableUUID string) int64 {
	for _, s := range r.Sources {
		if s.Type == "table" && s.UUID == tableUUID {
			return s.SnapshotID
		}
	}
	return NoSnapshot
}

func (r *RefreshState) knows(tableUUID string) bool {
	for _, s := range r.Sources {
		if s.Type == "table" && s.UUID == tableUUID {
			return true
		}
	}
	return false
}

func (r *RefreshState) hasView(viewUUID string, version int) bool {
	for _, s := range r.Sources {
		if s.Type == "view" && s.UUID == viewUUID && s.VersionID == version {
			return true
		}
	}
	return false
}

// state is what the storage reflects once the run is published.
func (s *situation) newState() RefreshState {
	st := RefreshState{ViewVersionID: s.version, StartTimestamp: s.state.At.UnixMilli(), Schemas: map[string]int{}}
	for _, rel := range s.found.Relations {
		st.Sources = append(st.Sources, SourceState{
			Type: "table", Namespace: rel.Source.Namespace, Name: rel.Source.Name, UUID: rel.Row.UUID, SnapshotID: rel.Row.SnapshotID,
		})
		st.Schemas[rel.Row.UUID] = rel.Row.SchemaID
	}
	for _, v := range s.found.Views {
		st.Sources = append(st.Sources, SourceState{
			Type: "view", Namespace: v.Ident.Namespace, Name: v.Ident.Name, UUID: v.UUID, VersionID: v.ViewVersionID,
		})
	}
	return st
}

// base is the snapshots of base tables behind the new state, through all materialized
// views. Two inputs that reflect different snapshots of one base table cannot be mixed:
// then ok is false, and the run has to wait for the one that lags.
func (s *situation) base() (vector map[string]int64, ok bool, err error) {
	vector, ok = map[string]int64{}, true
	add := func(uuid string, snapshot int64) {
		if have, known := vector[uuid]; known && have != snapshot {
			ok = false
		}
		vector[uuid] = snapshot
	}
	for _, rel := range s.found.Relations {
		if rel.Row.StorageOf == "" {
			add(rel.Row.UUID, rel.Row.SnapshotID)
			continue
		}
		below, err := DecodeBase(RecordedSummary(rel.Table)[KeyBase])
		if err != nil {
			return nil, false, fmt.Errorf("base of %s: %w", rel.Source, err)
		}
		for uuid, snapshot := range below {
			add(uuid, snapshot)
		}
	}
	return vector, ok, nil
}

// schemaUpdates are the updates that give the storage table the columns and partitioning
// of a definition that has changed, with the table as it is after them.
func (s *situation) schemaUpdates(now metadata.ApplyContext) ([]json.RawMessage, *metadata.Table, error) {
	if s.storageFits() {
		return nil, s.table, nil
	}
	schema, err := schemaJSON(s.view.Definition.Columns)
	if err != nil {
		return nil, nil, err
	}
	spec := json.RawMessage(`{"spec-id":0,"fields":[]}`)
	if b, reason := bucketOf(s.found, s.view.Definition); reason == "" {
		p, err := plan.ParsePartition([]string{b.partition()}, columnNames(s.view.Definition.Columns))
		if err != nil {
			return nil, nil, fmt.Errorf("storage partitioning: %w", err)
		}
		fresh, err := p.JSON(ids(s.view.Definition.Columns))
		if err != nil {
			return nil, nil, fmt.Errorf("storage partitioning: %w", err)
		}
		if fresh != nil {
			spec = withoutFieldIDs(fresh)
		}
	}
	var updates []json.RawMessage
	for _, u := range []map[string]any{
		{"action": "add-spec", "spec": json.RawMessage(`{"spec-id":0,"fields":[]}`)},
		{"action": "set-default-spec", "spec-id": -1},
		{"action": "add-schema", "schema": schema},
		{"action": "set-current-schema", "schema-id": -1},
		{"action": "add-spec", "spec": spec},
		{"action": "set-default-spec", "spec-id": -1},
	} {
		raw, err := json.Marshal(u)
		if err != nil {
			return nil, nil, fmt.Errorf("storage schema: %w", err)
		}
		updates = append(updates, raw)
	}
	next := s.table.Clone()
	if err := next.Apply(updates, now); err != nil {
		return nil, nil, fmt.Errorf("storage schema: %w", err)
	}
	return updates, next, nil
}

// withoutFieldIDs leaves the choice of partition field ids to the table: ids of fields
// that it had before must not come back with another meaning.
func withoutFieldIDs(spec json.RawMessage) json.RawMessage {
	var s struct {
		ID     int                          `json:"spec-id"`
		Fields []map[string]json.RawMessage `json:"fields"`
	}
	if json.Unmarshal(spec, &s) != nil {
		return spec
	}
	for _, f := range s.Fields {
		delete(f, "field-id")
	}
	out, err := json.Marshal(s)
	if err != nil {
		return spec
	}
	return out
}
