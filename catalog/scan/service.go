package scan

import (
	"context"
	"crypto/rand"
	"log/slog"

	"github.com/google/uuid"

	"github.com/catalogd/catalogd/catalog"
)

// Config is what a [Service] needs.
type Config struct {
	Tables Tables
	Store  Store
	Files  FS
	Limits Limits
	Log    *slog.Logger // nil: nothing is logged
}

// Service plans scans for clients.
type Service struct {
	tables Tables
	store  Store
	files  FS
	limits Limits
	log    *slog.Logger
	ready  *shelf
}

// NewService returns a service.
func NewService(c Config) *Service {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &Service{tables: c.Tables, store: c.Store, files: c.Files, limits: c.Limits.withDefaults(), log: c.Log, ready: newShelf()}
}

// Result is the state of a plan: for a failed one why, for others the answer's JSON.
type Result struct {
	Body    []byte
	Failure *catalog.Error
}

// Plan plans a scan: at once, or by a job if it is very large.
func (s *Service) Plan(ctx context.Context, warehouse string, id catalog.TableIdent, r Request) ([]byte, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	l, err := s.tables.LoadTable(ctx, warehouse, id)
	if err != nil {
		return nil, err
	}
	doc, err := s.document(l, r)
	if err != nil {
		return nil, err
	}
	scan, err := prepare(ctx, s.files, doc, r)
	if err != nil {
		return nil, err
	}
	scan.cut(s.limits)
	p := Plan{
		ID: uuid.NewString(), TableUUID: l.Pointer.UUID, MetadataLocation: l.Pointer.MetadataLocation, Status: Completed,
		Request: scan.settled(), Secret: make([]byte, secretBytes), Pages: len(scan.pages),
	}
	if _, err := rand.Read(p.Secret); err != nil {
		return nil, err
	}
	if scan.size() >= s.limits.AsyncFiles {
		p.Status, p.Stored, p.Pages = Submitted, true, 0
		if err := s.store.CreatePlan(ctx, p); err != nil {
			return nil, err
		}
		return answer(p, true, nil, nil), nil
	}
	first, more, err := firstPage(ctx, scan)
	if err != nil {
		return nil, err
	}
	if !more {
		p.Pages = 1
	}
	if err := s.store.CreatePlan(ctx, p); err != nil {
		return nil, err
	}
	if more {
		s.ready.put(p.ID, l.Pointer.MetadataLocation, scan)
	}
	return answer(p, true, first.members(), p.tokens()), nil
}

// firstPage plans the first page and tells whether others may be needed.
func firstPage(ctx context.Context, scan *Scan) (first *tasks, more bool, err error) {
	first = new(tasks)
	if err := scan.read(ctx, scan.pages[0], first); err != nil {
		return nil, false, err
	}
	enough := scan.request.MinRows > 0 && first.rows >= scan.request.MinRows
	return first, len(scan.pages) > 1 && !enough, nil
}

// settled is the request with the snapshot and the schema that the scan has chosen, so
// that later pages choose the same.
func (s *Scan) settled() Request {
	r := s.request
	if s.snapshot != nil {
		r.SchemaID = &s.schemaID
		if !r.incremental() {
			r.SnapshotID = &s.snapshot.ID
		}
	}
	return r
}

// tokens are the plan tasks of all pages but the first, which comes with the answer.
func (p Plan) tokens() []string {
	var out []string
	for i := 1; i < p.Pages; i++ {
		out = append(out, p.token(i))
	}
	return out
}

// answer writes the state of a plan. members are the tasks of the first page.
func answer(p Plan, withID bool, members []byte, tokens []string) []byte {
	out := make([]byte, 0, len(members)+128+len(tokens)*56)
	out = append(out, `{"status":"`...)
	out = append(out, p.Status...)
	out = append(out, '"')
	if withID {
		out = append(out, `,"plan-id":"`...)
		out = append(out, p.ID...)
		out = append(out, '"')
	}
	for i, t := range tokens {
		if i == 0 {
			out = append(out, `,"plan-tasks":["`...)
		} else {
			out = append(out, `","`...)
		}
		out = append(out, t...)
	}
	if len(tokens) > 0 {
		out = append(out, `"]`...)
	}
	if members != nil {
		out = append(out, ',')
		out = append(out, members...)
	}
	return append(out, '}')
}

