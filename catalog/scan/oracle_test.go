package scan_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/iceberg-go"
	icerest "github.com/apache/iceberg-go/catalog/rest"
	iceio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"
	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/catalogd/catalogd/catalog/scan"
	"github.com/catalogd/catalogd/mv/changes/tabletest"
)

// world is a random table and what plans its scans.
type world struct {
	tbl      *tabletest.Table
	mem      *memory
	svc      *scan.Service
	next     int64
	earliest int64 // hour
	heads    []int64
}

func (w *world) step(rt *rapid.T) {
	switch rapid.SampledFrom([]string{"append", "append", "append", "cow", "mor", "mor", "equal", "compact", "evolve"}).Draw(rt, "step") {
	case "append":
		rows := make([]tabletest.Row, rapid.IntRange(1, 5).Draw(rt, "rows"))
		for i := range rows {
			w.next++
			rows[i] = tabletest.At(w.next, rapid.Int64Range(w.earliest, 60).Draw(rt, "hour"))
			if rapid.IntRange(0, 5).Draw(rt, "null") == 0 {
				rows[i] = tabletest.Null(w.next)
			}
		}
		w.tbl.Append(rows...)
	case "cow", "mor":
		id := rapid.Int64Range(1, max(w.next, 1)).Draw(rt, "id")
		w.tbl.Delete(rapid.Bool().Draw(rt, "mor"), iceberg.EqualTo(iceberg.Reference("id"), id))
	case "equal":
		if rows := w.tbl.Rows(w.tbl.Head()); len(rows) > 0 {
			ids := []int{tabletest.FieldID, tabletest.FieldTS}
			if len(w.tbl.Metadata().PartitionSpecs()) > 1 { // a delete must have what its partition is made of
				ids = append(ids, tabletest.FieldKey, tabletest.FieldValue)
			}
			w.tbl.DeleteEqual(ids, rapid.SampledFrom(rows).Draw(rt, "row"))
		}
	case "compact":
		w.tbl.Compact(func(iceberg.DataFile) bool { return true }, func(tabletest.Row) bool { return true })
	case "evolve":
		w.evolve(rt)
	}
	if head := w.tbl.Head(); head != -1 && !slices.Contains(w.heads, head) {
		w.heads = append(w.heads, head)
	}
	w.mem.set(w.tbl.Document())
}

// evolve adds a partition field.
func (w *world) evolve(rt *rapid.T) {
	c := rapid.SampledFrom([]struct {
		column    string
		transform iceberg.Transform
	}{
		{"k", iceberg.TruncateTransform{Width: 1}},
		{"id", iceberg.BucketTransform{NumBuckets: 3}},
		{"v", iceberg.TruncateTransform{Width: 50}},
		{"k", iceberg.IdentityTransform{}},
		{"ts", iceberg.HourTransform{}},
	}).Draw(rt, "field")
	w.tbl.Tx(func(_ context.Context, tx *table.Transaction) error {
		name := fmt.Sprintf("p%d", len(w.tbl.Metadata().PartitionSpecs()))
		if err := tx.UpdateSpec(true).AddField(c.column, c.transform, name).Commit(); err != nil {
			rt.Skip(err) // it has that field
		}
		return nil
	})
}

// filter is a filter in its two forms.
type filter struct {
	json string
	pass func(tabletest.Row) bool // surely passes
}

