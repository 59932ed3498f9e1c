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

// commits compares appends to tables of the clients' own with the floor's file and
// transaction of the same sizes.
func (b *bench) commits(ctx context.Context) error {
	c := &commitBench{bench: b, files: filepath.Join(b.dir, "floor-files")}
	if err := c.pilot(ctx); err != nil {
		return err
	}
	if err := c.start(ctx); err != nil {
		return err
	}
	b.rep.title(fmt.Sprintf("commit: own tables, %d appends each from the first snapshot on; the floor writes and fsyncs a file, then one durable transaction", b.scale.commits))
	for _, clients := range b.scale.clients {
		if err := c.contest(ctx, clients); err != nil {
			return err
		}
	}
	return nil
}

type commitBench struct {
	*bench
	files  string
	sizes  []commitSize // of the n-th append
	plain  []byte       // samples for the floor
	packed []byte

	floor         *process
	floorCatalog  *client.Catalog
	floorDatabase measure.Meter
}

// commitSize is what a catalog has to store after an append.
type commitSize struct{ file, document int }

// pilot learns the sizes from one table, which also warms the server up.
func (c *commitBench) pilot(ctx context.Context) error {
	w, err := client.NewWriter(ctx, c.catalog, namespace, "commit_pilot")
	if err != nil {
		return err
	}
	conn := client.Dial(c.catalog.Address())
	defer conn.Close()
	for range c.scale.commits {
		reply, err := w.Append(ctx, conn)
		if err != nil {
			return err
		}
		t, err := reply.Table()
		if err != nil {
			return err
		}
		c.sizes = append(c.sizes, commitSize{file: len(t.Metadata), document: len(reply.Body)})
		if len(t.Metadata) > len(c.plain) {
			c.plain = t.Metadata
		}
		if len(reply.Body) > len(c.packed) {
			c.packed = reply.Body
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
	var err error
	if c.floor, err = c.startFloor(ctx, "commit-floor", "--dir", c.files, "--plain", plain, "--packed", packed); err != nil {
		return err
	}
	c.floorCatalog = client.At(c.floor.url, c.catalog.Prefix())
	c.floorDatabase = c.connections(floorDatabase)
	return nil
}

func (c *commitBench) contest(ctx context.Context, clients int) error {
	subject := &appender{catalog: c.catalog, clients: clients, make: func(ctx context.Context, table string) (*client.Writer, error) {
		return client.NewWriter(ctx, c.catalog, namespace, table)
	}}
	defer subject.close()
	bar := &floorAppender{commitBench: c, clients: clients}
	defer bar.close()
	plan := measure.Plan{
		Rounds: c.scale.rounds,
		Limits: measure.Limits{Clients: clients, PerClient: c.scale.commits, Time: c.scale.commitTime},
	}
	series, err := measure.Contest(ctx, plan,
		measure.Contender{Name: "catalogd", Op: subject.op, Begin: subject.begin, CPU: c.server.cpu(), Database: c.database},
		measure.Contender{Name: "floor", Op: bar.op, Begin: bar.begin, CPU: c.floor.cpu(), Database: c.floorDatabase},
	)
	if err != nil {
		return err
	}
	line := compare("commit, own tables", clients, series[0], series[1]).atMost(2)
	line.Bytes = c.sizes[len(c.sizes)-1].document
	c.rep.add(line)
	return nil
}

// appender lets every client append to a table of its own, new in every round.
type appender struct {
	catalog *client.Catalog
	clients int
	make    func(ctx context.Context, table string) (*client.Writer, error)

	conns   []*client.Conn
	writers []*client.Writer
	answers [][]answer // of each client, checked after the round
}

// answer is kept so that reading it takes no time from the servers.
type answer struct {
	append client.Append
	reply  client.Reply
}

func (a *appender) begin(ctx context.Context, round int) (end func(context.Context) error, err error) {
	writers := make([]*client.Writer, a.clients)
	for i := range writers {
		if writers[i], err = a.make(ctx, fmt.Sprintf("commit_c%d_r%d_%d", a.clients, round, i)); err != nil {
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

	conns   []*client.Conn
	writers []*client.Writer
}

func (f *floorAppender) begin(ctx context.Context, round int) (end func(context.Context) error, err error) {
	for len(f.conns) < f.clients {
		f.conns = append(f.conns, client.Dial(f.floorCatalog.Address()))
	}
	f.writers = make([]*client.Writer, f.clients)
	for i := range f.writers {
		table := fmt.Sprintf("c%d_r%d_%d", f.clients, round, i)
		folder := filepath.Join(f.files, table)
		if err := os.Mkdir(folder, 0o755); err != nil {
			return nil, err
		}
		row := floor.Row{Namespace: namespace, Table: table, Location: folder, Document: f.packed[:1]}
		if err := floor.Seed(ctx, f.floorPool, row); err != nil {
			return nil, err
		}
		f.writers[i] = client.WriterOf(f.floorCatalog, namespace, table, "file://"+folder)
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
	body, err := json.Marshal(floor.Commit{FileBytes: size.file, DocumentBytes: size.document, Sequence: n, Request: next.Body})
	if err != nil {
		return 0, err
	}
	reply, err := f.conns[i].Do(ctx, client.NewRequest(f.floorCatalog.Address(), http.MethodPost, w.Path(), body, nil))
	if err != nil {
		return 0, err
	}
	if reply.Status != http.StatusOK || !bytes.Equal(reply.Body, f.packed[:size.document]) {
		return 0, fmt.Errorf("the floor answers %d with %d bytes, want %d", reply.Status, len(reply.Body), size.document)
	}
	w.Done(next)
	return reply.Elapsed, nil
}

func (f *floorAppender) close() {
	for _, c := range f.conns {
		_ = c.Close() // nothing is under way
	}
}
