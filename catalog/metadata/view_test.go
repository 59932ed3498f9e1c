package metadata_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/apache/iceberg-go/view"

	"github.com/catalogd/catalogd/catalog/metadata"
)

const viewSchema = `{"type":"struct","schema-id":4,"x-schema":1,"fields":[{"id":0,"name":"id","required":false,"type":"long","x-field":1}]}`

// viewVersion is a view version with one SQL text; extra members go in as they are.
func viewVersion(id, schema int, sql, extra string) string {
	return fmt.Sprintf(`{"version-id":%d,"timestamp-ms":%d,"schema-id":%d,"summary":{"engine-name":"spark"},"default-namespace":["ns"],`+
		`"representations":[{"type":"sql","sql":%q,"dialect":"spark","x-repr":1}]%s}`, id, baseMS+int64(id), schema, sql, extra)
}

func addVersion(id, schema int, sql, extra string) string {
	return `{"action":"add-view-version","view-version":` + viewVersion(id, schema, sql, extra) + `}`
}

func setCurrent(id int) string {
	return fmt.Sprintf(`{"action":"set-current-view-version","view-version-id":%d}`, id)
}

// newView makes a view from a request body with the extra members.
func newView(t testing.TB, extra string) *metadata.View {
	t.Helper()
	version := viewVersion(9, 4, "select 1", `,"x-version":1`)
	v, err := metadata.NewView(metadata.NewViewRequest{
		UUID: viewUUID, Location: "file:///w/ns/v", Schema: json.RawMessage(viewSchema), ViewVersion: json.RawMessage(version),
		Properties: map[string]string{"comment": "c"}, Now: at(0),
		Body: json.RawMessage(`{"name":"v","location":"file:///w/ns/v","schema":` + viewSchema + `,"view-version":` + version + `,"properties":{"comment":"c"}` + extra + `}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	return reparseView(t, v)
}

func reparseView(t testing.TB, v *metadata.View) *metadata.View {
	t.Helper()
	out, err := metadata.ParseView(v.Bytes())
	if err != nil {
		t.Fatalf("ParseView of our own output: %v\n%s", err, v.Bytes())
	}
	if _, err := view.ParseMetadataBytes(v.Bytes()); err != nil {
		t.Errorf("iceberg-go: %v\n%s", err, v.Bytes())
	}
	return out
}

func applyView(t testing.TB, v *metadata.View, second int64, updates ...string) {
	t.Helper()
	if err := v.Apply(raws(updates...), metadata.ApplyContext{Now: at(second)}); err != nil {
		t.Fatalf("Apply: %v", err)
	}
}

func TestNewView(t *testing.T) {
	t.Parallel()
	v := newView(t, `,"x-top":[1.0],"max-staleness-ms":60000,"versions":"ignored"`)
	cur := v.CurrentVersion()
	if v.CurrentVersionID() != 1 || cur.ID != 1 || cur.SchemaID != 0 || cur.TimestampMS != baseMS+9 || cur.DefaultNamespace[0] != "ns" ||
		cur.Summary["engine-name"] != "spark" || len(cur.Representations) != 1 || cur.Representations[0].Dialect != "spark" || cur.StorageTable != nil {
		t.Errorf("CurrentVersion() = %+v", cur)
	}
	want := `{"comment":"c","max-staleness-ms":"60000"}`
	if got := compact(member(t, v.Bytes(), "properties")); got != want {
		t.Errorf("properties = %s, want %s", got, want)
	}
	if string(v.MaxStaleness()) != "60000" || v.UUID() != viewUUID || v.Location() != "file:///w/ns/v" {
		t.Errorf("max-staleness-ms %s, uuid %s, location %s", v.MaxStaleness(), v.UUID(), v.Location())
	}
	if got := compact(member(t, v.Bytes(), "version-log")); got != fmt.Sprintf(`[{"timestamp-ms":%d,"version-id":1}]`, baseMS+9) {
		t.Errorf("version-log = %s", got)
	}
	if s, ok := v.Schema(0); !ok || !strings.Contains(string(s), `"id":0`) {
		t.Errorf("field ids of a view are the client's: %s", s)
	}
}

func TestView_UnknownMembersSurvive(t *testing.T) {
	t.Parallel()
	v := newView(t, `,"x-top":[1.0],"max-staleness-ms":null`)
	applyView(t, v, 1, `{"action":"set-properties","updates":{"a":"1"}}`)
	v = reparseView(t, v)
	applyView(t, v, 2, addVersion(2, 0, "select 2", `,"storage-table":{"namespace":["ns"],"name":"s","x-st":1},"x-v2":1e400`), setCurrent(-1))
	v = reparseView(t, v)
	applyView(t, v, 3, `{"action":"set-location","location":"file:///elsewhere"}`)
	if err := v.SetStorageTable(2, metadata.StorageTable{Namespace: []string{"ns"}, Name: "s2"}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"x-top":[1.0]`, `"x-schema":1`, `"x-field":1`, `"x-version":1`, `"x-repr":1`, `"x-st":1`, `"x-v2":1e400`, `"max-staleness-ms":null`, `"name":"s2"`} {
		if !strings.Contains(string(v.Bytes()), want) {
			t.Errorf("lost %s\n%s", want, v.Bytes())
		}
	}
	if st := reparseView(t, v).CurrentVersion().StorageTable; st == nil || st.Name != "s2" || st.Namespace[0] != "ns" {
		t.Errorf("StorageTable = %+v", st)
	}
}

func TestView_Versions(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		updates []string
		current int
		ids     []int
		log     string // version ids in the log
	}{
		"replace":            {[]string{addVersion(2, 0, "select 2", ""), setCurrent(-1)}, 2, []int{1, 2}, "1 2"},
		"id taken":           {[]string{addVersion(1, 0, "select 2", ""), setCurrent(-1)}, 2, []int{1, 2}, "1 2"},
		"reused":             {[]string{addVersion(7, 0, "select 1", ""), setCurrent(-1)}, 1, []int{1}, "1"},
		"storage table":      {[]string{addVersion(2, 0, "select 1", `,"storage-table":{"namespace":["ns"],"name":"s"}`), setCurrent(-1)}, 2, []int{1, 2}, "1 2"},
		"new unknown member": {[]string{addVersion(2, 0, "select 1", `,"x-new":1`), setCurrent(-1)}, 2, []int{1, 2}, "1 2"},
		"schema -1": {[]string{
			`{"action":"add-schema","schema":{"type":"struct","fields":[{"id":0,"name":"n","required":false,"type":"int"}]}}`,
			addVersion(2, -1, "select 2", ""), setCurrent(-1),
		}, 2, []int{1, 2}, "1 2"},
		"schema -1 of a known schema": {[]string{`{"action":"add-schema","schema":` + viewSchema + `}`, addVersion(2, -1, "select 2", ""), setCurrent(-1)}, 2, []int{1, 2}, "1 2"},
		"not made current":            {[]string{addVersion(2, 0, "select 2", "")}, 1, []int{1, 2}, "1"},
		"last change counts":          {[]string{addVersion(2, 0, "select 2", ""), setCurrent(-1), addVersion(3, 0, "select 3", ""), setCurrent(3)}, 3, []int{1, 2, 3}, "1 3"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newView(t, "")
			applyView(t, v, 5, c.updates...)
			v = reparseView(t, v)
			var ids []int
			for _, ver := range v.Versions() {
				ids = append(ids, ver.ID)
			}
			var log []string
			for _, e := range member(t, v.Bytes(), "version-log").([]any) {
				log = append(log, compact(e.(map[string]any)["version-id"]))
			}
			if v.CurrentVersionID() != c.current || !slices.Equal(ids, c.ids) || strings.Join(log, " ") != c.log {
				t.Errorf("current %d, versions %v, log %v; want %d, %v, %s", v.CurrentVersionID(), ids, log, c.current, c.ids, c.log)
			}
		})
	}
}

