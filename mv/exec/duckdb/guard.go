package duckdb

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/catalogd/catalogd/catalog"
	"github.com/catalogd/catalogd/mv"
)

// tableFunctions are the functions that a query may scan: they compute from their
// arguments alone. Everything else (read_*, glob, query, duckdb_*, pragma_*) looks at
// files, settings or the catalog.
var tableFunctions = set("unnest", "range", "generate_series", "repeat", "repeat_row", "json_each", "json_tree")

// refusedFunctions are scalar functions that read or change something outside the query's
// inputs, run SQL given as text, or only serve to stall.
var refusedFunctions = set(
	"getenv", "getvariable", "current_setting", "set_config", "current_query", "current_query_id",
	"current_connection_id", "current_transaction_id", "txid_current", "current_database", "current_catalog",
	"current_schema", "current_schemas", "in_search_path", "current_role", "current_user", "session_user", "user",
	"nextval", "currval", "setseed", "sleep_ms", "pg_sleep", "write_log", "parse_duckdb_log_message", "stats", "vector_type",
	"json_serialize_plan", "json_execute_serialized_sql", "json_deserialize_sql", "json_serialize_sql", "query", "query_table",
	"read_text", "read_blob", "inet_client_addr", "inet_client_port", "inet_server_addr", "inet_server_port", "get_block_size",
)

// refusedPrefixes cover families of functions that look into DuckDB's own catalog, and
// the engine's own functions.
var refusedPrefixes = []string{"pg_", "has_", "duckdb_", "pragma_", "__internal", "catalogd_", "format_pg_type", "obj_description", "shobj_description", "col_description", "map_to_pg_oid"}

// plainNodes are the constructs without an expression class that a query may be made of.
// A construct that is not listed is refused, so that a new one in a later DuckDB does not
// open a door.
var plainNodes = set(
	"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE",
	"ORDER_MODIFIER", "LIMIT_MODIFIER", "LIMIT_PERCENT_MODIFIER", "DISTINCT_MODIFIER",
	"EMPTY", "BASE_TABLE", "SUBQUERY", "JOIN", "TABLE_FUNCTION", "EXPRESSION_LIST", "PIVOT", "CTE",
	"ASCENDING", "DESCENDING", "ORDER_DEFAULT",
)

func set(names ...string) map[string]bool {
	m := make(map[string]bool, len(names))
	for _, n := range names {
		m[n] = true
	}
	return m
}

// guard admits a text that is exactly one SELECT over the named relations and whose
// functions compute from their arguments only. It returns the text without a semicolon
// at its end, so that it can stand inside another statement. The lock on the instance is
// the second wall behind it.
func guard(ctx context.Context, conn *sql.Conn, text string, relations []string) (string, error) {
	if strings.IndexByte(text, 0) >= 0 || !utf8.ValidString(text) {
		return "", mv.ErrInput("the query is not valid UTF-8 text")
	}
	raw, err := parse(ctx, conn, text)
	if err != nil {
		return "", queryError(text, err)
	}
	dec := json.NewDecoder(strings.NewReader(raw))
	dec.UseNumber()
	var doc struct {
		Error      bool   `json:"error"`
		Type       string `json:"error_type"`
		Message    string `json:"error_message"`
		Position   string `json:"position"`
		Statements []any  `json:"statements"`
	}
	if err := dec.Decode(&doc); err != nil {
		return "", catalog.Errorf(catalog.KindInternal, "DuckDB's parse of the query cannot be read").Because(err)
	}
	switch {
	case doc.Error && doc.Type == "parser":
		return "", mv.ErrInput("%s%s", position(text, doc.Position), tidy(doc.Message))
	case doc.Error:
		return "", mv.ErrInput("only a single SELECT is accepted: %s", tidy(doc.Message))
	case len(doc.Statements) != 1:
		return "", mv.ErrInput("only a single SELECT is accepted, the text has %d statements", len(doc.Statements))
	}
	g := &guardWalk{text: text}
	scope := make(map[string]bool, len(relations))
	for _, r := range relations {
		scope[strings.ToLower(r)] = true
	}
	if err := g.walk(doc.Statements[0], scope); err != nil {
		return "", err
	}
	return unterminated(ctx, conn, text, raw)
}

func parse(ctx context.Context, conn *sql.Conn, text string) (tree string, err error) {
	err = conn.QueryRowContext(ctx, "SELECT json_serialize_sql(?::VARCHAR)::VARCHAR", text).Scan(&tree)
	return tree, err
}

// unterminated blanks the semicolons that end text. Whether one ends the statement or is
// part of a literal, DuckDB's own parser says: without it the tree must stay the same.
func unterminated(ctx context.Context, conn *sql.Conn, text, tree string) (string, error) {
	for at := strings.LastIndexByte(text, ';'); at >= 0; at = strings.LastIndexByte(text[:at], ';') {
		shorter := text[:at] + " " + text[at+1:]
		got, err := parse(ctx, conn, shorter)
		if err != nil {
			return "", queryError(text, err)
		}
		if got != tree {
			break
		}
		text = shorter
	}
	return text, nil
}

