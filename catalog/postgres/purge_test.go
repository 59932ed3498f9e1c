package postgres_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/catalogd/catalogd/catalog"
	"github.com/catalogd/catalogd/catalog/postgres/pgtest"
	"github.com/catalogd/catalogd/catalog/storetest"
)

// TestPurgingWaitsForNewcomers: somebody who began to use the location before the time of
// the dropped table was over is seen by its purge, however late they finish.
func TestPurgingWaitsForNewcomers(t *testing.T) {
	t.Parallel()
	for name, come := range map[string]struct {
		sql       string
		back      bool // then there is nothing to purge
		parameter any
	}{
		"undrop":   {sql: `DELETE FROM dropped_object WHERE table_name = $1`, back: true, parameter: "t"},
		"register": {sql: `SELECT pg_advisory_xact_lock(hashtextextended($1, 7))`, parameter: "/w/t"},
		"inside":   {sql: `SELECT pg_advisory_xact_lock_shared(hashtextextended($1, 7))`, parameter: "/w/t"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, pool := t.Context(), pgtest.Pool(t)
			s := open(t, pool, nil)
			ns := catalog.Namespace{"ns"}
			if err := s.CreateNamespace(ctx, storetest.Warehouse, ns, nil); err != nil {
				t.Fatal(err)
			}
			p := catalog.Pointer{
				Warehouse: storetest.Warehouse, Ident: catalog.TableIdent{Namespace: ns, Name: "t"}, Type: catalog.TypeTable,
				UUID: uuid.NewString(), MetadataLocation: "file:///w/t/m0", Location: "file:///w/t",
			}
			for _, c := range []catalog.Change{
				{Op: catalog.OpCreate, Pointer: p, Document: catalog.NewDocument(p.MetadataLocation, []byte(`{}`), nil)},
				{Op: catalog.OpDrop, Pointer: p, Purge: true},
			} {
				if err := s.Commit(ctx, []catalog.Change{c}); err != nil {
					t.Fatal(err)
				}
			}
			ids, err := s.Expire(ctx)
			if err != nil || len(ids) != 1 {
				t.Fatalf("Expire = %v, %v, want one drop", ids, err)
			}
			tx, err := pool.Begin(ctx)
			if err != nil {
				t.Fatal(err)
			}
			defer tx.Rollback(ctx)
			if _, err := tx.Exec(ctx, come.sql, come.parameter); err != nil {
				t.Fatal(err)
			}
			done := make(chan struct{})
			var ok bool
			go func() {
				defer close(done)
				_, ok, err = s.Purging(ctx, ids[0])
			}()
			for waits := 0; waits == 0; {
				select {
				case <-done:
					t.Fatalf("Purging = %v, %v before the other has finished", ok, err)
				case <-time.After(10 * time.Millisecond):
				}
				if err := pool.QueryRow(ctx, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&waits); err != nil {
					t.Fatal(err)
				}
			}
			if err := tx.Commit(ctx); err != nil {
				t.Fatal(err)
			}
			if <-done; err != nil || ok == come.back {
				t.Errorf("Purging = %v, %v, want %v", ok, err, !come.back)
			}
		})
	}
}

// TestExpireReturnsPurges: what else is to be tidied up does not keep files from being
// deleted.
func TestExpireReturnsPurges(t *testing.T) {
	t.Parallel()
	ctx, pool := t.Context(), pgtest.Pool(t)
	s := open(t, pool, nil)
	for _, sql := range []string{
		`INSERT INTO dropped_object (catalog_name, table_namespace, table_name, iceberg_type, is_materialized, created_at, changed_at, dropped_at, expires_at, purge)
			VALUES ('main', 'ns', 't', 'TABLE', false, now(), now(), now(), now(), true)`,
		`ALTER TABLE metadata_document RENAME TO elsewhere`,
	} {
		if _, err := pool.Exec(ctx, sql); err != nil {
			t.Fatal(err)
		}
	}
	if ids, err := s.Expire(ctx); err == nil || len(ids) != 1 {
		t.Errorf("Expire = %v, %v, want one drop and an error", ids, err)
	}
}
