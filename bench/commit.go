package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/catalogd/catalogd/bench/client"
	"github.com/catalogd/catalogd/bench/floor"
	"github.com/catalogd/catalogd/bench/measure"
)

// What is wanted of commits.
const (
	commitGoal      = "commit, own tables, 8 clients: p50, cost of the floor's"
	commitRateGoal  = "commit, own tables, 8 clients: commits/s, part of the floor's"
	commitAloneGoal = "commit, 1 client: p50, cost of the floor's"
	commitAheadGoal = "commit, own tables, 8 clients: times the reference server's speed"
)

// commits compares appends to tables of the clients' own with the floor's file and
// transaction of the same sizes, and with the reference server.
func (b *bench) commits(ctx context.Context) error {
	c := &commitBench{bench: b, files: filepath.Join(b.dir, "floor-files")}
	if err := c.pilot(ctx); err != nil {
		return err
	}
	if err := c.start(ctx); err != nil {
		return err
	}
	java := b.reference(ctx)
	b.rep.title(fmt.Sprintf("commit: own tables, %d appends each from the first snapshot on; the floor writes and fsyncs a file, then runs the same transaction", b.scale.commits))
	if java == nil {
		b.rep.leave(b.noJava, check{measure: commitAheadGoal, bound: atLeast(5)})
	} else if err := c.warm(ctx, java); err != nil {
		return err
	}
	for _, clients := range b.scale.clients {
		if err := c.contest(ctx, clients, java); err != nil {
			return err
		}
	}
	return c.floor.process.stop()
}

type commitBench struct {
	*bench
	files  string
	sizes  []commitSize // of the n-th append
	plain  []byte       // samples for the floor
	packed []byte

	floor *target
}

// commitSize is what a catalog has to store after an append.
type commitSize struct{ file, document, refs int }

// pilot learns the sizes from one table, which also warms the server up.
func (c *commitBench) pilot(ctx context.Context) error {
	w, err := client.NewWriter(ctx, c.catalog, namespace, "commit_pilot")
	if err != nil {
		return err
	}
	conn := client.Dial(c.catalog.Address())
	defer conn.Close()
	for range c.scale.commits {
		if _, err := w.Append(ctx, conn); err != nil {
			return err
		}
		all, _, err := w.Load(ctx, conn, false)
		if err != nil {
			return err
		}
		refs, _, err := w.Load(ctx, conn, true)
		if err != nil {
			return err
		}
		t, err := all.Table()
		if err != nil {
			return err
		}
		size := commitSize{file: len(t.Metadata), document: len(all.Body)}
		if !bytes.Equal(all.Body, refs.Body) { // else one form serves both
			size.refs = len(refs.Body)
		}
		c.sizes = append(c.sizes, size)
		if len(t.Metadata) > len(c.plain) {
			c.plain = t.Metadata
		}
		if len(all.Body) > len(c.packed) {
			c.packed = all.Body
		}
	}
	return nil
}

func (c *commitBench) start(ctx context.Context) error {
	if err := os.Mkdir(c.files, 0o755); err != nil {
		return err
	}
	plain, packed := filepath.Join(c.dir, "sample.json"), filepath.Join(c.dir, "sample.packed")
	if err := errors.Join(os.WriteFile(plain, c.plain, 0o600), os.WriteFile(packed, c.packed, 0o600)); err != nil {
		return err
	}
	p, err := c.startFloor(ctx, "commit-floor", "--dir", c.files, "--plain", plain, "--packed", packed)
	if err != nil {
		return err
	}
	c.floor = &target{name: "floor", process: p, catalog: client.At(p.url, c.catalog.Prefix()), database: c.connections(floorDatabase)}
	return nil
}

func (c *commitBench) limits(clients int) measure.Limits {
	return measure.Limits{Clients: clients, PerClient: c.scale.commits, Time: c.scale.commitTime}
}

// warm lets a server that compiles while it runs do so before it is measured.
func (c *commitBench) warm(ctx context.Context, t *target) error {
	a := newAppender(t, mostClients, "warm")
	defer a.close()
	limits := measure.Limits{Clients: mostClients, PerClient: c.scale.commits, Total: c.scale.warmRequests, Time: c.scale.warmUp}
	series, err := measure.Contest(ctx, measure.Plan{Rounds: 1, Limits: limits}, t.contender(a.op, a.begin))
	if err != nil {
		return err
	}
	return series[0].Rounds[0].Err
}

func (c *commitBench) contest(ctx context.Context, clients int, java *target) error {
	ours := newAppender(c.subject(), clients, "commit")
	defer ours.close()
	bar := &floorAppender{commitBench: c, clients: clients}
	defer bar.close()
	contenders := []measure.Contender{c.subject().contender(ours.op, ours.begin), c.floor.contender(bar.op, bar.begin)}
	if java != nil {
		theirs := newAppender(java, clients, "commit")
		defer theirs.close()
		contenders = append(contenders, java.contender(theirs.op, theirs.begin))
	}
	series, err := measure.Contest(ctx, measure.Plan{Rounds: c.scale.rounds, Limits: c.limits(clients)}, contenders...)
	if err != nil {
		return err
	}
	const what = "commit, own tables"
	line := compare(what, clients, series[0], series[1])
	line.Bytes = c.sizes[len(c.sizes)-1].document
	if clients == mostClients {
		line = line.want(commitGoal, line.Time, atMost(2)).keepsRate(commitRateGoal, 60)
	} else {
		line = line.want(commitAloneGoal, line.Time, atMost(2))
	}
	var more []comparison
	if java != nil {
		other := compare(what, clients, series[0], series[2])
		if clients == mostClients {
			other = other.ahead(commitAheadGoal, 5)
		}
		more = append(more, other)
	}
	c.rep.add(line, more...)
	return nil
}

