package webhook

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"
)

const (
	maxSlots    = 1024 // maximum number of messages and challenges under way at the same time
	maxOfBroker = 64   // maximum number of messages and challenges under way for one broker

	usual = MaxBytes + 1<<10 // maximum number of bytes of a message in which no entry is unusually large
)

// lanes limit the number of messages under way, and their memory. Receivers that were slow, and messages with a
// large entry, use a separate lane, so that they do not delay other messages (docs/webhooks.md, W5).
type lanes struct {
	fast, slow lane
	shares     *shares
}

type lane struct {
	slots, memory *semaphore.Weighted
	size          int64 // bytes of memory that the lane has
}

// newLanes returns lanes whose messages together hold at most the given number of bytes. Even if that number is
// too small, the lanes have room for a few usual messages.
func newLanes(memory int64) *lanes {
	newLane := func() lane {
		size := max(memory/2, 4*usual)
		return lane{semaphore.NewWeighted(maxSlots / 2), semaphore.NewWeighted(size), size}
	}
	return &lanes{newLane(), newLane(), newShares(maxOfBroker)}
}

// slot is the right to have one message under way.
type slot struct {
	lane   *lane
	bytes  int64
	leaves func()
}

// enter waits until one more message, of the given number of bytes, may be under way.
func (l *lanes) enter(ctx context.Context, broker string, slow bool, bytes int64) (*slot, error) {
	in := &l.fast
	if slow || bytes > usual {
		in = &l.slow
	}
	bytes = min(bytes, in.size)
	leaveShare, err := l.shares.enter(ctx, broker)
	if err != nil {
		return nil, err
	}
	if err := in.slots.Acquire(ctx, 1); err != nil {
		leaveShare()
		return nil, err
	}
	if err := in.memory.Acquire(ctx, bytes); err != nil {
		in.slots.Release(1)
		leaveShare()
		return nil, err
	}
	return &slot{in, bytes, func() { in.slots.Release(1); leaveShare() }}, nil
}

// shrink gives back the bytes that the message does not need. It returns false if the message needs more than
// the slot has. A slot with all memory of its lane fits any message.
func (s *slot) shrink(bytes int64) (fits bool) {
	if bytes > s.bytes {
		return s.bytes == s.lane.size
	}
	s.lane.memory.Release(s.bytes - bytes)
	s.bytes = bytes
	return true
}

// leave gives the slot and its memory back.
func (s *slot) leave() {
	s.lane.memory.Release(s.bytes)
	s.leaves()
}

// shares limit the number of slots that each broker has at the same time.
type shares struct {
	most int64 // maximum number of slots that one broker may have

	mu      sync.Mutex
	brokers map[string]*share
}

type share struct {
	slots *semaphore.Weighted
	users int // guarded by shares.mu
}

func newShares(most int64) *shares { return &shares{most: most, brokers: map[string]*share{}} }

// enter waits until the broker may have one more slot.
func (s *shares) enter(ctx context.Context, broker string) (leave func(), err error) {
	s.mu.Lock()
	own := s.brokers[broker]
	if own == nil {
		own = &share{slots: semaphore.NewWeighted(s.most)}
		s.brokers[broker] = own
	}
	own.users++
	s.mu.Unlock()
	drop := func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if own.users--; own.users == 0 {
			delete(s.brokers, broker)
		}
	}
	if err := own.slots.Acquire(ctx, 1); err != nil {
		drop()
		return nil, err
	}
	return func() { own.slots.Release(1); drop() }, nil
}
