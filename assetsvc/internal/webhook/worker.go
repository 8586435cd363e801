package webhook

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"asset-registry/shared/assetfilter"
	"asset-registry/shared/follow"
	"asset-registry/shared/sleep"
)

const (
	apart     = 300 * time.Millisecond // from one message to the next, unless the first is full
	calm      = 50 * time.Millisecond  // after a change of the feed that the selection does not have
	poll      = time.Second            // between pages, while there is no ring
	keepEvery = 10 * time.Minute       // a position that moved on without messages is stored so often
	keepOften = time.Minute            // the same with filters, which leave out more
	slowAfter = time.Second            // a receiver that takes longer is slow
)

// worker sends the messages to one endpoint, one after the other (docs/webhooks.md, W2).
type worker struct {
	t       *tenure
	waiting context.Context // ends when no more messages may begin
	sending context.Context // ends when messages under way must end
	stop    func()          // ends both
	done    chan struct{}   // closed at the end

	generation atomic.Int64 // of the endpoint
	show       atomic.Pointer[shown]

	// Fields of run; others read them once done is closed.
	e         Endpoint
	ring      *follow.Ring // nil: not joined
	leave     func()
	at        int64  // there is nothing to send up to here, at least e.Position
	keys      []keys // of Seal and OldSeal
	filters   assetfilter.Set
	notBefore time.Time // no message before here
	need      int64     // bytes of the next message, about
	slow      bool
	woken     bool      // by a change of the ring
	kept      time.Time // the last save
}

// newWorker returns a worker, which run starts.
func newWorker(t *tenure, e Endpoint) *worker {
	w := &worker{t: t, e: e, done: make(chan struct{}), need: usual, kept: time.Now()}
	var stop1, stop2 func()
	w.waiting, stop1 = context.WithCancel(t.waiting)
	w.sending, stop2 = context.WithCancel(t.sending)
	w.stop = func() { stop1(); stop2() }
	w.generation.Store(e.Generation)
	w.show.Store(&shown{state: stateOf(e)})
	return w
}

// run works until the endpoint is disabled, changed or gone, or the term ends. previous is
// the worker that had the endpoint before; nil: none.
func (w *worker) run(previous *worker) {
	defer close(w.done)
	defer w.stop()
	if err := w.begin(previous); err != nil {
		w.t.ended(w)
		return
	}
	defer w.unfollow()
	for w.e.State != Disabled {
		if wait := w.e.rest(time.Now()); wait > 0 {
			w.unfollow()
			if !sleep.For(w.waiting, wait) {
				return
			}
		}
		step := w.deliver
		if w.e.State != Active || !w.e.Verified {
			step = w.challenge
		}
		if err := step(); err != nil {
			w.t.ended(w)
			return
		}
	}
}

// begin waits for the end of the worker before, and then reads what that one has stored.
// It seals the seeds with the current secret.
func (w *worker) begin(previous *worker) error {
	store := w.t.s.store
	if previous != nil {
		w.t.s.await(previous)
		ctx, cancel := context.WithTimeout(w.waiting, readWithin)
		defer cancel()
		now, err := store.Endpoint(ctx, w.e.ID)
		if err != nil {
			return err
		}
		if now.Generation != w.e.Generation {
			return ErrStale
		}
		w.e = now
	}
	w.at = w.e.Position
	w.changed()
	if w.e.State == Disabled {
		return nil
	}
	var err error
	if w.filters, err = assetfilter.Parse(w.e.Filters); err != nil {
		w.t.s.failures.Failed(fmt.Errorf("webhook %s: %w", w.e.ID, err)) // nothing is sent without its filters
		return err
	}
	seal, anew, err1 := w.t.s.seals.Renew(w.e.Seal)
	old, oldAnew, err2 := w.t.s.seals.Renew(w.e.OldSeal)
	if (anew || oldAnew) && errors.Join(err1, err2) == nil {
		next := w.e
		next.Seal, next.OldSeal = seal, old
		w.generation.Store(w.e.Generation + 1) // before the store counts the change
		ctx, cancel := context.WithTimeout(w.waiting, readWithin)
		defer cancel()
		if err := store.Put(ctx, next); err != nil {
			w.generation.Store(w.e.Generation)
			return err
		}
		w.e = next
		w.e.Generation++
	}
	for _, seal := range []string{w.e.Seal, w.e.OldSeal} {
		if seal == "" {
			break
		}
		k, err := w.t.s.seals.keysOf(seal)
		if err != nil {
			w.t.s.failures.Failed(err)
			break // without keys nothing is sent
		}
		w.keys = append(w.keys, k)
	}
	return nil
}

