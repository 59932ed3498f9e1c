package postgres_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/catalogd/catalogd/catalog"
	"github.com/catalogd/catalogd/catalog/postgres"
	"github.com/catalogd/catalogd/catalog/postgres/pgtest"
	"github.com/catalogd/catalogd/catalog/scan"
	"github.com/catalogd/catalogd/jobs"
)

func newPlans(t *testing.T) (*postgres.Plans, *pgxpool.Pool) {
	t.Helper()
	pool := pgtest.Pool(t)
	queue, err := jobs.NewEnqueuer(pool, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return postgres.NewPlans(postgres.New(pool, nil), queue), pool
}

func samplePlan(status scan.Status) scan.Plan {
	snapshot, schema := int64(9_007_199_254_740_993), 3 // a number that no float holds
	return scan.Plan{
		ID: uuid.NewString(), TableUUID: "t", MetadataLocation: "file:///m", Status: status, Secret: []byte{0, 1, 2}, Stored: status == scan.Submitted,
		Request: scan.Request{SnapshotID: &snapshot, SchemaID: &schema, Select: []string{"a"}, Filter: json.RawMessage(`{"type": "eq", "term": "a", "value": 1}`)},
	}
}

func countRows(t *testing.T, pool *pgxpool.Pool, sql string, args ...any) (n int) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), sql, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestPlans_roundTrip(t *testing.T) {
	t.Parallel()
	s, pool := newPlans(t)
	for _, status := range []scan.Status{scan.Completed, scan.Submitted} {
		p := samplePlan(status)
		if err := s.CreatePlan(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		got, err := s.Plan(t.Context(), p.ID)
		if err != nil {
			t.Fatal(err)
		}
		var have, want bytes.Buffer
		if json.Compact(&have, got.Request.Filter) != nil || json.Compact(&want, p.Request.Filter) != nil {
			t.Fatal("the filter is no JSON any more")
		}
		if len(have.String()) != len(want.String()) { // members may change places
			t.Errorf("filter = %s, want %s", &have, &want)
		}
		got.Request.Filter = p.Request.Filter
		if diff := cmp.Diff(p, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		wantJobs := map[scan.Status]int{scan.Completed: 0, scan.Submitted: 1}[status]
		if n := countRows(t, pool, `SELECT count(*) FROM river_job WHERE kind = 'scan_plan' AND args->>'plan_id' = $1`, p.ID); n != wantJobs {
			t.Errorf("a %s plan has %d jobs, want %d", status, n, wantJobs)
		}
	}
	if _, err := s.Plan(t.Context(), uuid.NewString()); catalog.KindOf(err) != catalog.KindNoSuchPlan {
		t.Errorf("Plan of nothing = %v, want KindNoSuchPlan", err)
	}
}

func TestPlans_pages(t *testing.T) {
	t.Parallel()
	s, pool := newPlans(t)
	p := samplePlan(scan.Submitted)
	if err := s.CreatePlan(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	long := []byte(strings.Repeat(`"file-scan-tasks":[]`, 1000))
	for _, body := range []string{"first try", string(long)} { // an attempt may be repeated
		if err := s.AddPage(t.Context(), p.ID, 0, []byte(body)); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := s.Page(t.Context(), p.ID, 0); err != nil || !bytes.Equal(got, long) {
		t.Errorf("Page = %.40s…, %v", got, err)
	}
	if _, err := s.Page(t.Context(), p.ID, 1); catalog.KindOf(err) != catalog.KindNoSuchPlan {
		t.Errorf("a page that is not there = %v, want KindNoSuchPlan", err)
	}
	if err := s.FinishPlan(t.Context(), p.ID, 1, nil); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Plan(t.Context(), p.ID); err != nil || got.Status != scan.Completed || got.Pages != 1 {
		t.Errorf("Plan = %+v, %v, want completed with one page", got, err)
	}
	if err := s.AddPage(t.Context(), p.ID, 1, nil); catalog.KindOf(err) != catalog.KindNoSuchPlan {
		t.Errorf("AddPage to a completed plan = %v, want KindNoSuchPlan", err)
	}
	for range 2 {
		if err := s.CancelPlan(t.Context(), p.ID); err != nil {
			t.Fatal(err)
		}
	}
	if n := countRows(t, pool, `SELECT count(*) FROM scan_plan_page`); n != 0 {
		t.Errorf("%d pages are left after a cancellation", n)
	}
	// The job of a cancelled plan ends without a word.
	if err := s.FinishPlan(t.Context(), p.ID, 5, nil); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Plan(t.Context(), p.ID); err != nil || got.Status != scan.Cancelled {
		t.Errorf("Plan = %+v, %v, want cancelled", got, err)
	}
}

func TestPlans_failure(t *testing.T) {
	t.Parallel()
	s, _ := newPlans(t)
	for _, kind := range []catalog.Kind{catalog.KindInvalid, catalog.KindNotFound, catalog.KindUnavailable, catalog.KindInternal} {
		p := samplePlan(scan.Submitted)
		if err := s.CreatePlan(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		if err := s.FinishPlan(t.Context(), p.ID, 0, catalog.Errorf(kind, "why")); err != nil {
			t.Fatal(err)
		}
		got, err := s.Plan(t.Context(), p.ID)
		if err != nil || got.Status != scan.Failed || got.Failure == nil || got.Failure.Kind != kind || got.Failure.Msg != "why" {
			t.Errorf("Plan = %+v, %v, want failed with kind %d", got, err, kind)
		}
	}
}

// TestPlans_cancelRace checks that no page survives a cancellation that overtakes it.
func TestPlans_cancelRace(t *testing.T) {
	t.Parallel()
	s, pool := newPlans(t)
	for range 20 {
		p := samplePlan(scan.Submitted)
		if err := s.CreatePlan(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		var running sync.WaitGroup
		for page := range 4 {
			running.Go(func() {
				if err := s.AddPage(t.Context(), p.ID, page, []byte("x")); err != nil && catalog.KindOf(err) != catalog.KindNoSuchPlan {
					t.Errorf("AddPage = %v", err)
				}
			})
		}
		running.Go(func() {
			if err := s.CancelPlan(t.Context(), p.ID); err != nil {
				t.Errorf("CancelPlan = %v", err)
			}
		})
		running.Wait()
		if n := countRows(t, pool, `SELECT count(*) FROM scan_plan_page`); n != 0 {
			t.Fatalf("%d pages are left", n)
		}
	}
}

func TestPlans_expire(t *testing.T) {
	t.Parallel()
	s, pool := newPlans(t)
	old, young := samplePlan(scan.Submitted), samplePlan(scan.Submitted)
	for _, p := range []scan.Plan{old, young} {
		if err := s.CreatePlan(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		if err := s.AddPage(t.Context(), p.ID, 0, []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := pool.Exec(t.Context(), `UPDATE scan_plan SET expires_at = clock_timestamp() WHERE plan_id = $1`, old.ID); err != nil {
		t.Fatal(err)
	}
	for what, act := range map[string]func(context.Context, string) error{
		"Plan":       func(ctx context.Context, id string) error { _, err := s.Plan(ctx, id); return err },
		"CancelPlan": s.CancelPlan,
		"AddPage":    func(ctx context.Context, id string) error { return s.AddPage(ctx, id, 1, nil) },
	} {
		if err := act(t.Context(), old.ID); catalog.KindOf(err) != catalog.KindNoSuchPlan {
			t.Errorf("%s of an expired plan = %v, want KindNoSuchPlan", what, err)
		}
	}
	if err := s.ExpirePlans(t.Context()); err != nil {
		t.Fatal(err)
	}
	if plans, pages := countRows(t, pool, `SELECT count(*) FROM scan_plan`), countRows(t, pool, `SELECT count(*) FROM scan_plan_page`); plans != 1 || pages != 1 {
		t.Errorf("%d plans with %d pages are left, want the young one", plans, pages)
	}
}
