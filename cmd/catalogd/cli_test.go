package main

import (
	"context"
	"encoding/json"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/iceberg-go/table"

	"github.com/catalogd/catalogd/api/mvrest"
)

// cli runs `catalogd mv …` against a workbench's server.
type cli struct {
	*workbench
}

// ok runs a command that has to succeed and print all of words.
func (c cli) ok(args []string, words ...string) string {
	c.Helper()
	o := finish(c.T, []string{"CATALOGD_URI=" + c.p.uri}, append([]string{"mv"}, args...)...)
	if o.code != 0 || o.stderr != "" {
		c.Fatalf("mv %v: %s", args, o)
	}
	for _, word := range words {
		if !strings.Contains(o.stdout, word) {
			c.Errorf("mv %v does not print %q:\n%s", args, word, o.stdout)
		}
	}
	return o.stdout
}

// json runs a command with --json and decodes what it prints.
func (c cli) json(out any, args ...string) {
	c.Helper()
	printed := c.ok(append(args, "--json"))
	dec := json.NewDecoder(strings.NewReader(printed))
	dec.DisallowUnknownFields()
	if err := dec.Decode(out); err != nil {
		c.Fatalf("mv %v --json: %v in\n%s", args, err, printed)
	}
	if dec.More() {
		c.Errorf("mv %v --json prints more than one document:\n%s", args, printed)
	}
}

// fails runs a command that has to fail and say all of words on stderr.
func (c cli) fails(args []string, words ...string) {
	c.Helper()
	fails(c.T, []string{"CATALOGD_URI=" + c.p.uri}, append([]string{"mv"}, args...), words...)
}

// refreshFails runs a refresh that has to fail, and returns what it prints as JSON and as
// text.
func (c cli) refreshFails(view string) (refreshed, string) {
	c.Helper()
	env := []string{"CATALOGD_URI=" + c.p.uri}
	text := finish(c.T, env, "mv", "refresh", "--wait", view)
	doc := finish(c.T, env, "mv", "refresh", "--wait", "--json", view)
	if text.code != 1 || doc.code != 1 {
		c.Fatalf("refresh of %s: codes %d and %d, want 1\n%s\n%s", view, text.code, doc.code, text, doc)
	}
	var out struct{ Refreshes []refreshed }
	if err := json.Unmarshal([]byte(doc.stdout), &out); err != nil || len(out.Refreshes) != 1 {
		c.Fatalf("refresh of %s: %v\n%s", view, err, doc)
	}
	return out.Refreshes[0], text.stdout + text.stderr
}

