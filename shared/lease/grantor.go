package lease

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// ErrNotMember is returned by Group.Renew for a writer that was removed.
var ErrNotMember = errors.New("the writer is not registered")

// Group is the set of the registered writers of one store, as one writer sees it.
type Group interface {
	// Join registers the writer. When it has returned nil, each later Renew of any writer
	// returns this one too, until it is removed.
	Join(ctx context.Context) error
	// Renew says that the writer lives, and returns the names of all registered writers. It
	// returns ErrNotMember if the writer is not registered. It must be a write that is
	// acknowledged as durable: an outdated server must not answer it.
	Renew(ctx context.Context) (members []string, err error)
	// Leave removes the writer, unless a batch of it is open.
	Leave(ctx context.Context) error
}

// Alone is the Group of a writer whose store has no other.
type Alone string

// Join implements Group.
func (Alone) Join(context.Context) error { return nil }

// Renew implements Group.
func (a Alone) Renew(context.Context) ([]string, error) { return []string{string(a)}, nil }

// Leave implements Group.
func (Alone) Leave(context.Context) error { return nil }

// Options configure a Grantor. All are required.
type Options struct {
	Name    string // of the writer, unique for each start of a process
	Group   Group
	Timeout time.Duration // of one operation of Group
	Failed  func(error)   // gets errors of Group, which are tried again
}

// Grantor is the side of a writer. It grants nothing, and delays nothing, until Start is
// called. It is safe for concurrent use.
type Grantor struct {
	o       Options
	ctx     context.Context // of run
	stop    context.CancelFunc
	running sync.WaitGroup // run
	serving sync.WaitGroup // connections

	mu       sync.Mutex
	changed  chan struct{} // closed and replaced when a batch may go on
	holders  map[*holding]struct{}
	members  []string  // by the newest renewal; nil: nothing is granted
	renewed  time.Time // when that renewal was sent
	started  bool      // Start was called
	admitted bool      // the writer has waited since it joined
	batch    *Batch    // announced and not done; nil: none
	batches  uint64    // announced so far
	closed   bool

	granted, confirmed, waited int64 // for the metrics
}

// holding is what the writer knows of a connection of a gateway.
type holding struct {
	to     *sender
	until  time.Time // the gateway may hold a lease until then, by the monotonic clock
	awaits uint64    // the batch that the gateway has not confirmed; 0: none
	asked  bool      // the gateway waits for a grant
	gone   bool      // its connection has ended
}

// NewGrantor returns a grantor that is in no group yet. Close ends it.
func NewGrantor(o Options) *Grantor {
	ctx, stop := context.WithCancel(context.Background())
	return &Grantor{o: o, ctx: ctx, stop: stop, changed: make(chan struct{}), holders: map[*holding]struct{}{}}
}

// Start joins the group. From then on a batch waits until the writer is admitted. The writer
// must have a way to be refused by the store if it is not registered while others are.
func (g *Grantor) Start() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.started && !g.closed {
		g.started = true
		g.running.Go(func() { g.run(g.ctx) })
	}
}

// Close ends all connections, waits until no gateway can hold a lease, which takes at most
// Length, and leaves the group. No batch may be under way.
func (g *Grantor) Close() error {
	g.mu.Lock()
	started := g.started
	g.closed = true
	until := g.longest(nil)
	for h := range g.holders {
		h.to.close()
	}
	g.mu.Unlock()
	g.stop()
	g.running.Wait()
	g.serving.Wait()
	time.Sleep(time.Until(until))
	if !started {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), g.o.Timeout)
	defer cancel()
	if err := g.o.Group.Leave(ctx); err != nil {
		return fmt.Errorf("leave the group of writers: %w", err)
	}
	return nil
}

// run joins the group, renews, and joins again after a removal.
func (g *Grantor) run(ctx context.Context) {
	joined := false
	var waited <-chan time.Time // the wait after joining ends
	tick := time.NewTicker(Every)
	defer tick.Stop()
	for {
		if !joined {
			if joined = g.try(ctx, g.o.Group.Join) == nil; joined {
				waited = time.After(Length + Margin)
			}
		}
		if joined && errors.Is(g.try(ctx, g.renew), ErrNotMember) {
			joined, waited = false, nil
			continue
		}
		select {
		case <-tick.C:
		case <-waited:
			waited = nil
			g.admit()
		case <-ctx.Done():
			return
		}
	}
}

// try does an operation of the group once.
func (g *Grantor) try(ctx context.Context, operation func(context.Context) error) error {
	once, cancel := context.WithTimeout(ctx, g.o.Timeout)
	defer cancel()
	err := operation(once)
	if err != nil && ctx.Err() == nil {
		g.o.Failed(fmt.Errorf("group of writers: %w", err))
	}
	return err
}

// renew renews the registration. A removed writer must not write before it has joined and
// waited again.
func (g *Grantor) renew(ctx context.Context) error {
	sent := time.Now()
	members, err := g.o.Group.Renew(ctx)
	g.mu.Lock()
	defer g.mu.Unlock()
	if errors.Is(err, ErrNotMember) {
		g.members, g.admitted = nil, false
		return err
	}
	if err != nil {
		return err
	}
	g.members, g.renewed = members, sent
	for h := range g.holders {
		if h.asked {
			g.answer(h)
		}
	}
	return nil
}

// admit lets batches be written.
func (g *Grantor) admit() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.admitted = true
	g.notify()
}

// Ready returns nil if batches may be written now.
func (g *Grantor) Ready() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mayWrite() {
		return nil
	}
	return errWaits
}

