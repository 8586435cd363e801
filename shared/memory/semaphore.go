package memory

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
)

const (
	maxWaiting = 256 // maximum number of requests that may wait
	maxWait    = 2 * time.Second
)

// ErrFull is returned when the bytes were not free in time, or too many requests
// wait already.
var ErrFull = errors.New("there is no memory for this request now")

// Semaphore limits how many bytes all requests together may hold at the same time. It is safe for concurrent use.
type Semaphore struct {
	size    int64
	free    *semaphore.Weighted
	used    atomic.Int64
	waiting atomic.Int64
	refused atomic.Int64
}

// NewSemaphore returns a semaphore of size bytes.
func NewSemaphore(size int64) *Semaphore {
	return &Semaphore{size: size, free: semaphore.NewWeighted(size)}
}

// Acquire waits up to 2 s for n bytes. It returns a function that gives the
// bytes back; that function may be called more than once. If n is more than
// Size, it acquires Size. It returns ErrFull or the context's error.
//
// A request must not acquire twice: two requests could wait for each other.
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

// Used returns how many bytes are acquired.
func (r *Semaphore) Used() int64 { return r.used.Load() }

// Size returns how many bytes may be acquired.
func (r *Semaphore) Size() int64 { return r.size }

// Refused returns how often Acquire failed.
func (r *Semaphore) Refused() int64 { return r.refused.Load() }
