package mv

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"time"

	"github.com/catalogd/catalogd/catalog"
	"github.com/catalogd/catalogd/catalog/metadata"
	"github.com/catalogd/catalogd/mv/plan"
	"github.com/catalogd/catalogd/mv/sqltext"
)

// keepSnapshots is how many of its newest snapshots a storage table keeps.
const keepSnapshots = 100

// storedRelation is the engine's name of the rows that the storage table has already.
const storedRelation = "catalogd_stored"

// refresh makes one run from one reading of the catalog: detect, plan, execute, publish.
func (r *Refresher) refresh(ctx context.Context, state State, run *Refresh) error {
	clock := r.now()
	lap := func(phase string) {
		run.Phases[phase] += r.now().Sub(clock)
		clock = r.now()
	}
	s, err := r.situation(ctx, state, run.ViewUUID)
	if err != nil {
		return err
	}
	run.Generation = s.view.Generation
	base, agree, err := s.base()
	if err != nil {
		return err
	}
	if !agree {
		return catalog.Errorf(catalog.KindUnavailable, "the inputs of %s reflect different moments of one table: waiting for the one that lags", s.view.Definition.Ident)
	}
	d, err := r.decide(ctx, s)
	if err != nil {
		return err
	}
	lap("detect")
	w, err := r.work(ctx, s, &d)
	if err != nil {
		return err
	}
	run.Strategy, run.Reason, run.Buckets, run.BucketsTotal = string(d.Strategy), d.Reason, w.buckets, w.bucketsTotal
	lap("plan")
	if d.Strategy != plan.None {
		if err := r.compute(ctx, run, w); err != nil {
			return r.discard(ctx, nil, w, err)
		}
	}
	lap("execute")
	err = r.publish(ctx, s, run, w, base)
	lap("publish")
	return err
}

// work is a planned run.
type work struct {
	decision     decision
	document     []byte // of the storage table, with the columns that the run writes
	first        []json.RawMessage
	task         Task
	remove       *Stored
	output       string
	files        []OutputFile
	buckets      int64
	bucketsTotal int64
}

// work plans which files are read, what SQL is run, and which stored files go. A bucket
// refresh that would read most of the source becomes a full one.
func (r *Refresher) work(ctx context.Context, s *situation, d *decision) (*work, error) {
	w := &work{document: s.document}
	if d.Strategy == plan.None {
		w.decision = *d
		return w, nil
	}
	var inputs []Input
	for _, rel := range s.found.Relations {
		var restriction *Restriction
		if d.Strategy == plan.Buckets && rel == d.bucket.relation {
			restriction = &Restriction{FieldID: d.bucket.fieldID, Set: d.Buckets}
		}
		p, err := r.sources.Plan(ctx, rel.Document, rel.Row.SnapshotID, restriction)
		if err != nil {
			return nil, err
		}
		if restriction != nil && !plan.WorthIt(p.Bytes, p.TotalBytes) {
			d.Decision = plan.Decision{Strategy: plan.Full, Reason: plan.ReasonMostlyChanged}
			return r.work(ctx, s, d)
		}
		// The head is read with the table's current schema, as every engine does: a column may
		// have been renamed since the snapshot was made.
		inputs = append(inputs, Input{
			Relation: Relation{Name: rel.Name, Schema: rel.Table.CurrentSchema()}, Files: p.Files, NameMapping: p.NameMapping,
		})
	}
	w.decision = *d
	def := s.view.Definition
	updates, table, err := s.schemaUpdates(metadata.ApplyContext{Now: r.now()})
	if err != nil {
		return nil, err
	}
	if len(updates) > 0 {
		w.first, w.document = updates, table.Bytes()
	}
	w.task = Task{
		TimeZone: def.TimeZone, Inputs: inputs, Columns: def.Columns, Limits: r.limits,
	}
	if w.task.Partition, err = partitionExprs(table, def.Columns); err != nil {
		return nil, err
	}
	w.output = strings.TrimRight(s.table.Location(), "/") + "/data/"
	if d.Strategy == plan.Buckets {
		return w, r.replaceBuckets(ctx, s, w)
	}
	w.task.SQL, err = s.found.runnable(nil)
	return w, err
}

