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
	apart     = 300 * time.Millisecond // least time from one message to the next; no wait after a full message
	calm      = 50 * time.Millisecond  // pause after a change of the feed that is not in the selection
	poll      = time.Second            // time between two reads of pages, while there is no ring
	keepEvery = 10 * time.Minute       // how often a position is stored while it moves on without messages
	keepOften = time.Minute            // how often the position of an endpoint with filters is stored
	slowAfter = time.Second            // a receiver that takes longer is slow
)

// worker sends the messages to one endpoint, one after the other (docs/webhooks.md, W2).
type worker struct {
	t       *tenure
	waiting context.Context // ends when no more messages may begin
	sending context.Context // ends when messages under way must end
	stop    func()          // ends both contexts
	done    chan struct{}   // closed when the worker has ended

	generation atomic.Int64 // generation of the endpoint
	show       atomic.Pointer[shown]

	// Only the method `run` uses these fields until the channel `done` is closed. Then others may read them.
	e         Endpoint
	ring      *follow.Ring // nil: the worker does not follow the feed
	leave     func()
	at        int64  // each entry up to this position was sent, or the filters left it out; never below e.Position
	keys      []keys // derived from Seal and OldSeal
	filters   assetfilter.Set
	notBefore time.Time // the earliest time of the next message
	need      int64     // estimated bytes of the next message
	slow      bool
	woken     bool      // a change of the ring has ended the last wait
	kept      time.Time // time of the last save
}

// newWorker returns a worker. The caller starts it with run.
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

// run works until the endpoint is disabled, changed or gone, or the term ends. The argument `previous` is the
// worker that had the endpoint before. It is nil for the first worker.
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

// begin waits for the end of the previous worker, and then reads the stored progress of the endpoint. It seals
// the seeds with the current secret.
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
		w.t.s.failures.Failed(fmt.Errorf("webhook %s: %w", w.e.ID, err)) // nothing is sent if the filters are unknown
		return err
	}
	for _, seal := range []string{w.e.Seal, w.e.OldSeal} {
		if seal == "" {
			break
		}
		k, err := w.t.s.seals.keysOf(seal)
		if err != nil {
			w.t.s.failures.Failed(err)
			break // nothing is sent without keys
		}
		w.keys = append(w.keys, k)
	}
	seal, anew, err1 := w.t.s.seals.Renew(w.e.Seal)
	old, oldAnew, err2 := w.t.s.seals.Renew(w.e.OldSeal)
	if (anew || oldAnew) && errors.Join(err1, err2) == nil {
		next := w.e
		next.Seal, next.OldSeal = seal, old
		// The new generation is set before Put. Put makes the sender read all endpoints, and the sender replaces a
		// worker that has an older generation than its endpoint.
		w.generation.Store(w.e.Generation + 1)
		ctx, cancel := context.WithTimeout(w.waiting, readWithin)
		defer cancel()
		if err := store.Put(ctx, next); err != nil {
			w.generation.Store(w.e.Generation)
			return err
		}
		w.e = next
		w.e.Generation++
	}
	return nil
}

// signer returns the keys that sign a message now. It returns no keys if the seal cannot be opened.
func (w *worker) signer() signer {
	if left := time.Until(w.e.OldUntil); len(w.keys) > 1 && (left <= 0 || left > overlap) {
		w.keys = w.keys[:1]
	}
	return w.keys
}

// payer returns the name under which the slots of an endpoint are counted. Endpoints of one broker share a name.
// Each endpoint of an administrator has a separate name.
func payer(e Endpoint) string {
	if e.ByAdmin {
		return "webhook " + e.ID
	}
	return "broker " + e.Broker
}

// errUnopened is the fault for an endpoint whose seal cannot be opened.
const errUnopened = "the registry cannot open the secret of the webhook; rotate the secret"

// send makes one attempt to send a message.
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
	if w.sending.Err() != nil { // we ended the request, so the receiver is not at fault
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

// unread handles an error of reading the feed: it logs the error and waits.
func (w *worker) unread(err error) error {
	if w.waiting.Err() == nil {
		w.t.s.failures.Failed(err)
		sleep.For(w.waiting, poll)
	}
	return w.waiting.Err()
}

// peek returns the next entries to send from the ring. It skips entries that the filters leave out. Without a
// ring, the view covers nothing.
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

// The method `next` returns the next message to send. It makes the message from the ring if the ring goes back far
// enough, and otherwise from a page.
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

// scan searches one part of the feed for the next entry that meets the filters, and moves w.at to the position
// just before this entry. Then it pauses for as long as the search took. All endpoints with filters scan one
// after the other, so together they read for at most half of the time. Brokers take turns, so a broker with many
// endpoints does not delay other brokers. During a scan the worker has no slot of the lanes.
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

// idle waits for a change of the feed, because nothing is left to send. The argument `paged` is true if a page has
// shown this, and false if the ring has.
func (w *worker) idle(view follow.View, paged bool) error {
	if view.Covered {
		w.at = max(w.at, view.Upto)
	}
	w.waits(time.Time{})
	// A change outside the selection has ended the last wait. More such changes may follow, so the worker pauses.
	if w.woken {
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
	case <-view.Changed: // without a ring this channel is nil, so it is never ready
		w.woken = !paged
	case <-timer.C:
	case <-w.waiting.Done():
		return w.waiting.Err()
	}
	return w.keep()
}

// keep stores the position of an endpoint that gets no messages, if the position has changed and the last save is
// long enough ago.
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
