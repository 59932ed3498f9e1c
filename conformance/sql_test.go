package conformance_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// refusesSQL checks that a query is refused by both ways of creating a materialized view,
// and that no view, table or job is left behind.
func (s space) refusesSQL(t *testing.T, sql string, says ...string) {
	t.Helper()
	c := newClient(t)
	own := c.do("POST", ownBase+"/materialized-views", object{"namespace": s.levels, "name": "v", "sql": sql})
	own.refused(t, 400, bad, says...)
	view := s.newView("v", sql)
	view["view-version"].(object)["storage-table"] = s.ident("rows")
	c.do("POST", s.path()+"/views", view).refused(t, 400, bad, says...)
	for _, secret := range []string{"root:", "/root", "panic", "goroutine"} {
		if strings.Contains(string(own.body), secret) {
			t.Errorf("%s: the answer holds %q: %s", sql, secret, own.body)
		}
	}
}

func TestSQL_Faults(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.createTable("t")
	tests := []struct {
		sql  string
		says []string
	}{
		{"SELECT * FROM nowhere", []string{"line 1, column 15", "nowhere"}},
		{"SELECT *\n  FROM nowhere.t", []string{"line 2, column 8", "nowhere.t"}},
		{"SELECT missing FROM t", []string{"line 1, column 8", "missing"}},
		{"SELECT id,\n  t.missing FROM t", []string{"line 2", "missing"}},
		{"SELECT frobnicate(id) AS x FROM t", []string{"line 1, column 8", "frobnicate"}},
		{"SELECT id FROM t WHERE", []string{"line 1"}},
		{"SELECT id FROM t GROUP BY day", []string{"id"}},
		{"SELECT sum(note) AS x FROM t", []string{"sum"}},
		{"SELECT id, id FROM t", []string{"id"}},
		{"SELECT 'unfinished FROM t", []string{"line 1, column 8"}},
		{"SELECT INTERVAL 1 DAY AS i FROM t", []string{"i", "INTERVAL"}},
		{"", []string{"sql"}},
	}
	for _, tt := range tests {
		t.Run(tt.sql, func(t *testing.T) {
			newClient(t).do("POST", ownBase+"/materialized-views", object{"namespace": s.levels, "name": "v", "sql": tt.sql}).refused(t, 400, bad, tt.says...)
		})
	}
	// The declared columns have to be what the query returns.
	mismatched := s.newView("v", "SELECT note FROM t")
	mismatched["view-version"].(object)["storage-table"] = s.ident("rows")
	s.do("POST", s.path()+"/views", mismatched).refused(t, 400, bad, "column id is declared long", "string")
	mismatched["view-version"].(object)["representations"] = list{object{"type": "sql", "sql": "SELECT id, day FROM t", "dialect": "duckdb"}}
	s.do("POST", s.path()+"/views", mismatched).refused(t, 400, bad, "1 columns", "returns 2")
	s.do("POST", ownBase+"/materialized-views", object{"namespace": s.levels, "name": "v", "sql": dailySQL, "dialect": "klingon"}).refused(t, 400, bad, "klingon")
	s.do("POST", ownBase+"/materialized-views", object{"namespace": list{"nowhere"}, "name": "v", "sql": "SELECT 1 AS x"}).refused(t, 404, "NoSuchNamespaceException", "nowhere")
	s.lists("views")
	s.lists("tables", "t")
}

