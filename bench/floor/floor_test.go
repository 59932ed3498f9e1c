package floor_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/catalogd/catalogd/bench/client"
	"github.com/catalogd/catalogd/bench/floor"
	"github.com/catalogd/catalogd/catalog/postgres/pgtest"
)

const answer = `{"metadata-location": "file:///t/1.json", "metadata": {"table-uuid": "u", "location": "file:///t",
 "last-sequence-number": 1, "current-snapshot-id": 5, "snapshots": [{"snapshot-id": 5}], "refs": {"main": {"snapshot-id": 5}}}}`

func compressed(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestServer_load(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	ctx := t.Context()
	if err := floor.Setup(ctx, pool); err != nil {
		t.Fatal(err)
	}
	all, refs := compressed(t, answer), compressed(t, answer+" ")
	if err := floor.Seed(ctx, pool, floor.Row{Namespace: "n", Table: "t", Location: "file:///t/1.json", Document: all, Refs: refs}); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(floor.New(floor.Config{Pool: pool}))
	t.Cleanup(server.Close)
	c := client.At(server.URL, "wh")
	conn := client.Dial(c.Address())
	defer conn.Close()
	get := func(query string, header map[string]string) client.Reply {
		t.Helper()
		reply, err := conn.Do(ctx, client.NewRequest(c.Address(), http.MethodGet, c.TablePath("n", "t")+query, nil, header))
		if err != nil {
			t.Fatal(err)
		}
		return reply
	}
	reply := get("", nil)
	v, err := client.NewVerifier(reply, client.Want{Snapshots: 1, Head: 5})
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(reply.Body, all) {
		t.Error("the floor does not send the bytes that were stored")
	}
	for _, again := range []client.Reply{
		get("?snapshots=all", nil), get("?snapshots=refs", nil),
		get("", map[string]string{floor.HeldHeader: "1"}), get("", map[string]string{floor.HeldHeader: "1"}),
	} {
		if err := v.Check(again); err != nil {
			t.Error(err)
		}
	}
	if got := get("?snapshots=refs", nil); !bytes.Equal(got.Body, refs) {
		t.Error("snapshots=refs has the other form's bytes")
	}
	if err := v.CheckNotModified(get("", map[string]string{"If-None-Match": v.ETag()})); err != nil {
		t.Error(err)
	}
	if got := get("", map[string]string{"If-None-Match": `"other"`}); got.Status != http.StatusOK || !bytes.Equal(got.Body, all) {
		t.Errorf("another ETag: status %d with %d bytes, want the document", got.Status, len(got.Body))
	}
}

func TestServer_commit(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	ctx := t.Context()
	if err := floor.Setup(ctx, pool); err != nil {
		t.Fatal(err)
	}
	if err := floor.SeedTable(ctx, pool, "n", "t", "/n/t"); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "t"), 0o755); err != nil {
		t.Fatal(err)
	}
	plain, packed := bytes.Repeat([]byte("metadata"), 100), bytes.Repeat([]byte{1, 2, 3}, 50)
	server := httptest.NewServer(floor.New(floor.Config{Pool: pool, Dir: dir, Plain: plain, Packed: packed}))
	t.Cleanup(server.Close)
	c := client.At(server.URL, "wh")
	post := func(table string, commit floor.Commit) client.Reply {
		t.Helper()
		commit.Request = json.RawMessage(`{}`)
		body, err := json.Marshal(commit)
		if err != nil {
			t.Fatal(err)
		}
		conn := client.Dial(c.Address())
		defer conn.Close()
		reply, err := conn.Do(ctx, client.NewRequest(c.Address(), http.MethodPost, c.TablePath("n", table), body, nil))
		if err != nil {
			t.Fatal(err)
		}
		return reply
	}
	first := floor.Commit{FileBytes: 333, DocumentBytes: 77, RefsBytes: 22, Sequence: 4}
	reply := post("t", first)
	if reply.Status != http.StatusOK || !bytes.Equal(reply.Body, packed[:77]) {
		t.Fatalf("status %d: %s", reply.Status, reply.Body)
	}
	location := filepath.Join(dir, "t", "4.json")
	if got, err := os.ReadFile(location); err != nil || !bytes.Equal(got, plain[:333]) {
		t.Errorf("the file has %d bytes (%v), want 333", len(got), err)
	}
	stored, refs := documents(ctx, t, pool, "t")
	if !bytes.Equal(stored, packed[:77]) || !bytes.Equal(refs, packed[:22]) {
		t.Errorf("the document has %d bytes and %d, want 77 and 22", len(stored), len(refs))
	}
	if reply := post("t", first); reply.Status != http.StatusInternalServerError {
		t.Errorf("a file that exists: status %d, want 500", reply.Status)
	}
	if reply := post("t", floor.Commit{FileBytes: 1, DocumentBytes: 1, Sequence: 5, Previous: "elsewhere"}); reply.Status != http.StatusNotFound {
		t.Errorf("a pointer that is not there any more: status %d, want 404", reply.Status)
	}
	if reply := post("t", floor.Commit{FileBytes: 1, DocumentBytes: 2, Sequence: 6, Previous: location}); reply.Status != http.StatusOK {
		t.Errorf("the next commit: status %d: %s", reply.Status, reply.Body)
	}
	if stored, refs = documents(ctx, t, pool, "t"); len(stored) != 2 || refs != nil {
		t.Errorf("the document has %d bytes and %d, want 2 and none", len(stored), len(refs))
	}
	if err := os.Mkdir(filepath.Join(dir, "missing"), 0o755); err != nil {
		t.Fatal(err)
	}
	if reply := post("missing", first); reply.Status != http.StatusNotFound {
		t.Errorf("a table that does not exist: status %d, want 404", reply.Status)
	}
	if reply := post("t", floor.Commit{FileBytes: 1 << 20}); reply.Status != http.StatusBadRequest {
		t.Errorf("more bytes than the sample has: status %d, want 400", reply.Status)
	}
}

func documents(ctx context.Context, t *testing.T, pool *pgxpool.Pool, table string) (document, refs []byte) {
	t.Helper()
	err := pool.QueryRow(ctx, `SELECT d.document, d.refs FROM iceberg_tables t JOIN metadata_document d USING (metadata_location)
		WHERE t.table_namespace = 'n' AND t.table_name = $1`, table).Scan(&document, &refs)
	if err != nil {
		t.Fatal(err)
	}
	return document, refs
}
