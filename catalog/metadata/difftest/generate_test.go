package difftest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"pgregory.net/rapid"

	"github.com/catalogd/catalogd/catalog/metadata"
)

// generator makes updates and requirements that build on what a table holds, with ids
// that are sometimes wrong.
type generator struct {
	*rapid.T
	table  *metadata.Table
	second int64
	next   int64 // the last id that was given to a snapshot, a column or a name

	sequence, row int64 // what the next snapshot of the commit has
}

func (g *generator) fresh() int64 { g.next++; return g.next }

func pick[V any](g *generator, what string, from ...V) V {
	return rapid.SampledFrom(from).Draw(g.T, what)
}

// rarely is true one time in ten.
func (g *generator) rarely(what string) bool { return rapid.IntRange(0, 9).Draw(g.T, what) == 7 }

// commit makes the updates of one commit.
func (g *generator) commit(t *metadata.Table) []string {
	g.table, g.sequence, g.row = t, t.LastSequenceNumber(), t.NextRowID()
	g.second++
	var updates []string
	for range rapid.IntRange(1, 4).Draw(g.T, "updates") {
		updates = append(updates, g.update()...)
	}
	return updates
}

// update makes one update, or two that belong together.
func (g *generator) update() []string {
	kinds := []func() []string{
		g.snapshot, g.snapshot, g.snapshot, g.snapshot, g.setRef, g.setRef, g.removeRef, g.removeSnapshots, g.schema, g.schema,
		g.spec, g.spec, g.order, g.statistics, g.partitionStatistics, g.encryptionKey, g.properties, g.identity, g.remove, g.choose,
	}
	return kinds[rapid.IntRange(0, len(kinds)-1).Draw(g.T, "kind")]()
}

// one formats an update.
func one(action, format string, args ...any) []string {
	return []string{fmt.Sprintf(`{"action":%q,`+format+`}`, append([]any{action}, args...)...)}
}

// snapshotID is that of a snapshot, mostly one that exists.
func (g *generator) snapshotID() int64 {
	return pick(g, "snapshot", append(g.table.SnapshotIDs(), 424242)...)
}

func (g *generator) snapshot() []string {
	id, version := g.fresh(), g.table.FormatVersion()
	var b strings.Builder
	fmt.Fprintf(&b, `"snapshot-id":%d,"timestamp-ms":%d`, id, at(g.second).UnixMilli()-pick(g, "late", int64(0), 0, 0, 1))
	if parent := g.table.CurrentSnapshotID(); parent > 0 && !g.rarely("no parent") {
		fmt.Fprintf(&b, `,"parent-snapshot-id":%d`, parent)
	}
	if version > 1 || g.rarely("sequence in v1") {
		g.sequence++
		stale := int64(0)
		if g.rarely("stale") {
			stale = 1
		}
		fmt.Fprintf(&b, `,"sequence-number":%d`, g.sequence-stale)
	}
	if version > 2 && !g.rarely("no rows") {
		rows := rapid.Int64Range(0, 9).Draw(g.T, "rows")
		stale := int64(0)
		if g.rarely("stale row") {
			stale = 1
		}
		fmt.Fprintf(&b, `,"first-row-id":%d,"added-rows":%d`, g.row-stale, rows)
		g.row += rows
	}
	if version > 2 && g.rarely("key") {
		b.WriteString(`,"key-id":"k1"`)
	}
	if g.rarely("unknown member") {
		b.WriteString(`,"x-future":[1.50]`)
	}
	if !g.rarely("no schema") {
		fmt.Fprintf(&b, `,"schema-id":%d`, g.table.CurrentSchemaID())
	}
	summary := pick(g, "summary", `{"operation":"append","total-records":"10"}`, `{"operation":"overwrite"}`, `{"operation":"delete","x":"y"}`, `{"operation":"replace"}`)
	fmt.Fprintf(&b, `,"manifest-list":"file:///w/ns/t/metadata/snap-%d.avro","summary":%s`, id, summary)
	out := one("add-snapshot", `"snapshot":{%s}`, b.String())
	if rapid.Bool().Draw(g.T, "current") {
		out = append(out, setRef("main", "branch", id, "")...)
	}
	return out
}

func setRef(name, typ string, id int64, more string) []string {
	return one("set-snapshot-ref", `"ref-name":%q,"type":%q,"snapshot-id":%d%s`, name, typ, id, more)
}

func (g *generator) refName() string { return pick(g, "ref", "main", "b1", "b2", "t1") }

func (g *generator) setRef() []string {
	typ := pick(g, "type", "branch", "branch", "tag")
	more := ""
	if g.rarely("age") {
		more += `,"max-ref-age-ms":` + pick(g, "ref age", "5", "0", "-1")
	}
	if typ == "branch" && g.rarely("keep") {
		more += `,"min-snapshots-to-keep":` + pick(g, "keep", "2", "0")
	}
	if typ == "branch" && g.rarely("snapshot age") {
		more += `,"max-snapshot-age-ms":` + pick(g, "snapshot age", "7", "0")
	}
	return setRef(g.refName(), typ, g.snapshotID(), more)
}

