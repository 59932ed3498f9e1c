package linear

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// one is an operation from call to ret.
func one(call, ret time.Duration, in input, out output) operation {
	return operation{in: in, out: out, call: call, ret: ret}
}

func load(call, ret time.Duration, want table) operation {
	out := output{outcome: did, sees: seesAll, table: want}
	if want.creator == 0 {
		out = output{outcome: noTable}
	}
	return one(call, ret, input{kind: opLoad}, out)
}

func appended(call, ret time.Duration, o outcome, head, snapshot int64) operation {
	p := part{creator: 1, fenced: true, head: head, snapshot: snapshot}
	return one(call, ret, input{kind: opCommit, parts: []part{p}}, output{outcome: o})
}

func renamed(call, ret time.Duration, o outcome) operation {
	return one(call, ret, input{kind: opRename, to: 1}, output{outcome: o})
}

func dropped(call, ret time.Duration, o outcome) operation {
	return one(call, ret, input{kind: opDrop}, output{outcome: o})
}

func TestCheck(t *testing.T) {
	t.Parallel()
	empty := table{creator: 1}
	ten := empty.with(10)
	none := table{}
	both := func(call, ret time.Duration, o outcome) operation {
		return one(call, ret, input{kind: opCommit, parts: []part{
			{creator: 1, fenced: true, snapshot: 10}, {name: 1, creator: 2, fenced: true, snapshot: 20},
		}}, output{outcome: o})
	}
	second := func(call, ret time.Duration, want table) operation {
		op := load(call, ret, want)
		op.in.name = 1
		return op
	}
	for _, test := range []struct {
		name string
		ok   bool
		ops  []operation
	}{
		{"nothing", true, nil},
		{"an append and a load", true, []operation{appended(1, 2, did, 0, 10), load(3, 4, ten)}},
		{"an acknowledged append is lost", false, []operation{appended(1, 2, did, 0, 10), load(3, 4, empty)}},
		{"a load during an append sees it", true, []operation{appended(1, 9, did, 0, 10), load(2, 3, ten), load(4, 5, ten)}},
		{"a load during an append does not see it", true, []operation{appended(1, 9, did, 0, 10), load(2, 3, empty), load(4, 5, ten)}},
		{"what was seen goes again", false, []operation{appended(1, 9, did, 0, 10), load(2, 3, ten), load(4, 5, empty)}},
		{"a load sees the future", false, []operation{load(1, 2, ten), appended(3, 4, did, 0, 10)}},
		{"two winners", false, []operation{appended(1, 5, did, 0, 10), appended(2, 6, did, 0, 11)}},
		{"a winner and a loser", true, []operation{appended(1, 5, did, 0, 10), appended(2, 6, failed, 0, 11), load(7, 8, ten)}},
		{"a loser without a winner", false, []operation{appended(2, 6, failed, 0, 11)}},
		{"a loser before the winner", false, []operation{appended(1, 2, failed, 0, 11), appended(3, 4, did, 0, 10)}},
		{"an unknown append is not seen", true, []operation{appended(1, 2, unknown, 0, 10), load(3, 4, empty)}},
		{"an unknown append is seen", true, []operation{appended(1, 2, unknown, 0, 10), load(3, 4, ten)}},
		{"an unknown append is late", true, []operation{appended(1, 2, unknown, 0, 10), load(3, 4, empty), load(5, 6, ten)}},
		{"an unknown append goes again", false, []operation{appended(1, 2, unknown, 0, 10), load(3, 4, ten), load(5, 6, empty)}},
		{"an unknown append explains a loser", true, []operation{appended(1, 2, unknown, 0, 10), appended(3, 4, failed, 0, 11), load(5, 6, ten)}},
		{"an unknown append that never was explains no loser", false, []operation{appended(1, 2, unknown, 0, 10), appended(3, 4, failed, 0, 11), load(101, 102, empty)}},
		{"an unknown append is seen before it began", false, []operation{load(1, 2, ten), appended(3, 4, unknown, 0, 10)}},
		{"a late rename", true, []operation{renamed(1, 2, unknown), load(3, 4, empty), load(5, 6, none), second(7, 8, empty)}},
		{"a rename that leaves the name", false, []operation{renamed(1, 2, unknown), second(3, 4, empty), load(5, 6, empty)}},
		{"a drop that was refused", false, []operation{dropped(1, 2, noTable), load(3, 4, empty)}},
		{"an unknown drop", true, []operation{dropped(1, 2, unknown), load(3, 4, none)}},
		{"a dropped table comes back", false, []operation{dropped(1, 2, unknown), load(3, 4, none), load(5, 6, empty)}},
		{"an unknown drop does not wait for the next round", false, []operation{dropped(1, 2, unknown), load(101, 102, empty), load(103, 104, none)}},
		{"half a transaction", false, []operation{both(1, 2, unknown), load(3, 4, ten), second(5, 6, none)}},
		{"a list", false, []operation{one(1, 2, input{kind: opList}, output{outcome: did, listed: [3]bool{true, true}})}},
		{"a transaction without its table", true, []operation{both(1, 2, noTable), load(3, 4, empty)}},
		{"a transaction that did what it cannot", false, []operation{both(1, 2, did)}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			seen := sightings{}
			for _, op := range test.ops {
				seen.note(op.out.table.head, op.ret)
			}
			h := history{initial: state{empty}, ops: test.ops, settled: 100}
			if err := h.check(seen, step, "", "test"); (err == nil) != test.ok {
				t.Errorf("check = %v, want ok %v\n%s", err, test.ok, h.text(h.settle(seen)))
			}
		})
	}
}

// A failure comes with a picture and a text.
func TestCheck_Artifacts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := history{initial: state{{creator: 1}}, ops: []operation{dropped(1, 2, noTable)}, settled: 3}
	err := h.check(sightings{}, step, dir, "bad")
	if err == nil || !strings.Contains(err.Error(), filepath.Join(dir, "bad.html")) {
		t.Fatalf("check = %v, want the path of the picture", err)
	}
	for _, name := range []string{"bad.html", "bad.txt"} {
		if text, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !strings.Contains(string(text), "drop a: no such table") {
			t.Errorf("%s: %v; it does not say what happened", name, err)
		}
	}
}
