package changes

import (
	"context"
	"strings"

	"github.com/apache/iceberg-go"

	"github.com/catalogd/catalogd/mv"
)

// Stored is a live file of a table with what replacing it needs.
type Stored struct {
	File     mv.InputFile // without its deletes
	Manifest string       // location of the manifest that lists it
	// Contained is true if every row of the file provably satisfies the restriction that
	// selected it, so that the file may be replaced as a whole.
	Contained bool
}

// Stored lists the live data files of the current snapshot whose partition may hold rows
// of the restriction (nil: all files). Only manifests whose partition summaries may match
// are read. Files of one partition stand or fall together: bounds are used only for files
// whose partition says nothing about the column.
func (r *Reader) Stored(ctx context.Context, doc []byte, want *mv.Restriction) ([]Stored, error) {
	d, err := parseDocument(doc)
	if err != nil {
		return nil, err
	}
	head := mv.NoSnapshot
	if d.CurrentSnapshotID != nil {
		head = *d.CurrentSnapshotID
	}
	snap, err := d.snapshot(head)
	if err != nil {
		return nil, err
	}
	s := r.session(d)
	list, err := s.list(ctx, snap)
	if err != nil {
		return nil, err
	}
	f := d.filter(want)
	var found []Stored
	for _, m := range list {
		if m.ManifestContent() != iceberg.ManifestContentData || !f.manifest(d, m) {
			continue
		}
		entries, err := s.live(ctx, m)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if st, ok := f.stored(e, m); ok {
				found = append(found, st)
			}
		}
	}
	return found, nil
}

func (f filter) stored(e *entry, m iceberg.ManifestFile) (Stored, bool) {
	st := Stored{Manifest: m.FilePath(), Contained: true, File: mv.InputFile{
		Path: e.file.FilePath(), Format: strings.ToUpper(string(e.file.FileFormat())), Bytes: e.file.FileSizeBytes(), Records: e.file.Count(),
	}}
	if f.want == nil {
		return st, true
	}
	if f.column.id == 0 { // the restriction's column is unknown here
		st.Contained = false
		return st, true
	}
	p := f.column.ofPartition(e.spec, e.file.Partition())
	if p.unknown {
		p = f.column.ofFile(e)
	}
	st.Contained = f.contains(p) || f.contains(f.column.ofFile(e))
	return st, f.mayMatch(p)
}
