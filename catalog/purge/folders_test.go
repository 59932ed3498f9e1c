package purge

import (
	"fmt"
	"testing"
)

// TestJoined: few folders are left, and each of those before lies in one of them.
func TestJoined(t *testing.T) {
	t.Parallel()
	const place = "/lake/p/"
	for name, other := range map[string]func(i int) string{
		"side by side":   func(i int) string { return fmt.Sprintf("/lake/t%d/data/", i) },
		"just below /":   func(i int) string { return fmt.Sprintf("/t%d/", i) },
		"deep":           func(i int) string { return fmt.Sprintf("/lake/q/%d/%d/%d/data/day=%d/", i%10, i%100, i%1000, i) },
		"nested":         func(i int) string { return fmt.Sprintf("/lake/q/%d/", i%2500) + [2]string{"", "x/"}[i/2500] },
		"one bucket":     func(i int) string { return fmt.Sprintf("s3://bucket/t%d/", i) },
		"many buckets":   func(i int) string { return fmt.Sprintf("s3://bucket%d/t/", i) },
		"bucket roots":   func(i int) string { return fmt.Sprintf("s3://bucket%d/", i) },
		"without a root": func(i int) string { return fmt.Sprintf("t%d/data/", i) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folders := map[string]bool{place + "data/": true}
			for i := range 5000 {
				folders[other(i)] = true
			}
			few := joined(folders)
			if len(few) > maxFolders {
				t.Errorf("%d folders are left, want at most %d", len(few), maxFolders)
			}
			for f := range folders {
				covered := false
				for up := range few {
					covered = covered || up == "" || f == up || below(f, up)
				}
				if !covered {
					t.Errorf("%s lies in none of %v", f, few)
					break
				}
			}
			meets := false
			for f := range few {
				meets = meets || overlaps(f, place)
			}
			if !meets {
				t.Errorf("none of %v overlaps %s", few, place)
			}
			if again := joined(few); len(again) > len(few) {
				t.Errorf("joined again there are %d folders instead of %d", len(again), len(few))
			}
		})
	}
}

// TestJoinedIsCareful: only the deepest folders are raised, and roots never.
func TestJoinedIsCareful(t *testing.T) {
	t.Parallel()
	folders := map[string]bool{"s3://b/": true, "/lake/p/": true}
	for i := range 500 {
		folders[fmt.Sprintf("/lake/q/data/%d/", i)] = true
	}
	got := joined(folders)
	if len(got) != 3 || !got["s3://b/"] || !got["/lake/p/"] || !got["/lake/q/data/"] {
		t.Errorf("joined = %v, want the bucket, p, and the folder above all others", got)
	}
}
