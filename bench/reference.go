package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/catalogd/catalogd/bench/client"
	"github.com/catalogd/catalogd/bench/measure"
)

const referenceName = "reference server"

// reference is Apache Iceberg's reference REST server on the same Postgres, started when
// it is first wanted. It is nil where it cannot run, with the reason in b.noJava.
func (b *bench) reference(ctx context.Context) *target {
	if b.java != nil || b.noJava != "" {
		return b.java
	}
	t, err := b.startReference(ctx)
	if err != nil {
		why, rest, more := strings.Cut(err.Error(), "\n")
		if more {
			b.rep.printf("%s\n", rest)
		}
		b.noJava = "the comparison with Apache's reference server, which needs java (17 or later) and mvn: " + why
		return nil
	}
	b.java = t
	return t
}

func (b *bench) startReference(ctx context.Context) (*target, error) {
	argv := b.javaCommand
	if argv == nil {
		var err error
		if argv, err = referenceCommand(ctx); err != nil {
			return nil, err
		}
	}
	port, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	env, err := b.referenceEnv(port)
	if err != nil {
		return nil, err
	}
	p, err := start(ctx, command{
		name: referenceName, path: argv[0], args: argv[1:], env: env, drop: "CATALOG_", url: "http://127.0.0.1:" + strconv.Itoa(port),
		log: filepath.Join(b.dir, "reference.log"),
	})
	if err != nil {
		return nil, err
	}
	b.stop.add(p.stop)
	if err := p.ready(ctx, "/v1/config"); err != nil {
		return nil, errors.Join(err, p.stop())
	}
	c, err := client.Open(ctx, p.url)
	if err != nil {
		return nil, err
	}
	return &target{name: referenceName, process: p, catalog: c, database: b.connections(referenceDatabase)}, c.CreateNamespace(ctx, namespace)
}

// referenceEnv is the server's configuration: each variable is a property of the catalog.
func (b *bench) referenceEnv(port int) ([]string, error) {
	database, err := b.databaseAt(referenceDatabase)
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(database)
	if err != nil {
		return nil, errors.New("the cluster's URL cannot be read")
	}
	warehouse := b.warehouse(referenceDatabase)
	if err := os.MkdirAll(warehouse, 0o755); err != nil {
		return nil, err
	}
	password, _ := u.User.Password()
	jdbc := url.URL{Scheme: "jdbc:" + "postgresql", Host: u.Host, Path: u.Path, RawQuery: u.RawQuery}
	return []string{
		"CATALOG_REST_PORT=" + strconv.Itoa(port), "CATALOG_WAREHOUSE=file://" + warehouse, "CATALOG_URI=" + jdbc.String(),
		"CATALOG_JDBC_USER=" + u.User.Username(), "CATALOG_JDBC_PASSWORD=" + password,
	}, nil
}

// freePort is one that nobody listens on. The server cannot be asked to choose.
func freePort(ctx context.Context) (int, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		return 0, errors.Join(err, l.Close())
	}
	n, err := strconv.Atoi(port)
	return n, errors.Join(err, l.Close())
}

// referenceShape is a load of a table that both servers have.
type referenceShape struct {
	shape
	size    int // snapshots
	clients int
	goal    check
	cpu     bool // the goal is about CPU time
}

// referenceShapes are the loads that are compared.
func (b *bench) referenceShapes() []referenceShape {
	all := shape{what: "all", time: b.scale.referenceTime}
	refs := shape{what: "refs", refsOnly: true, time: b.scale.referenceTime}
	same := shape{what: "304", validate: true, time: b.scale.referenceTime}
	small, large, huge := b.scale.referenceSizes[0], b.scale.referenceSizes[1], b.scale.referenceSizes[2]
	ahead := func(s shape, size int, limit float64) check {
		return check{measure: fmt.Sprintf("load %s, %d snapshots: times the reference server's speed", s.what, size), bound: atLeast(limit)}
	}
	cpu := check{
		measure: fmt.Sprintf("loads per server CPU-second, 8 clients, %d snapshots: times the reference server's", small), bound: atLeast(5),
	}
	shapes := []referenceShape{{shape: all, size: small, clients: mostClients, goal: cpu, cpu: true}}
	for _, clients := range b.scale.clients {
		shapes = append(shapes,
			referenceShape{shape: all, size: large, clients: clients, goal: ahead(all, large, 10)},
			referenceShape{shape: same, size: large, clients: clients, goal: ahead(same, large, 10)},
			referenceShape{shape: all, size: huge, clients: clients, goal: ahead(all, huge, 10)},
			referenceShape{shape: refs, size: huge, clients: clients, goal: ahead(refs, huge, 30)},
		)
	}
	return shapes
}

// mostClients is how many clients the targets speak of.
const mostClients = 8

