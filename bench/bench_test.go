package main

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/catalogd/catalogd/bench/measure"
	"github.com/catalogd/catalogd/catalog/postgres/pgtest"
)

// tiny is enough to send every kind of request.
func tiny(t *testing.T, fault string, only ...string) options {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return options{
		only: only, catalogd: self, dir: t.TempDir(), json: filepath.Join(t.TempDir(), "out.json"),
		database: pgtest.Pool(t).Config().ConnString(), env: []string{faultVariable + "=" + fault}, reference: []string{self, referenceArgument},
		scale: scale{
			budget: time.Hour, rounds: 2, loadRounds: 2, loadTime: 60 * time.Millisecond, commitTime: time.Minute, sizes: []int{3, 5}, clients: []int{1, 8}, commits: 12,
			referenceRounds: 1, referenceTime: 60 * time.Millisecond, referenceSizes: [3]int{2, 3, 60}, warmUp: time.Minute, warmRequests: 9, hotRounds: 2, hotCommits: 24,
		},
	}
}

func runTiny(t *testing.T, o options) (*report, string, error) {
	t.Helper()
	var out bytes.Buffer
	rep := newReport(&out, o)
	err := measureAll(t.Context(), o, rep)
	rep.finish()
	return rep, out.String(), err
}

func TestRun_rightServer(t *testing.T) {
	t.Parallel()
	o := tiny(t, "", "load", "reference", "commit", "hot")
	rep, text, err := runTiny(t, o)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if rep.Wrong != 0 {
		t.Fatalf("%d wrong answers of a server that is right:\n%s", rep.Wrong, text)
	}
	// Loads of both servers, with and without a cache: all at both sizes, refs and 304 at the
	// larger one. Against the reference server: one kind with 8 clients, and four. Commits
	// against the floor and the reference server. Each with 1 and 8 clients, but the hot table.
	if want := 2*2*(2+2) + (1 + 2*4) + 2*2 + 1; len(rep.Comparisons) != want {
		t.Errorf("%d comparisons, want %d:\n%s", len(rep.Comparisons), want, text)
	}
	for _, c := range rep.Comparisons {
		for _, s := range []measure.Summary{c.Subject, c.Against} {
			if s.Count == 0 || s.P50 <= 0 || s.P50 > s.P95 || s.P95 > s.P99 || s.Rate <= 0 {
				t.Errorf("%s, %s: %+v", c.What, s.Name, s)
			}
		}
		if !c.Time.known() || !c.Rate.known() {
			t.Errorf("%s against %s: ratios %v and %v", c.What, c.Against.Name, c.Time, c.Rate)
		}
	}
	for _, c := range rep.Comparisons {
		var want int
		switch c.What {
		case "commit, own tables":
			want = 2 * c.Clients * 12
		case "append to the hot table":
			want = 2 * 24
		default:
			continue
		}
		if c.Subject.Count != want || c.Against.Count != want {
			t.Errorf("%s, %d clients: %d and %d, want %d", c.What, c.Clients, c.Subject.Count, c.Against.Count, want)
		}
	}
	// Two of the loads, one for each kind of load of the reference server and for CPU time, four of commits, two of the hot table.
	if want := 2 + 5 + 4 + 2; len(rep.Goals) != want || rep.count(leftOut) != 0 {
		t.Errorf("%d goals, want %d:\n%s", len(rep.Goals), want, text)
	}
	if err := rep.save(o.json); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(o.json)
	if err != nil {
		t.Fatal(err)
	}
	var back map[string]any
	if err := json.Unmarshal(data, &back); err != nil || back["wrong"] != 0.0 {
		t.Errorf("the JSON file says wrong = %v (%v)", back["wrong"], err)
	}
}

// A server that is fast because it is wrong must be found out.
func TestRun_wrongServers(t *testing.T) {
	t.Parallel()
	for fault, part := range map[string]string{
		"wrong byte": "load", "no ETag": "load", "never 304": "load", "lost commit": "commit", "two winners": "hot",
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			o := tiny(t, fault, part)
			o.scale.commits = 25
			rep, text, err := runTiny(t, o)
			if err == nil && rep.Wrong == 0 {
				t.Fatalf("not noticed:\n%s", text)
			}
			if err == nil && !strings.Contains(text, "WRONG") {
				t.Errorf("the report does not say so:\n%s", text)
			}
		})
	}
}

