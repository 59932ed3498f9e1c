package sqltext

import "strings"

// tableList reads the comma-separated tables of FROM; a comma is a cross join.
func (p *parser) tableList() []tableNode {
	var list []tableNode
	for {
		list = append(list, p.joined())
		if !p.acceptOp(",") {
			return list
		}
		if p.d == DuckDB && (p.tok().Kind == TokenEnd || p.isOp(0, ")") || tableStopWords[p.word(0)] && !p.isWord("LATERAL") && !p.isWord("FROM") && !p.isWord("PIVOT") && !p.isWord("UNPIVOT")) {
			return list
		}
	}
}

func (p *parser) tablePrimary() tableNode {
	first := p.pos
	if p.d == DuckDB && p.isName(0) && p.isOp(1, ":") {
		alias := p.name()
		p.pos++
		return p.prefixAlias(first, alias)
	}
	lateral := p.accept("LATERAL")
	switch {
	case p.isOp(0, "("):
		return p.bracketTable(first, lateral)
	case p.isWord("VALUES"):
		v := p.pos
		q := &queryNode{body: p.values()}
		q.span = p.from(v)
		return p.derived(first, q, lateral)
	case p.isWord("TABLE") && p.isOp(1, "("):
		return p.tableFunction(first, lateral)
	case p.tok().Kind == TokenString && p.d == DuckDB:
		return p.fileTable()
	case !p.isName(0) || tableStopWords[p.word(0)]:
		p.unexpected("a table")
	}
	n := 1
	for p.isOp(n, ".") && p.isName(n+1) {
		n += 2
	}
	if w := p.word(0); n == 1 && p.d == DuckDB && duckReserved[w] && w != "MAP" && w != "STRUCT" && !p.isOp(1, "(") {
		p.unexpected("a table") // DESCRIBE t, SHOW TABLES
	}
	if p.isOp(n, "(") {
		f := &functionTable{lateral: lateral, call: p.primary()}
		p.accept("WITH", "ORDINALITY")
		p.accept("WITH", "OFFSET")
		f.sampled, f.as, _ = p.tableTail()
		f.span = p.from(first)
		return f
	}
	return p.tableName()
}

// prefixAlias reads DuckDB's alias: table.
func (p *parser) prefixAlias(first int, alias ident) tableNode {
	t := p.tablePrimary()
	switch t := t.(type) {
	case *tableName:
		// The alias stands before the name, so a replacement has to write it again.
		t.as.alias, t.span = alias, p.from(first)
		t.aliasText = span{}
	case *derivedTable:
		t.as.alias = alias
	case *functionTable:
		t.as.alias = alias
	}
	return t
}

// bracketTable reads a subquery or joined tables in brackets.
func (p *parser) bracketTable(first int, lateral bool) tableNode {
	if q, next := p.bracketQuery(); q != nil {
		p.pos = next
		return p.derived(first, q, lateral)
	}
	end := p.pair[p.pos]
	var t tableNode
	if p.attempt(func() {
		p.pos++
		t = p.joined()
		p.expectOp(")")
	}) {
		if as := p.alias(); as.alias.name != "" {
			return &opaqueTable{inner: t, part: &expr{kind: exOpaque, span: p.from(first), reason: "alias of joined tables"}}
		}
		return t
	}
	p.pos++
	part := p.opaqueRest(end)
	p.pos = end + 1
	p.alias()
	part.span, part.reason, part.tables = p.from(first), "table expression "+p.describe(first+1), true
	return &opaqueTable{part: part}
}

func (p *parser) derived(first int, q *queryNode, lateral bool) tableNode {
	t := &derivedTable{query: q, lateral: lateral}
	t.sampled, t.as, _ = p.tableTail()
	t.span = p.from(first)
	return t
}

// tableFunction reads TABLE(f(…)).
func (p *parser) tableFunction(first int, lateral bool) tableNode {
	p.pos++
	end := p.pair[p.pos]
	f := &functionTable{lateral: lateral}
	if !p.attempt(func() {
		p.pos++
		f.call = p.primary()
		if f.call.kind != exCall {
			p.unexpected("a table function")
		}
		p.expectOp(")")
	}) {
		p.pos++
		part := p.opaqueRest(end)
		p.pos = end + 1
		part.span, part.reason, part.tables = p.from(first), "TABLE(…)", true
		p.alias()
		return &opaqueTable{part: part}
	}
	f.sampled, f.as, _ = p.tableTail()
	f.span = p.from(first)
	return f
}

func (p *parser) fileTable() tableNode {
	first := p.pos
	t := p.tok()
	p.pos++
	n := &tableName{file: true, parts: []ident{{name: t.Value, quoted: true, span: span{t.Start, t.End}}}}
	n.sampled, n.as, n.aliasText = p.tableTail()
	n.span = p.from(first)
	return n
}

// fileNames are endings and prefixes by which engines take a name for a file.
var fileNames = []string{".parquet", ".csv", ".json", ".ndjson", ".jsonl", ".tsv", ".orc", ".avro", ".arrow", ".db", ".duckdb", ".txt", ".gz", ".zst", ".xlsx", ".blob"}

// fileFormats are the first parts by which Spark reads a file: parquet.`/path`.
var fileFormats = words(`parquet csv json orc avro text binaryfile delta`)

