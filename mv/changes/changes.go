package changes

import (
	"context"

	iceio "github.com/apache/iceberg-go/io"

	"github.com/catalogd/catalogd/mv"
	"github.com/catalogd/catalogd/mv/plan"
)

// The reasons why an answer is wider than the change, or why it is no answer.
const (
	ReasonFirstRefresh  = "FIRST_REFRESH"         // nothing was reflected before
	ReasonRolledBack    = "SOURCE_ROLLED_BACK"    // the recorded snapshot is no ancestor of the new one
	ReasonChainBroken   = "CHAIN_BROKEN"          // a snapshot in between was expired
	ReasonNoBounds      = "NO_BOUNDS"             // a touched file says nothing about the column
	ReasonColumnType    = "COLUMN_TYPE"           // the column's type has no ranges (floats, nested values)
	ReasonNoColumn      = "NO_SUCH_COLUMN"        // the table has no such column
	ReasonDeleteTarget  = "DELETE_TARGET_UNKNOWN" // a delete names a file that cannot be found
	ReasonLostManifests = "UNEXPLAINED_FILES"     // files came or went without a manifest entry
)

// Column is a column whose touched values are wanted.
type Column struct {
	FieldID int
}

// Touched says which values of a column may differ between two snapshots. It is an upper
// bound: every row that was added, removed or changed lies in it.
type Touched struct {
	FieldID    int
	Everything bool         // any value may be touched; Ranges and Null do not count
	Reason     string       // why Everything
	Ranges     []plan.Range // sorted, disjoint
	Null       bool         // rows whose value is NULL are touched
}

// Change is what happened to a table between two snapshots.
type Change struct {
	Touched                 // of the first wanted column
	Columns       []Touched // of each wanted column, in order
	None          bool      // no row differs
	OnlyReplace   bool      // None, and there were snapshots: compactions that kept every row
	Snapshots     []int64   // after from up to to, oldest first; nil if the chain is broken
	ManifestsRead int
	BytesRead     int64
}

// Reader reads table metadata through an iceberg-go IO.
type Reader struct {
	fs       iceio.IO
	cache    *cache
	distrust bool
}

// Option changes how a [Reader] judges.
type Option func(*Reader)

// DistrustReplace makes every replace snapshot count as a change of all the files that it
// removes and adds.
func DistrustReplace() Option { return func(r *Reader) { r.distrust = true } }

// New returns a Reader over fs.
func New(fs iceio.IO, options ...Option) *Reader {
	r := &Reader{fs: fs}
	for _, o := range options {
		o(r)
	}
	return r
}

var _ mv.Sources = (*Reader)(nil)

// Between implements [mv.Sources]. It reads only manifests that the snapshots after from
// added, and of older ones only those that may list the data files which new deletes hit.
func (r *Reader) Between(ctx context.Context, doc []byte, from, to int64, fieldID int) (mv.Touched, error) {
	var columns []Column
	if fieldID != 0 {
		columns = []Column{{FieldID: fieldID}}
	}
	ch, err := r.Changes(ctx, doc, from, to, columns)
	if err != nil {
		return mv.Touched{}, err
	}
	return mv.Touched{
		None: ch.None, OnlyReplace: ch.OnlyReplace, Everything: ch.Everything, Reason: ch.Reason, Ranges: ch.Ranges, Null: ch.Null,
		Snapshots: ch.Snapshots, BytesRead: ch.BytesRead,
	}, nil
}

// Changes is [Reader.Between] for several columns at once.
func (r *Reader) Changes(ctx context.Context, doc []byte, from, to int64, columns []Column) (Change, error) {
	d, err := parseDocument(doc)
	if err != nil {
		return Change{}, err
	}
	if _, err := d.snapshot(to); err != nil {
		return Change{}, err
	}
	w := &walk{session: r.session(d), distrust: r.distrust, columns: d.columns(columns)}
	switch from {
	case to:
		return w.change(nil), nil
	case mv.NoSnapshot:
		path, _ := d.chain(nil, id(to))
		w.everything(ReasonFirstRefresh)
		return w.change(path), nil
	}
	path, reason := d.chain(id(from), id(to))
	if reason != "" {
		w.everything(reason)
		return w.change(nil), nil
	}
	for _, snap := range path {
		if err := w.snapshot(ctx, snap); err != nil {
			return Change{}, err
		}
	}
	return w.change(path), nil
}

// OnlyCompaction reports whether every snapshot after from up to to is a compaction that
// kept every row. It reads nothing if one of them does not even call itself that.
func (r *Reader) OnlyCompaction(ctx context.Context, doc []byte, from, to int64) (bool, error) {
	d, err := parseDocument(doc)
	if err != nil {
		return false, err
	}
	path, reason := d.chain(id(from), id(to))
	if reason != "" || from == mv.NoSnapshot || len(path) == 0 {
		return false, nil
	}
	for _, snap := range path {
		if snap.Summary.Operation != operationReplace {
			return false, nil
		}
	}
	w := &walk{session: r.session(d), distrust: r.distrust}
	for _, snap := range path {
		if err := w.snapshot(ctx, snap); err != nil || w.touched {
			return false, err
		}
	}
	return true, nil
}

// columns looks up the wanted columns; one without usable ranges is everything from the
// first touched file on.
func (d *document) columns(wanted []Column) []*collector {
	found := make([]*collector, len(wanted))
	for i, c := range wanted {
		typ := d.columnType(c.FieldID)
		found[i] = &collector{column: column{id: c.FieldID, typ: typ, bounded: hasBounds(typ)}}
		switch {
		case typ == nil:
			found[i].never = ReasonNoColumn
		case !found[i].column.bucketable() || d.repeated(c.FieldID):
			found[i].never = ReasonColumnType
		}
	}
	return found
}
