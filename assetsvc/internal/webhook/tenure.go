package webhook

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"asset-registry/shared/failurelog"
)

// tenure is the work of this process during one term.
type tenure struct {
	s       *Sender
	term    int64
	ctx     context.Context // ends with the term
	lose    context.CancelFunc
	timer   *time.Timer     // calls the function `lose` at the end of the term
	waiting context.Context // ends when no more messages may begin
	sending context.Context // ends when messages under way must end
	halt    context.CancelFunc
	unwatch func() bool
	saver   *saver
	saving  sync.WaitGroup
	reload  atomic.Bool // the endpoints must be read again

	mu      sync.Mutex
	workers map[string]*worker
	running sync.WaitGroup
}

// newTenure returns the tenure for a term. The tenure ends at the given time unless it is extended.
func newTenure(s *Sender, term int64, end time.Time) *tenure {
	t := &tenure{s: s, term: term, workers: map[string]*worker{}}
	t.ctx, t.lose = context.WithCancel(s.ctx)
	t.timer = time.AfterFunc(time.Until(end), t.lose)
	t.sending, t.halt = context.WithCancel(t.ctx)
	waiting, stop := context.WithCancel(t.sending)
	t.waiting, t.unwatch = waiting, context.AfterFunc(s.going, stop)
	t.saver = &saver{
		store: s.store, term: term, steps: make(chan pending), lost: t.lose,
		failures: failurelog.New(s.log, "positions of webhooks cannot be stored; it is tried again"),
	}
	t.saving.Go(func() { t.saver.run(t.ctx) })
	return t
}

// extend sets a new end of the term.
func (t *tenure) extend(end time.Time) { t.timer.Reset(time.Until(end)) }

// end waits for the workers. If the term has not ended, end gives messages under way a few more seconds, and
// then gives the term back.
func (t *tenure) end() {
	halt := time.AfterFunc(drainFor, t.halt)
	over := time.AfterFunc(2*drainFor, t.lose)
	t.running.Wait()
	t.unwatch()
	halt.Stop()
	over.Stop()
	t.timer.Stop()
	lost := t.ctx.Err() != nil
	t.lose()
	t.saving.Wait()
	if lost {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), readWithin)
	defer cancel()
	if err := t.s.store.Release(ctx, t.term); err != nil {
		t.s.failures.Failed(fmt.Errorf("give the term of the sender back: %w", err))
	}
}

// load reads all endpoints. It starts workers for new and changed endpoints, and stops the workers of removed
// ones.
func (t *tenure) load() error {
	ctx, cancel := context.WithTimeout(t.waiting, 3*readWithin)
	defer cancel()
	found := map[string]bool{}
	for after, more := "", true; more; {
		page, err := t.s.store.Endpoints(ctx, "", after, loadPage)
		if err != nil {
			return fmt.Errorf("read the webhooks: %w", err)
		}
		for _, e := range page {
			found[e.ID] = true
			t.keep(e)
			after = e.ID
		}
		more = len(page) == loadPage
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, w := range t.workers {
		if !found[id] {
			w.stop()
			delete(t.workers, id)
		}
	}
	return nil
}

// keep starts a worker for an endpoint that was read. It does nothing if the endpoint has a worker that knows this
// generation and has not failed.
func (t *tenure) keep(e Endpoint) {
	t.mu.Lock()
	defer t.mu.Unlock()
	previous := t.workers[e.ID]
	if previous != nil && previous.generation.Load() >= e.Generation && !previous.failed() {
		return
	}
	if previous != nil {
		previous.stop()
	}
	w := newWorker(t, e)
	t.workers[e.ID] = w
	t.running.Go(func() { w.run(previous) })
}

// failed reports whether the worker has ended although the endpoint is not disabled.
func (w *worker) failed() bool {
	select {
	case <-w.done:
		return w.e.State != Disabled
	default:
		return false
	}
}

// ended makes the sender read the endpoints again after a worker has ended by itself.
func (t *tenure) ended(w *worker) {
	if w.waiting.Err() == nil {
		t.reload.Store(true)
	}
}

// The method `each` calls the function f for all workers.
func (t *tenure) each(f func(*worker)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, w := range t.workers {
		f(w)
	}
}
