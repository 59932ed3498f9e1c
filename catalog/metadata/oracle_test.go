package metadata_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/iceberg-go/table"
	"github.com/apache/iceberg-go/view"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/catalogd/catalogd/catalog/metadata"
)

// The oracle is iceberg-go: random commits are applied by it and by us to the same
// document, and the results must mean the same. The places where iceberg-go v0.7.0 is
// known to be wrong, or stricter or laxer than Java, are the two lists below and the
// normalisation; anything else is a failure.

// oracleRefuses are errors of iceberg-go for commits that Java accepts.
var oracleRefuses = []string{
	"current snapshot cannot be removed", // Java drops main
	"snapshot ref not found",             // a missing ref is no error in Java
	"reserved property",                  // Java stores what a commit sets
	"before last updated timestamp",      // Java compares with the log only
	"before last snapshot timestamp",     // Java does so for main only
	"statistics not found",               // a missing file is no error in Java
	"encryption key",                     // re-adding or removing a missing key
	"partition spec with id",             // removing an unknown spec is no error in Java
	"cannot find source column",          // a void transform needs none
	"schema with id",                     // neither is a schema
	"cannot set invalid snapshot log",    // after a drop of main (Java: no current snapshot, no check)
}

// weRefuse are our own errors where iceberg-go is laxer than Java or than our policy.
var weRefuse = []string{
	"Cannot reassign uuid", "Cannot set location: it must not be empty", "statistics for unknown snapshot",
	"Cannot remove the default partition spec", // it ignores the ids it can't remove
	"Invalid update timestamp",                 // its clock is the real one
	"Sequence number must be 0 in v1",
	"Cannot set main to a tag",
	"Invalid source type", "Cannot partition by non-primitive", "Invalid partition field parent", // it does not test the source
}

func anyContains(list []string, text string) bool {
	return slices.ContainsFunc(list, func(s string) bool { return strings.Contains(text, s) })
}

// commits generates updates that build on what the table holds.
type commits struct {
	version int
	next    int64 // id of the next snapshot, spec field and so on
	second  int64
}

func (g *commits) fresh() int64 { g.next++; return g.next }

func (g *commits) update(r *rapid.T, tbl *metadata.Table, newSeq, firstRow *int64) string {
	ids := append(tbl.SnapshotIDs(), 424242)
	some := func(label string) int64 { return rapid.SampledFrom(ids).Draw(r, label) }
	id := func(label string) int { return rapid.IntRange(-1, 2).Draw(r, label) }
	switch rapid.IntRange(0, 17).Draw(r, "kind") {
	case 0, 1, 2:
		parent := tbl.CurrentSnapshotID()
		seq, first := int64(0), int64(-1)
		rows := rapid.Int64Range(0, 9).Draw(r, "rows")
		if g.version > 1 {
			*newSeq++
			seq = *newSeq - rapid.SampledFrom([]int64{0, 0, 0, 0, 1}).Draw(r, "stale")
		}
		if g.version > 2 {
			first = *firstRow
			*firstRow += rows
		}
		snap := g.fresh()
		s := addSnapshot(snap, parent, seq, g.second, first, rows)
		if rapid.Bool().Draw(r, "current") {
			s += "," + setMain(snap)
		}
		return s
	case 3:
		return setMain(some("main"))
	case 4:
		typ := rapid.SampledFrom([]string{"branch", "tag"}).Draw(r, "type")
		keep := rapid.SampledFrom([]string{"", `,"max-ref-age-ms":5`, `,"min-snapshots-to-keep":2`}).Draw(r, "keep")
		name := rapid.SampledFrom([]string{"b1", "b2", "main"}).Draw(r, "ref")
		return fmt.Sprintf(`{"action":"set-snapshot-ref","ref-name":%q,"type":%q,"snapshot-id":%d%s}`, name, typ, some("ref id"), keep)
	case 5:
		return fmt.Sprintf(`{"action":"remove-snapshot-ref","ref-name":%q}`, rapid.SampledFrom([]string{"b1", "b2", "main"}).Draw(r, "ref"))
	case 6:
		return fmt.Sprintf(`{"action":"remove-snapshots","snapshot-ids":[%d]}`, some("remove"))
	case 7:
		return fmt.Sprintf(`{"action":"set-properties","updates":{%q:%q}}`, rapid.SampledFrom([]string{"a", "b", "é\"\\"}).Draw(r, "key"), rapid.SampledFrom([]string{"", "1", "<&>\u2028"}).Draw(r, "value"))
	case 8:
		return fmt.Sprintf(`{"action":"remove-properties","removals":[%q]}`, rapid.SampledFrom([]string{"a", "b", "zz"}).Draw(r, "key"))
	case 9:
		return g.schema(r)
	case 10:
		return fmt.Sprintf(`{"action":"set-current-schema","schema-id":%d}`, id("schema"))
	case 11:
		source := rapid.SampledFrom([]int{1, 2, 6, 99}).Draw(r, "source")
		transform := rapid.SampledFrom([]string{"identity", "bucket[8]", "month", "hour", "void"}).Draw(r, "transform")
		field := tbl.LastPartitionID() + 1
		return fmt.Sprintf(`{"action":"add-spec","spec":{"spec-id":%d,"fields":[{"source-id":%d,"field-id":%d,"name":"p%d","transform":%q}]}}`, len(tbl.Specs()), source, field, g.fresh(), transform)
	case 12:
		return fmt.Sprintf(`{"action":"set-default-spec","spec-id":%d}`, id("spec"))
	case 13:
		if rapid.Bool().Draw(r, "unsorted") {
			return `{"action":"add-sort-order","sort-order":{"order-id":0,"fields":[]}}`
		}
		return fmt.Sprintf(`{"action":"add-sort-order","sort-order":{"order-id":1,"fields":[{"source-id":%d,"transform":"identity","direction":%q,"null-order":"nulls-last"}]}}`,
			rapid.SampledFrom([]int{1, 2, 99}).Draw(r, "source"), rapid.SampledFrom([]string{"asc", "desc"}).Draw(r, "direction"))
	case 14:
		return fmt.Sprintf(`{"action":"set-default-sort-order","sort-order-id":%d}`, id("order"))
	case 15:
		return stats(some("stats"), fmt.Sprintf("s%d", g.fresh()))
	case 16:
		return fmt.Sprintf(`{"action":"remove-statistics","snapshot-id":%d}`, some("stats"))
	default:
		return fmt.Sprintf(`{"action":"upgrade-format-version","format-version":%d}`, rapid.SampledFrom([]int{tbl.FormatVersion(), tbl.FormatVersion(), 1}).Draw(r, "version"))
	}
}