func drawFilter(rt *rapid.T, depth int) filter {
	if depth > 0 {
		switch rapid.SampledFrom([]string{"leaf", "and", "or"}).Draw(rt, "shape") {
		case "and":
			a, b := drawFilter(rt, depth-1), drawFilter(rt, depth-1)
			return filter{fmt.Sprintf(`{"type":"and","left":%s,"right":%s}`, a.json, b.json), func(r tabletest.Row) bool { return a.pass(r) && b.pass(r) }}
		case "or":
			a, b := drawFilter(rt, depth-1), drawFilter(rt, depth-1)
			return filter{fmt.Sprintf(`{"type":"or","left":%s,"right":%s}`, a.json, b.json), func(r tabletest.Row) bool { return a.pass(r) || b.pass(r) }}
		}
	}
	o := rapid.SampledFrom([]string{"lt", "lt-eq", "gt", "gt-eq", "eq", "not-eq"}).Draw(rt, "op")
	holds := func(c int) bool { return compared(o, c) }
	switch rapid.SampledFrom([]string{"id", "ts", "k", "v", "null"}).Draw(rt, "column") {
	case "id":
		n := rapid.Int64Range(0, 40).Draw(rt, "n")
		return filter{fmt.Sprintf(`{"type":%q,"term":"id","value":%d}`, o, n), func(r tabletest.Row) bool { return holds(cmp.Compare(r.ID, n)) }}
	case "v":
		n := rapid.Int64Range(0, 400).Draw(rt, "n")
		return filter{fmt.Sprintf(`{"type":%q,"term":"v","value":%d}`, o, n), func(r tabletest.Row) bool { return holds(cmp.Compare(r.V, n)) }}
	case "k":
		s := rapid.SampledFrom([]string{"", "k", "k0", "k1", "k2", "n", "null", "z"}).Draw(rt, "s")
		if rapid.Bool().Draw(rt, "prefix") {
			return filter{fmt.Sprintf(`{"type":"starts-with","term":"k","value":%q}`, s), func(r tabletest.Row) bool { return strings.HasPrefix(r.K, s) }}
		}
		return filter{fmt.Sprintf(`{"type":%q,"term":"k","value":%q}`, o, s), func(r tabletest.Row) bool { return holds(cmp.Compare(r.K, s)) }}
	case "ts":
		hour := rapid.Int64Range(-50, 70).Draw(rt, "hour")
		us := hour*3_600_000_000 + rapid.Int64Range(-1, 1).Draw(rt, "off")
		text, err := json.Marshal(iceberg.Timestamp(us).ToTime().Format("2006-01-02T15:04:05.999999"))
		if err != nil {
			rt.Fatal(err)
		}
		return filter{fmt.Sprintf(`{"type":%q,"term":"ts","value":%s}`, o, text), func(r tabletest.Row) bool { return r.TS != nil && holds(cmp.Compare(*r.TS, us)) }}
	default:
		if rapid.Bool().Draw(rt, "not") {
			return filter{`{"type":"not-null","term":"ts"}`, func(r tabletest.Row) bool { return r.TS != nil }}
		}
		return filter{`{"type":"is-null","term":"ts"}`, func(r tabletest.Row) bool { return r.TS == nil }}
	}
}

// keys is a bag of rows.
func keys(rows []tabletest.Row) []string {
	out := make([]string, 0, len(rows))
	for _, r := range rows {
		out = append(out, r.Key())
	}
	slices.Sort(out)
	return out
}

// passes evaluates a residual as SQL does: what is NULL passes nothing but is-null.
func passes(rt *rapid.T, residual json.RawMessage, r tabletest.Row) bool {
	var n struct {
		Type, Term  string
		Left, Right json.RawMessage
		Value       any
	}
	switch string(residual) {
	case "true", "false":
		return string(residual) == "true"
	}
	if err := json.Unmarshal(residual, &n); err != nil {
		rt.Fatalf("%v in %s", err, residual)
	}
	switch n.Type {
	case "and":
		return passes(rt, n.Left, r) && passes(rt, n.Right, r)
	case "or":
		return passes(rt, n.Left, r) || passes(rt, n.Right, r)
	case "is-null", "not-null":
		return (r.TS == nil) == (n.Type == "is-null")
	case "starts-with":
		return strings.HasPrefix(r.K, n.Value.(string))
	}
	var c int
	switch n.Term {
	case "k":
		c = strings.Compare(r.K, n.Value.(string))
	case "ts":
		if r.TS == nil {
			return false
		}
		at, err := time.Parse("2006-01-02T15:04:05", n.Value.(string))
		if err != nil {
			rt.Fatal(err)
		}
		c = cmp.Compare(*r.TS, at.UnixMicro())
	case "id":
		c = cmp.Compare(r.ID, int64(n.Value.(float64)))
	default:
		c = cmp.Compare(r.V, int64(n.Value.(float64)))
	}
	return compared(n.Type, c)
}

func compared(o string, c int) bool {
	return map[string]bool{"lt": c < 0, "lt-eq": c <= 0, "gt": c > 0, "gt-eq": c >= 0, "eq": c == 0, "not-eq": c != 0}[o]
}

// read reads the rows of pages as iceberg-go's REST client would, with the residual of
// each file as its only filter.
func (w *world) read(rt *rapid.T, pages []wire, snapshot int64) []tabletest.Row {
	var rows []tabletest.Row
	for _, p := range pages {
		tasks, err := icerest.DecodeScanTasks(p.ScanTasks, w.tbl.Metadata(), nil, iceberg.AlwaysFalse{})
		if err != nil {
			rt.Fatalf("%v in %+v", err, p)
		}
		for i, task := range tasks {
			task.Residual = nil
			for _, r := range w.tbl.RowsOf(w.tbl.Scan(table.WithSnapshotID(snapshot)), []table.FileScanTask{task}) {
				if passes(rt, p.FileScanTasks[i].ResidualFilter, r) {
					rows = append(rows, r)
				}
			}
		}
	}
	return rows
}

