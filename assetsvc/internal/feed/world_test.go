package feed

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"
)

// world simulates a store and its network. An operation waits here until the
// scheduler applies it, loses it or loses its answer. Several goroutines may call send
// at once, but no other method.
type world struct {
	random    *rand.Rand
	clock     Clock
	documents map[string]*document
	pending   []*operation // sent and not applied yet
	moment    int          // number of steps so far
	sent      chan *operation

	written map[int64]string                // id of the document written at each position
	watch   func(id string, position int64) // called for each applied write
	failed  []string                        // violations of the protocol
}

type document struct {
	revision, position int64   // position 0: a void
	trail              []int64 // positions of all writes to the document
}

// operation is one call of a Store by one process. Each of its steps touches one
// document, and the steps may be applied at different moments.
type operation struct {
	process int
	number  int // counts the operations of the process
	steps   []func()
	answer  chan struct{}
	held    int // moment until which the network delays the operation
}

func newWorld(seed uint64) *world {
	return &world{
		random:    rand.New(rand.NewPCG(seed, 1)),
		documents: map[string]*document{},
		sent:      make(chan *operation, 1000),
		written:   map[int64]string{},
	}
}

func (w *world) fail(format string, args ...any) {
	w.failed = append(w.failed, fmt.Sprintf(format, args...))
}

// collect receives the sent operations and sorts them by process. Their order does
// not depend on the order in which the processes ran.
func (w *world) collect() {
	for {
		select {
		case o := <-w.sent:
			w.pending = append(w.pending, o)
			continue
		default:
		}
		break
	}
	slices.SortFunc(w.pending, func(a, b *operation) int {
		if a.process != b.process {
			return a.process - b.process
		}
		return a.number - b.number
	})
}

// step picks one pending operation and delays it, loses it, or applies one of its
// steps. After the last step, step sends the answer or loses it.
func (w *world) step() {
	w.moment++
	if len(w.pending) == 0 {
		return
	}
	i := w.random.IntN(len(w.pending))
	o := w.pending[i]
	if o.held > w.moment {
		return
	}
	if w.random.IntN(60) == 0 { // a delay beyond the sender's timeout
		o.held = w.moment + w.random.IntN(3000)
		return
	}
	if w.random.IntN(200) == 0 { // the network loses the remaining steps
		w.pending = slices.Delete(w.pending, i, i+1)
		return
	}
	j := w.random.IntN(len(o.steps))
	o.steps[j]()
	if o.steps = slices.Delete(o.steps, j, j+1); len(o.steps) > 0 {
		return
	}
	w.pending = slices.Delete(w.pending, i, i+1)
	if w.random.IntN(50) > 0 { // otherwise the answer is lost
		close(o.answer)
	}
}

// write applies one write if its guard holds.
func (w *world) write(write Write) (applied bool) {
	d := w.documents[write.ID]
	switch {
	case d == nil && write.Revision == 0:
		d = &document{}
		w.documents[write.ID] = d
	case d == nil || d.revision != write.Revision || write.Revision == 0:
		return false
	}
	if other, taken := w.written[write.Position]; taken {
		w.fail("F3: %s and %s both have position %d", other, write.ID, write.Position)
	}
	if write.Position <= d.position {
		w.fail("F3: %s went back from position %d to %d", write.ID, d.position, write.Position)
	}
	d.revision++
	d.position = write.Position
	d.trail = append(d.trail, write.Position)
	w.written[write.Position] = write.ID
	w.watch(write.ID, write.Position)
	return true
}

// port is the Store of one process.
type port struct {
	*world
	process int
	sentOff int  // number of operations sent
	ice     *ice // freezes the process
	trails  int  // number of newest positions that Landed sees in a trail
}

// ice freezes a process: wait blocks until melt is called.
type ice struct {
	mu   sync.Mutex
	thaw chan struct{} // closed while the process runs
}

func newIce() *ice {
	i := &ice{}
	i.freeze()
	i.melt()
	return i
}

func (i *ice) freeze() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.thaw = make(chan struct{})
}

func (i *ice) melt() {
	i.mu.Lock()
	defer i.mu.Unlock()
	close(i.thaw)
}