// replaceBuckets completes the plan of a bucket refresh: the query restricted to the
// touched buckets, together with the rows of other buckets in the files that they share.
func (r *Refresher) replaceBuckets(ctx context.Context, s *situation, w *work) error {
	b, def := w.decision.bucket, s.view.Definition
	source, ok := w.decision.Buckets.Predicate(b.column, b.sourceType)
	if !ok {
		return catalog.Errorf(catalog.KindInternal, "a bucket of %s has no literal", def.Ident)
	}
	query, err := s.found.runnable(&restricted{ref: b.ref, predicate: source})
	if err != nil {
		return err
	}
	stored, ok := b.storedSet(w.decision.Buckets)
	if !ok {
		return catalog.Errorf(catalog.KindInternal, "a bucket of %s has no stored value", def.Ident)
	}
	out := def.Columns[b.output]
	keep, ok := stored.Not(out.Name, out.Type)
	if !ok {
		return catalog.Errorf(catalog.KindInternal, "a bucket of %s has no literal", def.Ident)
	}
	old, err := r.publisher.Stored(ctx, s.document, &Restriction{FieldID: out.ID, Set: b.unitsOf(stored)})
	if err != nil {
		return err
	}
	w.remove = &old
	w.task.SQL = query
	if len(old.Files) > 0 {
		w.task.Inputs = append(w.task.Inputs, Input{
			Relation: Relation{Name: storedRelation, Schema: s.table.CurrentSchema()}, Files: old.Files,
		})
		w.task.SQL = unionStored(query, def.Columns, keep)
	}
	w.buckets, w.bucketsTotal = b.count(w.decision.Buckets), 0
	return nil
}

// unionStored adds the stored rows that stay. The query's columns take the declared types
// first, so that the union cannot change a value.
func unionStored(query string, columns []Column, keep string) string {
	names, casts := make([]string, len(columns)), make([]string, len(columns))
	for i, c := range columns {
		names[i] = sqltext.Quote(sqltext.DuckDB, c.Name)
		casts[i] = names[i]
		if t, ok := duckType(c.Type); ok {
			casts[i] = fmt.Sprintf("CAST(%s AS %s) AS %s", names[i], t, names[i])
		}
	}
	list := strings.Join(names, ", ")
	return fmt.Sprintf("SELECT %s FROM (%s\n) AS q (%s)\nUNION ALL\nSELECT %s FROM %s WHERE %s",
		strings.Join(casts, ", "), query, list, list, storedRelation, keep)
}

// duckType is DuckDB's name of a primitive Iceberg type.
func duckType(t string) (string, bool) {
	switch t {
	case "boolean":
		return "BOOLEAN", true
	case "int":
		return "INTEGER", true
	case "long":
		return "BIGINT", true
	case "float":
		return "FLOAT", true
	case "double":
		return "DOUBLE", true
	case "date":
		return "DATE", true
	case "time":
		return "TIME", true
	case "timestamp":
		return "TIMESTAMP", true
	case "timestamptz":
		return "TIMESTAMPTZ", true
	case "timestamp_ns":
		return "TIMESTAMP_NS", true
	case "string":
		return "VARCHAR", true
	case "uuid":
		return "UUID", true
	case "binary":
		return "BLOB", true
	}
	if strings.HasPrefix(t, "decimal") {
		return strings.ToUpper(t), true
	}
	return "", false
}

// compute runs the task and reports progress on the way.
func (r *Refresher) compute(ctx context.Context, run *Refresh, w *work) error {
	w.output += run.ID
	w.task.RefreshID, w.task.Output = run.ID, w.output
	var last time.Time
	result, err := r.engine.Run(ctx, w.task, func(p Progress) {
		run.Percent = p.Percent
		if now := r.now(); now.Sub(last) >= time.Second {
			last = now
			if err := r.registry.Report(ctx, run.ID, p.Percent); err != nil {
				r.log.WarnContext(ctx, "progress was not recorded", slog.String("refresh_id", run.ID), slog.Any("error", err))
			}
		}
	})
	if err != nil {
		return engineError{err}
	}
	w.files = result.Files
	run.Rows, run.BytesRead, run.CPUSeconds = result.Rows, result.BytesRead, result.CPU
	run.BytesWritten = 0
	for _, f := range result.Files {
		run.BytesWritten += f.Bytes
	}
	return nil
}

