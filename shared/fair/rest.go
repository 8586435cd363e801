package fair

import (
	"context"
	"sync"
)

type turnKey struct{}

// turn is an amount that a request holds. The request gives it back while it waits for another server.
type turn struct {
	from *Semaphore
	by   string
	n    int64

	mu      sync.Mutex
	release func() // nil while the request rests, and after its end
	ended   bool
}

// Take is Acquire for work that may wait for other servers. Rest gives the amount back while work with the returned
// context waits.
func (s *Semaphore) Take(ctx context.Context, by string, n int64) (inside context.Context, end func(), err error) {
	release, err := s.Acquire(ctx, by, n)
	if err != nil {
		return ctx, nil, err
	}
	t := &turn{from: s, by: by, n: n, release: release}
	return context.WithValue(ctx, turnKey{}, t), t.end, nil
}

// Rest calls the function `wait`, which asks another server. Meanwhile the amount that ctx has from Take is free for
// others. Rest returns the error of `wait`, or ErrFull or the context's error if it cannot get the amount again.
func Rest(ctx context.Context, wait func() error) error {
	t, _ := ctx.Value(turnKey{}).(*turn)
	if t == nil || !t.pause() {
		return wait()
	}
	if err := wait(); err != nil {
		return err // the work ends
	}
	release, err := t.from.Acquire(ctx, t.by, t.n)
	if err != nil {
		return err
	}
	t.resume(release)
	return nil
}

// pause gives the amount back. It returns false if the request does not hold it now.
func (t *turn) pause() bool {
	release := t.take()
	if release == nil {
		return false
	}
	release()
	return true
}

func (t *turn) take() (release func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	release, t.release = t.release, nil
	return release
}

func (t *turn) resume(release func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		release()
		return
	}
	t.release = release
}

func (t *turn) end() {
	t.mu.Lock()
	t.ended = true
	t.mu.Unlock()
	t.pause()
}
