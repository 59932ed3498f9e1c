package postgres_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/catalogd/catalogd/catalog"
	"github.com/catalogd/catalogd/mv"
	"github.com/catalogd/catalogd/mv/postgres"
)

func TestApplyChanges_unreadTableChangesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.tables("t", "other")
	id := w.freshView("v", "t")
	w.swap("other")
	w.want(id, false, 0)
}

func TestApplyChanges_everyKindOfChangeMarks(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(w *world) []catalog.Change{
		"swap":   func(w *world) []catalog.Change { return []catalog.Change{w.swapping("t")} },
		"create": func(w *world) []catalog.Change { return []catalog.Change{w.creation("absent", catalog.Pointer{})} },
		"drop": func(w *world) []catalog.Change {
			return []catalog.Change{{Op: catalog.OpDrop, Pointer: w.pointer("t")}}
		},
		"rename away": func(w *world) []catalog.Change {
			return []catalog.Change{{Op: catalog.OpRename, Pointer: w.pointer("t"), To: ident("elsewhere")}}
		},
		"rename to": func(w *world) []catalog.Change {
			return []catalog.Change{{Op: catalog.OpRename, Pointer: w.pointer("other"), To: ident("absent")}}
		},
		"several tables": func(w *world) []catalog.Change {
			return []catalog.Change{w.swapping("other"), w.swapping("t")}
		},
		"replace of a plain view": func(w *world) []catalog.Change { return []catalog.Change{w.swapping("plain")} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.tables("t", "other")
			w.commit(w.creation("plain", catalog.Pointer{Type: catalog.TypeView}))
			id := w.freshView("v", "t", "plain", "absent")
			w.commit(change(w)...)
			w.want(id, true, 1)
		})
	}
}

// Commits to tables that share a view must not queue up behind its row or its job: when
// it is stale and has a job, the hook only reads.
func TestApplyChanges_staleViewWithJobIsNotLocked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.tables("t0", "t1", "t2", "t3")
	id := w.freshView("v", "t0", "t1", "t2", "t3")
	w.swap("t0")
	w.want(id, true, 1)
	before := query[string](w, `SELECT xmin::text || ctid::text FROM materialized_view`)

	tx := w.begin()
	_, err := tx.Exec(t.Context(), `SELECT FROM materialized_view FOR UPDATE`)
	w.check(err)
	_, err = tx.Exec(t.Context(), `SELECT FROM river_job FOR UPDATE`)
	w.check(err)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	for _, name := range []string{"t0", "t1", "t2", "t3"} {
		if err := w.store.Commit(ctx, []catalog.Change{w.swapping(name)}); err != nil {
			t.Fatalf("a commit to %s waits for the view that it shares: %v", name, err)
		}
	}
	w.check(tx.Rollback(t.Context()))
	if after := query[string](w, `SELECT xmin::text || ctid::text FROM materialized_view`); after != before {
		t.Error("the registry row was written again")
	}
}

func TestApplyChanges_debounceStartsWithTheFirstCommit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.tables("t")
	id := w.freshView("v", "t")
	w.exec(`UPDATE materialized_view SET debounce_ms = 60000`)
	w.swap("t")
	first := query[time.Time](w, `SELECT not_before FROM materialized_view`)
	if ahead := query[float64](w, `SELECT extract(epoch FROM not_before - stale_since) FROM materialized_view`); ahead < 59 || ahead > 61 {
		t.Errorf("not before %.1f s after the commit, want 60", ahead)
	}
	w.exec(`DELETE FROM river_job`) // so that the next commit has something to write
	w.exec(`UPDATE materialized_view SET not_before = clock_timestamp() + interval '3 seconds'`)
	second := query[time.Time](w, `SELECT not_before FROM materialized_view`)
	w.swap("t")
	w.want(id, true, 1)
	if again := query[time.Time](w, `SELECT not_before FROM materialized_view`); !again.Equal(second) {
		t.Errorf("a second commit moved the time from %s to %s (first: %s)", second, again, first)
	}
}

