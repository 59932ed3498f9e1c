package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"time"

	"github.com/catalogd/catalogd/bench/client"
	"github.com/catalogd/catalogd/bench/floor"
	"github.com/catalogd/catalogd/bench/measure"
)

// maxLoads bounds a client's requests in a round, whatever the time.
const maxLoads = 50_000

// What is wanted of loads, in each of their lines.
const (
	loadGoal     = "load all and refs, cache off: cost of the floor's"
	validateGoal = "load 304, cache off: cost of the floor's, which reads the pointer only"
)

// loads compares loadTable with the floor's one-row SELECT.
func (b *bench) loads(ctx context.Context) error {
	p, err := b.startFloor(ctx, "load-floor")
	if err != nil {
		return err
	}
	bare, err := b.startCatalogd(ctx, "catalogd, no cache", serverDatabase, "CATALOGD_CACHE_BYTES=-1")
	if err != nil {
		return err
	}
	l := &loadBench{
		bench: b, bare: bare,
		floor: &target{name: "floor", process: p, catalog: client.At(p.url, b.catalog.Prefix()), database: b.connections(floorDatabase)},
	}
	b.rep.title("load: the floor SELECTs pointer and document by primary key and writes the same bytes")
	for i, size := range b.scale.sizes {
		t, err := l.table(ctx, size)
		if err != nil {
			return err
		}
		if err := l.measure(ctx, t, i == len(b.scale.sizes)-1); err != nil {
			return err
		}
	}
	// They would look for jobs and hold connections while the next part is measured.
	return errors.Join(bare.process.stop(), p.stop())
}

type loadBench struct {
	*bench
	bare  *target // catalogd without a cache
	floor *target
}

// loadTable is a table of which both servers have the same bytes.
type loadTable struct {
	name      string
	snapshots int
	all, refs *client.Verifier
	floorETag string
	writer    *client.Writer
	shadow    *client.Writer // the floor's
}

// table makes a table through the server under test, one commit for each snapshot, as
// engines do, and gives the floor what the server answers.
func (l *loadBench) table(ctx context.Context, snapshots int) (*loadTable, error) {
	t := &loadTable{name: fmt.Sprintf("load_%d", snapshots), snapshots: snapshots}
	var err error
	if t.writer, err = client.NewWriter(ctx, l.catalog, namespace, t.name); err != nil {
		return nil, err
	}
	if err := t.writer.Fill(ctx, snapshots, 1); err != nil {
		return nil, err
	}
	conn := client.Dial(l.catalog.Address())
	defer conn.Close()
	all, verifier, err := t.writer.Load(ctx, conn, false)
	if err != nil {
		return nil, err
	}
	t.all = verifier
	refs, verifier, err := t.writer.Load(ctx, conn, true)
	if err != nil {
		return nil, err
	}
	t.refs = verifier
	if err := t.plainIsSame(ctx, conn); err != nil {
		return nil, err
	}
	return t, l.shadow(ctx, t, all, refs)
}

// plainIsSame checks that a client without gzip reads the same, under the same ETag.
func (t *loadTable) plainIsSame(ctx context.Context, conn *client.Conn) error {
	reply, err := conn.Do(ctx, t.writer.LoadRequest(false, map[string]string{"Accept-Encoding": "identity"}))
	if err != nil {
		return err
	}
	if reply.Gzip {
		return errors.New("the answer is compressed although the client does not take gzip")
	}
	if err := t.all.Check(reply); err != nil {
		return fmt.Errorf("load %s without gzip: %w", t.name, err)
	}
	return nil
}

// shadow stores the answers in the floor and checks that it gives them back.
func (l *loadBench) shadow(ctx context.Context, t *loadTable, all, refs client.Reply) error {
	answer, err := all.Table()
	if err != nil {
		return err
	}
	row := floor.Row{Namespace: namespace, Table: t.name, Location: answer.MetadataLocation, Document: all.Body, Refs: refs.Body}
	if err := floor.Seed(ctx, l.floorPool, row); err != nil {
		return err
	}
	t.shadow = client.WriterOf(l.floor.catalog, namespace, t.name, "")
	conn := client.Dial(l.floor.catalog.Address())
	defer conn.Close()
	for _, refsOnly := range []bool{false, true} {
		got, err := conn.Do(ctx, t.shadow.LoadRequest(refsOnly, nil))
		if err != nil {
			return err
		}
		want := all
		if refsOnly {
			want = refs
		}
		if got.Status != http.StatusOK || !bytes.Equal(got.Body, want.Body) {
			return fmt.Errorf("the floor answers %d with other bytes than it was given", got.Status)
		}
		t.floorETag = got.ETag
	}
	return nil
}

