package feed

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// world simulates a store and its network. An operation waits here until the scheduler applies it, lets it
// fail, loses it, or loses its answer. Several goroutines may call send at the same time. Only one goroutine at
// a time may call the other methods.
type world struct {
	random    *rand.Rand
	clock     Clock
	documents map[string]*document
	records   map[key]*record
	leaveOut  guard        // part of the protocol that is left out
	pending   []*operation // operations that were sent and are not yet done
	moment    int          // number of steps that were made
	errors    int          // calls that the store has answered with an error
	sent      chan *operation

	written map[int64]string                // for each position, id of the document that was written there
	passed  int64                           // position up to which a follower has read the record
	watch   func(id string, position int64) // called for each applied write
	failed  []string                        // violations of the protocol
}

// document is a simulated document of the store. A void has position 0.
type document struct {
	revision, position int64
	trail              Trail   // trail with all places that the protocol keeps
	history            []int64 // all positions that the document had
}

// key identifies a record: its writer and the first position of its batch.
type key struct {
	writer string
	first  int64
}

// record is the stored record of a batch.
type record struct {
	changes map[string]noted // by id of the document
	shown   bool
}

// noted is a change in a record. The field `before` has the position of the document before the change.
type noted struct{ position, before int64 }

// guard names a part of the protocol that a simulation leaves out, to show that the part is needed. The zero
// guard leaves out nothing.
type guard int

const (
	_             guard = iota
	recordFirst         // without this part, the record is stored with the writes, not before them
	emptyRecord         // without this part, Settle stores no empty record
	followers           // without this part, Settle does not check whether a document was changed again after the batch
	settleFenced        // without this part, a watcher closes a fenced batch, but does not settle it
	showLater           // without this part, a record is shown as soon as it is stored
	fenceBefore         // without this part, a watcher settles a batch, but does not fence it
	removeRefused       // without this part, Settle shows the record, but removes nothing from it
	showWithWrite       // without this part, Write does not show the record
	former              // without this part, readers do not find documents that have moved
	allSince            // without this part, a trail keeps only the previous place
	byHorizon           // without this part, a trail forgets places below the newest position, not below the horizon
	pageFirst           // without this part, readers look for moved documents before they read the page
	readAgain           // without this part, readers do not find a document whose place is forgotten
)

// operation is one message that a process sends for a call of its Store. Each step of an operation touches one
// document. The steps may be applied at different moments.
type operation struct {
	process int
	number  int // number of the operation; each process counts its operations
	steps   []func()
	call    *pendingCall
	held    int // moment until which the network holds the operation back
}

// pendingCall is a call of a Store that waits for the answers to its operations.
type pendingCall struct {
	left   int           // operations that are not answered yet
	answer chan struct{} // closed when all are answered, or one has failed
	failed bool
}

func newWorld(seed uint64) *world {
	return &world{
		random:    rand.New(rand.NewPCG(seed, 1)),
		documents: map[string]*document{},
		records:   map[key]*record{},
		sent:      make(chan *operation, 1000),
		written:   map[int64]string{},
	}
}

func (w *world) fail(format string, args ...any) {
	w.failed = append(w.failed, fmt.Sprintf(format, args...))
}

// collect receives the operations that were sent, and sorts them by process. So their order does not depend on
// the order in which the processes ran.
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

// step picks one pending operation. It delays the operation, loses it, lets it fail, or applies one of its steps.
// After the last step of an operation it sends the answer, or loses it.
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
	if w.random.IntN(60) == 0 { // delayed for longer than its sender waits
		o.held = w.moment + w.random.IntN(3000)
		return
	}
	if w.random.IntN(200) == 0 { // the network or the store loses the steps that are left
		w.pending = slices.Delete(w.pending, i, i+1)
		if w.random.IntN(2) == 0 && !o.call.failed { // the store returns an error; other operations of the call go on
			o.call.failed = true
			w.errors++
			close(o.call.answer)
		}
		return
	}
	j := w.random.IntN(len(o.steps))
	o.steps[j]()
	if o.steps = slices.Delete(o.steps, j, j+1); len(o.steps) > 0 {
		return
	}
	w.pending = slices.Delete(w.pending, i, i+1)
	if w.random.IntN(50) == 0 { // the answer is lost
		return
	}
	if o.call.left--; o.call.left == 0 {
		close(o.call.answer)
	}
}