func TestCompare_verdict(t *testing.T) {
	t.Parallel()
	series := func(d time.Duration, errs int) measure.Series {
		return measure.Series{Rounds: []measure.Round{{Times: []time.Duration{d}, Wall: d, CPU: d, Errors: errs}}}
	}
	base := series(time.Millisecond, 0)
	for _, tt := range []struct {
		subject measure.Series
		want    string
	}{
		{series(1900*time.Microsecond, 0), pass},
		{series(2100*time.Microsecond, 0), miss},
		{series(time.Millisecond, 1), wrong},
		{measure.Series{}, miss},
	} {
		c := judged(compare("x", 1, tt.subject, base).within("y", 2))
		if c.Verdict != tt.want {
			t.Errorf("time %v, rate %v, %d errors: %s, want %s", c.Time, c.Rate, c.Subject.Errors, c.Verdict, tt.want)
		}
	}
	if got := judged(compare("x", 1, series(1240*time.Microsecond, 0), base).keepsRate("y", 80)); got.Verdict != pass {
		t.Errorf("81 %% of the rate: %s, want PASS", got.Verdict)
	}
	if got := judged(compare("x", 1, series(1260*time.Microsecond, 0), base).keepsRate("y", 80)); got.Verdict != miss {
		t.Errorf("79 %% of the rate: %s, want MISS", got.Verdict)
	}
	if got := judged(compare("x", 1, series(99*time.Microsecond, 0), base).ahead("y", 10)); got.Verdict != pass {
		t.Errorf("10.1 times as fast: %s, want PASS", got.Verdict)
	}
	if got := judged(compare("x", 1, series(101*time.Microsecond, 0), base).ahead("y", 10)); got.Verdict != miss {
		t.Errorf("9.9 times as fast: %s, want MISS", got.Verdict)
	}
	if got := compare("x", 1, series(3*time.Millisecond, 0), base); got.CPU != 3 {
		t.Errorf("CPU ratio %v, want 3", got.CPU)
	}
}

func judged(c comparison) comparison { return newReport(io.Discard, options{}).verdict(c) }

// TestReport_goals: a measure is as good as its worst line.
func TestReport_goals(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	r := newReport(&out, options{})
	for _, tt := range []struct {
		check check
		errs  int
		want  string
	}{
		{check{"low", 1.5, atMost(2)}, 0, pass},
		{check{"low", 1.9, atMost(2)}, 0, pass},
		{check{"low", 1.2, atMost(2)}, 0, pass},
		{check{"high", 12, atLeast(10)}, 0, pass},
		{check{"high", 9, atLeast(10)}, 0, miss},
		{check{"high", 40, atLeast(10)}, 0, pass},
		{check{"share", 60, shareAtLeast(60)}, 0, pass},
		{check{"bad", 1, atMost(2)}, 3, wrong},
		{check{"bad", 1.9, atMost(2)}, 0, pass},
		{check{"unknown", unknown(), atMost(2)}, 0, miss},
	} {
		if got := r.judge(tt.check, tt.errs); got != tt.want {
			t.Errorf("%+v: %s, want %s", tt.check, got, tt.want)
		}
	}
	r.leave("no java", check{measure: "absent", bound: atLeast(5)})
	r.finish()
	for measure, want := range map[string]string{
		"low": "1.90×  ≤ 2×      PASS", "high": "9.00×  ≥ 10×     MISS", "share": "60 %  ≥ 60 %    PASS", "bad": "≤ 2×      WRONG",
		"unknown": "-  ≤ 2×      MISS", "absent": "-  ≥ 5×      LEFT OUT",
	} {
		if !slices.ContainsFunc(strings.Split(out.String(), "\n"), func(line string) bool {
			return strings.HasPrefix(line, measure+" ") && strings.HasSuffix(line, want)
		}) {
			t.Errorf("no line %q with %q in\n%s", measure, want, out.String())
		}
	}
	if r.Missed != 2 || !strings.Contains(out.String(), "2 targets were missed, 1 were not measured") {
		t.Errorf("%d missed:\n%s", r.Missed, out.String())
	}
}

