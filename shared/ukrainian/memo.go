package ukrainian

import (
	"strings"
	"sync"
)

// memo remembers the keys of words, because most words of an asset have occurred before. Without
// a memo, the endings of words take a quarter of the time to build an index.
type memo struct {
	mu    sync.RWMutex
	found map[string][]string // the lists of keys by the word in its normal form; the lists never change
}

// mostRemembered is the maximum number of words in a memo. Each word takes about 200 bytes.
const mostRemembered = 1 << 16

// known remembers words of texts. Words of questions are not remembered, because callers choose them.
var known memo

// keys returns the keys of a word. When the memo is full, it first forgets all words.
func (m *memo) keys(word string) []string {
	m.mu.RLock()
	found, ok := m.found[word]
	m.mu.RUnlock()
	if ok {
		return found
	}
	word = strings.Clone(word) // the word may be a part of a long text, which the memo must not keep
	found = keys(word)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.found == nil || len(m.found) == mostRemembered {
		m.found = make(map[string][]string)
	}
	m.found[word] = found
	return found
}