// errWaits is returned while a writer waits for leases to end that do not name it.
var errWaits = errors.New("the writer has joined others, and waits until no lease is older")

// mayWrite reports whether the writer is in no group, or admitted. The caller holds mu.
func (g *Grantor) mayWrite() bool { return !g.started || g.admitted }

// notify wakes a batch that waits. The caller holds mu.
func (g *Grantor) notify() {
	close(g.changed)
	g.changed = make(chan struct{})
}

// Batch is a batch that was announced.
type Batch struct {
	grantor *Grantor
	number  uint64
	ids     []string
	waited  bool // a lease had to end, because a gateway has not confirmed
}

// Announce says that a batch will write some assets. A writer has one batch at a time. The
// batch may be opened meanwhile, and written once Wait has returned nil.
func (g *Grantor) Announce(ids []string) *Batch {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.batches++
	b := &Batch{grantor: g, number: g.batches, ids: ids}
	g.batch = b
	for h := range g.holders {
		if len(ids) > 0 && h.believed() {
			h.awaits = b.number
			h.to.send(message{Kind: announce, Batch: b.number, IDs: ids})
		}
	}
	return b
}

// believed reports whether the gateway may hold a lease.
func (h *holding) believed() bool { return time.Now().Before(h.until) }

// Wait returns nil once the batch, which is open, may be written: the writer is admitted,
// and no gateway has an answer of the assets in its memory that it may use. It returns the
// error of ctx if that ends first.
func (b *Batch) Wait(ctx context.Context) error {
	g := b.grantor
	for {
		g.mu.Lock()
		admitted, changed, until := g.mayWrite(), g.changed, g.longest(b)
		g.mu.Unlock()
		if admitted && until.IsZero() {
			return nil
		}
		var ended <-chan time.Time
		if !until.IsZero() {
			ended = time.After(time.Until(until))
		}
		select {
		case <-changed:
		case <-ended:
			b.waited = true
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// longest returns the last moment at which a gateway may hold a lease that has not confirmed
// the batch, or with a nil batch any gateway. It returns zero if there is none. It forgets
// connections that no longer count. The caller holds mu.
func (g *Grantor) longest(b *Batch) (until time.Time) {
	for h := range g.holders {
		switch {
		case !h.believed():
			if h.gone {
				delete(g.holders, h)
			}
		case (b == nil || h.awaits == b.number) && until.Before(h.until):
			until = h.until
		}
	}
	return until
}

// Done says that the batch is written, or never will be.
func (b *Batch) Done() {
	g := b.grantor
	g.mu.Lock()
	defer g.mu.Unlock()
	g.batch = nil
	if b.waited {
		g.waited++
	} else {
		g.confirmed++
	}
	for h := range g.holders {
		h.awaits = 0
		if len(b.ids) > 0 && h.believed() {
			h.to.send(message{Kind: done, Batch: b.number})
		}
		if h.asked {
			g.answer(h)
		}
	}
}

// answer answers an ask, unless the gateway must confirm a batch first. The caller holds mu.
func (g *Grantor) answer(h *holding) {
	if h.asked = h.awaits != 0; h.asked {
		return
	}
	at := time.Now()
	lasts := left(at, g.renewed.Add(Length))
	if g.closed || g.members == nil || lasts < time.Millisecond {
		h.to.send(message{Kind: none})
		return
	}
	m := message{Kind: grant, Writer: g.o.Name, Members: g.members, Left: lasts.Milliseconds()}
	if g.batch != nil {
		m.Batch, m.IDs = g.batch.number, g.batch.ids
	}
	g.granted++
	if end := at.Add(lasts); h.until.Before(end) {
		h.until = end
	}
	h.to.send(m)
}

// Serve talks to a gateway until its connection ends, or nothing has come for a while. R
// holds what was read of conn.
func (g *Grantor) Serve(conn net.Conn, r *bufio.Reader) error {
	h := &holding{to: newSender(conn)}
	if !g.add(h) {
		h.to.close()
		return errFull
	}
	in := newReader(r, maxReply)
	for {
		var m message
		err := conn.SetReadDeadline(time.Now().Add(silence))
		if err == nil {
			m, err = in.next()
		}
		if err == nil {
			err = g.take(h, m)
		}
		if err != nil {
			h.to.close()
			g.remove(h)
			return err
		}
	}
}

// maxHolders is the most connections of gateways.
const maxHolders = 256

// errFull is returned if there are too many connections, or the grantor is closed.
var errFull = errors.New("no more connections of gateways are taken")

func (g *Grantor) add(h *holding) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed || len(g.holders) >= maxHolders {
		return false
	}
	g.holders[h] = struct{}{}
	return true
}

// remove notes that a connection has ended. The gateway may not know, so its lease counts.
func (g *Grantor) remove(h *holding) {
	g.mu.Lock()
	defer g.mu.Unlock()
	h.gone, h.asked = true, false
	if !h.believed() {
		delete(g.holders, h)
	}
}

// take handles a message of a gateway.
func (g *Grantor) take(h *holding, m message) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch m.Kind {
	case ask:
		h.asked = true
		g.answer(h)
	case confirm:
		if h.awaits == 0 || h.awaits != m.Batch {
			return nil // of an earlier batch
		}
		h.awaits = 0
		g.notify()
		if h.asked {
			g.answer(h)
		}
	case release:
		h.until, h.awaits, h.asked = time.Time{}, 0, false
		g.notify()
	default:
		return fmt.Errorf("%w: got %q of a gateway", errProtocol, m.Kind)
	}
	return nil
}
