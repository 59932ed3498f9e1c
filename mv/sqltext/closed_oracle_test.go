package sqltext_test

import (
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/mv/sqltext"
)

// schemas are the tables of the property test. Values are few, so that groups, joins and
// duplicates happen, and NULLs are many.
var schemas = map[string][]sqltext.Column{
	"t": {
		{Name: "ts", Type: "timestamp"},
		{Name: "d", Type: "date"},
		{Name: "tz", Type: "timestamptz"},
		{Name: "s", Type: "string"},
		{Name: "p", Type: "double"},
		{Name: "q", Type: "long"},
		{Name: "k", Type: "long"},
	},
	"u": {
		{Name: "ts", Type: "timestamp"},
		{Name: "d", Type: "date"},
		{Name: "tz", Type: "timestamptz"},
		{Name: "s", Type: "string"},
		{Name: "p", Type: "double"},
		{Name: "q", Type: "long"},
		{Name: "k", Type: "long"},
	},
	"dim": {{Name: "k", Type: "long"}, {Name: "v", Type: "string"}, {Name: "day", Type: "date"}},
}

func schemaOf(ref sqltext.TableRef) []sqltext.Column {
	return schemas[strings.ToLower(ref.Parts[len(ref.Parts)-1])]
}

// fill puts new random rows into the tables.
func fill(t *testing.T, db *sql.DB, r *rand.Rand) {
	t.Helper()
	for name, cols := range schemas {
		var rows []string
		for range 3 + r.IntN(14) {
			var vals []string
			for _, c := range cols {
				vals = append(vals, randomValue(r, c.Type))
			}
			rows = append(rows, "("+strings.Join(vals, ", ")+")")
		}
		exec(t, db, "DELETE FROM "+name)
		exec(t, db, "INSERT INTO "+name+" VALUES "+strings.Join(rows, ", "))
	}
}

func randomValue(r *rand.Rand, typ string) string {
	if r.IntN(5) == 0 {
		return "NULL"
	}
	day := []string{"2024-01-28", "2024-01-31", "2024-02-01", "2024-02-29", "2024-03-01"}[r.IntN(5)] // months change within weeks
	clock := fmt.Sprintf(" %02d:%02d:00", []int{0, 1, 23}[r.IntN(3)], []int{0, 3, 7, 59}[r.IntN(4)])
	switch typ {
	case "timestamp":
		return "TIMESTAMP '" + day + clock + "'"
	case "timestamptz":
		return "TIMESTAMPTZ '" + day + clock + "+00'"
	case "date":
		return "DATE '" + day + "'"
	case "string":
		return []string{"'a'", "'A'", "'b'", "''"}[r.IntN(4)]
	case "double":
		return []string{"0.5", "1.25", "-2", "8"}[r.IntN(4)]
	}
	return strconv.Itoa(r.IntN(4))
}

func exec(t *testing.T, db *sql.DB, query string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), query); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

func createTables(t *testing.T, db *sql.DB) {
	t.Helper()
	types := map[string]string{"timestamp": "TIMESTAMP", "timestamptz": "TIMESTAMPTZ", "date": "DATE", "string": "VARCHAR", "double": "DOUBLE", "long": "BIGINT"}
	for name, cols := range schemas {
		var defs []string
		for _, c := range cols {
			defs = append(defs, c.Name+" "+types[c.Type])
		}
		exec(t, db, "CREATE TABLE "+name+" ("+strings.Join(defs, ", ")+")")
	}
}

// queryBag returns the rows of a query as sorted text.
func queryBag(t *testing.T, db *sql.DB, query string) ([]string, int, error) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query)
	if err != nil {
		return nil, 0, err
	}
	defer rows.Close()
	cols, err := rows.Columns()
	if err != nil {
		return nil, 0, err
	}
	var out []string
	for rows.Next() {
		vals := make([]any, len(cols))
		for i := range vals {
			vals[i] = new(any)
		}
		if err := rows.Scan(vals...); err != nil {
			return nil, 0, err
		}
		var b strings.Builder
		for _, v := range vals {
			fmt.Fprintf(&b, "%v|", *v.(*any))
		}
		out = append(out, b.String())
	}
	slices.Sort(out)
	return out, len(cols), rows.Err()
}

