package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/catalogd/catalogd/bench/measure"
)

// ratio is a quotient that may be unknown, which JSON has no number for.
type ratio float64

// MarshalJSON writes null for an unknown ratio.
func (r ratio) MarshalJSON() ([]byte, error) {
	if !r.known() {
		return []byte("null"), nil
	}
	return json.Marshal(float64(r))
}

func (r ratio) known() bool { return !math.IsNaN(float64(r)) && !math.IsInf(float64(r), 0) && r >= 0 }

func (r ratio) String() string {
	if !r.known() {
		return "-"
	}
	if r < 0.1 {
		return fmt.Sprintf("%.4f", float64(r))
	}
	return fmt.Sprintf("%.2f", float64(r))
}

// comparison is one server against another.
type comparison struct {
	What    string          `json:"what"`
	Clients int             `json:"clients"`
	Bytes   int             `json:"bytes,omitempty"` // of an answer
	Subject measure.Summary `json:"subject"`
	Against measure.Summary `json:"against"`
	// Time and CPU are the subject's divided by the other's; Rate is the other's divided
	// by the subject's. So 1 is equal and more is worse.
	Time    ratio  `json:"time_ratio"`
	Rate    ratio  `json:"rate_ratio"`
	CPU     ratio  `json:"cpu_ratio"`
	Target  string `json:"target,omitempty"`
	Verdict string `json:"verdict,omitempty"`

	checks []check
}

// Verdicts. A miss is no failure of the run: the machine may be busy.
const (
	pass    = "PASS"
	miss    = "MISS"
	wrong   = "WRONG"
	leftOut = "LEFT OUT"
)

// report prints results as they come and keeps them for the JSON file.
type report struct {
	out io.Writer

	Started     time.Time       `json:"started"`
	CPUs        int             `json:"cpus"`
	Quick       bool            `json:"quick"`
	Postgres    string          `json:"postgres"`
	FsyncMillis float64         `json:"fsync_4k_ms"`
	LoadBefore  float64         `json:"load_average_before"`
	LoadAfter   float64         `json:"load_average_after"`
	Seconds     float64         `json:"seconds"`
	Comparisons []comparison    `json:"comparisons"`
	Refresh     []refreshResult `json:"refresh,omitempty"`
	Memory      *memoryResult   `json:"memory,omitempty"`
	Goals       []goal          `json:"goals,omitempty"`
	Notes       []string        `json:"notes,omitempty"`
	Skipped     []string        `json:"skipped,omitempty"` // parts for which there was no time
	Wrong       int             `json:"wrong"`
	Missed      int             `json:"missed"`
}

func newReport(out io.Writer, o options) *report {
	return &report{out: out, Started: time.Now().UTC(), CPUs: runtime.NumCPU(), Quick: o.quick, LoadBefore: measure.LoadAverage()}
}

func (r *report) printf(format string, args ...any) { fmt.Fprintf(r.out, format, args...) }

func (r *report) header() {
	r.printf("catalogd bench, %s: %d CPUs for servers, PostgreSQL and clients; load average %.2f; PostgreSQL %s; fsync of 4 KB %.2f ms\n",
		r.Started.Format(time.RFC3339), r.CPUs, r.LoadBefore, r.Postgres, r.FsyncMillis)
	if r.Quick {
		r.printf("--quick: short rounds, so the numbers are rough\n")
	}
}

const rowFormat = "%-34s %3s  %-20s %8s %8s %8s %9s %8s %8s  %6s %6s %6s  %-8s %s\n"

// title starts a table.
func (r *report) title(text string) {
	r.printf("\n%s\n", text)
	head := fmt.Sprintf(rowFormat, "", "cl.", "server", "p50 ms", "p95 ms", "p99 ms", "per s", "CPU ms", "DB ms", "time×", "rate×", "CPU×", "target", "")
	r.printf("%s\n", strings.TrimRight(head, " \n"))
}

// add prints one server's numbers, and below them those of what it is compared with.
func (r *report) add(first comparison, more ...comparison) {
	r.row(first.What, strconv.Itoa(first.Clients), first.Subject)
	r.wrongs(first.Subject)
	for _, c := range append([]comparison{first}, more...) {
		c = r.verdict(c)
		r.Comparisons = append(r.Comparisons, c)
		r.row("", "", c.Against, c.Time.String(), c.Rate.String(), c.CPU.String(), c.Target, c.Verdict)
		r.wrongs(c.Against)
	}
}

