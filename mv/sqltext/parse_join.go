package sqltext

// joinKinds maps the words before JOIN to the kind of join.
var joinKinds = []struct {
	words []string
	kind  string
}{
	{[]string{"JOIN"}, "INNER"},
	{[]string{"INNER", "JOIN"}, "INNER"},
	{[]string{"CROSS", "JOIN"}, "CROSS"},
	{[]string{"LEFT", "JOIN"}, "LEFT"},
	{[]string{"LEFT", "OUTER", "JOIN"}, "LEFT"},
	{[]string{"RIGHT", "JOIN"}, "RIGHT"},
	{[]string{"RIGHT", "OUTER", "JOIN"}, "RIGHT"},
	{[]string{"FULL", "JOIN"}, "FULL"},
	{[]string{"FULL", "OUTER", "JOIN"}, "FULL"},
	{[]string{"SEMI", "JOIN"}, "SEMI"},
	{[]string{"LEFT", "SEMI", "JOIN"}, "SEMI"},
	{[]string{"ANTI", "JOIN"}, "ANTI"},
	{[]string{"LEFT", "ANTI", "JOIN"}, "ANTI"},
	{[]string{"ASOF", "JOIN"}, "ASOF"},
	{[]string{"ASOF", "INNER", "JOIN"}, "ASOF"},
	{[]string{"ASOF", "LEFT", "JOIN"}, "ASOF"},
	{[]string{"ASOF", "LEFT", "OUTER", "JOIN"}, "ASOF"},
	{[]string{"ASOF", "RIGHT", "JOIN"}, "ASOF"},
	{[]string{"ASOF", "FULL", "JOIN"}, "ASOF"},
	{[]string{"POSITIONAL", "JOIN"}, "POSITIONAL"},
}

func (p *parser) joined() tableNode {
	p.enter()
	defer p.leave()
	left := p.tableSuffix(p.tablePrimary())
	for {
		start := p.pos
		natural := p.accept("NATURAL")
		kind := p.joinKind()
		if kind == "" {
			p.pos = start
			return left
		}
		j := &joinNode{left: left, kind: kind, natural: natural}
		j.right = p.tableSuffix(p.tablePrimary())
		if p.nestedJoin() { // a JOIN b JOIN c ON … ON …
			j.right = p.joinedRight(j.right)
		}
		switch {
		case p.accept("ON"):
			j.on = p.slot()
		case p.isWord("USING") && p.isOp(1, "("):
			p.pos++
			j.using = p.nameList()
		}
		left = j
	}
}

func (p *parser) joinKind() string {
	for _, k := range joinKinds {
		if p.accept(k.words...) {
			return k.kind
		}
	}
	return ""
}

// nestedJoin reports whether the right side of a join goes on with another join before
// its own condition, which is so if two conditions follow each other.
func (p *parser) nestedJoin() bool {
	pos := p.pos
	defer func() { p.pos = pos }()
	if p.isWord("NATURAL") || p.isWord("CROSS", "JOIN") || p.isWord("POSITIONAL", "JOIN") || p.joinKind() == "" {
		return false
	}
	// A condition at this level, followed by another one with no join between them.
	joins, conditions := 1, 0
	for p.tok().Kind != TokenEnd {
		switch {
		case p.isOp(0, "("), p.isOp(0, "["), p.isOp(0, "{"):
			p.pos = p.pair[p.pos]
		case p.isOp(0, ")"), p.isOp(0, "]"), p.isOp(0, "}"), p.isOp(0, ","):
			return conditions > joins
		case p.isWord("WHERE"), p.isWord("GROUP"), p.isWord("ORDER"), p.isWord("SELECT"), p.isWord("UNION"):
			return conditions > joins
		case p.isWord("CROSS", "JOIN"), p.isWord("POSITIONAL", "JOIN"):
			p.pos++
		case p.isWord("JOIN"):
			joins++
		case p.isWord("ON"), p.isWord("USING"):
			conditions++
		}
		p.pos++
	}
	return conditions > joins
}

// joinedRight reads joins whose left side is already read, up to the condition that
// belongs to the join outside.
func (p *parser) joinedRight(left tableNode) tableNode {
	p.enter()
	defer p.leave()
	kind := p.joinKind()
	j := &joinNode{left: left, kind: kind}
	j.right = p.tableSuffix(p.tablePrimary())
	if p.nestedJoin() {
		j.right = p.joinedRight(j.right)
	}
	if p.accept("ON") {
		j.on = p.slot()
	} else if p.accept("USING") {
		j.using = p.nameList()
	}
	return j
}
