package difftest

import (
	"fmt"
	"slices"
	"strings"
)

// verdict is what somebody says to a commit.
type verdict string

const (
	accepts verdict = "accepts"
	refuses verdict = "refuses"
)

// difference is a place where we and iceberg-go v0.7.0 differ on purpose: because it has a
// bug, because it is stricter or laxer than Java, or because we are. If both take the
// commit, excuse says whether the two documents differ in that way only.
type difference struct {
	name         string
	ours, theirs verdict
	text         string // part of the error of whoever refuses
	version      int
	before       []string // commits that lead there, each of one update
	commit       []string // one that shows the difference
	excuse       func(theirs, ours map[string]any) bool
}

func snapshot(id, parent, sequence, second string) string {
	if parent != "" {
		parent = `"parent-snapshot-id":` + parent + `,`
	}
	return `{"action":"add-snapshot","snapshot":{"snapshot-id":` + id + `,` + parent + `"sequence-number":` + sequence + `,"timestamp-ms":170000` + second + `000,` +
		`"manifest-list":"file:///m","schema-id":0,"summary":{"operation":"append"}}}`
}

func mainOn(id string) string {
	return `{"action":"set-snapshot-ref","ref-name":"main","type":"branch","snapshot-id":` + id + `}`
}

func spec(fields string) string {
	return `{"action":"add-spec","spec":{"spec-id":1,"fields":[` + fields + `]}}`
}

func key(more string) string {
	return `{"action":"add-encryption-key","encryption-key":{"key-id":"k1","encrypted-key-metadata":"c2VjcmV0"` + more + `}}`
}

// The commits that several differences begin with.
var (
	first      = snapshot("1", "", "1", "0001")
	mainOnOne  = mainOn("1")
	bucketSpec = spec(`{"source-id":1,"field-id":1001,"name":"b","transform":"bucket[4]"}`)
)

// viewDifferences are all known ones for views, which all have a version "select 1" and
// then, as the current one, a version "select 2".
func viewDifferences() []difference {
	return []difference{
		{name: "an update without a payload panics", ours: refuses, theirs: refuses, text: "panic: ", commit: []string{`{"action":"add-view-version"}`}},
		{name: "back to an earlier version", ours: accepts, theirs: refuses, text: "duplicate version", commit: []string{addVersion(9, 0, "select 1", ""), setCurrent(-1)}},
		{name: "a known schema counts as the last added", ours: accepts, theirs: refuses, text: "no schema has been added", commit: []string{addViewSchema(0), addVersion(9, -1, "select 3", ""), setCurrent(-1)}},
		{name: "a representation that is no SQL", ours: accepts, theirs: refuses, text: "type should be", commit: []string{strings.Replace(addVersion(9, 0, "select 3", ""), `"representations":[`, `"representations":[{"type":"plan","plan":{}},`, 1), setCurrent(-1)}},
		{name: "the location is emptied for a moment", ours: refuses, theirs: accepts, text: "it must not be empty", commit: []string{`{"action":"set-location","location":""}`, `{"action":"set-location","location":"file:///w/ns/v"}`}},
		{name: "a length of the history that is no number", ours: refuses, theirs: accepts, text: "must be positive", commit: []string{`{"action":"set-properties","updates":{"version.history.num-entries":"x"}}`}},
	}
}

