package difftest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/catalogd/catalogd/catalog/metadata"
)

// TestTable_ChainedCommits: a commit that starts from the table which the one before left
// in memory makes the same document as one that reads it anew.
func TestTable_ChainedCommits(t *testing.T) {
	t.Parallel()
	accepted, unchanged := 0, 0
	rapid.Check(t, func(r *rapid.T) {
		kept, err := newTable(rapid.IntRange(1, 3).Draw(r, "version"))
		if err != nil {
			r.Fatal(err)
		}
		g := &generator{T: r, next: 100}
		for range rapid.IntRange(2, 8).Draw(r, "commits") {
			updates := g.commit(kept)
			parsed, err := metadata.ParseTable(kept.Bytes())
			if err != nil {
				r.Fatal(err)
			}
			a, aErr := ourTable(kept, g.second, updates)
			b, bErr := ourTable(parsed, g.second, updates)
			if (aErr == nil) != (bErr == nil) || aErr != nil && aErr.Error() != bErr.Error() {
				r.Fatalf("from memory: %v\nread anew: %v\n%s", aErr, bErr, list(updates))
			}
			if aErr != nil {
				continue
			}
			if diff := cmp.Diff(string(b.Bytes()), string(a.Bytes())); diff != "" || a.Changed() != b.Changed() {
				r.Fatalf("read anew (-, changed %t) and from memory (+, changed %t) after %s\n%s", b.Changed(), a.Changed(), list(updates), diff)
			}
			if diff := cmp.Diff(string(b.RefsBytes()), string(a.RefsBytes())); diff != "" {
				r.Fatalf("the refs forms differ after %s\n%s", list(updates), diff)
			}
			accepted++
			if !a.Changed() {
				unchanged++
			}
			kept = a
		}
	})
	if accepted < 100 || unchanged == 0 {
		t.Errorf("the generator is too weak: %d accepted, %d without a change", accepted, unchanged)
	}
}
