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
