package sqltext

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// TokenKind is the kind of a [Token].
type TokenKind uint8

// The kinds of token.
const (
	TokenEnd     TokenKind = iota // end of the text
	TokenSpace                    // white space
	TokenComment                  // comment
	TokenWord                     // keyword or unquoted identifier
	TokenQuoted                   // quoted identifier
	TokenString                   // string or binary literal
	TokenNumber                   // number
	TokenOp                       // operator or punctuation
	TokenParam                    // parameter
)

// Token is a piece of the text. The tokens that [Lex] returns tile the text.
type Token struct {
	Kind       TokenKind
	Start, End int    // byte offsets
	Value      string // word and operator as written; identifier and string without quotes and escapes
	Prefix     string // of a string or quoted identifier, upper case: "", "E", "U&", "X", "B", "R", "$", `"`
}

// lexer cuts a text into tokens.
type lexer struct {
	d    Dialect
	text string
	pos  int
}

// Lex cuts text into tokens, white space and comments included, and ends with a
// [TokenEnd]. It fails on a literal, identifier or comment that does not end and on a
// byte that no token of the dialect can start with.
func Lex(d Dialect, text string) ([]Token, error) {
	l := &lexer{d: d, text: text}
	var toks []Token
	for l.pos < len(text) {
		start := l.pos
		t, msg := l.next()
		if msg != "" {
			return nil, syntaxError(text, start, "%s", msg)
		}
		t.Start, t.End = start, l.pos
		if t.Kind == TokenWord || t.Kind == TokenOp || t.Kind == TokenNumber {
			t.Value = text[t.Start:t.End]
		}
		toks = append(toks, t)
	}
	return append(toks, Token{Kind: TokenEnd, Start: len(text), End: len(text)}), nil
}

func (l *lexer) at(i int) byte {
	if l.pos+i < len(l.text) {
		return l.text[l.pos+i]
	}
	return 0
}