// write applies one write if the document has the revision that the write expects. The argument `horizon` is the
// highest horizon that the writing process knows.
func (w *world) write(write Write, horizon int64) (applied bool) {
	d := w.documents[write.ID]
	switch {
	case d == nil && write.Revision == 0:
		d = &document{trail: NewTrail()}
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
	d.history = append(d.history, write.Position)
	switch to := (Place{write.Position, 1}); w.leaveOut {
	case allSince:
		d.trail = append(d.trail[len(d.trail)-1:], to)
	case byHorizon:
		d.trail = append(d.trail.Since(w.clock.Last), to)
	default:
		d.trail = append(d.trail.Since(horizon), to)
	}
	w.written[write.Position] = write.ID
	w.watch(write.ID, write.Position)
	return true
}

// port is the Store of one process.
type port struct {
	*world
	process int
	sentOff int           // number of operations that were sent
	ice     *ice          // to freeze the process
	horizon *atomic.Int64 // highest horizon that the process has read
}

// watchers is the lowest process number of a watcher. The watcher and the writer of one process have different
// numbers, so that their operations have a fixed order.
const watchers = 1000

// ice can freeze a process: then the method `wait` blocks until melt is called.
type ice struct {
	mu   sync.Mutex
	thaw chan struct{} // closed while the process runs, open while it is frozen
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

var (
	errLost   = errors.New("no answer")
	errFailed = errors.New("the store has failed")
)

// send sends one operation, and waits for its answer.
func (p *port) send(ctx context.Context, steps ...func()) error { return p.sendAll(ctx, steps) }

// sendAll sends several operations at the same time, and waits for all answers.
func (p *port) sendAll(ctx context.Context, operations ...[]func()) error {
	p.ice.wait()
	c := &pendingCall{left: len(operations), answer: make(chan struct{})}
	p.post(c, operations...)
	var err error
	select {
	case <-c.answer:
		if c.failed {
			err = errFailed
		}
	case <-ctx.Done():
		err = errLost
	}
	p.ice.wait()
	return err
}

// post sends the operations of a call without waiting.
func (p *port) post(c *pendingCall, operations ...[]func()) {
	for _, steps := range operations {
		p.sentOff++
		p.sent <- &operation{process: p.process, number: p.sentOff, steps: steps, call: c}
	}
}

func (p *port) Open(ctx context.Context, writer string, b Batch, writes []Write) (Clock, bool, error) {
	var now Clock // only valid once the operation is answered
	var opened bool
	take := func() {
		if opened = p.clock.Last < b.First; opened {
			p.clock = copyOf(p.clock)
			p.clock.Last, p.clock.Open[writer] = b.Last(), b
		}
		now = p.clock
	}
	note := func() {
		if p.leaveOut != recordFirst {
			p.note(key{writer, b.First}, writes)
		}
	}
	if err := p.sendAll(ctx, []func(){take}, []func(){note}); err != nil {
		return Clock{}, false, err
	}
	if opened || now.Open[writer].First == b.First {
		return now, opened, nil
	}
	p.post(&pendingCall{left: 1, answer: make(chan struct{})}, []func(){func() {
		if r := p.records[key{writer, b.First}]; r != nil && !r.shown {
			p.change(key{writer, b.First}, func(r *record) { r.changes = nil })
			delete(p.records, key{writer, b.First})
		}
	}})
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
	p.horizon.Store(max(p.horizon.Load(), now.Horizon()))
	return now, nil
}

func copyOf(c Clock) Clock {
	open := make(map[string]Batch, len(c.Open)+1)
	for writer, b := range c.Open {
		open[writer] = b
	}
	return Clock{c.Last, open}
}

func (p *port) Write(ctx context.Context, writer string, b Batch, writes []Write) (int, error) {
	var applied int
	show := func() {
		if p.leaveOut == recordFirst {
			p.note(key{writer, b.First}, writes)
		}
		if p.leaveOut != showWithWrite {
			p.change(key{writer, b.First}, func(r *record) { r.shown = true })
		}
	}
	horizon := p.horizon.Load()
	var steps []func()
	for _, write := range writes {
		steps = append(steps, func() {
			if p.write(write, horizon) {
				applied++
			}
		})
	}
	if err := p.sendAll(ctx, []func(){show}, steps); err != nil {
		return 0, err
	}
	return applied, nil
}

// Settle reads one document at a time, because a store does not read several documents at the same moment.
func (p *port) Settle(ctx context.Context, writer string, first int64) (map[string]bool, error) {
	if p.leaveOut == settleFenced && p.process >= watchers {
		return nil, nil
	}
	k := key{writer, first}
	changes := map[string]noted{}
	var ids []string
	err := p.send(ctx, func() {
		if p.leaveOut != emptyRecord {
			p.note(k, nil)
		}
		if r := p.records[k]; r != nil {
			changes = r.changes
			ids = slices.Sorted(maps.Keys(changes))
		}
	})
	if err != nil {
		return nil, err
	}
	landed := map[string]bool{}
	var moved []string // documents whose positions are above the positions of the batch
	for _, id := range ids {
		if err := p.send(ctx, func() {
			switch d := p.documents[id]; {
			case d == nil || d.position < changes[id].position:
			case d.position == changes[id].position:
				landed[id] = true
			default:
				moved = append(moved, id)
			}
		}); err != nil {
			return nil, err
		}
	}
	if len(moved) > 0 && p.leaveOut != followers {
		if err := p.send(ctx, func() {
			for _, id := range moved {
				landed[id] = p.followed(id, changes[id].position)
			}
		}); err != nil {
			return nil, err
		}
	}
	err = p.send(ctx, func() {
		p.change(k, func(r *record) {
			if p.leaveOut != removeRefused {
				r.changes = maps.Clone(r.changes)
				maps.DeleteFunc(r.changes, func(id string, _ noted) bool { return !landed[id] })
			}
			r.shown = true
		})
	})
	return landed, err
}

// note stores a record, unless a record with its key exists.
func (w *world) note(k key, writes []Write) {
	if w.records[k] != nil {
		return
	}
	w.records[k] = &record{}
	w.change(k, func(r *record) {
		r.changes = map[string]noted{}
		for _, write := range writes {
			r.changes[write.ID] = noted{write.Position, write.Before}
		}
		r.shown = w.leaveOut == showLater
	})
}

// change changes a record, if it exists. If a follower has already read the changed part of the record, the
// simulation has failed.
func (w *world) change(k key, change func(*record)) {
	r := w.records[k]
	if r == nil {
		return
	}
	before := r.visible(0, w.passed)
	change(r)
	if after := r.visible(0, w.passed); !maps.Equal(before, after) {
		w.fail("R2: the record of %v changed from %v to %v after a follower read up to %d", k, before, after,
			w.passed)
	}
}

// visible returns the changes of a shown record with positions from after+1 to upto.
func (r *record) visible(after, upto int64) map[int64]string {
	changes := map[int64]string{}
	for id, c := range r.changes {
		if r.shown && c.position > after && c.position <= upto {
			changes[c.position] = id
		}
	}
	return changes
}

// followed reports whether a later change of the document replaced its state at this position.
func (w *world) followed(id string, position int64) bool {
	for _, r := range w.records {
		if c, there := r.changes[id]; there && c.before == position {
			return true
		}
	}
	return false
}

// checkRecords compares the shown changes in a range of positions with the writes that were applied there. It
// must be called only for a range in which no write can be applied any more.
func (w *world) checkRecords(after, upto int64) {
	shown, written := map[int64]string{}, map[int64]string{}
	for k, r := range w.records {
		for position, id := range r.visible(after, upto) {
			if other, taken := shown[position]; taken {
				w.fail("R1: %s and %s both have a record at %d (of %v)", other, id, position, k)
			}
			shown[position] = id
		}
	}
	for position, id := range w.written {
		if position > after && position <= upto {
			written[position] = id
		}
	}
	for position, id := range written {
		if shown[position] != id {
			w.fail("R1: the change of %s at %d has no record", id, position)
		}
	}
	for position, id := range shown {
		if written[position] != id {
			w.fail("R1: the record has a change of %s at %d, which was never made", id, position)
		}
	}
}

func (p *port) Fence(ctx context.Context, ids []string) error {
	if p.leaveOut == fenceBefore {
		return nil
	}
	var steps []func()
	for _, id := range ids {
		steps = append(steps, func() {
			d := p.documents[id]
			if d == nil {
				d = &document{trail: NewTrail()}
				p.documents[id] = d
			}
			d.revision++
		})
	}
	return p.send(ctx, steps...)
}

// page returns the ids and positions of the documents with positions from after+1 to upto.
func (w *world) page(after, upto int64) map[string]int64 {
	entries := map[string]int64{}
	for id, d := range w.documents {
		if d.position > after && d.position <= upto {
			entries[id] = d.position
		}
	}
	return entries
}

// follower is a reader. It reads the clock in one step, and the page and the record in a later step.
type follower struct {
	offset  int64
	horizon int64 // horizon of the clock that it has read; 0: the next step reads the clock
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
	if w.passed < f.horizon {
		w.checkRecords(w.passed, f.horizon)
		w.passed = f.horizon
	}
	f.offset, f.horizon = max(f.offset, f.horizon), 0
}

// summary returns the first five violations.
func (w *world) summary() string { return strings.Join(w.failed[:min(len(w.failed), 5)], "; ") }

const (
	timeout = 100 * time.Millisecond
	lease   = 500 * time.Millisecond
)