func paths(pages []wire) []string {
	var out []string
	for _, p := range pages {
		for _, task := range p.FileScanTasks {
			out = append(out, task.DataFile.FilePath)
		}
	}
	slices.Sort(out)
	return out
}

// TestPlan_oracle plans random scans of random tables. The rows must be those that
// iceberg-go finds, and the files no more than it needs.
func TestPlan_oracle(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		w := &world{mem: newMemory(), earliest: rapid.SampledFrom([]int64{0, -40}).Draw(rt, "earliest")}
		w.tbl = tabletest.New(t, tabletest.Options{
			Version: rapid.IntRange(2, 3).Draw(rt, "version"), Day: rapid.Bool().Draw(rt, "day"), Bucket: rapid.Bool().Draw(rt, "bucket"),
			NoStats: rapid.IntRange(0, 4).Draw(rt, "stats") == 0,
		})
		w.mem.set(w.tbl.Document())
		limits := rapid.SampledFrom([]scan.Limits{{}, {PageFiles: 2, InlineFiles: 1}, {AsyncFiles: 1, PageFiles: 2}}).Draw(rt, "limits")
		w.svc = scan.NewService(scan.Config{Tables: w.mem, Store: w.mem, Files: iceio.LocalFS{}, Limits: limits})
		for range rapid.IntRange(1, 5).Draw(rt, "steps") {
			w.step(rt)
		}
		if len(w.heads) == 0 {
			return
		}
		for range 2 {
			w.scan(rt)
		}
	})
}

func (w *world) scan(rt *rapid.T) {
	head := rapid.SampledFrom(w.heads).Draw(rt, "snapshot")
	f := drawFilter(rt, 2)
	pages := all(rt, w.svc, w.mem, scan.Request{SnapshotID: &head, Filter: json.RawMessage(f.json)})
	got := w.read(rt, pages, head)
	parsed, err := iceberg.ParseExpr([]byte(f.json), w.tbl.Schema())
	if err != nil {
		rt.Fatal(err)
	}
	var want []tabletest.Row
	for _, r := range w.tbl.Rows(head) {
		if f.pass(r) {
			want = append(want, r)
		}
	}
	if diff := gocmp.Diff(keys(want), keys(got)); diff != "" {
		rt.Fatalf("snapshot %d, filter %s (-want +got):\n%s", head, f.json, diff)
	}
	theirs, err := w.tbl.Scan(table.WithSnapshotID(head), table.WithRowFilter(parsed)).PlanFiles(rt.Context())
	if err != nil {
		rt.Fatal(err)
	}
	needed := map[string]bool{}
	for _, task := range theirs {
		needed[task.File.FilePath()] = true
	}
	if w.earliest < 0 || strings.Contains(f.json, `"1969-`) {
		return // times before 1970 are looked for in two partitions
	}
	for _, p := range paths(pages) {
		if !needed[p] {
			rt.Fatalf("snapshot %d, filter %s: %s is planned, and iceberg-go does without it", head, f.json, p)
		}
	}
}

// TestPlan_incremental compares incremental scans with iceberg-go's.
func TestPlan_incremental(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		w := &world{mem: newMemory()}
		w.tbl = tabletest.New(t, tabletest.Options{Version: rapid.IntRange(2, 3).Draw(rt, "version"), Day: rapid.Bool().Draw(rt, "day")})
		w.mem.set(w.tbl.Document())
		w.svc = scan.NewService(scan.Config{Tables: w.mem, Store: w.mem, Files: iceio.LocalFS{}, Limits: scan.Limits{PageFiles: 1, InlineFiles: 1}})
		for range rapid.IntRange(2, 5).Draw(rt, "steps") {
			w.step(rt)
		}
		if len(w.heads) < 2 {
			return
		}
		from := rapid.IntRange(0, len(w.heads)-2).Draw(rt, "from")
		to := rapid.IntRange(from+1, len(w.heads)-1).Draw(rt, "to")
		start, end := w.heads[from], w.heads[to]
		tasks, err := w.tbl.NewIncrementalAppendScan().FromSnapshotExclusive(start).ToSnapshot(end).PlanFiles(rt.Context())
		if err != nil {
			rt.Fatal(err)
		}
		var want []string
		for _, task := range tasks {
			want = append(want, task.File.FilePath())
		}
		slices.Sort(want)
		got := paths(all(rt, w.svc, w.mem, scan.Request{StartSnapshotID: &start, EndSnapshotID: &end}))
		if diff := gocmp.Diff(want, got); diff != "" {
			rt.Fatalf("from %d to %d (-want +got):\n%s", start, end, diff)
		}
	})
}
