package client

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/klauspost/compress/gzip"
)

// StatusError is an answer with an unexpected status.
type StatusError struct {
	Status  int
	Message string
}

func (e *StatusError) Error() string { return fmt.Sprintf("status %d: %s", e.Status, e.Message) }

// IsStatus reports whether err is an answer with that status.
func IsStatus(err error, status int) bool {
	e, ok := errors.AsType[*StatusError](err)
	return ok && e.Status == status
}

// Text is the body, decompressed. A body of several gzip members is refused: RFC 1952
// allows it, but not every client reads on after the first.
func (r Reply) Text() ([]byte, error) {
	if !r.Gzip {
		return r.Body, nil
	}
	rest := bytes.NewReader(r.Body)
	z, err := gzip.NewReader(rest)
	if err != nil {
		return nil, err
	}
	z.Multistream(false)
	text, err := io.ReadAll(z)
	if err != nil {
		return nil, err
	}
	if rest.Len() > 0 {
		return nil, fmt.Errorf("%d bytes follow the gzip member", rest.Len())
	}
	return text, nil
}

// maxMessage bounds how much of a strange answer an error message repeats.
const maxMessage = 300

// ok turns a status that is not 2xx into a *StatusError.
func (r Reply) ok() error {
	if r.Status/100 == 2 {
		return nil
	}
	text, err := r.Text()
	if err != nil {
		text = r.Body
	}
	message := strings.Join(strings.Fields(string(text)), " ")
	if len(message) > maxMessage {
		message = message[:maxMessage] + "…"
	}
	return &StatusError{Status: r.Status, Message: message}
}

// Table is what an answer says about a table.
type Table struct {
	MetadataLocation string
	Metadata         json.RawMessage // the bytes as served
	UUID             string
	Location         string
	Snapshots        int
	LastSequence     int64
	Current          int64 // snapshot id, 0 if there is none
	Main             int64 // snapshot id, 0 if there is none
	HasCurrent       bool  // whether Current is among the snapshots that were sent
	Line             int   // snapshots from the current one back to the first, of those that were sent
}

type tableMetadata struct {
	UUID      string `json:"table-uuid"`
	Location  string `json:"location"`
	Sequence  int64  `json:"last-sequence-number"`
	Current   *int64 `json:"current-snapshot-id"`
	Snapshots []struct {
		ID     int64 `json:"snapshot-id"`
		Parent int64 `json:"parent-snapshot-id"`
	} `json:"snapshots"`
	Refs map[string]struct {
		ID int64 `json:"snapshot-id"`
	} `json:"refs"`
}

// Table reads the answer to a create, load or commit.
func (r Reply) Table() (Table, error) {
	if err := r.ok(); err != nil {
		return Table{}, err
	}
	text, err := r.Text()
	if err != nil {
		return Table{}, err
	}
	var answer struct {
		MetadataLocation string          `json:"metadata-location"`
		Metadata         json.RawMessage `json:"metadata"`
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return Table{}, err
	}
	var m tableMetadata
	if err := json.Unmarshal(answer.Metadata, &m); err != nil {
		return Table{}, err
	}
	t := Table{
		MetadataLocation: answer.MetadataLocation, Metadata: answer.Metadata, UUID: m.UUID, Location: m.Location,
		Snapshots: len(m.Snapshots), LastSequence: m.Sequence, Main: m.Refs["main"].ID,
	}
	if m.Current != nil && *m.Current > 0 { // −1 stands for none
		t.Current = *m.Current
	}
	parents := make(map[int64]int64, len(m.Snapshots))
	for _, s := range m.Snapshots {
		parents[s.ID] = s.Parent
	}
	_, t.HasCurrent = parents[t.Current]
	for id, ok := t.Current, t.HasCurrent; ok && t.Line < len(parents); _, ok = parents[id] {
		t.Line++
		id = parents[id]
	}
	return t, nil
}

// notModified checks the answer to a revalidation.
func (r Reply) notModified(etag string) error {
	switch {
	case r.Status != http.StatusNotModified:
		return fmt.Errorf("status %d, want 304", r.Status)
	case len(r.Body) > 0:
		return errors.New("a 304 has a body")
	case r.ETag != etag:
		return fmt.Errorf("the ETag of a 304 is %q, want %q", r.ETag, etag)
	}
	return nil
}
