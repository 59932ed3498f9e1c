package sqltext

import (
	"strings"
)

// maxDepth bounds the nesting of a text.
const maxDepth = 200

// Query is one parsed query.
type Query struct {
	Dialect Dialect
	Text    string // without a trailing semicolon

	words []ident // words that were read as names
	root  *queryNode
	refs  []*tableName // real tables, in order of the text
}

// Parse reads one query. The error is a [*SyntaxError]: a text that is empty, that holds
// several statements or another kind of statement (which is named), or that the dialect
// cannot read at all.
func Parse(d Dialect, text string) (*Query, error) {
	if !d.Known() {
		return nil, syntaxError(text, 0, "unknown SQL dialect %q (use duckdb, trino or spark)", string(d))
	}
	all, err := Lex(d, text)
	if err != nil {
		return nil, err
	}
	p := &parser{d: d, text: text, memo: map[int]memoised{}}
	for _, t := range all {
		if t.Kind != TokenSpace && t.Kind != TokenComment {
			p.toks = append(p.toks, t)
		}
	}
	if err := p.statement(); err != nil {
		return nil, err
	}
	q := &Query{Dialect: d, Text: p.text}
	if serr := p.run(func() { q.root = p.topQuery() }); serr != nil {
		return nil, serr
	}
	q.words = p.names
	resolve(q)
	return q, nil
}

// parser holds the position in the significant tokens.
type parser struct {
	d     Dialect
	text  string
	toks  []Token
	pair  []int // for an opening bracket, the index of its closing one
	pos   int
	depth int
	names []ident
	memo  map[int]memoised
}

// memoised is the outcome of reading a query at an opening bracket: brackets are tried
// as a query first, and trying again at each level of nesting would take exponential time.
type memoised struct {
	query *queryNode
	end   int
}

// failure is how the parser gives up a construct; it never leaves the package.
type failure struct {
	err  *SyntaxError
	hard bool // no other reading can help
}

// run calls f and returns the error it failed with.
func (p *parser) run(f func()) (err *SyntaxError) {
	defer func() {
		if r := recover(); r != nil {
			fail, ok := r.(failure)
			if !ok {
				panic(r)
			}
			err = fail.err
		}
	}()
	f()
	return nil
}

// attempt calls f; if it fails, the position is what it was before.
func (p *parser) attempt(f func()) (ok bool) {
	pos, depth := p.pos, p.depth
	defer func() {
		if r := recover(); r != nil {
			fail, is := r.(failure)
			if !is || fail.hard {
				panic(r)
			}
			p.pos, p.depth, ok = pos, depth, false
		}
	}()
	f()
	return true
}

func (p *parser) fail(format string, args ...any) {
	panic(failure{err: syntaxError(p.text, p.tok().Start, format, args...)})
}

// unexpected fails at the current token.
func (p *parser) unexpected(wanted string) {
	p.fail("expected %s, found %s", wanted, p.describe(p.pos))
}

// describe names a token for a person.
func (p *parser) describe(i int) string {
	t := p.toks[i]
	if t.Kind == TokenEnd {
		return "the end of the text"
	}
	s := p.text[t.Start:t.End]
	if r := []rune(s); len(r) > 40 {
		s = string(r[:40]) + "…"
	}
	return `"` + s + `"`
}

func (p *parser) enter() {
	p.depth++
	if p.depth > maxDepth {
		panic(failure{err: syntaxError(p.text, p.tok().Start, "nested too deeply"), hard: true})
	}
}

func (p *parser) leave() { p.depth-- }

func (p *parser) tok() Token { return p.toks[p.pos] }

func (p *parser) peek(n int) Token { return p.toks[min(p.pos+n, len(p.toks)-1)] }

// word returns the upper-case text of the token n ahead if it is an unquoted word.
func (p *parser) word(n int) string {
	if t := p.peek(n); t.Kind == TokenWord {
		return strings.ToUpper(t.Value)
	}
	return ""
}

// isWord reports whether the next words are ws.
func (p *parser) isWord(ws ...string) bool {
	for i, w := range ws {
		if p.word(i) != w {
			return false
		}
	}
	return true
}

// accept consumes the words ws if they come next.
func (p *parser) accept(ws ...string) bool {
	if !p.isWord(ws...) {
		return false
	}
	p.pos += len(ws)
	return true
}

func (p *parser) expect(ws ...string) {
	if !p.accept(ws...) {
		p.unexpected(strings.Join(ws, " "))
	}
}

func (p *parser) isOp(n int, op string) bool {
	t := p.peek(n)
	return t.Kind == TokenOp && t.Value == op
}

func (p *parser) acceptOp(op string) bool {
	if !p.isOp(0, op) {
		return false
	}
	p.pos++
	return true
}

func (p *parser) expectOp(op string) {
	if !p.acceptOp(op) {
		p.unexpected(`"` + op + `"`)
	}
}

