package postgres_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/catalogd/catalogd/catalog"
	"github.com/catalogd/catalogd/catalog/postgres/pgtest"
	"github.com/catalogd/catalogd/catalog/storetest"
)

// TestReportsAreBounded: the newest reports of each table stay, for a time.
func TestReportsAreBounded(t *testing.T) {
	t.Parallel()
	ctx, pool := t.Context(), pgtest.Pool(t)
	s := open(t, pool, nil)
	ns := catalog.Namespace{"ns"}
	if err := s.CreateNamespace(ctx, storetest.Warehouse, ns, nil); err != nil {
		t.Fatal(err)
	}
	ident := func(name string) catalog.TableIdent { return catalog.TableIdent{Namespace: ns, Name: name} }
	for _, name := range []string{"busy", "quiet", "gone"} {
		err := s.Commit(ctx, []catalog.Change{{
			Op: catalog.OpCreate, Document: catalog.NewDocument(name, []byte(`{}`), nil),
			Pointer: catalog.Pointer{Warehouse: storetest.Warehouse, Ident: ident(name), Type: catalog.TypeTable, UUID: uuid.NewString(), MetadataLocation: name},
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	report := func(name string, n int64, age time.Duration) catalog.Report {
		return catalog.Report{
			Warehouse: storetest.Warehouse, Ident: ident(name), Type: "scan-report", SnapshotID: &n,
			ReceivedAt: time.Now().Add(-age), Body: fmt.Appendf(nil, `{"n":%d}`, n),
		}
	}
	reports := []catalog.Report{report("quiet", 1, 31*24*time.Hour), report("quiet", 2, 29*24*time.Hour), report("gone", 1, 0), report("nosuch", 1, 0)}
	for n := range int64(1010) {
		reports = append(reports, report("busy", n, 0))
	}
	bad := report("quiet", 3, 0)
	bad.Body = []byte("{\"a\":\"\xff\"}") // must not take the others with it
	if err := s.AddReports(ctx, append(reports, bad)); err != nil {
		t.Fatal(err)
	}
	if err := s.Commit(ctx, []catalog.Change{{Op: catalog.OpDrop, Pointer: catalog.Pointer{Warehouse: storetest.Warehouse, Ident: ident("gone"), Type: catalog.TypeTable}}}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.PruneReports(ctx); err != nil {
			t.Fatal(err)
		}
		var left int
		if err := pool.QueryRow(ctx, `SELECT count(*) FROM metrics_report`).Scan(&left); err != nil || left != 1001 {
			t.Errorf("%d reports are left, %v, want 1000 of one table and 1 of the other", left, err)
		}
		busy, err := s.Reports(ctx, storetest.Warehouse, ident("busy"), catalog.ReportPage{})
		if err != nil || len(busy.Items) != 1000 || *busy.Items[0].SnapshotID != 1009 || *busy.Items[999].SnapshotID != 10 {
			t.Errorf("%d reports, %v, want the newest 1000", len(busy.Items), err)
		}
		quiet, err := s.Reports(ctx, storetest.Warehouse, ident("quiet"), catalog.ReportPage{})
		if err != nil || len(quiet.Items) != 1 || *quiet.Items[0].SnapshotID != 2 {
			t.Errorf("%v, %v, want the one that is young enough", quiet.Items, err)
		}
	}
}