func (g *generator) removeRef() []string {
	return one("remove-snapshot-ref", `"ref-name":%q`, g.refName())
}

func (g *generator) removeSnapshots() []string {
	return one("remove-snapshots", `"snapshot-ids":[%d,%d]`, g.snapshotID(), g.snapshotID())
}

// columns are what the schemas of a version are made of, beyond the first two.
var columns = [4][]string{
	1: {`"decimal(20, 2)"`, `"fixed[4]"`, `"uuid"`, `"timestamptz"`, `{"type":"map","key-id":51,"key":"string","value-id":52,"value-required":true,"value":"double"}`},
	3: {
		`"timestamp_ns"`, `"variant"`, `"unknown"`, `"geometry"`, `"geometry(srid:4326)"`, `"geography(srid:4326, spherical)"`,
		`"geography(srid:4326, karney)"`, `"int","initial-default":7,"write-default":8`, `"long","write-default":9007199254740993`,
		`"string","initial-default":"a\"b"`, `"decimal(9,2)","initial-default":"1.50"`, `"date","write-default":"2024-02-29"`, `"boolean","initial-default":false`,
	},
}

func (g *generator) schema() []string {
	fields := []string{`{"id":1,"name":"id","required":true,"type":"long"}`, `{"id":2,"name":"day","required":false,"type":"date"}`}
	known := columns[1]
	if g.table.FormatVersion() > 2 || g.rarely("too new") {
		known = append(slices.Clip(known), columns[3]...)
	}
	if n := rapid.IntRange(0, len(known)).Draw(g.T, "column"); n > 0 {
		fields = append(fields, fmt.Sprintf(`{"id":%d,"name":"c","required":false,"type":%s,"doc":"d"}`, 20+n, known[n-1]))
	}
	if g.rarely("no day") {
		fields = append(fields[:1:1], fields[2:]...)
	}
	identifier := pick(g, "identifier", `"identifier-field-ids":[1],`, "")
	out := one("add-schema", `"schema":{"type":"struct","schema-id":0,%s"fields":[%s]}`, identifier, strings.Join(fields, ","))
	if rapid.Bool().Draw(g.T, "current") {
		out = append(out, one("set-current-schema", `"schema-id":-1`)...)
	}
	return out
}

func (g *generator) spec() []string {
	var fields []string
	given, names := !g.rarely("no ids"), pick(g, "names", "p", "q")
	for i := range rapid.IntRange(0, 2).Draw(g.T, "fields") {
		source := fmt.Sprintf(`"source-id":%d`, pick(g, "source", 1, 1, 2, 2, 3, 99))
		if g.table.FormatVersion() > 2 && g.rarely("two sources") {
			source = `"source-ids":[1,2]`
		}
		id := ""
		if given {
			id = fmt.Sprintf(`"field-id":%d,`, g.table.LastPartitionID()+1+i)
		}
		fields = append(fields, fmt.Sprintf(`{%s,%s"name":"%s%d","transform":%q}`, source, id, names, i,
			pick(g, "transform", "identity", "bucket[8]", "truncate[4]", "month", "hour", "void", "zorder")))
	}
	out := one("add-spec", `"spec":{"spec-id":%d,"fields":[%s]}`, pick(g, "spec id", len(g.table.Specs()), 0, 7), strings.Join(fields, ","))
	if rapid.Bool().Draw(g.T, "default") {
		out = append(out, one("set-default-spec", `"spec-id":-1`)...)
	}
	return out
}

func (g *generator) order() []string {
	var fields []string
	for range rapid.IntRange(0, 2).Draw(g.T, "fields") {
		fields = append(fields, fmt.Sprintf(`{"source-id":%d,"transform":%q,"direction":%q,"null-order":%q}`, pick(g, "source", 1, 2, 99),
			pick(g, "transform", "identity", "bucket[4]"), pick(g, "direction", "asc", "desc"), pick(g, "nulls", "nulls-first", "nulls-last")))
	}
	out := one("add-sort-order", `"sort-order":{"order-id":%d,"fields":[%s]}`, min(len(fields), 1), strings.Join(fields, ","))
	if rapid.Bool().Draw(g.T, "default") {
		out = append(out, one("set-default-sort-order", `"sort-order-id":-1`)...)
	}
	return out
}

// choose makes something that was added earlier the current one.
func (g *generator) choose() []string {
	id := rapid.IntRange(-1, 3).Draw(g.T, "id")
	switch rapid.IntRange(0, 2).Draw(g.T, "what") {
	case 0:
		return one("set-current-schema", `"schema-id":%d`, id)
	case 1:
		return one("set-default-spec", `"spec-id":%d`, id)
	}
	return one("set-default-sort-order", `"sort-order-id":%d`, id)
}