// referenceLoads compares loads with the reference server's.
func (b *bench) referenceLoads(ctx context.Context) error {
	shapes := b.referenceShapes()
	java := b.reference(ctx)
	if java == nil {
		b.leaveShapes(shapes)
		return nil
	}
	b.rep.title("load: the same metadata files behind catalogd and Apache's reference server (Java, JDBC catalog on the same PostgreSQL)")
	tables := map[int]*referenceTable{}
	for _, size := range b.scale.referenceSizes {
		t, err := b.referenceTable(ctx, java, size)
		if err != nil {
			return fmt.Errorf("table of %d snapshots: %w", size, err)
		}
		tables[size] = t
	}
	for _, s := range shapes {
		if err := b.referenceContest(ctx, java, tables[s.size], s); err != nil {
			return fmt.Errorf("load %s, %d snapshots: %w", s.what, s.size, err)
		}
	}
	return nil
}

func (b *bench) leaveShapes(shapes []referenceShape) {
	var checks []check
	seen := map[string]bool{}
	for _, s := range shapes {
		if !seen[s.goal.measure] {
			checks = append(checks, s.goal)
		}
		seen[s.goal.measure] = true
	}
	b.rep.leave(b.noJava, checks...)
}

// referenceTable is one metadata file in two catalogs.
type referenceTable struct {
	writers [2]*client.Writer // ours, the reference server's
}

// snapshotsPerCommit keeps the making of large tables short.
const snapshotsPerCommit = 50

// referenceTable makes a table here and registers its file there: both serve the very
// same document.
func (b *bench) referenceTable(ctx context.Context, java *target, snapshots int) (*referenceTable, error) {
	name := fmt.Sprintf("reference_%d", snapshots)
	w, err := client.NewWriter(ctx, b.catalog, namespace, name)
	if err != nil {
		return nil, err
	}
	if err := w.Fill(ctx, snapshots, snapshotsPerCommit); err != nil {
		return nil, err
	}
	conn := client.Dial(b.catalog.Address())
	defer conn.Close()
	reply, _, err := w.Load(ctx, conn, false)
	if err != nil {
		return nil, err
	}
	ours, err := reply.Table()
	if err != nil {
		return nil, err
	}
	if err := java.catalog.Register(ctx, namespace, name, ours.MetadataLocation); err != nil {
		return nil, err
	}
	t := &referenceTable{writers: [2]*client.Writer{w, w.On(java.catalog, namespace)}}
	other := client.Dial(java.catalog.Address())
	defer other.Close()
	if reply, _, err = t.writers[1].Load(ctx, other, false); err != nil {
		return nil, err
	}
	theirs, err := reply.Table()
	if err == nil && (theirs.UUID != ours.UUID || theirs.Line != ours.Line || theirs.LastSequence != ours.LastSequence) {
		err = fmt.Errorf("the servers serve different tables: %s and %s", ours.UUID, theirs.UUID)
	}
	return t, err
}

func (b *bench) referenceContest(ctx context.Context, java *target, t *referenceTable, s referenceShape) error {
	header := map[string]string{}
	if s.validate {
		// The reference server's compression puts a suffix on its ETags that it does not
		// know again, so that it answers 304 to clients without gzip only.
		header["Accept-Encoding"] = "identity"
	}
	var lanes []lane
	for i, server := range []*target{b.subject(), java} {
		v, err := firstAnswer(ctx, server, t.writers[i], s.refsOnly, header)
		if err != nil {
			return fmt.Errorf("%s: %w", server.name, err)
		}
		lanes = append(lanes, lane{target: server, writer: t.writers[i], verifier: v, header: header, bare304: server == java})
	}
	limits := measure.Limits{Clients: s.clients, PerClient: maxLoads, Time: s.time}
	// Java compiles what it runs often: the first round of each kind does not count.
	warm := limits
	if s.cpu { // the very first
		warm.Time, warm.Total = b.scale.warmUp, b.scale.warmRequests
	}
	cold, err := race(ctx, measure.Plan{Rounds: 1, Limits: warm}, s.shape, lanes[1:])
	if err != nil {
		return err
	}
	if r := cold[0].Rounds[0]; r.Err != nil {
		return fmt.Errorf("%s: %w", java.name, r.Err)
	}
	series, err := race(ctx, measure.Plan{Rounds: b.scale.referenceRounds, Limits: limits}, s.shape, lanes)
	if err != nil {
		return err
	}
	line := compare(fmt.Sprintf("load %s, %d snapshots", s.what, s.size), s.clients, series[0], series[1])
	line.Bytes = lanes[0].verifier.Bytes()
	if s.cpu {
		line = line.want(s.goal.measure, 1/line.CPU, s.goal.bound)
	} else {
		line = line.ahead(s.goal.measure, s.goal.bound.limit)
	}
	b.rep.add(line)
	if s.cpu {
		b.rep.note("loads per CPU-second of the server's process: catalogd %.0f, reference server %.0f; CPU-ms of PostgreSQL per load, not counted in: %s and %s",
			line.Subject.PerCPUSecond(), line.Against.PerCPUSecond(), fine(line.Subject.Database), fine(line.Against.Database))
	}
	return nil
}

// firstAnswer reads an answer in full; the following must be like it.
func firstAnswer(ctx context.Context, t *target, w *client.Writer, refsOnly bool, header map[string]string) (*client.Verifier, error) {
	conn := client.Dial(t.catalog.Address())
	defer conn.Close()
	reply, err := conn.Do(ctx, w.LoadRequest(refsOnly, header))
	if err != nil {
		return nil, err
	}
	return client.NewVerifier(reply, w.Want(refsOnly))
}
