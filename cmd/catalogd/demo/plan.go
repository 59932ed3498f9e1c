package demo

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// seed makes every replay the same one.
const seed = 2013

const (
	// lateEvery and correctEvery are how often, in days, a report is late and how often
	// one turns out to have been wrong.
	lateEvery    = 3
	correctEvery = 6

	maxLateDays     = 30
	maxCorrections  = 3  // flights that one report corrects
	maxCorrectAfter = 20 // days
)

// kind is what a commit does.
type kind int

const (
	appended  kind = iota // the reports of a day, and late ones of earlier days
	corrected             // delete + append of flights that were reported wrongly
	compacted             // small files become larger ones; no row changes
)

// commit is one step of the replay.
type commit struct {
	kind kind
	day  time.Time // of the replay
	rows []flight  // that arrive; for corrected they replace what is there
	late int       // how many of them are of earlier days
}

// String says in a few words what the commit does.
func (c commit) String() string {
	day := c.day.Format(time.DateOnly)
	switch c.kind {
	case corrected:
		return fmt.Sprintf("%s: %d flights of %s corrected", day, len(c.rows), c.rows[0].day().Format(time.DateOnly))
	case compacted:
		return day + ": small files compacted"
	default:
		if c.late > 0 {
			return fmt.Sprintf("%s: %d flights, %d of them late", day, len(c.rows), c.late)
		}
		return fmt.Sprintf("%s: %d flights", day, len(c.rows))
	}
}

// byDay cuts flights, which are sorted by departure, into days.
func byDay(flights []flight) [][]flight {
	var days [][]flight
	for start, i := 0, 1; i <= len(flights); i++ {
		if i == len(flights) || !flights[i].day().Equal(flights[start].day()) {
			days = append(days, flights[start:i:i])
			start = i
		}
	}
	return days
}

// planReplay decides what each commit brings. In the end the table holds exactly the
// flights of days: what is late has arrived, what was wrong is corrected. Every day whose
// turn it is has a late report or a wrong one, so that a short replay shows them too.
func planReplay(days [][]flight) []commit {
	random := rand.New(rand.NewPCG(seed, seed)) //nolint:gosec // the same replay every time
	last := len(days) - 1
	late := make([][]flight, len(days))          // by the day that they arrive on
	corrections := make([][][]flight, len(days)) // likewise
	var commits []commit
	for d, day := range days {
		reported := day
		if d%lateEvery == 1 && d < last {
			var held []flight
			reported, held = holdBack(random, reported)
			arrives := min(d+1+random.IntN(maxLateDays), last)
			late[arrives] = append(late[arrives], held...)
		}
		if d%correctEvery == 2 && d < last {
			var truth []flight
			reported, truth = misreport(random, reported)
			arrives := min(d+1+random.IntN(maxCorrectAfter), last)
			corrections[arrives] = append(corrections[arrives], truth)
		}
		date := day[0].day()
		commits = append(commits, commit{
			kind: appended, day: date, rows: slices.Concat(reported, late[d]), late: len(late[d]),
		})
		for _, truth := range corrections[d] {
			commits = append(commits, commit{kind: corrected, day: date, rows: truth})
		}
		if d == last/2 && d > 0 {
			commits = append(commits, commit{kind: compacted, day: date})
		}
	}
	return commits
}

// holdBack takes the flights of one carrier from one airport out of a day: their report
// is late.
func holdBack(random *rand.Rand, day []flight) (reported, held []flight) {
	who := day[random.IntN(len(day))]
	for _, f := range day {
		if f.carrier == who.carrier && f.origin == who.origin {
			held = append(held, f)
		} else {
			reported = append(reported, f)
		}
	}
	if len(reported) == 0 { // a day of one carrier would be a commit without rows
		return day, nil
	}
	return reported, held
}

// misreport makes some reports of a day wrong and returns the right ones, which come
// later: flights called cancelled that flew, delays that were others.
func misreport(random *rand.Rand, day []flight) (reported, truth []flight) {
	reported = append([]flight(nil), day...)
	for _, i := range random.Perm(len(day))[:min(1+random.IntN(maxCorrections), len(day))] {
		truth = append(truth, day[i])
		wrong := &reported[i]
		if random.IntN(2) == 0 && wrong.departureDelay.Valid {
			wrong.departureDelay.Valid, wrong.departureDelay.V = false, 0
			wrong.arrivalDelay, wrong.airTime = wrong.departureDelay, wrong.departureDelay
			continue
		}
		wrong.departureDelay = some(wrong.departureDelay.V + 1 + random.Int32N(90))
	}
	return reported, truth
}
