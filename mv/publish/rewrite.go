package publish

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"github.com/catalogd/catalogd/catalog"
	"github.com/catalogd/catalogd/mv"
	"github.com/catalogd/catalogd/mv/changes"
)

// change is what a snapshot does to the files of its table.
type change struct {
	all     bool
	remove  map[string]bool // data files that were not found yet
	listed  map[string]bool // manifests that list them, as far as is known
	added   []iceberg.DataFile
	removed []iceberg.ManifestEntry // found while rewriting
}

func newChange(pub mv.Publication, added []iceberg.DataFile) (*change, error) {
	c := &change{all: pub.All, added: added, remove: make(map[string]bool), listed: make(map[string]bool)}
	if pub.Remove == nil {
		return c, nil
	}
	if pub.All {
		return nil, catalog.Errorf(catalog.KindUnprocessable, "a snapshot that replaces everything names files to remove")
	}
	for _, f := range pub.Remove.Files {
		if c.remove[f.Path] {
			return nil, catalog.Errorf(catalog.KindUnprocessable, "file %s is to be removed twice", f.Path)
		}
		c.remove[f.Path] = true
	}
	if known, ok := pub.Remove.Handle.(handle); ok {
		c.listed = known
	}
	for _, f := range added {
		if c.remove[f.FilePath()] {
			return nil, catalog.Errorf(catalog.KindUnprocessable, "file %s is to be removed and added", f.FilePath())
		}
	}
	return c, nil
}

// rewrite writes the manifests that change and returns the new list.
func (st *stage) rewrite(ctx context.Context, c *change) ([]iceberg.ManifestFile, error) {
	groups := make(map[group][]pending)
	kept, err := st.takeOut(ctx, c, groups)
	if err != nil {
		return nil, err
	}
	if kept, err = st.tidy(ctx, kept, groups); err != nil {
		return nil, err
	}
	if kept, err = st.dropDeletes(ctx, c, kept, groups); err != nil {
		return nil, err
	}
	for _, file := range c.added {
		g := group{spec: int(file.SpecID())}
		groups[g] = append(groups[g], pending{status: iceberg.EntryStatusADDED, file: file})
	}
	var out []iceberg.ManifestFile
	for _, g := range slices.SortedFunc(maps.Keys(groups), group.compare) {
		written, err := st.writeGroup(ctx, g, groups[g])
		if err != nil {
			return nil, err
		}
		out = append(out, written...)
	}
	return append(out, kept...), nil
}

// group is the files that may share a manifest.
type group struct {
	spec    int
	deletes bool
}