// breakouts are texts that would read, write or run something outside of the view's
// sources if they reached DuckDB.
var breakouts = []string{
	"COPY t TO '/tmp/catalogd-breakout.csv'",
	"COPY (SELECT * FROM t) TO PROGRAM 'sh'",
	"ATTACH '/tmp/x.db'",
	"INSTALL httpfs",
	"LOAD httpfs",
	"SET enable_external_access = true",
	"PRAGMA database_list",
	"EXPORT DATABASE '/tmp/x'",
	"CREATE TABLE x AS SELECT 1",
	"DROP TABLE t",
	"INSERT INTO t VALUES (1)",
	"CALL pragma_version()",
	"EXPLAIN ANALYZE SELECT id FROM t",
	"SELECT id FROM t; COPY t TO '/tmp/catalogd-breakout.csv'",
	"SELECT id FROM t; SELECT id FROM t",
	"SELECT id FROM t /* ; */ ; ATTACH 'x'",
	"SELECT id FROM t) AS x; ATTACH 'x'; SELECT * FROM (SELECT 1",
	"SELECT id FROM t) TO '/tmp/catalogd-breakout.csv' (FORMAT csv",
	"SELECT * FROM '/etc/passwd'",
	`SELECT * FROM "/etc/passwd"`,
	"SELECT * FROM 'http://127.0.0.1/x.parquet'",
	"FROM '/etc/passwd'",
	"SELECT * FROM read_csv('/etc/passwd')",
	"SELECT * FROM read_csv_auto('/etc/passwd')",
	"SELECT * FROM read_text('/etc/passwd')",
	"SELECT * FROM read_blob('/etc/passwd')",
	"SELECT * FROM read_parquet('/etc/passwd')",
	"SELECT * FROM read_json('/etc/passwd')",
	"SELECT * FROM parquet_metadata('/etc/passwd')",
	"SELECT * FROM parquet_scan('/etc/passwd')",
	"SELECT * FROM sniff_csv('/etc/passwd')",
	"SELECT * FROM glob('/*')",
	"SELECT * FROM main.glob('/*')",
	`SELECT * FROM "read_csv"('/etc/passwd')`,
	"SELECT * FROM READ_CSV('/etc/passwd')",
	"SELECT * FROM query('SELECT 1')",
	"SELECT * FROM query_table('t')",
	"SELECT * FROM duckdb_settings()",
	"SELECT * FROM duckdb_secrets()",
	"SELECT * FROM pragma_database_list()",
	"SELECT * FROM which_secret('s3://x', 's3')",
	"SELECT * FROM information_schema.tables",
	"SELECT * FROM duckdb_tables",
	"SELECT * FROM pg_catalog.pg_class",
	"SELECT * FROM sqlite_master",
	"SHOW TABLES",
	"DESCRIBE t",
	"SELECT * FROM (SHOW TABLES)",
	"SELECT * FROM (DESCRIBE t)",
	"SELECT getenv('HOME') AS id FROM t",
	"SELECT GetEnv('HOME') AS id FROM t",
	"SELECT current_setting('threads') AS id FROM t",
	"SELECT nextval('s') AS id FROM t",
	"SELECT id FROM t WHERE id IN (SELECT size FROM read_text('/etc/passwd'))",
	"WITH x AS (SELECT * FROM read_text('/etc/passwd')) SELECT id FROM t, x",
	"SELECT id FROM t UNION ALL SELECT size FROM read_blob('/etc/passwd')",
	"SELECT (SELECT count(*) FROM glob('/*')) AS id FROM t",
	"SELECT id FROM t JOIN LATERAL (SELECT * FROM read_text(t.note)) ON true",
	"SELECT id FROM t WHERE EXISTS (FROM '/etc/passwd')",
	"PIVOT read_csv('/etc/passwd') ON x USING count(*)",
}

func TestSQL_BreakOut(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.createTable("t")
	for _, sql := range breakouts {
		t.Run(sql, func(t *testing.T) { s.refusesSQL(t, sql) })
	}
	s.lists("views")
	s.lists("tables", "t")
	if left, _ := filepath.Glob("/tmp/catalogd-breakout.csv"); len(left) > 0 {
		t.Errorf("a query wrote %v", left)
	}
}

// Text that is nested without end must not take the process down with it.
func TestSQL_Nesting(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.createTable("t")
	const deep = 4000 // as deep as a text of the longest length that is taken can be
	for name, sql := range map[string]string{
		"parentheses": "SELECT " + strings.Repeat("(", deep) + "1" + strings.Repeat(")", deep) + " AS id FROM t",
		"subqueries":  "SELECT id FROM " + strings.Repeat("(SELECT id FROM ", deep) + "t" + strings.Repeat(")", deep),
		"signs":       "SELECT " + strings.Repeat("- ", deep) + "1 AS id FROM t",
		"lists":       "SELECT " + strings.Repeat("[", deep) + strings.Repeat("]", deep) + " AS id FROM t",
		"cases":       "SELECT " + strings.Repeat("CASE WHEN true THEN ", deep) + "1" + strings.Repeat(" END", deep) + " AS id FROM t",
	} {
		t.Run(name, func(t *testing.T) { s.refusesSQL(t, sql, "nested too deeply", "line 1") })
	}
	s.refusesSQL(t, "SELECT id FROM t"+strings.Repeat(" UNION ALL SELECT id FROM t", deep), "a view may have")
	s.do("POST", s.path()+"/tables", `{"name":"x","schema":`+strings.Repeat("[", 5*deep)+strings.Repeat("]", 5*deep)+`}`).refused(t, 400, bad, "nested deeper")
	s.lists("tables", "t")
	s.lists("views")
}

// A name that looks like a file is a table if the catalog has one, and the file of that
// name is not read.
func TestSQL_TableNamedLikeAFile(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	file := filepath.Join(t.TempDir(), "secret.csv")
	if err := os.WriteFile(file, []byte("id,day,note\n1,2020-01-01,secret\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	s.createTable(file)
	s.createTable("select")
	s.createTable(`quo"ted`)
	for _, sql := range []string{`SELECT id, note FROM "` + file + `"`, `SELECT id, note FROM "select"`, `SELECT id, note FROM "quo""ted"`} {
		r := s.do("POST", ownBase+"/materialized-views", object{"namespace": s.levels, "name": "v", "sql": sql})
		if r.status == 400 {
			continue // refusing a name like this is fine, reading the file is not
		}
		if r.status != 201 {
			t.Errorf("%s = %d %s", sql, r.status, r.body)
			continue
		}
		s.refresh("v").want(t, "0", "rows")
		s.status("DELETE", s.view("v"), 204)
	}
}
