package exectest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/catalogd/catalogd/catalog"
	"github.com/catalogd/catalogd/mv"
)

var guardTests = []testCase{
	{name: "BreakOuts", run: guardBreakOuts},
	{name: "HonestQueriesPass", run: guardHonest},
	{name: "OtherInputsRawFiles", run: guardRawFiles},
	{name: "NothingIsWritten", run: guardWrites},
}

// breakOuts are attempts to reach outside of a query's sources. SECRET stands for the
// path of a file that exists.
var breakOuts = []string{
	"COPY src TO 'SECRET.out'", "COPY (SELECT 1) TO 'SECRET.out' (FORMAT csv)", "COPY src FROM 'SECRET'",
	"ATTACH 'SECRET' AS x", "ATTACH ':memory:' AS x", "DETACH memory", "USE memory", "INSTALL httpfs", "LOAD httpfs", "LOAD 'SECRET'", "FORCE INSTALL spatial FROM community",
	"SET enable_external_access = true", "SET lock_configuration = false", "SET TimeZone = 'Europe/Berlin'", "SET memory_limit = '1TB'", "RESET ALL", "SET VARIABLE x = 1",
	"PRAGMA database_list", "PRAGMA enable_profiling", "EXPORT DATABASE 'SECRET.dir'", "IMPORT DATABASE 'SECRET'", "CALL pragma_version()", "CHECKPOINT", "VACUUM",
	"CREATE TABLE x AS SELECT 1", "CREATE VIEW x AS SELECT 1", "CREATE MACRO m() AS 1", "CREATE SECRET s (TYPE s3)", "CREATE TYPE e AS ENUM ('a')", "DROP TABLE src", "INSERT INTO src VALUES (1)", "UPDATE src SET id = 1", "DELETE FROM src", "TRUNCATE src", "ALTER TABLE src ADD COLUMN x INTEGER",
	"BEGIN", "PREPARE q AS SELECT 1", "EXECUTE q", "EXPLAIN SELECT * FROM src", "EXPLAIN ANALYZE SELECT * FROM src", "DESCRIBE src", "SUMMARIZE src", "SHOW TABLES", "SHOW ALL TABLES", "FROM (DESCRIBE src)", "FROM (SHOW TABLES)", "FROM (SUMMARIZE src)",
	"SELECT 1; SELECT 2", "SELECT 1; DROP TABLE src", "SELECT 1;; SELECT 2", "SELECT 1) TO 'SECRET.out'; COPY (SELECT 1", "SELECT 1) AS q; SET threads = 1; SELECT * FROM (SELECT 1",
	"SELECT * FROM read_text('SECRET')", "SELECT * FROM read_blob('SECRET')", "SELECT * FROM read_csv('SECRET')", "SELECT * FROM read_csv_auto('SECRET')", "SELECT * FROM read_json('SECRET')", "SELECT * FROM read_json_objects('SECRET')", "SELECT * FROM read_ndjson('SECRET')",
	"SELECT * FROM read_parquet('SECRET')", "SELECT * FROM parquet_scan('SECRET')", "SELECT * FROM parquet_metadata('SECRET')", "SELECT * FROM parquet_schema('SECRET')", "SELECT * FROM parquet_kv_metadata('SECRET')", "SELECT * FROM parquet_file_metadata('SECRET')", "SELECT * FROM parquet_bloom_probe('SECRET', 'id', 1)", "SELECT * FROM read_duckdb('SECRET')", "SELECT * FROM sniff_csv('SECRET')",
	"SELECT * FROM glob('/etc/*')", "FROM 'SECRET'", `FROM "SECRET"`, "FROM '/etc/passwd'", "SELECT * FROM '*.parquet'", "FROM 'https://example.invalid/x.parquet'", "FROM 's3://b/x.parquet'",
	"WITH x AS (SELECT * FROM read_text('SECRET')) SELECT * FROM x", "WITH x AS MATERIALIZED (FROM 'SECRET') FROM src, x", "SELECT (SELECT content FROM read_text('SECRET')) AS c FROM src", "SELECT * FROM src WHERE EXISTS (FROM 'SECRET')", "SELECT * FROM src, LATERAL (SELECT * FROM read_text('SECRET')) AS l",
	"SELECT id FROM src UNION ALL SELECT size FROM read_text('SECRET')", "SELECT id FROM src ORDER BY (SELECT count(*) FROM glob('/*'))", "SELECT [x FOR x IN (SELECT list(file) FROM glob('/*'))] AS l", "SELECT * FROM (VALUES ((SELECT content FROM read_text('SECRET')))) v(x)", "SELECT sum(id) FILTER (WHERE EXISTS (FROM 'SECRET')) AS s FROM src", "SELECT id FROM src LIMIT (SELECT count(*) FROM glob('/*'))", "SELECT id FROM src QUALIFY row_number() OVER (ORDER BY (SELECT max(size) FROM read_text('SECRET'))) = 1",
	"WITH RECURSIVE r AS (SELECT 1 AS a UNION ALL SELECT size FROM r, read_text('SECRET')) SELECT * FROM r", "SELECT * FROM src PIVOT (sum(id) FOR id IN (SELECT size FROM read_text('SECRET')))", "PIVOT src ON id USING sum(id)",
	"SELECT * FROM query('SELECT 1')", "SELECT * FROM query_table('src')", "SELECT * FROM query('FROM read_text(''SECRET'')')", "SELECT * FROM json_execute_serialized_sql(json_serialize_sql('SELECT 1'))", "PRAGMA json_execute_serialized_sql('{}')", "SELECT json_serialize_plan('FROM ''SECRET''') AS p",
	"SELECT getenv('HOME') AS h", "SELECT main.getenv('HOME') AS h", "SELECT 'HOME'.getenv() AS h", "SELECT getvariable('x') AS v", "SELECT current_setting('temp_directory') AS s", "SELECT system.main.current_setting('temp_directory') AS s", "SELECT current_query() AS q", "SELECT current_database() AS d", "SELECT nextval('s') AS n", "SELECT sleep_ms(1000) AS s", "SELECT setseed(0.5) AS s", "SELECT write_log('x') AS w", "SELECT pg_get_viewdef(1) AS v",
	"SELECT * FROM duckdb_settings()", "SELECT * FROM duckdb_secrets()", "SELECT * FROM which_secret('s3://x', 's3')", "SELECT * FROM duckdb_views()", "SELECT * FROM duckdb_tables", "SELECT * FROM duckdb_logs()", "SELECT * FROM duckdb_temporary_files()", "SELECT * FROM duckdb_external_file_cache()", "SELECT * FROM pragma_table_info('src')", "SELECT * FROM pragma_database_list", "SELECT * FROM sqlite_master", "SELECT * FROM information_schema.tables", "SELECT * FROM pg_catalog.pg_class", "SELECT * FROM enable_logging()", "SELECT * FROM checkpoint()", "SELECT * FROM seq_scan('src')", "SELECT * FROM sql_auto_complete('SEL')", "SELECT * FROM test_all_types()",
	"SELECT * FROM main.src", "SELECT * FROM memory.main.src", "SELECT * FROM engine.b0", "SELECT * FROM engine.want_0", "SELECT * FROM temp.x", "SELECT * FROM src AT (VERSION => 1)",
	"SELECT * FROM (WITH duckdb_tables AS (SELECT 1 AS a) FROM duckdb_tables) a, duckdb_tables", "SELECT * FROM (WITH pg_class AS (SELECT 1) SELECT 1 AS a) a JOIN pg_class ON true",
	"WITH x AS (INSERT INTO src VALUES (1) RETURNING *) SELECT * FROM x", "WITH x AS (COPY src TO 'SECRET.out') SELECT 1 AS a", "WITH x AS (DELETE FROM src RETURNING *) SELECT 1 AS a",
	"SELECT $1 AS a", "SELECT ? AS a", "SELECT catalogd_hash_long(1) AS h", "SELECT id FROM src /*", "SELECT 'x", "/* */", ";", "",
}

