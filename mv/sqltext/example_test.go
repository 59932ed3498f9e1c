package sqltext_test

import (
	"fmt"

	"github.com/catalogd/catalogd/mv/sqltext"
)

// A query is parsed, proved bucket-closed, and restricted to the day that a change touched.
func Example() {
	q, err := sqltext.Parse(sqltext.DuckDB, "SELECT date_trunc('day', ts) AS day, count(*) FROM ns.trades GROUP BY day")
	if err != nil {
		fmt.Println(err)
		return
	}
	columns := func(sqltext.TableRef) []sqltext.Column { return []sqltext.Column{{Name: "ts", Type: "timestamp"}} }
	proofs, reason := sqltext.Closed(q, sqltext.Options{Columns: columns, TimeZone: "UTC", OneSource: true})
	if reason != nil {
		fmt.Println(reason)
		return
	}
	p := proofs[0]
	changed := p.Bucket.Cover(1704103200_000000, 1704106800_000000) // 10:00 to 11:00 on 2024-01-01
	where, err := sqltext.Predicate(q.Dialect, p.Drivers[0].Column, p.Drivers[0].Type, []sqltext.Interval{changed}, false)
	if err != nil {
		fmt.Println(err)
		return
	}
	text, err := sqltext.RewriteTables(q, []sqltext.Replacement{{Ref: p.Drivers[0].Ref.Index, Name: []string{"trades~1"}, Predicate: where}})
	fmt.Println(p.Bucket, "of", p.Drivers[0].Column)
	fmt.Println(text, err)
	// Output:
	// day of ts
	// SELECT date_trunc('day', ts) AS day, count(*) FROM (SELECT * FROM "trades~1" WHERE ("ts" >= TIMESTAMP '2024-01-01 00:00:00.000000' AND "ts" < TIMESTAMP '2024-01-02 00:00:00.000000')) AS "trades" GROUP BY day <nil>
}
