package changes

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/apache/iceberg-go"

	"github.com/catalogd/catalogd/catalog"
	"github.com/catalogd/catalogd/mv"
)

// PlanRequest refines a plan.
type PlanRequest struct {
	// SchemaID chooses the schema that the plan returns; nil means the snapshot's own, or
	// the current one if the snapshot does not say.
	SchemaID *int
	// Restriction leaves out files that provably hold none of its rows; nil keeps all.
	Restriction *mv.Restriction
}

// Plan is the files of a table at a snapshot.
type Plan struct {
	Files         []mv.InputFile
	Schema        json.RawMessage // the very bytes of the metadata document
	SchemaID      int
	NameMapping   json.RawMessage // schema.name-mapping.default; nil if the table has none
	TotalBytes    int64           // of all files of the snapshot, by its summary; 0 if it does not say
	FilesSkipped  int             // left out by the restriction, in manifests that were read
	ManifestsRead int
	BytesRead     int64 // of manifests and manifest lists
}

// Bytes is the size of the files of the plan.
func (p Plan) Bytes() int64 {
	var n int64
	for _, f := range p.Files {
		n += f.Bytes
	}
	return n
}

// Plan implements [mv.Sources]; see [Reader.PlanAs].
func (r *Reader) Plan(ctx context.Context, doc []byte, snapshotID int64, want *mv.Restriction) (mv.Planned, error) {
	p, err := r.PlanAs(ctx, doc, snapshotID, PlanRequest{Restriction: want})
	if err != nil {
		return mv.Planned{}, err
	}
	return mv.Planned{
		Schema: p.Schema, NameMapping: p.NameMapping, Files: p.Files, Bytes: p.Bytes(), TotalBytes: max(p.TotalBytes, p.Bytes()),
	}, nil
}

// PlanAs lists the files of a table at a snapshot, which may be [mv.NoSnapshot], each with
// exactly the deletes that apply to it.
func (r *Reader) PlanAs(ctx context.Context, doc []byte, snapshotID int64, req PlanRequest) (Plan, error) {
	d, err := parseDocument(doc)
	if err != nil {
		return Plan{}, err
	}
	snap, err := d.snapshot(snapshotID)
	if err != nil {
		return Plan{}, err
	}
	p, err := d.describe(snap, req.SchemaID)
	if err != nil {
		return Plan{}, err
	}
	s := r.session(d)
	list, err := s.list(ctx, snap)
	if err != nil {
		return Plan{}, err
	}
	f := d.filter(req.Restriction)
	data, err := s.candidates(ctx, list, f, &p)
	if err != nil {
		return Plan{}, err
	}
	index, err := s.deletes(ctx, list, f, data)
	if err != nil {
		return Plan{}, err
	}
	for _, e := range data {
		file, err := d.input(e, index)
		if err != nil {
			return Plan{}, err
		}
		p.Files = append(p.Files, file)
	}
	p.ManifestsRead, p.BytesRead = s.read, s.bytes
	return p, nil
}

func (d *document) describe(snap *snapshot, schemaID *int) (Plan, error) {
	p := Plan{SchemaID: d.CurrentSchemaID}
	switch {
	case schemaID != nil:
		p.SchemaID = *schemaID
	case snap != nil && snap.SchemaID != nil:
		p.SchemaID = *snap.SchemaID
	}
	if m, ok := d.Properties[nameMappingProperty]; ok {
		if !json.Valid([]byte(m)) {
			return Plan{}, catalog.Errorf(catalog.KindUnprocessable, "property %s is not JSON", nameMappingProperty)
		}
		p.NameMapping = json.RawMessage(m)
	}
	if snap != nil {
		p.TotalBytes = snap.Summary.totalBytes()
	}
	var err error
	p.Schema, err = d.schema(p.SchemaID)
	return p, err
}

// candidates lists the live data files that may hold wanted rows.
func (s *session) candidates(ctx context.Context, list []iceberg.ManifestFile, f filter, p *Plan) ([]*entry, error) {
	var data []*entry
	for _, m := range list {
		if m.ManifestContent() != iceberg.ManifestContentData || !f.manifest(s.doc, m) {
			continue
		}
		entries, err := s.live(ctx, m)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if f.want != nil && !f.mayMatch(f.column.ofFile(e)) {
				p.FilesSkipped++
				continue
			}
			data = append(data, e)
		}
	}
	return data, nil
}

