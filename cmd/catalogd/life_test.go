package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"github.com/catalogd/catalogd/api/managerest"
)

// lifebench is a workbench whose warehouse keeps dropped objects.
type lifebench struct {
	*workbench
	dir string
}

func newLifebench(t *testing.T, args ...string) lifebench {
	t.Helper()
	dir := t.TempDir()
	p := start(t, nil, append([]string{"dev", "--data-dir", dir, "--listen", "127.0.0.1:0", "--log-level", "info"}, args...)...)
	return lifebench{attach(t, p), dir}
}

// run is `catalogd args…` against the server; it has to succeed and print all of words.
func (b lifebench) run(args []string, words ...string) string {
	b.Helper()
	o := finish(b.T, []string{"CATALOGD_URI=" + b.p.uri}, args...)
	if o.code != 0 {
		b.Fatalf("catalogd %v: %s", args, o)
	}
	for _, word := range words {
		if !strings.Contains(o.stdout, word) {
			b.Errorf("catalogd %v does not print %q:\n%s", args, word, o.stdout)
		}
	}
	return o.stdout
}

func (b lifebench) fails(args []string, words ...string) {
	b.Helper()
	fails(b.T, []string{"CATALOGD_URI=" + b.p.uri}, args, words...)
}

func (b lifebench) dropped(args ...string) []managerest.DroppedObject {
	b.Helper()
	var list managerest.DroppedList
	if err := json.Unmarshal([]byte(b.run(append([]string{"table", "dropped", "--json"}, args...))), &list); err != nil {
		b.Fatal(err)
	}
	return list.Dropped
}

func tablePath(name string) string {
	ns, tbl, _ := strings.Cut(name, ".")
	return "/v1/main/namespaces/" + ns + "/tables/" + tbl
}

func (b lifebench) count(name string) int64 {
	b.Helper()
	rows, err := b.c.Rows(b.Context(), name)
	if err != nil {
		b.Fatal(err)
	}
	defer rows.Release()
	return rows.NumRows()
}

func (b lifebench) location(name string) string {
	b.Helper()
	t, err := b.c.Load(b.Context(), name)
	if err != nil {
		b.Fatal(err)
	}
	return strings.TrimPrefix(t.Location(), "file://")
}

