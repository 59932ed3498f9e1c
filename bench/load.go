package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/catalogd/catalogd/bench/client"
	"github.com/catalogd/catalogd/bench/floor"
	"github.com/catalogd/catalogd/bench/measure"
)

// maxLoads bounds a client's requests in a round, whatever the time.
const maxLoads = 50_000

// loads compares loadTable with the floor's one-row SELECT.
func (b *bench) loads(ctx context.Context) error {
	p, err := b.startFloor(ctx, "load-floor")
	if err != nil {
		return err
	}
	l := &loadBench{
		bench: b, floor: p, floorCatalog: client.At(p.url, b.catalog.Prefix()), floorDatabase: b.connections(floorDatabase),
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
	return nil
}

type loadBench struct {
	*bench
	floor         *process
	floorCatalog  *client.Catalog
	floorDatabase measure.Meter
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
	conn := client.Dial(l.catalog.Address())
	defer conn.Close()
	for range snapshots {
		if _, err := t.writer.Append(ctx, conn); err != nil {
			return nil, err
		}
	}
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
	t.shadow = client.WriterOf(l.floorCatalog, namespace, t.name, "")
	conn := client.Dial(l.floorCatalog.Address())
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
	requests := []*loadRequest{
		{name: "catalogd", writer: t.writer, etag: v.ETag(), address: l.catalog.Address()},
		{name: "floor", writer: t.shadow, etag: t.floorETag, address: l.floorCatalog.Address()},
	}
	if s.what == "all" {
		requests = append(requests, &loadRequest{
			name: "floor, bytes held", writer: t.shadow, etag: t.floorETag, address: l.floorCatalog.Address(), header: map[string]string{floor.HeldHeader: "1"},
		})
	}
	contenders := make([]measure.Contender, len(requests))
	for i, r := range requests {
		op, closeAll := r.op(v, s, clients)
		defer closeAll()
		contenders[i] = measure.Contender{Name: r.name, Op: op, CPU: l.floor.cpu(), Database: l.floorDatabase}
		if i == 0 {
			contenders[i].CPU, contenders[i].Database = l.server.cpu(), l.database
		}
	}
	plan := measure.Plan{Rounds: l.scale.loadRounds, Limits: measure.Limits{Clients: clients, PerClient: maxLoads, Time: s.time}}
	series, err := measure.Contest(ctx, plan, contenders...)
	if err != nil {
		return err
	}
	what := fmt.Sprintf("load %s, %d snapshots", s.what, t.snapshots)
	c := compare(what, clients, series[0], series[1]).atMost(2)
	c.Bytes = v.Bytes()
	var more []comparison
	if len(series) > 2 {
		more = append(more, compare(what, clients, series[0], series[2]))
	}
	l.rep.add(c, more...)
	return nil
}

// loadRequest is a load of one server.
type loadRequest struct {
	name    string
	writer  *client.Writer
	etag    string
	address string
	header  map[string]string
}

// op gives every client a connection of its own.
func (r *loadRequest) op(v *client.Verifier, s shape, clients int) (op measure.Op, closeAll func()) {
	header := r.header
	if s.validate {
		header = map[string]string{"If-None-Match": r.etag}
	}
	request := r.writer.LoadRequest(s.refsOnly, header)
	verify := v.WithETag(r.etag).Check
	if s.validate {
		verify = v.WithETag(r.etag).CheckNotModified
	}
	conns := make([]*client.Conn, clients)
	for i := range conns {
		conns[i] = client.Dial(r.address)
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