// secretFile is a file that a query must not read.
func secretFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret.csv")
	if err := os.WriteFile(path, []byte("a,b\n1,2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// guardBreakOuts tries every text in Describe and, in case that lets it through, every
// tenth in Run as well: both have the same gate.
func guardBreakOuts(t *testing.T, e mv.Engine) {
	secret := secretFile(t)
	in := one(t)
	for i, text := range breakOuts {
		sql := strings.ReplaceAll(text, "SECRET", secret)
		cols, err := e.Describe(t.Context(), mv.DescribeRequest{SQL: sql, Relations: []mv.Relation{in.Relation}})
		if catalog.KindOf(err) != catalog.KindInvalid {
			t.Errorf("Describe(%s) = %v, %v, want KindInvalid", sql, cols, err)
		}
		if i%10 != 0 {
			continue
		}
		_, err = e.Run(t.Context(), task(t, sql, []mv.Column{col("a", "string", 1)}, in), nil)
		if catalog.KindOf(err) != catalog.KindUnprocessable {
			t.Errorf("Run(%s) = %v, want KindUnprocessable", sql, err)
		}
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(secret), "*"))
	if err != nil || len(left) != 1 {
		t.Errorf("after the attempts the folder holds %v", left)
	}
}

func guardHonest(t *testing.T, e mv.Engine) {
	rel := []mv.Relation{{Name: "src", Schema: schemaJSON(`{"id":1,"name":"id","required":false,"type":"int"},{"id":2,"name":"s","required":false,"type":"string"},{"id":3,"name":"ts","required":false,"type":"timestamp"},{"id":4,"name":"l","required":false,"type":{"type":"list","element-id":5,"element":"int","element-required":false}}`)}}
	for _, sql := range []string{
		"FROM src SELECT id", "SELECT DISTINCT ON (id) id, s FROM src ORDER BY id DESC NULLS LAST LIMIT 3 OFFSET 1", "SELECT * EXCLUDE (l) REPLACE (id + 1 AS id) FROM src", "SELECT COLUMNS('i.*') FROM src",
		"WITH a AS (SELECT id FROM src), b AS (SELECT * FROM a) SELECT count(*) AS c FROM b, a", "WITH src AS (SELECT 1 AS x) SELECT x FROM src", "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT n FROM r",
		"SELECT id, row_number() OVER (PARTITION BY s ORDER BY ts ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS rn FROM src QUALIFY rn = 1", "SELECT id, sum(id) OVER w AS t FROM src WINDOW w AS (ORDER BY ts)",
		"SELECT s, sum(id) FILTER (WHERE id > 1) AS t, list(id ORDER BY ts) AS l FROM src GROUP BY ALL HAVING count(*) > 1", "SELECT s, id, count(*) AS c FROM src GROUP BY GROUPING SETS ((s), (id), ())", "SELECT s, count(*) AS c FROM src GROUP BY ROLLUP (s)",
		"SELECT a.id FROM src a JOIN src b USING (id) LEFT JOIN src c ON a.id = c.id SEMI JOIN src d ON a.id = d.id", "SELECT a.id FROM src a ASOF JOIN src b ON a.ts >= b.ts", "SELECT a.id FROM src a POSITIONAL JOIN src b", "SELECT id FROM src, LATERAL (SELECT id + 1 AS y) t",
		"SELECT u FROM src, unnest(l) AS t(u)", "SELECT unnest(l) AS u FROM src", "SELECT r.range AS r FROM range(3) r", "SELECT * FROM generate_series(1, 3) AS g(x)", "VALUES (1, 'a'), (2, 'b')", "SELECT * FROM (VALUES (1)) v(x)",
		"SELECT id FROM src UNION SELECT 1 INTERSECT SELECT 2 EXCEPT SELECT 3", "SELECT id FROM src UNION ALL BY NAME SELECT s FROM src", "SELECT list_transform(l, lambda x: x + 1) AS m, [y * 2 FOR y IN l IF y > 1] AS n FROM src", "SELECT CASE WHEN id > 1 THEN 'a' ELSE s END AS c, s COLLATE NOCASE AS k, id BETWEEN 1 AND 2 AS b, s LIKE 'a%' AS li, id IN (1, 2) AS i FROM src",
		"SELECT date_trunc('day', ts) AS d, ts + INTERVAL 1 DAY AS n, extract(year FROM ts) AS y, strftime(ts, '%Y') AS f, time_bucket(INTERVAL 5 MINUTE, ts) AS b FROM src", "SELECT * FROM src TABLESAMPLE 10 PERCENT (bernoulli, 42) WHERE false AND l IS NULL", "SELECT id FROM src WHERE id = (SELECT max(id) FROM src) OR id > ALL (SELECT id FROM src WHERE id IS NOT NULL)",
		"SELECT * FROM (SELECT s, id FROM src) PIVOT (sum(id) FOR s IN ('a', 'b'))", "SELECT * FROM (SELECT id, id AS b FROM src) UNPIVOT (v FOR n IN (id, b))", "SELECT id::DECIMAL(10, 2) AS d, TRY_CAST(s AS INTEGER) AS i, {'a': id}.a AS sa, MAP {s: id} AS m, l[1:2] AS sl FROM src WHERE s IS NOT NULL", "SELECT 'read_text(''x'')' AS s, 'getenv' AS g -- COPY x TO y\nFROM src", "SELECT id AS \"select\", '; drop' AS \"a;b\" FROM src;",
	} {
		if cols, err := e.Describe(t.Context(), mv.DescribeRequest{SQL: sql, Relations: rel}); err != nil {
			t.Errorf("Describe(%s) = %v, %v", sql, cols, err)
		}
	}
}

// guardRawFiles: the files of an input are open to the engine, and to no query. Deleted
// rows would come back.
func guardRawFiles(t *testing.T, e mv.Engine) {
	f := rawFile(t, filepath.Join(t.TempDir(), "f.parquet"), []arrow.Field{fid(af("id", arrow.PrimitiveTypes.Int32), "1")}, `[{"id":1}]`)
	for _, sql := range []string{"SELECT * FROM read_parquet('PATH')", "SELECT id FROM 'PATH'", `SELECT id FROM "PATH"`, "SELECT id FROM src WHERE id IN (SELECT id FROM parquet_scan('PATH'))", "SELECT file_index AS id FROM src"} {
		_, err := e.Run(t.Context(), task(t, strings.ReplaceAll(sql, "PATH", f.Path), idAndNameColumns[:1], rawInput(idAndName, f)), nil)
		if catalog.KindOf(err) != catalog.KindUnprocessable {
			t.Errorf("Run(%s) = %v, want KindUnprocessable", sql, err)
		}
	}
}

func guardWrites(t *testing.T, e mv.Engine) {
	in := one(t)
	tk := task(t, "COPY (SELECT 1) TO 'OUT/x.csv'", []mv.Column{col("a", "int", 1)}, in)
	tk.SQL = strings.ReplaceAll(tk.SQL, "OUT", tk.Output)
	refused(t, e, tk, catalog.KindUnprocessable, "single SELECT")
	if left, err := os.ReadDir(tk.Output); err == nil && len(left) > 0 {
		t.Errorf("the output folder holds %v", left)
	}
}
