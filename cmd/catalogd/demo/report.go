package demo

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/catalogd/catalogd/api/mvrest"
)

// cost is what a refresh costs on average.
type cost struct {
	runs  int
	bytes float64 // read and written
	cpu   float64 // seconds of the engine
	ms    float64
}

// average takes the runs that succeeded and that pick chooses.
func average(runs []mvrest.RefreshRun, pick func(mvrest.RefreshRun) bool) cost {
	var c cost
	for _, r := range runs {
		if r.Status == succeeded && pick(r) {
			c.runs++
			c.bytes += float64(r.BytesRead + r.BytesWritten)
			c.cpu += r.CPUSeconds
			c.ms += float64(r.DurationMs)
		}
	}
	if n := float64(c.runs); n > 0 {
		c.bytes, c.cpu, c.ms = c.bytes/n, c.cpu/n, c.ms/n
	}
	return c
}

func (c cost) String() string {
	return fmt.Sprintf("%s, %.3f CPU s", bytesWord(c.bytes), c.cpu)
}

// comparison sets the incremental refreshes of the replay against one full refresh of
// each view at the end.
func comparison(runs map[string][]mvrest.RefreshRun, full map[string]mvrest.RefreshRun) string {
	var text strings.Builder
	t := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "VIEW\tINCREMENTAL (AVERAGE)\tFULL\tBYTES\tCPU TIME")
	for _, v := range views() {
		incremental := average(runs[v.dotted()], func(r mvrest.RefreshRun) bool { return r.Strategy == bucketed })
		whole := average([]mvrest.RefreshRun{full[v.dotted()]}, func(mvrest.RefreshRun) bool { return true })
		if incremental.runs == 0 {
			fmt.Fprintf(t, "%s\tno incremental refresh\t%s\t-\t-\n", v.dotted(), whole)
			continue
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", v.dotted(), incremental, whole,
			ratio(incremental.bytes, whole.bytes), ratio(incremental.cpu, whole.cpu))
	}
	_ = t.Flush() // into memory
	return strings.TrimRight(text.String(), "\n")
}

// ratio writes part : whole with 1 on the left.
func ratio(part, whole float64) string {
	if part <= 0 {
		return "-"
	}
	return fmt.Sprintf("1 : %.1f", whole/part)
}

// strategies counts the runs of all views by strategy, with the reasons why it was not a
// better one.
func strategies(runs map[string][]mvrest.RefreshRun) string {
	count := map[string]int{}
	total := 0
	for _, ofView := range runs {
		for _, r := range ofView {
			what := cmp.Or(r.Strategy, r.Status)
			if r.Reason != "" {
				what += " (" + r.Reason + ")"
			}
			count[what]++
			total++
		}
	}
	words := make([]string, 0, len(count))
	for what, n := range count {
		words = append(words, fmt.Sprintf("%d %s", n, what))
	}
	slices.Sort(words)
	return fmt.Sprintf("%d refreshes: %s", total, strings.Join(words, ", "))
}
