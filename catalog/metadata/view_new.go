package metadata

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// NewViewRequest is what createView was asked for.
type NewViewRequest struct {
	UUID        string
	Location    string
	Schema      json.RawMessage
	ViewVersion json.RawMessage
	Properties  map[string]string
	// MaxStaleness is the body's member max-staleness-ms, nil if it has none.
	MaxStaleness json.RawMessage
	// Body is the whole request. Members that createView does not define stay in the
	// document. May be nil.
	Body json.RawMessage
	Now  time.Time
}

// requestMembers are the members of a createView body that mean something there; they
// must not leak into the document as they are.
var requestMembers = []string{"name", "location", "schema", "view-version", "properties", maxStalenessMember}

// documentMembers are those of a view document, which a request can't set directly.
var documentMembers = []string{"view-uuid", "format-version", "schemas", "current-version-id", "versions", "version-log"}

// NewView makes the first document of a view: version 1, schema 0.
func NewView(req NewViewRequest) (*View, error) {
	if strings.TrimSpace(req.Location) == "" {
		return nil, invalid("Invalid location: it must not be empty")
	}
	v := &View{uuid: req.UUID, location: req.Location}
	v.doc.set("view-uuid", stringJSON(req.UUID))
	v.doc.set("format-version", intJSON(1))
	v.doc.set("location", stringJSON(req.Location))
	for _, name := range []string{"properties", "schemas", "current-version-id", "versions", "version-log"} {
		v.doc.set(name, json.RawMessage("[]"))
	}
	if err := v.adoptBody(&req); err != nil {
		return nil, err
	}
	if isNull(req.Schema) || isNull(req.ViewVersion) {
		return nil, invalid("Cannot create a view without schema and view-version")
	}
	version, err := newVersion(req.ViewVersion, req.Now)
	if err != nil {
		return nil, at(err, "view-version")
	}
	e := &viewEdit{v: v, now: req.Now.UnixMilli(), isNew: true}
	if _, err := e.addSchema(req.Schema); err != nil {
		return nil, err
	}
	if err := e.addVersion(version); err != nil {
		return nil, err
	}
	if err := e.setCurrent(1); err != nil {
		return nil, err
	}
	for key := range req.Properties {
		v.props.set(key, stringJSON(req.Properties[key]))
	}
	slices.SortFunc(v.props.members, func(a, b member) int { return strings.Compare(a.name, b.name) })
	v.props.byName = nil
	if err := v.adoptStaleness(req.MaxStaleness); err != nil {
		return nil, err
	}
	return v, e.finish()
}

// newVersion prepares the version of a create request: id 1, schema 0, and the time of
// the request if the client gave none.
func newVersion(raw json.RawMessage, now time.Time) (json.RawMessage, error) {
	o, err := parseObject(raw)
	if err != nil {
		return nil, err
	}
	o.set("version-id", intJSON(1))
	o.set("schema-id", intJSON(0))
	if o.raw("timestamp-ms") == nil {
		o.set("timestamp-ms", longJSON(now.UnixMilli()))
	}
	return o.bytes(), nil
}

// adoptBody keeps the members of the request that nobody here knows.
func (v *View) adoptBody(req *NewViewRequest) error {
	if isNull(req.Body) {
		return nil
	}
	body, err := parseObject(req.Body)
	if err != nil {
		return err
	}
	for _, m := range body.without(slices.Concat(requestMembers, documentMembers)...) {
		v.doc.set(m.name, m.raw)
	}
	if i := body.index(maxStalenessMember); i >= 0 && req.MaxStaleness == nil {
		req.MaxStaleness = body.members[i].raw
	}
	return nil
}

// adoptStaleness reconciles the member and the property of a create request.
func (v *View) adoptStaleness(raw json.RawMessage) error {
	if raw == nil {
		return v.syncStaleness()
	}
	if err := checkStaleness(raw); err != nil {
		return err
	}
	if text, ok := v.Property(maxStalenessMember); ok {
		prop, err := stalenessFromProperty(text)
		if err != nil {
			return err
		}
		if string(prop) != string(raw) {
			return stalenessConflict(raw, text)
		}
	}
	v.putStaleness(raw)
	return nil
}
