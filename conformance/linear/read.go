package linear

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// understand reads an answer with table metadata and checks what must hold for every
// table: its snapshots are a chain that ends at main, its file says what the answer
// says, and its UUID stays.
func (c *client) understand(a answer, what string, whole bool) view {
	var loaded struct {
		Location string          `json:"metadata-location"`
		Metadata json.RawMessage `json:"metadata"`
	}
	if err := a.decode(&loaded); err != nil {
		c.run.problem("%s: %v", what, err)
		return view{}
	}
	v, snapshots, err := readTable(loaded.Metadata, whole)
	if err != nil {
		c.run.problem("%s: %v in %s", what, err, loaded.Metadata)
		return view{}
	}
	v.location = loaded.Location
	if whole {
		v.etag = a.etag
		if text, err := readMetadata(loaded.Location); err != nil {
			c.run.problem("%s: %v", what, err)
		} else if !bytes.Equal(text, loaded.Metadata) {
			c.run.problem("%s: %s differs from the answer:\n%s\n%s", what, loaded.Location, text, loaded.Metadata)
		}
	}
	c.run.saw(v, snapshots)
	return v
}

// saw notes what an answer shows.
func (r *Run) saw(v view, snapshots []int64) {
	r.mu.Lock()
	for _, id := range snapshots {
		r.seen.note(id, r.now())
	}
	r.files[v.location] = true
	uuid, known := r.uuids[v.table.creator]
	r.uuids[v.table.creator] = v.uuid
	r.mu.Unlock()
	if known && uuid != v.uuid {
		r.problem("table #%d has had the UUIDs %s and %s", v.table.creator, uuid, v.uuid)
	}
}

// readTable reads table metadata; whole says that all snapshots are in it.
func readTable(metadata []byte, whole bool) (view, []int64, error) {
	var m struct {
		UUID       string            `json:"table-uuid"`
		Current    *int64            `json:"current-snapshot-id"`
		Sequence   int               `json:"last-sequence-number"`
		Properties map[string]string `json:"properties"`
		Refs       map[string]struct {
			Snapshot int64 `json:"snapshot-id"`
		} `json:"refs"`
		Snapshots []struct {
			ID     int64 `json:"snapshot-id"`
			Parent int64 `json:"parent-snapshot-id"`
		} `json:"snapshots"`
	}
	if err := json.Unmarshal(metadata, &m); err != nil {
		return view{}, nil, err
	}
	v := view{uuid: m.UUID}
	v.table.creator, _ = strconv.ParseInt(m.Properties["creator"], 10, 64) // 0 is checked below
	v.table.writer, _ = strconv.ParseInt(m.Properties["writer"], 10, 64)   // 0 if there is none
	if v.uuid == "" || v.table.creator == 0 {
		return view{}, nil, errors.New("no UUID or no creator")
	}
	head := m.Refs["main"].Snapshot
	if m.Current != nil && *m.Current != -1 && *m.Current != head || (m.Current == nil || *m.Current == -1) && head != 0 {
		return view{}, nil, errors.New("main is not the current snapshot")
	}
	if !whole {
		v.table.head, v.table.length = head, m.Sequence
		return v, nil, nil
	}
	var ids []int64
	for _, s := range m.Snapshots {
		if s.Parent != v.table.head {
			return view{}, nil, fmt.Errorf("snapshot %d follows %d, not %d", s.ID, s.Parent, v.table.head)
		}
		v.table = v.table.with(s.ID)
		ids = append(ids, s.ID)
	}
	if v.table.head != head || v.table.length != m.Sequence {
		return view{}, nil, fmt.Errorf("%d snapshots up to %d, but main is at %d and the sequence at %d", v.table.length, v.table.head, head, m.Sequence)
	}
	return v, ids, nil
}

// readMetadata reads a metadata file of the warehouse.
func readMetadata(location string) ([]byte, error) {
	path, local := strings.CutPrefix(location, "file://")
	if !local || !filepath.IsAbs(path) {
		return nil, fmt.Errorf("%s is no local file", location)
	}
	text, err := os.ReadFile(path)
	if err != nil || !strings.HasSuffix(path, ".gz.metadata.json") {
		return text, err
	}
	return gunzip(text)
}

func gunzip(packed []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}
