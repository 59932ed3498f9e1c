package sqltext

import (
	"fmt"
	"slices"
	"strings"
)

// Column is a column of a table. Type is an Iceberg type in its text form ("long",
// "timestamptz", "decimal(38, 0)").
type Column struct {
	Name string
	Type string
}

// Options are what [Closed] knows besides the text.
type Options struct {
	// Columns returns the columns of a table in order, nil if they are not known.
	Columns func(TableRef) []Column
	// TimeZone is the session zone that the query is always run in; empty if there is none.
	TimeZone string
	// OneSource refuses queries that read more than one table.
	OneSource bool
}

// Driver is a table reference whose rows decide the bucket.
type Driver struct {
	Ref    TableRef
	Column string // the column that is bucketed, by its name in the table
	Type   string // its Iceberg type
}

// Proof says that a query is bucket-closed: for every set of buckets, restricting the
// drivers to rows whose column lies in them gives exactly the rows of the result whose
// output column lies in them, NULL being a bucket like any other.
type Proof struct {
	Output  int    // position of the bucket in the result, from 0
	Name    string // its name as the text has it, may be empty
	Bucket  Bucket
	Drivers []Driver
	// Fixed are the other references. The proof is about changes of the drivers only: when
	// a table that is referenced here changes, it says nothing.
	Fixed []TableRef
}

// Covers reports whether the proof covers every reference of the query.
func (p Proof) Covers() bool { return len(p.Fixed) == 0 }

// Closed proves that q is bucket-closed. It returns the proofs of all output columns that
// are buckets, the most useful one first, or the reason why there is none. It is
// conservative: what it cannot prove is refused.
func Closed(q *Query, opt Options) ([]Proof, *Reason) {
	a := &analyser{q: q, opt: opt, ctes: map[*cteNode]*relation{}}
	if r := a.precheck(); r != nil {
		return nil, r
	}
	rel := a.query(q.root)
	var proofs []Proof
	if !rel.open {
		for i, c := range rel.cols {
			if p, ok := a.proof(i, c); ok {
				proofs = append(proofs, p)
			}
		}
	}
	if len(proofs) == 0 {
		if a.reason == nil {
			a.note(CodeNoBucket, 0, "no output column is a column of a source or a date_trunc of one that every group, DISTINCT and window contains")
		}
		return nil, a.reason
	}
	slices.SortStableFunc(proofs, func(x, y Proof) int { return bucketRank(x.Bucket) - bucketRank(y.Bucket) })
	return proofs, nil
}

// bucketRank orders buckets by how well changes can be narrowed down with them.
func bucketRank(b Bucket) int {
	switch {
	case b.Kind == Trunc:
		return unitRank[b.Unit]
	case b.Kind == Width:
		return 20
	case b.Type == "date":
		return 21
	case timeType(b.Type):
		return 22
	case b.Type == "int" || b.Type == "long":
		return 23
	case strings.HasPrefix(b.Type, "decimal"):
		return 24
	}
	return 25
}

// analyser proves closedness bottom-up.
type analyser struct {
	q      *Query
	opt    Options
	ctes   map[*cteNode]*relation
	reason *Reason
}

// note keeps the most telling reason.
func (a *analyser) note(code Code, offset int, format string, args ...any) {
	if a.reason == nil || codeRank[code] < codeRank[a.reason.Code] {
		a.reason = a.because(code, offset, format, args...)
	}
}

func (a *analyser) because(code Code, offset int, format string, args ...any) *Reason {
	return &Reason{Code: code, Offset: offset, Msg: a.q.Position(offset) + ": " + fmt.Sprintf(format, args...)}
}

// precheck refuses what makes any proof impossible.
func (a *analyser) precheck() *Reason {
	q := a.q
	if o := q.Opaque(); len(o) > 0 {
		return a.because(CodeOpaque, o[0].Start, "%s cannot be read", o[0].Reason)
	}
	if len(q.refs) == 0 {
		return a.because(CodeNoSource, 0, "the query reads no table")
	}
	for _, t := range q.Tables() {
		switch {
		case t.File:
			return a.because(CodeFileSource, t.Start, "%s is a file", t)
		case t.TimeTravel:
			return a.because(CodeTimeTravel, t.Start, "%s picks a version of the table", t)
		case t.Sampled:
			return a.because(CodeSample, t.Start, "%s is sampled", t)
		}
	}
	if r := a.hidden(); r != nil {
		return r
	}
	if r := a.precheckTree(); r != nil {
		return r
	}
	for _, known := range []bool{true, false} {
		for _, n := range q.Nondeterministic() {
			if n.Known != known {
				continue
			}
			code := CodeUnknownFunction
			if known {
				code = CodeNondeterministic
			}
			return &Reason{Code: code, Offset: n.Offset, Msg: n.Msg}
		}
	}
	if a.opt.OneSource && len(q.refs) > 1 {
		for _, t := range q.Tables() {
			if t.InExpression {
				return a.because(CodeSubquery, t.Start, "the subquery reads %s, whose changes can touch every bucket", t)
			}
		}
		t := q.Tables()[1]
		return a.because(CodeSeveralSources, t.Start, "the query reads %s beside %s", t, q.Tables()[0])
	}
	return nil
}

