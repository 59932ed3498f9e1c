package scan_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	icerest "github.com/apache/iceberg-go/catalog/rest"

	"github.com/catalogd/catalogd/catalog"
	"github.com/catalogd/catalogd/catalog/scan"
)

// memory is a scan.Store and scan.Tables of one table. The real store has tests of its
// own in catalog/postgres.
type memory struct {
	mu       sync.Mutex
	uuid     string
	location string
	docs     map[string][]byte
	plans    map[string]scan.Plan
	pages    map[string]map[int][]byte
}

func newMemory() *memory {
	return &memory{uuid: "t-1", docs: map[string][]byte{}, plans: map[string]scan.Plan{}, pages: map[string]map[int][]byte{}}
}

// set makes doc the current metadata.
func (m *memory) set(doc []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.location = fmt.Sprintf("m%d", len(m.docs))
	m.docs[m.location] = doc
}

func (m *memory) LoadTable(_ context.Context, _ string, id catalog.TableIdent) (catalog.Loaded, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return catalog.Loaded{
		Pointer:  catalog.Pointer{Ident: id, UUID: m.uuid, MetadataLocation: m.location},
		Document: catalog.NewDocument(m.location, m.docs[m.location], nil),
	}, nil
}

func (m *memory) Document(_ context.Context, p catalog.Pointer) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.docs[p.MetadataLocation], nil
}

func (m *memory) CreatePlan(_ context.Context, p scan.Plan) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	// As a row would: what cannot be stored is lost.
	raw, err := json.Marshal(p.Request)
	if err != nil {
		return err
	}
	p.Request = scan.Request{}
	if err := json.Unmarshal(raw, &p.Request); err != nil {
		return err
	}
	m.plans[p.ID], m.pages[p.ID] = p, map[int][]byte{}
	return nil
}

func (m *memory) Plan(_ context.Context, id string) (scan.Plan, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p, ok := m.plans[id]
	if !ok {
		return p, catalog.Errorf(catalog.KindNoSuchPlan, "no plan")
	}
	return p, nil
}

func (m *memory) CancelPlan(_ context.Context, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.plans[id]
	p.Status = scan.Cancelled
	m.plans[id], m.pages[id] = p, map[int][]byte{}
	return nil
}

func (m *memory) AddPage(_ context.Context, id string, page int, body []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.plans[id].Status != scan.Submitted {
		return catalog.Errorf(catalog.KindNoSuchPlan, "no plan")
	}
	m.pages[id][page] = body
	return nil
}

func (m *memory) Page(_ context.Context, id string, page int) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.pages[id][page], nil
}

func (m *memory) FinishPlan(_ context.Context, id string, pages int, failure *catalog.Error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.plans[id]
	p.Status, p.Pages, p.Failure = scan.Completed, pages, failure
	if failure != nil {
		p.Status = scan.Failed
	}
	m.plans[id] = p
	return nil
}

func (m *memory) ExpirePlans(context.Context) error { return nil }

// submitted lists the plans that wait for a job.
func (m *memory) submitted() (ids []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, p := range m.plans {
		if p.Status == scan.Submitted {
			ids = append(ids, id)
		}
	}
	return ids
}

// wire is an answer as iceberg-go's client sees it.
type wire struct {
	Status string `json:"status"`
	PlanID string `json:"plan-id"`
	icerest.ScanTasks
}

var ident = catalog.TableIdent{Namespace: catalog.Namespace{"db"}, Name: "t"}

func decode(t fataler, body []byte) wire {
	t.Helper()
	var w wire
	if err := json.Unmarshal(body, &w); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	return w
}

// fataler is a test, of testing or of rapid.
type fataler interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Context() context.Context
}

// all plans a scan and fetches all of its pages. Every page is an answer of its own, since
// references to delete files count within it.
func all(t fataler, s *scan.Service, m *memory, r scan.Request) []wire {
	t.Helper()
	ctx := t.Context()
	body, err := s.Plan(ctx, "w", ident, r)
	if err != nil {
		t.Fatal(err)
	}
	first := decode(t, body)
	if first.Status == "submitted" {
		for _, id := range m.submitted() {
			if err := s.Execute(ctx, id, true); err != nil {
				t.Fatal(err)
			}
		}
		res, err := s.Result(ctx, "w", ident, first.PlanID)
		if err != nil || res.Failure != nil {
			t.Fatal(err, res.Failure)
		}
		first = decode(t, res.Body)
	}
	if first.Status != "completed" {
		t.Fatalf("status %q", first.Status)
	}
	pages := []wire{first}
	for _, token := range first.PlanTasks {
		body, err := s.Tasks(ctx, "w", ident, token)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, decode(t, body))
	}
	return pages
}
