package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/catalogd/catalogd/bench/client"
	"github.com/catalogd/catalogd/bench/measure"
)

// What is wanted of one table that everybody writes.
const (
	hotFairGoal = "one hot table, 8 clients: slowest client's p95, times the fastest's"
	hotRateGoal = "one hot table, 8 clients: successful commits/s, times the reference server's"
)

// hotTable lets clients append to one table: each loads it, commits on what it saw, and
// begins anew when somebody else was faster. The time that counts is that of the whole
// append, with all its retries.
func (b *bench) hotTable(ctx context.Context) error {
	java := b.reference(ctx)
	b.rep.title(fmt.Sprintf("hot table: %d clients load, commit on what they saw and retry after a 409; %d appends in a turn", mostClients, b.scale.hotCommits))
	servers := []*target{b.subject()}
	if java == nil {
		b.rep.leave(b.noJava, check{measure: hotRateGoal, bound: atLeast(5)})
	} else {
		servers = append(servers, java)
	}
	limits := measure.Limits{Clients: mostClients, PerClient: b.scale.hotCommits, Total: b.scale.hotCommits, Time: b.scale.commitTime}
	var (
		rivals     []*rivals
		contenders []measure.Contender
	)
	for _, t := range servers {
		r := newRivals(t, mostClients)
		defer r.close()
		rivals = append(rivals, r)
		contenders = append(contenders, t.contender(r.op, r.begin))
	}
	if java != nil {
		cold, err := measure.Contest(ctx, measure.Plan{Rounds: 1, Limits: limits}, contenders[1])
		if err != nil {
			return err
		}
		if err := cold[0].Rounds[0].Err; err != nil {
			return err
		}
	}
	for _, r := range rivals {
		r.reset()
	}
	series, err := measure.Contest(ctx, measure.Plan{Rounds: b.scale.hotRounds, Limits: limits}, contenders...)
	if err != nil {
		return err
	}
	b.hotLines(series, rivals)
	return nil
}

func (b *bench) hotLines(series []measure.Series, rivals []*rivals) {
	const what = "append to the hot table"
	fair := func(s measure.Series) ratio { return ratio(s.Middle(measure.Round.Spread)) }
	if len(series) == 1 {
		alone := series[0].Summary()
		b.rep.row(what, strconv.Itoa(mostClients), alone)
		b.rep.wrongs(alone)
		b.rep.judge(check{hotFairGoal, fair(series[0]), atMost(3)}, alone.Errors)
	} else {
		line := compare(what, mostClients, series[0], series[1])
		b.rep.add(line.want(hotRateGoal, 1/line.Rate, atLeast(5)).want(hotFairGoal, fair(series[0]), atMost(3)))
	}
	for i, s := range series {
		b.rep.note("%s: slowest client's p95 is %s times the fastest's (median of the turns); %s", s.Name, fair(s), rivals[i].outcome())
	}
}

// rivals are clients that all append to the same table.
type rivals struct {
	target  *target
	conns   []*client.Conn
	made    int // tables so far
	first   *client.Writer
	kept    sync.Mutex
	answers []answer // checked after the round

	attempts, conflicts atomic.Int64
}

func newRivals(t *target, clients int) *rivals {
	r := &rivals{target: t}
	for range clients {
		r.conns = append(r.conns, client.Dial(t.catalog.Address()))
	}
	return r
}

func (r *rivals) close() {
	for _, c := range r.conns {
		_ = c.Close() // nothing is under way
	}
}

// reset forgets the attempts so far.
func (r *rivals) reset() {
	r.attempts.Store(0)
	r.conflicts.Store(0)
}

func (r *rivals) outcome() string {
	attempts, conflicts := r.attempts.Load(), r.conflicts.Load()
	return fmt.Sprintf("%d commits were sent, %d of them lost to another client (409)", attempts, conflicts)
}

// begin makes the table of a round.
func (r *rivals) begin(ctx context.Context, _ int) (end func(context.Context) error, err error) {
	r.made++
	r.answers = nil
	r.first, err = client.NewWriter(ctx, r.target.catalog, namespace, fmt.Sprintf("hot_%d", r.made))
	return r.verify, err
}

// hotPatience bounds one append: who never wins is an error, not an endless run.
const hotPatience = 30 * time.Second

func (r *rivals) op(ctx context.Context, i, _ int) (time.Duration, error) {
	start := time.Now()
	w := r.first.On(r.target.catalog, namespace)
	load := w.LoadRequest(true, nil)
	for time.Since(start) < hotPatience {
		reply, err := r.conns[i].Do(ctx, load)
		if err != nil {
			return 0, err
		}
		seen, err := reply.Table()
		if err != nil {
			return 0, err
		}
		w.Follow(seen)
		next, err := w.Prepare()
		if err != nil {
			return 0, err
		}
		r.attempts.Add(1)
		if reply, err = r.conns[i].Do(ctx, next.Request()); err != nil {
			return 0, err
		}
		switch reply.Status {
		case http.StatusOK:
			took := time.Since(start)
			r.keep(answer{append: next, reply: reply})
			return took, nil
		case http.StatusConflict:
			r.conflicts.Add(1)
		default:
			return 0, next.Check(reply)
		}
	}
	return 0, fmt.Errorf("no commit got through within %v", hotPatience)
}

func (r *rivals) keep(a answer) {
	r.kept.Lock()
	defer r.kept.Unlock()
	r.answers = append(r.answers, a)
}

// verify reads every answer in full and the table as it is now: each acknowledged append is
// there, and all of them are in one line, so that none was accepted on an old state.
func (r *rivals) verify(ctx context.Context) error {
	var problems []error
	for _, a := range r.answers {
		if err := a.append.Check(a.reply); err != nil {
			problems = append(problems, err)
			break
		}
	}
	reply, err := r.conns[0].Do(ctx, r.first.LoadRequest(false, nil))
	if err != nil {
		return err
	}
	t, err := reply.Table()
	if err != nil {
		return err
	}
	if n := len(r.answers); t.Snapshots != n || t.Line != n || t.LastSequence != int64(n) {
		problems = append(problems, fmt.Errorf("%d appends were acknowledged; the table has %d snapshots, %d of them in the line of the current one, and sequence number %d",
			n, t.Snapshots, t.Line, t.LastSequence))
	}
	r.answers = nil
	return errors.Join(problems...)
}
