package linear

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// catalog is a server in miniature. A bug makes it wrong in one way, now and then.
type catalog struct {
	now    state
	past   []state
	bug    bug
	random *rand.Rand
	erred  int // how often the bug showed

	appended map[int64][]int64 // the snapshots of each table, by its creator
}

// apply carries out parts of a commit.
func (c *catalog) apply(parts ...part) {
	for _, p := range parts {
		c.now = p.apply(c.now)
		if p.snapshot != 0 {
			c.appended[p.creator] = append(c.appended[p.creator], p.snapshot)
		}
	}
}

type bug string

const (
	lostUpdate     bug = "an update is acknowledged and lost"
	noFence        bug = "a fence is not checked"
	staleRead      bug = "a load shows an old state"
	tornCommit     bug = "half of a transaction is done"
	liar           bug = "a change that was done is refused"
	resurrection   bug = "an acknowledged drop is undone"
	staleList      bug = "a list shows an old state"
	overwrite      bug = "a rename replaces a table"
	falseRejection bug = "a requirement that holds fails"
)

// strike decides whether the bug shows this time.
func (c *catalog) strike(b bug) bool { return c.bug == b && c.random.IntN(12) == 0 }

// do carries out an operation. show limits what the answer says.
func (c *catalog) do(in input) output {
	c.past = append(c.past, c.now)
	before := c.now
	old := c.past[c.random.IntN(len(c.past))]
	next, can := change(before, in)
	switch in.kind {
	case opLoad:
		s := before
		if c.strike(staleRead) && old[in.name] != s[in.name] {
			s = old
			c.erred++
		}
		if s[in.name].creator == 0 {
			return output{outcome: noTable}
		}
		return output{outcome: did, sees: seesAll, table: s[in.name]}
	case opList:
		s := before
		if c.strike(staleList) {
			s = old
		}
		out := output{outcome: did}
		for i, t := range s {
			out.listed[i] = t.creator != 0
			if out.listed[i] != (before[i].creator != 0) {
				c.erred++
			}
		}
		return out
	case opCommit:
		out := c.commit(in, can)
		if out.outcome == did && len(in.parts) == 1 {
			out.sees, out.table = seesAll, next[in.parts[0].name]
			if p := in.parts[0]; c.bug == noFence {
				out.table = c.now[p.name]
			}
		}
		return out
	}
	if !can && in.kind == opRename && before[in.name].creator != 0 && c.strike(overwrite) {
		c.erred++
		c.now[in.to], c.now[in.name] = before[in.name], table{}
		return output{outcome: did}
	}
	if !can {
		if before[in.name].creator == 0 {
			return output{outcome: noTable}
		}
		return output{outcome: exists}
	}
	if c.strike(resurrection) && in.kind == opDrop {
		c.erred++
		return output{outcome: did}
	}
	c.now = next
	return output{outcome: did}
}

func (c *catalog) commit(in input, can bool) output {
	p := in.parts[0]
	switch {
	case can && c.strike(lostUpdate):
		c.erred++
		return output{outcome: did}
	case can && c.strike(liar):
		c.erred++
		c.apply(in.parts...)
		return output{outcome: failed}
	case can && c.strike(falseRejection):
		c.erred++
		return output{outcome: failed}
	case can && len(in.parts) > 1 && c.strike(tornCommit):
		c.erred++
		c.apply(p)
		return output{outcome: did}
	case can:
		c.apply(in.parts...)
		return output{outcome: did}
	case !p.missing(c.now) && !p.create && c.now[p.name].creator == p.creator && len(in.parts) == 1 && c.strike(noFence):
		c.erred++
		c.apply(p)
		return output{outcome: did}
	}
	for _, p := range in.parts {
		if p.missing(c.now) {
			return output{outcome: noTable}
		}
	}
	return output{outcome: failed}
}

// flight is an operation under way in a simulation.
type flight struct {
	op    operation
	done  bool
	limbo bool // the client has given up
}

