package memory

import (
	"bytes"
	"hash/maphash"
	"sync"
)

// Answers are the answers that are being sent. Equal large ones share their
// bytes. It is safe for concurrent use.
type Answers struct {
	*Budget
	seed maphash.Seed

	mu     sync.Mutex
	shared map[uint64]*shared
}

// shared is a large answer and how many readers it is being sent to.
type shared struct {
	body    []byte
	readers int
}

// NewAnswers returns answers that hold size bytes at most.
func NewAnswers(size int64) *Answers {
	return &Answers{Budget: NewBudget(size), seed: maphash.MakeSeed(), shared: map[uint64]*shared{}}
}

// Keep holds an answer until release, and returns the bytes to send, which may
// be those of an equal answer. The caller must not use body any more. It
// returns false if the answer does not fit.
func (a *Answers) Keep(body []byte) (kept []byte, release func(), ok bool) {
	n := int64(cap(body))
	if n <= Small {
		return body, func() { a.Release(n) }, a.Hold(n)
	}
	key := maphash.Bytes(a.seed, body)
	a.mu.Lock()
	defer a.mu.Unlock()
	equal := a.shared[key]
	if equal != nil && !bytes.Equal(equal.body, body) { // another one with the same hash
		return body, func() { a.Release(n) }, a.Hold(n)
	}
	if equal == nil {
		if !a.Hold(n) {
			return nil, nil, false
		}
		equal = &shared{body: body}
		a.shared[key] = equal
	}
	equal.readers++
	return equal.body, func() { a.leave(key, equal) }, true
}

// leave ends one reader's part in a shared answer.
func (a *Answers) leave(key uint64, of *shared) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if of.readers--; of.readers == 0 {
		delete(a.shared, key)
		a.Release(int64(cap(of.body)))
	}
}
