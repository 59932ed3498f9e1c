package postgres

import (
	"context"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/catalogd/catalogd/catalog"
)

// addReportsSQL finds the tables by their names and leaves out reports of others.
const addReportsSQL = `
INSERT INTO metrics_report (object_uuid, report_type, snapshot_id, received_at, report)
SELECT t.object_uuid, r.report_type, r.snapshot_id, r.received_at, r.report
  FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::timestamptz[], $7::text[]) WITH ORDINALITY
       AS r (catalog_name, table_namespace, table_name, report_type, snapshot_id, received_at, report, n)
  JOIN iceberg_tables t USING (catalog_name, table_namespace, table_name)
 WHERE t.object_uuid IS NOT NULL AND coalesce(t.iceberg_type, 'TABLE') = 'TABLE'
 ORDER BY r.n`

// AddReports implements [catalog.ReportStore].
func (s *Store) AddReports(ctx context.Context, reports []catalog.Report) error {
	var (
		warehouses, namespaces, names, types, bodies []string
		snapshots                                    []*int64
		times                                        []time.Time
	)
	for _, r := range reports {
		body, typ := string(r.Body), r.Type
		if !storable(body) || !storable(typ) {
			continue // it would take the whole batch with it
		}
		warehouses, namespaces, names = append(warehouses, r.Warehouse), append(namespaces, catalog.EncodeNamespace(r.Ident.Namespace)), append(names, r.Ident.Name)
		types, bodies, snapshots, times = append(types, typ), append(bodies, body), append(snapshots, r.SnapshotID), append(times, r.ReceivedAt)
	}
	_, err := s.pool.Exec(ctx, addReportsSQL, warehouses, namespaces, names, types, snapshots, times, bodies)
	return translate(err)
}

func storable(text string) bool { return utf8.ValidString(text) && !strings.ContainsRune(text, 0) }

const reportsSQL = `
SELECT report_id, report_type, snapshot_id, received_at, report FROM metrics_report
 WHERE object_uuid = $1 AND report_id < $2 AND ($3 = '' OR report_type = $3)
   AND ($4::timestamptz IS NULL OR received_at >= $4) AND ($5::timestamptz IS NULL OR received_at < $5)
 ORDER BY report_id DESC LIMIT $6`

// Reports implements [catalog.ReportStore].
func (s *Store) Reports(ctx context.Context, warehouse string, id catalog.TableIdent, p catalog.ReportPage) (catalog.Page[catalog.Report], error) {
	var page catalog.Page[catalog.Report]
	l, err := s.Load(ctx, warehouse, id, catalog.TypeTable, catalog.NoDocument)
	if err != nil {
		return page, err
	}
	before := int64(1<<63 - 1)
	if p.After != "" {
		if before, err = strconv.ParseInt(p.After, 10, 64); err != nil {
			return page, catalog.Errorf(catalog.KindInvalid, "the page token does not belong to this listing")
		}
	}
	var limit any
	if p.Size > 0 {
		limit = p.Size + 1
	}
	rows, err := s.pool.Query(ctx, reportsSQL, null(l.Pointer.UUID), before, p.Type, moment(p.Since), moment(p.Until), limit)
	if err != nil {
		return page, translate(err)
	}
	page.Items, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (catalog.Report, error) {
		r := catalog.Report{Warehouse: l.Pointer.Warehouse, Ident: id}
		var body string
		err := row.Scan(&r.ID, &r.Type, &r.SnapshotID, &r.ReceivedAt, &body)
		r.Body = []byte(body)
		return r, err
	})
	if err != nil {
		return page, translate(err)
	}
	if p.Size > 0 && len(page.Items) > p.Size {
		page.Items = page.Items[:p.Size]
		page.Next = strconv.FormatInt(page.Items[p.Size-1].ID, 10)
	}
	return page, nil
}

func moment(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t
}

const (
	// keepReports is how many of a table's newest reports stay.
	keepReports = 1000
	// keepReportsFor is how long a report stays.
	keepReportsFor = 30 * 24 * time.Hour
	reportsBatch   = 5000
)

// pruneReportsSQL deletes a batch of reports that are too old, or of tables that are gone.
const pruneReportsSQL = `
DELETE FROM metrics_report WHERE report_id IN (
       SELECT r.report_id FROM metrics_report r
        WHERE r.received_at < clock_timestamp() - $1::interval
           OR NOT EXISTS (SELECT FROM iceberg_tables t WHERE t.object_uuid = r.object_uuid)
          AND NOT EXISTS (SELECT FROM dropped_object d WHERE d.object_uuid = r.object_uuid)
        LIMIT $2)`

// excessReportsSQL deletes all but the newest reports of each table that has too many.
const excessReportsSQL = `
DELETE FROM metrics_report r
 USING (SELECT object_uuid FROM metrics_report GROUP BY object_uuid HAVING count(*) > $1) many,
       LATERAL (SELECT k.report_id FROM metrics_report k WHERE k.object_uuid = many.object_uuid
                 ORDER BY k.report_id DESC OFFSET $1 - 1 LIMIT 1) oldest
 WHERE r.object_uuid = many.object_uuid AND r.report_id < oldest.report_id`

// PruneReports deletes the reports that are too old or too many for their table, and
// those of tables that are gone.
func (s *Store) PruneReports(ctx context.Context) error {
	for {
		tag, err := s.pool.Exec(ctx, pruneReportsSQL, keepReportsFor, reportsBatch)
		if err != nil {
			return translate(err)
		}
		if tag.RowsAffected() < reportsBatch {
			break
		}
	}
	_, err := s.pool.Exec(ctx, excessReportsSQL, keepReports)
	return translate(err)
}
