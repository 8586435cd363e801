package webhook

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/metric/noop"

	"asset-registry/shared/testing/expect"
)

// untold is a part of the warning that is logged if the store fails while a process takes or renews the term.
const untold = "take the term of the sender: Lead: the store is down"

// TestATermThatCannotBeTakenIsToldAndTakenLater starts a process while the store is down. The process must log a
// warning, and take the term when the store works again.
func TestATermThatCannotBeTakenIsToldAndTakenLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 5)
		r := w.add("r", conduct{})
		w.store.fail("Lead")
		p := w.start(0)
		w.growBy(2)
		time.Sleep(5 * time.Second)
		w.wantHandled(r, -1)
		w.store.fail("")
		time.Sleep(3 * time.Second)
		w.wantHandled(r, 1)
		p.close()
		if got := w.warnings(); !strings.Contains(got, untold) {
			t.Errorf("got the warnings %q, want %q", got, untold)
		}
	})
}

// TestATermThatCannotBeRenewedLastsToItsEnd makes some renewals of the term fail. The process must continue to
// send in the same term.
func TestATermThatCannotBeRenewedLastsToItsEnd(t *testing.T) {
	inWorld(t, conduct{}, func(w *world, r *receiver, _ *process) {
		w.store.fail("Lead")
		time.Sleep(3 * time.Second)
		w.growBy(2)
		time.Sleep(2 * time.Second)
		w.wantHandled(r, 1)
		w.store.fail("")
		time.Sleep(3 * time.Second)
		if got := w.warnings(); !strings.Contains(got, untold) {
			t.Errorf("got the warnings %q, want %q", got, untold)
		}
		w.store.mu.Lock()
		defer w.store.mu.Unlock()
		if n := w.store.term.Number; n != 1 {
			t.Errorf("got term %d, want the first one all the time", n)
		}
	})
}

// TestAnEndDuringAReadIsNotTold closes a process while it asks the store something, so that the store returns an error.
// No warning must be logged.
func TestAnEndDuringAReadIsNotTold(t *testing.T) {
	for _, c := range []struct {
		name, holder, fails string
		wait                time.Duration // time until the process asks
	}{
		{"a renewal", "", "Lead", renewEvery},
		{"an attempt to take the term of another process", "another process", "Lead", renewEvery},
		{"the list of webhooks, after a renewal of two seconds", "", "Endpoints", 3 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 5)
			if c.holder != "" {
				w.store.holder, w.store.term.Until = c.holder, time.Now().Add(time.Hour)
			}
			p := w.start(0)
			time.Sleep(2*time.Second + renewEvery/2) // between two renewals
			w.set(func() { w.add("s", conduct{}) })
			p.freeze(time.Second)
			time.Sleep(c.wait)
			w.store.fail(c.fails)
			p.close()
			expect.Equal(t, w.warnings(), "", "%s, the warnings", c.name)
		})
	}
}

// TestAListThatFailsIsReadAgain makes a worker end, so that the list of webhooks is read again. This read fails
// for some seconds. Later the list must be read again, and the changes sent.
func TestAListThatFailsIsReadAgain(t *testing.T) {
	inWorld(t, conduct{}, func(w *world, r *receiver, _ *process) {
		w.change(r)
		w.store.fail("Endpoint")
		time.Sleep(2500 * time.Millisecond) // between two renewals
		w.growBy(2)
		w.store.fail("Endpoints")
		time.Sleep(3 * time.Second)
		w.wantHandled(r, -1)
		w.store.fail("")
		time.Sleep(3 * time.Second)
		w.wantHandled(r, 1)
		const want = "read the webhooks: Endpoints: the store is down"
		if got := w.warnings(); !strings.Contains(got, want) {
			t.Errorf("got the warnings %q, want %q", got, want)
		}
	})
}

// TestAWebhookThatWasNotCountedIsFound adds a webhook without incrementing Term.Changes, like a store that fails
// between these two writes. The sender must find the webhook within loadEvery.
func TestAWebhookThatWasNotCountedIsFound(t *testing.T) {
	inWorld(t, conduct{}, func(w *world, _ *receiver, _ *process) {
		var late *receiver
		w.set(func() { late = w.add("s", conduct{}) })
		w.store.mu.Lock()
		w.store.term.Changes--
		w.store.mu.Unlock()
		w.growBy(2)
		time.Sleep(loadEvery / 2)
		w.wantHandled(late, -1)
		time.Sleep(loadEvery/2 + 2*time.Second)
		w.wantHandled(late, 1)
	})
}

// TestAFailingReceiverIsNotBehind has a receiver that has failed. While the next message to it waits for a slot,
// no change may count as waiting for the sender.
func TestAFailingReceiverIsNotBehind(t *testing.T) {
	inWorld(t, conduct{}, func(w *world, r *receiver, p *process) {
		w.set(func() { r.status = http.StatusInternalServerError })
		w.growBy(2)
		time.Sleep(500 * time.Millisecond)
		leave := p.sender.full(t)
		time.Sleep(time.Minute)
		if counts, behind := p.sender.observe(); counts[failing] != 1 || behind != 0 {
			t.Errorf("got %v and a change that waits for %v, want one failing webhook and 0", counts, behind)
		}
		leave()
	})
}

// TestASenderSendsAndLeavesNoConnection uses a receiver with a real connection. The receiver must get a message,
// and Close must close the connection.
func TestASenderSendsAndLeavesNoConnection(t *testing.T) {
	got, closed := make(chan string, 1), make(chan struct{}, 1)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got <- r.Header.Get(headerID)
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			closed <- struct{}{}
		}
	}
	s.Start()
	defer s.Close()
	w := newWorld(t, 5)
	w.add("r", conduct{})
	w.alter(func(e *Endpoint) { e.URL = s.URL })
	w.growBy(2)
	sender := New(Config{
		Store: w.store, Feed: w, Seals: w.seals, Policy: local, Memory: 1 << 20, Log: w.log, Meter: noop.Meter{},
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	select {
	case id := <-got:
		expect.ErrorIf(t, id == "", "got a message without an id, want one")
	case <-ctx.Done():
		t.Error("got no message, want one")
	}
	sender.Close()
	select {
	case <-closed:
	case <-ctx.Done():
		t.Error("got a connection that stays open, want it closed with the sender")
	}
}
