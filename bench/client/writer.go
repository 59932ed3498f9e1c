package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

// Writer appends snapshots to one table and knows what the table has to hold.
type Writer struct {
	catalog   *Catalog
	namespace string
	table     string
	uuid      string
	location  string
	// list is the manifest list of every snapshot. Empty means one that does not exist:
	// a catalog has no reason to read it.
	list string

	snapshots int
	sequence  int64
	head      int64 // 0: none yet
}

// NewWriter creates a table and returns its writer.
func NewWriter(ctx context.Context, c *Catalog, namespace, table string) (*Writer, error) {
	conn := Dial(c.Address())
	defer conn.Close()
	body, err := json.Marshal(map[string]any{"name": table, "schema": schema()})
	if err != nil {
		return nil, err
	}
	reply, err := conn.Do(ctx, NewRequest(c.Address(), http.MethodPost, c.TablesPath(namespace), body, nil))
	if err != nil {
		return nil, fmt.Errorf("create table %s: %w", table, err)
	}
	t, err := reply.Table()
	if err != nil {
		return nil, fmt.Errorf("create table %s: %w", table, err)
	}
	return &Writer{catalog: c, namespace: namespace, table: table, uuid: t.UUID, location: t.Location}, nil
}

// WriterOf returns a writer of a table that exists without snapshots.
func WriterOf(c *Catalog, namespace, table, location string) *Writer {
	return &Writer{catalog: c, namespace: namespace, table: table, uuid: "00000000-0000-4000-8000-000000000000", location: location}
}

// On is a writer of the same state of a table in another catalog, under the same name.
func (w *Writer) On(c *Catalog, namespace string) *Writer {
	other := *w
	other.catalog, other.namespace = c, namespace
	return &other
}

// Follow takes over what a server says about the table, which somebody else may have
// written. It relies on every commit being an append of one snapshot.
func (w *Writer) Follow(t Table) {
	w.snapshots, w.sequence, w.head = int(t.LastSequence), t.LastSequence, t.Current
}

// schema has the width of an ordinary fact table.
func schema() map[string]any {
	types := []string{"timestamptz", "string", "int", "string", "string", "string", "int", "int", "long", "double", "date", "decimal(18,2)"}
	names := []string{"departed_at", "carrier", "flight", "tail_number", "origin", "destination", "distance", "delay", "passengers", "fuel", "booked_on", "revenue"}
	fields := make([]map[string]any, len(types))
	for i := range types {
		fields[i] = map[string]any{"id": i + 1, "name": names[i], "type": types[i], "required": false}
	}
	return map[string]any{"type": "struct", "schema-id": 0, "fields": fields}
}

// Location is the table's folder.
func (w *Writer) Location() string { return w.location }

// Path is the table's path.
func (w *Writer) Path() string { return w.catalog.TablePath(w.namespace, w.table) }

// Want is what a load of the table with all or only the referenced snapshots has to say.
func (w *Writer) Want(refsOnly bool) Want {
	if refsOnly {
		return Want{Snapshots: min(w.snapshots, 1), Head: w.head}
	}
	return Want{Snapshots: w.snapshots, Head: w.head}
}

// UseManifestList makes the following snapshots name a manifest list that exists.
func (w *Writer) UseManifestList(location string) { w.list = location }

// Append is a rendered commit of one snapshot and what its answer has to say.
type Append struct {
	Body    []byte
	request Request
	after   Want
	next    int64 // sequence number
}

// Request is the rendered commit.
func (a Append) Request() Request { return a.request }

// Prepare renders the next append. Nothing is changed before [Writer.Done].
func (w *Writer) Prepare() (Append, error) { return w.prepare(1) }