// appender lets every client append to a table of its own, new in every round.
type appender struct {
	catalog *client.Catalog
	clients int
	prefix  string // of the tables' names

	conns   []*client.Conn
	writers []*client.Writer
	answers [][]answer // of each client, checked after the round
}

func newAppender(t *target, clients int, prefix string) *appender {
	return &appender{catalog: t.catalog, clients: clients, prefix: prefix}
}

// answer is kept so that reading it takes no time from the servers.
type answer struct {
	append client.Append
	reply  client.Reply
}

func (a *appender) begin(ctx context.Context, round int) (end func(context.Context) error, err error) {
	writers := make([]*client.Writer, a.clients)
	for i := range writers {
		name := fmt.Sprintf("%s_c%d_r%d_%d", a.prefix, a.clients, round, i)
		if writers[i], err = client.NewWriter(ctx, a.catalog, namespace, name); err != nil {
			return nil, err
		}
	}
	a.use(writers)
	return a.verify, nil
}

// use sets the tables of the next round.
func (a *appender) use(writers []*client.Writer) {
	for len(a.conns) < a.clients {
		a.conns = append(a.conns, client.Dial(a.catalog.Address()))
	}
	a.writers, a.answers = writers, make([][]answer, a.clients)
}

func (a *appender) op(ctx context.Context, i, _ int) (time.Duration, error) {
	next, err := a.writers[i].Prepare()
	if err != nil {
		return 0, err
	}
	reply, err := a.conns[i].Do(ctx, next.Request())
	if err != nil {
		return 0, err
	}
	if reply.Status != http.StatusOK {
		return 0, next.Check(reply)
	}
	a.writers[i].Done(next)
	a.answers[i] = append(a.answers[i], answer{append: next, reply: reply})
	return reply.Elapsed, nil
}

// verify reads every answer in full, and the tables as they are now.
func (a *appender) verify(ctx context.Context) error {
	var problems []error
	for i, answers := range a.answers {
		for _, got := range answers {
			if err := got.append.Check(got.reply); err != nil {
				problems = append(problems, err)
				break
			}
		}
		if len(answers) == 0 {
			continue
		}
		if _, _, err := a.writers[i].Load(ctx, a.conns[i], false); err != nil {
			problems = append(problems, err)
		}
	}
	a.answers = nil
	return errors.Join(problems...)
}

func (a *appender) close() {
	for _, c := range a.conns {
		_ = c.Close() // nothing is under way
	}
}

// floorAppender sends the same requests to the floor, with the sizes of the pilot.
type floorAppender struct {
	*commitBench
	clients int

	conns    []*client.Conn
	writers  []*client.Writer
	previous []string // where the tables point
}

func (f *floorAppender) begin(ctx context.Context, round int) (end func(context.Context) error, err error) {
	for len(f.conns) < f.clients {
		f.conns = append(f.conns, client.Dial(f.floor.catalog.Address()))
	}
	f.writers, f.previous = make([]*client.Writer, f.clients), make([]string, f.clients)
	for i := range f.writers {
		table := fmt.Sprintf("c%d_r%d_%d", f.clients, round, i)
		folder := filepath.Join(f.files, table)
		if err := os.Mkdir(folder, 0o755); err != nil {
			return nil, err
		}
		if err := floor.SeedTable(ctx, f.floorPool, namespace, table, folder); err != nil {
			return nil, err
		}
		f.writers[i] = client.WriterOf(f.floor.catalog, namespace, table, "file://"+folder)
	}
	return func(context.Context) error { return nil }, nil
}

func (f *floorAppender) op(ctx context.Context, i, n int) (time.Duration, error) {
	w := f.writers[i]
	next, err := w.Prepare()
	if err != nil {
		return 0, err
	}
	size := f.sizes[n]
	body, err := json.Marshal(floor.Commit{
		FileBytes: size.file, DocumentBytes: size.document, RefsBytes: size.refs, Previous: f.previous[i], Sequence: n, Request: next.Body,
	})
	if err != nil {
		return 0, err
	}
	reply, err := f.conns[i].Do(ctx, client.NewRequest(f.floor.catalog.Address(), http.MethodPost, w.Path(), body, nil))
	if err != nil {
		return 0, err
	}
	if reply.Status != http.StatusOK || !bytes.Equal(reply.Body, f.packed[:size.document]) {
		return 0, fmt.Errorf("the floor answers %d with %d bytes, want %d", reply.Status, len(reply.Body), size.document)
	}
	w.Done(next)
	f.previous[i] = reply.Header.Get(floor.Committed)
	return reply.Elapsed, nil
}

func (f *floorAppender) close() {
	for _, c := range f.conns {
		_ = c.Close() // nothing is under way
	}
}
