package jobs

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
)

// Enqueuer inserts refresh jobs and works none, so that the commit path needs neither
// workers nor a [Client].
type Enqueuer struct {
	river *river.Client[pgx.Tx]
}

// NewEnqueuer returns an Enqueuer whose jobs become visible with their transaction.
func NewEnqueuer(pool *pgxpool.Pool, log *slog.Logger) (*Enqueuer, error) {
	// The cooldown is also how often inserting may notify. NOTIFY takes a lock that all
	// committing transactions of the database share, so commits do without.
	const silence = 24 * time.Hour
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{
		Logger: quiet(log), FetchCooldown: silence, FetchPollInterval: silence,
	})
	if err != nil {
		return nil, err
	}
	return &Enqueuer{river: client}, nil
}

// Enqueue makes sure that every view has a job once tx is committed. The caller holds
// the views' registry rows, see package mv/postgres.
func (e *Enqueuer) Enqueue(ctx context.Context, tx pgx.Tx, viewUUIDs []string) error {
	return enqueue(ctx, e.river, tx, viewUUIDs)
}

func enqueue(ctx context.Context, client *river.Client[pgx.Tx], tx pgx.Tx, viewUUIDs []string) error {
	if len(viewUUIDs) == 0 {
		return nil
	}
	// Unique jobs conflict row by row: everybody inserts them in the same order.
	ids := slices.Sorted(slices.Values(viewUUIDs))
	params := make([]river.InsertManyParams, 0, len(ids))
	for _, id := range slices.Compact(ids) {
		params = append(params, river.InsertManyParams{Args: RefreshArgs{ViewID: id}})
	}
	_, err := client.InsertManyTx(ctx, tx, params)
	return err
}
