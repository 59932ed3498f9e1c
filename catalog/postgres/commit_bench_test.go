package postgres_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"

	"github.com/catalogd/catalogd/catalog"
	"github.com/catalogd/catalogd/catalog/postgres"
	"github.com/catalogd/catalogd/catalog/postgres/pgtest"
	"github.com/catalogd/catalogd/catalog/storage"
	"github.com/catalogd/catalogd/catalog/storetest"
	"github.com/catalogd/catalogd/jobs"
	mvpg "github.com/catalogd/catalogd/mv/postgres"
)

// BenchmarkCommit appends snapshots to one table, file and transaction included. Where the
// time goes is what -cpuprofile is for.
func BenchmarkCommit(b *testing.B) {
	ctx := b.Context()
	pool := pgtest.Pool(b)
	queue, err := jobs.NewEnqueuer(pool, slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	store := postgres.New(pool, jobs.NewHook(mvpg.New(pool), queue))
	root := "file://" + b.TempDir()
	if err := store.EnsureWarehouse(ctx, catalog.Warehouse{Name: storetest.Warehouse, Location: root}); err != nil {
		b.Fatal(err)
	}
	files, err := storage.New(storage.Config{Roots: []string{root}})
	if err != nil {
		b.Fatal(err)
	}
	defer files.Close()
	s := catalog.NewService(catalog.Config{Store: store, Files: files})
	ns := catalog.Namespace{"ns"}
	if _, err := s.CreateNamespace(ctx, storetest.Warehouse, ns, nil); err != nil {
		b.Fatal(err)
	}
	schema := json.RawMessage(`{"type":"struct","fields":[{"id":1,"name":"a","type":"long","required":false}]}`)
	table := 0
	var id catalog.TableIdent
	for n := 0; b.Loop(); n++ {
		if n%100 == 0 {
			table++
			id = catalog.TableIdent{Namespace: ns, Name: fmt.Sprintf("t%d", table)}
			if _, err := s.CreateTable(ctx, storetest.Warehouse, ns, catalog.CreateTableRequest{Name: id.Name, Schema: schema}); err != nil {
				b.Fatal(err)
			}
		}
		add := fmt.Sprintf(`{"action":"add-snapshot","snapshot":{"snapshot-id":%d,"sequence-number":%d,"timestamp-ms":%d,
			"manifest-list":"file:///m/%d.avro","schema-id":0,"summary":{"operation":"append","added-data-files":"1","added-records":"1000",
			"added-files-size":"123456","total-records":"%d","total-data-files":"%d","total-files-size":"123456789"}}}`,
			n+1, n%100+1, 1796000000000+n, n, n*1000, n)
		ref := fmt.Sprintf(`{"action":"set-snapshot-ref","ref-name":"main","type":"branch","snapshot-id":%d}`, n+1)
		_, err := s.CommitTable(ctx, storetest.Warehouse, id, catalog.CommitRequest{Updates: []json.RawMessage{[]byte(add), []byte(ref)}})
		if err != nil {
			b.Fatal(err)
		}
	}
}