// next reads one token and returns a message if it cannot.
func (l *lexer) next() (Token, string) {
	c := l.at(0)
	switch {
	case c == '-' && l.at(1) == '-':
		if i := strings.IndexAny(l.text[l.pos:], "\n\r"); i >= 0 {
			l.pos += i
		} else {
			l.pos = len(l.text)
		}
		return Token{Kind: TokenComment}, ""
	case c == '/' && l.at(1) == '*':
		return l.blockComment()
	case c == '\'':
		return l.quoted("", 0)
	case c == '"':
		return l.quoted("", 0)
	case c == '`' && l.d == Spark:
		return l.quoted("", 0)
	case isDigit(c), c == '.' && isDigit(l.at(1)):
		return l.number(), ""
	case c == '$' && l.d == DuckDB:
		return l.dollar()
	case c == '?':
		l.pos++
		return Token{Kind: TokenParam}, ""
	}
	r, size := utf8.DecodeRuneInString(l.text[l.pos:])
	if unicode.IsSpace(r) || r == '\ufeff' {
		for size > 0 && (unicode.IsSpace(r) || r == '\ufeff') {
			l.pos += size
			r, size = utf8.DecodeRuneInString(l.text[l.pos:])
		}
		return Token{Kind: TokenSpace}, ""
	}
	if wordStart(r, size) {
		return l.word()
	}
	return l.operator()
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func wordStart(r rune, size int) bool {
	return r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= utf8.RuneSelf && (size > 1 || r == utf8.RuneError && size == 1)
}

// word reads a word, or a literal that starts with one (E'…', U&'…', X'…').
func (l *lexer) word() (Token, string) {
	up := strings.ToUpper(l.text[l.pos:min(l.pos+2, len(l.text))])
	if l.d == Trino || l.d == DuckDB {
		if up == "U&" && (l.at(2) == '\'' || l.at(2) == '"') {
			return l.quoted("U&", 2)
		}
	}
	if l.at(1) == '\'' || l.d == Spark && l.at(1) == '"' {
		switch c := up[:1]; {
		case c == "X", l.d == DuckDB && (c == "E" || c == "B"), l.d == Spark && c == "R":
			return l.quoted(c, 1)
		}
	}
	for l.pos < len(l.text) {
		r, size := utf8.DecodeRuneInString(l.text[l.pos:])
		if !wordStart(r, size) && !isDigit(byte(min(r, 127))) && (r != '$' || l.d != DuckDB) || unicode.IsSpace(r) {
			break
		}
		l.pos += size
	}
	return Token{Kind: TokenWord}, ""
}

// quoted reads a quoted token whose opening quote is skip bytes ahead.
func (l *lexer) quoted(prefix string, skip int) (Token, string) {
	l.pos += skip
	q := l.at(0)
	l.pos++
	t := Token{Kind: TokenString, Prefix: prefix}
	if q == '`' || q == '"' && l.d != Spark {
		t.Kind = TokenQuoted
	} else if q == '"' && prefix == "" {
		t.Prefix = `"`
	}
	backslash := t.Kind == TokenString && (prefix == "E" || l.d == Spark && prefix != "R" && prefix != "X")
	var b strings.Builder
	for l.pos < len(l.text) {
		c := l.at(0)
		if c == '\\' && backslash {
			l.escape(&b)
			continue
		}
		l.pos++
		if c != q {
			b.WriteByte(c)
			continue
		}
		if l.at(0) != q || prefix == "R" {
			t.Value = b.String()
			if prefix == "U&" {
				l.unicode(&t)
				return t, ""
			}
			if t.Kind == TokenQuoted && t.Value == "" {
				return t, "empty quoted identifier"
			}
			return t, ""
		}
		l.pos++
		b.WriteByte(q)
	}
	if t.Kind == TokenQuoted {
		return t, "quoted identifier that does not end"
	}
	return t, "string that does not end"
}

// escape decodes one backslash sequence.
func (l *lexer) escape(b *strings.Builder) {
	l.pos++
	c := l.at(0)
	if l.pos < len(l.text) {
		l.pos++
	}
	simple := map[byte]byte{'n': '\n', 't': '\t', 'r': '\r', 'b': '\b'}
	if v, ok := simple[c]; ok {
		b.WriteByte(v)
		return
	}
	width := map[byte]int{'u': 4, 'U': 8}[c]
	if l.d == DuckDB && c == 'x' {
		width = 2
	}
	if r, ok := l.hex(width); ok {
		b.WriteRune(r)
		return
	}
	if c == '0' && l.d == Spark {
		b.WriteByte(0)
		return
	}
	if (c == '%' || c == '_') && l.d == Spark { // kept for LIKE
		b.WriteByte('\\')
	}
	b.WriteByte(c)
}

// hex reads exactly width hexadecimal digits; it reads nothing if there are fewer.
func (l *lexer) hex(width int) (rune, bool) {
	if width == 0 || l.pos+width > len(l.text) {
		return 0, false
	}
	r, ok := hexRune(l.text[l.pos : l.pos+width])
	if ok {
		l.pos += width
	}
	return r, ok
}

func hexRune(s string) (rune, bool) {
	var r rune
	for i := range len(s) {
		d := strings.IndexByte("0123456789abcdef", s[i]|0x20)
		if d < 0 || r > utf8.MaxRune {
			return 0, false
		}
		r = r<<4 | rune(d)
	}
	return r, true
}

// unicode decodes the escapes of a U& literal, a following UESCAPE clause aside: a
// literal with one keeps its escapes, and the parser makes it opaque.
func (l *lexer) unicode(t *Token) {
	var b strings.Builder
	for s := t.Value; s != ""; {
		i := strings.IndexByte(s, '\\')
		if i < 0 {
			b.WriteString(s)
			break
		}
		b.WriteString(s[:i])
		s = s[i+1:]
		if strings.HasPrefix(s, `\`) {
			b.WriteByte('\\')
			s = s[1:]
			continue
		}
		from, width := 0, 4
		if strings.HasPrefix(s, "+") {
			from, width = 1, 6
		}
		if len(s) < from+width {
			return
		}
		r, ok := hexRune(s[from : from+width])
		if !ok {
			return
		}
		b.WriteRune(r)
		s = s[from+width:]
	}
	t.Value = b.String()
}

// dollar reads a dollar-quoted string or a parameter.
func (l *lexer) dollar() (Token, string) {
	rest := l.text[l.pos:]
	end := 1
	for end < len(rest) && (isDigit(rest[end]) || rest[end] == '_' || rest[end]|0x20 >= 'a' && rest[end]|0x20 <= 'z' || rest[end] >= utf8.RuneSelf) {
		end++
	}
	if end < len(rest) && rest[end] == '$' && (end == 1 || !isDigit(rest[1])) {
		tag := rest[:end+1]
		stop := strings.Index(rest[len(tag):], tag)
		if stop < 0 {
			return Token{}, "dollar-quoted string that does not end"
		}
		l.pos += stop + 2*len(tag)
		return Token{Kind: TokenString, Prefix: "$", Value: rest[len(tag) : len(tag)+stop]}, ""
	}
	if end == 1 {
		return l.operator()
	}
	l.pos += end
	return Token{Kind: TokenParam}, ""
}

// number reads a number with what the dialect lets follow it (exponent, suffix). In
// Spark a word may start with digits.
func (l *lexer) number() Token {
	start := l.pos
	digits := func() {
		for isDigit(l.at(0)) || l.at(0) == '_' && isDigit(l.at(1)) {
			l.pos++
		}
	}
	letter := func(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' || c >= utf8.RuneSelf }
	if l.at(0) == '0' && strings.IndexByte("xXoObB", l.at(1)) >= 0 && l.at(1) != 0 && l.d != Spark {
		l.pos += 2
		for isDigit(l.at(0)) || letter(l.at(0)) {
			l.pos++
		}
		return Token{Kind: TokenNumber}
	}
	digits()
	if l.at(0) == '.' && l.at(1) != '.' {
		l.pos++
		digits()
	}
	if l.at(0)|0x20 == 'e' {
		i := 1
		if l.at(i) == '+' || l.at(i) == '-' {
			i++
		}
		if isDigit(l.at(i)) {
			l.pos += i
			digits()
		}
	}
	if l.d != Spark || !letter(l.at(0)) {
		return Token{Kind: TokenNumber}
	}
	suffix := l.pos
	for letter(l.at(0)) || isDigit(l.at(0)) {
		l.pos++
	}
	switch strings.ToUpper(l.text[suffix:l.pos]) {
	case "L", "S", "Y", "D", "F", "BD":
		return Token{Kind: TokenNumber}
	}
	if strings.ContainsAny(l.text[start:suffix], ".") {
		l.pos = suffix
		return Token{Kind: TokenNumber}
	}
	return Token{Kind: TokenWord}
}

// blockComment reads a bracketed comment. DuckDB's and Spark's nest, Trino's do not.
func (l *lexer) blockComment() (Token, string) {
	depth := 0
	for l.pos < len(l.text) {
		switch {
		case l.at(0) == '/' && l.at(1) == '*' && (depth == 0 || l.d != Trino):
			depth++
			l.pos += 2
		case l.at(0) == '*' && l.at(1) == '/':
			depth--
			l.pos += 2
			if depth == 0 {
				return Token{Kind: TokenComment}, ""
			}
		default:
			l.pos++
		}
	}
	return Token{}, "comment that does not end"
}

// longOps are the operators of more than one character, longest first.
var longOps = []string{"<=>", "->>", ">>>", "!~~", "::", "->", "=>", ":=", "||", "<=", ">=", "<>", "!=", "==", "//", "**", "<<", ">>", "|>", "&&", "~~", "^@", "@>", "<@", "!~"}

// operator reads the longest operator at the position, or one character.
func (l *lexer) operator() (Token, string) {
	c := l.at(0)
	if c < ' ' || c == 0x7f || c == '\\' || c == '`' {
		return Token{}, "unexpected character " + quoteRune(rune(c))
	}
	for _, op := range longOps {
		if strings.HasPrefix(l.text[l.pos:], op) {
			l.pos += len(op)
			return Token{Kind: TokenOp}, ""
		}
	}
	l.pos++
	return Token{Kind: TokenOp}, ""
}