func filesBelow(t *testing.T, folder string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(folder, func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			found = append(found, strings.TrimPrefix(name, folder+"/"))
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil // deleted while we look
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestLife_undrop(t *testing.T) {
	t.Parallel()
	b := newLifebench(t, "--soft-delete-retention", "1h")
	b.events("ev.src", nil, nil)
	b.append("ev.src", event{day(1, 1), "a", 1}, event{day(2, 1), "b", 2})
	location := b.location("ev.src")

	b.run([]string{"table", "protect", "ev.src"}, "protected ev.src")
	for _, purge := range []string{"false", "true"} {
		status, answer, err := b.p.try(http.MethodDelete, tablePath("ev.src")+"?purgeRequested="+purge, nil)
		if err != nil || status != http.StatusConflict || !strings.Contains(string(answer), "catalogd table unprotect ev.src") {
			t.Errorf("drop of a protected table = %d %s %v", status, answer, err)
		}
	}
	b.run([]string{"table", "unprotect", "ev.src"})
	b.run([]string{"namespace", "protect", "ev"})

	b.p.call(http.MethodDelete, tablePath("ev.src"), nil, http.StatusNoContent, nil)
	b.p.call(http.MethodGet, tablePath("ev.src"), nil, http.StatusNotFound, nil)
	b.p.call(http.MethodDelete, "/v1/main/namespaces/ev", nil, http.StatusConflict, nil)
	b.run([]string{"namespace", "unprotect", "ev"})
	found := b.dropped()
	if len(found) != 1 || found[0].Type != "table" || found[0].Identifier.Name != "src" || found[0].ExpiresAt.Sub(found[0].DroppedAt) != time.Hour {
		t.Fatalf("dropped: %+v", found)
	}
	b.run([]string{"table", "dropped", "ev"}, "ev.src", found[0].UUID)
	if other := b.dropped("elsewhere"); len(other) != 0 {
		t.Errorf("dropped in another namespace: %v", other)
	}
	// The location is owned still, and the name is free.
	status, answer, _ := b.p.try(http.MethodPost, "/v1/main/namespaces/ev/tables", map[string]any{
		"name": "thief", "location": "file://" + location + "/inside", "schema": map[string]any{"type": "struct", "fields": []any{}},
	})
	if status != http.StatusForbidden || !strings.Contains(string(answer), "ev.src") {
		t.Errorf("a table inside a dropped one = %d %s, want a refusal that names it", status, answer)
	}
	b.events("ev.src", nil, nil)
	b.fails([]string{"table", "undrop", "ev.src"}, "already exists")
	b.run([]string{"table", "undrop", "ev.src", "--as", "ev.old"}, "ev.old is back")
	if n := b.count("ev.old"); n != 2 {
		t.Errorf("%d rows came back, want 2", n)
	}
	b.fails([]string{"table", "undrop", "ev.src"}, "ev.src", "catalogd table dropped")

	// Two of one name.
	b.p.call(http.MethodDelete, tablePath("ev.src"), nil, http.StatusNoContent, nil)
	b.events("ev.src", nil, nil)
	b.append("ev.src", event{day(1, 1), "a", 1})
	b.p.call(http.MethodDelete, tablePath("ev.src"), nil, http.StatusNoContent, nil)
	found = b.dropped()
	if len(found) != 2 {
		t.Fatalf("dropped: %+v", found)
	}
	b.fails([]string{"table", "undrop", "ev.src"}, found[0].UUID, found[1].UUID)
	b.run([]string{"table", "undrop", found[0].UUID})
	if n := b.count("ev.src"); n != 1 {
		t.Errorf("the newest had %d rows, want 1", n)
	}
	b.run([]string{"table", "forget", found[1].UUID})
	b.fails([]string{"table", "undrop", found[1].UUID}, found[1].UUID)
	if left := b.dropped(); len(left) != 0 {
		t.Errorf("left: %+v", left)
	}
	b.fails([]string{"table", "protect", "ev.nosuch"}, "ev.nosuch")
	b.fails([]string{"namespace", "protect", "nosuch"}, "nosuch")
}

// TestLife_undropMaterializedView: a view comes back with its rows, and knows how fresh it
// is.
func TestLife_undropMaterializedView(t *testing.T) {
	t.Parallel()
	b := newLifebench(t, "--soft-delete-retention", "1h")
	b.events("ev.src", nil, nil)
	b.append("ev.src", event{day(1, 1), "a", 1}, event{day(2, 1), "b", 2})
	b.create("ev.daily", dailySQL)
	b.settled("ev.daily")
	drop := func(name string) {
		t.Helper()
		ns, view, _ := strings.Cut(name, ".")
		b.p.call(http.MethodDelete, "/v1/main/namespaces/"+ns+"/views/"+view, nil, http.StatusNoContent, nil)
	}
	b.run([]string{"table", "protect", "ev.daily"})
	b.p.call(http.MethodDelete, "/v1/main/namespaces/ev/views/daily", nil, http.StatusConflict, nil)
	b.p.call(http.MethodDelete, viewPath("ev.daily"), nil, http.StatusConflict, nil)
	b.run([]string{"table", "unprotect", "ev.daily"})
	b.steer("ev.daily", "suspend")

	drop("ev.daily")
	b.p.call(http.MethodGet, tablePath("ev.daily__storage"), nil, http.StatusNotFound, nil)
	found := b.dropped()
	if len(found) != 1 || found[0].Type != "materialized-view" {
		t.Fatalf("dropped: %+v, want the view alone", found)
	}
	b.run([]string{"table", "undrop", "ev.daily"})
	f := b.freshness("ev.daily")
	if !f.UpToDate || !f.Suspended {
		t.Errorf("after the undrop it is %s (%s), suspended %v, want up to date and suspended", f.Status, f.Reason, f.Suspended)
	}
	b.prove("ev.daily", dailySQL, "ev.src")

	// What happens to its source while it is gone makes it stale.
	drop("ev.daily")
	b.append("ev.src", event{day(3, 1), "c", 3})
	b.run([]string{"table", "undrop", "ev.daily", "--as", "ev.renamed"})
	if f := b.freshness("ev.renamed"); f.UpToDate || f.View.Name != "renamed" || f.Definition.StorageTable.Name != "renamed__storage" {
		t.Errorf("after the undrop it is up to date %v, stored in %s", f.UpToDate, f.Definition.StorageTable.Name)
	}
	b.steer("ev.renamed", "resume")
	b.settled("ev.renamed")
	b.prove("ev.renamed", dailySQL, "ev.src")

	// A source that is dropped and comes back is the same source.
	b.p.call(http.MethodDelete, tablePath("ev.src"), nil, http.StatusNoContent, nil)
	if f := b.freshness("ev.renamed"); f.UpToDate {
		t.Error("up to date without its source")
	}
	drop("ev.renamed")
	b.run([]string{"table", "undrop", "ev.renamed"}) // its source is still missing
	if f := b.freshness("ev.renamed"); f.UpToDate {
		t.Error("back, and up to date without its source")
	}
	b.run([]string{"table", "undrop", "ev.src"})
	b.settled("ev.renamed")
	b.append("ev.src", event{day(4, 1), "d", 4})
	b.settled("ev.renamed")
	b.prove("ev.renamed", dailySQL, "ev.src")

	// With its storage table left behind there is nothing that could come back.
	b.p.call(http.MethodDelete, viewPath("ev.renamed")+"?keepStorage=true", nil, http.StatusNoContent, nil)
	b.fails([]string{"table", "undrop", "ev.renamed"}, "ev.renamed__storage")
}

func TestLife_purge(t *testing.T) {
	t.Parallel()
	b := newLifebench(t)
	b.events("ev.src", nil, nil)
	b.events("ev.stays", nil, nil)
	for d := range 20 {
		b.append("ev.src", event{day(d+1, 1), "a", 1})
	}
	b.append("ev.stays", event{day(1, 1), "a", 1})
	gone, stays := b.location("ev.src"), b.location("ev.stays")
	before := filesBelow(t, stays)
	if n := len(filesBelow(t, gone)); n < 80 {
		t.Fatalf("the table has %d files, want many", n)
	}
	b.p.call(http.MethodDelete, tablePath("ev.stays"), nil, http.StatusNoContent, nil)
	b.p.call(http.MethodDelete, tablePath("ev.src")+"?purgeRequested=True", nil, http.StatusNoContent, nil)
	if found := b.dropped(); len(found) != 0 {
		t.Errorf("%+v can come back, but this warehouse keeps nothing", found)
	}
	// Killed at once, with the purge waiting or under way.
	b.p.kill()
	p := startDevIn(t, b.dir)
	eventually(t, 2*time.Minute, "the purged table's folder is gone", func() error {
		if _, err := os.Stat(gone); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%d files, %w", len(filesBelow(t, gone)), err)
		}
		return nil
	})
	if after := filesBelow(t, stays); !slices.Equal(before, after) {
		t.Errorf("a table that was dropped without purge has the files %v, want %v", after, before)
	}
	p.call(http.MethodGet, tablePath("ev.src"), nil, http.StatusNotFound, nil)
}

// TestLife_metadataCleanup: metadata files that fell off the log go, and the others stay.
func TestLife_metadataCleanup(t *testing.T) {
	t.Parallel()
	b := newLifebench(t)
	b.events("ev.src", nil, iceberg.Properties{
		"write.metadata.delete-after-commit.enabled": "true", "write.metadata.previous-versions-max": "2",
	})
	b.events("ev.keeps", nil, iceberg.Properties{"write.metadata.previous-versions-max": "2"})
	for d := range 6 {
		b.append("ev.src", event{day(d+1, 1), "a", 1})
		b.append("ev.keeps", event{day(d+1, 1), "a", 1})
	}
	documents := func(name string) (found []string) {
		for _, f := range filesBelow(t, b.location(name)) {
			if strings.HasSuffix(f, ".metadata.json") {
				found = append(found, f)
			}
		}
		return found
	}
	eventually(t, 2*time.Minute, "three metadata files are left", func() error {
		if found := documents("ev.src"); len(found) != 3 {
			return fmt.Errorf("there are %d: %v", len(found), found)
		}
		return nil
	})
	if n := b.count("ev.src"); n != 6 {
		t.Errorf("%d rows, want 6", n)
	}
	t2, err := b.c.Load(t.Context(), "ev.src")
	if err != nil {
		t.Fatal(err)
	}
	for entry := range t2.Metadata().PreviousFiles() {
		if _, err := os.Stat(strings.TrimPrefix(entry.MetadataFile, "file://")); err != nil {
			t.Errorf("a file in the log is gone: %v", err)
		}
	}
	if n := len(documents("ev.keeps")); n != 7 {
		t.Errorf("a table that did not ask for it has %d metadata files, want all 7", n)
	}
}

func TestLife_warehouses(t *testing.T) {
	t.Parallel()
	b := newLifebench(t)
	b.run([]string{"warehouse", "list"}, "main", "off")
	b.run([]string{"warehouse", "create", "second", "--soft-delete-retention", "48h"}, "second")
	b.fails([]string{"warehouse", "create", "second"}, "already exists")
	b.fails([]string{"warehouse", "create", "third", "--location", "file:///nowhere/third"}, "file:///nowhere/third")
	b.fails([]string{"warehouse", "create", "third", "--location", filepath.Join(b.dir, "warehouse", "inside")}, "main")
	b.fails([]string{"warehouse", "create", "a/b"}, "a/b")
	b.fails([]string{"warehouse", "create", "warehouses"}, "reserved")
	var w managerest.Warehouse
	if err := json.Unmarshal([]byte(b.run([]string{"warehouse", "get", "second", "--json"})), &w); err != nil {
		t.Fatal(err)
	}
	if want := "file://" + filepath.Join(b.dir, "warehouses", "second"); w.Location != want || w.Default || w.SoftDeleteRetentionMs != (48*time.Hour).Milliseconds() {
		t.Errorf("warehouse = %+v, want it at %s", w, want)
	}
	// The same names in both, and no way from one to the other.
	for _, prefix := range []string{"main", "second"} {
		b.p.call(http.MethodPost, "/v1/"+prefix+"/namespaces", map[string]any{"namespace": []string{"ns"}}, http.StatusOK, nil)
		var created struct {
			Metadata struct{ Location string }
		}
		b.p.call(http.MethodPost, "/v1/"+prefix+"/namespaces/ns/tables", map[string]any{
			"name": "t", "schema": map[string]any{"type": "struct", "fields": []any{}},
		}, http.StatusOK, &created)
		if root := map[string]string{"main": "warehouse/", "second": "warehouses/second/"}[prefix]; !strings.HasPrefix(created.Metadata.Location, "file://"+b.dir+"/"+root) {
			t.Errorf("the table of %s is at %s", prefix, created.Metadata.Location)
		}
	}
	b.p.call(http.MethodDelete, "/v1/second/namespaces/ns/tables/t", nil, http.StatusNoContent, nil)
	b.p.call(http.MethodGet, "/v1/main/namespaces/ns/tables/t", nil, http.StatusOK, nil)
	b.p.call(http.MethodDelete, "/v1/second/namespaces/ns", nil, http.StatusNoContent, nil)
	b.fails([]string{"warehouse", "delete", "second"}, "not empty", "1 dropped")
	b.fails([]string{"warehouse", "delete", "main"}, "default")
	b.run([]string{"warehouse", "set", "second", "--default", "--protected"}, "yes")
	var config struct{ Overrides map[string]string }
	b.p.call(http.MethodGet, "/v1/config", nil, http.StatusOK, &config)
	if config.Overrides["prefix"] != "second" {
		t.Errorf("the default warehouse is %v", config.Overrides)
	}
	b.run([]string{"warehouse", "set", "main", "--default"})
	b.fails([]string{"warehouse", "set", "main"}, "nothing to change")
	for _, d := range b.dropped("--warehouse", "second") {
		b.run([]string{"table", "forget", d.UUID, "--warehouse", "second"})
	}
	b.fails([]string{"warehouse", "delete", "second"}, "protected")
	b.run([]string{"warehouse", "set", "second", "--protected=false"})
	b.run([]string{"warehouse", "delete", "second"})
	for _, path := range []string{
		"/v1/config?warehouse=second", "/v1/second/namespaces", "/v1/second/namespaces/ns", "/v1/second/namespaces/ns/tables",
		"/v1/second/namespaces/ns/tables/t", "/v1/second/namespaces/ns/views/v", "/catalogd/v1/warehouses/second",
		"/catalogd/v1/second/dropped", "/catalogd/v1/second/materialized-views", "/catalogd/v1/second/namespaces/ns/protection",
		"/catalogd/v1/second/namespaces/ns/tables/t/protection", "/catalogd/v1/second/namespaces/ns/tables/t/metrics-reports",
	} {
		status, answer, err := b.p.try(http.MethodGet, path, nil)
		if err != nil || status != http.StatusNotFound || !strings.Contains(string(answer), "NoSuchWarehouseException") {
			t.Errorf("GET %s = %d %s %v, want no such warehouse", path, status, answer, err)
		}
	}
}

func TestLife_metricsReports(t *testing.T) {
	t.Parallel()
	b := newLifebench(t)
	b.events("ev.src", nil, nil)
	report := func(name, body string) {
		t.Helper()
		b.p.call(http.MethodPost, tablePath(name)+"/metrics", body, http.StatusNoContent, nil)
	}
	scan := func(n int) string {
		return fmt.Sprintf(`{"report-type":"scan-report","table-name":"ev.src","snapshot-id":%d,"filter":true,"schema-id":0,"projected-field-ids":[1],"projected-field-names":["ts"],"metrics":{"odd":1e400}}`, n)
	}
	commit := `{"report-type":"commit-report","table-name":"ev.src","snapshot-id":9223372036854775807,"sequence-number":1,"operation":"append","metrics":{}}`
	report("ev.not_yet", scan(1))
	report("ev.src", commit)
	for n := range 5 {
		report("ev.src", scan(n))
	}
	path := "/catalogd/v1/main/namespaces/ev/tables/src/metrics-reports"
	list := func(query string) (out managerest.MetricsReportList) {
		t.Helper()
		b.p.call(http.MethodGet, path+query, nil, http.StatusOK, &out)
		return out
	}
	eventually(t, time.Minute, "six reports are there", func() error {
		if n := len(list("").Reports); n != 6 {
			return fmt.Errorf("there are %d", n)
		}
		return nil
	})
	commits := list("?type=commit-report").Reports
	if len(commits) != 1 || *commits[0].SnapshotID != 9223372036854775807 || string(commits[0].Report) != commit {
		t.Errorf("commit reports: %+v", commits)
	}
	var ids []int64
	for token := ""; ; {
		page := list("?type=scan-report&pageSize=2&pageToken=" + url.QueryEscape(token))
		for _, r := range page.Reports {
			ids = append(ids, *r.SnapshotID)
		}
		if page.NextPageToken == nil {
			break
		}
		token = *page.NextPageToken
	}
	if !slices.Equal(ids, []int64{4, 3, 2, 1, 0}) {
		t.Errorf("scan reports of snapshots %v, want the newest first", ids)
	}
	now := time.Now().UTC()
	if n := len(list("?since=" + url.QueryEscape(now.Add(time.Hour).Format(time.RFC3339))).Reports); n != 0 {
		t.Errorf("%d reports of the future", n)
	}
	if n := len(list("?until=" + url.QueryEscape(now.Add(time.Hour).Format(time.RFC3339)) + "&since=2020-01-01T00:00:00Z").Reports); n != 6 {
		t.Errorf("%d reports up to now", n)
	}
	for _, query := range []string{"?since=yesterday", "?pageToken=made-up", "?pageSize=0"} {
		b.p.call(http.MethodGet, path+query, nil, http.StatusBadRequest, nil)
	}
	b.p.call(http.MethodGet, "/catalogd/v1/main/namespaces/ev/tables/not_yet/metrics-reports", nil, http.StatusNotFound, nil)
	b.p.call(http.MethodPost, "/v1/nowhere/namespaces/ev/tables/src/metrics", scan(1), http.StatusNotFound, nil)

	// What was taken before the end is not lost, and a rename takes reports along.
	report("ev.src", scan(77))
	b.p.stop()
	b.p = startDevIn(t, b.dir)
	b.p.call(http.MethodPost, "/v1/main/tables/rename", map[string]any{
		"source":      map[string]any{"namespace": []string{"ev"}, "name": "src"},
		"destination": map[string]any{"namespace": []string{"ev"}, "name": "moved"},
	}, http.StatusNoContent, nil)
	path = "/catalogd/v1/main/namespaces/ev/tables/moved/metrics-reports"
	if all := list("").Reports; len(all) != 7 || *all[0].SnapshotID != 77 {
		t.Errorf("after a restart there are %d reports, want 7", len(all))
	}
}

// TestLife_statisticsArePurged: statistics files, which iceberg clients set by updates of
// their own, go with their table.
func TestLife_statisticsArePurged(t *testing.T) {
	t.Parallel()
	b := newLifebench(t)
	b.events("ev.src", nil, nil)
	b.append("ev.src", event{day(1, 1), "a", 1})
	location := b.location("ev.src")
	var head int64
	b.change("ev.src", func(_ context.Context, tbl *table.Table) error {
		head = tbl.CurrentSnapshot().SnapshotID
		return nil
	})
	for _, name := range []string{"stats.puffin", "partition-stats.parquet"} {
		if err := os.WriteFile(filepath.Join(location, "metadata", name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b.p.call(http.MethodPost, tablePath("ev.src"), fmt.Sprintf(`{"requirements":[],"updates":[
		{"action":"set-statistics","snapshot-id":%[1]d,"statistics":{"snapshot-id":%[1]d,"statistics-path":"file://%[2]s/metadata/stats.puffin","file-size-in-bytes":1,"file-footer-size-in-bytes":0,"blob-metadata":[]}},
		{"action":"set-partition-statistics","partition-statistics":{"snapshot-id":%[1]d,"statistics-path":"file://%[2]s/metadata/partition-stats.parquet","file-size-in-bytes":1}}]}`, head, location), http.StatusOK, nil)
	b.p.call(http.MethodDelete, tablePath("ev.src")+"?purgeRequested=true", nil, http.StatusNoContent, nil)
	eventually(t, 2*time.Minute, "the folder is gone", func() error {
		if left := filesBelow(t, location); len(left) > 0 {
			return fmt.Errorf("left: %v", left)
		}
		return nil
	})
}
