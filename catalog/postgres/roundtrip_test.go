package postgres_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/catalogd/catalogd/catalog"
	"github.com/catalogd/catalogd/catalog/postgres"
	"github.com/catalogd/catalogd/catalog/postgres/pgtest"
	"github.com/catalogd/catalogd/catalog/storetest"
	"github.com/catalogd/catalogd/jobs"
	mvpg "github.com/catalogd/catalogd/mv/postgres"
)

// counter counts round trips on the wire: each time the client writes after it has read.
type counter struct {
	trips atomic.Int64
}

type countedConn struct {
	net.Conn
	c *counter

	mu   sync.Mutex
	sent bool // written since the last read
}

func (c *countedConn) Write(p []byte) (int, error) {
	c.mu.Lock()
	if !c.sent {
		c.sent = true
		c.c.trips.Add(1)
	}
	c.mu.Unlock()
	return c.Conn.Write(p)
}

func (c *countedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.mu.Lock()
	if n > 0 {
		c.sent = false
	}
	c.mu.Unlock()
	return n, err
}

// memoryFiles is a file store that counts.
type memoryFiles struct {
	mu                    sync.Mutex
	files                 map[string][]byte
	writes, reads, checks int
}

var _ catalog.Files = (*memoryFiles)(nil)

func (m *memoryFiles) Write(_ context.Context, location string, data []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.writes++
	m.files[location] = data
	return nil
}

func (m *memoryFiles) Read(_ context.Context, location string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reads++
	return m.files[location], nil
}

func (m *memoryFiles) Exists(context.Context, string) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.checks++
	return true, nil
}

func (*memoryFiles) Remove(context.Context, string) error  { return nil }
func (*memoryFiles) Prepare(context.Context, string) error { return nil }

func (m *memoryFiles) counts() (writes, reads int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.writes, m.reads
}

// TestRoundTrips holds the promises of the design: a load is one round trip and reads no
// object; a commit reads once at most, writes one object, and needs few round trips.
func TestRoundTrips(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	wire := &counter{}
	cfg, err := pgxpool.ParseConfig(pgtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	cfg.MaxConns = 1
	dial := cfg.ConnConfig.DialFunc
	cfg.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		return &countedConn{Conn: conn, c: wire}, err
	}
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	queue, err := jobs.NewEnqueuer(pool, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	store := open(t, pool, jobs.NewHook(mvpg.New(pool), queue))
	files := &memoryFiles{files: map[string][]byte{}}
	for _, cached := range []bool{false, true} {
		t.Run(fmt.Sprintf("cache %v", cached), func(t *testing.T) {
			c := catalog.Config{Store: store, Files: files, CacheBytes: -1}
			if cached {
				c.CacheBytes = 1 << 20
			}
			s := catalog.NewService(c)
			ns := catalog.Namespace{fmt.Sprintf("ns_%v", cached)}
			if _, err := s.CreateNamespace(ctx, storetest.Warehouse, ns, nil); err != nil {
				t.Fatal(err)
			}
			id := catalog.TableIdent{Namespace: ns, Name: "t"}
			schema := json.RawMessage(`{"type":"struct","fields":[{"id":1,"name":"a","type":"long","required":false}]}`)
			if _, err := s.CreateTable(ctx, storetest.Warehouse, ns, catalog.CreateTableRequest{Name: "t", Schema: schema}); err != nil {
				t.Fatal(err)
			}
			load := func() {
				if _, err := s.LoadTable(ctx, storetest.Warehouse, id); err != nil {
					t.Fatal(err)
				}
			}
			n := 0
			commit := func() {
				n++
				update := json.RawMessage(fmt.Sprintf(`{"action":"set-properties","updates":{"n":"%d"}}`, n))
				if _, err := s.CommitTable(ctx, storetest.Warehouse, id, catalog.CommitRequest{Updates: []json.RawMessage{update}}); err != nil {
					t.Fatal(err)
				}
			}
			load() // statements are prepared once a connection
			commit()
			load()
			commit()
			measure := func(what string, op func(), wantTrips int64, wantWrites, wantReads int) {
				t.Helper()
				before := wire.trips.Load()
				writes, reads := files.counts()
				op()
				afterWrites, afterReads := files.counts()
				if got := wire.trips.Load() - before; got > wantTrips {
					t.Errorf("%s: %d round trips, want at most %d", what, got, wantTrips)
				}
				if got := afterWrites - writes; got != wantWrites {
					t.Errorf("%s: %d objects written, want %d", what, got, wantWrites)
				}
				if got := afterReads - reads; got != wantReads {
					t.Errorf("%s: %d objects read, want %d", what, got, wantReads)
				}
			}
			measure("load", load, 1, 0, 0)
			// One to load; then BEGIN, the batch with what the hook reads, COMMIT.
			measure("commit", commit, 4, 1, 0)
			measure("exists", func() { _ = s.TableExists(ctx, storetest.Warehouse, id) }, 1, 0, 0)
		})
	}
}

var _ postgres.Hook = (*jobs.Hook)(nil)