// A schema that the view had already is the last added one only if the commit adds none.
func TestView_LastAddedSchema(t *testing.T) {
	t.Parallel()
	schema := func(id int) string {
		return fmt.Sprintf(`{"action":"add-schema","schema":{"type":"struct","fields":[{"id":%d,"name":"n","required":false,"type":"int"}]}}`, id)
	}
	for name, c := range map[string]struct {
		updates []string
		want    int
	}{
		"known":           {[]string{schema(7)}, 2},
		"known, known":    {[]string{schema(6), schema(7)}, 2},
		"new, known":      {[]string{schema(8), schema(7)}, 3},
		"known, new":      {[]string{schema(7), schema(8)}, 3},
		"new, new, known": {[]string{schema(8), schema(9), schema(7)}, 4},
	} {
		v := newView(t, "")
		applyView(t, v, 1, schema(6), schema(7)) // they get 1 and 2
		applyView(t, v, 2, append(c.updates, addVersion(2, -1, "select 2", ""), setCurrent(-1))...)
		if got := v.CurrentVersion().SchemaID; got != c.want {
			t.Errorf("%s: the version has schema %d, want %d", name, got, c.want)
		}
	}
}

func TestView_RollBack(t *testing.T) {
	t.Parallel()
	v := newView(t, "")
	applyView(t, v, 5, addVersion(2, 0, "select 2", ""), setCurrent(-1))
	back := reparseView(t, v)
	applyView(t, back, 60, setCurrent(1))
	again := reparseView(t, v)
	applyView(t, again, 60, addVersion(3, 0, "select 1", ""), setCurrent(-1)) // the same query, sent anew
	for _, v := range []*metadata.View{back, again} {
		log := member(t, v.Bytes(), "version-log").([]any)
		if v.CurrentVersionID() != 1 || len(v.Versions()) != 2 || compact(log[2]) != fmt.Sprintf(`{"timestamp-ms":%d,"version-id":1}`, baseMS+60000) {
			t.Errorf("current %d, log %s", v.CurrentVersionID(), compact(log))
		}
	}
}

