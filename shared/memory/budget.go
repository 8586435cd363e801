package memory

import (
	"sync/atomic"
)

// Small is the size in bytes up to which a holder is small: it may use all of a
// budget, and is worked on without a room.
const Small = 64 << 10

// largeShare is the part of a budget that large holders may use, in quarters.
const largeShare = 3

// Budget is a number of bytes that may be held at once. It is safe for
// concurrent use.
type Budget struct {
	size    int64
	used    atomic.Int64
	refused atomic.Int64
}

// NewBudget returns a budget of size bytes.
func NewBudget(size int64) *Budget { return &Budget{size: size} }

// Hold takes n bytes out of the budget until Release, and returns false if they
// do not fit.
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

// Release gives back n bytes that Hold has taken.
func (b *Budget) Release(n int64) { b.used.Add(-n) }

// IsCrowded reports whether more than half of the budget is used.
func (b *Budget) IsCrowded() bool { return b.used.Load() > b.size/2 }

// Used returns how many bytes are held now.
func (b *Budget) Used() int64 { return b.used.Load() }

// Size returns how many bytes may be held.
func (b *Budget) Size() int64 { return b.size }

// Refused returns how often bytes did not fit.
func (b *Budget) Refused() int64 { return b.refused.Load() }