// guardWalk visits DuckDB's parse tree. A scope is the set of names that a table
// reference may use: the relations and the CTEs visible there.
type guardWalk struct{ text string }

func (g *guardWalk) walk(v any, scope map[string]bool) error {
	switch n := v.(type) {
	case []any:
		for _, item := range n {
			if err := g.walk(item, scope); err != nil {
				return err
			}
		}
	case map[string]any:
		return g.object(n, scope)
	}
	return nil
}

func (g *guardWalk) object(n map[string]any, scope map[string]bool) error {
	if err := g.check(n, scope); err != nil {
		return err
	}
	if n["class"] == "CONSTANT" {
		return nil // its value is the user's own data
	}
	scope, err := g.ctes(n, scope)
	if err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(n)) {
		if key == "cte_map" || key == "type_info" {
			continue
		}
		in := scope
		if key == "right" && n["type"] == "RECURSIVE_CTE_NODE" {
			in = with(scope, str(n["cte_name"]))
		}
		if err := g.walk(n[key], in); err != nil {
			return err
		}
	}
	return nil
}

// ctes checks the bodies of n's CTEs, each in the scope of those before it, and returns
// the scope that n's own clauses see.
func (g *guardWalk) ctes(n map[string]any, scope map[string]bool) (map[string]bool, error) {
	cteMap, _ := n["cte_map"].(map[string]any)
	entries, _ := cteMap["map"].([]any)
	for _, e := range entries {
		entry, _ := e.(map[string]any)
		name := str(entry["key"])
		if err := g.walk(entry["value"], scope); err != nil {
			return nil, err
		}
		scope = with(scope, name)
	}
	return scope, nil
}

func (g *guardWalk) check(n map[string]any, scope map[string]bool) error {
	typ := str(n["type"])
	_, isExpr := n["class"]
	_, isType := n["id"]
	if fn, ok := n["function_name"]; ok {
		if err := g.function(n, str(fn)); err != nil {
			return err
		}
	}
	switch {
	case n["class"] == "PARAMETER":
		return mv.ErrInput("%sparameters are not accepted: write the value into the query", g.at(n))
	case isExpr || isType || typ == "" || strings.HasSuffix(typ, "_TYPE_INFO"):
		return nil
	case typ == "BASE_TABLE":
		return g.table(n, scope)
	case typ == "TABLE_FUNCTION":
		fn, _ := n["function"].(map[string]any)
		if name := strings.ToLower(str(fn["function_name"])); !tableFunctions[name] {
			return mv.ErrInput("%stable function %s is not accepted: a query may read its source tables only", g.at(n), str(fn["function_name"]))
		}
	case !plainNodes[typ]:
		if _, plain := n["is_null"]; plain {
			return nil // a literal inside PIVOT ... IN
		}
		return mv.ErrInput("%sconstruct %s is not accepted in a query", g.at(n), typ)
	}
	return nil
}

func (g *guardWalk) table(n map[string]any, scope map[string]bool) error {
	name := str(n["table_name"])
	if str(n["schema_name"]) != "" || str(n["catalog_name"]) != "" {
		return mv.ErrInput("%stable %s.%s is not a source of this query", g.at(n), str(n["schema_name"]), name)
	}
	if n["at_clause"] != nil {
		return mv.ErrInput("%stime travel (AT) is not accepted: the catalog pins the sources", g.at(n))
	}
	if !scope[strings.ToLower(name)] {
		return mv.ErrInput("%stable %s is not a source of this query", g.at(n), quoteIdent(name))
	}
	return nil
}

func (g *guardWalk) function(n map[string]any, name string) error {
	lower := strings.ToLower(name)
	refused := refusedFunctions[lower]
	for _, p := range refusedPrefixes {
		refused = refused || strings.HasPrefix(lower, p) && lower != "pg_typeof" && lower != "pg_size_pretty"
	}
	if refused {
		return mv.ErrInput("%sfunction %s is not accepted: it reads or changes something outside the query's sources", g.at(n), name)
	}
	return nil
}

func (g *guardWalk) at(n map[string]any) string {
	num, _ := n["query_location"].(json.Number)
	return position(g.text, num.String())
}

func str(v any) string {
	s, _ := v.(string)
	return s
}

func with(scope map[string]bool, name string) map[string]bool {
	out := maps.Clone(scope)
	out[strings.ToLower(name)] = true
	return out
}

// position renders a byte offset as "line 3, column 14: ", or as nothing if DuckDB did
// not give one.
func position(text, offset string) string {
	var at int
	if _, err := fmt.Sscanf(offset, "%d", &at); err != nil || at < 0 || at > len(text) {
		return ""
	}
	before := []byte(text[:at])
	line := bytes.Count(before, []byte("\n")) + 1
	last := before[bytes.LastIndexByte(before, '\n')+1:]
	return fmt.Sprintf("line %d, column %d: ", line, utf8.RuneCount(last)+1)
}
