package mv_test

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/catalogd/catalogd/catalog"
	"github.com/catalogd/catalogd/mv"
)

func states() *rapid.Generator[mv.RefreshState] {
	return rapid.Custom(func(t *rapid.T) mv.RefreshState {
		s := mv.RefreshState{ViewVersionID: rapid.IntRange(0, math.MaxInt32).Draw(t, "version"), StartTimestamp: rapid.Int64().Draw(t, "start")}
		for range rapid.IntRange(0, 4).Draw(t, "sources") {
			src := mv.SourceState{
				Type: rapid.SampledFrom([]string{"table", "view"}).Draw(t, "type"), Catalog: rapid.String().Draw(t, "catalog"),
				Namespace: rapid.SliceOfN(rapid.String(), 1, 3).Draw(t, "ns"), Name: rapid.String().Draw(t, "name"), UUID: rapid.StringN(1, 9, -1).Draw(t, "uuid"),
			}
			if src.Type == "table" {
				src.SnapshotID = rapid.Int64().Draw(t, "snapshot")
				src.Ref = rapid.SampledFrom([]string{"", "audit"}).Draw(t, "ref")
			} else {
				src.VersionID = rapid.IntRange(0, 99).Draw(t, "view version")
			}
			s.Sources = append(s.Sources, src)
		}
		if rapid.Bool().Draw(t, "schemas") {
			s.Schemas = map[string]int{"u": rapid.IntRange(0, 9).Draw(t, "schema")}
		}
		return s
	})
}

func TestRefreshStateRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		want := states().Draw(rt, "state")
		summary, err := mv.EncodeRefreshState(want, mv.StateOptions{Older: rapid.Bool().Draw(rt, "older")})
		if err != nil {
			rt.Fatal(err)
		}
		got, err := mv.DecodeRefreshState(summary)
		if err != nil {
			rt.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			rt.Fatalf("round trip (-want +got):\n%s", diff)
		}
	})
}

func TestEncodeRefreshStateWire(t *testing.T) {
	t.Parallel()
	s := mv.RefreshState{ViewVersionID: 1, StartTimestamp: 1573518435000, Sources: []mv.SourceState{
		{Type: "table", Namespace: []string{"default"}, Name: "events", UUID: "d4a1", SnapshotID: 6148331192489823102},
		{Type: "table", Namespace: []string{"default"}, Name: "never_written", UUID: "e5b2", SnapshotID: mv.NoSnapshot},
		{Type: "view", Namespace: []string{"a", "b"}, Name: "v", UUID: "f6c3", VersionID: 7},
	}}
	for _, older := range []bool{false, true} {
		summary, err := mv.EncodeRefreshState(s, mv.StateOptions{Older: older})
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]json.RawMessage
		if err := json.Unmarshal([]byte(summary["refresh-state"]), &got); err != nil {
			t.Fatal(err)
		}
		want := map[string]string{
			"view-version-id": `1`, "refresh-start-timestamp-ms": `1573518435000`,
			"source-states": `[{"type":"table","namespace":["default"],"name":"events","uuid":"d4a1","snapshot-id":6148331192489823102},` +
				`{"type":"table","namespace":["default"],"name":"never_written","uuid":"e5b2","snapshot-id":-1},` +
				`{"type":"view","namespace":["a","b"],"name":"v","uuid":"f6c3","version-id":7}]`,
		}
		if older {
			want["source-table-states"] = `[{"uuid":"d4a1","snapshot-id":6148331192489823102},{"uuid":"e5b2","snapshot-id":-1}]`
			want["source-view-states"] = `[{"uuid":"f6c3","version-id":7}]`
		}
		text := map[string]string{}
		for k, v := range got {
			text[k] = string(v)
		}
		if diff := cmp.Diff(want, text); diff != "" {
			t.Errorf("older=%v (-want +got):\n%s", older, diff)
		}
	}
}

