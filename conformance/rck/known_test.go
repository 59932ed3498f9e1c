package rck_test

import (
	"encoding/json"
	"regexp"
	"slices"

	"github.com/google/go-cmp/cmp"
)

// difference is one between catalogd and the reference server that shall be.
type difference struct {
	why string
	// What they answered, as [reply.String] says it.
	ours, theirs *regexp.Regexp
	// Tells whether it is all that two documents differ in; nil if not both have to accept.
	document func(ours, theirs map[string]any) bool
}

var accepted = regexp.MustCompile(`^200$`)

var known = []difference{
	{
		why:  "encryption keys begin with format version 3",
		ours: regexp.MustCompile(`^400 .*encryption key: not supported until v3`), theirs: accepted,
	},
	{
		why:  "statistics of a snapshot that the table does not have describe nothing",
		ours: regexp.MustCompile(`^400 Cannot set statistics for unknown snapshot`), theirs: accepted,
	},
	{
		why:  "every update has to be valid by itself, also if a later one makes up for it",
		ours: regexp.MustCompile(`^400 Cannot set default (partition spec|sort order) to unknown`), theirs: regexp.MustCompile(`^200|^500 .*"(spec|sortOrder)" is null`),
	},
	{
		why:  "a partition field without an id gets one that no other field had",
		ours: accepted, theirs: accepted, document: sharedFieldID,
	},
	{
		why:  "what the client asked for in vain is not the server's failure",
		ours: regexp.MustCompile(`^400 (Cannot replace view due to loss|Invalid schema for v)`), theirs: regexp.MustCompile(`^500 (Cannot replace view due to loss|Invalid schema for v)`),
	},
	{
		why:  "removing snapshots from a table without any changes nothing",
		ours: accepted, theirs: regexp.MustCompile(`^400 arraySize cannot be negative`),
	},
	{
		why:  "the last added schema, spec, order or version is the one that the commit named last, also if it was there before",
		ours: accepted, theirs: regexp.MustCompile(`^400 Cannot set last (added (schema|spec|sort order)|version id)`),
	},
	{
		why:  "an impossible transform is a mistake in the request, not a lack of the server",
		ours: regexp.MustCompile(`^400 (Invalid source type|Cannot partition by non-primitive)`), theirs: regexp.MustCompile(`^406 Cannot`),
	},
	{
		why:  "requirements are checked in their order, also those of a create",
		ours: regexp.MustCompile(`^409 Requirement failed`), theirs: regexp.MustCompile(`^400 Invalid create requirements`),
	},
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
