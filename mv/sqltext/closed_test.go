package sqltext_test

import (
	"slices"
	"testing"

	"github.com/catalogd/catalogd/mv/sqltext"
)

// tables of the named cases.
func namedColumns(ref sqltext.TableRef) []sqltext.Column {
	switch ref.Parts[len(ref.Parts)-1] {
	case "dim":
		return []sqltext.Column{{Name: "k", Type: "long"}, {Name: "label", Type: "string"}}
	case "unknown":
		return nil
	}
	return []sqltext.Column{
		{Name: "ts", Type: "timestamp"},
		{Name: "d", Type: "date"},
		{Name: "tz", Type: "timestamptz"},
		{Name: "ns", Type: "timestamp_ns"},
		{Name: "symbol", Type: "string"},
		{Name: "price", Type: "double"},
		{Name: "qty", Type: "long"},
		{Name: "k", Type: "long"},
	}
}

// closedCase says what Closed must answer. T numbers are those of the list of inputs on
// which incremental tools have been wrong.
type closedCase struct {
	name, text string
	dialect    sqltext.Dialect // default DuckDB
	many       bool            // allow several sources
	code       sqltext.Code    // expected reason, or
	output     int             // the best proof's output,
	bucket     string          // its bucket
	column     string          // and its driver's column
}

