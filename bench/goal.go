package main

import (
	"fmt"
	"slices"
	"strings"
)

// bound is what a measure has to keep.
type bound struct {
	limit float64
	least bool // the value must not be below the limit, instead of above
	unit  string
}

const (
	times   = "×"
	percent = " %"
)

func atMost(limit float64) bound  { return bound{limit: limit, unit: times} }
func atLeast(limit float64) bound { return bound{limit: limit, least: true, unit: times} }

// shareAtLeast is for a part of a whole; limit is in percent.
func shareAtLeast(limit float64) bound { return bound{limit: limit, least: true, unit: percent} }

func (b bound) String() string {
	sign := "≤"
	if b.least {
		sign = "≥"
	}
	return fmt.Sprintf("%s %g%s", sign, b.limit, b.unit)
}

// room is how many times the value could get worse: at least 1 keeps the bound. Nothing
// measured has no room.
func (b bound) room(v ratio) float64 {
	switch {
	case !v.known():
		return 0
	case b.least:
		return float64(v) / b.limit
	}
	return b.limit / float64(v)
}

// check is one value against its bound. Several lines may speak of the same measure.
type check struct {
	measure string
	value   ratio
	bound   bound
}

func (c check) met() bool { return c.bound.room(c.value) >= 1 }

// goal is a line of the last table: the worst of the checks of one measure.
type goal struct {
	Measure string `json:"measure"`
	Value   ratio  `json:"value"`
	Unit    string `json:"unit"`
	Target  string `json:"target"`
	Verdict string `json:"verdict"`
	Why     string `json:"why,omitempty"` // it was not measured

	check check
}

func (g goal) text() string {
	switch {
	case g.Verdict == leftOut || !g.Value.known():
		return "-"
	case g.Unit == percent:
		return fmt.Sprintf("%.0f%s", float64(g.Value), g.Unit)
	case g.Value >= 100:
		return fmt.Sprintf("%.0f%s", float64(g.Value), g.Unit)
	}
	return fmt.Sprintf("%.2f%s", float64(g.Value), g.Unit)
}

// judge adds a check to its goal. errs are wrong answers behind the value.
func (r *report) judge(c check, errs int) string {
	verdict := miss
	switch {
	case errs > 0:
		verdict = wrong
	case c.met():
		verdict = pass
	}
	g := goal{Measure: c.measure, Value: c.value, Unit: c.bound.unit, Target: c.bound.String(), Verdict: verdict, check: c}
	i := slices.IndexFunc(r.Goals, func(old goal) bool { return old.Measure == c.measure })
	switch {
	case i < 0:
		r.Goals = append(r.Goals, g)
	case worse(g, r.Goals[i]):
		r.Goals[i] = g
	}
	return verdict
}

// worse reports whether a has to stand for the measure instead of b.
func worse(a, b goal) bool {
	if (a.Verdict == wrong) != (b.Verdict == wrong) {
		return a.Verdict == wrong
	}
	return a.check.bound.room(a.check.value) < b.check.bound.room(b.check.value)
}

// leave lists measures that were not taken, so that nobody believes they were.
func (r *report) leave(why string, checks ...check) {
	r.note("left out: %s", why)
	for _, c := range checks {
		r.Goals = append(r.Goals, goal{Measure: c.measure, Unit: c.bound.unit, Target: c.bound.String(), Verdict: leftOut, Why: why, Value: unknown()})
	}
}

// goals prints the last table.
func (r *report) goals() {
	if len(r.Goals) == 0 {
		return
	}
	const format = "%-88s %9s  %-9s %s\n"
	r.printf("\n"+format, "measure (the worst of its lines)", "value", "target", "")
	for _, g := range r.Goals {
		r.printf("%s\n", strings.TrimRight(fmt.Sprintf(format, g.Measure, g.text(), g.Target, g.Verdict), "\n"))
	}
}

// count is how many goals ended so.
func (r *report) count(verdict string) int {
	n := 0
	for _, g := range r.Goals {
		if g.Verdict == verdict {
			n++
		}
	}
	return n
}
