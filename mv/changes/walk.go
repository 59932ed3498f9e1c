package changes

import (
	"context"

	"github.com/apache/iceberg-go"

	"github.com/catalogd/catalogd/mv/plan"
)

const operationReplace = "replace"

// collector gathers the touched values of one column.
type collector struct {
	column column
	never  string // reason why no range of the column can be used
	all    string // reason why everything is touched
	ranges []plan.Range
	null   bool
}

func (c *collector) add(p piece) {
	if p.unknown {
		c.widen(ReasonNoBounds)
		return
	}
	if p.ranges != nil {
		c.ranges = append(c.ranges, *p.ranges)
	}
	c.null = c.null || p.null
}

func (c *collector) widen(reason string) {
	if c.all == "" {
		c.all = reason
	}
}

// file touches every row of a data file.
func (c *collector) file(e *entry) {
	switch {
	case e.file.Count() == 0:
	case c.never != "":
		c.widen(c.never)
	case c.all == "":
		c.add(c.column.ofFile(e))
	}
}

func (c *collector) result() Touched {
	t := Touched{FieldID: c.column.id}
	if c.all != "" {
		t.Everything, t.Reason = true, c.all
		return t
	}
	t.Ranges, t.Null = merge(c.ranges), c.null
	return t
}

// walk collects over the snapshots of a chain.
type walk struct {
	*session
	distrust bool
	columns  []*collector
	touched  bool // some row may differ
}

func (w *walk) everything(reason string) {
	w.touched = true
	for _, c := range w.columns {
		c.widen(reason)
	}
}

// touch counts every row of the given data files as touched.
func (w *walk) touch(files ...*entry) {
	for _, e := range files {
		if e.file.Count() == 0 {
			continue
		}
		w.touched = true
		for _, c := range w.columns {
			c.file(e)
		}
	}
}

func (w *walk) change(path []*snapshot) Change {
	ch := Change{None: !w.touched, ManifestsRead: w.read, BytesRead: w.bytes}
	for _, snap := range path {
		ch.Snapshots = append(ch.Snapshots, snap.ID)
		ch.OnlyReplace = (ch.OnlyReplace || len(ch.Snapshots) == 1) && snap.Summary.Operation == operationReplace
	}
	ch.OnlyReplace = ch.OnlyReplace && ch.None
	for _, c := range w.columns {
		ch.Columns = append(ch.Columns, c.result())
	}
	switch {
	case len(ch.Columns) > 0:
		ch.Touched = ch.Columns[0]
	case w.touched:
		ch.Touched = Touched{Everything: true, Reason: ReasonNoColumn}
	}
	return ch
}

// delta is what one snapshot did, by content.
type delta struct {
	snap    *snapshot
	list    []iceberg.ManifestFile
	added   []*entry // data files
	removed []*entry
	on      []*entry // deletes (position, equality, vectors) that apply since this snapshot
	off     []*entry // deletes that no longer apply
}

// snapshot collects what one snapshot touched.
func (w *walk) snapshot(ctx context.Context, snap *snapshot) error {
	d, err := w.delta(ctx, snap)
	if err != nil {
		return err
	}
	explained, err := w.explained(ctx, d)
	if err != nil {
		return err
	}
	if !explained {
		w.everything(ReasonLostManifests)
		return nil
	}
	if snap.Summary.Operation == operationReplace && !w.distrust {
		kept, err := w.balanced(ctx, d)
		if err != nil || kept {
			return err
		}
	}
	w.touch(d.added...)
	w.touch(d.removed...)
	for _, deletes := range [][]*entry{d.on, d.off} {
		for _, e := range deletes {
			if err := w.touchDelete(ctx, d, e); err != nil {
				return err
			}
		}
	}
	return nil
}

// delta reads the manifests that a snapshot added. Entries of other snapshots in them
// were carried along by a rewrite.
func (w *walk) delta(ctx context.Context, snap *snapshot) (*delta, error) {
	list, err := w.list(ctx, snap)
	if err != nil {
		return nil, err
	}
	d := &delta{snap: snap, list: list}
	for _, m := range list {
		if m.SnapshotID() != snap.ID {
			continue
		}
		entries, err := w.manifest(ctx, m)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if e.SnapshotID() == snap.ID {
				d.sort(e)
			}
		}
	}
	return d, nil
}

func (d *delta) sort(e *entry) {
	data := e.file.ContentType() == iceberg.EntryContentData
	switch {
	case e.Status() == iceberg.EntryStatusADDED && data:
		d.added = append(d.added, e)
	case e.Status() == iceberg.EntryStatusADDED:
		d.on = append(d.on, e)
	case e.Status() == iceberg.EntryStatusDELETED && data:
		d.removed = append(d.removed, e)
	case e.Status() == iceberg.EntryStatusDELETED:
		d.off = append(d.off, e)
	}
}

// explained checks that the entries account for every live file that came or went, by the
// counts in the two manifest lists: a writer could drop a whole manifest without a trace.
// Lists that hold no counts, or a parent that is gone, leave nothing to check.
func (w *walk) explained(ctx context.Context, d *delta) (bool, error) {
	var parent *snapshot
	if d.snap.Parent != nil {
		if parent = w.doc.byID[*d.snap.Parent]; parent == nil {
			return true, nil
		}
	}
	old, err := w.list(ctx, parent)
	if err != nil {
		return false, err
	}
	for _, content := range []iceberg.ManifestContent{iceberg.ManifestContentData, iceberg.ManifestContentDeletes} {
		before, ok := liveCount(old, content)
		after, ok2 := liveCount(d.list, content)
		plus, minus := len(d.added), len(d.removed)
		if content == iceberg.ManifestContentDeletes {
			plus, minus = len(d.on), len(d.off)
		}
		if ok && ok2 && before+int64(plus)-int64(minus) != after {
			return false, nil
		}
	}
	return true, nil
}

func liveCount(list []iceberg.ManifestFile, content iceberg.ManifestContent) (int64, bool) {
	var n int64
	for _, m := range list {
		if m.ManifestContent() != content {
			continue
		}
		if m.AddedDataFiles() < 0 || m.ExistingDataFiles() < 0 {
			return 0, false
		}
		n += int64(m.AddedDataFiles()) + int64(m.ExistingDataFiles())
	}
	return n, true
}