// schema draws from few shapes, so that some come again.
func (g *commits) schema(r *rapid.T) string {
	fields := []string{`{"id":1,"name":"id","required":true,"type":"long"}`, `{"id":2,"name":"day","required":false,"type":"date"}`}
	if n := rapid.IntRange(0, 2).Draw(r, "columns"); n > 0 {
		fields = append(fields, fmt.Sprintf(`{"id":%d,"name":"c","required":false,"type":"decimal(20, %d)","doc":"d"}`, 20+n, n))
	}
	return `{"action":"add-schema","schema":{"type":"struct","identifier-field-ids":[1],"fields":[` + strings.Join(fields, ",") + `]}}`
}

func TestTable_AgainstIcebergGo(t *testing.T) {
	t.Parallel()
	agreed := map[string]int{}
	rapid.Check(t, func(r *rapid.T) {
		g := &commits{version: rapid.IntRange(1, 3).Draw(r, "version")}
		tbl := newTable(t, strconv.Itoa(g.version))
		for range rapid.IntRange(1, 6).Draw(r, "commits") {
			g.second++
			seq, first := tbl.LastSequenceNumber(), tbl.NextRowID()
			var updates []string
			for range rapid.IntRange(1, 4).Draw(r, "updates") {
				updates = append(updates, g.update(r, tbl, &seq, &first))
			}
			tbl = compareCommit(t, r, tbl, g, updates, agreed)
		}
	})
	if agreed["accepted"] < 50 || agreed["refused"] < 10 {
		t.Errorf("the generator is too weak: %v", agreed)
	}
}

