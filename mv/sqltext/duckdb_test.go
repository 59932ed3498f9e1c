package sqltext_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
	"testing"

	_ "github.com/duckdb/duckdb-go/v2"

	"github.com/catalogd/catalogd/mv/sqltext"
)

// duckdb opens a database in memory on one connection.
func duckdb(t *testing.T) *sql.DB {
	t.Helper()
	db, err := sql.Open("duckdb", "")
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = db.Close() })
	if _, err := db.ExecContext(t.Context(), "SET TimeZone = 'UTC'"); err != nil {
		t.Fatal(err)
	}
	return db
}

// facts are what both parsers say about a query.
type facts struct {
	Tables     []string
	Keys       int
	Outputs    int
	Aggregates map[string]int
}

// TestParse_agreesWithDuckDB compares what the package finds with the tree of DuckDB's
// own parser.
func TestParse_agreesWithDuckDB(t *testing.T) {
	t.Parallel()
	db := duckdb(t)
	compared := 0
	for _, c := range corpus(t) {
		if c.dialect != sqltext.DuckDB {
			continue
		}
		q, err := sqltext.Parse(c.dialect, c.text)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		want, err := oracle(t, db, q.Text)
		if err != nil {
			t.Logf("%s: DuckDB does not parse it: %v", c.name, err)
			continue
		}
		if len(q.Opaque()) > 0 || strings.Contains(q.Text, "ARRAY(SELECT") { // DuckDB writes the latter with array_agg
			want.Aggregates = factsOf(q).Aggregates
		}
		compared++
		if got := factsOf(q); !equalFacts(got, want) {
			t.Errorf("%s: found %+v, DuckDB has %+v", c.name, got, want)
		}
	}
	if compared < 140 {
		t.Errorf("only %d queries were compared", compared)
	}
}

func equalFacts(a, b facts) bool {
	return slices.Equal(a.Tables, b.Tables) && a.Keys == b.Keys && a.Outputs == b.Outputs && maps.Equal(a.Aggregates, b.Aggregates)
}

func factsOf(q *sqltext.Query) facts {
	f := facts{Aggregates: map[string]int{}, Keys: len(q.GroupKeys()), Outputs: len(q.Outputs())}
	for _, ref := range q.Tables() {
		f.Tables = append(f.Tables, ref.String())
	}
	sort.Strings(f.Tables)
	for _, c := range q.Aggregates() {
		f.Aggregates[c.Name]++
	}
	return f
}

// oracle asks DuckDB's parser.
func oracle(t *testing.T, db *sql.DB, text string) (facts, error) {
	t.Helper()
	var raw string
	if err := db.QueryRowContext(t.Context(), "SELECT json_serialize_sql(?::VARCHAR)::VARCHAR", text).Scan(&raw); err != nil {
		return facts{}, err
	}
	var doc map[string]any
	if err := json.Unmarshal([]byte(raw), &doc); err != nil {
		t.Fatal(err)
	}
	if doc["error"] == true {
		return facts{}, fmt.Errorf("%v", doc["error_message"])
	}
	statement := doc["statements"].([]any)[0].(map[string]any)
	w := &duckTree{facts: facts{Aggregates: map[string]int{}}}
	node := statement["node"].(map[string]any)
	w.walk(node, nil)
	for node["left"] != nil {
		node = node["left"].(map[string]any)
	}
	if list, ok := node["select_list"].([]any); ok && !w.values(node) {
		w.Outputs = len(list)
		w.Keys = len(node["group_expressions"].([]any))
		if node["aggregate_handling"] == "FORCE_AGGREGATES" {
			for _, e := range list {
				sub := &duckTree{facts: facts{Aggregates: map[string]int{}}}
				sub.walk(e, nil)
				if len(sub.Aggregates) == 0 {
					w.Keys++
				}
			}
		}
	}
	sort.Strings(w.Tables)
	return w.facts, nil
}