// written are queries of every shape for the property test.
var written = []string{
	"SELECT date_trunc('day', ts) AS b, count(*), sum(q), max(p) FROM t GROUP BY 1",
	"SELECT date_trunc('day', ts) AS ts, count(*) FROM t GROUP BY ts",
	"SELECT date_trunc('day', ts) AS bucket, count(*) FROM t GROUP BY bucket",
	"SELECT date_trunc('hour', ts) h, date_trunc('month', ts) m, count(*) FROM t GROUP BY ALL",
	"SELECT upper(s) AS s, count(*) FROM t GROUP BY s",
	"SELECT s = 'a' AS x, s = 'A' AS y, s, count(*) FROM t GROUP BY 1, 2, 3",
	"SELECT d, s, count(*) FROM t GROUP BY d, ROLLUP (s)",
	"SELECT d, s, count(*) FROM t GROUP BY ROLLUP (d, s)",
	"SELECT d, s, count(*) FROM t GROUP BY GROUPING SETS ((d, s), (d))",
	"SELECT tz::DATE AS b, count(DISTINCT k) FROM t GROUP BY 1 HAVING count(*) > 1",
	"SELECT date_trunc('week', d) AS w, min(ts) FROM t WHERE q > 0 OR s IS NULL GROUP BY w",
	"SELECT date_trunc('month', date_trunc('week', d)) AS m, count(*) FROM t GROUP BY 1",
	"SELECT date_trunc('week', ts) AS w, date_trunc('month', w) AS m, count(*) FROM t GROUP BY w",
	"SELECT max(date_trunc('day', ts)) AS b, s, count(*) FROM t GROUP BY s",
	"SELECT year(ts) AS y, count(*) FROM t GROUP BY 1",
	"SELECT date_trunc('month', h) AS m, sum(n) FROM (SELECT date_trunc('hour', ts) AS h, count(*) AS n FROM t GROUP BY 1) x GROUP BY 1",
	"WITH c AS (SELECT date_trunc('day', ts) AS b, s, sum(q) AS n FROM t GROUP BY ALL) SELECT b, max(n) FROM c GROUP BY b",
	"WITH c AS (SELECT * FROM t) SELECT a.d, count(*) FROM c a JOIN c b ON a.k = b.k GROUP BY 1",
	"WITH c AS (SELECT * FROM t) SELECT a.d, count(*) FROM c a JOIN c b ON a.k = b.k AND a.d = b.d GROUP BY 1",
	"SELECT a.d, b.s, count(*) FROM t a JOIN t b ON a.d = b.d GROUP BY ALL",
	"SELECT a.d, b.s, count(*) FROM t a LEFT JOIN u b ON a.d = b.d AND a.k = b.k GROUP BY ALL",
	"SELECT a.d, b.d AS e, count(*) FROM t a RIGHT JOIN u b ON a.d = b.d GROUP BY ALL",
	"SELECT a.d, b.d AS e, count(*) FROM t a FULL JOIN u b ON a.d = b.d GROUP BY ALL",
	"SELECT d, count(*) FROM t JOIN u USING (d) GROUP BY d",
	"SELECT d, count(*) FROM t LEFT JOIN u USING (d, k) GROUP BY d",
	"SELECT * FROM t JOIN dim USING (k)",
	"SELECT * FROM t NATURAL JOIN dim",
	"SELECT t.d, v, count(*) FROM t LEFT JOIN dim ON t.k = dim.k GROUP BY ALL",
	"SELECT t.d, v, count(*) FROM dim LEFT JOIN t ON t.k = dim.k GROUP BY ALL",
	"SELECT d, s FROM t SEMI JOIN u USING (d)",
	"SELECT d, s FROM t ANTI JOIN u ON t.d = u.d AND t.s = u.s",
	"SELECT d, s FROM t WHERE k IN (SELECT k FROM dim)",
	"SELECT d, s FROM t WHERE k NOT IN (SELECT k FROM dim WHERE k IS NOT NULL)",
	"SELECT d, s FROM t x WHERE EXISTS (SELECT 1 FROM t y WHERE y.k = x.k AND y.d <> x.d)",
	"SELECT d, count(*) - (SELECT count(*) FROM dim) FROM t GROUP BY d",
	"SELECT DISTINCT d, s FROM t",
	"SELECT DISTINCT date_trunc('day', ts), p FROM t",
	"SELECT DISTINCT p FROM t",
	"SELECT d, s, sum(q) OVER (PARTITION BY d, s) FROM t",
	"SELECT ts, d, sum(q) OVER (PARTITION BY s), count(*) OVER (PARTITION BY d) FROM t",
	"SELECT date_trunc('month', d) AS m, d, rank() OVER (PARTITION BY d ORDER BY q) FROM t",
	"SELECT d, date_trunc('month', d) AS m, rank() OVER (PARTITION BY date_trunc('month', d) ORDER BY q) FROM t",
	"SELECT d, s FROM t WINDOW w AS (PARTITION BY d) QUALIFY count(*) OVER w > 1",
	"SELECT d, s FROM t UNION ALL SELECT d, s FROM u",
	"SELECT d, s FROM t UNION SELECT d, s FROM u",
	"SELECT d, s FROM t EXCEPT SELECT d, s FROM u",
	"SELECT d, s FROM t INTERSECT ALL SELECT d, s FROM u",
	"SELECT d, s FROM t EXCEPT ALL SELECT day, v FROM dim",
	"SELECT date_trunc('day', ts), s FROM t UNION ALL SELECT d, s FROM u",
	"SELECT b, sum(n) FROM (SELECT date_trunc('day', ts) AS b, q AS n FROM t UNION ALL SELECT date_trunc('day', ts), k FROM u) x GROUP BY b",
	"SELECT b, n FROM (SELECT d, count(*) FROM t GROUP BY d) AS x (b, n) WHERE n > 1",
	"SELECT x AS b, count(*) FROM t, unnest([1, 2]) AS z (x) GROUP BY x",
	"SELECT d, x, count(*) FROM t, unnest([k, q]) AS z (x) GROUP BY d, x",
	"SELECT d, l.n FROM t, LATERAL (SELECT count(*) AS n FROM dim WHERE dim.k = t.k) l",
	"SELECT d AS e, date_trunc('month', e) AS m, count(*) FROM t GROUP BY ALL",
	"SELECT a.d, b.m FROM t a, (SELECT k, max(q) AS m FROM u GROUP BY k) b WHERE a.k = b.k",
	"SELECT dim.day, a.d, count(*) FROM t a JOIN dim ON a.d = dim.day GROUP BY ALL",
	"SELECT CAST(d AS TIMESTAMP) AS b, count(*) FROM t GROUP BY 1",
	"SELECT CAST(ts AS DATE) AS b, CAST(date_trunc('month', ts) AS DATE) AS m, count(*) FROM t GROUP BY ALL",
	"SELECT date_trunc('hour', CAST(ts AS DATE)) AS b, count(*) FROM t GROUP BY ALL",
	"SELECT s, q, k, count(*) FROM t GROUP BY s, q, k ORDER BY 1",
	"SELECT time_bucket(INTERVAL 5 MINUTE, ts) AS b, count(*) FROM t GROUP BY 1",
	"SELECT time_bucket(INTERVAL '7 hours', ts) AS b, count(*) FROM t GROUP BY 1",
	"SELECT time_bucket(INTERVAL 2 MONTHS, ts) AS b, count(*) FROM t GROUP BY 1",
	"SELECT time_bucket(INTERVAL 1 WEEK, tz) AS b, count(*) FROM t GROUP BY 1",
	"SELECT time_bucket(INTERVAL 5 DAY, d) AS b, count(*) FROM t GROUP BY 1",
	"SELECT date_trunc('minute', ts) - (extract(minute FROM ts) % 5) * INTERVAL '1' MINUTE AS bar, count(*) FROM t GROUP BY 1",
	"SELECT date_trunc('minute', ts) - INTERVAL 1 MINUTE * (minute(ts) % 7) AS bar, count(*) FROM t GROUP BY 1",
	"SELECT date_trunc('hour', ts) - (hour(ts) % 6) * INTERVAL 1 HOUR AS bar, count(*) FROM t GROUP BY 1",
	"FROM t SELECT d, count(*) GROUP BY d",
	"FROM t",
	"SELECT t.* FROM t JOIN u ON t.k = u.k",
	"SELECT count(*), d FROM t GROUP BY (d)",
	"SELECT d, count(*) FROM t GROUP BY d, ()",
	"SELECT CASE WHEN q > 1 THEN d END AS e, count(*) FROM t GROUP BY 1",
	"SELECT date_trunc('day', ts) + INTERVAL 1 DAY AS b, count(*) FROM t GROUP BY 1",
	"SELECT d, count(*) FROM (SELECT DISTINCT d, s FROM t) x GROUP BY d",
	"SELECT d, count(*) FROM (SELECT DISTINCT d, s FROM t UNION ALL SELECT d, s FROM t) x GROUP BY d",
	"SELECT d, s, lag(q) OVER (PARTITION BY d, s, k, ts, p, tz ORDER BY q) FROM t",
	"SELECT d FROM (SELECT d, row_number() OVER (PARTITION BY k ORDER BY d, ts, tz, s, p, q) AS n FROM t) x WHERE n = 1",
	"SELECT d, n FROM (SELECT d, row_number() OVER (PARTITION BY d ORDER BY ts, tz, s, p, q, k) AS n FROM t) x WHERE n = 1",
}

