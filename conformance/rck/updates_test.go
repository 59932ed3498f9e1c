package rck_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// here stands for the table's or view's own location in a request.
const here = "$here"

// tableState is what the generator needs to know of a table.
type tableState struct {
	FormatVersion int    `json:"format-version"`
	LastSequence  int64  `json:"last-sequence-number"`
	LastColumn    int    `json:"last-column-id"`
	CurrentSchema int    `json:"current-schema-id"`
	DefaultSpec   int    `json:"default-spec-id"`
	LastPartition int    `json:"last-partition-id"`
	DefaultOrder  int    `json:"default-sort-order-id"`
	NextRow       int64  `json:"next-row-id"`
	Current       *int64 `json:"current-snapshot-id"`
	Snapshots     []struct {
		ID int64 `json:"snapshot-id"`
	} `json:"snapshots"`
}

func (s *tableState) current() int64 {
	if s.Current == nil {
		return -1
	}
	return *s.Current
}

// tableGen makes commits for one table. It mostly keeps to what the table holds, and
// sometimes not.
type tableGen struct {
	*rand.Rand
	idle   bool    // a commit changed nothing
	stamps []int64 // times that a snapshot was given, in ms
	next   int64   // of snapshots, names, values: never twice
	state  tableState
	seq    int64
	row    int64
}

func (g *tableGen) fresh() int64 { g.next++; return g.next }

// often is true in one of n cases.
func (g *tableGen) often(n int) bool { return g.IntN(n) == 0 }

func pick[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }

// object makes JSON of names and values in turn; a json.RawMessage stays as it is.
func object(members ...any) string {
	var b strings.Builder
	for i := 0; i < len(members); i += 2 {
		value, err := json.Marshal(members[i+1])
		if err != nil {
			panic(err) // of the generator's own values
		}
		fmt.Fprintf(&b, ",%q:%s", members[i], value)
	}
	return "{" + strings.TrimPrefix(b.String(), ",") + "}"
}

func update(action string, members ...any) string {
	return object(slices.Concat([]any{"action", action}, members)...)
}

func raw(s string) json.RawMessage { return json.RawMessage(s) }

// commit is the body of an updateTable.
func (g *tableGen) commit(state tableState) string {
	g.state, g.seq, g.row = state, state.LastSequence, state.NextRow
	var requirements, updates []string
	for range g.IntN(3) {
		requirements = append(requirements, g.requirement())
	}
	for range 1 + g.IntN(3) {
		updates = append(updates, g.update()...)
	}
	return fmt.Sprintf(`{"requirements":[%s],"updates":[%s]}`, strings.Join(requirements, ","), strings.Join(updates, ","))
}

// off is 0, seldom 1: for values that shall mostly be right.
func (g *tableGen) off() int {
	if g.often(12) {
		return 1
	}
	return 0
}

func (g *tableGen) requirement() string {
	s := &g.state
	switch g.IntN(9) {
	case 0:
		return object("type", "assert-last-assigned-field-id", "last-assigned-field-id", s.LastColumn+g.off())
	case 1:
		return object("type", "assert-current-schema-id", "current-schema-id", s.CurrentSchema+g.off())
	case 2:
		return object("type", "assert-last-assigned-partition-id", "last-assigned-partition-id", s.LastPartition+g.off())
	case 3:
		return object("type", "assert-default-spec-id", "default-spec-id", s.DefaultSpec+g.off())
	case 4:
		return object("type", "assert-default-sort-order-id", "default-sort-order-id", s.DefaultOrder+g.off())
	case 5:
		if g.often(5) {
			return object("type", "assert-create")
		}
		return object("type", "assert-table-uuid", "uuid", pick(g.Rand, "$uuid", "$uuid", "$uuid", "4b3c1a52-7d14-4d35-a5ac-8f2e0f6f8a11"))
	default:
		var id any
		if now := s.current(); now >= 0 || g.often(8) {
			id = now + int64(g.off())
		}
		return object("type", "assert-ref-snapshot-id", "ref", pick(g.Rand, "main", "main", "main", "b1"), "snapshot-id", id)
	}
}

// snapshot is one of the table's, seldom one that it does not have.
func (g *tableGen) snapshot() int64 {
	var ids []int64
	for _, s := range g.state.Snapshots {
		ids = append(ids, s.ID)
	}
	if len(ids) == 0 || g.often(12) {
		return 404
	}
	return pick(g.Rand, ids...)
}

