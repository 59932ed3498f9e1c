package publish

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	iceio "github.com/apache/iceberg-go/io"
	"github.com/google/uuid"

	"github.com/catalogd/catalogd/catalog"
	"github.com/catalogd/catalogd/catalog/metadata"
	"github.com/catalogd/catalogd/mv"
	"github.com/catalogd/catalogd/mv/changes"
)

// Folders lists and removes files; package catalog/storage implements it.
type Folders interface {
	Remover
	// List returns all files below a folder, none if there is no such folder.
	List(ctx context.Context, folder string) ([]string, error)
}

// Sweeper removes the files of storage tables that no snapshot needs any more.
type Sweeper struct {
	fs    iceio.IO
	files Folders
}

// NewSweeper returns a Sweeper that reads manifests through fs.
func NewSweeper(fs iceio.IO, files Folders) *Sweeper { return &Sweeper{fs: fs, files: files} }

var _ mv.Sweeper = (*Sweeper)(nil)

// Sweep implements [mv.Sweeper]. It looks below data and metadata of the location only,
// wherever the table's properties send its files.
func (s *Sweeper) Sweep(ctx context.Context, req mv.Sweep) (mv.Swept, error) {
	var swept mv.Swept
	need, err := s.needed(ctx, req)
	if err != nil {
		return swept, err
	}
	root := strings.TrimRight(req.Location, "/")
	var listed []string
	for _, part := range []string{"/data", "/metadata"} {
		found, err := s.files.List(ctx, root+part)
		if err != nil {
			return swept, err
		}
		listed = append(listed, found...)
	}
	swept.Listed = len(listed)
	if err := need.complete(root, listed); err != nil {
		return swept, err
	}
	folders := make(map[string]bool)
	var failed error
	for _, name := range listed {
		if need.has(name) {
			continue
		}
		rel, inside := strings.CutPrefix(name, root+"/")
		before, ok := deadline(rel, req)
		if !inside || !ok {
			continue
		}
		gone, bytes, err := s.remove(ctx, name, before)
		switch {
		case err != nil:
			failed = errors.Join(failed, err)
		case !gone:
			swept.Young++
		default:
			swept.Removed++
			swept.Bytes += bytes
			runFolders(rel, folders)
		}
		if ctx.Err() != nil {
			return swept, ctx.Err()
		}
	}
	s.prune(ctx, root, folders)
	return swept, failed
}

// deadline says before when a file must have been modified to go, by its name relative to
// the table's location; ok is false for files that stay whatever their age.
func deadline(rel string, req mv.Sweep) (before time.Time, ok bool) {
	top, rest, _ := strings.Cut(rel, "/")
	base := path.Base(rel)
	own := strings.HasPrefix(base, ".tmp-") // half a file of a process that died
	if top == "data" {
		run, _, nested := strings.Cut(rest, "/")
		if nested && req.Runs[run] {
			return time.Time{}, true // never
		}
		own = own || nested && isUUID(run)
	} else {
		// Statistics, version hints and whatever else lies here are not ours to judge.
		if !own && !strings.HasSuffix(base, ".avro") && !strings.HasSuffix(base, ".metadata.json") {
			return time.Time{}, false
		}
		own = own || ownMetadata.MatchString(base)
	}
	if own {
		return req.OwnBefore, true
	}
	return req.StrangersBefore, true
}

// ownMetadata matches the names of metadata files, manifests and manifest lists that are
// written right before their commit, by us and by every other client.
var ownMetadata = regexp.MustCompile(`^(\d+-[0-9a-f-]{36}(\.gz)?\.metadata\.json|[0-9a-f-]{36}-m\d+\.avro|snap-\d+-\d+-[0-9a-f-]{36}\.avro)$`)

func isUUID(s string) bool { return len(s) == 36 && uuid.Validate(s) == nil }

// remove deletes a file that is old enough.
func (s *Sweeper) remove(ctx context.Context, name string, before time.Time) (gone bool, bytes int64, err error) {
	info, err := s.stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, 0, nil
	}
	if err != nil {
		return false, 0, catalog.Errorf(catalog.KindUnavailable, "cannot tell the age of file %s", name).Because(err)
	}
	// A storage that does not know the time of a change must not make it look old.
	if info.ModTime().IsZero() || !info.ModTime().Before(before) {
		return false, 0, nil
	}
	if err := s.files.Remove(ctx, name); err != nil {
		return false, 0, err
	}
	return true, info.Size(), nil
}

func (s *Sweeper) stat(name string) (fs.FileInfo, error) {
	if st, ok := s.fs.(iceio.StatIO); ok {
		return st.Stat(name)
	}
	f, err := s.fs.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Stat()
}