// TestClosed_isTrue is the proof of the proof: for every query that counts as
// bucket-closed, restricting the drivers to a set of buckets in DuckDB gives exactly the
// rows of the result that lie in them. Shapes that are not closed must be refused, or
// this fails. SQLTEXT_QUERIES=n runs n queries from a random seed.
func TestClosed_isTrue(t *testing.T) {
	t.Parallel()
	db := duckdb(t)
	createTables(t, db)
	r := rand.New(rand.NewPCG(21, 22))
	queries := 300
	if n, err := strconv.Atoi(os.Getenv("SQLTEXT_QUERIES")); err == nil {
		queries, r = n, rand.New(rand.NewPCG(rand.Uint64(), 0))
	}
	proved, refused, broken := 0, 0, 0
	for i := range queries {
		if i%8 == 0 {
			fill(t, db, r)
		}
		text := randomQuery(r)
		if i < 2*len(written) {
			text = written[i%len(written)]
		}
		q, err := sqltext.Parse(sqltext.DuckDB, text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if _, _, err := queryBag(t, db, text); err != nil {
			if i < 2*len(written) {
				t.Fatalf("%s: %v", text, err)
			}
			broken++
			continue
		}
		proofs, reason := sqltext.Closed(q, sqltext.Options{Columns: schemaOf, TimeZone: "UTC"})
		if (len(proofs) == 0) != (reason != nil) {
			t.Fatalf("%s: %d proofs, reason %v", text, len(proofs), reason)
		}
		if reason != nil {
			refused++
			continue
		}
		for _, p := range proofs {
			proved++
			checkClosed(t, db, r, q, p)
		}
	}
	t.Logf("%d proofs held, %d queries were refused, %d do not bind", proved, refused, broken)
	if proved < queries*2/3 || refused < queries/8 || broken > queries/3 {
		t.Errorf("%d proofs, %d refused, %d do not bind: the test is too thin", proved, refused, broken)
	}
}

// checkClosed compares a restricted query with the restricted result for random sets of
// buckets.
func checkClosed(t *testing.T, db *sql.DB, r *rand.Rand, q *sqltext.Query, p sqltext.Proof) {
	t.Helper()
	for range 2 {
		null := r.IntN(2) == 0
		var source, result string
		ticks := sqltext.HasTicks(p.Bucket.Type)
		var intervals, outputs []sqltext.Interval
		var values []string
		if ticks {
			for range 1 + r.IntN(2) {
				iv := p.Bucket.Cover(randomTicks(t, db, r, p.Bucket.Type))
				intervals, outputs = append(intervals, iv), append(outputs, p.Bucket.Output(iv))
			}
			var err error
			if result, err = sqltext.Predicate(sqltext.DuckDB, "b", p.Bucket.Result, outputs, null); err != nil {
				t.Fatal(err)
			}
		} else {
			values = []string{"'a'", []string{"'A'", "''"}[r.IntN(2)]}
			result = "b IN (" + strings.Join(values, ", ") + ")"
			if null {
				result += " OR b IS NULL"
			}
		}
		var reps []sqltext.Replacement
		for _, d := range p.Drivers {
			source = strings.ReplaceAll(result, "b I", `"`+d.Column+`" I`)
			if ticks {
				var err error
				if source, err = sqltext.Predicate(sqltext.DuckDB, d.Column, d.Type, intervals, null); err != nil {
					t.Fatal(err)
				}
			}
			reps = append(reps, sqltext.Replacement{Ref: d.Ref.Index, Predicate: source})
		}
		restricted, err := sqltext.RewriteTables(q, reps)
		if err != nil {
			t.Fatalf("%s: %v", q.Text, err)
		}
		got, width, err := queryBag(t, db, restricted)
		if err != nil {
			t.Fatalf("%s: %v", restricted, err)
		}
		names := make([]string, width)
		for i := range names {
			names[i] = fmt.Sprintf("c%d", i)
		}
		names[p.Output] = "b"
		want, _, err := queryBag(t, db, fmt.Sprintf("SELECT * FROM (%s) AS r (%s) WHERE %s", q.Text, strings.Join(names, ", "), result))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%s\nbucket %v of output %d\nrestricted: %s\n%d rows %v\nwhere %s: %d rows %v", q.Text, p.Bucket, p.Output, restricted, len(got), got, result, len(want), want)
		}
	}
}

