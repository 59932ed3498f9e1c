package demo

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/catalogd/catalogd/api/mvrest"
)

// What a terminal understands: lines are not wrapped while the board is drawn, so that
// their number is known and it can be drawn over.
const (
	noWrap  = "\x1b[?7l"
	wrap    = "\x1b[?7h"
	up      = "\x1b[%dA" // lines
	eraseTo = "\x1b[J"   // the end of the screen
)

// plainEvery is how many commits share a line when there is no terminal.
const plainEvery = 10

// barWidth is the width of the bar that shows how many commits were made.
const barWidth = 30

// board shows what happens: on a terminal a picture that is drawn again and again below
// the lines that stay, else lines only.
type board struct {
	mu      sync.Mutex
	out     io.Writer
	live    bool
	drawn   int // lines of the picture that is on the screen
	total   int // commits
	done    int
	rows    int
	last    string
	views   []mvrest.MaterializedView
	runs    map[string]int            // refreshes seen, by view
	buckets map[string]map[int64]bool // that the source has, by view
	stopped bool
}

func newBoard(out io.Writer, live bool, total int) *board {
	b := &board{out: out, live: live, total: total, runs: map[string]int{}, buckets: map[string]map[int64]bool{}}
	for _, v := range views() {
		b.buckets[v.dotted()] = map[int64]bool{}
	}
	return b
}

// say prints a line that stays.
func (b *board) say(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.line(fmt.Sprintf(format, args...))
}

func (b *board) line(text string) {
	fmt.Fprint(b.out, b.erase()+text+"\n"+b.picture())
}

// committed counts a commit.
func (b *board) committed(c commit) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.done++
	b.last = c.String()
	if c.kind == appended {
		b.rows += len(c.rows)
		for _, v := range views() {
			for _, f := range c.rows {
				b.buckets[v.dotted()][v.unit.bucket(f)] = true
			}
		}
	}
	switch {
	case b.live:
		fmt.Fprint(b.out, b.erase()+b.picture())
	case b.done%plainEvery == 0 || b.done == b.total || c.kind == compacted:
		b.line(fmt.Sprintf("commit %d of %d, %s rows so far; %s", b.done, b.total, thousands(int64(b.rows)), b.last))
	}
}

// refreshed shows a run that ended.
func (b *board) refreshed(name string, run mvrest.RefreshRun) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.runs[name]++
	if !b.live || run.Status != succeeded {
		b.line("refresh " + name + ": " + runWords(run, b.bucketsOf(name)))
	}
}

// show takes the state of all views.
func (b *board) show(views []mvrest.MaterializedView) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.views = views
	if b.live {
		fmt.Fprint(b.out, b.erase()+b.picture())
	}
}

// stop leaves the last picture on the screen; only lines follow.
func (b *board) stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stopped, b.drawn = true, 0
}

// erase takes the picture off the screen. What replaces it goes out in the same write, so
// that nothing flickers.
func (b *board) erase() string {
	n := b.drawn
	b.drawn = 0
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(up, n) + "\r" + eraseTo
}

// picture draws the commits and the views, and counts its lines for erase.
func (b *board) picture() string {
	if !b.live || b.stopped {
		return ""
	}
	var text bytes.Buffer
	filled := 0
	if b.total > 0 {
		filled = b.done * barWidth / b.total
	}
	fmt.Fprintf(&text, "\n[%s%s] commit %d of %d, %s rows; %s\n\n", strings.Repeat("#", filled), strings.Repeat(".", barWidth-filled),
		b.done, b.total, thousands(int64(b.rows)), b.last)
	t := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "VIEW\tSTATUS\tBEHIND\tFOR\tJOB\tREFRESHES\tLAST\tBUCKETS\tTOOK\tWHY")
	for _, v := range b.views {
		name := dotted(v.View)
		strategy, buckets, took, why := "-", "-", "-", ""
		if r := v.LastRefresh; r != nil {
			strategy, buckets, took, why = cmp.Or(r.Strategy, r.Status), bucketWords(*r, b.bucketsOf(name)), duration(r.DurationMs), r.Reason
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s\t%s\t%s\n", name, v.Recursive.Status, behind(v), lag(v),
			v.Job, b.runs[name], strategy, buckets, took, why)
	}
	_ = t.Flush() // into memory
	b.drawn = bytes.Count(text.Bytes(), []byte("\n"))
	return noWrap + text.String() + wrap
}

func dotted(i mvrest.Identifier) string {
	return strings.Join(append(append([]string{}, i.Namespace...), i.Name), ".")
}

// behind is how many snapshots of its sources a view does not reflect.
func behind(v mvrest.MaterializedView) string {
	n := 0
	for _, b := range v.Recursive.Behind {
		n += len(b.SnapshotIds)
	}
	if v.Recursive.UpToDate {
		return "-"
	}
	return strconv.Itoa(n)
}

// lag is how long a view has not been up to date.
func lag(v mvrest.MaterializedView) string {
	if v.Recursive.StaleSince == nil {
		return "-"
	}
	return duration(time.Since(*v.Recursive.StaleSince).Milliseconds())
}

// bucketsOf is how many buckets a view has by what was committed so far.
func (b *board) bucketsOf(name string) int64 { return int64(len(b.buckets[name])) }

// runWords describes a run that ended, of a view with total buckets; 0 is unknown.
func runWords(r mvrest.RefreshRun, total int64) string {
	if r.Status != succeeded {
		why := r.Reason
		if r.Error != nil {
			why += ": " + *r.Error
		}
		return r.Status + " (" + why + ")"
	}
	words := r.Strategy
	if r.Strategy == bucketed {
		words = bucketWords(r, total) + " buckets"
	}
	if r.Reason != "" {
		words += " (" + r.Reason + ")"
	}
	return fmt.Sprintf("%s, %s rows, %s read, %s", words, thousands(r.Rows), bytesWord(float64(r.BytesRead)), duration(r.DurationMs))
}

func bucketWords(r mvrest.RefreshRun, total int64) string {
	switch {
	case r.Strategy != bucketed:
		return "-"
	case total == 0:
		return thousands(r.Buckets)
	default:
		return thousands(r.Buckets) + " of " + thousands(total)
	}
}

func duration(ms int64) string {
	return strconv.FormatFloat(float64(ms)/1000, 'f', 2, 64) + " s"
}

func thousands(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

func bytesWord(n float64) string {
	units := []string{"B", "KiB", "MiB", "GiB"}
	for n >= 1024 && len(units) > 1 {
		n, units = n/1024, units[1:]
	}
	if units[0] == "B" {
		return fmt.Sprintf("%.0f B", n)
	}
	return fmt.Sprintf("%.1f %s", n, units[0])
}