// TestRun_noReference: without Java the run goes on and says what is not known.
func TestRun_noReference(t *testing.T) {
	t.Parallel()
	o := tiny(t, "", "reference", "commit", "hot")
	o.reference = []string{filepath.Join(t.TempDir(), "missing")}
	rep, text, err := runTiny(t, o)
	if err != nil || rep.Wrong != 0 {
		t.Fatalf("%v\n%s", err, text)
	}
	if got, want := rep.count(leftOut), 5+1+1; got != want || !strings.Contains(text, "left out: the comparison with Apache's reference server") {
		t.Errorf("%d measures are left out, want %d:\n%s", got, want, text)
	}
}

func TestLargeMetadata(t *testing.T) {
	t.Parallel()
	body, err := largeMetadata(map[string]json.RawMessage{"format-version": json.RawMessage("2"), "location": json.RawMessage(`"x"`)}, "u", "file:///t", memoryBytes)
	if err != nil || len(body) < memoryBytes || len(body) > memoryBytes*11/10 {
		t.Fatalf("%d bytes, %v", len(body), err)
	}
	var got struct {
		Version  int    `json:"format-version"`
		UUID     string `json:"table-uuid"`
		Location string `json:"location"`
	}
	if err := json.Unmarshal(body, &got); err != nil || got.Version != 2 || got.UUID != "u" || got.Location != "file:///t" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestGauge(t *testing.T) {
	t.Parallel()
	const text = "# TYPE heap gauge\nheap_total 7\nheap 1.5e+06\n"
	if got, err := gauge([]byte(text), "heap"); err != nil || got != 1_500_000 {
		t.Errorf("%d, %v", got, err)
	}
	if _, err := gauge([]byte(text), "heaps"); err == nil {
		t.Error("a gauge that is not there has a value")
	}
}

func TestReadPath(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	jar, list := filepath.Join(dir, "a.jar"), filepath.Join(dir, "list")
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(list, jar)
	if _, ok := readPath(list); ok {
		t.Error("a class path whose jar is gone is used")
	}
	write(jar, "jar")
	if got, ok := readPath(list); !ok || got != jar {
		t.Errorf("%q, %v", got, ok)
	}
}

func TestRatio_JSON(t *testing.T) {
	t.Parallel()
	data, err := json.Marshal([]ratio{1.5, ratio(math.NaN()), ratio(math.Inf(1))})
	if err != nil || string(data) != "[1.5,null,null]" {
		t.Errorf("%s, %v", data, err)
	}
}

func TestParseOptions(t *testing.T) {
	t.Parallel()
	o, err := parseOptions([]string{"--quick", "--only", "mv,load", "--json", "f"})
	if err != nil || len(o.only) != 2 || o.json != "f" || o.scale.rounds != quickScale().rounds {
		t.Errorf("%+v, %v", o, err)
	}
	for _, bad := range [][]string{{"--only", "loads"}, {"surplus"}, {"--only", "load,"}} {
		if _, err := parseOptions(bad); err == nil {
			t.Errorf("%v: no error", bad)
		}
	}
}

func TestAddressIn(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"starting\nlistening on http://127.0.0.1:8181\nmore\n":   "http://127.0.0.1:8181",
		"listening on http://[::1]:8181\n":                       "http://[::1]:8181",
		"listening on http://127.0.0.1:81":                       "", // the line is not complete
		"level=INFO msg=\"listening on http://127.0.0.1:5\" x\n": "http://127.0.0.1:5",
		"listening on nothing\n":                                 "",
	} {
		if got := addressIn([]byte(text)); got != want {
			t.Errorf("addressIn(%q) = %q, want %q", text, got, want)
		}
	}
}
