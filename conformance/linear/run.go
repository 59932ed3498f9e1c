package linear

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Config says what to drive and how hard.
type Config struct {
	// Replicas return the base URI under which each server can be reached now.
	Replicas []func() string
	// Prefix is the warehouse's REST prefix.
	Prefix string
	// Clients is the number of clients that are active at a time. 0: 6.
	Clients int
	// Groups is the number of namespaces that they share. 0: 3.
	Groups int
	// Seed decides what the clients do. Their interleaving is the machine's.
	Seed uint64
	// ArtifactDir is where a history that cannot be explained is written.
	ArtifactDir string
	// HTTP is the client to use. Its timeout is how long an answer may take before the
	// server counts as hung. Nil: one with a minute.
	HTTP *http.Client
}

// Run is a catalog under observation.
type Run struct {
	cfg          Config
	began        time.Time
	transactions bool // the server announces them
	keys         bool // and idempotency keys
	ids          atomic.Int64
	clients      []*client
	reader       *client

	stop chan struct{} // of the round
	busy sync.WaitGroup

	mu        sync.Mutex
	histories []history
	seen      sightings
	winners   map[fence]int64
	uuids     map[int64]string // of the tables, by their creators
	files     map[string]bool  // metadata files that answers named
	problems  []string
	counts    map[outcome]int
	checked   int
}

// fence is a state of a table that only one append can follow.
type fence struct{ creator, head int64 }

// Prepare makes the namespaces.
func Prepare(ctx context.Context, cfg Config) (*Run, error) {
	if cfg.Clients == 0 {
		cfg.Clients = 6
	}
	if cfg.Groups == 0 {
		cfg.Groups = 3
	}
	if cfg.HTTP == nil {
		cfg.HTTP = &http.Client{Timeout: time.Minute}
	}
	r := &Run{
		cfg: cfg, began: time.Now(), histories: make([]history, cfg.Groups), counts: map[outcome]int{},
		uuids: map[int64]string{}, files: map[string]bool{},
	}
	r.forget()
	for i := range cfg.Clients {
		r.clients = append(r.clients, r.newClient(i))
	}
	r.reader = r.newClient(cfg.Clients)
	a := r.reader.request(ctx, http.MethodGet, "/v1/config", nil, nil)
	var config struct {
		Endpoints []string `json:"endpoints"`
		Lifetime  string   `json:"idempotency-key-lifetime"`
	}
	if err := a.decode(&config); err != nil {
		return nil, err
	}
	r.transactions = slices.Contains(config.Endpoints, "POST /v1/{prefix}/transactions/commit")
	r.keys = config.Lifetime != ""
	for g := range cfg.Groups {
		a := r.reader.request(ctx, http.MethodPost, "/v1/"+cfg.Prefix+"/namespaces", map[string]any{"namespace": []string{namespace(g)}}, nil)
		if a.err != nil || a.status != http.StatusOK {
			return nil, fmt.Errorf("create namespace: %w", a.problem())
		}
	}
	return r, nil
}

func namespace(group int) string { return fmt.Sprintf("group%d", group) }

func (r *Run) newClient(number int) *client {
	return &client{
		run: r, number: number, random: rand.New(rand.NewPCG(r.cfg.Seed, uint64(number))), //nolint:gosec // not for secrets, and small
		views: make([][len(tableNames)]view, r.cfg.Groups),
	}
}

// Resume lets the clients work, until [Run.Pause].
func (r *Run) Resume(ctx context.Context) {
	r.stop = make(chan struct{})
	for _, c := range r.clients {
		r.busy.Go(func() {
			for !c.paused() {
				c.act(ctx)
			}
		})
	}
}

// Pause returns when all clients have their answers.
func (r *Run) Pause() {
	close(r.stop)
	r.busy.Wait()
}