// hidden refuses columns that a restricted source does not have, and names that would
// not bind once a source is replaced.
func (a *analyser) hidden() *Reason {
	existing := map[string]bool{}
	if a.opt.Columns != nil {
		for _, t := range a.q.Tables() {
			for _, c := range a.opt.Columns(t) {
				existing[strings.ToLower(c.Name)] = true
			}
		}
	}
	var r *Reason
	w := walker{expr: func(e *expr) {
		if r != nil || e.kind != exColumn {
			return
		}
		name := e.parts[len(e.parts)-1].name
		if hiddenColumn(a.q.Dialect, name) && !existing[strings.ToLower(name)] {
			r = a.because(CodeHiddenColumn, e.start, "%s is a hidden column", name)
		}
	}}
	w.walkQuery(a.q.root)
	if r == nil {
		if err := a.q.checkQualifiers(); err != nil {
			r = &Reason{Code: CodeQualified, Msg: err.Error()}
		}
	}
	return r
}

// precheckTree refuses samples, choices of rows and table functions that read something
// else than their arguments.
func (a *analyser) precheckTree() *Reason {
	var r *Reason
	w := walker{
		query: func(n *queryNode) {
			if n.limited && r == nil {
				r = a.because(CodeLimit, n.start, "LIMIT, OFFSET or FETCH picks rows across buckets")
			}
		},
		sel: func(s *selectNode) {
			if s.sampled && r == nil {
				r = a.because(CodeSample, s.start, "the query samples")
			}
			if len(s.distinctOn) > 0 && r == nil {
				r = a.because(CodeDistinctOn, s.start, "DISTINCT ON keeps one of several rows")
			}
		},
		table: func(t tableNode) {
			switch t := t.(type) {
			case *derivedTable:
				if t.sampled && r == nil {
					r = a.because(CodeSample, t.start, "the subquery is sampled")
				}
			case *functionTable:
				if t.sampled && r == nil {
					r = a.because(CodeSample, t.start, "the table function is sampled")
				}
				if !rowFunctions[t.call.callName()] && r == nil {
					r = a.because(CodeTableFunction, t.start, "%s is not known to read only its arguments", t.call.callName())
				}
			}
		},
	}
	w.walkQuery(a.q.root)
	return r
}

// rowFunctions are table functions that read only their arguments.
var rowFunctions = words(`unnest explode explode_outer posexplode posexplode_outer range generate_series sequence inline inline_outer`)

// proof makes the proof of an output column that carries a bucket.
func (a *analyser) proof(i int, c *relColumn) (Proof, bool) {
	if c.carrier == nil {
		return Proof{}, false
	}
	k := c.carrier
	b := k.bucket
	at := a.q.refs[k.drivers[0].ref].start
	switch {
	case b.Type == "float" || b.Type == "double":
		a.note(CodeFloatBucket, at, "%s is a floating-point column", k.drivers[0].column)
		return Proof{}, false
	case !bucketable(b.Type):
		return Proof{}, false
	case b.Kind != Identity && (zoned(b.Type) || zoned(b.Result)) && !isUTC(a.opt.TimeZone):
		a.note(CodeZoneDependent, at, "the bucket of %s depends on the time zone", k.drivers[0].column)
		return Proof{}, false
	}
	p := Proof{Output: i, Name: c.name, Bucket: b}
	driving := map[int]bool{}
	for _, d := range k.drivers {
		driving[d.ref] = true
		p.Drivers = append(p.Drivers, Driver{Ref: a.q.refs[d.ref].ref(), Column: d.column, Type: b.Type})
	}
	for j, t := range a.q.refs {
		if !driving[j] {
			p.Fixed = append(p.Fixed, t.ref())
		}
	}
	return p, true
}

func isUTC(zone string) bool {
	switch strings.ToUpper(zone) {
	case "UTC", "ETC/UTC", "ETC/UCT", "UCT", "ZULU", "ETC/ZULU", "UNIVERSAL", "ETC/UNIVERSAL":
		return true
	}
	return false
}

// bucketable reports whether values of a type can be told apart by = as the engines
// group them.
func bucketable(t string) bool {
	switch t {
	case "boolean", "int", "long", "string", "uuid", "binary", "time":
		return true
	}
	return timeType(t) || strings.HasPrefix(t, "decimal(") || strings.HasPrefix(t, "fixed[")
}
