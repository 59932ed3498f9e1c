package difftest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/apache/iceberg-go/view"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/catalogd/catalogd/catalog/metadata"
)

// viewVersion is a version with a text in a dialect of its own.
func viewVersion(id, schema int, sql, more string) string {
	return fmt.Sprintf(`{"version-id":%d,"timestamp-ms":%d,"schema-id":%d,"summary":{"engine-name":"spark"},"default-namespace":["ns"],`+
		`"representations":[{"type":"sql","sql":%q,"dialect":"spark"}]%s}`, id, baseMS+int64(id), schema, sql, more)
}

func addVersion(id, schema int, sql, more string) string {
	return `{"action":"add-view-version","view-version":` + viewVersion(id, schema, sql, more) + `}`
}

func setCurrent(id int) string {
	return fmt.Sprintf(`{"action":"set-current-view-version","view-version-id":%d}`, id)
}

func viewSchema(column int) string {
	return fmt.Sprintf(`{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"c%d","required":false,"type":"long"}]}`, column)
}

func addViewSchema(column int) string {
	return `{"action":"add-schema","schema":` + viewSchema(column) + `}`
}

// newView is a view with two versions.
func newView() (*metadata.View, error) {
	v, err := metadata.NewView(metadata.NewViewRequest{
		UUID: tableUUID, Location: "file:///w/ns/v", Schema: json.RawMessage(viewSchema(0)), ViewVersion: json.RawMessage(viewVersion(1, 0, "select 1", "")),
		Properties: map[string]string{"comment": "c"}, Now: at(0),
	})
	if err != nil {
		return nil, err
	}
	if v, err = ourView(v, 1, []string{addVersion(2, 0, "select 2", ""), setCurrent(-1)}); err != nil {
		return nil, err
	}
	return metadata.ParseView(v.Bytes())
}

// viewGenerator makes updates of a view.
type viewGenerator struct {
	*rapid.T
	queries int
}

func (g *viewGenerator) update(v *metadata.View) []string {
	next := 0
	for _, ver := range v.Versions() {
		next = max(next, ver.ID)
	}
	draw := func(what string, to int) int { return rapid.IntRange(0, to).Draw(g.T, what) }
	choose := func(what string, from ...string) string { return rapid.SampledFrom(from).Draw(g.T, what) }
	switch draw("kind", 10) {
	case 0, 1, 2:
		// Always a new query: iceberg-go counts a version that is there already as added,
		// keeps too many for it, and can panic when it expires old ones.
		g.queries++
		more := choose("more", "", "", `,"default-catalog":"c"`, `,"x-future":1.50`)
		out := []string{addVersion(next+1, rapid.SampledFrom([]int{0, 0, -1, 7}).Draw(g.T, "schema"), fmt.Sprintf("select %d", g.queries), more)}
		if draw("current", 3) > 0 {
			out = append(out, setCurrent(-1))
		}
		return out
	case 3:
		return []string{setCurrent(rapid.IntRange(-1, next+1).Draw(g.T, "version"))}
	case 4, 5:
		return []string{addViewSchema(draw("column", 3))}
	case 6:
		return one("set-properties", `"updates":{%q:%q}`, choose("key", "a", "version.history.num-entries", "é\""), choose("value", "1", "2", "0", "x", ""))
	case 7:
		return one("remove-properties", `"removals":[%q,%q]`, choose("key", "a", "comment"), choose("key", "zz", "version.history.num-entries"))
	case 8:
		return one("set-location", `"location":%q`, choose("location", "file:///w/ns/v", "file:///w/ns/v2", ""))
	case 9:
		return one("assign-uuid", `"uuid":%q`, choose("uuid", tableUUID, tableUUID, otherUUID))
	}
	return one("upgrade-format-version", `"format-version":%d`, rapid.IntRange(0, 2).Draw(g.T, "version"))
}

func TestView(t *testing.T) {
	t.Parallel()
	var n tally
	differences := viewDifferences()
	rapid.Check(t, func(r *rapid.T) {
		v, err := newView()
		if err != nil {
			r.Fatal(err)
		}
		g := &viewGenerator{T: r, queries: 100}
		for commit := range rapid.IntRange(1, 8).Draw(r, "commits") {
			var updates []string
			for range rapid.IntRange(1, 3).Draw(r, "updates") {
				updates = append(updates, g.update(v)...)
			}
			ours, ourErr := ourView(v, int64(commit)+2, updates)
			theirs, theirErr := theirView(v.Bytes(), updates)
			switch {
			case ourErr != nil && theirErr != nil:
				n.refused++
				continue
			case ourErr != nil || theirErr != nil:
				if !known(differences, ourErr, theirErr) {
					r.Fatalf("ours: %v\niceberg-go: %v\n%s\non %s", ourErr, theirErr, list(updates), v.Bytes())
				}
				n.differed++
				if ourErr != nil {
					continue
				}
			default:
				n.accepted++
				if diff := cmp.Diff(normalView(t, theirs), normalView(t, ours.Bytes())); diff != "" {
					r.Fatalf("iceberg-go (-) and we (+) differ after %s\non %s\n%s", list(updates), v.Bytes(), diff)
				}
			}
			if v, err = metadata.ParseView(ours.Bytes()); err != nil {
				r.Fatalf("we can't read our output: %v\n%s", err, ours.Bytes())
			}
			if _, err := view.ParseMetadataBytes(ours.Bytes()); err != nil {
				r.Fatalf("iceberg-go can't read our output: %v\n%s", err, ours.Bytes())
			}
		}
	})
	t.Logf("%+v", n)
	if n.accepted < 100 || n.refused < 20 {
		t.Errorf("the generator is too weak: %+v", n)
	}
}

// normalView is [normal] for views. Versions are sorted, since their order means nothing.
func normalView(t testing.TB, doc []byte) map[string]any {
	t.Helper()
	m := tree(t, doc)
	if m["properties"] == nil {
		m["properties"] = map[string]any{} // iceberg-go leaves empty members out
	}
	versions := m["versions"].([]any)
	id := func(v any) string { return fmt.Sprintf("%09s", v.(map[string]any)["version-id"]) }
	slices.SortFunc(versions, func(a, b any) int { return strings.Compare(id(a), id(b)) })
	for _, e := range m["version-log"].([]any) {
		delete(e.(map[string]any), "timestamp-ms") // each one's clock
	}
	return same(m).(map[string]any)
}

func TestKnown_Views(t *testing.T) {
	t.Parallel()
	for _, d := range viewDifferences() {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			v, err := newView()
			if err != nil {
				t.Fatal(err)
			}
			_, ourErr := ourView(v, 2, d.commit)
			_, theirErr := theirView(v.Bytes(), d.commit)
			if (ourErr == nil) != (d.ours == accepts) || (theirErr == nil) != (d.theirs == accepts) {
				t.Fatalf("ours: %v, iceberg-go: %v; want that it %s and we %s", ourErr, theirErr, d.theirs, d.ours)
			}
			if d.theirs == refuses && !strings.Contains(theirErr.Error(), d.text) {
				t.Errorf("iceberg-go: %v, want %q", theirErr, d.text)
			}
		})
	}
}
