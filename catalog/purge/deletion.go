package purge

import (
	"context"
	"maps"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/catalogd/catalogd/catalog"
)

const (
	// batchSize is how many files are deleted before the next are read.
	batchSize = 500
	// atATime is how many files are deleted at the same time.
	atATime = 8
	// askAgain is how long the answer that nobody else uses the location counts.
	askAgain = 5 * time.Second
	// maxParents bounds the folders that are looked at for being empty in the end.
	maxParents = 100_000
)

// deletion is one run of a purge.
type deletion struct {
	purger *Purger
	object catalog.Dropped
	doc    *document
	folder string // nothing outside of it is deleted
	shared files

	batch   []string
	asked   time.Time
	parents map[string]bool
	missing int // manifests and lists that were gone, as after an earlier run

	removed, outside, kept int64
}

// stoppedError ends a run because somebody else has begun to use the location: for good,
// or for a time that is not over before wait.
type stoppedError struct {
	by   string
	wait time.Duration
}

func (e stoppedError) Error() string {
	if e.wait > 0 {
		return "the location may be used again by what was dropped"
	}
	return "the location is used by " + e.by
}

// all deletes everything, each file before what names it. stopped says why it has ended
// earlier: with a wait the rest goes later, without one it stays for good.
func (r *deletion) all(ctx context.Context) (stopped *stoppedError, err error) {
	r.asked = r.purger.now()
	err = r.snapshots(ctx)
	if err == nil {
		err = r.metadata(ctx)
	}
	if e, ok := err.(stoppedError); ok { //nolint:errorlint // it is never wrapped
		return &e, nil
	}
	if err == nil {
		r.prune(ctx)
	}
	return nil, err
}

func (r *deletion) snapshots(ctx context.Context) error {
	done := map[string]bool{}
	for _, s := range r.doc.Snapshots {
		list, there, err := r.purger.reader.list(ctx, s)
		if err != nil {
			return err
		}
		if !there {
			r.missing++
			continue
		}
		for _, m := range list {
			if done[m.FilePath()] {
				continue
			}
			there, err := r.purger.reader.entries(ctx, m, func(path string) error { return r.add(ctx, path) })
			if err != nil {
				return err
			}
			if !there {
				r.missing++
			}
			// The manifest goes only after all that it names is gone: until then another run
			// finds everything through it.
			if err := r.flush(ctx); err != nil {
				return err
			}
			if err := r.one(ctx, m.FilePath()); err != nil {
				return err
			}
			done[m.FilePath()] = true
		}
		if s.ManifestList != "" {
			if err := r.one(ctx, s.ManifestList); err != nil {
				return err
			}
		}
	}
	return nil
}

// metadata deletes what the document itself names, and at last the document.
func (r *deletion) metadata(ctx context.Context) error {
	for _, path := range r.doc.statistics() {
		if err := r.add(ctx, path); err != nil {
			return err
		}
	}
	for _, path := range r.doc.log() {
		if err := r.add(ctx, path); err != nil {
			return err
		}
	}
	if err := r.flush(ctx); err != nil {
		return err
	}
	return r.one(ctx, r.object.Pointer.MetadataLocation)
}

// add notes a file for deletion.
func (r *deletion) add(ctx context.Context, location string) error {
	if r.batch = append(r.batch, location); len(r.batch) >= batchSize {
		return r.flush(ctx)
	}
	return nil
}

// one deletes a single file now.
func (r *deletion) one(ctx context.Context, location string) error {
	if err := r.add(ctx, location); err != nil {
		return err
	}
	return r.flush(ctx)
}

// flush deletes what was noted, unless somebody else has come to use the location.
func (r *deletion) flush(ctx context.Context) error {
	batch := r.batch
	r.batch = r.batch[:0]
	if len(batch) == 0 {
		return nil
	}
	if r.purger.now().Sub(r.asked) > askAgain {
		wait, with, err := r.purger.claimed(ctx, r.object)
		if err != nil {
			return err
		}
		if with != "" || wait > 0 {
			return stoppedError{by: with, wait: wait}
		}
		r.asked = r.purger.now()
	}
	var removed, outside atomic.Int64
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(atATime)
	for _, location := range batch {
		if !certainlyInside(location, r.folder) {
			r.outside++
			continue
		}
		if r.shared.has(location) {
			r.kept++
			continue
		}
		r.parent(location)
		group.Go(func() error {
			if err := gctx.Err(); err != nil {
				return err
			}
			err := r.purger.files.Remove(gctx, location)
			if catalog.KindOf(err) == catalog.KindInvalid {
				outside.Add(1) // not a place that this server may write to
				return nil
			}
			removed.Add(1)
			return err
		})
	}
	err := group.Wait()
	r.removed += removed.Load()
	r.outside += outside.Load()
	return err
}

// parent notes the folders that a file lies in.
func (r *deletion) parent(location string) {
	key := catalog.LocationKey(location)
	if !strings.HasPrefix(key, "/") {
		return // an object store has no folders
	}
	for dir := path.Dir(key); strings.HasPrefix(dir+"/", r.folder) && !r.parents[dir] && len(r.parents) < maxParents; dir = path.Dir(dir) {
		r.parents[dir] = true
	}
}

// prune deletes the local folders that are empty now, the deepest first. One that is not
// refuses to go, which is what makes this safe.
func (r *deletion) prune(ctx context.Context) {
	if strings.HasPrefix(r.folder, "/") {
		for _, dir := range []string{"data", "metadata", ""} { // made with the table
			r.parents[strings.TrimSuffix(r.folder+dir, "/")] = true
		}
	}
	deepest := func(a, b string) int { return len(b) - len(a) }
	for _, dir := range slices.SortedFunc(maps.Keys(r.parents), deepest) {
		_ = r.purger.files.Remove(ctx, dir)
	}
}
