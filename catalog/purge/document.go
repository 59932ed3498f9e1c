package purge

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/catalogd/catalogd/catalog"
)

// document is as much of a table's metadata as names files.
type document struct {
	UUID        string            `json:"table-uuid"`
	Location    string            `json:"location"`
	Properties  map[string]string `json:"properties"`
	Snapshots   []snapshot        `json:"snapshots"`
	Statistics  []statistics      `json:"statistics"`
	Partition   []statistics      `json:"partition-statistics"`
	MetadataLog []struct {
		File string `json:"metadata-file"`
	} `json:"metadata-log"`
}

type snapshot struct {
	ID           int64    `json:"snapshot-id"`
	ManifestList string   `json:"manifest-list"`
	Manifests    []string `json:"manifests"` // version 1, instead of a list
}

type statistics struct {
	Path string `json:"statistics-path"`
}

func (d *document) statistics() []string {
	paths := make([]string, 0, len(d.Statistics)+len(d.Partition))
	for _, s := range d.Statistics {
		paths = append(paths, s.Path)
	}
	for _, s := range d.Partition {
		paths = append(paths, s.Path)
	}
	return paths
}

func (d *document) log() []string {
	paths := make([]string, 0, len(d.MetadataLog))
	for _, entry := range d.MetadataLog {
		paths = append(paths, entry.File)
	}
	return paths
}

// document reads the metadata of an object. KindNotFound if it is gone.
func (p *Purger) document(ctx context.Context, row catalog.Pointer) (*document, error) {
	raw, err := p.documents.Document(ctx, row)
	if err != nil {
		return nil, err
	}
	if raw, err = plain(raw); err == nil {
		var doc document
		if err = json.Unmarshal(raw, &doc); err == nil {
			return &doc, nil
		}
	}
	return nil, catalog.Errorf(catalog.KindUnprocessable, "the metadata of %s cannot be read", row.Ident).Because(err)
}

// plain undoes the compression that a table's properties may ask for.
func plain(raw []byte) ([]byte, error) {
	if !bytes.HasPrefix(raw, []byte{0x1f, 0x8b}) {
		return raw, nil
	}
	r, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("read compressed metadata: %w", err)
	}
	out, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("read compressed metadata: %w", err)
	}
	return out, nil
}
