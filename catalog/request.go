package catalog

import "encoding/json"

// CreateTableRequest is the body of createTable. Documents stay raw: unknown members of
// a schema or a spec belong to the client and survive.
type CreateTableRequest struct {
	Name          string
	Location      string // empty: chosen by the server
	Schema        json.RawMessage
	PartitionSpec json.RawMessage // nil: unpartitioned
	WriteOrder    json.RawMessage // nil: unsorted
	StageCreate   bool
	Properties    map[string]string
}

// CreateViewRequest is the body of createView. Body is the whole request object, so
// that members we do not know (and max-staleness-ms, which we do) reach the document.
type CreateViewRequest struct {
	Name        string
	Location    string
	Schema      json.RawMessage
	ViewVersion json.RawMessage
	Properties  map[string]string
	Body        json.RawMessage
	// Options is for the materialized-view layer; nil for REST clients.
	Options any
}

// CommitRequest is the body of updateTable and replaceView.
type CommitRequest struct {
	Requirements []json.RawMessage
	Updates      []json.RawMessage
	// Internal marks catalogd's own refresh or maintenance: the only commits of ours to
	// a storage table. It is set by the call, never by anything a client can send.
	Internal bool
	// Options is for the materialized-view layer; nil for REST clients.
	Options any
}

// TableCommit is one commit of a transaction.
type TableCommit struct {
	Ident TableIdent
	CommitRequest
}

// NamespaceUpdate is the answer of updateProperties.
type NamespaceUpdate struct {
	Updated []string
	Removed []string
	Missing []string
}
