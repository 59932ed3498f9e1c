package main

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
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
		database: pgtest.Pool(t).Config().ConnString(), env: []string{faultVariable + "=" + fault},
		scale: scale{rounds: 2, loadRounds: 2, loadTime: 60 * time.Millisecond, commitTime: 5 * time.Second, sizes: []int{3, 5}, clients: []int{1, 4}, commits: 12},
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
	o := tiny(t, "", "load", "commit")
	rep, text, err := runTiny(t, o)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if rep.Wrong != 0 {
		t.Fatalf("%d wrong answers of a server that is right:\n%s", rep.Wrong, text)
	}
	// all against two floors at both sizes, refs and 304 at the larger one, commits; each with 1 and 4 clients.
	if want := 2*(2*2+2) + 2; len(rep.Comparisons) != want {
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
	if last := rep.Comparisons[len(rep.Comparisons)-1]; last.Subject.Count != 2*4*12 || last.Against.Count != 2*4*12 {
		t.Errorf("%d and %d commits, want %d", last.Subject.Count, last.Against.Count, 2*4*12)
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
		"wrong byte": "load", "no ETag": "load", "never 304": "load", "lost commit": "commit",
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
		c := compare("x", 1, tt.subject, base).atMost(2)
		if c.Verdict != tt.want {
			t.Errorf("time %v, rate %v, %d errors: %s, want %s", c.Time, c.Rate, c.Subject.Errors, c.Verdict, tt.want)
		}
	}
	if got := compare("x", 1, series(1240*time.Microsecond, 0), base).keepsRate(0.8); got.Verdict != pass {
		t.Errorf("81 %% of the rate: %s, want PASS", got.Verdict)
	}
	if got := compare("x", 1, series(1260*time.Microsecond, 0), base).keepsRate(0.8); got.Verdict != miss {
		t.Errorf("79 %% of the rate: %s, want MISS", got.Verdict)
	}
	if got := compare("x", 1, series(3*time.Millisecond, 0), base); got.CPU != 3 {
		t.Errorf("CPU ratio %v, want 3", got.CPU)
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
