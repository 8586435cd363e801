package webhook

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"
)

const (
	maxSlots    = 1024 // messages and challenges under way
	maxOfBroker = 64   // of them for endpoints of one broker

	usual = MaxBytes + 1<<10 // most bytes of a message without a larger entry
)

// lanes bound the messages under way, and their memory. Receivers that were slow, and
// messages with a large entry, have a lane of their own: they delay no others
// (docs/webhooks.md, W5).
type lanes struct {
	fast, slow lane

	mu      sync.Mutex
	brokers map[string]*share
}

type lane struct {
	slots, memory *semaphore.Weighted
	size          int64 // of memory
}

// share is the part of all slots that one broker has.
type share struct {
	slots *semaphore.Weighted
	users int // guarded by lanes.mu
}

// newLanes returns lanes for messages that hold at most memory bytes together, or a few
// usual messages if that is less.
func newLanes(memory int64) *lanes {
	newLane := func() lane {
		size := max(memory/2, 4*usual)
		return lane{semaphore.NewWeighted(maxSlots / 2), semaphore.NewWeighted(size), size}
	}
	return &lanes{fast: newLane(), slow: newLane(), brokers: map[string]*share{}}
}

// slot is the right to have one message under way.
type slot struct {
	lane   *lane
	bytes  int64
	leaves func()
}

// enter waits for a slot for a message of a number of bytes.
func (l *lanes) enter(ctx context.Context, broker string, slow bool, bytes int64) (*slot, error) {
	in := &l.fast
	if slow || bytes > usual {
		in = &l.slow
	}
	bytes = min(bytes, in.size)
	own := l.shareOf(broker)
	if err := own.slots.Acquire(ctx, 1); err != nil {
		l.drop(broker, own)
		return nil, err
	}
	leaveShare := func() { own.slots.Release(1); l.drop(broker, own) }
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

// shrink gives back the bytes that the message does not need. It reports false if the
// message needs more than the slot has; a slot with the whole lane is enough for any.
func (s *slot) shrink(bytes int64) (fits bool) {
	if bytes > s.bytes {
		return s.bytes == s.lane.size
	}
	s.lane.memory.Release(s.bytes - bytes)
	s.bytes = bytes
	return true
}

// leave ends the slot.
func (s *slot) leave() {
	s.lane.memory.Release(s.bytes)
	s.leaves()
}

func (l *lanes) shareOf(broker string) *share {
	l.mu.Lock()
	defer l.mu.Unlock()
	own := l.brokers[broker]
	if own == nil {
		own = &share{slots: semaphore.NewWeighted(maxOfBroker)}
		l.brokers[broker] = own
	}
	own.users++
	return own
}

func (l *lanes) drop(broker string, own *share) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if own.users--; own.users == 0 {
		delete(l.brokers, broker)
	}
}
