package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/catalogd/catalogd/bench/client"
	"github.com/catalogd/catalogd/bench/measure"
)

const (
	listGoal  = "list: first page of many tables, times the first page of few"
	listPage  = 100 // names on a page
	listSmall = 100 // tables of the small namespace
)

// lists compares the first page of a large namespace with that of a small one: both have
// as many names, so that the cost of finding them is what differs.
func (b *bench) lists(ctx context.Context) error {
	u, err := b.databaseAt(serverDatabase)
	if err != nil {
		return err
	}
	pool, err := pgxpool.New(ctx, u)
	if err != nil {
		return err
	}
	defer pool.Close()
	sizes := []int{b.scale.listTables, listSmall}
	for _, n := range sizes {
		if err := b.manyTables(ctx, pool, n); err != nil {
			return err
		}
	}
	if _, err := pool.Exec(ctx, `VACUUM ANALYZE iceberg_tables`); err != nil {
		return err
	}
	b.rep.title(fmt.Sprintf("list: the first %d of %d tables against the first %d of %d, on the same server", listPage, sizes[0], listPage, sizes[1]))
	for _, clients := range b.scale.clients {
		if err := b.listContest(ctx, sizes, clients, listPage); err != nil {
			return err
		}
	}
	// Java leaves the size to the server: the first page of a large namespace has more names.
	return b.listContest(ctx, sizes, 1, 0)
}

func listNamespace(tables int) string { return fmt.Sprintf("list_%d", tables) }

func listName(i int) string { return fmt.Sprintf("table_%06d", i) }

// manyTables fills a namespace as another catalog implementation would, with the columns
// that all of them know: making so many through the server would take minutes.
func (b *bench) manyTables(ctx context.Context, pool *pgxpool.Pool, n int) error {
	if err := b.catalog.CreateNamespace(ctx, listNamespace(n)); err != nil {
		return err
	}
	_, err := pool.Exec(ctx, `
		INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name, metadata_location, iceberg_type)
		SELECT $1, $2, 'table_' || lpad(i::text, 6, '0'), 'file:///none/' || i || '.metadata.json', 'TABLE'
		  FROM generate_series(0, $3 - 1) AS i`, b.catalog.Prefix(), listNamespace(n), n)
	return err
}

// listContest compares first pages of that size; 0 leaves it to the server.
func (b *bench) listContest(ctx context.Context, sizes []int, clients, page int) error {
	contenders := make([]measure.Contender, len(sizes))
	var counts [2]int
	for i, n := range sizes {
		conns := make([]*client.Conn, clients)
		for j := range conns {
			conns[j] = client.Dial(b.catalog.Address())
			defer conns[j].Close()
		}
		path := b.catalog.TablesPath(listNamespace(n)) + "?pageToken="
		if page > 0 {
			path += fmt.Sprintf("&pageSize=%d", page)
		}
		request := client.NewRequest(b.catalog.Address(), http.MethodGet, path, nil, nil)
		want, err := firstNames(ctx, conns[0], request, n, page)
		if err != nil {
			return err
		}
		counts[i] = len(want)
		server := b.subject()
		server.name = fmt.Sprintf("of %d tables", n)
		contenders[i] = server.contender(func(ctx context.Context, i, _ int) (time.Duration, error) {
			reply, err := conns[i].Do(ctx, request)
			if err != nil {
				return 0, err
			}
			return reply.Elapsed, reply.CheckFirstPage(want, n > len(want))
		}, nil)
	}
	plan := measure.Plan{Rounds: b.scale.loadRounds, Limits: measure.Limits{Clients: clients, PerClient: maxLoads, Time: b.scale.loadTime}}
	series, err := measure.Contest(ctx, plan, contenders...)
	if err != nil {
		return err
	}
	if page == 0 {
		b.rep.add(compare(fmt.Sprintf("first page, %d and %d names", counts[0], counts[1]), clients, series[0], series[1]))
		return nil
	}
	b.rep.add(compare("first page", clients, series[0], series[1]).within(listGoal, 2))
	return nil
}

// firstNames is what the first page has to hold: as many names as were asked for, or as
// the server chooses to send.
func firstNames(ctx context.Context, conn *client.Conn, request client.Request, tables, page int) ([]string, error) {
	count := min(page, tables)
	if page == 0 {
		reply, err := conn.Do(ctx, request)
		if err != nil {
			return nil, err
		}
		names, _, err := reply.Names()
		if err != nil {
			return nil, err
		}
		count = len(names)
	}
	want := make([]string, count)
	for i := range want {
		want[i] = listName(i)
	}
	return want, nil
}
