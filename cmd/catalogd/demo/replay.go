package demo

import (
	"context"
	"fmt"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/apache/iceberg-go/table/compaction"

	"github.com/catalogd/catalogd/cmd/catalogd/lake"
)

// minInputFiles is how many files of a day are worth a compaction.
const minInputFiles = 2

// replayer writes demo.flights as any Iceberg client would. Being its only writer, it goes
// on from the table that its last commit returned.
type replayer struct {
	table *table.Table
}

// newReplayer creates the table. It is partitioned by day, so that a late report lies in
// files of its own day and does not widen what has to be recomputed. Deletes are
// copy-on-write: iceberg-go rewrites files without minding older delete files.
func newReplayer(ctx context.Context, c *lake.Client) (*replayer, error) {
	spec := iceberg.NewPartitionSpec(iceberg.PartitionField{
		SourceIDs: []int{1}, FieldID: 1000, Name: "scheduled_departure_day", Transform: iceberg.DayTransform{},
	})
	t, err := c.CreateTable(ctx, source, flightSchema, &spec, iceberg.Properties{
		"format-version": "2", table.WriteDeleteModeKey: table.WriteModeCopyOnWrite, table.ManifestMergeEnabledKey: "true",
	})
	if err != nil {
		return nil, fmt.Errorf("create %s: %w", source, err)
	}
	return &replayer{table: t}, nil
}

// apply commits one step.
func (r *replayer) apply(ctx context.Context, c commit) error {
	tx := r.table.NewTransaction()
	var err error
	switch c.kind {
	case compacted:
		err = r.compact(ctx, tx)
	case corrected:
		if err = tx.Delete(ctx, sameFlights(c.rows), nil); err == nil {
			err = r.append(ctx, tx, c.rows)
		}
	default:
		err = r.append(ctx, tx, c.rows)
	}
	if err == nil {
		r.table, err = tx.Commit(ctx)
	}
	if err != nil {
		return fmt.Errorf("commit %s to %s: %w", c, source, err)
	}
	return nil
}

func (r *replayer) append(ctx context.Context, tx *table.Transaction, flights []flight) error {
	rows, err := flightRows(flights)
	if err != nil {
		return err
	}
	defer rows.Release()
	return tx.AppendTable(ctx, rows, batchRows, nil)
}

// compact rewrites the days that are in several files.
func (r *replayer) compact(ctx context.Context, tx *table.Transaction) error {
	cfg := compaction.DefaultConfig()
	cfg.MinInputFiles = minInputFiles
	plan, err := compaction.Analyze(ctx, r.table, cfg)
	if err != nil {
		return err
	}
	groups := make([]table.CompactionTaskGroup, len(plan.Groups))
	for i, g := range plan.Groups {
		groups[i] = table.CompactionTaskGroup{PartitionKey: g.PartitionKey, Tasks: g.Tasks, TotalSizeBytes: g.TotalSizeBytes}
	}
	_, err = tx.RewriteDataFiles(ctx, groups, table.RewriteDataFilesOptions{})
	return err
}

// sameFlights matches the rows of flights, whatever else they say.
func sameFlights(flights []flight) iceberg.BooleanExpression {
	match := func(f flight) iceberg.BooleanExpression {
		return iceberg.NewAnd(
			iceberg.EqualTo(iceberg.Reference("scheduled_departure"), iceberg.Timestamp(f.departure)),
			iceberg.EqualTo(iceberg.Reference("carrier"), f.carrier),
			iceberg.EqualTo(iceberg.Reference("flight"), f.number))
	}
	them := match(flights[0])
	for _, f := range flights[1:] {
		them = iceberg.NewOr(them, match(f))
	}
	return them
}