func (g group) compare(o group) int {
	return cmp.Or(cmp.Compare(g.spec, o.spec), cmp.Compare(bit(g.deletes), bit(o.deletes)))
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// pending is an entry that waits for its manifest.
type pending struct {
	status iceberg.ManifestEntryStatus
	entry  iceberg.ManifestEntry // nil for an added file
	file   iceberg.DataFile
}

// takeOut opens the manifests that list files to remove and returns the others. Manifests
// without a live file are dropped: their tombstones have served.
func (st *stage) takeOut(ctx context.Context, c *change, groups map[group][]pending) ([]iceberg.ManifestFile, error) {
	likely := func(m iceberg.ManifestFile) bool { return c.all || c.listed[m.FilePath()] }
	rest := slices.DeleteFunc(slices.Clone(st.manifests), func(m iceberg.ManifestFile) bool { return liveFiles(m) == 0 })
	// Manifests that are known to list the files come first; the rest is looked through only
	// for files that are not found there.
	for _, pass := range []func(iceberg.ManifestFile) bool{likely, func(m iceberg.ManifestFile) bool { return !likely(m) }} {
		var kept []iceberg.ManifestFile
		for _, m := range rest {
			opened := false
			if (c.all || len(c.remove) > 0) && m.ManifestContent() == iceberg.ManifestContentData && pass(m) {
				var err error
				if opened, err = st.open(ctx, c, m, groups); err != nil {
					return nil, err
				}
			}
			if !opened {
				kept = append(kept, m)
			}
		}
		rest = kept
	}
	for path := range c.remove {
		return nil, catalog.Errorf(catalog.KindCommitFailed,
			"storage table %s no longer lists file %s that was to be replaced: plan again", st.meta.TableUUID(), path)
	}
	return rest, nil
}

func liveFiles(m iceberg.ManifestFile) int {
	return int(m.AddedDataFiles()) + int(m.ExistingDataFiles())
}

// open reads a manifest. If it lists files to remove, its entries go into groups.
func (st *stage) open(ctx context.Context, c *change, m iceberg.ManifestFile, groups map[group][]pending) (bool, error) {
	entries, err := st.entries(ctx, m)
	if err != nil {
		return false, err
	}
	goes := func(e iceberg.ManifestEntry) bool { return c.all || c.remove[e.DataFile().FilePath()] }
	if !slices.ContainsFunc(entries, goes) {
		return false, nil
	}
	g := group{spec: int(m.PartitionSpecID())}
	for _, e := range entries {
		p := pending{status: iceberg.EntryStatusEXISTING, entry: e, file: e.DataFile()}
		if goes(e) {
			delete(c.remove, e.DataFile().FilePath())
			p.status = iceberg.EntryStatusDELETED
			c.removed = append(c.removed, e)
		}
		groups[g] = append(groups[g], p)
	}
	return true, nil
}

// tidy joins manifests that are less than half full once there are too many of them.
func (st *stage) tidy(ctx context.Context, manifests []iceberg.ManifestFile, groups map[group][]pending) ([]iceberg.ManifestFile, error) {
	half := func(m iceberg.ManifestFile) bool {
		return m.ManifestContent() == iceberg.ManifestContentData && liveFiles(m) < st.perFile/2
	}
	count := 0
	for _, m := range manifests {
		count += bit(half(m))
	}
	if count <= st.small {
		return manifests, nil
	}
	var kept []iceberg.ManifestFile
	for _, m := range manifests {
		if !half(m) {
			kept = append(kept, m)
			continue
		}
		entries, err := st.entries(ctx, m)
		if err != nil {
			return nil, err
		}
		g := group{spec: int(m.PartitionSpecID())}
		for _, e := range entries {
			groups[g] = append(groups[g], pending{status: iceberg.EntryStatusEXISTING, entry: e, file: e.DataFile()})
		}
	}
	return kept, nil
}

func (st *stage) entries(ctx context.Context, m iceberg.ManifestFile) ([]iceberg.ManifestEntry, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	st.read++
	var entries []iceberg.ManifestEntry
	for e, err := range m.Entries(st.fs, true) {
		if err != nil {
			return nil, catalog.Errorf(catalog.KindUnavailable, "cannot read manifest %s", m.FilePath()).Because(err)
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// dropDeletes removes the position deletes of single files that go; if no old data file
// stays, all deletes. The others name files by path or are older than the new files, so
// they do no harm.
func (st *stage) dropDeletes(ctx context.Context, c *change, kept []iceberg.ManifestFile, groups map[group][]pending) ([]iceberg.ManifestFile, error) {
	if len(c.removed) == 0 {
		return kept, nil
	}
	gone := make(map[string]bool, len(c.removed))
	for _, e := range c.removed {
		gone[e.DataFile().FilePath()] = true
	}
	all := !survivors(kept, groups)
	goes := func(e iceberg.ManifestEntry) bool { return all || gone[changes.Target(e.DataFile())] }
	var out []iceberg.ManifestFile
	for _, m := range kept {
		if m.ManifestContent() != iceberg.ManifestContentDeletes {
			out = append(out, m)
			continue
		}
		entries, err := st.entries(ctx, m)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(entries, goes) {
			out = append(out, m)
			continue
		}
		g := group{spec: int(m.PartitionSpecID()), deletes: true}
		for _, e := range entries {
			p := pending{status: iceberg.EntryStatusEXISTING, entry: e, file: e.DataFile()}
			if goes(e) {
				p.status = iceberg.EntryStatusDELETED
				c.removed = append(c.removed, e)
			}
			groups[g] = append(groups[g], p)
		}
	}
	return out, nil
}

// survivors reports whether a data file of the parent snapshot stays.
func survivors(kept []iceberg.ManifestFile, groups map[group][]pending) bool {
	for g, entries := range groups {
		if !g.deletes && slices.ContainsFunc(entries, func(p pending) bool { return p.status == iceberg.EntryStatusEXISTING }) {
			return true
		}
	}
	return slices.ContainsFunc(kept, func(m iceberg.ManifestFile) bool { return m.ManifestContent() == iceberg.ManifestContentData })
}

// writeGroup writes entries in partition order into as few manifests as may hold them, so
// that files which change together lie together.
func (st *stage) writeGroup(ctx context.Context, g group, entries []pending) ([]iceberg.ManifestFile, error) {
	spec := st.meta.PartitionSpecByID(g.spec)
	if spec == nil {
		return nil, catalog.Errorf(catalog.KindUnprocessable, "storage table %s has no partition spec %d", st.meta.TableUUID(), g.spec)
	}
	keys := make(map[iceberg.DataFile][]any, len(entries))
	for _, p := range entries {
		keys[p.file] = sortKey(spec, p.file)
	}
	slices.SortStableFunc(entries, func(a, b pending) int { return compareKeys(keys[a.file], keys[b.file]) })
	count := (len(entries) + st.perFile - 1) / st.perFile
	var out []iceberg.ManifestFile
	for i := range count {
		m, err := st.writeManifest(ctx, g, spec, entries[i*len(entries)/count:(i+1)*len(entries)/count])
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
}

func sortKey(spec *iceberg.PartitionSpec, file iceberg.DataFile) []any {
	partition := file.Partition()
	key := make([]any, 0, spec.NumFields())
	for _, f := range spec.Fields() {
		v, _ := changes.Value(partition[f.FieldID])
		key = append(key, v)
	}
	return key
}

func compareKeys(a, b []any) int {
	for i := range a {
		c, ok := changes.Compare(a[i], b[i])
		if !ok {
			c = bit(a[i] != nil) - bit(b[i] != nil) // NULL first
		}
		if c != 0 {
			return c
		}
	}
	return 0
}

func (st *stage) writeManifest(ctx context.Context, g group, spec *iceberg.PartitionSpec, entries []pending) (iceberg.ManifestFile, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	content := iceberg.ManifestContentData
	if g.deletes {
		content = iceberg.ManifestContentDeletes
	}
	var buf bytes.Buffer
	w, err := iceberg.NewManifestWriter(2, &buf, *spec, st.meta.CurrentSchema(), st.snapshotID, iceberg.WithManifestWriterContent(content))
	if err != nil {
		return nil, err
	}
	for _, p := range entries {
		switch p.status {
		case iceberg.EntryStatusADDED:
			err = w.Add(iceberg.NewManifestEntry(p.status, &st.snapshotID, nil, nil, p.file))
		case iceberg.EntryStatusDELETED:
			err = w.Delete(p.entry)
		default:
			err = w.Existing(p.entry)
		}
		if err != nil {
			return nil, fmt.Errorf("manifest entry of %s: %w", p.file.FilePath(), err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	location := st.metadataLocation(fmt.Sprintf("%s-m%d.avro", st.attempt, st.wrote))
	st.wrote++
	if err := st.write(location, buf.Bytes()); err != nil {
		return nil, err
	}
	return w.ToManifestFile(location, int64(buf.Len()), iceberg.WithManifestFileContent(content))
}

func (st *stage) writeList(manifests []iceberg.ManifestFile) (string, error) {
	var parent *int64
	if st.head != nil {
		parent = &st.head.SnapshotID
	}
	var buf bytes.Buffer
	if err := iceberg.WriteManifestList(2, &buf, st.snapshotID, parent, &st.sequence, 0, manifests); err != nil {
		return "", err
	}
	location := st.metadataLocation(fmt.Sprintf("snap-%d-0-%s.avro", st.snapshotID, st.attempt))
	return location, st.write(location, buf.Bytes())
}

// metadataLocation names a metadata file. iceberg-go's own provider would escape the
// location of the table, which other clients then look for under the escaped name.
func (st *stage) metadataLocation(name string) string {
	folder := st.meta.Properties()[table.WriteMetadataPathKey]
	if folder == "" {
		folder = strings.TrimRight(st.meta.Location(), "/") + "/metadata"
	}
	return strings.TrimRight(folder, "/") + "/" + name
}

// write remembers the location first: half a file is garbage too.
func (st *stage) write(location string, data []byte) error {
	st.written = append(st.written, location)
	if err := st.fs.WriteFile(location, data); err != nil {
		return fmt.Errorf("write %s: %w", location, err)
	}
	return nil
}