// simulate lets clients work on a catalog and returns what they noted down, and whether
// the bug showed.
func simulate(seed uint64, b bug) (h history, seen sightings, erred bool) {
	const clients, n = 5, 150
	random := rand.New(rand.NewPCG(seed, 0))
	c := &catalog{random: random, bug: b, appended: map[int64][]int64{}}
	seen = sightings{}
	var (
		clock   time.Duration
		flights [clients]*flight
		lost    []*flight
		views   [clients]state
		ids     = int64(1000)
	)
	tick := func() time.Duration { clock++; return clock }
	for len(h.ops) < n {
		i := random.IntN(clients)
		f := flights[i]
		switch {
		case f == nil:
			flights[i] = &flight{op: operation{client: i, in: choose(random, views[i], &ids), call: tick()}}
		case !f.done:
			if random.IntN(15) == 0 { // the connection breaks
				f.limbo = true
				f.op.out, f.op.ret = output{outcome: unknown}, tick()
				if f.op.in.kind != opLoad && f.op.in.kind != opList {
					lost = append(lost, f)
					h.ops = append(h.ops, f.op)
				}
				flights[i] = nil
				break
			}
			f.op.out, f.done = c.do(f.op.in), true
			tick()
		default:
			f.op.ret = tick()
			h.ops = append(h.ops, f.op)
			views[i] = c.now
			flights[i] = nil
		}
		if len(lost) > 0 && random.IntN(4) == 0 { // what was given up may still happen
			if f := lost[0]; random.IntN(2) == 0 {
				c.do(f.op.in)
				tick()
			}
			lost = lost[1:]
		}
	}
	for _, f := range flights { // what is under way is answered
		if f != nil && f.done {
			f.op.ret = tick()
			h.ops = append(h.ops, f.op)
		}
	}
	h.settled = tick()
	c.bug = ""
	for name := range tableNames {
		in := input{kind: opLoad, name: name}
		call := tick()
		op := operation{client: clients, in: in, out: c.do(in), call: call, ret: tick()}
		h.ops = append(h.ops, op)
		for _, id := range c.appended[op.out.table.creator] {
			seen.note(id, op.ret)
		}
	}
	return h, seen, c.erred > 0
}

// choose is what a client does next, by what it believes.
func choose(random *rand.Rand, view state, ids *int64) input {
	id := func() int64 { *ids++; return *ids }
	name := random.IntN(len(tableNames))
	other := (name + 1) % len(tableNames)
	extend := func(name int) part {
		return part{name: name, creator: view[name].creator, fenced: true, head: view[name].head, snapshot: id()}
	}
	switch dice := random.IntN(20); {
	case dice < 5:
		return input{kind: opLoad, name: name}
	case dice < 7:
		return input{kind: opList}
	case dice < 9:
		return input{kind: opRename, name: name, to: other}
	case dice < 10:
		return input{kind: opDrop, name: name}
	case view[name].creator == 0:
		return input{kind: opCommit, parts: []part{{name: name, create: true, creator: id()}}}
	case dice < 12:
		return input{kind: opCommit, parts: []part{{name: name, creator: view[name].creator, writer: id()}}}
	case dice < 16:
		return input{kind: opCommit, parts: []part{extend(name), extend(other)}}
	}
	return input{kind: opCommit, parts: []part{extend(name)}}
}

// An honest catalog passes, and each kind of wrong one is found.
func TestCheck_Simulated(t *testing.T) {
	t.Parallel()
	for _, b := range []bug{"", lostUpdate, noFence, staleRead, tornCommit, liar, resurrection, staleList, overwrite, falseRejection} {
		t.Run(fmt.Sprintf("%q", string(b)), func(t *testing.T) {
			t.Parallel()
			wrong, found := 0, 0
			for seed := range uint64(15) {
				h, seen, erred := simulate(seed, b)
				err := h.check(seen, step, "", "simulated")
				if b == "" && err != nil {
					t.Fatalf("seed %d: an honest catalog is refused: %v\n%s", seed, err, h.text(h.settle(seen)))
				}
				if erred {
					wrong++
				}
				if err != nil {
					found++
				}
			}
			// A single slip may look like bad luck with the timing; not all of them do.
			if b != "" && (wrong < 2 || found < wrong/2) {
				t.Errorf("%d of %d wrong histories were found", found, wrong)
			}
		})
	}
}

// A model that loses updates itself must not agree with an honest catalog.
func TestCheck_WrongModel(t *testing.T) {
	t.Parallel()
	forgetful := func(s state, in input, out output) []state {
		next := step(s, in, out)
		if in.kind == opCommit && len(next) == 1 && !in.parts[0].create {
			return []state{s}
		}
		return next
	}
	h, seen, _ := simulate(1, "")
	if err := h.check(seen, step, "", "right"); err != nil {
		t.Fatal(err)
	}
	if err := h.check(seen, forgetful, "", "wrong"); err == nil {
		t.Error("a model that loses updates explains a history without lost updates")
	}
}