// signer returns the keys that sign now; none if the seal cannot be opened.
func (w *worker) signer() signer {
	if left := time.Until(w.e.OldUntil); len(w.keys) > 1 && (left <= 0 || left > overlap) {
		w.keys = w.keys[:1]
	}
	return w.keys
}

// payer names whose share of the slots a message takes. The endpoints of administrators
// have a share each.
func payer(e Endpoint) string {
	if e.ByAdmin {
		return "webhook " + e.ID
	}
	return "broker " + e.Broker
}

// errUnopened is for an endpoint whose seal cannot be opened.
const errUnopened = "the registry cannot open the secret of the webhook; rotate the secret"

// send makes one attempt.
func (w *worker) send(m message) answer {
	keys := w.signer()
	if len(keys) == 0 {
		return answer{fault: errUnopened}
	}
	begun := time.Now()
	w.waits(time.Time{})
	a := post(w.sending, w.t.s.transport, w.e.URL, keys, m)
	w.waits(time.Now())
	w.slow = time.Since(begun) > slowAfter
	w.t.s.metrics.sent(a)
	return a
}

// challenge makes one attempt to verify the endpoint.
func (w *worker) challenge() error {
	for wait := w.t.s.challenged.take(w.e); wait > 0; wait = w.t.s.challenged.take(w.e) {
		if !sleep.For(w.waiting, wait) {
			return w.waiting.Err()
		}
	}
	in, err := w.t.s.lanes.enter(w.waiting, payer(w.e), true, maxAnswer)
	if err != nil {
		return err
	}
	defer in.leave()
	m, want := newChallenge(w.e, w.t.s.feed.Offset(time.Now().UnixMicro()))
	a := w.send(m)
	if a.fault == "" && !isAnswer(a.body, want) {
		a.fault = "the receiver did not answer the challenge with its text"
	}
	p := w.e.Progress
	if a.fault == "" {
		p.State, p.Verified = Active, true
		succeed(&p)
		return w.save(p)
	}
	if w.sending.Err() != nil { // it was not the receiver
		return w.sending.Err()
	}
	return w.fail(p, a, challenges, answerFor, Unanswerable)
}

// deliver sends one message, or waits until there may be something to send.
func (w *worker) deliver() error {
	if !sleep.For(w.waiting, time.Until(w.notBefore)) {
		return w.waiting.Err()
	}
	view := w.peek()
	if view.Covered && len(view.Entries) == 0 {
		return w.idle(view, false)
	}
	if w.show.Load().waits.IsZero() {
		since := w.kept
		if len(view.Entries) > 0 {
			since = later(since, time.UnixMicro(view.Entries[0].Position))
		}
		w.waits(later(since, w.notBefore))
	}
	view.Release()
	if !view.Covered && !w.filters.IsEmpty() {
		found, err := w.scan()
		switch {
		case err != nil:
			return w.unread(err)
		case found.First == 0 && found.More:
			return w.keep()
		case found.First == 0:
			return w.idle(view, true)
		}
	}
	in, err := w.t.s.lanes.enter(w.waiting, payer(w.e), w.slow, w.need)
	if err != nil {
		return err
	}
	m, found, err := w.next()
	if err != nil || !found {
		in.leave()
	}
	switch {
	case err != nil:
		return w.unread(err)
	case !found:
		return w.idle(view, true)
	}
	if size := int64(cap(m.body)); !in.shrink(size) {
		in.leave()
		w.need = size
		return nil
	}
	w.need = usual
	begun := time.Now()
	a := w.send(m)
	in.leave()
	if !m.full {
		w.notBefore = begun.Add(apart)
	}
	p := w.e.Progress
	if a.fault != "" {
		if w.sending.Err() != nil {
			return w.sending.Err()
		}
		return w.fail(p, a, 0, giveUp, Failing)
	}
	w.t.s.metrics.acknowledged(m)
	p.Position = m.upto
	succeed(&p)
	return w.save(p)
}

// unread waits after the feed could not be read.
func (w *worker) unread(err error) error {
	if w.waiting.Err() == nil {
		w.t.s.failures.Failed(err)
		sleep.For(w.waiting, poll)
	}
	return w.waiting.Err()
}