func TestApplyChanges_suspendedAndExternalAreOnlyMarked(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]string{
		"suspended":         `suspended = true`,
		"external":          `refresh_mode = 'external'`,
		"storage elsewhere": `storage_uuid = NULL`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.tables("t")
			id := w.freshView("v", "t")
			w.exec(`UPDATE materialized_view SET ` + set)
			w.swap("t")
			w.want(id, true, 0)
			if got := w.overdue(); got != "" {
				t.Errorf("overdue = %q", got)
			}
		})
	}
}

func TestApplyChanges_dropUnregisters(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.tables("t")
	w.freshView("u", "t")
	d := w.freshView("d", "u", "u__storage")
	w.commit(catalog.Change{Op: catalog.OpDrop, Pointer: w.pointer("u")}, catalog.Change{Op: catalog.OpDrop, Pointer: w.pointer("u__storage")})
	_, err := w.reg.Named(t.Context(), warehouse, ident("u"))
	if catalog.KindOf(err) != catalog.KindNoSuchView {
		t.Errorf("Named = %v, want KindNoSuchView", err)
	}
	w.want(d, true, 1)
}

func TestApplyChanges_attachmentCanEndARegistration(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.tables("t")
	id := w.freshView("v", "t")
	d := w.freshView("d", "v", "v__storage")
	c := w.swapping("v")
	c.Attachment = &mv.Registration{Definition: mv.Definition{ViewUUID: id}, Remove: true}
	w.commit(c)
	if n := query[int](w, `SELECT count(*) FROM materialized_view WHERE view_uuid = $1`, id); n != 0 {
		t.Error("still registered")
	}
	w.want(d, true, 1)
}

func TestApplyChanges_renameFollowsViewAndStorage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.tables("t")
	id := w.freshView("v", "t")
	d := w.freshView("d", "v", "v__storage")
	w.commit(
		catalog.Change{Op: catalog.OpRename, Pointer: w.pointer("v"), To: ident("w")},
		catalog.Change{Op: catalog.OpRename, Pointer: w.pointer("v__storage"), To: ident("w__storage")},
	)
	s, err := w.reg.Named(t.Context(), warehouse, ident("w"))
	w.check(err)
	def := s.Views[id].Definition
	if def.ViewUUID != id || !def.Ident.Equal(ident("w")) || !def.Storage.Equal(ident("w__storage")) {
		t.Errorf("definition after the rename = %+v", def)
	}
	if _, ok := s.Objects[key("w__storage")]; !ok {
		t.Error("the state lacks the renamed storage table")
	}
	w.want(id, false, 0)
	w.want(d, true, 1) // its source is missing now
	ds, err := w.reg.State(t.Context(), d)
	w.check(err)
	if len(ds.Views) != 1 {
		t.Errorf("views below d = %d although its source has another name", len(ds.Views)-1)
	}
}

func TestApplyChanges_newDefinition(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		keeps   bool
		reads   []string
		run     bool // it needs one
		forgets bool // what held the old definition back is forgotten
	}{
		"another query":                       {false, []string{"u"}, true, true},
		"another query over the same sources": {false, []string{"t"}, true, true},
		"the same query in other words":       {true, []string{"t"}, false, false},
		// Nobody has watched u so far.
		"the same query with another name": {true, []string{"t", "u"}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.tables("t", "u")
			id := w.freshView("v", "t")
			w.exec(`UPDATE materialized_view SET failures = 3, last_error = 'old', permanent_inputs = 'x'`)
			change := w.swapping("v")
			reg := w.registration(id, "v", w.pointer("v__storage").UUID, c.reads)
			reg.KeepsData, reg.Definition.MaxStaleness.Max = c.keeps, time.Minute
			change.Attachment = reg
			w.commit(change)
			s, err := w.reg.State(t.Context(), id)
			w.check(err)
			v := s.Views[id]
			var want []mv.Key
			for _, n := range c.reads {
				want = append(want, key(n))
			}
			if !slices.Equal(v.Names, want) || v.Definition.MaxStaleness.Max != time.Minute {
				t.Errorf("names = %v, max staleness = %v", v.Names, v.Definition.MaxStaleness)
			}
			live := 0
			if c.run {
				live = 1
			}
			w.want(id, c.run, live)
			if forgot := v.Failures == 0 && v.LastError == "" && v.PermanentInputs == ""; forgot != c.forgets {
				t.Errorf("failures = %d, last error = %q, permanent inputs = %q", v.Failures, v.LastError, v.PermanentInputs)
			}
		})
	}
}