// tableDifferences are all known ones for tables. TestKnown shows each.
func tableDifferences() []difference {
	return []difference{
		// What iceberg-go refuses and Java takes.
		{name: "the current snapshot is removed", ours: accepts, theirs: refuses, text: "current snapshot cannot be removed", version: 2, before: []string{first, mainOnOne}, commit: []string{`{"action":"remove-snapshots","snapshot-ids":[1]}`}},
		{name: "a missing ref is removed", ours: accepts, theirs: refuses, text: "snapshot ref not found", version: 2, commit: []string{`{"action":"remove-snapshot-ref","ref-name":"b"}`}},
		{name: "a reserved property is set", ours: accepts, theirs: refuses, text: "reserved property", version: 2, commit: []string{`{"action":"set-properties","updates":{"uuid":"x"}}`}},
		{name: "a rollback before a snapshot", ours: accepts, theirs: refuses, text: "before last snapshot timestamp", version: 2, before: []string{first, mainOnOne, snapshot("2", "1", "2", "0002"), mainOn("2")}, commit: []string{mainOn("1"), snapshot("3", "2", "3", "0003")}},
		{name: "a default for writers before version 3", ours: accepts, theirs: refuses, text: "invalid write default for", version: 2, commit: []string{`{"action":"add-schema","schema":{"type":"struct","fields":[{"id":1,"name":"id","required":true,"type":"long","write-default":5}]}}`}},
		{name: "a void field whose source is gone", ours: accepts, theirs: refuses, text: "cannot find source column", version: 2, commit: []string{spec(`{"source-id":99,"field-id":1001,"name":"v","transform":"void"}`)}},
		{name: "a source is partitioned by twice", ours: accepts, theirs: refuses, text: "redundant partition field", version: 2, commit: []string{spec(`{"source-id":1,"field-id":1001,"name":"a","transform":"bucket[4]"},{"source-id":1,"field-id":1002,"name":"b","transform":"bucket[4]"}`)}},

		// What iceberg-go takes and Java or we refuse.
		{name: "the UUID is changed", ours: refuses, theirs: accepts, text: "Cannot reassign uuid", version: 2, commit: []string{`{"action":"assign-uuid","uuid":"` + otherUUID + `"}`}},
		{name: "the location is emptied", ours: refuses, theirs: accepts, text: "Cannot set location: it must not be empty", version: 2, commit: []string{`{"action":"set-location","location":""}`}},
		{name: "statistics of no snapshot", ours: refuses, theirs: accepts, text: "statistics for unknown snapshot", version: 2, commit: []string{`{"action":"set-partition-statistics","partition-statistics":{"snapshot-id":5,"statistics-path":"p","file-size-in-bytes":1}}`}},
		{name: "a sequence number in version 1", ours: refuses, theirs: accepts, text: "Sequence number must be 0 in v1", version: 1, commit: []string{first}},
		{name: "main becomes a tag", ours: refuses, theirs: accepts, text: "Cannot set main to a tag", version: 2, before: []string{first}, commit: []string{`{"action":"set-snapshot-ref","ref-name":"main","type":"tag","snapshot-id":1}`}},

		{name: "a list is partitioned by", ours: refuses, theirs: accepts, text: "Cannot partition by non-primitive source field", version: 2, commit: []string{spec(`{"source-id":3,"field-id":1001,"name":"l","transform":"bucket[4]"}`)}},
		{name: "a transform that does not fit its source", ours: refuses, theirs: accepts, text: "Invalid source type", version: 2, commit: []string{spec(`{"source-id":1,"field-id":1001,"name":"h","transform":"hour"}`)}},
		{name: "a column that the default spec needs goes", ours: refuses, theirs: accepts, text: "Cannot find source column for partition field", version: 2, commit: []string{`{"action":"add-schema","schema":{"type":"struct","fields":[{"id":1,"name":"id","required":true,"type":"long"}]}}`, `{"action":"set-current-schema","schema-id":-1}`}},
		{name: "no age of a ref", ours: refuses, theirs: accepts, text: "must be greater than 0", version: 2, before: []string{first}, commit: []string{`{"action":"set-snapshot-ref","ref-name":"t","type":"tag","snapshot-id":1,"max-ref-age-ms":0}`}},
		{name: "a limit of the log that is no number", ours: refuses, theirs: accepts, text: "is not a number", version: 2, commit: []string{`{"action":"set-properties","updates":{"write.metadata.previous-versions-max":"x"}}`}},

		// Documents that differ although both take the commit.
		{name: "a replacement takes the sequence number back", ours: accepts, theirs: accepts, version: 2, before: []string{first, mainOnOne, snapshot("2", "1", "2", "0002"), mainOn("2")}, commit: []string{snapshot("3", "", "1", "0003")}, excuse: excuseSequence},
		{name: "a key replaces one with its id", ours: accepts, theirs: accepts, version: 3, before: []string{key("")}, commit: []string{key(`,"properties":{"a":"b"}`)}, excuse: excuseKeys},
		{name: "an equal spec under another id is added twice", ours: accepts, theirs: accepts, version: 2, before: []string{bucketSpec}, commit: []string{strings.Replace(bucketSpec, `"spec-id":1`, `"spec-id":5`, 1)}, excuse: excuseSpecs},
		{name: "field ids that were left out collide", ours: accepts, theirs: accepts, version: 2, commit: []string{strings.Replace(bucketSpec, `"field-id":1001,`, ``, 1)}, excuse: excuseSpecs},
		{name: "all sources of a transform but the first are lost", ours: accepts, theirs: accepts, version: 3, commit: []string{`{"action":"add-spec","spec":{"spec-id":1,"fields":[{"source-ids":[1,2],"field-id":1001,"name":"z","transform":"zorder"}]}}`}, excuse: excuseSpecs},
	}
}

