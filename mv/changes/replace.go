package changes

import (
	"context"
	"slices"

	"github.com/apache/iceberg-go"
)

// balanced reports whether a replace snapshot kept every row, as far as counts can show
// it: in each partition the removed files had as many rows, without those that deletes
// masked, as the added files have. Equality deletes mask an unknown number of rows, so
// where one applies nothing is proven.
func (w *walk) balanced(ctx context.Context, d *delta) (bool, error) {
	if len(d.added)+len(d.removed)+len(d.on)+len(d.off) == 0 {
		return true, nil // manifests were rewritten, or not even that
	}
	if len(d.on) > 0 {
		return false, nil
	}
	deletes, err := w.standing(ctx, d)
	if err != nil {
		return false, err
	}
	free, err := w.gone(ctx, d)
	if err != nil || !free {
		return false, err
	}
	rows := make(map[string]int64)
	for _, e := range d.removed {
		masked, known, err := w.masked(ctx, e, deletes)
		if err != nil || !known {
			return false, err
		}
		rows[e.key] += e.file.Count() - masked
	}
	for _, e := range d.added {
		rows[e.key] -= e.file.Count()
	}
	for _, n := range rows {
		if n != 0 {
			return false, nil
		}
	}
	return true, nil
}

// standing lists the deletes that applied just before a replace snapshot: those that
// still do, and those that it removed.
func (w *walk) standing(ctx context.Context, d *delta) ([]*entry, error) {
	deletes := d.off
	for _, m := range d.list {
		if m.ManifestContent() != iceberg.ManifestContentDeletes {
			continue
		}
		entries, err := w.live(ctx, m)
		if err != nil {
			return nil, err
		}
		deletes = append(slices.Clip(deletes), entries...)
	}
	return deletes, nil
}

// gone reports whether the deletes that a snapshot removed concerned only data files that
// it removed too. Otherwise rows came back.
func (w *walk) gone(ctx context.Context, d *delta) (bool, error) {
	removed := make(map[string]bool, len(d.removed))
	for _, e := range d.removed {
		removed[e.file.FilePath()] = true
	}
	for _, del := range d.off {
		files, _, err := w.targets(ctx, d, del)
		if err != nil {
			return false, err
		}
		for _, e := range files {
			if !removed[e.file.FilePath()] {
				return false, nil
			}
		}
	}
	return true, nil
}

// masked counts the rows of a data file that deletes hide. known is false if that cannot
// be told: an equality delete applies, or the positions are not readable.
func (w *walk) masked(ctx context.Context, data *entry, deletes []*entry) (rows int64, known bool, err error) {
	var positional []*entry
	for _, del := range deletes {
		switch path := target(del.file); {
		case del.file.ContentType() == iceberg.EntryContentEqDeletes:
			if w.doc.matches(del, data) {
				return 0, false, nil
			}
		case path != "" && path != data.file.FilePath():
		case isVector(del.file): // the only positional delete that counts for its file
			return del.file.Count(), true, nil
		case path != "" || applies(del, data):
			positional = append(positional, del)
		}
	}
	if len(positional) == 0 {
		return 0, true, nil
	}
	if len(positional) == 1 && target(positional[0].file) != "" {
		return positional[0].file.Count(), true, nil
	}
	return w.positions(ctx, data, positional)
}