// compareCommit applies one commit both ways and returns the table to go on with.
func compareCommit(t *testing.T, r *rapid.T, base *metadata.Table, g *commits, updates []string, agreed map[string]int) *metadata.Table {
	t.Helper()
	list := "[" + strings.Join(updates, ",") + "]"
	ours := base.Clone()
	ourErr := ours.Apply(split(r, list), metadata.ApplyContext{Now: at(g.second), PreviousLocation: "file:///prev"})
	theirs, theirErr := oracleTable(base.Bytes(), list)
	switch {
	case ourErr != nil && theirErr != nil:
		agreed["refused"]++
		return base
	case ourErr != nil:
		if !anyContains(weRefuse, ourErr.Error()) {
			r.Fatalf("we refuse, iceberg-go accepts: %v\n%s\n%s", ourErr, list, base.Bytes())
		}
		return base
	case theirErr != nil:
		if !anyContains(oracleRefuses, theirErr.Error()) {
			r.Fatalf("iceberg-go refuses, we accept: %v\n%s\n%s", theirErr, list, base.Bytes())
		}
	default:
		want, got := normal(t, theirs, !ours.Changed()), normal(t, ours.Bytes(), !ours.Changed())
		if diff := cmp.Diff(want, got); diff != "" {
			r.Fatalf("iceberg-go (-) and we (+) differ after %s\non %s\n%s", list, base.Bytes(), diff)
		}
		agreed["accepted"]++
	}
	if _, err := table.ParseMetadataBytes(ours.Bytes()); err != nil {
		r.Fatalf("iceberg-go can't read our output: %v\n%s", err, ours.Bytes())
	}
	next, err := metadata.ParseTable(ours.Bytes())
	if err != nil {
		r.Fatalf("we can't read our output: %v\n%s", err, ours.Bytes())
	}
	return next
}

// split turns a list of updates into its elements.
func split(r *rapid.T, list string) []json.RawMessage {
	var out []json.RawMessage
	if err := json.Unmarshal([]byte(list), &out); err != nil {
		r.Fatalf("%v: %s", err, list)
	}
	return out
}

func oracleTable(doc []byte, updates string) ([]byte, error) {
	m, err := table.ParseMetadataBytes(doc)
	if err != nil {
		return nil, err
	}
	var list table.Updates
	if err := json.Unmarshal([]byte(updates), &list); err != nil {
		return nil, err
	}
	out, err := table.UpdateTableMetadata(m, list, "file:///prev")
	if err != nil {
		return nil, err
	}
	return json.Marshal(out)
}

// normal decodes a document and takes out the differences that mean nothing.
func normal(t *testing.T, doc []byte, unchanged bool) map[string]any {
	t.Helper()
	m := tree(t, doc).(map[string]any)
	delete(m, "last-updated-ms") // iceberg-go takes the snapshot's time
	if unchanged {
		delete(m, "metadata-log") // iceberg-go logs commits that change nothing
	}
	for name, empty := range map[string]any{
		"snapshots": []any{}, "snapshot-log": []any{}, "metadata-log": []any{}, "statistics": []any{}, "partition-statistics": []any{},
		"refs": map[string]any{}, "encryption-keys": []any{}, "properties": map[string]any{},
	} {
		if m[name] == nil {
			m[name] = empty // iceberg-go leaves empty members out
		}
	}
	if m["current-snapshot-id"] == nil || compact(m["current-snapshot-id"]) == "-1" {
		m["current-snapshot-id"] = "none"
		// A snapshot that came and went as main within one commit is no history in Java.
		delete(m, "snapshot-log")
	}
	for _, s := range m["snapshots"].([]any) {
		if snap := s.(map[string]any); compact(snap["sequence-number"]) == "0" {
			delete(snap, "sequence-number") // iceberg-go writes it in version 1
		}
	}
	log, _ := m["snapshot-log"].([]any)
	for _, e := range log {
		delete(e.(map[string]any), "timestamp-ms") // a rollback is stamped by each one's clock
	}
	return unspace(m).(map[string]any)
}

// unspace removes the blanks in the names of types: decimal(20, 2).
func unspace(v any) any {
	switch x := v.(type) {
	case map[string]any:
		for k := range x {
			x[k] = unspace(x[k])
		}
	case []any:
		for i := range x {
			x[i] = unspace(x[i])
		}
	case string:
		return strings.ReplaceAll(x, ", ", ",")
	}
	return v
}

