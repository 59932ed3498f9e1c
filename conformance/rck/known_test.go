package rck_test

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
)

// difference is one between catalogd and the reference server that shall be.
type difference struct {
	why string
	// What they answered, as [reply.String] says it.
	ours, theirs *regexp.Regexp
	// Tells whether it is all that two documents differ in; nil if not both have to accept.
	document func(ours, theirs map[string]any) bool
	// Commits to a new table, of format version 2, of which the last one shows the difference.
	example []string
}

var accepted = regexp.MustCompile(`^200$`)

var known = []difference{
	{
		why:  "encryption keys begin with format version 3",
		ours: regexp.MustCompile(`^400 .*encryption key: not supported until v3`), theirs: accepted,
		example: []string{commitOf(update("add-encryption-key", "encryption-key", map[string]string{"key-id": "k", "encrypted-key-metadata": "c2VjcmV0"}))},
	},
	{
		why:  "statistics of a snapshot that the table does not have describe nothing",
		ours: regexp.MustCompile(`^400 Cannot set statistics for unknown snapshot`), theirs: accepted,
		example: []string{commitOf(update("set-partition-statistics", "partition-statistics",
			map[string]any{"snapshot-id": 404, "statistics-path": here + "/p.parquet", "file-size-in-bytes": 1}))},
	},
	{
		why:  "every update has to be valid by itself, also if a later one makes up for it",
		ours: regexp.MustCompile(`^400 Cannot set default (partition spec|sort order) to unknown`), theirs: regexp.MustCompile(`^200|^500 .*"(spec|sortOrder)" is null`),
		example: []string{commitOf(update("set-default-spec", "spec-id", 7), update("set-default-spec", "spec-id", 0))},
	},
	{
		why:  "a partition field without an id gets one that no other field had",
		ours: accepted, theirs: accepted, document: sharedFieldID,
		example: []string{
			commitOf(update("add-spec", "spec", raw(`{"spec-id":0,"fields":[{"source-id":2,"name":"p","transform":"month"}]}`))),
			commitOf(update("add-spec", "spec", raw(`{"spec-id":0,"fields":[{"source-id":1,"name":"q","transform":"bucket[8]"}]}`))),
		},
	},
	{
		why:  "what the client asked for in vain is not the server's failure",
		ours: regexp.MustCompile(`^400 (Cannot replace view due to loss|Invalid schema for v)`), theirs: regexp.MustCompile(`^500 (Cannot replace view due to loss|Invalid schema for v)`),
		example: []string{commitOf(update("add-schema", "schema",
			raw(`{"type":"struct","schema-id":1,"fields":[{"id":1,"name":"id","required":true,"type":"long"},{"id":9,"name":"n","required":false,"type":"timestamp_ns"}]}`)))},
	},
	{
		why:  "removing snapshots from a table without any changes nothing",
		ours: accepted, theirs: regexp.MustCompile(`^400 arraySize cannot be negative`),
		example: []string{commitOf(update("remove-snapshots", "snapshot-ids", []int{404}))},
	},
	{
		why:  "the last added schema, spec, order or version is the one that the commit named last, also if it was there before",
		ours: accepted, theirs: regexp.MustCompile(`^400 Cannot set last (added (schema|spec|sort order)|version id)`),
		example: []string{commitOf(update("add-spec", "spec", raw(`{"spec-id":0,"fields":[]}`)), update("set-default-spec", "spec-id", -1))},
	},
	{
		why:  "an impossible transform is a mistake in the request, not a lack of the server",
		ours: regexp.MustCompile(`^400 `), theirs: regexp.MustCompile(`^406 Cannot `),
		example: []string{commitOf(update("add-spec", "spec", raw(`{"spec-id":0,"fields":[{"source-id":2,"field-id":1000,"name":"p","transform":"truncate[10]"}]}`)))},
	},
	{
		why:  "requirements are checked in their order, also those of a create",
		ours: regexp.MustCompile(`^409 Requirement failed`), theirs: regexp.MustCompile(`^400 Invalid create requirements`),
		example: []string{`{"requirements":[{"type":"assert-current-schema-id","current-schema-id":7},{"type":"assert-create"}],"updates":[]}`},
	},
}

func commitOf(updates ...string) string {
	return `{"requirements":[],"updates":[` + strings.Join(updates, ",") + `]}`
}

// find returns the known difference that explains two answers.
func find(ours, theirs *reply) *difference {
	for i := range known {
		k := &known[i]
		if k.document == nil && k.ours.MatchString(ours.String()) && k.theirs.MatchString(theirs.String()) {
			return k
		}
	}
	return nil
}

// findInDocuments is find for two accepted commits.
func findInDocuments(ours, theirs map[string]any) *difference {
	for i := range known {
		if k := &known[i]; k.document != nil && k.document(ours, theirs) {
			return k
		}
	}
	return nil
}

// sharedFieldID tells whether the reference server gave a partition field the id of another
// one, and the documents differ in nothing else.
func sharedFieldID(ours, theirs map[string]any) bool {
	fields := map[json.Number][]any{} // by id: source and transform
	shared := false
	specs, _ := theirs["partition-specs"].([]any)
	for _, spec := range specs {
		list, _ := spec.(map[string]any)["fields"].([]any)
		for _, f := range list {
			field := f.(map[string]any)
			id, what := field["field-id"].(json.Number), []any{field["source-id"], field["transform"]}
			shared = shared || fields[id] != nil && !slices.Equal(fields[id], what)
			fields[id] = what
		}
	}
	rest := cmp.FilterPath(func(p cmp.Path) bool {
		key, ok := p.Last().(cmp.MapIndex)
		return ok && slices.Contains([]string{"partition-specs", "partition-spec", "last-partition-id"}, key.Key().String())
	}, cmp.Ignore())
	return shared && cmp.Equal(ours, theirs, rest)
}