func TestDecodeRefreshStateForms(t *testing.T) {
	t.Parallel()
	const older = `{"view-version-id":3,"source-table-states":[{"uuid":"t","snapshot-id":9007199254740993}],"source-view-states":[{"uuid":"v","version-id":2}],"refresh-start-timestamp-ms":5}`
	fromOlder := mv.RefreshState{ViewVersionID: 3, StartTimestamp: 5, Sources: []mv.SourceState{
		{Type: "table", UUID: "t", SnapshotID: 9007199254740993}, {Type: "view", UUID: "v", VersionID: 2},
	}}
	quoted, err := json.Marshal(older)
	if err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		name    string
		summary map[string]string
		want    mv.RefreshState
	}{
		{"older", map[string]string{"refresh-state": older}, fromOlder},
		{"string in a string", map[string]string{"refresh-state": string(quoted)}, fromOlder},
		{"first draft", map[string]string{"refresh-state": `{"refresh-version-id":4,"source-table-states":[],"refresh-start-timestamp-ms":6}`}, mv.RefreshState{ViewVersionID: 4, StartTimestamp: 6}},
		{"lists beside", map[string]string{
			"refresh-state": `{"view-version-id":3,"refresh-start-timestamp-ms":5}`, "source-table-states": `[{"uuid":"t","snapshot-id":9007199254740993}]`,
			"source-view-states": `[{"uuid":"v","version-id":2}]`,
		}, fromOlder},
		{"new form wins", map[string]string{"refresh-state": `{"view-version-id":1,"refresh-start-timestamp-ms":2,"source-states":[],"source-table-states":[{"uuid":"x","snapshot-id":1}],"future":{"a":1}}`}, mv.RefreshState{ViewVersionID: 1, StartTimestamp: 2}},
		{"unknown members", map[string]string{"refresh-state": `{"view-version-id":1,"refresh-start-timestamp-ms":2,"source-states":[{"type":"table","uuid":"u","snapshot-id":-1,"name":"n","namespace":["a"],"more":[1]}]}`}, mv.RefreshState{
			ViewVersionID: 1, StartTimestamp: 2, Sources: []mv.SourceState{{Type: "table", UUID: "u", SnapshotID: -1, Name: "n", Namespace: []string{"a"}}},
		}},
	}
	for _, c := range cases {
		got, err := mv.DecodeRefreshState(c.summary)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestDecodeRefreshStateRefuses(t *testing.T) {
	t.Parallel()
	if _, err := mv.DecodeRefreshState(map[string]string{"operation": "append"}); catalog.KindOf(err) != catalog.KindNotFound {
		t.Errorf("no state = %v, want KindNotFound", err)
	}
	for _, text := range []string{
		"", "{", "null", "[]", `"null"`, `{}`, `{"view-version-id":1}`, `{"view-version-id":"1","refresh-start-timestamp-ms":1}`,
		`{"view-version-id":1,"refresh-start-timestamp-ms":1,"source-states":[{"type":"table","uuid":"u"}]}`,
		`{"view-version-id":1,"refresh-start-timestamp-ms":1,"source-states":[{"type":"view","uuid":"u"}]}`,
		`{"view-version-id":1,"refresh-start-timestamp-ms":1,"source-states":[{"type":"table","snapshot-id":1}]}`,
		`{"view-version-id":1,"refresh-start-timestamp-ms":1,"source-states":[{"type":"stream","uuid":"u"}]}`,
		`{"view-version-id":1,"refresh-start-timestamp-ms":1,"source-states":[{"type":"table","uuid":"u","snapshot-id":1e30}]}`,
	} {
		if got, err := mv.DecodeRefreshState(map[string]string{"refresh-state": text}); catalog.KindOf(err) != catalog.KindUnprocessable {
			t.Errorf("DecodeRefreshState(%s) = %+v, %v, want KindUnprocessable", text, got, err)
		}
	}
}

func TestBaseRoundTrip(t *testing.T) {
	t.Parallel()
	for _, want := range []map[string]int64{{}, {"a": math.MaxInt64, "b": mv.NoSnapshot, "c": 9007199254740993}} {
		text, err := mv.EncodeBase(want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := mv.DecodeBase(text)
		if err != nil || !cmp.Equal(got, want) {
			t.Errorf("DecodeBase(%s) = %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "null", "[1]", `{"a":"x"}`} {
		if _, err := mv.DecodeBase(text); catalog.KindOf(err) != catalog.KindUnprocessable {
			t.Errorf("DecodeBase(%q) = %v, want KindUnprocessable", text, err)
		}
	}
}
