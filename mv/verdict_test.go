package mv_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/catalogd/catalogd/catalog"
	"github.com/catalogd/catalogd/catalog/metadata"
	"github.com/catalogd/catalogd/mv"
)

// world builds states for [mv.Judge]: tables with histories, and views over them.
type world struct {
	t     *testing.T
	state mv.State
	docs  mv.Documents
	n     int
}

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func newWorld(t *testing.T) *world {
	t.Helper()
	return &world{t: t, docs: mv.Documents{}, state: mv.State{
		At: noon, Views: map[string]mv.ViewState{}, Objects: map[mv.Key]catalog.Pointer{}, Unchanged: map[string]map[int64]bool{},
	}}
}

func ident(name string) catalog.TableIdent {
	return catalog.TableIdent{Namespace: catalog.Namespace{"ns"}, Name: name}
}

func (w *world) uuid() string {
	w.n++
	return fmt.Sprintf("00000000-0000-4000-8000-%012d", w.n)
}

type snap struct {
	id, parent int64
	op         string
	summary    map[string]string
}

// table puts a table with a history into the world; the last snapshot is the head.
func (w *world) table(name, uuid string, history ...snap) catalog.Pointer {
	w.t.Helper()
	doc, err := metadata.NewTable(metadata.NewTableRequest{
		UUID: uuid, Location: "file:///w/" + name, Now: noon.Add(-time.Hour),
		Schema: json.RawMessage(`{"type":"struct","fields":[{"id":1,"name":"a","type":"long","required":false}]}`),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	var updates []json.RawMessage
	add := func(u map[string]any) {
		raw, err := json.Marshal(u)
		if err != nil {
			w.t.Fatal(err)
		}
		updates = append(updates, raw)
	}
	head := mv.NoSnapshot
	for i, s := range history {
		summary := map[string]string{"operation": s.op}
		maps.Copy(summary, s.summary)
		snapshot := map[string]any{
			"snapshot-id": s.id, "sequence-number": i + 1, "timestamp-ms": noon.Add(time.Duration(i) * time.Second).UnixMilli(),
			"manifest-list": "file:///m", "summary": summary, "schema-id": 0,
		}
		if s.parent != 0 {
			snapshot["parent-snapshot-id"] = s.parent
		}
		add(map[string]any{"action": "add-snapshot", "snapshot": snapshot})
		head = s.id
	}
	if head != mv.NoSnapshot {
		add(map[string]any{"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": head})
	}
	if err := doc.Apply(updates, metadata.ApplyContext{Now: noon}); err != nil {
		w.t.Fatal(err)
	}
	row := catalog.Pointer{
		Warehouse: "w", Ident: ident(name), Type: catalog.TypeTable, UUID: uuid, SnapshotID: head,
		MetadataLocation: "m-" + name + strconv.Itoa(w.n) + strconv.Itoa(len(history)),
	}
	w.docs[row.MetadataLocation] = doc.Bytes()
	w.state.Objects[mv.KeyOf("w", row.Ident)] = row
	return row
}

// reflects is the summary of a storage snapshot.
func (w *world) reflects(st mv.RefreshState) map[string]string {
	w.t.Helper()
	summary, err := mv.EncodeRefreshState(st, mv.StateOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return summary
}

// view puts a materialized view over sources into the world.
func (w *world) view(name string, version int, stale mv.Staleness, staleSince time.Time, sources ...mv.Source) string {
	uuid := w.uuid()
	storage := w.state.Objects[mv.KeyOf("w", ident(name+"__storage"))]
	w.state.Views[uuid] = mv.ViewState{StaleSince: staleSince, Definition: mv.Definition{
		ViewUUID: uuid, Warehouse: "w", Ident: ident(name), VersionID: version, Storage: ident(name + "__storage"),
		StorageUUID: storage.UUID, MaxStaleness: stale, Sources: sources, Mode: mv.Managed,
	}}
	w.state.Objects[mv.KeyOf("w", ident(name))] = catalog.Pointer{
		Warehouse: "w", Ident: ident(name), Type: catalog.TypeView, UUID: uuid, ViewVersionID: version, IsMaterialized: true,
	}
	return uuid
}

func tableState(row catalog.Pointer, snapshot int64) mv.RefreshState {
	return mv.RefreshState{
		ViewVersionID: 1, Schemas: map[string]int{row.UUID: row.SchemaID},
		Sources: []mv.SourceState{{Type: "table", Namespace: row.Ident.Namespace, Name: row.Ident.Name, UUID: row.UUID, SnapshotID: snapshot}},
	}
}

// exact allows no staleness.
var exact = mv.Staleness{}

func TestJudge(t *testing.T) {
	t.Parallel()
	history := []snap{{id: 10, op: "append"}, {id: 5, parent: 10, op: "append"}, {id: 20, parent: 5, op: "append"}}
	compacted := slices.Concat(history, []snap{{id: 30, parent: 20, op: "replace"}})
	source := func(row catalog.Pointer) mv.Source {
		return mv.Source{Kind: mv.SourceTable, Ident: row.Ident, UUID: row.UUID}
	}
	tests := []struct {
		name string
		// build returns the view to judge.
		build    func(*world) string
		status   mv.Status
		upToDate bool
		reason   mv.Reason
		behind   []int64
	}{
		{
			name: "current", status: mv.StatusFresh, upToDate: true, reason: mv.ReasonUpToDate,
			build: func(w *world) string {
				src := w.table("src", w.uuid(), history...)
				w.table("v__storage", w.uuid(), snap{id: 1, op: "overwrite", summary: w.reflects(tableState(src, 20))})
				return w.view("v", 1, exact, time.Time{}, source(src))
			},
		},
		{
			name: "never refreshed", status: mv.StatusNeverRefreshed, reason: mv.ReasonNeverRefreshed,
			build: func(w *world) string {
				src := w.table("src", w.uuid(), history...)
				w.table("v__storage", w.uuid())
				return w.view("v", 1, exact, noon, source(src))
			},
		},
		{
			name: "behind, ids in no order", status: mv.StatusStale, reason: mv.ReasonSourceChanged, behind: []int64{5, 20},
			build: func(w *world) string {
				src := w.table("src", w.uuid(), history...)
				w.table("v__storage", w.uuid(), snap{id: 1, op: "overwrite", summary: w.reflects(tableState(src, 10))})
				return w.view("v", 1, exact, noon.Add(-time.Second), source(src))
			},
		},
		{
			name: "within max staleness", status: mv.StatusFresh, reason: mv.ReasonWithinStaleness, behind: []int64{20},
			build: func(w *world) string {
				src := w.table("src", w.uuid(), history...)
				w.table("v__storage", w.uuid(), snap{id: 1, op: "overwrite", summary: w.reflects(tableState(src, 5))})
				return w.view("v", 1, mv.Staleness{Max: time.Minute}, noon.Add(-59*time.Second), source(src))
			},
		},
		{
			name: "beyond max staleness", status: mv.StatusStale, reason: mv.ReasonSourceChanged, behind: []int64{20},
			build: func(w *world) string {
				src := w.table("src", w.uuid(), history...)
				w.table("v__storage", w.uuid(), snap{id: 1, op: "overwrite", summary: w.reflects(tableState(src, 5))})
				return w.view("v", 1, mv.Staleness{Max: time.Minute}, noon.Add(-time.Minute), source(src))
			},
		},
		{
			name: "any age", status: mv.StatusFresh, reason: mv.ReasonWithinStaleness, behind: []int64{20},
			build: func(w *world) string {
				src := w.table("src", w.uuid(), history...)
				w.table("v__storage", w.uuid(), snap{id: 1, op: "overwrite", summary: w.reflects(tableState(src, 5))})
				return w.view("v", 1, mv.Staleness{Unbounded: true}, noon.Add(-1000*time.Hour), source(src))
			},
		},
		{
			name: "definition changed counts before age", status: mv.StatusInvalid, reason: mv.ReasonDefinition,
			build: func(w *world) string {
				src := w.table("src", w.uuid(), history...)
				w.table("v__storage", w.uuid(), snap{id: 1, op: "overwrite", summary: w.reflects(tableState(src, 20))})
				return w.view("v", 2, mv.Staleness{Unbounded: true}, noon, source(src))
			},
		},
		{
			name: "rolled back is never up to date by luck", status: mv.StatusStale, reason: mv.ReasonSourceRolled,
			build: func(w *world) string {
				src := w.table("src", w.uuid(), history...)
				w.table("v__storage", w.uuid(), snap{id: 1, op: "overwrite", summary: w.reflects(tableState(src, 99))})
				return w.view("v", 1, exact, noon, source(src))
			},
		},
		{
			name: "recreated under the same name", status: mv.StatusStale, reason: mv.ReasonSourceRecreated,
			build: func(w *world) string {
				old := w.table("src", w.uuid(), history...)
				w.table("v__storage", w.uuid(), snap{id: 1, op: "overwrite", summary: w.reflects(tableState(old, 20))})
				src := w.table("src", w.uuid(), history...) // even with the same snapshot id
				return w.view("v", 1, exact, noon, source(src))
			},
		},
		{
			name: "source dropped", status: mv.StatusInvalid, reason: mv.ReasonSourceMissing,
			build: func(w *world) string {
				src := w.table("src", w.uuid(), history...)
				w.table("v__storage", w.uuid(), snap{id: 1, op: "overwrite", summary: w.reflects(tableState(src, 20))})
				delete(w.state.Objects, mv.KeyOf("w", src.Ident))
				return w.view("v", 1, mv.Staleness{Unbounded: true}, noon, source(src))
			},
		},
		{
			name: "schema changed without a snapshot", status: mv.StatusStale, reason: mv.ReasonSourceSchema,
			build: func(w *world) string {
				src := w.table("src", w.uuid(), history...)
				w.table("v__storage", w.uuid(), snap{id: 1, op: "overwrite", summary: w.reflects(tableState(src, 20))})
				src.SchemaID = 1
				w.state.Objects[mv.KeyOf("w", src.Ident)] = src
				return w.view("v", 1, exact, noon, source(src))
			},
		},
		{
			name: "a compaction that nothing proves harmless", status: mv.StatusStale, reason: mv.ReasonSourceChanged, behind: []int64{30},
			build: func(w *world) string {
				src := w.table("src", w.uuid(), compacted...)
				w.table("v__storage", w.uuid(), snap{id: 1, op: "overwrite", summary: w.reflects(tableState(src, 20))})
				return w.view("v", 1, exact, noon, source(src))
			},
		},
		{
			name: "a compaction that the change log proves harmless", status: mv.StatusFresh, upToDate: true, reason: mv.ReasonOnlyCompaction,
			build: func(w *world) string {
				src := w.table("src", w.uuid(), compacted...)
				w.state.Unchanged[src.UUID] = map[int64]bool{30: true}
				w.table("v__storage", w.uuid(), snap{id: 1, op: "overwrite", summary: w.reflects(tableState(src, 20))})
				return w.view("v", 1, exact, noon, source(src))
			},
		},
		{
			name: "storage compacted by an engine", status: mv.StatusFresh, upToDate: true, reason: mv.ReasonUpToDate,
			build: func(w *world) string {
				src := w.table("src", w.uuid(), history...)
				w.table("v__storage", w.uuid(),
					snap{id: 1, op: "overwrite", summary: w.reflects(tableState(src, 20))}, snap{id: 2, parent: 1, op: "replace"})
				return w.view("v", 1, exact, time.Time{}, source(src))
			},
		},
		{
			name: "storage written by a stranger", status: mv.StatusUndetermined, reason: mv.ReasonNoState,
			build: func(w *world) string {
				src := w.table("src", w.uuid(), history...)
				w.table("v__storage", w.uuid(),
					snap{id: 1, op: "overwrite", summary: w.reflects(tableState(src, 20))}, snap{id: 2, parent: 1, op: "append"})
				return w.view("v", 1, exact, time.Time{}, source(src))
			},
		},
		{
			name: "a manifest of the source cannot be read", status: mv.StatusUndetermined, reason: mv.ReasonSourceUnreadable, behind: []int64{20},
			build: func(w *world) string {
				src := w.table("src", w.uuid(), history...)
				w.table("v__storage", w.uuid(), snap{id: 1, op: "overwrite", summary: w.reflects(tableState(src, 5))})
				uuid := w.view("v", 1, exact, noon, source(src))
				v := w.state.Views[uuid]
				v.LastRefresh = &mv.Refresh{Status: mv.RefreshFailed, Reason: string(mv.ReasonSourceUnreadable), Error: "cannot read m.avro"}
				w.state.Views[uuid] = v
				return uuid
			},
		},
		{
			name: "damaged state", status: mv.StatusUndetermined, reason: mv.ReasonUnreadable,
			build: func(w *world) string {
				src := w.table("src", w.uuid(), history...)
				w.table("v__storage", w.uuid(), snap{id: 1, op: "overwrite", summary: map[string]string{mv.KeyRefreshState: "{"}})
				return w.view("v", 1, exact, time.Time{}, source(src))
			},
		},
		{
			name: "storage in another catalog", status: mv.StatusUndetermined, reason: mv.ReasonForeignStorage,
			build: func(w *world) string {
				src := w.table("src", w.uuid(), history...)
				return w.view("v", 1, exact, time.Time{}, source(src)) // no storage table here
			},
		},
		{
			name: "empty source", status: mv.StatusFresh, upToDate: true, reason: mv.ReasonUpToDate,
			build: func(w *world) string {
				src := w.table("src", w.uuid())
				w.table("v__storage", w.uuid(), snap{id: 1, op: "overwrite", summary: w.reflects(tableState(src, mv.NoSnapshot))})
				return w.view("v", 1, exact, time.Time{}, source(src))
			},
		},
		{
			name: "first rows of an empty source", status: mv.StatusStale, reason: mv.ReasonSourceChanged, behind: []int64{10, 5, 20},
			build: func(w *world) string {
				src := w.table("src", w.uuid(), history...)
				w.table("v__storage", w.uuid(), snap{id: 1, op: "overwrite", summary: w.reflects(tableState(src, mv.NoSnapshot))})
				return w.view("v", 1, exact, noon, source(src))
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			got, recursive := mv.Judge(w.state, w.docs, tt.build(w))
			if got.Status != tt.status || got.UpToDate != tt.upToDate || got.Reason != tt.reason {
				t.Errorf("Judge = %s, up to date %v, %s (%s), want %s, %v, %s", got.Status, got.UpToDate, got.Reason, got.Detail, tt.status, tt.upToDate, tt.reason)
			}
			if recursive.Status != got.Status || recursive.UpToDate != got.UpToDate {
				t.Errorf("recursive = %s, %v without a view below", recursive.Status, recursive.UpToDate)
			}
			var behind []int64
			for _, b := range got.Behind {
				behind = append(behind, b.Snapshots...)
			}
			if fmt.Sprint(behind) != fmt.Sprint(tt.behind) {
				t.Errorf("behind %v, want %v", behind, tt.behind)
			}
			if got.UpToDate != got.StaleSince.IsZero() && got.Status == mv.StatusFresh {
				t.Errorf("up to date %v, stale since %v", got.UpToDate, got.StaleSince)
			}
		})
	}
}

// TestJudge_throughViews: a view is not up to date because its source's storage is
// unchanged, if that source itself is behind.
func TestJudge_throughViews(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	src := w.table("src", w.uuid(), snap{id: 10, op: "append"}, snap{id: 20, parent: 10, op: "append"})
	lower := w.table("lower__storage", w.uuid(), snap{id: 1, op: "overwrite", summary: w.reflects(tableState(src, 10))})
	since := noon.Add(-time.Minute)
	lowerUUID := w.view("lower", 1, exact, since, mv.Source{Kind: mv.SourceTable, Ident: src.Ident, UUID: src.UUID})
	st := tableState(lower, 1)
	st.Sources = append(st.Sources, mv.SourceState{Type: "view", Namespace: []string{"ns"}, Name: "lower", UUID: lowerUUID, VersionID: 1})
	w.table("upper__storage", w.uuid(), snap{id: 2, op: "overwrite", summary: w.reflects(st)})
	upper := w.view("upper", 1, mv.Staleness{Max: 30 * time.Second}, time.Time{},
		mv.Source{Kind: mv.SourceMV, Ident: ident("lower"), UUID: lowerUUID, Storage: lower.Ident})

	direct, recursive := mv.Judge(w.state, w.docs, upper)
	if direct.Status != mv.StatusFresh || !direct.UpToDate {
		t.Errorf("direct = %s, %v (%s), want fresh and up to date", direct.Status, direct.UpToDate, direct.Reason)
	}
	if recursive.Status != mv.StatusStale || recursive.UpToDate || recursive.Reason != mv.ReasonSourceMVStale || !recursive.StaleSince.Equal(since) {
		t.Errorf("recursive = %s, %v, %s since %v, want stale, %s since %v", recursive.Status, recursive.UpToDate, recursive.Reason,
			recursive.StaleSince, mv.ReasonSourceMVStale, since)
	}
	if len(recursive.Behind) != 1 || !recursive.Behind[0].Source.Equal(src.Ident) {
		t.Errorf("recursive behind %v, want the base table", recursive.Behind)
	}
}
