package changes

import (
	"strconv"
	"testing"

	"github.com/apache/iceberg-go"
)

func TestCache(t *testing.T) {
	t.Parallel()
	r := &Reader{}
	WithCache(40)(r)
	manifest := func(n int) []iceberg.ManifestEntry { return make([]iceberg.ManifestEntry, n) }
	r.cache.put("a", manifest(9))
	r.cache.put("b", manifest(9))
	r.cache.put("c", manifest(9))
	if _, ok := r.cache.get("a"); !ok { // b is the oldest now
		t.Fatal("a is not held")
	}
	r.cache.put("d", manifest(9))
	r.cache.put("e", manifest(9))
	for location, want := range map[string]bool{"a": true, "b": false, "c": true, "d": true, "e": true} {
		if _, ok := r.cache.get(location); ok != want {
			t.Errorf("%s held: %v, want %v", location, ok, want)
		}
	}
	r.cache.put("huge", manifest(30))
	if _, ok := r.cache.get("huge"); ok {
		t.Error("a manifest that pushes out all others is held")
	}
	for i := range 1000 {
		r.cache.put(strconv.Itoa(i), nil)
	}
	if r.cache.used > r.cache.limit || len(r.cache.held) != r.cache.order.Len() {
		t.Errorf("used %d of %d, %d held, %d in order", r.cache.used, r.cache.limit, len(r.cache.held), r.cache.order.Len())
	}
	var none *cache
	none.put("a", nil)
	if _, ok := none.get("a"); ok {
		t.Error("no cache holds something")
	}
}