// TestCLI follows two views through their lives with the commands alone.
func TestCLI(t *testing.T) {
	t.Parallel()
	w := newWorkbench(t)
	c := cli{w}
	c.ok([]string{"list"}, "no materialized views yet", "catalogd mv create")
	w.events("ev.src", nil, nil)
	w.append("ev.src", event{day(1, 1), "a", 1}, event{day(2, 1), "b", 2})

	file := filepath.Join(t.TempDir(), "daily.sql")
	if err := os.WriteFile(file, []byte(dailySQL+";\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.ok([]string{"create", "ev.daily", "--sql", "@" + file, "--comment", "per day"}, "created ev.daily", "ev.daily__storage")
	const countSQL = `SELECT k, count(*) AS n FROM src GROUP BY k`
	var made mvrest.MaterializedView
	c.json(&made, "create", "ev.per_k", "--sql", countSQL, "--max-staleness", "5m", "--storage-name", "rows_of_k")
	if dotted(made.View) != "ev.per_k" || dotted(made.Definition.StorageTable) != "ev.rows_of_k" ||
		made.Definition.MaxStalenessMs == nil || *made.Definition.MaxStalenessMs != 300_000 || made.Definition.SQL != countSQL {
		t.Errorf("created %+v", made)
	}

	c.ok([]string{"refresh", "--wait", "ev.daily"}, "ev.daily", "snapshot ")
	w.prove("ev.daily", dailySQL, "ev.src")
	var runs struct{ Refreshes []refreshed }
	c.json(&runs, "refresh", "--wait", "--full", "ev.daily", "ev.per_k")
	if len(runs.Refreshes) != 2 {
		t.Fatalf("refreshes: %+v", runs)
	}
	for i, view := range []string{"ev.daily", "ev.per_k"} {
		r := runs.Refreshes[i]
		if r.View != view || r.Run == nil || r.Run.Status != "succeeded" || r.Run.Strategy != "full" || r.Run.SnapshotID == nil || r.Error != "" {
			t.Errorf("refresh %d: %+v, run %+v", i, r, r.Run)
		}
	}
	w.settled("ev.daily")

	c.ok([]string{"list"}, "VIEW", "ev.daily", "ev.per_k", "fresh", "yes")
	c.ok([]string{"status"}, "ev.daily", "ev.per_k")
	c.ok([]string{"status", "ev.per_k"}, "ev.per_k", "fresh")
	c.ok([]string{"show", "ev.daily"}, "ev.daily__storage", "ev.src", "date_trunc('day', ts)", "max staleness", "0s")
	var one mvrest.MaterializedView
	c.json(&one, "show", "ev.daily")
	if one.Status != "fresh" || !one.UpToDate || one.LastRefresh == nil || one.LastRefresh.Status != "succeeded" {
		t.Errorf("show --json: %+v", one)
	}
	var all mvrest.MaterializedViewList
	c.json(&all, "list")
	if len(all.MaterializedViews) != 2 {
		t.Errorf("list --json: %d views, want 2", len(all.MaterializedViews))
	}

	c.ok([]string{"suspend", "ev.daily"}, "suspended ev.daily")
	w.append("ev.src", event{day(3, 1), "c", 3})
	c.json(&one, "status", "ev.daily")
	if !one.Suspended || one.UpToDate {
		t.Errorf("suspended and behind: suspended %v, up to date %v", one.Suspended, one.UpToDate)
	}
	c.json(&runs, "refresh", "--stale", "--wait") // a person's request outranks the suspension
	var names strings.Builder
	for _, r := range runs.Refreshes {
		names.WriteString(r.View + " ")
		if r.Run == nil || r.Run.Status != "succeeded" {
			t.Errorf("refresh --stale: %+v, run %+v", r, r.Run)
		}
	}
	if !strings.Contains(names.String(), "ev.daily ") {
		t.Errorf("refresh --stale refreshed %q only", names.String())
	}
	w.prove("ev.daily", dailySQL, "ev.src")
	c.ok([]string{"resume", "ev.daily"}, "resumed ev.daily")
	w.append("ev.src", event{day(4, 1), "c", 4})
	w.settled("ev.daily")
	w.prove("ev.daily", dailySQL, "ev.src")
	c.ok([]string{"refresh", "--all"}, "ev.daily is queued", "ev.per_k is queued")
	c.json(&runs, "refresh", "ev.daily")
	if len(runs.Refreshes) != 1 || runs.Refreshes[0].Ticket == nil || runs.Refreshes[0].Ticket.ViewUUID != one.ViewUUID {
		t.Errorf("refresh without waiting: %+v", runs)
	}

	c.ok([]string{"drop", "ev.per_k", "--keep-storage"}, "dropped ev.per_k")
	if rows, err := w.c.Rows(t.Context(), "ev.rows_of_k"); err != nil {
		t.Errorf("the kept storage table: %v", err)
	} else if rows.Release(); rows.NumRows() != 3 {
		t.Errorf("the kept storage table has %d rows, want 3", rows.NumRows())
	}
	c.ok([]string{"drop", "ev.daily"}, "dropped ev.daily")
	w.p.call(http.MethodGet, "/v1/main/namespaces/ev/tables/daily__storage", nil, http.StatusNotFound, nil)
	c.fails([]string{"show", "ev.daily"}, "ev.daily")
	c.ok([]string{"list"}, "no materialized views yet")
}

// TestCLI_failedRuns makes runs fail for reasons that lie in the data and in the source.
func TestCLI_failedRuns(t *testing.T) {
	t.Parallel()
	w := newWorkbench(t)
	c := cli{w}
	w.events("ev.src", nil, nil)
	w.append("ev.src", event{day(1, 1), "a", math.MaxInt64})
	const sums = `SELECT k, sum(v) AS total FROM ev.src GROUP BY k`
	c.ok([]string{"create", "ev.sums", "--sql", sums})
	c.ok([]string{"refresh", "--wait", "ev.sums"})
	w.append("ev.src", event{day(1, 2), "a", 1})
	r, text := c.refreshFails("ev.sums")
	if r.Run == nil || r.Run.Status != "failed" || r.Run.Reason == "" || !strings.Contains(r.Error, r.Run.Reason) || !strings.Contains(text, r.Run.Reason) {
		t.Errorf("overflow: %+v, run %+v\n%s", r, r.Run, text)
	}
	if !strings.Contains(text, "ev.sums failed") || !strings.Contains(text, "total") {
		t.Errorf("the overflow is not explained by its column: %s", text)
	}
	c.ok([]string{"show", "ev.sums"}, "last error", "total")
	// What was right before is still stored, and only that.
	var status mvrest.MaterializedView
	c.json(&status, "show", "ev.sums")
	if status.UpToDate {
		t.Error("a view whose run failed is up to date")
	}

	w.change("ev.src", func(ctx context.Context, t *table.Table) error {
		tx := t.NewTransaction()
		if err := tx.UpdateSchema(true, false).RenameColumn([]string{"v"}, "worth").Commit(); err != nil {
			return err
		}
		_, err := tx.Commit(ctx)
		return err
	})
	r, text = c.refreshFails("ev.sums")
	if r.Run == nil || r.Run.Status != "failed" || !strings.Contains(text, `"v"`) && !strings.Contains(text, " v ") {
		t.Errorf("a renamed column: %+v, run %+v\n%s", r, r.Run, text)
	}
}

// TestCLI_wrongInput checks that everything wrong is refused, with words that help.
func TestCLI_wrongInput(t *testing.T) {
	t.Parallel()
	w := newWorkbench(t)
	c := cli{w}
	w.events("ev.src", nil, nil)
	c.ok([]string{"create", "ev.a", "--sql", "SELECT k, v FROM ev.src"})
	c.ok([]string{"create", "ev.b", "--sql", "SELECT k FROM ev.a"})
	secretFile := filepath.Join(t.TempDir(), "secret.csv")
	if err := os.WriteFile(secretFile, []byte("k\nforbidden\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, sql := range map[string]struct {
		text string
		says []string
	}{
		"syntax":            {"SELECT k\nFROM ev.src WHERE", []string{"line 2"}},
		"missing table":     {"SELECT *\n  FROM ev.nowhere", []string{"line 2, column 8", "ev.nowhere", "does not exist"}},
		"missing column":    {"SELECT nothere FROM ev.src", []string{"nothere"}},
		"unknown function":  {"SELECT no_such_fn(k) AS x FROM ev.src", []string{"no_such_fn"}},
		"file function":     {"SELECT * FROM read_csv('" + secretFile + "')", []string{"read_csv"}},
		"file as table":     {"SELECT * FROM '" + secretFile + "'", []string{"file"}},
		"file in subquery":  {"SELECT k, (SELECT count(*) FROM read_text('" + secretFile + "')) AS n FROM ev.src", []string{"read_text"}},
		"environment":       {"SELECT k, getenv('HOME') AS h FROM ev.src", []string{"getenv"}},
		"statements":        {"SELECT k FROM ev.src; SELECT v FROM ev.src", []string{"statement"}},
		"another statement": {"COPY ev.src TO '/tmp/x.csv'", []string{"COPY"}},
		"attach":            {"ATTACH '/tmp/x.db' AS x", []string{"ATTACH"}},
		"setting":           {"SET memory_limit = '1GB'", []string{"SET"}},
		"itself":            {"SELECT k FROM ev.new", []string{"ev.new"}},
		"nothing":           {"", []string{"--sql is missing"}},
		"two equal columns": {"SELECT k, k FROM ev.src", []string{"k"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := cli{&workbench{T: t, p: w.p, c: w.c, db: w.db}}
			c.fails([]string{"create", "ev.new", "--sql", sql.text}, sql.says...)
			w.p.call(http.MethodGet, "/v1/main/namespaces/ev/views/new", nil, http.StatusNotFound, nil)
			w.p.call(http.MethodGet, "/v1/main/namespaces/ev/tables/new__storage", nil, http.StatusNotFound, nil)
		})
	}
	for _, test := range []struct {
		args, says []string
	}{
		{[]string{"create", "ev.a", "--or-replace", "--sql", "SELECT k FROM ev.b"}, []string{"ev.a", "itself"}},
		{[]string{"create", "ev.a", "--sql", "SELECT k FROM ev.src"}, []string{"ev.a", "exists"}},
		{[]string{"create", "ev.src", "--sql", "SELECT 1 AS one"}, []string{"ev.src", "exists"}},
		{[]string{"create", "nowhere.a", "--sql", "SELECT 1 AS one"}, []string{"nowhere"}},
		{[]string{"create", "daily", "--sql", "SELECT 1 AS one"}, []string{`"daily" has no namespace`}},
		{[]string{"create", "ev.", "--sql", "SELECT 1 AS one"}, []string{"empty part"}},
		{[]string{"create", "ev.c", "--sql", "@/no/such/file.sql"}, []string{"/no/such/file.sql"}},
		{[]string{"create", "ev.c", "--sql", "SELECT k FROM ev.src", "--max-staleness", "soon"}, []string{`"soon"`, "unbounded"}},
		{[]string{"create", "ev.c", "--sql", "SELECT k FROM ev.src", "--dialect", "mysql"}, []string{"mysql", "duckdb"}},
		{[]string{"create", "ev.c", "--sql", "SELECT k FROM ev.src", "--partition", "day(nope)"}, []string{"nope"}},
		{[]string{"create", "ev.c", "--sql", "SELECT k FROM ev.src", "--storage-name", "src"}, []string{"ev.src"}},
		{[]string{"show", "ev.nope"}, []string{"ev.nope", "does not exist"}},
		{[]string{"status", "ev.nope"}, []string{"ev.nope"}},
		{[]string{"drop", "ev.nope"}, []string{"ev.nope"}},
		{[]string{"suspend", "ev.nope"}, []string{"ev.nope"}},
		{[]string{"resume", "ev.nope"}, []string{"ev.nope"}},
		{[]string{"show", "ev.src"}, []string{"ev.src"}},
		{[]string{"show"}, []string{"arg"}},
		{[]string{"refresh"}, []string{"--all", "--stale"}},
		{[]string{"refresh", "--all", "ev.a"}, []string{"--all"}},
		{[]string{"refresh", "a"}, []string{"namespace"}},
		{[]string{"list", "--warehouse", "other"}, []string{"other"}},
		{[]string{"list", "--uri", "http://127.0.0.1:1"}, []string{"http://127.0.0.1:1", "catalogd dev", "--uri"}},
		{[]string{"list", "--uri", "not a uri"}, []string{"not a uri"}},
	} {
		c.fails(test.args, test.says...)
	}
	if r, text := c.refreshFails("ev.nope"); !strings.Contains(r.Error, "ev.nope") || !strings.Contains(text, "ev.nope") {
		t.Errorf("refresh of an unknown view: %+v\n%s", r, text)
	}
	// After all that, the two views of before are what there is.
	var all mvrest.MaterializedViewList
	c.json(&all, "list")
	if len(all.MaterializedViews) != 2 {
		t.Errorf("%d views, want 2: %+v", len(all.MaterializedViews), all)
	}
}