// Result tells how far a plan is; of a completed one it is the first page.
func (s *Service) Result(ctx context.Context, warehouse string, id catalog.TableIdent, plan string) (Result, error) {
	l, p, err := s.find(ctx, warehouse, id, plan)
	if err != nil {
		return Result{}, err
	}
	switch p.Status {
	case Failed:
		return Result{Failure: p.Failure}, nil
	case Completed:
	default:
		return Result{Body: answer(p, false, nil, nil)}, nil
	}
	members, err := s.page(ctx, l, p, 0)
	if catalog.KindOf(err) == catalog.KindNoSuchPlanTask {
		return Result{Failure: expired(err)}, nil
	}
	if err != nil {
		return Result{}, err
	}
	return Result{Body: answer(p, false, members, p.tokens())}, nil
}

// expired is the failure of a plan whose snapshot has gone.
func expired(err error) *catalog.Error {
	return catalog.Errorf(catalog.KindNotFound, "%s", err.Error())
}

func noSuchPlan(id string) *catalog.Error {
	return catalog.Errorf(catalog.KindNoSuchPlan, "The plan id does not exist: %q is not a plan of this table, or has expired; plan again", id)
}

// find reads the plan of a table.
func (s *Service) find(ctx context.Context, warehouse string, id catalog.TableIdent, plan string) (catalog.Loaded, Plan, error) {
	l, err := s.tables.LoadTable(ctx, warehouse, id)
	if err != nil {
		return l, Plan{}, err
	}
	parsed, err := uuid.Parse(plan)
	if err != nil || parsed.String() != plan {
		return l, Plan{}, noSuchPlan(plan)
	}
	p, err := s.store.Plan(ctx, plan)
	if catalog.KindOf(err) == catalog.KindNoSuchPlan || (err == nil && p.TableUUID != l.Pointer.UUID) {
		return l, Plan{}, noSuchPlan(plan)
	}
	return l, p, err
}

// Cancel frees what is kept for a plan.
func (s *Service) Cancel(ctx context.Context, warehouse string, id catalog.TableIdent, plan string) error {
	_, p, err := s.find(ctx, warehouse, id, plan)
	if err != nil {
		return err
	}
	s.ready.drop(p.ID)
	return s.store.CancelPlan(ctx, p.ID)
}

// Tasks returns a page of a plan.
func (s *Service) Tasks(ctx context.Context, warehouse string, id catalog.TableIdent, token string) ([]byte, error) {
	t, err := parseToken(token)
	if err != nil {
		return nil, s.missing(ctx, warehouse, id, err)
	}
	l, p, err := s.find(ctx, warehouse, id, t.plan)
	if catalog.KindOf(err) == catalog.KindNoSuchPlan || (err == nil && (!p.opens(t) || p.Status != Completed || t.page >= p.Pages)) {
		return nil, noSuchTask()
	}
	if err != nil {
		return nil, err
	}
	members, err := s.page(ctx, l, p, t.page)
	if err != nil {
		return nil, err
	}
	out := append(make([]byte, 0, len(members)+2), '{')
	return append(append(out, members...), '}'), nil
}

// missing lets a missing table come before a missing task.
func (s *Service) missing(ctx context.Context, warehouse string, id catalog.TableIdent, task error) error {
	if _, err := s.tables.LoadTable(ctx, warehouse, id); err != nil {
		return err
	}
	return task
}

// page returns the tasks of a page, from a row or made anew.
func (s *Service) page(ctx context.Context, l catalog.Loaded, p Plan, page int) ([]byte, error) {
	scan, err := s.current(ctx, l, p)
	if err != nil {
		return nil, err
	}
	if p.Stored {
		body, err := s.store.Page(ctx, p.ID, page)
		if catalog.KindOf(err) == catalog.KindNoSuchPlan {
			return nil, noSuchTask() // cancelled or expired this moment
		}
		return body, err
	}
	if page >= len(scan.pages) {
		return nil, noSuchTask()
	}
	out := new(tasks)
	if err := scan.read(ctx, scan.pages[page], out); err != nil {
		return nil, err
	}
	return out.members(), nil
}
