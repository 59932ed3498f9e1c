package sqltext_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/mv/sqltext"
)

// corpusQuery is one query of testdata.
type corpusQuery struct {
	name    string
	dialect sqltext.Dialect
	text    string
}

// corpus reads testdata/*.sql. A file named after a dialect is written in it, all others
// in DuckDB's.
func corpus(t testing.TB) []corpusQuery {
	t.Helper()
	files, err := filepath.Glob("testdata/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	var out []corpusQuery
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		base := strings.TrimSuffix(filepath.Base(f), ".sql")
		d := sqltext.Dialect(base)
		if !d.Known() {
			d = sqltext.DuckDB
		}
		for _, part := range strings.Split("\n"+string(b), "\n-- @ ")[1:] {
			name, text, _ := strings.Cut(part, "\n")
			out = append(out, corpusQuery{base + "/" + name, d, strings.TrimSpace(text)})
		}
	}
	if len(out) < 150 {
		t.Fatalf("corpus has %d queries, want at least 150", len(out))
	}
	return out
}

// opaque names the queries of the corpus that the package cannot read in full.
var opaque = map[string]bool{
	"shapes/pivot in from":                 true,
	"shapes/unpivot in from":               true,
	"trino/match recognize":                true,
	"trino/json value":                     true,
	"trino/table function with a table":    true,
	"spark/variant path":                   true,
	"spark/generator with several aliases": true,
}

func TestParse_corpus(t *testing.T) {
	t.Parallel()
	for _, c := range corpus(t) {
		q, err := sqltext.Parse(c.dialect, c.text)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got := len(q.Opaque()) > 0; got != opaque[c.name] {
			t.Errorf("%s: opaque parts = %v, want any: %v", c.name, q.Opaque(), opaque[c.name])
		}
	}
}

func TestLex_tokensTileTheText(t *testing.T) {
	t.Parallel()
	for _, c := range corpus(t) {
		checkTiling(t, c.dialect, c.text)
	}
}

func checkTiling(t *testing.T, d sqltext.Dialect, text string) {
	t.Helper()
	toks, err := sqltext.Lex(d, text)
	if err != nil {
		return
	}
	at := 0
	for i, tok := range toks {
		if tok.Start != at || tok.End < tok.Start || (tok.End == tok.Start) != (i == len(toks)-1) {
			t.Fatalf("%q: token %d covers bytes %d to %d, want it to start at %d", text, i, tok.Start, tok.End, at)
		}
		at = tok.End
	}
	if at != len(text) || toks[len(toks)-1].Kind != sqltext.TokenEnd {
		t.Fatalf("%q: tokens end at byte %d of %d", text, at, len(text))
	}
}

func TestRewrite_withoutEditsIsIdentity(t *testing.T) {
	t.Parallel()
	for _, c := range corpus(t) {
		q, err := sqltext.Parse(c.dialect, c.text)
		if err != nil {
			continue
		}
		got, err := sqltext.Rewrite(q, nil)
		if err != nil || got != q.Text {
			t.Errorf("%s: Rewrite(nil) = %q, %v", c.name, got, err)
		}
		if !strings.HasPrefix(c.text, q.Text) {
			t.Errorf("%s: the text %q is no prefix of what was parsed", c.name, q.Text)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, c := range corpus(f) {
		f.Add(string(c.dialect), c.text)
	}
	for _, s := range []string{"", "(", "'", `"`, "$$", "/*", "SELECT", "SELECT (((", "SELECT a FROM", "WITH", "SELECT 1;;", "SELECT [1", "E'\\", "U&'\\", "$1$", "SELECT a b c d", "0x", "1e"} {
		f.Add("duckdb", s)
		f.Add("trino", s)
		f.Add("spark", s)
	}
	f.Fuzz(func(t *testing.T, dialect, text string) {
		d := sqltext.Dialect(dialect)
		checkTiling(t, d, text)
		q, err := sqltext.Parse(d, text)
		if err != nil {
			return
		}
		if got, err := sqltext.Rewrite(q, nil); err != nil || got != q.Text {
			t.Errorf("Rewrite(nil) = %q, %v, want %q", got, err, q.Text)
		}
		at := -1
		for _, ref := range q.Tables() {
			if ref.Start < at || ref.End <= ref.Start || ref.End > len(q.Text) {
				t.Errorf("reference %v covers bytes %d to %d of %d", ref, ref.Start, ref.End, len(q.Text))
			}
			at = ref.Start
		}
		// Whatever the text, the analyses must not panic.
		q.Functions()
		q.Outputs()
		q.GroupKeys()
		q.Nondeterministic()
		opt := sqltext.Options{Columns: tradeColumns, TimeZone: "UTC"}
		_, _ = sqltext.Closed(q, opt)
		_ = sqltext.CheckSame(q, opt)
		_, _ = sqltext.Normalise(q)
		for i := range q.Tables() {
			out, err := sqltext.RewriteTables(q, []sqltext.Replacement{{Ref: i, Name: []string{"twin~1"}, Predicate: "1 = 1"}})
			if err == nil {
				if _, err := sqltext.Parse(d, out); err != nil {
					t.Errorf("rewritten %q does not parse: %v", out, err)
				}
			}
		}
	})
}

// tradeColumns gives every table the same columns.
func tradeColumns(sqltext.TableRef) []sqltext.Column {
	return []sqltext.Column{{Name: "ts", Type: "timestamp"}, {Name: "d", Type: "date"}, {Name: "symbol", Type: "string"}, {Name: "price", Type: "double"}, {Name: "qty", Type: "long"}}
}