// prune removes the folders of runs that have lost their last file. Removing a folder as
// if it were a file fails while it has entries, which is what makes this safe; an object
// store has no folders.
func (s *Sweeper) prune(ctx context.Context, root string, folders map[string]bool) {
	if !strings.HasPrefix(root, "/") && !strings.HasPrefix(strings.ToLower(root), "file:") {
		return
	}
	deepest := func(a, b string) int { return len(b) - len(a) }
	for _, folder := range slices.SortedFunc(maps.Keys(folders), deepest) {
		_ = s.files.Remove(ctx, root+"/"+folder)
	}
}

// runFolders adds the folders that a file of a run lies in, up to the run's own.
func runFolders(rel string, to map[string]bool) {
	parts := strings.Split(rel, "/")
	if parts[0] != "data" || len(parts) < 3 || !isUUID(parts[1]) {
		return
	}
	for n := 2; n < len(parts); n++ {
		to[strings.Join(parts[:n], "/")] = true
	}
}

// RemoveTable implements [mv.Sweeper].
func (s *Sweeper) RemoveTable(ctx context.Context, location string, after time.Time) (mv.Swept, string, error) {
	var swept mv.Swept
	listed, err := s.files.List(ctx, location)
	if err != nil {
		return swept, "", err
	}
	swept.Listed = len(listed)
	var bytes int64
	for _, name := range listed {
		if err := ctx.Err(); err != nil {
			return swept, "", err
		}
		info, err := s.stat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return swept, "", catalog.Errorf(catalog.KindUnavailable, "cannot tell the age of file %s", name).Because(err)
		}
		if info.ModTime().After(after) {
			return swept, name, nil
		}
		bytes += info.Size()
	}
	if err := s.files.RemoveAll(ctx, location); err != nil {
		return swept, "", err
	}
	swept.Removed, swept.Bytes = len(listed), bytes
	return swept, "", nil
}

// needed is the files that must stay, by [bare] name. The value is the name as it was
// written in the metadata.
type needed map[string]string

// needed collects what the documents refer to: everything, or an error.
func (s *Sweeper) needed(ctx context.Context, req mv.Sweep) (needed, error) {
	refs, err := changes.New(s.fs).References(ctx, req.Documents...)
	if err != nil {
		return nil, err
	}
	need := make(needed, len(refs))
	for name := range refs {
		need[bare(name)] = name
	}
	// What follows is not checked for being there: the older metadata files often are not.
	for _, name := range req.Keep {
		need[bare(name)] = ""
	}
	for _, doc := range req.Documents {
		t, err := metadata.ParseTable(doc)
		if err != nil {
			return nil, catalog.Errorf(catalog.KindUnprocessable, "metadata of the storage table cannot be read").Because(err)
		}
		older, err := t.MetadataLog()
		if err != nil {
			return nil, catalog.Errorf(catalog.KindUnprocessable, "metadata log of the storage table cannot be read").Because(err)
		}
		for _, entry := range older {
			need[bare(entry.MetadataFile)] = ""
		}
		stats, err := t.Statistics()
		if err != nil {
			return nil, catalog.Errorf(catalog.KindUnprocessable, "statistics of the storage table cannot be read").Because(err)
		}
		for _, file := range stats {
			need[bare(file.Path)] = ""
		}
	}
	return need, nil
}

func (n needed) has(name string) bool {
	_, ok := n[bare(name)]
	return ok
}

// complete fails if a needed file below root was not listed: then either the table is
// broken, or its metadata spells names in a way that we do not understand, and what looks
// like garbage is not.
func (n needed) complete(root string, listed []string) error {
	there := make(map[string]bool, len(listed))
	for _, name := range listed {
		there[bare(name)] = true
	}
	data, meta := bare(root+"/data")+"/", bare(root+"/metadata")+"/"
	for name, written := range n {
		inside := strings.HasPrefix(name, data) || strings.HasPrefix(name, meta)
		if written != "" && inside && !there[name] {
			return catalog.Errorf(catalog.KindUnavailable, "file %s, which the storage table refers to, is not in its folder: nothing is removed", written)
		}
	}
	return nil
}

// bare is a location without what may differ between two names of one file: the scheme,
// repeated slashes, and characters that iceberg-go escapes.
func bare(location string) string {
	if head, tail, ok := strings.Cut(location, ":"); ok && !strings.Contains(head, "/") {
		location = tail
		if rest, ok := strings.CutPrefix(location, "//localhost/"); ok && strings.EqualFold(head, "file") {
			location = rest
		}
	}
	if strings.Contains(location, "%") {
		if plain, err := url.PathUnescape(location); err == nil {
			location = plain
		}
	}
	return strings.TrimPrefix(path.Clean("/"+location), "/")
}