// peek returns what the ring has after what was sent, and after the entries that filters leave
// out: nothing, or some entries that begin with the next one to send. Without a ring it covers nothing.
func (w *worker) peek() follow.View {
	if w.ring == nil {
		ring, leave, err := w.t.s.feed.Follow(selectionOf(w.e))
		if err != nil {
			return follow.View{}
		}
		w.ring, w.leave = ring, leave
	}
	if w.filters.IsEmpty() {
		return w.ring.Read(w.at, 1)
	}
	for {
		view := w.ring.Read(w.at, MaxBytes)
		wanted := func(e *follow.Entry) bool { return w.filters.Meets(e.Terms) }
		first := slices.IndexFunc(view.Entries, wanted)
		if first == 0 || len(view.Entries) == 0 {
			return view
		}
		if first > 0 {
			view.Upto = view.Entries[first-1].Position
		}
		view.Release()
		w.at = view.Upto
	}
}

func (w *worker) unfollow() {
	if w.ring != nil {
		w.leave()
		w.ring = nil
	}
}

// next returns the message that follows what was sent, from the ring if it covers that, and
// from a page otherwise.
func (w *worker) next() (m message, found bool, err error) {
	s := w.t.s
	if w.ring != nil {
		view := w.ring.Read(w.at, MaxBytes)
		defer view.Release()
		if view.Covered {
			entries := viewed(view, w.filters)
			if len(entries) == 0 {
				w.at = max(w.at, view.Upto)
				return m, false, nil
			}
			m = newMessage(w.e, entries, s.feed.Offset)
			m.live = true
			return m, true, nil
		}
	}
	if err := s.pages.Acquire(w.waiting, 1); err != nil {
		return m, false, err
	}
	defer s.pages.Release(1)
	ctx, cancel := context.WithTimeout(w.waiting, readWithin)
	defer cancel()
	page, err := s.feed.Page(ctx, selectionOf(w.e), w.filters, w.at)
	if err != nil {
		return m, false, err
	}
	if len(page.Entries) == 0 {
		w.at = max(w.at, page.Upto)
		return m, false, nil
	}
	m = newMessage(w.e, page.Entries, s.feed.Offset)
	m.full = true // the next page may have more
	return m, true, nil
}

// scan goes on to the entry before the next one that meets the filters, through a part of the feed.
// Then it rests for as long as that took: all endpoints with filters read for half of the time at
// most, one after the other. Brokers take turns, so one with many endpoints delays no other. It has
// no slot of the lanes meanwhile.
func (w *worker) scan() (Found, error) {
	s := w.t.s
	leave, err := s.scanning.enter(w.waiting, payer(w.e))
	if err != nil {
		return Found{}, err
	}
	defer leave()
	if err := s.scans.Acquire(w.waiting, 1); err != nil {
		return Found{}, err
	}
	defer s.scans.Release(1)
	defer func(begun time.Time) { sleep.For(w.waiting, time.Since(begun)) }(time.Now())
	ctx, cancel := context.WithTimeout(w.waiting, readWithin)
	defer cancel()
	found, err := s.feed.Find(ctx, w.e.Mode, w.filters, w.at)
	if err != nil {
		return found, err
	}
	w.at = max(w.at, found.Upto)
	if found.First > 0 {
		w.at = max(w.at, found.First-1)
	}
	return found, nil
}

// idle waits for a change of the feed, at the end of which the endpoint is. paged tells
// that a page has shown so, and not the ring.
func (w *worker) idle(view follow.View, paged bool) error {
	if view.Covered {
		w.at = max(w.at, view.Upto)
	}
	w.waits(time.Time{})
	if w.woken { // by a change that is not in the selection; there may be many of them
		w.woken = false
		sleep.For(w.waiting, calm)
		return w.waiting.Err()
	}
	most := w.keepEvery()
	if w.at > w.e.Position {
		most -= time.Since(w.kept)
	}
	if paged {
		most = poll
	}
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-view.Changed: // nil without a ring
		w.woken = !paged
	case <-timer.C:
	case <-w.waiting.Done():
		return w.waiting.Err()
	}
	return w.keep()
}

// keep stores now and then how far the endpoint is without messages.
func (w *worker) keep() error {
	if w.at <= w.e.Position || time.Since(w.kept) < w.keepEvery() {
		return nil
	}
	p := w.e.Progress
	p.Position = w.at
	return w.save(p)
}

func (w *worker) keepEvery() time.Duration {
	if w.filters.IsEmpty() {
		return keepEvery
	}
	return keepOften
}
