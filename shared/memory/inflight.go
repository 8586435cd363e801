package memory

import (
	"bytes"
	"hash/maphash"
	"sync"
	"sync/atomic"

	"asset-registry/shared/fair"
)

// InFlight is a Budget for answers that are being sent. Equal large answers share
// their bytes. It is safe for concurrent use.
type InFlight struct {
	*Budget
	seed maphash.Seed

	mu     sync.Mutex
	shared map[uint64]*shared

	held fair.Held
}

// shared is a large answer.
type shared struct {
	body    []byte
	readers int // clients to which the answer is being sent
}

// NewInFlight returns InFlight with a budget of size bytes.
func NewInFlight(size int64) *InFlight {
	return &InFlight{Budget: NewBudget(size), seed: maphash.MakeSeed(), shared: map[uint64]*shared{}}
}

// Keep holds the body of an answer to a caller until the function `release` is called. It returns the bytes to send.
// They may belong to an equal answer, so the argument `body` must not be used any more. While the body does not fit,
// Keep ends answers whose clients take nothing. If it still does not fit, Keep returns false.
func (a *InFlight) Keep(by string, answer fair.Answer, body []byte) (kept []byte, release func(), ok bool) {
	for {
		if kept, release, ok = a.keep(body); ok {
			return kept, a.held.Add(by, answer, release), true
		}
		if !a.held.Take() {
			return nil, nil, false
		}
	}
}

func (a *InFlight) keep(body []byte) (kept []byte, release func(), ok bool) {
	n := int64(cap(body))
	if n <= Small {
		return body, func() { a.Release(n) }, a.Hold(n)
	}
	key := maphash.Bytes(a.seed, body)
	a.mu.Lock()
	defer a.mu.Unlock()
	equal := a.shared[key]
	if equal != nil && !bytes.Equal(equal.body, body) { // another answer with the same hash
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

// leave ends the sending of a shared answer to one client.
func (a *InFlight) leave(key uint64, of *shared) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if of.readers--; of.readers == 0 {
		delete(a.shared, key)
		a.Release(int64(cap(of.body)))
	}
}

// Small is the maximum number of bytes that count as a small amount. Small amounts may use all of a budget, and need no
// fair.Semaphore.
const Small = 64 << 10

// largeShare is the number of quarters of a budget that all amounts above Small may use together.
const largeShare = 3

// Budget limits the bytes that are held at the same time. It is safe for concurrent use.
type Budget struct {
	size    int64
	used    atomic.Int64
	refused atomic.Int64
}

// NewBudget returns a budget of size bytes.
func NewBudget(size int64) *Budget { return &Budget{size: size} }

// Hold reserves n bytes until Release. If they do not fit, it reserves nothing
// and returns false.
func (b *Budget) Hold(n int64) bool {
	most := b.size
	if n > Small {
		most = b.size / 4 * largeShare
	}
	if b.used.Add(n) > most {
		b.used.Add(-n)
		b.refused.Add(1)
		return false
	}
	return true
}

// Release gives back n bytes that Hold reserved.
func (b *Budget) Release(n int64) { b.used.Add(-n) }

// IsCrowded reports whether more than half of the budget is in use.
func (b *Budget) IsCrowded() bool { return b.used.Load() > b.size/2 }

// Used returns how many bytes are held.
func (b *Budget) Used() int64 { return b.used.Load() }

// Size returns how many bytes may be held.
func (b *Budget) Size() int64 { return b.size }

// Refused returns how often Hold returned false.
func (b *Budget) Refused() int64 { return b.refused.Load() }
