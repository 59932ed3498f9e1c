package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/catalogd/catalogd/api/mvrest"
)

func dotted(i mvrest.Identifier) string {
	return strings.Join(append(append([]string{}, i.Namespace...), i.Name), ".")
}

// noJob is how the server says that nothing is queued or running.
const noJob = "none"

func jobWord(job string) string {
	if job == noJob {
		return "waiting for its turn"
	}
	return job
}

// printViews is the table of list and status.
func printViews(w io.Writer, views []mvrest.MaterializedView) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "VIEW\tSTATUS\tUP TO DATE\tREASON\tSTALE FOR\tJOB\tLAST REFRESH")
	for _, v := range views {
		job := v.Job
		if v.Suspended {
			job = "suspended"
		}
		if job == noJob {
			job = "-"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", dotted(v.View), v.Recursive.Status, yesNo(v.Recursive.UpToDate),
			v.Recursive.Reason, staleFor(v.Recursive.StaleSince), job, lastRefresh(v.LastRefresh))
	}
	_ = t.Flush() // the writer is the terminal's; there is nobody to tell
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func staleFor(since *time.Time) string {
	if since == nil {
		return "-"
	}
	return time.Since(*since).Round(100 * time.Millisecond).String()
}

func lastRefresh(r *mvrest.RefreshRun) string {
	if r == nil {
		return "never"
	}
	if r.Status != "succeeded" {
		return r.Status + " " + r.Reason
	}
	return runWords(*r)
}

// runWords describes a finished run in a few words.
func runWords(r mvrest.RefreshRun) string {
	what := r.Strategy
	if r.Strategy == "buckets" {
		what = fmt.Sprintf("%d buckets", r.Buckets)
	}
	if r.Reason != "" {
		what += " (" + r.Reason + ")"
	}
	return fmt.Sprintf("%s, %d rows, %s read, %d ms", what, r.Rows, bytesWord(r.BytesRead), r.DurationMs)
}

func bytesWord(n int64) string {
	const unit = 1024
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	value, prefix := float64(n)/unit, "KMGTP"
	for len(prefix) > 1 && value >= unit {
		value, prefix = value/unit, prefix[1:]
	}
	return fmt.Sprintf("%.1f %ciB", value, prefix[0])
}

// printView is everything about one view.
func printView(w io.Writer, v mvrest.MaterializedView) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) { fmt.Fprintf(t, "%s\t%s\n", name, fmt.Sprintf(format, args...)) }
	row("view", "%s (version %d, %s)", dotted(v.View), v.ViewVersionID, v.ViewUUID)
	row("storage table", "%s", dotted(v.Definition.StorageTable))
	staleness := "any age will do"
	if ms := v.Definition.MaxStalenessMs; ms != nil {
		staleness = (time.Duration(*ms) * time.Millisecond).String()
	}
	row("max staleness", "%s", staleness)
	row("refresh", "%s", v.Definition.Refresh)
	for _, s := range v.Sources {
		via := ""
		if s.Via != nil {
			via = " through " + dotted(*s.Via)
		}
		row("source", "%s %s%s", s.Kind, dotted(s.Source), via)
	}
	printVerdict(row, "status", v.Direct)
	if v.Recursive.Reason != v.Direct.Reason {
		printVerdict(row, "with its sources", v.Recursive)
	}
	if v.Suspended {
		row("suspended", "yes, after %d failures: `catalogd mv resume %s`", v.Failures, dotted(v.View))
	}
	if v.NotBefore != nil {
		row("next attempt", "%s", v.NotBefore.Local().Format(time.DateTime))
	}
	if v.LastError != nil {
		row("last error", "%s", *v.LastError)
	}
	if v.Job != noJob {
		row("job", "%s", v.Job)
	}
	row("last refresh", "%s", lastRefresh(v.LastRefresh))
	row("query", "%s", v.Definition.Dialect)
	_ = t.Flush() // as in printViews
	fmt.Fprintln(w, v.Definition.SQL)
}

func printVerdict(row func(string, string, ...any), name string, verdict mvrest.FreshnessVerdict) {
	detail := ""
	if verdict.Detail != nil {
		detail = ": " + *verdict.Detail
	}
	row(name, "%s (%s)%s", verdict.Status, verdict.Reason, detail)
	for _, b := range verdict.Behind {
		row("", "%s is %d snapshots ahead (%s)", dotted(b.Source), len(b.SnapshotIds), b.Reason)
	}
}

func printRefreshed(w io.Writer, r refreshed) {
	switch {
	case r.Error != "":
		fmt.Fprintf(w, "%s failed: %s\n", r.View, r.Error)
	case r.Run != nil:
		snapshot := "no snapshot"
		if r.Run.SnapshotID != nil {
			snapshot = fmt.Sprintf("snapshot %d", *r.Run.SnapshotID)
		}
		fmt.Fprintf(w, "%s %s: %s, %s\n", r.View, r.Run.Action, runWords(*r.Run), snapshot)
	default:
		fmt.Fprintf(w, "%s is queued\n", r.View)
	}
}
