package changes

import (
	"container/list"
	"sync"

	"github.com/apache/iceberg-go"
)

// cache keeps decoded manifests in memory. They are immutable, and the plan of a refresh
// needs all manifests whose partitions may match, most of which the last plan has read.
type cache struct {
	limit int // entries of all manifests together

	mu    sync.Mutex
	used  int
	order *list.List // front: most recently used
	held  map[string]*list.Element
}

type cached struct {
	location string
	entries  []iceberg.ManifestEntry
}

// weight counts an empty manifest as well: it takes room in the map.
func (c cached) weight() int { return len(c.entries) + 1 }

// WithCache keeps up to so many manifest entries in memory between calls. An entry takes
// about 2 KB.
func WithCache(entries int) Option {
	return func(r *Reader) {
		r.cache = &cache{limit: entries, order: list.New(), held: make(map[string]*list.Element)}
	}
}

// get returns a manifest's entries; c may be nil.
func (c *cache) get(location string) ([]iceberg.ManifestEntry, bool) {
	if c == nil {
		return nil, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.held[location]
	if !ok {
		return nil, false
	}
	c.order.MoveToFront(e)
	return e.Value.(cached).entries, true
}

func (c *cache) put(location string, entries []iceberg.ManifestEntry) {
	if c == nil || len(entries) > c.limit/4 {
		return // one huge manifest must not push out everything else
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.held[location]; ok {
		return
	}
	m := cached{location, entries}
	c.held[location] = c.order.PushFront(m)
	c.used += m.weight()
	for c.used > c.limit {
		last := c.order.Back()
		old := last.Value.(cached)
		c.order.Remove(last)
		delete(c.held, old.location)
		c.used -= old.weight()
	}
}