func (g *tableGen) update() []string {
	switch g.IntN(20) {
	case 0, 1, 2, 3, 4:
		return g.addSnapshot()
	case 5, 6:
		return g.refs()
	case 7, 8, 9:
		return g.schema()
	case 10, 11:
		return g.spec()
	case 12:
		return g.order()
	case 13, 14:
		return g.properties()
	case 15, 16:
		return g.statistics()
	case 17:
		return g.removal()
	case 18:
		return g.key()
	default:
		return g.rare()
	}
}

func (g *tableGen) addSnapshot() []string {
	id := g.fresh()
	stamp := g.stamps[0] + id
	g.stamps = append(g.stamps, stamp)
	members := []any{"snapshot-id", id, "timestamp-ms", stamp}
	if now := g.state.current(); now >= 0 && !g.often(6) {
		members = append(members, "parent-snapshot-id", now)
	}
	if g.state.FormatVersion > 1 {
		g.seq += int64(1 - g.off())
		members = append(members, "sequence-number", g.seq)
	}
	if g.state.FormatVersion > 2 {
		rows := g.Int64N(9)
		members = append(members, "first-row-id", max(0, g.row-int64(g.off())), "added-rows", rows)
		g.row += rows
	}
	members = append(members, "manifest-list", fmt.Sprintf("%s/metadata/snap-%d.avro", here, id), "schema-id", g.state.CurrentSchema,
		"summary", map[string]string{"operation": pick(g.Rand, "append", "overwrite", "delete", "replace"), "total-records": strconv.Itoa(g.IntN(99))})
	out := []string{update("add-snapshot", "snapshot", raw(object(members...)))}
	if !g.often(4) {
		out = append(out, update("set-snapshot-ref", "ref-name", "main", "type", "branch", "snapshot-id", id))
	}
	return out
}

func (g *tableGen) refs() []string {
	name := pick(g.Rand, "main", "b1", "b2", "tag")
	if g.often(3) {
		return []string{update("remove-snapshot-ref", "ref-name", name)}
	}
	typ, keep := "branch", []any(nil)
	if name == "tag" {
		typ = "tag"
	}
	if g.often(3) {
		keep = append(keep, "max-ref-age-ms", 1000+g.IntN(2))
	}
	if g.often(4) {
		keep = append(keep, "min-snapshots-to-keep", 1+g.IntN(3)) // not for tags
	}
	if g.often(6) {
		keep = append(keep, "max-snapshot-age-ms", 1+g.IntN(3))
	}
	return []string{update("set-snapshot-ref", slices.Concat([]any{"ref-name", name, "type", typ, "snapshot-id", g.snapshot()}, keep)...)}
}

// schema draws from few shapes, so that some come again.
func (g *tableGen) schema() []string {
	if g.often(3) {
		return []string{update("set-current-schema", "schema-id", g.IntN(4)-1)}
	}
	_, fields, _ := strings.Cut(strings.TrimSuffix(diffSchema, "]}"), "[")
	switch g.IntN(5) {
	case 0:
		fields += `,{"id":5,"name":"price","required":false,"type":"decimal(20, 2)","doc":"in euro"}`
	case 1:
		fields += `,{"id":5,"name":"place","required":false,"type":{"type":"struct","fields":[{"id":6,"name":"x","required":true,"type":"double"}]}}`
	case 2:
		fields += `,{"id":7,"name":"more","required":false,"type":{"type":"map","key-id":8,"key":"string","value-id":9,"value":"fixed[4]","value-required":true}}`
	case 3:
		fields += fmt.Sprintf(`,{"id":%d,"name":"n%d","required":false,"type":%q}`, g.state.LastColumn+1, g.fresh(), pick(g.Rand, "int", "uuid", "timestamptz", "timestamp_ns", "binary"))
	}
	if g.state.FormatVersion > 2 && g.often(2) {
		fields += `,{"id":10,"name":"d","required":true,"type":"int","initial-default":7,"write-default":8}`
	}
	identifier := ""
	if g.often(2) {
		identifier = `"identifier-field-ids":[1],`
	}
	out := []string{update("add-schema", "schema", raw(`{"type":"struct",`+identifier+`"schema-id":0,"fields":[`+fields+`]}`))}
	if !g.often(3) {
		out = append(out, update("set-current-schema", "schema-id", -1))
	}
	return out
}

