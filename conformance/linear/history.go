package linear

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// operation is one line of a history. Times are since the run began.
type operation struct {
	client int
	in     input
	out    output
	call   time.Duration
	ret    time.Duration
	note   string // what a client was told, if it was not told that the operation was done
}

// history is what happened to one group in one round.
type history struct {
	initial state
	ops     []operation
	// refused are the operations that changed nothing, as the clients were told. They
	// explain nothing, unless that was a lie.
	refused []operation
	// settled is when nothing of the round was under way any more. The operations after
	// it only read.
	settled time.Duration
}

// sightings are the marks of operations that answers show, each with the end of the first
// operation that shows it.
type sightings map[int64]time.Duration

func (s sightings) note(mark int64, at time.Duration) {
	if first, ok := s[mark]; mark != 0 && (!ok || at < first) {
		s[mark] = at
	}
}

// settle decides what it can about the operations without an answer, so that the search
// has less to guess. Who was seen to take effect did so before the answer that shows it.
// Who appended to a table that is still there at the end without the snapshot never will.
// seen tells of every snapshot that an answer of the round shows who showed it first.
func (h history) settle(seen sightings) []operation {
	alive := map[int64]bool{}
	for _, op := range h.ops {
		if op.out.outcome == did && op.out.sees != seesNothing {
			seen.note(op.out.table.creator, op.ret)
			seen.note(op.out.table.head, op.ret)
			seen.note(op.out.table.writer, op.ret)
			if op.call >= h.settled {
				alive[op.out.table.creator] = true
			}
		}
	}
	out := make([]operation, 0, len(h.ops))
	for _, op := range h.ops {
		if op.out.outcome == unknown {
			op.ret = h.settled
			shown, never := false, false
			for _, p := range op.in.parts {
				for _, mark := range p.marks() {
					if at, ok := seen[mark]; ok {
						shown, op.ret = true, min(op.ret, max(op.call, at))
					}
				}
				never = never || p.snapshot != 0 && alive[p.creator] && seen[p.snapshot] == 0
			}
			switch {
			case shown:
				op.out.outcome = tookHold
			case never:
				continue
			}
		}
		out = append(out, op)
	}
	return out
}

// marks are the ids by which others can tell that p took effect.
func (p part) marks() []int64 {
	marks := []int64{p.snapshot, p.writer}
	if p.create {
		marks = append(marks, p.creator)
	}
	return marks
}

// checkTimeout bounds the search. A round that takes longer proves nothing.
const checkTimeout = 2 * time.Minute

// check looks for an order that explains a history. A failure is described in a file
// below dir.
func (h history) check(seen sightings, step stepper, dir, name string) error {
	ops := h.settle(seen)
	lines := make([]porcupine.Operation, len(ops))
	for i, op := range ops {
		lines[i] = porcupine.Operation{
			ClientId: op.client, Input: op.in, Output: op.out, Call: int64(op.call), Return: int64(op.ret),
		}
	}
	m := model(h.initial, step)
	verdict, info := porcupine.CheckOperationsVerbose(m, lines, checkTimeout)
	if verdict == porcupine.Ok {
		return nil
	}
	problem := "no order of the operations explains all answers"
	if verdict == porcupine.Unknown {
		problem = fmt.Sprintf("the checker found no verdict in %s", checkTimeout)
	}
	if dir == "" {
		return fmt.Errorf("%s: %s (%d operations)", name, problem, len(ops))
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("%s: %s; and nothing can be written about it: %w", name, problem, err)
	}
	page, list := filepath.Join(dir, name+".html"), filepath.Join(dir, name+".txt")
	if err := porcupine.VisualizePath(m, info, page); err != nil {
		return fmt.Errorf("%s: %s; and its picture cannot be written: %w", name, problem, err)
	}
	if err := os.WriteFile(list, []byte(h.text(ops)), 0o600); err != nil {
		return fmt.Errorf("%s: %s; and its text cannot be written: %w", name, problem, err)
	}
	return fmt.Errorf("%s: %s: see %s and %s", name, problem, page, list)
}

// text lists a history, for people.
func (h history) text(ops []operation) string {
	var b strings.Builder
	fmt.Fprintf(&b, "begins with %s\n", h.initial)
	all := slices.Concat(ops, h.refused)
	slices.SortFunc(all, func(a, b operation) int { return cmp.Compare(a.call, b.call) })
	for _, op := range all {
		fmt.Fprintf(&b, "%12d – %12d  client %d: %s %s\n", op.call, op.ret, op.client, describe(op.in, op.out), op.note)
	}
	return b.String()
}
