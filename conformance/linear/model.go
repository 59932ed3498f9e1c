package linear

import (
	"fmt"
	"strings"

	"github.com/anishathalye/porcupine"
)

// tableNames are the names that the tables of a group take turns in. Each group has a
// namespace of its own, and no operation touches two groups.
var tableNames = [...]string{"a", "b", "c"}

// table is what the model knows of a table. The zero value is no table.
type table struct {
	creator int64  // the operation that made it
	head    int64  // the snapshot that main points at, 0 if none
	length  int    // number of snapshots
	chain   uint64 // digest of all snapshot ids, in order
	writer  int64  // the operation that last set the property
}

// with is t after a snapshot was appended.
func (t table) with(snapshot int64) table {
	t.head = snapshot
	t.length++
	t.chain = (t.chain ^ uint64(snapshot)) * 0x9e3779b97f4a7c15 //nolint:gosec // a digest
	t.chain ^= t.chain >> 29
	return t
}

func (t table) String() string {
	if t.creator == 0 {
		return "-"
	}
	return fmt.Sprintf("#%d@%d(%d) by %d", t.creator, t.head, t.length, t.writer)
}

// state is the tables of one group, by the index of their names.
type state [len(tableNames)]table

func (s state) String() string {
	var b strings.Builder
	for i, t := range s {
		fmt.Fprintf(&b, "%s=%s ", tableNames[i], t)
	}
	return strings.TrimSpace(b.String())
}

// part is what a commit does to one table.
type part struct {
	name     int
	create   bool  // the table must not exist
	creator  int64 // of the new table, or of the one that must be there
	fenced   bool  // main must still be at head
	head     int64
	snapshot int64  // is appended to main, unless 0
	writer   int64  // is written into the property, unless 0
	location string // of the new table
}

// missing reports whether the table that p is for does not exist.
func (p part) missing(s state) bool { return !p.create && s[p.name].creator == 0 }

// refused reports whether a requirement of p fails.
func (p part) refused(s state) bool {
	t := s[p.name]
	if p.create {
		return t.creator != 0
	}
	return t.creator != 0 && (t.creator != p.creator || p.fenced && t.head != p.head)
}

func (p part) apply(s state) state {
	t := &s[p.name]
	if p.create {
		*t = table{creator: p.creator}
	}
	if p.snapshot != 0 {
		*t = t.with(p.snapshot)
	}
	if p.writer != 0 {
		t.writer = p.writer
	}
	return s
}

// kind is what a client asked for.
type kind string

const (
	opLoad   kind = "load"
	opExists kind = "exists"
	opList   kind = "list"
	opCommit kind = "commit" // creates and transactions, too
	opRename kind = "rename"
	opDrop   kind = "drop"
)

// input is an operation.
type input struct {
	kind  kind
	name  int
	to    int    // of a rename
	parts []part // of a commit
}

// outcome is what a client learned.
type outcome string

const (
	did      outcome = "ok"
	tookHold outcome = "no answer, took effect" // somebody saw it
	unknown  outcome = "unknown"
	noTable  outcome = "no such table"
	exists   outcome = "already exists"
	failed   outcome = "requirement failed"
	// Nothing was changed, for a reason that has nothing to do with the tables. It tells
	// nothing about them, so it is not part of the history.
	refused outcome = "refused"
)

// output is an answer.
type output struct {
	outcome outcome
	sees    sight
	table   table                 // as much of it as sees says
	listed  [len(tableNames)]bool // of a list
}

// sight is how much of a table an answer shows.
type sight int

const (
	seesNothing sight = iota
	seesRefs          // not all snapshots
	seesAll
)

func (o output) shows(t table) bool {
	switch o.sees {
	case seesAll:
		return o.table == t
	case seesRefs:
		return o.table.creator == t.creator && o.table.head == t.head && o.table.writer == t.writer
	}
	return true
}

