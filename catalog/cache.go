package catalog

import (
	"cmp"
	"container/list"
	"sync"
)

// cache keeps documents in memory, keyed by their immutable metadata location, up to a
// number of bytes. It also remembers which location a name had last, as a hint only: a
// load always asks the store which location is current.
type cache struct {
	limit int64

	mu    sync.Mutex
	used  int64
	order *list.List // front: most recently used; values are *Document
	byLoc map[string]*list.Element
	hints map[hintKey]string
}

type hintKey struct {
	warehouse, namespace, name string
}

func (k hintKey) compare(o hintKey) int {
	return cmp.Or(cmp.Compare(k.warehouse, o.warehouse), cmp.Compare(k.namespace, o.namespace), cmp.Compare(k.name, o.name))
}

func newCache(limit int64) *cache {
	return &cache{limit: limit, order: list.New(), byLoc: map[string]*list.Element{}, hints: map[hintKey]string{}}
}

func hintOf(warehouse string, id TableIdent) hintKey {
	return hintKey{warehouse, EncodeNamespace(id.Namespace), id.Name}
}

// held returns the document that the name had last, nil if it is not in memory. The
// caller keeps the pointer, so that an eviction during its query does no harm.
func (c *cache) held(warehouse string, id TableIdent) *Document {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.byLoc[c.hints[hintOf(warehouse, id)]]
	if !ok {
		return nil
	}
	c.order.MoveToFront(e)
	return e.Value.(*Document)
}

func (c *cache) get(location string) *Document {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.byLoc[location]
	if !ok {
		return nil
	}
	c.order.MoveToFront(e)
	return e.Value.(*Document)
}

// put remembers d as the current document of a name.
func (c *cache) put(warehouse string, id TableIdent, d *Document) {
	if d.bytes() > c.limit {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	key := hintOf(warehouse, id)
	if old, ok := c.hints[key]; ok && old != d.MetadataLocation {
		c.remove(old) // superseded: nobody loads it by name again
	}
	c.hints[key] = d.MetadataLocation
	c.remove(d.MetadataLocation) // a file that is registered again may have other contents
	c.byLoc[d.MetadataLocation] = c.order.PushFront(d)
	c.used += d.bytes()
	for c.used > c.limit {
		c.remove(c.order.Back().Value.(*Document).MetadataLocation)
	}
	if len(c.hints) > 4*len(c.byLoc)+1024 {
		c.forgetHints()
	}
}

func (c *cache) remove(location string) {
	e, ok := c.byLoc[location]
	if !ok {
		return
	}
	c.order.Remove(e)
	delete(c.byLoc, location)
	c.used -= e.Value.(*Document).bytes()
}

// forgetHints drops the names whose documents have left the cache, so that the map is
// bounded by the documents in it.
func (c *cache) forgetHints() {
	for k, loc := range c.hints {
		if _, ok := c.byLoc[loc]; !ok {
			delete(c.hints, k)
		}
	}
}
