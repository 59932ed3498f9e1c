package main

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/catalogd/catalogd/bench/client"
	"github.com/catalogd/catalogd/catalog/postgres/pgtest"
)

// benchClients work at the same time, each on a table of its own.
const benchClients = 8

// benchCatalog is a whole server in this process, for -cpuprofile: what it costs beside
// the load generator of bench. The database is not durable, so the times mean little.
func benchCatalog(b *testing.B) *client.Catalog {
	b.Helper()
	cfg := defaults()
	cfg.DatabaseURL, cfg.Warehouse = pgtest.Pool(b).Config().ConnString(), b.TempDir()
	cfg.Listen, cfg.EngineSpillDir = "127.0.0.1:0", b.TempDir()
	ctx, stop := context.WithCancel(context.WithoutCancel(b.Context()))
	s, err := newServer(ctx, cfg, slog.New(slog.DiscardHandler), "")
	if err != nil {
		stop()
		b.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.serve(ctx) }()
	b.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			b.Error(err)
		}
	})
	c, err := client.Open(b.Context(), s.address())
	if err != nil {
		b.Fatal(err)
	}
	if err := c.CreateNamespace(b.Context(), "bench"); err != nil {
		b.Fatal(err)
	}
	return c
}

// together shares b.N operations among the clients.
func together(b *testing.B, op func(client int) error) {
	b.Helper()
	var (
		next atomic.Int64
		wg   sync.WaitGroup
	)
	b.ResetTimer()
	for i := range benchClients {
		wg.Go(func() {
			for next.Add(1) <= int64(b.N) {
				if err := op(i); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// snapshotsOfTable is how far a table grows before a client begins another one.
const snapshotsOfTable = 100

// BenchmarkCommit appends snapshots over HTTP.
func BenchmarkCommit(b *testing.B) {
	c := benchCatalog(b)
	var tables atomic.Int64
	writers := make([]*client.Writer, benchClients)
	conns := make([]*client.Conn, benchClients)
	for i := range conns {
		conns[i] = client.Dial(c.Address())
		defer conns[i].Close()
	}
	together(b, func(i int) error {
		if writers[i] == nil || writers[i].Want(false).Snapshots >= snapshotsOfTable {
			w, err := client.NewWriter(b.Context(), c, "bench", fmt.Sprintf("t%d", tables.Add(1)))
			if err != nil {
				return err
			}
			writers[i] = w
		}
		_, err := writers[i].Append(b.Context(), conns[i])
		return err
	})
}

// BenchmarkLoad loads a table over HTTP.
func BenchmarkLoad(b *testing.B) {
	c := benchCatalog(b)
	w, err := client.NewWriter(b.Context(), c, "bench", "t")
	if err != nil {
		b.Fatal(err)
	}
	if err := w.Fill(b.Context(), snapshotsOfTable, snapshotsOfTable); err != nil {
		b.Fatal(err)
	}
	conns := make([]*client.Conn, benchClients)
	for i := range conns {
		conns[i] = client.Dial(c.Address())
		defer conns[i].Close()
	}
	_, v, err := w.Load(b.Context(), conns[0], false)
	if err != nil {
		b.Fatal(err)
	}
	request := w.LoadRequest(false, nil)
	together(b, func(i int) error {
		reply, err := conns[i].Do(b.Context(), request)
		if err != nil {
			return err
		}
		return v.Check(reply)
	})
}