// verdict judges what is wanted of a comparison.
func (r *report) verdict(c comparison) comparison {
	var targets []string
	for _, want := range c.checks {
		got := r.judge(want, c.Subject.Errors+c.Against.Errors)
		if c.Verdict == "" || got == wrong || got == miss && c.Verdict == pass {
			c.Verdict = got
		}
		if text := want.bound.String(); !slices.Contains(targets, text) {
			targets = append(targets, text)
		}
	}
	c.Target = strings.Join(targets, ", ")
	return c
}

func (r *report) wrongs(s measure.Summary) {
	r.Wrong += s.Errors
	if s.Errors > 0 {
		r.printf("    %s: %d WRONG, the first: %s\n", s.Name, s.Errors, s.Error)
	}
}

func (r *report) row(what, clients string, s measure.Summary, rest ...any) {
	cells := []any{
		what, clients, s.Name, millis(s.P50), millis(s.P95), millis(s.P99), fmt.Sprintf("%.0f", s.Rate), fine(s.CPU), fine(s.Database),
	}
	for len(rest) < 5 {
		rest = append(rest, "")
	}
	line := fmt.Sprintf(rowFormat, append(cells, rest...)...)
	r.printf("%s\n", strings.TrimRight(line, " \n"))
}

func millis(v float64) string { return fmt.Sprintf("%.2f", v) }

// fine is CPU time per request; a negative one is unknown.
func fine(v float64) string {
	if v < 0 {
		return "-"
	}
	return fmt.Sprintf("%.3f", v)
}

// note says something that is no number, on the screen and in the file.
func (r *report) note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	r.Notes = append(r.Notes, text)
	r.printf("  note: %s\n", text)
}

func (r *report) finish() {
	r.LoadAfter = measure.LoadAverage()
	r.Seconds = time.Since(r.Started).Seconds()
	r.goals()
	r.Missed = r.count(miss)
	r.printf("\n%.0f s, load average now %.2f. %s\n", r.Seconds, r.LoadAfter, r.conclusion())
}

func (r *report) conclusion() string {
	if r.Wrong > 0 {
		return fmt.Sprintf("%d answers were WRONG or missing.", r.Wrong)
	}
	text := "All answers were right; no target was missed"
	if r.Missed > 0 {
		text = fmt.Sprintf("All answers were right; %d targets were missed", r.Missed)
	}
	if n := r.count(leftOut); n > 0 {
		text += fmt.Sprintf(", %d were not measured", n)
	}
	if len(r.Skipped) > 0 {
		text += ", and there was no time for " + strings.Join(r.Skipped, ", ")
	}
	return text + "."
}

// compare divides by the round, so that a slow moment of the machine hits both sides.
func compare(what string, clients int, subject, against measure.Series) comparison {
	c := comparison{What: what, Clients: clients, Subject: subject.Summary(), Against: against.Summary()}
	c.Time = ratio(measure.Ratio(subject, against, measure.Round.P50))
	c.Rate = ratio(measure.Ratio(against, subject, measure.Round.Rate))
	c.CPU = unknown()
	if c.Subject.CPU >= 0 && c.Against.CPU > 0 {
		c.CPU = ratio(c.Subject.CPU / c.Against.CPU)
	}
	return c
}

// want adds a target.
func (c comparison) want(measure string, value ratio, b bound) comparison {
	c.checks = append(slices.Clone(c.checks), check{measure: measure, value: value, bound: b})
	return c
}

// within sets one target for the time and the rate: the cost in terms of the other's.
func (c comparison) within(measure string, limit float64) comparison {
	return c.want(measure, c.Time, atMost(limit)).want(measure, c.Rate, atMost(limit))
}

// ahead sets one target for the time and the rate: how many times as fast as the other.
func (c comparison) ahead(measure string, limit float64) comparison {
	return c.want(measure, 1/c.Time, atLeast(limit)).want(measure, 1/c.Rate, atLeast(limit))
}

// keepsRate sets a target for the part of the other's rate, in percent.
func (c comparison) keepsRate(measure string, least float64) comparison {
	return c.want(measure, 100/c.Rate, shareAtLeast(least))
}

// unknown is a ratio that was not measured.
func unknown() ratio { return ratio(math.NaN()) }