// randomTicks returns a range of values that occur in the tables, in ticks.
func randomTicks(t *testing.T, db *sql.DB, r *rand.Rand, typ string) (lo, hi int64) {
	t.Helper()
	expr := map[string]string{"timestamp": "epoch_us(ts)", "timestamptz": "epoch_us(tz)", "date": "d - DATE '1970-01-01'", "long": "k"}[typ]
	all := queryInts(t, db, "SELECT v FROM (SELECT "+expr+" AS v FROM t) x WHERE v IS NOT NULL")
	if len(all) == 0 {
		return 0, 0
	}
	lo = all[r.IntN(len(all))]
	if r.IntN(3) > 0 {
		return lo, lo
	}
	hi = all[r.IntN(len(all))]
	return min(lo, hi), max(lo, hi)
}

// randomQuery writes a query from a small grammar. Some do not bind, some are closed,
// some are not.
func randomQuery(r *rand.Rand) string {
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	if r.IntN(6) == 0 {
		op := pick("UNION ALL", "UNION", "EXCEPT", "INTERSECT")
		return randomSelect(r, 2) + " " + op + " " + randomSelect(r, 2)
	}
	text := randomSelect(r, 1+r.IntN(4))
	if r.IntN(10) == 0 {
		text = "SELECT * FROM (" + text + ") sub"
	}
	if r.IntN(12) == 0 {
		text += pick(" LIMIT 2", " ORDER BY 1")
	}
	return text
}