// shape is a kind of load.
type shape struct {
	what     string
	refsOnly bool
	validate bool
	time     time.Duration
}

// measure runs the shapes of one table. All of them are of interest only where their
// costs differ most, at the largest table.
func (l *loadBench) measure(ctx context.Context, t *loadTable, largest bool) error {
	full := l.scale.loadTime
	shapes := []shape{{what: "all", time: full}}
	if largest {
		shapes = append(shapes, shape{what: "refs", refsOnly: true, time: full / 2}, shape{what: "304", validate: true, time: full / 2})
	}
	for _, s := range shapes {
		for _, clients := range l.scale.clients {
			if err := l.contest(ctx, t, s, clients); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *loadBench) contest(ctx context.Context, t *loadTable, s shape, clients int) error {
	v := t.all
	if s.refsOnly {
		v = t.refs
	}
	floors := v.WithETag(t.floorETag)
	lanes := []lane{
		{target: l.bare, writer: t.writer.On(l.bare.catalog, namespace), verifier: v},
		{target: l.subject(), writer: t.writer, verifier: v},
		{target: l.floor, writer: t.shadow, verifier: floors},
	}
	if s.what == "all" {
		held := *l.floor
		held.name = "floor, bytes held"
		lanes = append(lanes, lane{target: &held, writer: t.shadow, verifier: floors, header: map[string]string{floor.HeldHeader: "1"}})
	}
	plan := measure.Plan{Rounds: l.scale.loadRounds, Limits: measure.Limits{Clients: clients, PerClient: maxLoads, Time: s.time}}
	series, err := race(ctx, plan, s, lanes)
	if err != nil {
		return err
	}
	what := fmt.Sprintf("load %s, %d snapshots", s.what, t.snapshots)
	goal := loadGoal
	if s.validate {
		goal = validateGoal
	}
	c := compare(what, clients, series[0], series[2]).within(goal, 2)
	c.Bytes = v.Bytes()
	l.rep.add(c)
	l.rep.add(compare(what, clients, series[1], series[len(series)-1]))
	return nil
}

// lane is one server in a contest of loads.
type lane struct {
	target   *target
	writer   *client.Writer
	verifier *client.Verifier
	header   map[string]string
	bare304  bool // its 304 has no ETag
}

// race lets servers answer the same kind of load by turns.
func race(ctx context.Context, plan measure.Plan, s shape, lanes []lane) ([]measure.Series, error) {
	contenders := make([]measure.Contender, len(lanes))
	for i, l := range lanes {
		op, closeAll := l.op(s, plan.Limits.Clients)
		defer closeAll()
		contenders[i] = l.target.contender(op, nil)
	}
	return measure.Contest(ctx, plan, contenders...)
}

// op gives every client a connection of its own.
func (l lane) op(s shape, clients int) (op measure.Op, closeAll func()) {
	header := maps.Clone(l.header)
	verify := l.verifier.Check
	if s.validate {
		if header == nil {
			header = map[string]string{}
		}
		header["If-None-Match"] = l.verifier.ETag()
		verify = l.verifier.CheckNotModified
		if l.bare304 {
			verify = l.verifier.CheckBareNotModified
		}
	}
	request := l.writer.LoadRequest(s.refsOnly, header)
	conns := make([]*client.Conn, clients)
	for i := range conns {
		conns[i] = client.Dial(l.target.catalog.Address())
	}
	closeAll = func() {
		for _, c := range conns {
			_ = c.Close() // nothing is under way
		}
	}
	return func(ctx context.Context, client, _ int) (time.Duration, error) {
		reply, err := conns[client].Do(ctx, request)
		if err != nil {
			return 0, err
		}
		return reply.Elapsed, verify(reply)
	}, closeAll
}
