package catalog_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/catalogd/catalogd/catalog"
)

func TestLocationKey_oneSpelling(t *testing.T) {
	t.Parallel()
	for _, same := range [][]string{
		{"file:/w/ns/t", "file:///w/ns/t", "file:///w/ns/t/", "/w/ns/t", "FILE:///w//ns/./t", "file://localhost/w/ns/t", "local:///w/ns/t"},
		{"s3://b/ns/t", "s3a://b/ns/t/", "S3N://b/ns/t"},
		{"abfss://c@a.dfs.core.windows.net/t", "abfs://c@a.dfs.core.windows.net/t/"},
		{"gs://b/ns/t", "gs://b/ns/t//"},
	} {
		for _, location := range same {
			if got, want := catalog.LocationKey(location), catalog.LocationKey(same[0]); got != want {
				t.Errorf("LocationKey(%q) = %q, of %q it is %q", location, got, same[0], want)
			}
		}
	}
	if a, b := catalog.LocationKey("s3://b/ns//t"), catalog.LocationKey("s3://b/ns/t"); a == b {
		t.Errorf("two different keys of an object store are both %q", a)
	}
}

func TestEnclosing(t *testing.T) {
	t.Parallel()
	for key, want := range map[string][]string{
		"/w/ns/t":      {"/w", "/w/ns"},
		"/t":           nil,
		"s3://b/ns/t":  {"s3://b", "s3://b/ns"},
		"s3://b":       nil,
		"s3://b/n//t":  {"s3://b", "s3://b/n"},
		"gs://b/a/b/c": {"gs://b", "gs://b/a", "gs://b/a/b"},
	} {
		if diff := cmp.Diff(want, catalog.Enclosing(key)); diff != "" {
			t.Errorf("Enclosing(%q) (-want +got):\n%s", key, diff)
		}
	}
}

// What encloses a key is what it begins with, up to a slash: the two ways in which the
// database looks for an overlap agree.
func TestEnclosing_isThePrefixRelation(t *testing.T) {
	t.Parallel()
	path := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "ab"}), 1, 5)
	rapid.Check(t, func(t *rapid.T) {
		outer := catalog.LocationKey("/" + strings.Join(path.Draw(t, "outer"), "/"))
		inner := catalog.LocationKey("/" + strings.Join(path.Draw(t, "inner"), "/"))
		if got, want := slices.Contains(catalog.Enclosing(inner), outer), strings.HasPrefix(inner, outer+"/"); got != want {
			t.Fatalf("%q encloses %q: %t, want %t", outer, inner, got, want)
		}
	})
}
