package mv

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/catalogd/catalogd/catalog"
)

// KeySchemas holds the schema id of each source table by its uuid.
const KeySchemas = "catalogd.schemas"

const (
	sourceTable = "table"
	sourceView  = "view"
)

// StateOptions chooses how a refresh state is written.
type StateOptions struct {
	// Older adds the two lists that drafts of the specification had until December 2025, so
	// that engines built on them can tell freshness too.
	Older bool
}

// wireState is the refresh-state record. Pointers tell what is absent from what is zero.
type wireState struct {
	ViewVersionID  *int         `json:"view-version-id,omitempty"`
	RefreshVersion *int         `json:"refresh-version-id,omitempty"` // its name in the first draft
	Sources        []wireSource `json:"source-states"`
	Tables         []wireSource `json:"source-table-states,omitempty"`
	Views          []wireSource `json:"source-view-states,omitempty"`
	Start          *int64       `json:"refresh-start-timestamp-ms,omitempty"`
}

type wireSource struct {
	Type       string   `json:"type,omitempty"`
	Catalog    string   `json:"catalog,omitempty"`
	Namespace  []string `json:"namespace,omitempty"`
	Name       string   `json:"name,omitempty"`
	UUID       string   `json:"uuid"`
	SnapshotID *int64   `json:"snapshot-id,omitempty"`
	Ref        string   `json:"ref,omitempty"`
	VersionID  *int     `json:"version-id,omitempty"`
}

// EncodeRefreshState gives the summary entries that record s.
func EncodeRefreshState(s RefreshState, o StateOptions) (map[string]string, error) {
	w := wireState{ViewVersionID: &s.ViewVersionID, Start: &s.StartTimestamp, Sources: []wireSource{}}
	for _, src := range s.Sources {
		e, err := encodeSource(src)
		if err != nil {
			return nil, err
		}
		w.Sources = append(w.Sources, e)
		if !o.Older {
			continue
		}
		if src.Type == sourceView {
			w.Views = append(w.Views, wireSource{UUID: e.UUID, VersionID: e.VersionID})
		} else {
			w.Tables = append(w.Tables, wireSource{UUID: e.UUID, SnapshotID: e.SnapshotID, Ref: e.Ref})
		}
	}
	text, err := marshal(w)
	if err != nil {
		return nil, err
	}
	out := map[string]string{KeyRefreshState: text}
	if len(s.Schemas) > 0 {
		if out[KeySchemas], err = marshal(s.Schemas); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func encodeSource(s SourceState) (wireSource, error) {
	w := wireSource{Type: s.Type, Catalog: s.Catalog, Namespace: s.Namespace, Name: s.Name, UUID: s.UUID}
	if w.Namespace == nil {
		w.Namespace = []string{}
	}
	switch s.Type {
	case sourceTable:
		w.SnapshotID, w.Ref = &s.SnapshotID, s.Ref
	case sourceView:
		w.VersionID = &s.VersionID
	default:
		return w, catalog.Errorf(catalog.KindInternal, "source state of %s has type %q", s.Name, s.Type)
	}
	return w, nil
}

// marshal is json.Marshal without escaping for HTML, which other readers may not undo.
func marshal(v any) (string, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return "", fmt.Errorf("encode refresh state: %w", err)
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}

// DecodeRefreshState reads what a storage snapshot's summary records. It takes the
// current form and the older one, whose sources have no names, and ignores members that
// it does not know. A summary that records nothing is KindNotFound, one that cannot be
// read KindUnprocessable.
func DecodeRefreshState(summary map[string]string) (RefreshState, error) {
	w, err := parseState(summary)
	if err != nil {
		return RefreshState{}, err
	}
	version := w.ViewVersionID
	if version == nil {
		version = w.RefreshVersion
	}
	if version == nil || w.Start == nil {
		return RefreshState{}, unreadableState("view-version-id or refresh-start-timestamp-ms is missing")
	}
	s := RefreshState{ViewVersionID: *version, StartTimestamp: *w.Start}
	sources := w.Sources
	if sources == nil { // not merely empty: the record is of the older form
		sources = append(typed(w.Tables, sourceTable), typed(w.Views, sourceView)...)
	}
	for i, src := range sources {
		decoded, err := decodeSource(src)
		if err != nil {
			return RefreshState{}, unreadableState("source %d: %s", i, err.Error())
		}
		s.Sources = append(s.Sources, decoded)
	}
	if text, ok := summary[KeySchemas]; ok {
		if err := json.Unmarshal([]byte(text), &s.Schemas); err != nil {
			return RefreshState{}, unreadableState("%s is damaged", KeySchemas).Because(err)
		}
	}
	return s, nil
}

func parseState(summary map[string]string) (wireState, error) {
	var w wireState
	text, ok := summary[KeyRefreshState]
	lists := map[string]*[]wireSource{KeySourceTables: &w.Tables, KeySourceViews: &w.Views}
	if ok {
		if err := unwrap(text, &w); err != nil {
			return w, unreadableState("%s is damaged", KeyRefreshState).Because(err)
		}
	}
	for key, into := range lists { // some writers put the lists beside the record
		list, beside := summary[key]
		if !beside || *into != nil {
			continue
		}
		ok = true
		if err := unwrap(list, into); err != nil {
			return w, unreadableState("%s is damaged", key).Because(err)
		}
	}
	if !ok {
		return w, catalog.Errorf(catalog.KindNotFound, "the snapshot records no refresh state")
	}
	return w, nil
}

// unwrap decodes JSON, also if it is a JSON string that holds JSON.
func unwrap(text string, into any) error {
	raw := []byte(text)
	for range 2 {
		var inner string
		if err := json.Unmarshal(raw, &inner); err != nil {
			break
		}
		raw = []byte(inner)
	}
	if bytes.Equal(bytes.TrimSpace(raw), []byte("null")) {
		return errors.New("it is null")
	}
	return json.Unmarshal(raw, into)
}

func typed(sources []wireSource, kind string) []wireSource {
	out := make([]wireSource, len(sources))
	for i, s := range sources {
		out[i] = s
		out[i].Type = kind
	}
	return out
}

func decodeSource(w wireSource) (SourceState, error) {
	s := SourceState{Type: w.Type, Catalog: w.Catalog, Namespace: w.Namespace, Name: w.Name, UUID: w.UUID, Ref: w.Ref}
	switch {
	case w.UUID == "":
		return s, errors.New("uuid is missing")
	case w.Type == sourceTable && w.SnapshotID != nil:
		s.SnapshotID = *w.SnapshotID
	case w.Type == sourceView && w.VersionID != nil:
		s.VersionID = *w.VersionID
	case w.Type == sourceTable:
		return s, errors.New("snapshot-id is missing")
	case w.Type == sourceView:
		return s, errors.New("version-id is missing")
	default:
		return s, fmt.Errorf("type %q is unknown", w.Type)
	}
	return s, nil
}

// EncodeBase writes a base vector, the value of [KeyBase].
func EncodeBase(base map[string]int64) (string, error) {
	if base == nil {
		base = map[string]int64{}
	}
	return marshal(base)
}

// DecodeBase reads a base vector: {base table uuid: snapshot id}.
func DecodeBase(text string) (map[string]int64, error) {
	var base map[string]int64
	if err := unwrap(text, &base); err != nil {
		return nil, unreadableState("%s is damaged", KeyBase).Because(err)
	}
	return base, nil
}

func unreadableState(format string, args ...any) *catalog.Error {
	return catalog.Errorf(catalog.KindUnprocessable, "refresh state cannot be read: "+format, args...)
}
