package lease

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Keeper is a memory of answers.
type Keeper interface {
	// Change drops the answers of some assets, and keeps none of a reading that is under way
	// or begins before done is called.
	Change(ids []string) (done func())
	// Forget drops all answers, and keeps none of a reading that is under way.
	Forget()
}

// Holder is the side of a gateway. It is safe for concurrent use.
type Holder struct {
	keeper Keeper
	ends   atomic.Pointer[[]time.Time] // of all leases, if they are all that is needed; nil: they are not

	mu     sync.Mutex
	leases map[*conn]*lease // the newest of each connection, until it lapses
	lost   int64            // times that the memory was forgotten
	since  time.Time        // the last account
	absent time.Duration    // without all leases, until then
}

// lease is a promise of a writer to announce its batches.
type lease struct {
	writer  string
	members []string // the writers that it names
	end     time.Time
	marks   func() // ends the marks of the writer's batch; nil: there are none
}

// NewHolder returns a holder without leases.
func NewHolder(keeper Keeper) *Holder {
	return &Holder{keeper: keeper, leases: map[*conn]*lease{}, since: time.Now()}
}

// Valid reports whether an answer from memory may be used. The caller asks after it has
// read the answer. A reading whose answer is to be kept asks when it begins and when it
// ends.
func (h *Holder) Valid() bool {
	ends := h.ends.Load()
	if ends == nil {
		return false
	}
	at := time.Now()
	for _, end := range *ends {
		if !isBefore(at, end) {
			return false
		}
	}
	return true
}

// conn is a connection to a writer.
type conn struct {
	to    *sender
	asked atomic.Pointer[time.Time] // when the ask without an answer was sent; nil: there is none
	left  bool                      // no more leases are taken; needs Holder.mu
}

// Follow asks for leases over a connection and handles what the writer says, until the
// connection ends. R holds what was read of it. When ctx ends, Follow gives the lease back,
// so that the writer need not wait for its end.
func (h *Holder) Follow(ctx context.Context, to net.Conn, r *bufio.Reader) error {
	c := &conn{to: newSender(to)}
	defer h.leave(c)
	defer c.to.close()
	stop := context.AfterFunc(ctx, func() {
		h.leave(c)
		c.to.finish(message{Kind: release})
	})
	defer stop()
	in := newReader(r, maxLine)
	c.ask()
	for {
		if err := to.SetReadDeadline(time.Now().Add(silence)); err != nil {
			return err
		}
		m, err := in.next()
		if err == nil {
			err = h.take(c, m)
		}
		if err != nil {
			return err
		}
	}
}

// ask asks for a lease. The lease counts from this moment.
func (c *conn) ask() {
	at := time.Now()
	c.asked.Store(&at)
	c.to.send(message{Kind: ask})
}

// askLater asks again after a while.
func (c *conn) askLater() {
	time.AfterFunc(Every, func() {
		select {
		case <-c.to.end:
		default:
			c.ask()
		}
	})
}

// take handles a message of a writer.
func (h *Holder) take(c *conn, m message) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sweep()
	switch m.Kind {
	case grant:
		asked := c.asked.Swap(nil)
		if asked == nil {
			return fmt.Errorf("%w: got a lease that was not asked for", errProtocol)
		}
		h.granted(c, m, asked.Add(time.Duration(m.Left)*time.Millisecond-Margin))
		c.askLater()
	case none:
		c.asked.Store(nil)
		c.askLater()
	case announce:
		if l := h.leases[c]; l != nil {
			h.mark(l, m.IDs)
		}
		c.to.send(message{Kind: confirm, Batch: m.Batch})
	case done:
		if l := h.leases[c]; l != nil {
			h.mark(l, nil)
		}
	default:
		return fmt.Errorf("%w: got %q of a writer", errProtocol, m.Kind)
	}
	return nil
}

// granted takes a lease with an end. The caller holds mu.
func (h *Holder) granted(c *conn, m message, end time.Time) {
	if c.left || !isBefore(time.Now(), end) {
		return // it has lapsed on the way
	}
	l := h.leases[c]
	if l == nil {
		l = &lease{}
		h.leases[c] = l
	}
	l.writer, l.members, l.end = m.Writer, m.Members, end
	h.mark(l, m.IDs)
	h.settle()
}

// mark replaces the marks of a writer. The caller holds mu.
func (h *Holder) mark(l *lease, ids []string) {
	before := l.marks
	l.marks = nil
	if len(ids) > 0 {
		l.marks = h.keeper.Change(ids)
	}
	if before != nil {
		before()
	}
}

// sweep drops the leases that have lapsed. The caller holds mu.
func (h *Holder) sweep() {
	at := time.Now()
	for c, l := range h.leases {
		if !isBefore(at, l.end) {
			h.lapse(c)
		}
	}
}

// lapse ends a lease and the marks of its writer, and forgets all answers. The caller holds
// mu.
func (h *Holder) lapse(c *conn) {
	l := h.leases[c]
	delete(h.leases, c)
	h.forget()
	h.mark(l, nil)
	h.settle()
}

// forget makes the memory unused and empty. A memory that is unused is empty. The caller
// holds mu.
func (h *Holder) forget() {
	if h.ends.Load() == nil {
		return
	}
	h.account()
	h.ends.Store(nil)
	h.keeper.Forget()
	h.lost++
}

// settle computes until when the memory may be used: until the first lease ends, if each
// writer that a lease names has granted one. The caller holds mu.
func (h *Holder) settle() {
	var ends []time.Time
	for _, l := range h.leases {
		if slices.ContainsFunc(l.members, h.lacks) {
			h.forget()
			return
		}
		ends = append(ends, l.end)
	}
	if len(ends) > 0 {
		h.account()
		h.ends.Store(&ends)
	}
}

// lacks reports whether a writer has granted no lease. The caller holds mu.
func (h *Holder) lacks(writer string) bool {
	for _, l := range h.leases {
		if l.writer == writer {
			return false
		}
	}
	return true
}

// account adds the time without all leases since the last call. The caller holds mu.
func (h *Holder) account() {
	at := time.Now()
	from := h.since
	if ends := h.ends.Load(); ends != nil {
		first := slices.MinFunc(*ends, time.Time.Compare)
		if from.Before(first) {
			from = first
		}
	}
	h.since = at
	h.absent += max(0, at.Sub(from))
}

// leave ends the lease of a connection that ends.
func (h *Holder) leave(c *conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c.left = true
	if h.leases[c] != nil {
		h.lapse(c)
	}
}
