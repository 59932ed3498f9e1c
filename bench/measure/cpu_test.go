package measure

import (
	"testing"
	"time"
)

func TestParseStat(t *testing.T) {
	t.Parallel()
	const line = "42 (a) ) (name) S 1 42 42 0 -1 4194304 99 0 0 0 150 25 7 8 20 0 1 0 155023 3133440 379 18446744073709551615\n"
	got, err := parseStat([]byte(line))
	if err != nil || got != 1750*time.Millisecond {
		t.Errorf("parseStat = %v, %v, want 1.75s", got, err)
	}
	for _, bad := range []string{"", "42 (x", "42 (x) S 1 2", "42 (x) S 1 42 42 0 -1 4194304 99 0 0 0 many 25 7 8"} {
		if got, err := parseStat([]byte(bad)); err == nil {
			t.Errorf("parseStat(%q) = %v, want an error", bad, got)
		}
	}
}

func TestParseStatus(t *testing.T) {
	t.Parallel()
	const text = "Name:\tVmHWM: 7 kB\nVmPeak:\t 1234 kB\nVmHWM:\t  2048 kB\nVmRSS:\t  1536 kB\nThreads:\t9\n"
	got, err := parseStatus([]byte(text))
	if want := (Memory{Resident: 1536 << 10, Peak: 2 << 20}); err != nil || got != want {
		t.Errorf("parseStatus = %+v, %v, want %+v", got, err, want)
	}
	for _, bad := range []string{"", "VmRSS:\t1 kB\n", "VmRSS:\t1 MB\nVmHWM:\t1 kB\n", "VmRSS:\tx kB\nVmHWM:\t1 kB\n"} {
		if got, err := parseStatus([]byte(bad)); err == nil {
			t.Errorf("parseStatus(%q) = %+v, want an error", bad, got)
		}
	}
}