func TestView_HistoryIsBounded(t *testing.T) {
	t.Parallel()
	v := newView(t, "")
	applyView(t, v, 1, `{"action":"set-properties","updates":{"version.history.num-entries":"3"}}`)
	for i := 2; i <= 6; i++ {
		applyView(t, v, int64(i), addVersion(i, 0, fmt.Sprintf("select %d", i), ""), setCurrent(-1))
	}
	applyView(t, v, 7, setCurrent(4))
	applyView(t, v, 8, addVersion(9, 0, "select 9", ""))
	var ids []int
	for _, ver := range v.Versions() {
		ids = append(ids, ver.ID)
	}
	if !slices.Equal(ids, []int{4, 6, 9}) || v.CurrentVersionID() != 4 {
		t.Errorf("versions %v, current %d; want 4 (current), 6 and 9", ids, v.CurrentVersionID())
	}
	if log := compact(member(t, v.Bytes(), "version-log")); strings.Contains(log, `"version-id":5`) || !strings.Contains(log, `"version-id":6`) {
		t.Errorf("version-log = %s", log)
	}
	reparseView(t, v)
}

func TestView_UpdatesRefused(t *testing.T) {
	t.Parallel()
	trino := strings.ReplaceAll(addVersion(2, 0, "select 2", ""), `"spark","x-repr"`, `"trino","x-repr"`)
	twice := strings.Replace(trino, `"representations":[`, `"representations":[{"type":"sql","sql":"x","dialect":"TRINO"},`, 1)
	for name, c := range map[string]struct {
		updates []string
		want    string
	}{
		"unknown action":     {[]string{`{"action":"explode"}`}, "Unknown view update action: explode"},
		"table action":       {[]string{`{"action":"add-spec"}`}, "Cannot apply update add-spec to a view"},
		"version payload":    {[]string{`{"action":"add-view-version"}`}, "Cannot parse missing field: view-version"},
		"version null":       {[]string{`{"action":"add-view-version","view-version":null}`}, "Cannot parse missing field: view-version"},
		"schema payload":     {[]string{`{"action":"add-schema"}`}, "Cannot parse missing field: schema"},
		"unknown schema":     {[]string{addVersion(2, 8, "x", "")}, "Cannot add version with unknown schema: 8"},
		"no last schema":     {[]string{addVersion(2, -1, "x", "")}, "Cannot set last added schema: no schema has been added"},
		"no last version":    {[]string{setCurrent(-1)}, "Cannot set last version id: no current version id has been set"},
		"unknown version":    {[]string{setCurrent(8)}, "Cannot set current version to unknown version: 8"},
		"dialect twice":      {[]string{twice}, "Invalid view version: Cannot add multiple queries for dialect trino"},
		"dialect lost":       {[]string{trino, setCurrent(-1)}, "Cannot replace view due to loss of view dialects (replace.drop-dialect.allowed=false):\nPrevious dialects: [spark]\nNew dialects: [trino]"},
		"no representation":  {[]string{strings.Replace(addVersion(2, 0, "x", ""), `"representations":[`, `"representations":[],"r":[`, 1)}, "it has no representation"},
		"sql missing":        {[]string{strings.Replace(addVersion(2, 0, "x", ""), `"sql":"x"`, `"sqll":"x"`, 1)}, "representation: Cannot parse missing string: sql"},
		"namespace missing":  {[]string{strings.Replace(addVersion(2, 0, "x", ""), `default-namespace`, `default-nam`, 1)}, "Cannot parse missing list: default-namespace"},
		"storage table":      {[]string{addVersion(2, 0, "x", `,"storage-table":{"name":"s"}`)}, "storage-table: Cannot parse missing list: namespace"},
		"assign-uuid":        {[]string{`{"action":"assign-uuid","uuid":"` + tableUUID + `"}`}, "Cannot reassign uuid"},
		"upgrade":            {[]string{`{"action":"upgrade-format-version","format-version":2}`}, "Unsupported format version: 2"},
		"location":           {[]string{`{"action":"set-location","location":""}`}, "Invalid location"},
		"history size":       {[]string{`{"action":"set-properties","updates":{"version.history.num-entries":"0"}}`}, "version.history.num-entries must be positive but was 0"},
		"staleness":          {[]string{`{"action":"set-properties","updates":{"max-staleness-ms":"60s"}}`}, `Invalid view property max-staleness-ms: "60s"`},
		"negative staleness": {[]string{`{"action":"set-properties","updates":{"max-staleness-ms":"-1"}}`}, "Invalid view property max-staleness-ms"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantError(t, newView(t, "").Apply(raws(c.updates...), metadata.ApplyContext{Now: at(5)}), false, c.want)
		})
	}
	v := newView(t, "")
	applyView(t, v, 5, `{"action":"set-properties","updates":{"replace.drop-dialect.allowed":"true"}}`, trino, setCurrent(-1))
	if v.CurrentVersion().Representations[0].Dialect != "trino" {
		t.Error("replace.drop-dialect.allowed does not allow it")
	}
}