// from returns the span from a token index to the last consumed token.
func (p *parser) from(first int) span {
	s := span{start: p.toks[first].Start}
	s.end = s.start
	if p.pos > first {
		s.end = p.toks[p.pos-1].End
	}
	return s
}

// isName reports whether the token n ahead can be an identifier.
func (p *parser) isName(n int) bool {
	k := p.peek(n).Kind
	return k == TokenWord || k == TokenQuoted
}

// name reads an identifier.
func (p *parser) name() ident {
	t := p.tok()
	if !p.isName(0) {
		p.unexpected("a name")
	}
	p.pos++
	id := ident{name: t.Value, quoted: t.Kind == TokenQuoted, span: span{t.Start, t.End}}
	if !id.quoted {
		p.names = append(p.names, id)
	}
	return id
}

// otherStatements are the first words of statements that are no query. The value is the
// statement's name where it is not the word itself.
var otherStatements = words(`INSERT UPDATE DELETE MERGE COPY CREATE DROP ALTER ATTACH DETACH SET RESET PRAGMA CALL
	INSTALL LOAD EXPORT IMPORT USE VACUUM ANALYZE EXPLAIN DESCRIBE DESC SHOW SUMMARIZE CHECKPOINT FORCE BEGIN
	START COMMIT ROLLBACK ABORT PREPARE EXECUTE DEALLOCATE GRANT REVOKE DENY REFRESH REPLACE TRUNCATE COMMENT
	ADD CACHE UNCACHE CLEAR MSCK REPAIR LIST UNLOAD LOCK PIVOT UNPIVOT PIVOT_WIDER PIVOT_LONGER UPSERT DECLARE
	OPTIMIZE UNSET RELOAD`)

// statement checks what can be checked before parsing: brackets, the number of
// statements and the kind of the first. It strips a trailing semicolon.
func (p *parser) statement() error {
	if err := p.brackets(); err != nil {
		return err
	}
	for i, t := range p.toks {
		if t.Kind != TokenOp || t.Value != ";" {
			continue
		}
		for j := i; ; j++ {
			if next := p.toks[j]; next.Kind == TokenEnd {
				break
			} else if next.Kind != TokenOp || next.Value != ";" {
				return syntaxError(p.text, next.Start, "one query is allowed, but another statement starts at %s", p.describe(j))
			}
		}
		p.text = strings.TrimRight(p.text[:t.Start], " \t\r\n")
		p.toks = append(p.toks[:i:i], Token{Kind: TokenEnd, Start: len(p.text), End: len(p.text)})
		break
	}
	first := 0
	for p.toks[first].Kind == TokenOp && p.toks[first].Value == "(" {
		first++
	}
	t := p.toks[first]
	if t.Kind == TokenEnd {
		return syntaxError(p.text, t.Start, "the text holds no query")
	}
	if p.startsQuery(first) {
		return nil
	}
	if up := strings.ToUpper(t.Value); t.Kind == TokenWord && otherStatements[up] {
		return syntaxError(p.text, t.Start, "a view is one query; %s statements are refused", up)
	}
	return syntaxError(p.text, t.Start, "a query starts with SELECT, WITH, VALUES or a bracket, not with %s", p.describe(first))
}

// brackets matches the brackets of the text.
func (p *parser) brackets() error {
	closing := map[string]string{"(": ")", "[": "]", "{": "}"}
	p.pair = make([]int, len(p.toks))
	var open []int
	for i, t := range p.toks {
		if t.Kind != TokenOp {
			continue
		}
		switch t.Value {
		case "(", "[", "{":
			open = append(open, i)
		case ")", "]", "}":
			if len(open) == 0 || closing[p.toks[open[len(open)-1]].Value] != t.Value {
				return syntaxError(p.text, t.Start, "%q closes nothing", t.Value)
			}
			p.pair[open[len(open)-1]] = i
			open = open[:len(open)-1]
		case ";":
			if len(open) > 0 {
				return syntaxError(p.text, t.Start, "%q inside brackets", t.Value)
			}
		}
	}
	if len(open) > 0 {
		t := p.toks[open[len(open)-1]]
		return syntaxError(p.text, t.Start, "%q is not closed", t.Value)
	}
	return nil
}

// startsQuery reports whether the word at a token index starts a query.
func (p *parser) startsQuery(i int) bool {
	t := p.toks[i]
	if t.Kind != TokenWord {
		return false
	}
	switch strings.ToUpper(t.Value) {
	case "SELECT", "WITH":
		return true
	case "VALUES":
		return p.toks[i+1].Value == "(" || p.d != DuckDB
	case "FROM":
		return p.d != Trino
	case "TABLE":
		return p.toks[i+1].Kind == TokenWord || p.toks[i+1].Kind == TokenQuoted
	}
	return false
}