// specMembers are the members that a spec which iceberg-go got wrong changes. The log may differ too: what one of them adds can be nothing new to the other.
var specMembers = []string{"partition-specs", "default-spec-id", "last-partition-id", "partition-spec", "metadata-log"}

// excuseSpecs holds if nothing but the specs differs, and theirs show one of the bugs: two
// specs with the same fields, two fields with one id, or a field that has lost a source.
func excuseSpecs(theirs, ours map[string]any) bool {
	bug := false
	seen, ids := map[string]bool{}, map[string]string{}
	for _, s := range theirs["partition-specs"].([]any) {
		fields := s.(map[string]any)["fields"]
		bug = bug || seen[compact(fields)]
		seen[compact(fields)] = true
		for _, f := range fields.([]any) {
			f := f.(map[string]any)
			id, what := compact(f["field-id"]), compact(f["source-id"])+compact(f["transform"])
			bug = bug || ids[id] != "" && ids[id] != what
			ids[id] = what
		}
	}
	bug = bug || strings.Contains(compact(ours["partition-specs"]), `"source-ids"`)
	return bug && onlyIn(theirs, ours, specMembers...)
}

// onlyIn reports whether two documents are the same but for some members.
func onlyIn(theirs, ours map[string]any, members ...string) bool {
	for name := range ours {
		if !slices.Contains(members, name) && compact(theirs[name]) != compact(ours[name]) {
			return false
		}
	}
	return true
}

// excuseSequence holds if nothing but the last sequence number differs, and theirs is the
// lower one.
func excuseSequence(theirs, ours map[string]any) bool {
	const name = "last-sequence-number"
	return onlyIn(theirs, ours, name) && fmt.Sprintf("%9s", theirs[name]) < fmt.Sprintf("%9s", ours[name])
}

// excuseKeys holds if nothing but the encryption keys differs, and not in their ids.
func excuseKeys(theirs, ours map[string]any) bool {
	const name = "encryption-keys"
	ids := func(m map[string]any) (out []string) {
		for _, k := range m[name].([]any) {
			out = append(out, compact(k.(map[string]any)["key-id"]))
		}
		slices.Sort(out)
		return out
	}
	return onlyIn(theirs, ours, name, "metadata-log") && slices.Equal(ids(theirs), ids(ours))
}

// known finds the reason why one side refuses a commit that the other takes.
func known(all []difference, ours, theirs error) bool {
	return slices.ContainsFunc(all, func(d difference) bool {
		switch {
		case ours == nil && theirs != nil:
			return d.theirs == refuses && strings.Contains(theirs.Error(), d.text)
		case ours != nil && theirs == nil:
			return d.ours == refuses && strings.Contains(ours.Error(), d.text)
		}
		return false
	})
}

func excused(all []difference, theirs, ours map[string]any) bool {
	return slices.ContainsFunc(all, func(d difference) bool { return d.excuse != nil && d.excuse(theirs, ours) })
}
