package memory

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
)

// The bounds of waiting for a room.
const (
	maxWaiting = 256
	maxWait    = 2 * time.Second
)

// ErrFull is returned when there was no room in time, or too many wait for it.
var ErrFull = errors.New("there is no memory for this request now")

// Semaphore is a number of bytes that requests may work with at once. It is safe for
// concurrent use.
type Semaphore struct {
	size    int64
	free    *semaphore.Weighted
	used    atomic.Int64
	waiting atomic.Int64
	refused atomic.Int64
}

// NewSemaphore returns a room of size bytes.
func NewSemaphore(size int64) *Semaphore {
	return &Semaphore{size: size, free: semaphore.NewWeighted(size)}
}

// Acquire waits for n bytes, at most 2 s, and returns how to give them back, which
// may be called more than once. A request for more than the whole room gets the
// whole room. It returns ErrFull, or the context's error.
//
// Nobody may take twice at a time: two requests could wait for each other.
func (r *Semaphore) Acquire(ctx context.Context, n int64) (release func(), err error) {
	n = min(n, r.size)
	if !r.free.TryAcquire(n) {
		if err := r.wait(ctx, n); err != nil {
			return nil, err
		}
	}
	r.used.Add(n)
	var released atomic.Bool
	return func() {
		if released.CompareAndSwap(false, true) {
			r.used.Add(-n)
			r.free.Release(n)
		}
	}, nil
}

func (r *Semaphore) wait(ctx context.Context, n int64) error {
	defer r.waiting.Add(-1)
	if r.waiting.Add(1) > maxWaiting {
		r.refused.Add(1)
		return ErrFull
	}
	short, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	if err := r.free.Acquire(short, n); err != nil {
		r.refused.Add(1)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return ErrFull
	}
	return nil
}

// Used returns how many bytes are worked with now.
func (r *Semaphore) Used() int64 { return r.used.Load() }

// Size returns how many bytes the room has.
func (r *Semaphore) Size() int64 { return r.size }

// Refused returns how many requests found no room.
func (r *Semaphore) Refused() int64 { return r.refused.Load() }
