package mongostore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.opentelemetry.io/otel/trace"

	"asset-registry/shared/errs"
	"asset-registry/shared/telemetry"
)

// barrier sends barriers, one at a time. All reads that wait share the next one. A read waits for a barrier that
// is sent after the read has arrived: the answer of an earlier barrier may lack a change that the reader knows
// of.
type barrier struct {
	send func(context.Context) error

	mu      sync.Mutex
	running *round // the barrier that is sent and not answered yet; nil: no barrier is running
	next    *round // for the reads that came after the running barrier was sent; nil: no read waits for it
	closed  bool
	sending sync.WaitGroup
}

// round is one barrier and the reads that wait for it.
type round struct {
	ctx    context.Context // ends when no read waits for this barrier any more
	cancel context.CancelFunc
	reads  int
	done   chan struct{} // closed once err has the result
	err    error
}

func newBarrier(send func(context.Context) error) *barrier { return &barrier{send: send} }

// wait waits for a barrier that is sent after the call. It returns the error of the barrier. If ctx ends first, it
// returns the error of ctx. After a call of the method `close`, it returns errClosed.
func (b *barrier) wait(ctx context.Context) error {
	r, err := b.join()
	if err != nil {
		return err
	}
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		b.leave(r)
		return ctx.Err()
	}
}

// join adds a read to the next barrier. If no barrier is running, it also sends this barrier.
func (b *barrier) join() (*round, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, errClosed
	}
	if b.next == nil {
		b.next = &round{done: make(chan struct{})}
		b.next.ctx, b.next.cancel = context.WithCancel(context.Background())
	}
	r := b.next
	r.reads++
	if b.running == nil {
		b.turn()
		b.sending.Go(b.work)
	}
	return r, nil
}

// leave removes a read from its barrier. If no read is left, leave cancels the barrier. If the barrier was not sent
// yet, it is never sent.
func (b *barrier) leave(r *round) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r.reads--; r.reads > 0 {
		return
	}
	r.cancel()
	if b.next == r {
		b.next = nil
	}
}

// work sends barriers until no read waits.
func (b *barrier) work() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.running != nil {
		r := b.running
		b.mu.Unlock()
		r.err = b.send(r.ctx)
		r.cancel()
		close(r.done)
		b.mu.Lock()
		b.turn()
	}
}

// turn makes the next barrier the running one. The caller must hold the lock mu.
func (b *barrier) turn() { b.running, b.next = b.next, nil }

// close refuses later reads, cancels the barriers, and waits until none is being sent.
func (b *barrier) close() error {
	b.mu.Lock()
	b.closed = true
	for _, r := range []*round{b.running, b.next} {
		if r != nil {
			r.cancel()
		}
	}
	b.mu.Unlock()
	b.sending.Wait()
	return nil
}

// errNoTime is returned for a server whose answers have no operation time. Without that time, a read cannot ask
// for a state after the barrier.
var errNoTime = errors.New("fresh reads need a replica set of MongoDB; this server tells no operation time")

// linearizable sets a read concern. Only a primary that has a majority can answer a read with this concern:
// before the answer, a majority acknowledges an entry of the primary's oplog.
var linearizable = options.Collection().SetReadConcern(readconcern.Linearizable())

// sendBarrier reads the clock from a primary that has a majority. The answer has an operation time. Later reads of
// this process ask for a state after this time (see database.sees). A primary that was voted out never reaches this
// time. The session is not causally consistent. Otherwise it would add a time to each read, and MongoDB refuses a
// linearizable read with a time.
func (d *database) sendBarrier(ctx context.Context) error {
	if !d.opened.Load() {
		return errNotOpened
	}
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	session, err := d.client.StartSession(options.Session().SetCausalConsistency(false))
	if err != nil {
		return fmt.Errorf("start session: %w", err)
	}
	defer session.EndSession(context.WithoutCancel(ctx))
	clocks := d.clocks.Clone(linearizable)
	err = clocks.FindOne(mongo.NewSessionContext(ctx, session), withID(clockID),
		options.FindOne().SetProjection(only("last"))).Err()
	switch {
	case errors.Is(err, mongo.ErrNoDocuments):
		return errNoClock
	case err != nil:
		return fmt.Errorf("send barrier: %w", d.explained(err))
	case session.OperationTime() == nil:
		return errNoTime
	}
	return nil
}

// fresh makes sure that later reads show every change that any process acknowledged before this call, even while
// MongoDB elects a primary. It waits for a barrier, at most as long as one operation may take. Without
// Options.FreshReads it does nothing.
func (d *database) fresh(ctx context.Context) error {
	if d.barrier == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	ctx, span := telemetry.Child(ctx, trace.SpanKindInternal, "barrier")
	err := d.barrier.wait(ctx)
	telemetry.End(span, err)
	return errs.In(err, "wait for a barrier")
}

// member is the replication state of one server of the replica set. The driver asks each server for this state every
// ten seconds, and needs no privilege for it.
type member struct {
	wrote time.Time // time of the newest write that the server has
	heard time.Time // when the server reported this time
}

// heartbeat records the state that a server reports.
func (c *connections) heartbeat(e *event.ServerHeartbeatSucceededEvent) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if wrote := e.Reply.LastWriteTime; !wrote.IsZero() {
		c.members[e.Reply.Addr.String()] = member{wrote, time.Now()}
	}
}

// keepMembers forgets servers that have left the replica set. A server that is down still belongs to it.
func (c *connections) keepMembers(servers []event.ServerDescription) {
	kept := map[string]member{}
	for _, s := range servers {
		if m, known := c.members[s.Addr.String()]; known {
			kept[s.Addr.String()] = m
		}
	}
	c.members = kept
}

// silentAfter is the time after which a server that has not reported counts as silent.
const silentAfter = 30 * time.Second

// lags returns how far each server is behind the primary. For a server that has been silent longer than silentAfter,
// the lag grows with time. Without a primary, the result is nil.
func (c *connections) lags(now time.Time) map[string]time.Duration {
	if c.primary == "" {
		return nil
	}
	behind := map[string]time.Duration{c.primary: 0}
	primary, known := c.members[c.primary]
	if !known { // the server is not in a replica set
		return behind
	}
	for server, m := range c.members {
		if server == c.primary {
			continue
		}
		heard := m.heard
		if now.Sub(heard) > silentAfter {
			heard = now
		}
		// Servers report at different times. So each server's newest write is compared with the time at which that
		// server reported it.
		behind[server] = max(0, heard.Sub(m.wrote)-primary.heard.Sub(primary.wrote))
	}
	return behind
}