func (g *tableGen) spec() []string {
	if g.often(3) {
		return []string{update("set-default-spec", "spec-id", g.IntN(4)-1)}
	}
	field := []any{
		"source-id", pick(g.Rand, 1, 1, 2, 2, 3, 77), "name", pick(g.Rand, "p", "q", "day", fmt.Sprintf("f%d", g.fresh())),
		"transform", pick(g.Rand, "identity", "bucket[8]", "month", "year", "truncate[10]", "void"),
	}
	if !g.often(3) {
		field = append(field, "field-id", g.state.LastPartition+1-g.off())
	}
	spec := object("spec-id", g.IntN(4), "fields", []json.RawMessage{raw(object(field...))})
	if g.often(6) {
		spec = `{"spec-id":0,"fields":[]}`
	}
	out := []string{update("add-spec", "spec", raw(spec))}
	if !g.often(3) {
		out = append(out, update("set-default-spec", "spec-id", -1))
	}
	return out
}

func (g *tableGen) order() []string {
	if g.often(3) {
		return []string{update("set-default-sort-order", "sort-order-id", g.IntN(4)-1)}
	}
	order := `{"order-id":0,"fields":[]}`
	if !g.often(4) {
		order = object("order-id", 1+g.IntN(3), "fields", []json.RawMessage{raw(object(
			"transform", pick(g.Rand, "identity", "bucket[4]", "identity"), "source-id", pick(g.Rand, 1, 2, 2, 77),
			"direction", pick(g.Rand, "asc", "desc"), "null-order", pick(g.Rand, "nulls-first", "nulls-last"),
		))})
	}
	out := []string{update("add-sort-order", "sort-order", raw(order))}
	if !g.often(3) {
		out = append(out, update("set-default-sort-order", "sort-order-id", -1))
	}
	return out
}

func (g *tableGen) properties() []string {
	key := pick(g.Rand, "a", "b", "c d", "é\"\\/", "write.metadata.previous-versions-max", "comment")
	if g.often(3) {
		return []string{update("remove-properties", "removals", []string{key})}
	}
	value := pick(g.Rand, "", "1", "true", "<&>\u2028", "ünï")
	if strings.HasPrefix(key, "write.metadata") {
		value = strconv.Itoa(1 + g.IntN(4))
	}
	return []string{update("set-properties", "updates", map[string]string{key: value})}
}

func (g *tableGen) statistics() []string {
	id := g.snapshot()
	switch g.IntN(5) {
	case 0:
		return []string{update("remove-statistics", "snapshot-id", id)}
	case 1:
		return []string{update("remove-partition-statistics", "snapshot-id", id)}
	case 2:
		return []string{update("set-partition-statistics", "partition-statistics",
			map[string]any{"snapshot-id": id, "statistics-path": here + "/metadata/p.parquet", "file-size-in-bytes": g.IntN(99)})}
	}
	blob := map[string]any{"type": "apache-datasketches-theta-v1", "snapshot-id": id, "sequence-number": g.IntN(4), "fields": []int{1}}
	if g.often(2) {
		blob["properties"] = map[string]string{"ndv": "5"}
	}
	return []string{update("set-statistics", "snapshot-id", id, "statistics", map[string]any{
		"snapshot-id": id, "statistics-path": here + "/metadata/s.puffin", "file-size-in-bytes": g.IntN(99),
		"file-footer-size-in-bytes": 4, "blob-metadata": []any{blob},
	})}
}

func (g *tableGen) removal() []string {
	switch g.IntN(4) {
	case 0:
		return []string{update("remove-schemas", "schema-ids", []int{g.IntN(4)})}
	case 1:
		return []string{update("remove-partition-specs", "spec-ids", []int{g.IntN(4)})}
	default:
		return []string{update("remove-snapshots", "snapshot-ids", []int64{g.snapshot()})}
	}
}

func (g *tableGen) key() []string {
	if g.state.FormatVersion < 3 && !g.often(6) {
		return g.properties()
	}
	id := pick(g.Rand, "k1", "k2")
	if g.often(2) {
		return []string{update("remove-encryption-key", "key-id", id)}
	}
	return []string{update("add-encryption-key", "encryption-key", map[string]any{
		"key-id": id, "encrypted-key-metadata": "c2VjcmV0", "encrypted-by-id": pick(g.Rand, "k0", "k1"), "properties": map[string]string{"a": "b"},
	})}
}

func (g *tableGen) rare() []string {
	switch g.IntN(5) {
	case 0:
		return []string{update("upgrade-format-version", "format-version", g.state.FormatVersion)}
	case 1:
		return []string{update("upgrade-format-version", "format-version", pick(g.Rand, 1, 2, 2, 3, 3))}
	case 2:
		return []string{update("set-location", "location", here+"/moved")}
	default:
		return []string{update("assign-uuid", "uuid", "$uuid")}
	}
}