// publish commits one snapshot with the new rows and what they reflect.
func (r *Refresher) publish(ctx context.Context, s *situation, run *Refresh, w *work, base map[string]int64) error {
	def := s.view.Definition
	run.Mode, run.Action = "incremental", "refreshed"
	if w.decision.Strategy == plan.Full {
		run.Mode = "full"
	}
	if w.decision.Strategy == plan.None {
		run.Action = "unchanged"
	}
	state := s.newState()
	if w.decision.Strategy == plan.None && s.recorded != nil && s.recorded.reflects(state) {
		run.SnapshotID = s.storage.SnapshotID
		return nil // the storage says so already
	}
	summary, err := s.newSummary(state, base, run, r.engine.Name())
	if err != nil {
		return err
	}
	p := Publication{
		Document: w.document, Head: s.storage.SnapshotID, All: w.decision.Strategy == plan.Full, Remove: w.remove,
		Add: w.files, Summary: summary, Keep: keepSnapshots, Leased: s.leased(),
	}
	stage := r.publisher.Replace
	if w.decision.Strategy == plan.None {
		stage = r.publisher.NoData
	}
	staged, err := stage(ctx, p)
	if err != nil {
		return r.discard(ctx, nil, w, err)
	}
	// From here on the commit decides: a client that is gone must not leave it undecided.
	_, err = r.catalog.CommitTable(context.WithoutCancel(ctx), def.Warehouse, def.Storage, catalog.CommitRequest{
		Requirements: staged.Requirements, Updates: append(append([]json.RawMessage{}, w.first...), staged.Updates...), Internal: true,
	})
	if err != nil {
		return r.discard(ctx, staged.Written, w, err)
	}
	run.SnapshotID = staged.SnapshotID
	return nil
}

// reflects reports whether two states say the same but for when.
func (r *RefreshState) reflects(o RefreshState) bool {
	if r.ViewVersionID != o.ViewVersionID || len(r.Sources) != len(o.Sources) || !maps.Equal(r.Schemas, o.Schemas) {
		return false
	}
	for _, s := range o.Sources {
		switch s.Type {
		case "table":
			if !r.knows(s.UUID) || r.snapshotOf(s.UUID) != s.SnapshotID {
				return false
			}
		default:
			if !r.hasView(s.UUID, s.VersionID) {
				return false
			}
		}
	}
	return true
}

func (s *situation) newSummary(state RefreshState, base map[string]int64, run *Refresh, engine string) (map[string]string, error) {
	summary, err := EncodeRefreshState(state, StateOptions{Older: true})
	if err != nil {
		return nil, fmt.Errorf("refresh state: %w", err)
	}
	if summary[KeyBase], err = EncodeBase(base); err != nil {
		return nil, fmt.Errorf("refresh state: %w", err)
	}
	maps.Copy(summary, map[string]string{
		KeyViewUUID: s.view.Definition.ViewUUID, KeyRefreshID: run.ID, KeyMode: run.Mode, KeyStrategy: run.Strategy,
		KeyReason: run.Reason, KeyEngine: engine, KeyTimeZone: s.view.Definition.TimeZone,
	})
	return summary, nil
}

// ownSummary is the part of a summary that says what a snapshot reflects: it is carried
// to a later snapshot with the same rows.
func ownSummary(summary map[string]string) map[string]string {
	out := map[string]string{}
	for k, v := range summary {
		if strings.HasPrefix(k, "catalogd.") || k == KeyRefreshState || k == KeySourceTables || k == KeySourceViews {
			out[k] = v
		}
	}
	return out
}

func (s *situation) leased() []int64 {
	var out []int64
	for id := range s.state.Leased[s.storage.UUID] {
		out = append(out, id)
	}
	return out
}

// discard removes what a run wrote for nothing. After an unknown outcome nothing is
// removed: the snapshot may be live, and the next run finds out.
func (r *Refresher) discard(ctx context.Context, written []string, w *work, err error) error {
	if catalog.KindOf(err) == catalog.KindCommitStateUnknown {
		return err
	}
	folder := ""
	if w.task.RefreshID != "" {
		folder = w.output
	}
	if rmErr := r.publisher.Discard(context.WithoutCancel(ctx), written, folder); rmErr != nil {
		r.log.WarnContext(ctx, "files of a failed refresh were left behind", slog.String("folder", folder), slog.Any("error", rmErr))
	}
	return err
}

// partitionExprs reads a storage table's partitioning for the engine.
func partitionExprs(t *metadata.Table, columns []Column) ([]PartitionExpr, error) {
	var spec struct {
		Fields []struct {
			SourceID  int    `json:"source-id"`
			FieldID   int    `json:"field-id"`
			Transform string `json:"transform"`
		} `json:"fields"`
	}
	if err := json.Unmarshal(t.DefaultSpec(), &spec); err != nil {
		return nil, catalog.Errorf(catalog.KindUnprocessable, "the storage table's partitioning cannot be read").Because(err)
	}
	var out []PartitionExpr
	for _, f := range spec.Fields {
		name := ""
		for _, c := range columns {
			if c.ID == f.SourceID {
				name = c.Name
			}
		}
		if name == "" {
			return nil, catalog.Errorf(catalog.KindUnprocessable, "the storage table is partitioned by field %d, which is no column of the view", f.SourceID)
		}
		out = append(out, PartitionExpr{FieldID: f.FieldID, Column: name, Transform: f.Transform})
	}
	return out, nil
}
