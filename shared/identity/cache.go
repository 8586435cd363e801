package identity

import (
	"sync"
	"time"
)

// maxMemo bounds a memo. Callers are few, and each has one signed identity at
// a time; when there are more, all are worked out anew.
const maxMemo = 10_000

// memo remembers what was worked out, each for a while. It is safe for
// concurrent use.
type memo[K comparable, V any] struct {
	mu      sync.RWMutex
	entries map[K]remembered[V]
}

type remembered[V any] struct {
	value V
	until time.Time
}

func (m *memo[K, V]) get(key K, now time.Time) (value V, known bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	e, known := m.entries[key]
	return e.value, known && now.Before(e.until)
}

func (m *memo[K, V]) put(key K, value V, until time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.entries == nil || len(m.entries) >= maxMemo {
		m.entries = map[K]remembered[V]{}
	}
	m.entries[key] = remembered[V]{value, until}
}