// deleteIndex finds the deletes of a data file.
type deleteIndex struct {
	vectors map[string][]*entry // by data file
	byPath  map[string][]*entry // position deletes of one data file
	byKey   map[string][]*entry // position and equality deletes of a partition
	global  []*entry            // equality deletes of unpartitioned specs
}

// deletes reads the delete manifests that may concern the given data files: a manifest
// older than all of them does not, nor does one of other partitions.
func (s *session) deletes(ctx context.Context, list []iceberg.ManifestFile, f filter, data []*entry) (*deleteIndex, error) {
	x := &deleteIndex{vectors: make(map[string][]*entry), byPath: make(map[string][]*entry), byKey: make(map[string][]*entry)}
	oldest := oldestSequence(data)
	for _, m := range list {
		if m.ManifestContent() != iceberg.ManifestContentDeletes || len(data) == 0 || m.SequenceNum() < oldest || !f.manifest(s.doc, m) {
			continue
		}
		entries, err := s.live(ctx, m)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if err := x.add(e); err != nil {
				return nil, err
			}
		}
	}
	return x, nil
}

func oldestSequence(data []*entry) int64 {
	var oldest int64
	for i, e := range data {
		if i == 0 || e.seq < oldest {
			oldest = e.seq
		}
	}
	return oldest
}

func (x *deleteIndex) add(e *entry) error {
	equality := e.file.ContentType() == iceberg.EntryContentEqDeletes
	path := ""
	if !equality {
		path = target(e.file)
	}
	switch {
	case isVector(e.file) && path == "":
		return catalog.Errorf(catalog.KindUnprocessable, "deletion vector in %s names no data file", e.file.FilePath())
	case isVector(e.file):
		x.vectors[path] = append(x.vectors[path], e)
	case path != "":
		x.byPath[path] = append(x.byPath[path], e)
	case equality && e.spec.unpartitioned:
		x.global = append(x.global, e)
	default:
		x.byKey[e.key] = append(x.byKey[e.key], e)
	}
	return nil
}

// input describes a data file with its deletes.
func (d *document) input(e *entry, x *deleteIndex) (mv.InputFile, error) {
	in := mv.InputFile{
		Path: e.file.FilePath(), Format: strings.ToUpper(string(e.file.FileFormat())), Bytes: e.file.FileSizeBytes(),
		Records: e.file.Count(), FirstRowID: e.file.FirstRowID(),
	}
	var err error
	if in.Partition, err = d.identityValues(e); err != nil {
		return in, err
	}
	if in.DeletionVector, err = x.vector(e); err != nil {
		return in, err
	}
	if in.DeletionVector == nil { // a vector holds all positions of its file
		for _, del := range x.byPath[in.Path] {
			if del.seq < 0 || e.seq < 0 || e.seq <= del.seq {
				in.PositionDeletes = append(in.PositionDeletes, deleteFile(del))
			}
		}
	}
	for _, del := range x.byKey[e.key] {
		equality := del.file.ContentType() == iceberg.EntryContentEqDeletes
		switch {
		case !d.matches(del, e):
		case equality:
			in.EqualityDeletes = append(in.EqualityDeletes, deleteFile(del))
		case in.DeletionVector == nil:
			in.PositionDeletes = append(in.PositionDeletes, deleteFile(del))
		}
	}
	for _, del := range x.global {
		if d.matches(del, e) {
			in.EqualityDeletes = append(in.EqualityDeletes, deleteFile(del))
		}
	}
	return in, nil
}

// vector picks the deletion vector of a data file. Two of them are a broken table:
// neither holds all positions.
func (x *deleteIndex) vector(e *entry) (*mv.DeleteFile, error) {
	var found *mv.DeleteFile
	for _, del := range x.vectors[e.file.FilePath()] {
		if del.seq >= 0 && e.seq > del.seq {
			continue
		}
		if found != nil {
			return nil, catalog.Errorf(catalog.KindUnprocessable, "data file %s has two deletion vectors", e.file.FilePath())
		}
		f := deleteFile(del)
		found = &f
	}
	return found, nil
}

func deleteFile(e *entry) mv.DeleteFile {
	f := mv.DeleteFile{Path: e.file.FilePath(), Bytes: e.file.FileSizeBytes(), EqualityIDs: e.file.EqualityFieldIDs()}
	if offset := e.file.ContentOffset(); offset != nil {
		f.Offset = *offset
	}
	if size := e.file.ContentSizeInBytes(); size != nil {
		f.Length = *size
	}
	return f
}