func TestView_OtherRepresentationsKeepTheirPayload(t *testing.T) {
	t.Parallel()
	v := newView(t, "")
	repr := `{"type":"substrait","plan":"AAEC"}`
	update := strings.Replace(addVersion(2, 0, "select 2", ""), `"representations":[`, `"representations":[`+repr+`,`, 1)
	if err := v.Apply(raws(update, setCurrent(-1)), metadata.ApplyContext{Now: at(5)}); err != nil {
		t.Fatal(err)
	}
	if r := v.CurrentVersion().Representations[0]; string(r.Raw) != repr || r.Type != "substrait" {
		t.Errorf("representation = %+v", r)
	}
}

func TestView_MaxStaleness(t *testing.T) {
	t.Parallel()
	v := newView(t, "")
	state := func() string { return string(v.MaxStaleness()) + " " + v.Properties()["max-staleness-ms"] }
	for _, step := range []struct {
		what string
		do   func() error
		want string
	}{
		{"absent", func() error { return nil }, " "},
		{"set-properties", func() error {
			return v.Apply(raws(`{"action":"set-properties","updates":{"max-staleness-ms":"5"}}`), metadata.ApplyContext{Now: at(1)})
		}, "5 5"},
		{"set-properties unbounded", func() error {
			return v.Apply(raws(`{"action":"set-properties","updates":{"max-staleness-ms":"unbounded"}}`), metadata.ApplyContext{Now: at(1)})
		}, "null unbounded"},
		{"SetMaxStaleness", func() error { n := int64(7); return v.SetMaxStaleness(&n) }, "7 7"},
		{"SetMaxStaleness nil", func() error { return v.SetMaxStaleness(nil) }, "null unbounded"},
		{"SetProperty", func() error { return v.SetProperty("max-staleness-ms", "9") }, "9 9"},
		{"remove-properties", func() error {
			return v.Apply(raws(`{"action":"remove-properties","removals":["max-staleness-ms"]}`), metadata.ApplyContext{Now: at(1)})
		}, " "},
		{"again", func() error { n := int64(0); return v.SetMaxStaleness(&n) }, "0 0"},
		{"RemoveMaxStaleness", func() error { v.RemoveMaxStaleness(); return nil }, " "},
	} {
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.what, err)
		}
		v = reparseView(t, v)
		if got := state(); got != step.want {
			t.Errorf("after %s: member and property %q, want %q", step.what, got, step.want)
		}
		if err := v.CheckMaxStaleness(); err != nil {
			t.Errorf("after %s: %v", step.what, err)
		}
	}
	for extra, want := range map[string]string{`,"max-staleness-ms":5`: "Conflicting max-staleness-ms", `,"max-staleness-ms":-5`: "Invalid max-staleness-ms: -5", `,"max-staleness-ms":null`: "Conflicting"} {
		_, err := metadata.NewView(metadata.NewViewRequest{
			UUID: viewUUID, Location: "l", Schema: json.RawMessage(viewSchema), ViewVersion: json.RawMessage(viewVersion(1, 0, "x", "")),
			Properties: map[string]string{"max-staleness-ms": "6"}, Body: json.RawMessage(`{"name":"v"` + extra + `}`), Now: at(0),
		})
		wantError(t, err, false, want)
	}
	doc := strings.Replace(string(newView(t, `,"max-staleness-ms":5`).Bytes()), `"max-staleness-ms":"5"`, `"max-staleness-ms":"6"`, 1)
	bad, err := metadata.ParseView([]byte(doc))
	if err != nil {
		t.Fatal(err)
	}
	wantError(t, bad.CheckMaxStaleness(), false, "Conflicting max-staleness-ms")
}