// prepare renders a commit of count snapshots, each the child of the one before.
func (w *Writer) prepare(count int) (Append, error) {
	var base any // null asserts that main does not exist
	if w.head != 0 {
		base = w.head
	}
	updates := make([]any, 0, count+1)
	head := w.head
	for i := range count {
		id := rand.Int64N(1<<62) + 1 //nolint:gosec // a snapshot id is no secret
		updates = append(updates, map[string]any{"action": "add-snapshot", "snapshot": w.snapshot(id, head, w.sequence+int64(i)+1)})
		head = id
	}
	updates = append(updates, map[string]any{"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": head})
	body, err := json.Marshal(map[string]any{
		"identifier": map[string]any{"namespace": []string{w.namespace}, "name": w.table},
		"requirements": []any{
			map[string]any{"type": "assert-table-uuid", "uuid": w.uuid},
			map[string]any{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": base},
		},
		"updates": updates,
	})
	if err != nil {
		return Append{}, err
	}
	return Append{
		Body:    body,
		request: NewRequest(w.catalog.Address(), http.MethodPost, w.Path(), body, nil),
		after:   Want{Snapshots: w.snapshots + count, Head: head},
		next:    w.sequence + int64(count),
	}, nil
}

// snapshot has the size of one that an engine writes.
func (w *Writer) snapshot(id, parent, n int64) map[string]any {
	list := w.list
	if list == "" {
		list = fmt.Sprintf("%s/metadata/snap-%d-1-%016x.avro", w.location, id, id)
	}
	s := map[string]any{
		"snapshot-id": id, "sequence-number": n, "timestamp-ms": time.Now().UnixMilli(), "manifest-list": list, "schema-id": 0,
		"summary": map[string]string{
			"operation": "append", "engine-name": "spark", "engine-version": "4.0.1", "app-id": "local-1764500000000",
			"spark.app.id": "local-1764500000000", "iceberg-version": "Apache Iceberg 1.11.0 (commit 0123456789abcdef0123456789abcdef01234567)",
			"added-data-files": "4", "added-records": "125000", "added-files-size": "18874368", "changed-partition-count": "2",
			"total-records": strconv.FormatInt(n*125_000, 10), "total-files-size": strconv.FormatInt(n*18_874_368, 10),
			"total-data-files": strconv.FormatInt(n*4, 10), "total-delete-files": "0", "total-position-deletes": "0", "total-equality-deletes": "0",
		},
	}
	if parent != 0 {
		s["parent-snapshot-id"] = parent
	}
	return s
}

// Done takes over an append that was acknowledged.
func (w *Writer) Done(a Append) {
	w.snapshots, w.head, w.sequence = a.after.Snapshots, a.after.Head, a.next
}

// Check reads the answer to an append in full. The ETag of a commit may be left out.
func (a Append) Check(r Reply) error {
	t, err := r.Table()
	switch {
	case err != nil:
		return err
	case t.MetadataLocation == "":
		return errors.New("the answer has no metadata-location")
	case t.Snapshots != a.after.Snapshots:
		return fmt.Errorf("%d snapshots, want %d", t.Snapshots, a.after.Snapshots)
	case t.Current != a.after.Head || t.Main != a.after.Head || !t.HasCurrent:
		return fmt.Errorf("current snapshot %d and main %d, want %d", t.Current, t.Main, a.after.Head)
	case t.LastSequence != a.next:
		return fmt.Errorf("last sequence number %d, want %d", t.LastSequence, a.next)
	}
	return nil
}

// Append commits one snapshot and checks the answer.
func (w *Writer) Append(ctx context.Context, conn *Conn) (Reply, error) {
	return w.AppendMany(ctx, conn, 1)
}

// AppendMany commits several snapshots at once and checks the answer.
func (w *Writer) AppendMany(ctx context.Context, conn *Conn, count int) (Reply, error) {
	a, err := w.prepare(count)
	if err != nil {
		return Reply{}, err
	}
	reply, err := conn.Do(ctx, a.request)
	if err != nil {
		return reply, err
	}
	if err := a.Check(reply); err != nil {
		return reply, fmt.Errorf("append snapshot %d to %s: %w", a.after.Snapshots, w.table, err)
	}
	w.Done(a)
	return reply, nil
}

// Fill appends until the table has that many snapshots, perCommit at a time.
func (w *Writer) Fill(ctx context.Context, snapshots, perCommit int) error {
	conn := Dial(w.catalog.Address())
	defer conn.Close()
	for w.snapshots < snapshots {
		if _, err := w.AppendMany(ctx, conn, min(perCommit, snapshots-w.snapshots)); err != nil {
			return err
		}
	}
	return nil
}

// Load loads the table and returns a verifier of that answer.
func (w *Writer) Load(ctx context.Context, conn *Conn, refsOnly bool) (Reply, *Verifier, error) {
	reply, err := conn.Do(ctx, w.LoadRequest(refsOnly, nil))
	if err != nil {
		return reply, nil, err
	}
	v, err := NewVerifier(reply, w.Want(refsOnly))
	if err != nil {
		return reply, nil, fmt.Errorf("load %s: %w", w.table, err)
	}
	return reply, v, nil
}

// LoadRequest renders a load.
func (w *Writer) LoadRequest(refsOnly bool, header map[string]string) Request {
	path := w.Path() + "?snapshots=all"
	if refsOnly {
		path = w.Path() + "?snapshots=refs"
	}
	return NewRequest(w.catalog.Address(), http.MethodGet, path, nil, header)
}