// Check reads what all tables are now, through every replica, and checks the round. The
// clients must be paused, all replicas up, and no operation may be under way.
func (r *Run) Check(ctx context.Context) error {
	settled := time.Since(r.began)
	finals := make([]state, r.cfg.Groups)
	for g := range r.cfg.Groups {
		for replica := range r.cfg.Replicas {
			r.reader.list(ctx, g, replica)
			for name := range tableNames {
				out := r.reader.load(ctx, g, name, replica, loadAll)
				if out.outcome != did && out.outcome != noTable {
					return fmt.Errorf("%s.%s cannot be loaded although everything is up: %s; %w", namespace(g), tableNames[name], out.outcome, r.Err())
				}
				finals[g][name] = out.table
			}
		}
	}
	r.checkFiles()
	for g := range r.histories {
		h := r.histories[g]
		h.settled = settled
		name := fmt.Sprintf("seed-%d-%s-at-%d", r.cfg.Seed, namespace(g), settled.Milliseconds())
		if err := h.check(r.seen, step, r.cfg.ArtifactDir, name); err != nil {
			r.problem("%s", err)
		}
		r.checked += len(h.ops)
		r.histories[g] = history{initial: finals[g]}
	}
	r.forget()
	return r.Err()
}

// forget drops what only one round needs.
func (r *Run) forget() {
	r.seen, r.winners = sightings{}, map[fence]int64{}
}

// checkFiles looks for the metadata file of every state that a client was told of, and
// removes the files that no table points at, since a long run makes many.
func (r *Run) checkFiles() {
	live := map[string]bool{}
	for _, group := range r.reader.views {
		for _, v := range group {
			live[v.location] = true
		}
	}
	for location := range r.files {
		text, err := readMetadata(location)
		if err == nil && !json.Valid(text) {
			err = errors.New("it is no JSON")
		}
		if err != nil {
			r.problem("metadata file %s of an acknowledged state: %v", location, err)
		}
		if !live[location] {
			if err := os.Remove(strings.TrimPrefix(location, "file://")); err != nil {
				r.problem("%v", err)
			}
		}
	}
	clear(r.files)
}

// maxProblems bounds what is remembered of a run that goes wrong.
const maxProblems = 20

func (r *Run) problem(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.problems) < maxProblems {
		r.problems = append(r.problems, fmt.Sprintf(format, args...))
	}
}

// Err is what went wrong so far, nil if nothing did.
func (r *Run) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.problems) == 0 {
		return nil
	}
	return errors.New(strings.Join(r.problems, "\n"))
}

// Summary tells how much was checked.
func (r *Run) Summary() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	parts := []string{fmt.Sprintf("%d operations checked", r.checked)}
	for _, o := range []outcome{did, unknown, refused, failed, exists, noTable} {
		parts = append(parts, fmt.Sprintf("%d %s", r.counts[o], o))
	}
	if !r.transactions {
		parts = append(parts, "no transactions: the server has none")
	}
	if !r.keys {
		parts = append(parts, "no idempotency keys: the server has none")
	}
	return strings.Join(parts, ", ")
}

// Count is how many operations ended in success so far.
func (r *Run) Count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.counts[did]
}

// record adds an operation to the history of its group.
func (r *Run) record(group int, op operation) {
	r.mu.Lock()
	r.counts[op.out.outcome]++
	h := &r.histories[group]
	switch reads := op.in.kind == opLoad || op.in.kind == opExists || op.in.kind == opList; {
	case reads && (op.out.outcome == refused || op.out.outcome == unknown): // tells nothing
	case op.out.outcome == refused:
		h.refused = append(h.refused, op)
	default:
		h.ops = append(h.ops, op)
	}
	var twice []string
	if op.in.kind == opCommit && op.out.outcome == did {
		for _, p := range op.in.parts {
			f := fence{p.creator, p.head}
			if !p.fenced {
				continue
			}
			if other := r.winners[f]; other != 0 {
				twice = append(twice, fmt.Sprintf("two winners: snapshots %d and %d were both appended to table #%d at snapshot %d",
					other, p.snapshot, p.creator, p.head))
			}
			r.winners[f] = p.snapshot
		}
	}
	r.mu.Unlock()
	for _, text := range twice {
		r.problem("%s", text)
	}
}

func (r *Run) now() time.Duration { return time.Since(r.began) }