// remove removes a schema or a spec.
func (g *generator) remove() []string {
	ids := fmt.Sprintf("[%d,%d]", rapid.IntRange(0, 3).Draw(g.T, "id"), rapid.IntRange(0, 3).Draw(g.T, "id"))
	if rapid.Bool().Draw(g.T, "schema") {
		return one("remove-schemas", `"schema-ids":%s`, ids)
	}
	return one("remove-partition-specs", `"spec-ids":%s`, ids)
}

func (g *generator) statistics() []string {
	id := g.snapshotID()
	if g.rarely("remove") {
		return one("remove-statistics", `"snapshot-id":%d`, id)
	}
	return one("set-statistics", `"snapshot-id":%d,"statistics":{"snapshot-id":%d,"statistics-path":"s%d","file-size-in-bytes":9,"file-footer-size-in-bytes":1,`+
		`"blob-metadata":[{"type":"apache-datasketches-theta-v1","snapshot-id":%d,"sequence-number":1,"fields":[1],"properties":{"ndv":"3"}}]}`, id, id, g.fresh(), id)
}

func (g *generator) partitionStatistics() []string {
	id := g.snapshotID()
	if g.rarely("remove") {
		return one("remove-partition-statistics", `"snapshot-id":%d`, id)
	}
	return one("set-partition-statistics", `"partition-statistics":{"snapshot-id":%d,"statistics-path":"p%d","file-size-in-bytes":9}`, id, g.fresh())
}

func (g *generator) encryptionKey() []string {
	id := pick(g, "key", "k1", "k2", "k3")
	if rapid.IntRange(0, 3).Draw(g.T, "remove") == 0 {
		return one("remove-encryption-key", `"key-id":%q`, id)
	}
	by := pick(g, "by", "", `,"encrypted-by-id":"k1"`, `,"properties":{"a":"b"}`)
	return one("add-encryption-key", `"encryption-key":{"key-id":%q,"encrypted-key-metadata":"c2VjcmV0"%s}`, id, by)
}

func (g *generator) properties() []string {
	if rapid.Bool().Draw(g.T, "remove") {
		return one("remove-properties", `"removals":[%q,%q]`, pick(g, "key", "a", "owner", "zz"), pick(g, "key", "a", "b"))
	}
	return one("set-properties", `"updates":{%q:%q}`, pick(g, "key", "a", "b", "é\"\\", "write.metadata.previous-versions-max", "uuid"), pick(g, "value", "", "1", "2", "<&>\u2028"))
}

func (g *generator) identity() []string {
	switch rapid.IntRange(0, 4).Draw(g.T, "what") {
	case 0:
		return one("assign-uuid", `"uuid":%q`, pick(g, "uuid", tableUUID, tableUUID, otherUUID))
	case 1, 2:
		return one("set-location", `"location":%q`, pick(g, "location", "file:///w/ns/t", "file:///w/ns/t2", "file:///w/ns/t3/", ""))
	}
	v := g.table.FormatVersion()
	return one("upgrade-format-version", `"format-version":%d`, pick(g, "version", v, v, v+1, v+1, v-1))
}

// requirement makes one requirement, which holds about every other time.
func (g *generator) requirement(t *metadata.Table) string {
	near := func(what string, n int) int { return n + pick(g, what, 0, 0, 0, 1, -1) }
	switch rapid.IntRange(0, 7).Draw(g.T, "requirement") {
	case 0:
		return `{"type":"assert-create"}`
	case 1:
		return fmt.Sprintf(`{"type":"assert-table-uuid","uuid":%q}`, pick(g, "uuid", tableUUID, strings.ToUpper(tableUUID), otherUUID))
	case 2:
		return fmt.Sprintf(`{"type":"assert-last-assigned-field-id","last-assigned-field-id":%d}`, near("field", t.LastColumnID()))
	case 3:
		return fmt.Sprintf(`{"type":"assert-current-schema-id","current-schema-id":%d}`, near("schema", t.CurrentSchemaID()))
	case 4:
		return fmt.Sprintf(`{"type":"assert-last-assigned-partition-id","last-assigned-partition-id":%d}`, near("partition", t.LastPartitionID()))
	case 5:
		return fmt.Sprintf(`{"type":"assert-default-spec-id","default-spec-id":%d}`, near("spec", t.DefaultSpecID()))
	case 6:
		return fmt.Sprintf(`{"type":"assert-default-sort-order-id","default-sort-order-id":%d}`, near("order", t.DefaultSortOrderID()))
	}
	name, id := g.refName(), "null"
	if r, ok := t.Ref(name); ok && rapid.Bool().Draw(g.T, "right") {
		id = strconv.FormatInt(r.SnapshotID, 10)
	} else if rapid.Bool().Draw(g.T, "some") {
		id = strconv.FormatInt(pick(g, "id", append(t.SnapshotIDs(), 424242)...), 10)
	}
	return fmt.Sprintf(`{"type":"assert-ref-snapshot-id","ref":%q,"snapshot-id":%s}`, name, id)
}