func TestView_NoChangeKeepsTheBytes(t *testing.T) {
	t.Parallel()
	doc := []byte(strings.ReplaceAll(string(newView(t, "").Bytes()), `,"`, " ,\n\""))
	v, err := metadata.ParseView(doc)
	if err != nil {
		t.Fatal(err)
	}
	applyView(t, v, 5, `{"action":"set-properties","updates":{"comment":"c"}}`, `{"action":"remove-properties","removals":["zz"]}`,
		`{"action":"assign-uuid","uuid":"`+viewUUID+`"}`, `{"action":"add-schema","schema":`+viewSchema+`}`, addVersion(4, -1, "select 1", ""), setCurrent(-1))
	if err := v.SetProperty("comment", "c"); err != nil {
		t.Fatal(err)
	}
	v.RemoveProperty("zz")
	if v.Changed() || string(v.Bytes()) != string(doc) {
		t.Errorf("Changed() = %v\n%s", v.Changed(), v.Bytes())
	}
	c := v.Clone()
	if err := c.SetProperty("comment", "d"); err != nil || !c.Changed() || v.Properties()["comment"] != "c" {
		t.Errorf("a change of the clone reached the original: %v", err)
	}
}

func TestParseView_Refuses(t *testing.T) {
	t.Parallel()
	good := string(newView(t, "").Bytes())
	for name, c := range map[string]struct{ old, new, want string }{
		"version":         {`"format-version":1`, `"format-version":2`, "Unsupported format version: 2"},
		"uuid":            {`"view-uuid"`, `"view-uid"`, "Cannot parse missing string: view-uuid"},
		"current":         {`"current-version-id":1`, `"current-version-id":2`, "Cannot find current version 2 in view versions"},
		"schema":          {`"schema-id":0,"summary"`, `"schema-id":3,"summary"`, "Cannot find schema with id 3"},
		"versions":        {`"versions":[`, `"versions":{"a":[`, "Cannot parse"},
		"version-log":     {`"version-log"`, `"version-lag"`, "Cannot parse missing list: version-log"},
		"representations": {`"representations":[`, `"representations":[3,`, "representation: Cannot parse a non-object: 3"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			doc := strings.Replace(good, c.old, c.new, 1)
			if doc == good {
				t.Fatal("the case changes nothing")
			}
			_, err := metadata.ParseView([]byte(doc))
			wantError(t, err, false, c.want)
		})
	}
}
