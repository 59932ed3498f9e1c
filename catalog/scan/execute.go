package scan

import (
	"context"
	"errors"
	"log/slog"

	"github.com/catalogd/catalogd/catalog"
)

// Execute makes a submitted plan. It may run several times, and in several processes at
// once: all of them write the same pages. last tells that it will not be tried again, so
// that every failure is final. An error means that another attempt may help.
func (s *Service) Execute(ctx context.Context, plan string, last bool) error {
	p, err := s.store.Plan(ctx, plan)
	if catalog.KindOf(err) == catalog.KindNoSuchPlan || (err == nil && p.Status != Submitted) {
		return nil
	}
	if err != nil {
		return err
	}
	pages, err := s.execute(ctx, p)
	switch kind := catalog.KindOf(err); {
	case err == nil:
		return s.store.FinishPlan(ctx, plan, pages, nil)
	case kind == catalog.KindNoSuchPlan: // cancelled meanwhile
		return nil
	case ctx.Err() != nil || (!last && (kind == catalog.KindUnavailable || kind == catalog.KindInternal)):
		return err
	}
	s.log.WarnContext(ctx, "scan plan failed", slog.String("plan_id", plan), slog.Any("error", err))
	return s.store.FinishPlan(ctx, plan, 0, failure(err))
}

// failure is what a client is told.
func failure(err error) *catalog.Error {
	e, ok := errors.AsType[*catalog.Error](err)
	switch {
	case !ok:
		return catalog.Errorf(catalog.KindInternal, "The scan could not be planned for an internal reason; the server's log has it")
	case e.Kind == catalog.KindNotFound:
		return catalog.Errorf(e.Kind, "%s; the snapshot may have expired since the plan was submitted: plan again", e.Msg)
	default:
		return catalog.Errorf(e.Kind, "%s", e.Msg)
	}
}

func (s *Service) execute(ctx context.Context, p Plan) (pages int, err error) {
	plain, err := s.tables.Document(ctx, catalog.Pointer{MetadataLocation: p.MetadataLocation})
	if err != nil {
		return 0, err
	}
	doc, err := parseDocument(plain)
	if err != nil {
		return 0, err
	}
	scan, err := prepare(ctx, s.files, doc, p.Request)
	if err != nil {
		return 0, err
	}
	page := new(tasks)
	flush := func() error {
		if err := s.store.AddPage(ctx, p.ID, pages, page.members()); err != nil {
			return err
		}
		pages++
		page = new(tasks)
		return nil
	}
	for i := range scan.data {
		if err := scan.read(ctx, scan.data[i:i+1], page); err != nil {
			return 0, err
		}
		if int64(page.count) >= s.limits.PageFiles {
			if err := flush(); err != nil {
				return 0, err
			}
		}
	}
	if page.count > 0 || pages == 0 {
		err = flush()
	}
	return pages, err
}

// Expire deletes old plans.
func (s *Service) Expire(ctx context.Context) error { return s.store.ExpirePlans(ctx) }
