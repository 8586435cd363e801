package memory

import (
	"sync/atomic"
)

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
