package difftest

import (
	"errors"
	"testing"

	"github.com/apache/iceberg-go/table"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/catalogd/catalogd/catalog/metadata"
)

// tally counts what a test compared, so that a generator that has gone blind is noticed.
type tally struct{ accepted, refused, differed int }

func TestTable(t *testing.T) {
	t.Parallel()
	var n tally
	differences := tableDifferences()
	rapid.Check(t, func(r *rapid.T) {
		tbl, err := newTable(rapid.IntRange(1, 3).Draw(r, "version"))
		if err != nil {
			r.Fatal(err)
		}
		g := &generator{T: r, next: 100}
		for range rapid.IntRange(1, 8).Draw(r, "commits") {
			tbl = compare(t, g, tbl, g.commit(tbl), differences, &n)
		}
	})
	t.Logf("%+v", n)
	if n.accepted < 100 || n.refused < 20 {
		t.Errorf("the generator is too weak: %+v", n)
	}
}

// compare applies one commit both ways and returns the table to go on with.
func compare(t *testing.T, g *generator, base *metadata.Table, updates []string, differences []difference, n *tally) *metadata.Table {
	t.Helper()
	ours, ourErr := ourTable(base, g.second, updates)
	theirs, theirErr := theirTable(base.Bytes(), updates)
	switch {
	case ourErr != nil && theirErr != nil:
		n.refused++
		return base
	case ourErr != nil || theirErr != nil:
		if !known(differences, ourErr, theirErr) {
			g.Fatalf("ours: %v\niceberg-go: %v\n%s\non %s", ourErr, theirErr, list(updates), base.Bytes())
		}
		n.differed++
		if ourErr != nil {
			return base
		}
	default:
		want, got := normal(t, theirs, !ours.Changed()), normal(t, ours.Bytes(), !ours.Changed())
		if diff := cmp.Diff(want, got); diff != "" {
			if !excused(differences, want, got) {
				g.Fatalf("iceberg-go (-) and we (+) differ after %s\non %s\n%s", list(updates), base.Bytes(), diff)
			}
			n.differed++
		} else {
			n.accepted++
		}
	}
	next, err := metadata.ParseTable(ours.Bytes())
	if err != nil {
		g.Fatalf("we can't read our output: %v\n%s", err, ours.Bytes())
	}
	if _, err := table.ParseMetadataBytes(ours.Bytes()); err != nil {
		if theirErr != nil && known(differences, nil, err) {
			return base // what they refuse to make they refuse to read
		}
		g.Fatalf("iceberg-go can't read our output: %v\n%s after %s", err, ours.Bytes(), list(updates))
	}
	return next
}

func TestRequirements(t *testing.T) {
	t.Parallel()
	var n tally
	rapid.Check(t, func(r *rapid.T) {
		tbl, err := newTable(rapid.IntRange(1, 3).Draw(r, "version"))
		if err != nil {
			r.Fatal(err)
		}
		g := &generator{T: r, next: 100}
		for range rapid.IntRange(1, 3).Draw(r, "commits") {
			updates := g.commit(tbl)
			if next, err := ourTable(tbl, g.second, updates); err == nil {
				if _, err := table.ParseMetadataBytes(next.Bytes()); err == nil { // else see TestTable
					tbl = next
				}
			}
		}
		for range 6 {
			req := g.requirement(tbl)
			ours, theirs := tbl.Check(raws(req)), theirCheck(tbl.Bytes(), []string{req})
			if (ours == nil) != (theirs == nil) {
				r.Fatalf("ours: %v\niceberg-go: %v\n%s on %s", ours, theirs, req, tbl.Bytes())
			}
			if e, ok := errors.AsType[*metadata.Error](ours); ours != nil && (!ok || !e.Conflict) {
				r.Fatalf("a requirement that does not hold is no conflict: %v", ours)
			}
			if ours == nil {
				n.accepted++
			} else {
				n.refused++
			}
		}
	})
	if n.accepted < 100 || n.refused < 100 {
		t.Errorf("the generator is too weak: %+v", n)
	}
}

func TestKnown(t *testing.T) {
	t.Parallel()
	for _, d := range tableDifferences() {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			tbl, err := newTable(d.version)
			if err != nil {
				t.Fatal(err)
			}
			second := int64(0)
			for _, u := range d.before {
				second++
				if tbl, err = ourTable(tbl, second, []string{u}); err != nil {
					t.Fatal(err)
				}
			}
			ours, ourErr := ourTable(tbl, second+1, d.commit)
			theirs, theirErr := theirTable(tbl.Bytes(), d.commit)
			if (ourErr == nil) != (d.ours == accepts) || (theirErr == nil) != (d.theirs == accepts) {
				t.Fatalf("ours: %v, iceberg-go: %v; want that it %s and we %s", ourErr, theirErr, d.theirs, d.ours)
			}
			if d.excuse == nil {
				if !known([]difference{d}, ourErr, theirErr) {
					t.Errorf("ours: %v, iceberg-go: %v; want %q", ourErr, theirErr, d.text)
				}
				return
			}
			want, got := normal(t, theirs, false), normal(t, ours.Bytes(), false)
			if cmp.Equal(want, got) || !d.excuse(want, got) {
				t.Errorf("not the difference that is meant: iceberg-go (-), we (+)\n%s", cmp.Diff(want, got))
			}
		})
	}
}