var closedCases = []closedCase{
	{name: "T17 bucket not in GROUP BY", text: "SELECT symbol, max(date_trunc('day', ts)), count(*) FROM t GROUP BY symbol", bucket: "identity", column: "symbol"},
	{name: "T17 no other bucket", text: "SELECT max(date_trunc('day', ts)) AS b, count(*) FROM t GROUP BY symbol", code: sqltext.CodeNoBucket},
	{name: "T18 date_trunc in WHERE only", text: "SELECT upper(symbol), count(*) FROM t WHERE date_trunc('day', ts) > DATE '2024-01-01' GROUP BY 1", code: sqltext.CodeNoBucket},
	{name: "T19 coarser key", text: "SELECT year(date_trunc('day', ts)) AS y, count(*) FROM t GROUP BY 1", code: sqltext.CodeNoBucket},
	{name: "T19 extract", text: "SELECT extract(month FROM date_trunc('day', ts)) AS m, count(*) FROM t GROUP BY 1", code: sqltext.CodeNoBucket},
	{name: "T19 trunc of trunc", text: "SELECT date_trunc('month', date_trunc('day', ts)) AS m, count(*) FROM t GROUP BY 1", bucket: "month", column: "ts"},
	{name: "T19 month of a week", text: "SELECT date_trunc('month', date_trunc('week', ts)) AS m, count(*) FROM t GROUP BY 1", code: sqltext.CodeNoBucket},
	{name: "T20 HAVING", text: "SELECT date_trunc('day', ts) AS b, count(*) FROM t GROUP BY 1 HAVING count(*) > 1", bucket: "day", column: "ts"},
	{name: "T21 LIMIT", text: "SELECT date_trunc('day', ts) AS b, count(*) FROM t GROUP BY 1 ORDER BY 2 LIMIT 3", code: sqltext.CodeLimit},
	{name: "T21 OFFSET", text: "SELECT d FROM t OFFSET 3", code: sqltext.CodeLimit},
	{name: "T21 FETCH", text: "SELECT d FROM t FETCH FIRST ROW ONLY", dialect: sqltext.Trino, code: sqltext.CodeLimit},
	{name: "T21 ORDER BY", text: "SELECT date_trunc('day', ts) AS b, count(*) FROM t GROUP BY 1 ORDER BY 2", bucket: "day", column: "ts"},
	{name: "T22 IN subquery", text: "SELECT date_trunc('day', ts) AS b, count(*) FROM t WHERE k IN (SELECT k FROM dim) GROUP BY 1", code: sqltext.CodeSubquery},
	{name: "T22 scalar subquery", text: "SELECT d, qty - (SELECT max(k) FROM dim) FROM t", code: sqltext.CodeSubquery},
	{name: "T23 now", text: "SELECT d, count(*) FROM t WHERE ts > now() - INTERVAL 7 DAY GROUP BY 1", code: sqltext.CodeNondeterministic},
	{name: "T23 current_date", text: "SELECT d FROM t WHERE d = current_date", code: sqltext.CodeNondeterministic},
	{name: "T23 string today", text: "SELECT d FROM t WHERE d = DATE 'today'", dialect: sqltext.Spark, code: sqltext.CodeNondeterministic},
	{name: "T23 age", text: "SELECT d FROM t WHERE age(ts) > INTERVAL 1 DAY", code: sqltext.CodeNondeterministic},
	{name: "T23 random", text: "SELECT d FROM t WHERE random() < 0.5", code: sqltext.CodeNondeterministic},
	{name: "T23 unknown function", text: "SELECT d FROM t WHERE my_udf(k)", code: sqltext.CodeUnknownFunction},
	{name: "T24 sample", text: "SELECT d FROM t TABLESAMPLE 10 PERCENT", code: sqltext.CodeSample},
	{name: "T24 using sample", text: "SELECT d FROM t USING SAMPLE 10 ROWS", code: sqltext.CodeOpaque},
	{name: "T25 time travel", text: "SELECT d FROM t FOR VERSION AS OF 1", dialect: sqltext.Trino, code: sqltext.CodeTimeTravel},
	{name: "T25 time travel, DuckDB", text: "SELECT d FROM t AT (VERSION => 1)", code: sqltext.CodeTimeTravel},
	{name: "T26 alias shadows a column", text: "SELECT upper(symbol) AS symbol FROM t GROUP BY symbol", code: sqltext.CodeNoBucket},
	{name: "T26 beside a bucket", text: "SELECT upper(symbol) AS symbol, date_trunc('day', ts) AS b FROM t GROUP BY symbol, b", bucket: "day", output: 1, column: "ts"},
	{name: "T26 the bucket's alias shadows", text: "SELECT date_trunc('day', ts) AS d FROM t GROUP BY d", code: sqltext.CodeShadowed},
	{name: "T26 finer key under the alias", text: "SELECT date_trunc('day', ts) AS ts, count(*) FROM t GROUP BY ts", bucket: "day", column: "ts"},
	{name: "T27 keys differ in a literal's case", text: "SELECT symbol = 'A', symbol = 'a', d, count(*) FROM t GROUP BY symbol = 'A', symbol = 'a', d", bucket: "identity", output: 2, column: "d"},
	{name: "T28 quoted mixed-case alias", text: `SELECT date_trunc('day', ts) AS "Day", count(*) FROM t GROUP BY "Day"`, bucket: "day", column: "ts"},

	{name: "ordinal", text: "SELECT count(*), date_trunc('week', ts) FROM t GROUP BY 2", bucket: "week", output: 1, column: "ts"},
	{name: "ordinal out of range", text: "SELECT date_trunc('week', ts), count(*) FROM t GROUP BY 3", code: sqltext.CodeNoBucket},
	{name: "constant key", text: "SELECT date_trunc('week', ts), count(*) FROM t GROUP BY '1'", code: sqltext.CodeNoBucket},
	{name: "unaliased", text: "SELECT date_trunc('day', ts), count(*) FROM t GROUP BY 1", bucket: "day", column: "ts"},
	{name: "qualified", text: "SELECT date_trunc('day', x.ts) AS b, count(*) FROM ns.t AS x GROUP BY date_trunc('day', TS)", bucket: "day", column: "ts"},
	{name: "qualified by namespace", text: "SELECT ns.t.d, count(*) FROM ns.t GROUP BY 1", code: sqltext.CodeQualified},
	{name: "renamed columns", text: "SELECT date_trunc('day', a) AS b FROM t AS x (a) GROUP BY 1", bucket: "day", column: "ts"},
	{name: "two granularities", text: "SELECT date_trunc('day', ts) AS x, date_trunc('hour', ts) AS y, count(*) FROM t GROUP BY 1, 2", bucket: "hour", output: 1, column: "ts"},
	{name: "GROUP BY ALL", text: "SELECT CAST(ts AS DATE) AS b, sum(qty) FROM t GROUP BY ALL", bucket: "date of day", column: "ts"},
	{name: "global aggregate", text: "SELECT count(*), max(d) FROM t", code: sqltext.CodeNoGroupBy},
	{name: "HAVING alone", text: "SELECT 1 FROM t HAVING count(*) > 1", code: sqltext.CodeNoGroupBy},
	{name: "rollup", text: "SELECT d, count(*) FROM t GROUP BY ROLLUP (d)", code: sqltext.CodeGroupingSets},
	{name: "with rollup", text: "SELECT d, count(*) FROM t GROUP BY d WITH ROLLUP", dialect: sqltext.Spark, code: sqltext.CodeGroupingSets},
	{name: "distinct", text: "SELECT DISTINCT d, price FROM t", bucket: "identity", column: "d"},
	{name: "distinct without bucket", text: "SELECT DISTINCT upper(symbol) FROM t", code: sqltext.CodeDistinct},
	{name: "distinct on", text: "SELECT DISTINCT ON (d) d, k FROM t", code: sqltext.CodeDistinctOn},
	{name: "float bucket", text: "SELECT price, count(*) FROM t GROUP BY 1", code: sqltext.CodeFloatBucket},
	{name: "nanoseconds are no buckets", text: "SELECT date_trunc('day', ns) AS b, count(*) FROM t GROUP BY 1", code: sqltext.CodeNoBucket},
	{name: "unit of a column", text: "SELECT date_trunc(symbol, ts) AS b, count(*) FROM t GROUP BY 1", code: sqltext.CodeNoBucket},
	{name: "timestamptz in UTC", text: "SELECT date_trunc('day', tz) AS b, count(*) FROM t GROUP BY 1", bucket: "day", column: "tz"},
	{name: "hidden column", text: "SELECT d, rowid FROM t", code: sqltext.CodeHiddenColumn},
	{name: "hidden column, Trino", text: `SELECT d, "$path" FROM t`, dialect: sqltext.Trino, code: sqltext.CodeHiddenColumn},
	{name: "file", text: "SELECT * FROM 'x.parquet'", code: sqltext.CodeFileSource},
	{name: "table function", text: "SELECT t.d FROM t, read_csv('x')", code: sqltext.CodeTableFunction},
	{name: "no table", text: "SELECT 1", code: sqltext.CodeNoSource},
	{name: "unknown columns", text: "SELECT d, count(*) FROM unknown GROUP BY d", code: sqltext.CodeUnknownColumns},
	{name: "opaque", text: "SELECT d FROM t PIVOT (sum(qty) FOR symbol IN ('a'))", code: sqltext.CodeOpaque},
	{name: "two sources", text: "SELECT d, label FROM t JOIN dim USING (k)", code: sqltext.CodeSeveralSources},
	{name: "Trino's GROUP BY takes no alias", text: "SELECT date_trunc('day', ts) AS b, count(*) FROM t GROUP BY b", dialect: sqltext.Trino, code: sqltext.CodeNoBucket},
	{name: "Spark unit", text: "SELECT date_trunc('MM', `ts`) AS b, count(*) FROM t GROUP BY b", dialect: sqltext.Spark, bucket: "month", column: "ts"},
	{name: "window", text: "SELECT d, sum(qty) OVER (PARTITION BY d ORDER BY ts) FROM t", bucket: "identity", column: "d"},
	{name: "running total", text: "SELECT d, sum(qty) OVER (ORDER BY ts) FROM t", code: sqltext.CodeWindow},
	{name: "named window", text: "SELECT d, sum(qty) OVER (w ORDER BY ts) FROM t WINDOW w AS (PARTITION BY symbol)", code: sqltext.CodeWindow},

	{name: "five-minute bars", text: "SELECT date_trunc('minute', ts) - (extract(minute FROM ts) % 5) * INTERVAL '1' MINUTE AS bar, count(*) FROM t GROUP BY 1", bucket: "every 300000000 µs", column: "ts"},
	{name: "five-minute bars, Trino", text: "SELECT date_trunc('minute', ts) - (minute(ts) % 5) * INTERVAL '1' MINUTE AS bar, count(*) FROM t GROUP BY 1", dialect: sqltext.Trino, bucket: "every 300000000 µs", column: "ts"},
	{name: "seven does not divide an hour", text: "SELECT date_trunc('minute', ts) - (minute(ts) % 7) * INTERVAL '1' MINUTE AS bar, count(*) FROM t GROUP BY 1", code: sqltext.CodeNoBucket},
	{name: "minutes of another column", text: "SELECT date_trunc('minute', ts) - (minute(tz) % 5) * INTERVAL '1' MINUTE AS bar, count(*) FROM t GROUP BY 1", code: sqltext.CodeNoBucket},
	{name: "steps of another unit", text: "SELECT date_trunc('minute', ts) - (minute(ts) % 5) * INTERVAL '1' SECOND AS bar, count(*) FROM t GROUP BY 1", code: sqltext.CodeNoBucket},
	{name: "time_bucket", text: "SELECT time_bucket(INTERVAL 2 MONTHS, ts) AS b, count(*) FROM t GROUP BY 1", bucket: "every 2 months", column: "ts"},
	{name: "time_bucket with an offset", text: "SELECT time_bucket(INTERVAL 2 HOURS, ts, INTERVAL 1 HOUR) AS b, count(*) FROM t GROUP BY 1", code: sqltext.CodeNoBucket},

	{name: "cte", text: "WITH f AS (SELECT * FROM t WHERE price > 0) SELECT date_trunc('day', ts) AS b, count(*) FROM f GROUP BY 1", bucket: "day", column: "ts"},
	{name: "cte twice", many: true, text: "WITH f AS (SELECT * FROM t) SELECT a.d, count(*) FROM f a JOIN f b USING (k) GROUP BY a.d", code: sqltext.CodeSelfJoin},
	{name: "recursive", text: "WITH RECURSIVE r AS (SELECT d FROM t UNION ALL SELECT d FROM r) SELECT d FROM r", code: sqltext.CodeRecursive},
	{name: "join", many: true, text: "SELECT date_trunc('day', ts) AS b, label, count(*) FROM t JOIN dim USING (k) GROUP BY ALL", bucket: "day", column: "ts"},
	{name: "outer join", many: true, text: "SELECT date_trunc('day', ts) AS b, count(*) FROM dim LEFT JOIN t USING (k) GROUP BY ALL", code: sqltext.CodeOuterJoin},
	{name: "union all", many: true, text: "SELECT d, k FROM t UNION ALL SELECT d, k FROM t2", bucket: "identity", column: "d"},
	{name: "union of other columns", many: true, text: "SELECT d FROM t UNION ALL SELECT CAST(ts AS DATE) FROM t2", code: sqltext.CodeSetOperation},
	{name: "dimension by order", many: true, text: "SELECT d, v FROM t JOIN (SELECT k, first(label) AS v FROM dim GROUP BY k) x USING (k)", code: sqltext.CodeNondeterministic},
	{name: "limit in a subquery", many: true, text: "SELECT d FROM t WHERE k IN (SELECT k FROM dim LIMIT 1)", code: sqltext.CodeLimit},
	{name: "subquery reads the driver", many: true, text: "WITH f AS (SELECT d, k FROM t) SELECT d FROM f WHERE k = (SELECT max(k) FROM f)", code: sqltext.CodeSubquery},
}

