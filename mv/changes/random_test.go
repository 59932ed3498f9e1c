package changes_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/iceberg-go"
	iceio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"
	"pgregory.net/rapid"

	"github.com/catalogd/catalogd/mv"
	"github.com/catalogd/catalogd/mv/changes"
	"github.com/catalogd/catalogd/mv/changes/tabletest"
	"github.com/catalogd/catalogd/mv/plan"
)

// history drives a random table and remembers the files of each step.
type history struct {
	tbl   *tabletest.Table
	next  int64
	heads []int64
	files []map[string]iceberg.DataFile // of each head, keyed with the deletes that apply
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
		h.files = append(h.files, h.liveFiles())
	}
	return op
}

// liveFiles tells apart what iceberg-go reads differently: a file, and the deletes on it.
func (h *history) liveFiles() map[string]iceberg.DataFile {
	out := map[string]iceberg.DataFile{}
	for _, task := range h.tbl.Tasks() {
		var key strings.Builder
		key.WriteString(task.File.FilePath())
		for _, del := range slices.Concat(task.DeleteFiles, task.DeletionVectorFiles, task.EqualityDeleteFiles) {
			key.WriteString(" " + del.FilePath())
		}
		out[key.String()] = task.File
	}
	return out
}

// TestBetweenRandomHistories holds every pair of snapshots of random histories against
// what iceberg-go reads: the rows that differ are covered, and no value is reported that
// only files hold which stayed as they were in every step.
func TestBetweenRandomHistories(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("random histories take a few seconds")
	}
	deadline := time.Now().Add(6 * time.Second)
	failed, ran := false, 0
	rapid.Check(t, func(rt *rapid.T) {
		if !failed && time.Now().After(deadline) {
			return // rapid cannot be told how long to run; shrinking may take its time
		}
		defer func() { failed = failed || rt.Failed() }()
		version := rapid.IntRange(2, 3).Draw(rt, "version")
		o := tabletest.Options{Version: version, Day: rapid.Bool().Draw(rt, "day"), NoStats: rapid.IntRange(0, 5).Draw(rt, "no stats") == 0}
		if rapid.Bool().Draw(rt, "whole paths") {
			o.Properties = wholePaths
		}
		h := &history{tbl: tabletest.New(t, o)}
		var ops []string
		for range rapid.IntRange(2, 7).Draw(rt, "steps") {
			ops = append(ops, h.step(rt, version))
		}
		h.check(rt, ops)
		ran++
	})
	if ran == 0 {
		t.Error("no history was tried")
	}
}

func (h *history) check(rt *rapid.T, ops []string) {
	rows := make([][]tabletest.Row, len(h.heads))
	for i, id := range h.heads {
		rows[i] = h.tbl.Rows(id)
	}
	doc := h.tbl.Document()
	reader := changes.New(iceio.LocalFS{})
	columns := []changes.Column{{FieldID: tabletest.FieldTS}, {FieldID: tabletest.FieldID}, {FieldID: tabletest.FieldKey}}
	for i, from := range h.heads {
		for j := i; j < len(h.heads); j++ {
			to := h.heads[j]
			if from == mv.NoSnapshot {
				continue
			}
			ch, err := reader.Changes(rt.Context(), doc, from, to, columns)
			if err != nil {
				rt.Fatalf("%v: Changes = %v", ops, err)
			}
			diff := tabletest.Diff(rows[i], rows[j])
			if missed := uncovered(ch, diff); missed != "" || (ch.None && len(diff) > 0) {
				rt.Fatalf("%v: from step %d to %d, None=%v: %s", ops, i, j, ch.None, missed)
			}
			h.tight(rt, ops, ch, i, j)
		}
	}
}

// tight fails if ids are reported beyond those of the files that some step changed.
func (h *history) tight(rt *rapid.T, ops []string, ch changes.Change, i, j int) {
	ids := ch.Columns[1]
	if ids.Everything || len(ids.Ranges) == 0 {
		return // files without bounds are never the cause of a range
	}
	var touched []plan.Range
	for k := i; k < j; k++ {
		for key, f := range h.files[k] {
			if _, same := h.files[k+1][key]; !same {
				touched = append(touched, idsOf(rt, f))
			}
		}
		for key, f := range h.files[k+1] {
			if _, same := h.files[k][key]; !same {
				touched = append(touched, idsOf(rt, f))
			}
		}
	}
	for _, r := range ids.Ranges {
		lo, ok := r.Lo.(int64)
		hi, ok2 := r.Hi.(int64)
		for v := lo; v <= hi; v++ {
			in := slices.ContainsFunc(touched, func(t plan.Range) bool {
				a, _ := changes.Compare(v, t.Lo)
				b, _ := changes.Compare(v, t.Hi)
				return a >= 0 && b <= 0
			})
			if !ok || !ok2 || !in {
				rt.Fatalf("%v: from step %d to %d id %d is reported in %+v, but only %+v changed", ops, i, j, v, ids.Ranges, touched)
			}
		}
	}
}

func idsOf(rt *rapid.T, f iceberg.DataFile) plan.Range {
	var r plan.Range
	for bounds, end := range map[*map[int][]byte]*any{new(f.LowerBoundValues()): &r.Lo, new(f.UpperBoundValues()): &r.Hi} {
		lit, err := iceberg.LiteralFromBytes(iceberg.PrimitiveTypes.Int64, (*bounds)[tabletest.FieldID])
		if err != nil {
			rt.Fatal(err)
		}
		*end = lit.Any()
	}
	return r
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
