package identity

import (
	"sync"
	"time"
)

// maxEntries is the number of entries at which a cache is emptied. There are few
// callers, and each uses one token at a time, so a cache is rarely full.
const maxEntries = 10_000

// cache holds values until they expire. The zero value is empty. It is safe for
// concurrent use.
type cache[K comparable, V any] struct {
	mu      sync.RWMutex
	entries map[K]entry[V]
}

type entry[V any] struct {
	value V
	until time.Time
}

func (c *cache[K, V]) get(key K, now time.Time) (value V, known bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	e, known := c.entries[key]
	return e.value, known && now.Before(e.until)
}

func (c *cache[K, V]) put(key K, value V, until time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries == nil || len(c.entries) >= maxEntries {
		c.entries = map[K]entry[V]{}
	}
	c.entries[key] = entry[V]{value, until}
}