func TestClosed(t *testing.T) {
	t.Parallel()
	for _, c := range closedCases {
		d := c.dialect
		if d == "" {
			d = sqltext.DuckDB
		}
		q := parse(t, d, c.text)
		proofs, reason := sqltext.Closed(q, sqltext.Options{Columns: namedColumns, TimeZone: "UTC", OneSource: !c.many})
		switch {
		case c.code != "" && (reason == nil || reason.Code != c.code):
			t.Errorf("%s: %s\nproofs %+v, reason %v, want %s", c.name, c.text, proofs, reason, c.code)
		case c.code != "" && reason.Msg == "":
			t.Errorf("%s: %s has no text", c.name, reason.Code)
		case c.code == "" && reason != nil:
			t.Errorf("%s: %s\nrefused: %v", c.name, c.text, reason)
		case c.code == "":
			p := proofs[0]
			if p.Output != c.output || p.Bucket.String() != c.bucket || p.Drivers[0].Column != c.column {
				t.Errorf("%s: %s\nproof %+v, want output %d, bucket %s of %s", c.name, c.text, p, c.output, c.bucket, c.column)
			}
		}
	}
}

func TestClosed_timeZone(t *testing.T) {
	t.Parallel()
	q := parse(t, sqltext.DuckDB, "SELECT date_trunc('day', tz) AS b, count(*) FROM t GROUP BY 1")
	for _, zone := range []string{"", "America/New_York"} {
		if _, reason := sqltext.Closed(q, sqltext.Options{Columns: namedColumns, TimeZone: zone}); reason == nil || reason.Code != sqltext.CodeZoneDependent {
			t.Errorf("zone %q: reason %v, want %s", zone, reason, sqltext.CodeZoneDependent)
		}
	}
	q = parse(t, sqltext.DuckDB, "SELECT tz, count(*) FROM t GROUP BY 1")
	if _, reason := sqltext.Closed(q, sqltext.Options{Columns: namedColumns}); reason != nil {
		t.Errorf("identity of an instant: %v", reason)
	}
}

func TestClosed_fixed(t *testing.T) {
	t.Parallel()
	q := parse(t, sqltext.DuckDB, "SELECT t.d, label, x.n FROM t JOIN dim USING (k), (SELECT count(*) AS n FROM t) x WHERE t.k IN (SELECT k FROM dim)")
	proofs, reason := sqltext.Closed(q, sqltext.Options{Columns: namedColumns, TimeZone: "UTC"})
	if reason != nil {
		t.Fatal(reason)
	}
	i := slices.IndexFunc(proofs, func(p sqltext.Proof) bool { return p.Name == "d" })
	if i < 0 {
		t.Fatalf("no proof of d in %+v", proofs)
	}
	p := proofs[i]
	if p.Covers() || len(p.Drivers) != 1 || p.Drivers[0].Ref.Index != 0 || len(p.Fixed) != 3 {
		t.Errorf("proof %+v, want reference 0 to drive and the other three to be fixed", p)
	}
}