func TestView_AgainstIcebergGo(t *testing.T) {
	t.Parallel()
	agreed := 0
	rapid.Check(t, func(r *rapid.T) {
		v, queries := newView(t, ""), 100
		for commit := range rapid.IntRange(1, 6).Draw(r, "commits") {
			var updates []string
			for range rapid.IntRange(1, 4).Draw(r, "updates") {
				updates = append(updates, viewUpdate(r, v, &queries))
			}
			list := "[" + strings.Join(updates, ",") + "]"
			ours := v.Clone()
			ourErr := ours.Apply(split(r, list), metadata.ApplyContext{Now: at(int64(commit) + 1)})
			theirs, theirErr := oracleView(v.Bytes(), list)
			if (ourErr == nil) != (theirErr == nil) && !knownViewDifference(ourErr, theirErr) {
				r.Fatalf("ours: %v, iceberg-go: %v\n%s\n%s", ourErr, theirErr, list, v.Bytes())
			}
			if ourErr != nil {
				continue
			}
			if theirErr == nil {
				if diff := cmp.Diff(normalView(t, theirs), normalView(t, ours.Bytes())); diff != "" {
					r.Fatalf("iceberg-go (-) and we (+) differ after %s\non %s\n%s", list, v.Bytes(), diff)
				}
				agreed++
			}
			v = reparseView(t, ours)
		}
	})
	if agreed < 30 {
		t.Errorf("the generator is too weak: %d commits compared", agreed)
	}
}

func viewUpdate(r *rapid.T, v *metadata.View, queries *int) string {
	next := 0
	for _, ver := range v.Versions() {
		next = max(next, ver.ID)
	}
	switch rapid.IntRange(0, 5).Draw(r, "kind") {
	case 0, 1:
		// Always a new query: iceberg-go counts a reused version as added, keeps too many
		// versions for it, and can panic when it expires old ones.
		*queries++
		return addVersion(next+1, rapid.SampledFrom([]int{0, 0, -1, 7}).Draw(r, "schema"), fmt.Sprintf("select %d", *queries), "") + "," + setCurrent(-1)
	case 2:
		return setCurrent(rapid.IntRange(1, next+1).Draw(r, "current"))
	case 3:
		n := rapid.IntRange(1, 3).Draw(r, "columns")
		return fmt.Sprintf(`{"action":"add-schema","schema":{"type":"struct","fields":[{"id":%d,"name":"n","required":false,"type":"int"}]}}`, n)
	case 4:
		return fmt.Sprintf(`{"action":"set-properties","updates":{%q:%q}}`, rapid.SampledFrom([]string{"a", "version.history.num-entries"}).Draw(r, "key"), rapid.SampledFrom([]string{"1", "2", "3"}).Draw(r, "value"))
	default:
		return `{"action":"remove-properties","removals":["a"]}`
	}
}

// knownViewDifference lists where we take commits that iceberg-go does not: going back to
// an earlier version or schema by sending it again.
func knownViewDifference(ours, theirs error) bool {
	return ours == nil && anyContains([]string{"duplicate version", "no schema has been added", "no version", "last added"}, theirs.Error())
}

func oracleView(doc []byte, updates string) ([]byte, error) {
	m, err := view.ParseMetadataBytes(doc)
	if err != nil {
		return nil, err
	}
	var list view.Updates
	if err := json.Unmarshal([]byte(updates), &list); err != nil {
		return nil, err
	}
	b, err := view.MetadataBuilderFromBase(m)
	if err != nil {
		return nil, err
	}
	for _, u := range list {
		if err := u.Apply(b); err != nil {
			return nil, err
		}
	}
	out, err := b.Build()
	if err != nil {
		return nil, err
	}
	return json.Marshal(out)
}

func normalView(t *testing.T, doc []byte) map[string]any {
	t.Helper()
	m := tree(t, doc).(map[string]any)
	drop := func(v any, keys ...string) {
		for _, k := range keys {
			delete(v.(map[string]any), k)
		}
	}
	slices.SortFunc(m["versions"].([]any), func(a, b any) int {
		return strings.Compare(fmt.Sprintf("%09s", a.(map[string]any)["version-id"]), fmt.Sprintf("%09s", b.(map[string]any)["version-id"]))
	})
	for _, v := range m["versions"].([]any) {
		drop(v, "x-version")    // iceberg-go loses what it does not know
		drop(v, "timestamp-ms") // and restamps a version that is reused; Java does not
		for _, r := range v.(map[string]any)["representations"].([]any) {
			drop(r, "x-repr")
		}
	}
	for _, s := range m["schemas"].([]any) {
		drop(s, "x-schema")
		for _, f := range s.(map[string]any)["fields"].([]any) {
			drop(f, "x-field")
		}
		if l, ok := s.(map[string]any)["identifier-field-ids"].([]any); ok && len(l) == 0 {
			drop(s, "identifier-field-ids")
		}
	}
	for _, e := range m["version-log"].([]any) {
		drop(e, "timestamp-ms")
	}
	return m
}