// duckTree walks the tree that json_serialize_sql returns.
type duckTree struct{ facts }

func (w *duckTree) values(node map[string]any) bool {
	from, ok := node["from_table"].(map[string]any)
	return ok && from["type"] == "EXPRESSION_LIST" && from["alias"] == "valueslist"
}

// duckAggregates maps DuckDB's names of aggregates to the names that a text has.
var duckAggregates = map[string]string{"count_star": "count", "quantile_cont": "percentile_cont"}

func (w *duckTree) walk(n any, ctes []string) {
	switch n := n.(type) {
	case []any:
		for _, x := range n {
			w.walk(x, ctes)
		}
	case map[string]any:
		w.object(n, ctes)
	}
}

func (w *duckTree) object(n map[string]any, ctes []string) {
	if m, ok := n["cte_map"].(map[string]any); ok {
		for _, e := range m["map"].([]any) {
			entry := e.(map[string]any)
			name := strings.ToLower(entry["key"].(string))
			inner := ctes
			if query, ok := entry["value"].(map[string]any)["query"].(map[string]any); ok {
				if node, ok := query["node"].(map[string]any); ok && node["type"] == "RECURSIVE_CTE_NODE" {
					inner = append(slices.Clone(ctes), name)
				}
			}
			w.walk(entry["value"], inner)
			ctes = append(slices.Clone(ctes), name)
		}
	}
	switch {
	case n["type"] == "BASE_TABLE":
		w.table(n, ctes)
	case n["class"] == "FUNCTION":
		name := n["function_name"].(string)
		if alias, ok := duckAggregates[name]; ok {
			name = alias
		}
		if aggregateNames[name] {
			w.Aggregates[name]++
		}
	}
	for k, v := range n {
		if k != "cte_map" {
			w.walk(v, ctes)
		}
	}
}

func (w *duckTree) table(n map[string]any, ctes []string) {
	var parts []string
	for _, k := range []string{"catalog_name", "schema_name", "table_name"} {
		if s, _ := n[k].(string); s != "" {
			parts = append(parts, s)
		}
	}
	if len(parts) == 1 && slices.Contains(ctes, strings.ToLower(parts[0])) {
		return
	}
	w.Tables = append(w.Tables, strings.Join(parts, "."))
}

// aggregateNames are the aggregates that the corpus uses.
var aggregateNames = map[string]bool{
	"count": true, "sum": true, "min": true, "max": true, "avg": true, "array_agg": true,
	"string_agg": true, "min_by": true, "max_by": true, "mode": true, "percentile_cont": true, "list": true, "first": true,
	"any_value": true, "bool_and": true, "median": true, "quantile_cont": true, "arg_min": true, "stddev": true, "count_if": true,
}

// TestNondeterministic_agreesWithDuckDB checks that no function counts as deterministic
// that DuckDB says is not.
func TestNondeterministic_agreesWithDuckDB(t *testing.T) {
	t.Parallel()
	rows, err := duckdb(t).QueryContext(t.Context(), `SELECT DISTINCT function_name FROM duckdb_functions()
		WHERE stability IN ('VOLATILE', 'CONSISTENT_WITHIN_QUERY') AND regexp_matches(function_name, '^[a-z_0-9]+$')`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	n := 0
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		n++
		q, err := sqltext.Parse(sqltext.DuckDB, "SELECT "+name+"() FROM t")
		if err != nil {
			t.Fatal(err)
		}
		if len(q.Nondeterministic()) == 0 {
			t.Errorf("%s counts as deterministic", name)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	if n < 15 {
		t.Errorf("DuckDB lists %d functions, want more", n)
	}
}

// querier is what the tests need of a database.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

func queryInts(t *testing.T, db querier, query string) []int64 {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatalf("%.300s: %v", query, err)
	}
	defer rows.Close()
	var out []int64
	for rows.Next() {
		var v int64
		if err := rows.Scan(&v); err != nil {
			t.Fatal(err)
		}
		out = append(out, v)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}
