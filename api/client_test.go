package api_test

import (
	"errors"
	"net/http/httptest"
	"testing"

	icebergcatalog "github.com/apache/iceberg-go/catalog"
	icebergrest "github.com/apache/iceberg-go/catalog/rest"
	"github.com/apache/iceberg-go/table"
	"github.com/google/go-cmp/cmp"

	"github.com/catalogd/catalogd/catalog"
)

const tableMetadata = `{"format-version":2,"table-uuid":"9c12d441-03fe-4693-9a96-a0705ddf69c1","location":"file:///wh/ns/t",
"last-sequence-number":0,"last-updated-ms":1602638573590,"last-column-id":1,"current-schema-id":0,
"schemas":[{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"x","required":true,"type":"long"}]}],
"default-spec-id":0,"partition-specs":[{"spec-id":0,"fields":[]}],"last-partition-id":999,
"default-sort-order-id":0,"sort-orders":[{"order-id":0,"fields":[]}],"properties":{},"snapshots":[],"snapshot-log":[],"metadata-log":[]}`

// TestIcebergGo lets another implementation of the protocol read our answers.
func TestIcebergGo(t *testing.T) {
	t.Parallel()
	s := newSurface(t)
	var want []string
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		s.fake.namespaces[name] = map[string]string{}
		want = append(want, name)
	}
	s.fake.put(catalog.TypeTable, "a.sub", "t x+y.é", tableMetadata, "")
	server := httptest.NewServer(s.echo)
	defer server.Close()

	c, err := icebergrest.NewCatalog(t.Context(), "test", server.URL)
	if err != nil {
		t.Fatal(err)
	}
	namespaces, err := c.ListNamespaces(c.SetPageSize(t.Context(), 2), nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, ns := range namespaces {
		got = append(got, ns[0])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	id := table.Identifier{"a", "sub", "t x+y.é"}
	loaded, err := c.LoadTable(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if loaded.MetadataLocation() != "file:///wh/a.sub/t x+y.é/metadata/00001-a.metadata.json" || loaded.Metadata().TableUUID().String() != "9c12d441-03fe-4693-9a96-a0705ddf69c1" {
		t.Errorf("%s %s", loaded.MetadataLocation(), loaded.Metadata().TableUUID())
	}
	if _, err := c.LoadTable(t.Context(), table.Identifier{"a", "gone"}); !errors.Is(err, icebergcatalog.ErrNoSuchTable) {
		t.Errorf("a missing table: %v", err)
	}
	if ok, err := c.CheckTableExists(t.Context(), id); err != nil || !ok {
		t.Errorf("exists: %t %v", ok, err)
	}
	if ok, err := c.CheckViewExists(t.Context(), id); err != nil || ok {
		t.Errorf("a table exists as a view: %t %v", ok, err)
	}
	if err := c.CreateNamespace(t.Context(), table.Identifier{"a"}, nil); !errors.Is(err, icebergcatalog.ErrNamespaceAlreadyExists) {
		t.Errorf("a second namespace of a name: %v", err)
	}
	if err := c.DropNamespace(t.Context(), table.Identifier{"a", "sub"}); !errors.Is(err, icebergcatalog.ErrNamespaceNotEmpty) {
		t.Errorf("a namespace that holds a table: %v", err)
	}
	if _, err := icebergrest.NewCatalog(t.Context(), "test", server.URL, icebergrest.WithWarehouseLocation("other")); err == nil {
		t.Error("an unknown warehouse is taken")
	}
}
