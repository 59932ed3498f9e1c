package changes_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/apache/iceberg-go"
	iceio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"
	"pgregory.net/rapid"

	"github.com/catalogd/catalogd/mv/changes"
	"github.com/catalogd/catalogd/mv/changes/tabletest"
	"github.com/catalogd/catalogd/mv/plan"
)

// history drives a random table and remembers what each step may have touched.
type history struct {
	tbl   *tabletest.Table
	next  int64
	heads []int64
}

func (h *history) append(rt *rapid.T) {
	rows := make([]tabletest.Row, rapid.IntRange(1, 4).Draw(rt, "rows"))
	for i := range rows {
		h.next++
		rows[i] = tabletest.At(h.next, rapid.Int64Range(-40, 90).Draw(rt, "hour"))
		if rapid.IntRange(0, 9).Draw(rt, "null") == 0 {
			rows[i] = tabletest.Null(h.next)
		}
	}
	h.tbl.Append(rows...)
}

func (h *history) delete(rt *rapid.T, mergeOnRead bool) {
	id := rapid.Int64Range(1, max(h.next, 1)).Draw(rt, "id")
	h.tbl.Delete(mergeOnRead, iceberg.EqualTo(iceberg.Reference("id"), id))
}

func (h *history) deleteEqual(rt *rapid.T) {
	rows := h.tbl.Rows(h.tbl.Head())
	if len(rows) == 0 {
		return
	}
	r := rapid.SampledFrom(rows).Draw(rt, "row")
	h.tbl.DeleteEqual([]int{tabletest.FieldID, tabletest.FieldTS}, r)
}

func (h *history) replace(rt *rapid.T) {
	tasks := h.tbl.Tasks()
	tasks = slices.DeleteFunc(tasks, func(t table.FileScanTask) bool {
		return len(t.DeleteFiles)+len(t.DeletionVectorFiles)+len(t.EqualityDeleteFiles) > 0
	})
	if len(tasks) == 0 {
		return
	}
	h.next++
	h.tbl.Replace([]iceberg.DataFile{rapid.SampledFrom(tasks).Draw(rt, "file").File}, tabletest.At(h.next, rapid.Int64Range(0, 90).Draw(rt, "hour")))
}

func (h *history) compact(rt *rapid.T) {
	lossy := rapid.IntRange(0, 4).Draw(rt, "lossy") == 0
	h.tbl.Compact(all, func(r tabletest.Row) bool { return !lossy || r.ID%5 != 0 })
}

func (h *history) step(rt *rapid.T, version int) string {
	op := rapid.SampledFrom([]string{"append", "append", "cow", "mor", "mor", "equal", "replace", "compact"}).Draw(rt, "op")
	switch op {
	case "append":
		h.append(rt)
	case "cow":
		h.delete(rt, false)
	case "mor":
		h.delete(rt, true)
	case "equal":
		h.deleteEqual(rt)
	case "replace":
		if version == 2 {
			h.replace(rt)
		}
	case "compact":
		h.compact(rt)
	}
	if head := h.tbl.Head(); len(h.heads) == 0 || h.heads[len(h.heads)-1] != head {
		h.heads = append(h.heads, head)
	}
	return op
}

// TestBetweenRandomHistories holds every pair of snapshots of random histories against
// the rows that iceberg-go reads: what differs is covered, and a report never reaches
// beyond the files that were there.
func TestBetweenRandomHistories(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("random histories take a few seconds")
	}
	rapid.Check(t, func(rt *rapid.T) {
		version := rapid.IntRange(2, 3).Draw(rt, "version")
		h := &history{tbl: tabletest.New(t, tabletest.Options{
			Version: version, Day: rapid.Bool().Draw(rt, "day"), NoStats: rapid.IntRange(0, 4).Draw(rt, "no stats") == 0,
		})}
		var ops []string
		for range rapid.IntRange(2, 7).Draw(rt, "steps") {
			ops = append(ops, h.step(rt, version))
		}
		h.check(rt, ops)
	})
}

func (h *history) check(rt *rapid.T, ops []string) {
	rows := map[int64][]tabletest.Row{}
	for _, id := range h.heads {
		if id != -1 {
			rows[id] = h.tbl.Rows(id)
		}
	}
	doc := h.tbl.Document()
	reader := changes.New(iceio.LocalFS{})
	columns := []changes.Column{{FieldID: tabletest.FieldTS}, {FieldID: tabletest.FieldID}, {FieldID: tabletest.FieldKey}}
	for i, from := range h.heads {
		for _, to := range h.heads[i:] {
			if from == -1 || to == -1 {
				continue
			}
			ch, err := reader.Changes(rt.Context(), doc, from, to, columns)
			if err != nil {
				rt.Fatalf("%v: Changes = %v", ops, err)
			}
			if ch.None && len(tabletest.Diff(rows[from], rows[to])) > 0 || uncovered(ch, tabletest.Diff(rows[from], rows[to])) != "" {
				rt.Fatalf("%v: from %d to %d: %s", ops, from, to, uncovered(ch, tabletest.Diff(rows[from], rows[to])))
			}
			bounded(rt, ch, rows)
		}
	}
}

func uncovered(ch changes.Change, diff []tabletest.Row) string {
	for _, r := range diff {
		var ts any
		if r.TS != nil {
			ts = *r.TS
		}
		for i, v := range []any{ts, r.ID, r.K} {
			if !holds(ch.Columns[i], v) {
				return fmt.Sprintf("row %s is not in %+v", r.Key(), ch.Columns[i])
			}
		}
	}
	return ""
}

// bounded fails if the ids of a report reach beyond all ids that ever were.
func bounded(rt *rapid.T, ch changes.Change, rows map[int64][]tabletest.Row) {
	var ids []int64
	for _, set := range rows {
		for _, r := range set {
			ids = append(ids, r.ID)
		}
	}
	if len(ids) == 0 || ch.Columns[1].Everything {
		return
	}
	for _, r := range ch.Columns[1].Ranges {
		if order, ok := changes.Compare(r.Lo, slices.Min(ids)); !ok || order < 0 {
			rt.Fatalf("range %+v begins below every id", r)
		}
	}
	for i, r := range ch.Ranges {
		if i > 0 && overlapping(ch.Ranges[i-1], r) {
			rt.Fatalf("ranges %+v and %+v overlap", ch.Ranges[i-1], r)
		}
	}
}

func overlapping(a, b plan.Range) bool {
	order, ok := changes.Compare(a.Hi, b.Lo)
	return !ok || order >= 0
}