func looksLikeFile(d Dialect, parts []ident) bool {
	last := parts[len(parts)-1]
	if strings.ContainsAny(last.name, "/*\\") || strings.Contains(last.name, "://") {
		return true
	}
	if d == Spark && len(parts) == 2 && fileFormats[strings.ToLower(parts[0].name)] {
		return true
	}
	name := "." + strings.ToLower(last.name)
	if last.quoted {
		name = strings.ToLower(last.name)
	}
	for _, e := range fileNames {
		if d == DuckDB && strings.HasSuffix(name, e) && (last.quoted || len(parts) > 1) {
			return true
		}
	}
	return false
}

func (p *parser) tableName() *tableName {
	first := p.pos
	n := &tableName{parts: []ident{p.name()}}
	for p.acceptOp(".") {
		n.parts = append(n.parts, p.name())
	}
	n.file = looksLikeFile(p.d, n.parts)
	n.timeTravel = p.timeTravel()
	n.sampled, n.as, n.aliasText = p.tableTail()
	if !n.timeTravel {
		n.timeTravel = p.timeTravel()
	}
	n.span = p.from(first)
	return n
}

// timeTravel reads a clause that picks a version of a table.
func (p *parser) timeTravel() bool {
	switch {
	case p.d == DuckDB && p.isWord("AT") && p.isOp(1, "("):
		p.pos = p.pair[p.pos+1] + 1
		return true
	case p.d == DuckDB:
		return false
	case p.accept("FOR", "VERSION", "AS", "OF"), p.accept("FOR", "TIMESTAMP", "AS", "OF"),
		p.accept("FOR", "SYSTEM_VERSION", "AS", "OF"), p.accept("FOR", "SYSTEM_TIME", "AS", "OF"),
		p.d == Spark && (p.accept("VERSION", "AS", "OF") || p.accept("TIMESTAMP", "AS", "OF") ||
			p.accept("SYSTEM_VERSION", "AS", "OF") || p.accept("SYSTEM_TIME", "AS", "OF")):
		p.slot()
		return true
	}
	return false
}

// tableTail reads TABLESAMPLE and the alias, which dialects write in either order.
func (p *parser) tableTail() (sampled bool, as aliasClause, text span) {
	sampled = p.sample()
	first := p.pos
	as = p.alias()
	if p.pos > first {
		text = p.from(first)
	}
	return p.sample() || sampled, as, text
}

func (p *parser) sample() bool {
	if !p.accept("TABLESAMPLE") {
		return false
	}
	if p.isName(0) {
		p.pos++
	}
	if p.isOp(0, "(") {
		p.pos = p.pair[p.pos] + 1
	} else {
		p.pos++
		p.acceptOp("%")
	}
	if p.accept("REPEATABLE") && p.isOp(0, "(") {
		p.pos = p.pair[p.pos] + 1
	}
	return true
}

func (p *parser) alias() aliasClause {
	var c aliasClause
	switch {
	case p.accept("AS"):
		if t := p.tok(); t.Kind == TokenString && p.d == DuckDB {
			p.pos++
			c.alias = ident{name: t.Value, quoted: true, span: span{t.Start, t.End}}
			break
		}
		c.alias = p.name()
	case p.tok().Kind == TokenQuoted, p.tok().Kind == TokenWord && !p.stopsTableAlias():
		c.alias = p.name()
	default:
		return c
	}
	if p.isOp(0, "(") {
		list := p.pos
		if !p.attempt(func() { c.columns = p.nameList() }) {
			p.pos = list
		}
	}
	return c
}

func (p *parser) stopsTableAlias() bool {
	w := p.word(0)
	switch {
	case tableStopWords[w], p.d == Spark && sparkStopWords[w]:
		return true
	case p.d == DuckDB:
		return duckReserved[w] && w != "MAP" && w != "STRUCT"
	case p.d == Spark && (w == "VERSION" || w == "TIMESTAMP" || w == "SYSTEM_VERSION" || w == "SYSTEM_TIME"):
		return p.word(1) == "AS" && p.word(2) == "OF"
	}
	return w == "MATCH_RECOGNIZE" && p.isOp(1, "(")
}

// tableSuffix reads what can follow a table: PIVOT, UNPIVOT, MATCH_RECOGNIZE, LATERAL VIEW.
func (p *parser) tableSuffix(t tableNode) tableNode {
	for {
		first := p.pos
		switch {
		case p.d == Spark && p.isWord("LATERAL", "VIEW"):
			t = p.lateralView(t)
		case (p.isWord("PIVOT") || p.isWord("UNPIVOT")) && !p.isOp(0, "("), p.isWord("MATCH_RECOGNIZE") && p.isOp(1, "("):
			reason := p.word(0)
			p.pos++
			for p.isName(0) && !p.isOp(0, "(") { // INCLUDE NULLS
				p.pos++
			}
			if !p.isOp(0, "(") {
				p.unexpected(`"("`)
			}
			part := p.opaque(reason, func() bool { return !p.isOp(0, "(") })
			p.alias()
			part.span = p.from(first)
			t = &opaqueTable{inner: t, part: part}
		default:
			return t
		}
	}
}

// lateralView reads Spark's LATERAL VIEW [OUTER] f(x) [alias] [AS a, b].
func (p *parser) lateralView(left tableNode) tableNode {
	p.pos += 2
	p.accept("OUTER")
	v := &viewTable{left: left, call: p.primary()}
	if p.isName(0) && !p.isWord("AS") && !p.stopsTableAlias() {
		v.as.alias = p.name()
	}
	if p.accept("AS") {
		for {
			v.as.columns = append(v.as.columns, p.name())
			if !p.acceptOp(",") {
				break
			}
		}
	}
	return v
}
