package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/catalogd/catalogd/catalog"
	"github.com/catalogd/catalogd/catalog/scan"
)

// planLife is how long a plan is kept. A job's plan has its full time again when it is done.
const planLife = time.Hour

// PlanQueue takes the plans that a job makes.
type PlanQueue interface {
	// EnqueuePlan inserts the job of a plan into the transaction that stores the plan.
	EnqueuePlan(ctx context.Context, tx pgx.Tx, planID string) error
}

// Plans implements [scan.Store].
type Plans struct {
	*Store
	queue PlanQueue
}

var _ scan.Store = (*Plans)(nil)

// NewPlans returns the plans in the database of store.
func NewPlans(store *Store, queue PlanQueue) *Plans { return &Plans{Store: store, queue: queue} }

const createPlanSQL = `
INSERT INTO scan_plan (plan_id, table_uuid, metadata_location, status, request, secret, stored, pages, expires_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, clock_timestamp() + $9::interval)`

// CreatePlan implements [scan.Store]. A plan that was answered already is not worth a
// wait for the disk: should it be lost, its client plans again.
func (s *Plans) CreatePlan(ctx context.Context, p scan.Plan) error {
	request, err := json.Marshal(p.Request)
	if err != nil {
		return fmt.Errorf("scan plan: %w", err)
	}
	args := []any{p.ID, p.TableUUID, p.MetadataLocation, string(p.Status), request, p.Secret, p.Stored, p.Pages, planLife}
	if p.Status != scan.Submitted {
		var b pgx.Batch // one transaction
		b.Queue(`SELECT set_config('synchronous_commit', 'off', true)`)
		b.Queue(createPlanSQL, args...)
		held, leave, err := s.admit(ctx)
		if err != nil {
			return err
		}
		defer leave()
		return translate(s.pool.SendBatch(held, &b).Close())
	}
	return s.change(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, createPlanSQL, args...); err != nil {
			return err
		}
		return s.queue.EnqueuePlan(ctx, tx, p.ID)
	})
}

// change runs a transaction. That its outcome is unknown does not matter to anybody:
// whatever is asked for a second time does no harm.
func (s *Plans) change(ctx context.Context, fn func(context.Context, pgx.Tx) error) error {
	err := s.update(ctx, "", fn)
	if catalog.KindOf(err) == catalog.KindCommitStateUnknown {
		return unavailable(err)
	}
	return err
}

func noSuchPlan(id string) error {
	return catalog.Errorf(catalog.KindNoSuchPlan, "The plan id does not exist: %s", id)
}

// failureKinds are the kinds of failures by their names in rows.
var failureKinds = map[string]catalog.Kind{
	"invalid": catalog.KindInvalid, "not_found": catalog.KindNotFound, "unavailable": catalog.KindUnavailable, "internal": catalog.KindInternal,
}

// Plan implements [scan.Store].
func (s *Plans) Plan(ctx context.Context, id string) (scan.Plan, error) {
	p := scan.Plan{ID: id}
	var (
		request       []byte
		status        string
		kind, message *string
	)
	err := s.read(ctx, func(ctx context.Context) error {
		return s.pool.QueryRow(ctx, `SELECT table_uuid, metadata_location, status, request, secret, stored, pages, failure_kind, failure
			FROM scan_plan WHERE plan_id = $1 AND expires_at > clock_timestamp()`, id).
			Scan(&p.TableUUID, &p.MetadataLocation, &status, &request, &p.Secret, &p.Stored, &p.Pages, &kind, &message)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return p, noSuchPlan(id)
	}
	if err != nil {
		return p, translate(err)
	}
	p.Status = scan.Status(status)
	if kind != nil && message != nil {
		p.Failure = catalog.Errorf(failureKinds[*kind], "%s", *message)
	}
	if err := json.Unmarshal(request, &p.Request); err != nil {
		return p, fmt.Errorf("scan plan %s: %w", id, err)
	}
	return p, nil
}

// CancelPlan implements [scan.Store]. The plan's row stays until it expires, so that its
// job and its client learn of the end.
func (s *Plans) CancelPlan(ctx context.Context, id string) error {
	return s.change(ctx, func(ctx context.Context, tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `UPDATE scan_plan SET status = 'cancelled', pages = 0, request = '{}', failure_kind = NULL, failure = NULL
			WHERE plan_id = $1 AND expires_at > clock_timestamp()`, id)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return noSuchPlan(id)
		}
		_, err = tx.Exec(ctx, `DELETE FROM scan_plan_page WHERE plan_id = $1`, id)
		return err
	})
}

// addPageSQL locks the plan's row, so that a cancellation finds the page or is found.
const addPageSQL = `
WITH plan AS (SELECT plan_id FROM scan_plan WHERE plan_id = $1 AND status = 'submitted' AND expires_at > clock_timestamp() FOR SHARE)
INSERT INTO scan_plan_page (plan_id, page, body, size, crc) SELECT plan_id, $2, $3, $4, $5 FROM plan
    ON CONFLICT (plan_id, page) DO UPDATE SET body = excluded.body, size = excluded.size, crc = excluded.crc`

// AddPage implements [scan.Store].
func (s *Plans) AddPage(ctx context.Context, id string, page int, body []byte) error {
	e := catalog.Encode(body)
	tag, err := s.pool.Exec(ctx, addPageSQL, id, page, e.Deflate, e.Size, int64(e.CRC32))
	if err != nil {
		return translate(err)
	}
	if tag.RowsAffected() == 0 {
		return noSuchPlan(id)
	}
	return nil
}

// Page implements [scan.Store].
func (s *Plans) Page(ctx context.Context, id string, page int) ([]byte, error) {
	var (
		e   catalog.Encoded
		crc int64
	)
	err := s.read(ctx, func(ctx context.Context) error {
		return s.pool.QueryRow(ctx, `SELECT body, size, crc FROM scan_plan_page WHERE plan_id = $1 AND page = $2`, id, page).
			Scan(&e.Deflate, &e.Size, &crc)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, noSuchPlan(id)
	}
	if err != nil {
		return nil, translate(err)
	}
	e.CRC32 = uint32(crc) //nolint:gosec // it was one
	plain, err := e.Plain()
	if err != nil {
		return nil, fmt.Errorf("page %d of scan plan %s: %w", page, id, err)
	}
	return plain, nil
}

// FinishPlan implements [scan.Store].
func (s *Plans) FinishPlan(ctx context.Context, id string, pages int, failure *catalog.Error) error {
	status := scan.Completed
	var kind, message *string
	if failure != nil {
		status, message = scan.Failed, &failure.Msg
		name := "internal"
		for n, k := range failureKinds {
			if k == failure.Kind {
				name = n
			}
		}
		kind = &name
	}
	_, err := s.pool.Exec(ctx, `UPDATE scan_plan SET status = $2, pages = $3, failure_kind = $4, failure = $5,
		expires_at = clock_timestamp() + $6::interval WHERE plan_id = $1 AND status = 'submitted'`,
		id, string(status), pages, kind, message, planLife)
	return translate(err)
}

// ExpirePlans implements [scan.Store]. It goes in steps: a plan may have many pages.
func (s *Plans) ExpirePlans(ctx context.Context) error {
	const batch = 100
	for {
		tag, err := s.pool.Exec(ctx, `DELETE FROM scan_plan WHERE plan_id IN (
			SELECT plan_id FROM scan_plan WHERE expires_at <= clock_timestamp() ORDER BY expires_at LIMIT $1 FOR UPDATE SKIP LOCKED)`, batch)
		if err != nil || tag.RowsAffected() < batch {
			return translate(err)
		}
	}
}