// step returns the states that s may become when in is carried out and out answered; none
// if that answer cannot be.
func step(s state, in input, out output) []state {
	stays := func(ok bool) []state {
		if ok {
			return []state{s}
		}
		return nil
	}
	switch in.kind {
	case opLoad, opExists:
		present := s[in.name].creator != 0
		if out.outcome == noTable {
			return stays(!present)
		}
		return stays(present && out.shows(s[in.name]))
	case opList:
		for i, t := range s {
			if out.listed[i] != (t.creator != 0) {
				return nil
			}
		}
		return stays(true)
	}
	next, can := change(s, in)
	switch out.outcome {
	case did, tookHold:
		if !can || in.kind == opCommit && len(in.parts) == 1 && !out.shows(next[in.parts[0].name]) {
			return nil
		}
		return []state{next}
	case unknown:
		if can && next != s {
			return []state{s, next}
		}
		return []state{s}
	case noTable, exists, failed:
		return stays(explains(s, in, out.outcome))
	}
	return nil
}

// change is s after in; ok tells whether in can be done.
func change(s state, in input) (next state, ok bool) {
	switch in.kind {
	case opCommit:
		next = s
		for _, p := range in.parts {
			if p.missing(s) || p.refused(s) {
				return s, false
			}
			next = p.apply(next)
		}
		return next, true
	case opRename:
		if s[in.name].creator == 0 || s[in.to].creator != 0 {
			return s, false
		}
		s[in.name], s[in.to] = table{}, s[in.name]
		return s, true
	case opDrop:
		if s[in.name].creator == 0 {
			return s, false
		}
		s[in.name] = table{}
		return s, true
	}
	return s, false
}

// explains reports whether in fails in the way of o when it meets s.
func explains(s state, in input, o outcome) bool {
	switch in.kind {
	case opCommit:
		for _, p := range in.parts {
			if o == noTable && p.missing(s) || o != noTable && p.refused(s) {
				return true
			}
		}
		return false
	case opRename:
		return o == noTable && s[in.name].creator == 0 || o == exists && s[in.to].creator != 0
	case opDrop:
		return o == noTable && s[in.name].creator == 0
	}
	return false
}

// stepper is [step], or a wrong one in a test.
type stepper func(state, input, output) []state

// model is the sequential catalog that begins with initial.
func model(initial state, step stepper) porcupine.Model {
	m := porcupine.NondeterministicModel{
		Init: func() []any { return []any{initial} },
		Step: func(s, in, out any) []any {
			next := step(s.(state), in.(input), out.(output))
			states := make([]any, len(next))
			for i := range next {
				states[i] = next[i]
			}
			return states
		},
		DescribeOperation: func(in, out any) string { return describe(in.(input), out.(output)) },
		DescribeState:     func(s any) string { return fmt.Sprint(s) },
	}
	return m.ToModel()
}

func describe(in input, out output) string {
	var b strings.Builder
	b.WriteString(string(in.kind))
	switch in.kind {
	case opRename:
		fmt.Fprintf(&b, " %s to %s", tableNames[in.name], tableNames[in.to])
	case opList:
	case opCommit:
		for _, p := range in.parts {
			b.WriteString(" " + p.String())
		}
	default:
		b.WriteString(" " + tableNames[in.name])
	}
	fmt.Fprintf(&b, ": %s", out.outcome)
	if out.sees != seesNothing {
		fmt.Fprintf(&b, " %s", out.table)
	}
	if in.kind == opList && out.outcome == did {
		for i, there := range out.listed {
			if there {
				b.WriteString(" " + tableNames[i])
			}
		}
	}
	return b.String()
}

func (p part) String() string {
	s := fmt.Sprintf("%s#%d", tableNames[p.name], p.creator)
	if p.create {
		s = "create " + s
	}
	if p.fenced {
		s += fmt.Sprintf(" at %d", p.head)
	}
	if p.snapshot != 0 {
		s += fmt.Sprintf(" append %d", p.snapshot)
	}
	if p.writer != 0 {
		s += fmt.Sprintf(" write %d", p.writer)
	}
	return s
}