// wait returns when the process is not frozen.
func (i *ice) wait() {
	i.mu.Lock()
	thaw := i.thaw
	i.mu.Unlock()
	<-thaw
}

var errLost = errors.New("no answer")

// send sends an operation and waits for its answer.
func (p *port) send(ctx context.Context, steps ...func()) error {
	p.ice.wait()
	p.sentOff++
	o := &operation{process: p.process, number: p.sentOff, steps: steps, answer: make(chan struct{})}
	p.sent <- o
	var err error
	select {
	case <-o.answer:
	case <-ctx.Done():
		err = errLost
	}
	p.ice.wait()
	return err
}

func (p *port) Open(ctx context.Context, writer string, b Batch) (Clock, bool, error) {
	var now Clock // valid only after an answer
	var opened bool
	err := p.send(ctx, func() {
		if opened = p.clock.Last < b.First; opened {
			p.clock = copyOf(p.clock)
			p.clock.Last, p.clock.Open[writer] = b.Last(), b
		}
		now = p.clock
	})
	if err != nil {
		return Clock{}, false, err
	}
	return now, opened, nil
}

func (p *port) Close(ctx context.Context, writer string, first int64) error {
	return p.send(ctx, func() {
		if p.clock.Open[writer].First == first {
			p.clock = copyOf(p.clock)
			delete(p.clock.Open, writer)
		}
	})
}

func (p *port) Clock(ctx context.Context) (Clock, error) {
	var now Clock
	if err := p.send(ctx, func() { now = p.clock }); err != nil {
		return Clock{}, err
	}
	return now, nil
}

func copyOf(c Clock) Clock {
	open := make(map[string]Batch, len(c.Open)+1)
	for writer, b := range c.Open {
		open[writer] = b
	}
	return Clock{c.Last, open}
}

func (p *port) Write(ctx context.Context, writes []Write) (int, error) {
	var applied int
	var steps []func()
	for _, write := range writes {
		steps = append(steps, func() {
			if p.write(write) {
				applied++
			}
		})
	}
	if err := p.send(ctx, steps...); err != nil {
		return 0, err
	}
	return applied, nil
}

func (p *port) Landed(ctx context.Context, writes []Write) ([]Answer, error) {
	answers := make([]Answer, len(writes))
	err := p.send(ctx, func() {
		for i, write := range writes {
			d := p.documents[write.ID]
			if d == nil {
				continue
			}
			trail := d.trail[max(0, len(d.trail)-p.trails):]
			switch {
			case slices.Contains(trail, write.Position):
				answers[i] = Yes
			case len(trail) == p.trails && trail[0] > write.Position:
				answers[i] = Maybe
			}
		}
	})
	if err != nil {
		return nil, err
	}
	return answers, nil
}

func (p *port) Fence(ctx context.Context, ids []string) error {
	var steps []func()
	for _, id := range ids {
		steps = append(steps, func() {
			d := p.documents[id]
			if d == nil {
				d = &document{}
				p.documents[id] = d
			}
			d.revision++
		})
	}
	return p.send(ctx, steps...)
}

// page returns the ids and positions of the documents after one position and up to
// another.
func (w *world) page(after, upto int64) map[string]int64 {
	entries := map[string]int64{}
	for id, d := range w.documents {
		if d.position > after && d.position <= upto {
			entries[id] = d.position
		}
	}
	return entries
}

// follower is a reader. It reads the clock first and the page at a later step.
type follower struct {
	offset  int64
	horizon int64 // horizon of the last clock; 0: the follower reads the clock next
	seen    map[string]int64
}

func (f *follower) step(w *world, horizon func() int64) {
	if f.horizon == 0 {
		f.horizon = horizon()
		return
	}
	for id, position := range w.page(f.offset, f.horizon) {
		if f.seen[id] >= position {
			w.fail("F2: a follower saw %s at %d and then again at %d", id, f.seen[id], position)
		}
		f.seen[id] = position
	}
	f.offset, f.horizon = max(f.offset, f.horizon), 0
}

// summary returns the first five violations.
func (w *world) summary() string { return strings.Join(w.failed[:min(len(w.failed), 5)], "; ") }

const (
	timeout = 100 * time.Millisecond
	lease   = 500 * time.Millisecond
)