func randomSelect(r *rand.Rand, width int) string {
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	from := pick("t", "t", "t AS z", "(SELECT * FROM t WHERE q > 0) AS y", "t JOIN dim ON t.k = dim.k", "t LEFT JOIN dim ON t.k = dim.k",
		"dim LEFT JOIN t ON t.d = dim.day", "t JOIN dim ON t.d = dim.day", "(SELECT * FROM t UNION ALL SELECT * FROM u) w", "t FULL JOIN dim ON t.d = dim.day")
	exprs := []string{
		"d", "ts", "s", "date_trunc('day', ts)", "date_trunc('month', d)", "date_trunc('hour', ts)", "CAST(ts AS DATE)",
		"upper(s)", "q", "date_trunc('day', tz)", "CAST(date_trunc('month', ts) AS DATE)", "s || 'x'", "date_trunc('quarter', date_trunc('day', ts))",
	}
	names := []string{"", " AS d", " AS ts", " AS b", " AS x", " AS s"}
	var items, keys []string
	for i := range width {
		e := exprs[r.IntN(len(exprs))]
		alias := names[r.IntN(len(names))]
		items = append(items, e+alias)
		switch {
		case r.IntN(8) == 0: // left out: does not bind, or is not grouped by
		case alias != "" && r.IntN(2) == 0:
			keys = append(keys, strings.TrimPrefix(alias, " AS "))
		case r.IntN(2) == 0:
			keys = append(keys, strconv.Itoa(i+1))
		default:
			keys = append(keys, e)
		}
	}
	distinct, tail := "", ""
	switch r.IntN(5) {
	case 0:
		distinct = "DISTINCT "
	case 1:
		items = append(items, "sum(q) OVER (PARTITION BY "+exprs[r.IntN(len(exprs))]+")")
	case 2, 3:
		items = append(items, pick("count(*)", "sum(q)", "max(ts)", "count(DISTINCT p)", "max(date_trunc('day', ts))"))
		tail = " GROUP BY " + strings.Join(keys, ", ")
		if len(keys) == 0 || r.IntN(4) == 0 {
			tail = " GROUP BY ALL"
		}
		if r.IntN(10) == 0 {
			tail = strings.Replace(tail, " GROUP BY ", " GROUP BY ROLLUP (", 1) + ")"
		}
		tail += pick("", "", " HAVING count(*) > 1", " HAVING sum(q) > 2")
	}
	return "SELECT " + distinct + strings.Join(items, ", ") + " FROM " + from + pick("", "", " WHERE q < 3", " WHERE s = 'a' OR p > 1") + tail
}