// A suspension by failures was about the old definition; one by hand is not.
func TestApplyChanges_newDefinitionEndsSuspensionByFailures(t *testing.T) {
	t.Parallel()
	for failures, suspended := range map[int]bool{5: false, 0: true} {
		w := newWorld(t)
		w.tables("t")
		id := w.freshView("v", "t")
		w.exec(`UPDATE materialized_view SET failures = $1, suspended = true`, failures)
		change := w.swapping("v")
		change.Attachment = w.registration(id, "v", w.pointer("v__storage").UUID, []string{"t"})
		w.commit(change)
		if got := query[bool](w, `SELECT suspended FROM materialized_view`); got != suspended {
			t.Errorf("after %d failures: suspended = %t, want %t", failures, got, suspended)
		}
	}
}

// Two commits that touch the same views from different tables must not wait in a circle.
func TestApplyChanges_locksInOneOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.tables("t0", "t1")
	var ids []string
	for i := range 6 {
		ids = append(ids, w.freshView(fmt.Sprintf("v%d", i), "t0", "t1"))
	}
	for range 5 {
		a, b := w.commitAside(w.swapping("t0")), w.commitAside(w.swapping("t1"))
		w.check(<-a)
		w.check(<-b)
		for _, id := range ids {
			w.want(id, true, 1)
			w.finish(w.fetch(id), w.attempt(id, mv.OutcomeDone))
		}
	}
	if n := query[int](w, `SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()`); n != 0 {
		t.Errorf("deadlocks = %d", n)
	}
}

// The statements of the hot paths must not read whole tables, however many there are.
func TestStatements_useIndexes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exec(`INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name, metadata_location, object_uuid)
		SELECT 'wh', 'demo', 'filler' || n, 'f' || n, gen_random_uuid() FROM generate_series(1, 20000) n`)
	w.exec(`INSERT INTO materialized_view (view_uuid, catalog_name, namespace, name, view_version_id, storage_uuid, storage_namespace, storage_name, definition)
		SELECT gen_random_uuid(), 'wh', 'demo', 'mv' || n, 1, gen_random_uuid(), 'demo', 'mv' || n || '__storage', '{}' FROM generate_series(1, 5000) n`)
	w.exec(`INSERT INTO materialized_view_source SELECT view_uuid, 'wh', 'demo', 'filler' || substr(name, 3)::int * 4 + n
		FROM materialized_view, generate_series(0, 3) n`)
	w.exec(`INSERT INTO river_job (args, kind, max_attempts, state, finalized_at, queue)
		SELECT '{}', 'mv_refresh', 25, 'completed', now(), 'mv_refresh' FROM generate_series(1, 20000)`)
	w.exec(`INSERT INTO refresh (refresh_id, view_uuid, status) SELECT gen_random_uuid(), view_uuid, 'succeeded'
		FROM materialized_view, generate_series(1, 5)`)
	w.exec(`INSERT INTO change_log (table_uuid, snapshot_id, kind) SELECT gen_random_uuid(), n, 'none' FROM generate_series(1, 20000) n`)
	w.exec(`INSERT INTO snapshot_lease (table_uuid, snapshot_id, until) SELECT gen_random_uuid(), n, now() FROM generate_series(1, 20000) n`)
	w.tables("t")
	id := w.freshView("v", "t")
	w.exec(`ANALYZE`)
	for name, q := range map[string]struct {
		sql  string
		args []any
	}{
		"state":          {postgres.StateByUUIDSQL, []any{id}},
		"state by name":  {postgres.StateByNameSQL, []any{warehouse, "demo", "v"}},
		"hook":           {postgres.NeedMarksSQL, []any{[]string{warehouse}, []string{"demo"}, []string{"t"}, []bool{false}}},
		"upstream":       {postgres.UpstreamSQL, []any{id}},
		"parked readers": {postgres.ParkedReadersSQL, []any{id}},
	} {
		rows, err := w.pool.Query(t.Context(), "EXPLAIN "+q.sql, q.args...)
		w.check(err)
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		w.check(err)
		if plan := strings.Join(lines, "\n"); strings.Contains(plan, "Seq Scan on") {
			t.Errorf("%s reads a whole table:\n%s", name, plan)
		}
	}
}
