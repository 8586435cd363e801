package webhook

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"asset-registry/shared/testing/expect"
)

func TestEveryPageOfWebhooksIsRead(t *testing.T) {
	inWorld(t, conduct{}, func(w *world, r *receiver, _ *process) {
		w.set(func() {
			for i := range loadPage {
				w.add(fmt.Sprintf("n%04d", i), conduct{})
			}
		})
		time.Sleep(3 * time.Second)
		w.growBy(2)
		time.Sleep(5 * time.Second)
		w.wantHandled(r, 1)
		if n := w.lacks(); n > 0 {
			t.Errorf("got %d of %d receivers without the change, want none", n, loadPage+1)
		}
	})
}

func TestARemovedWebhookGetsNothing(t *testing.T) {
	inWorld(t, conduct{}, func(w *world, r *receiver, p *process) {
		w.growBy(2)
		time.Sleep(time.Second)
		w.wantHandled(r, 1)
		if counts, _ := p.sender.observe(); counts[string(Active)] != 1 {
			t.Errorf("got %v, want one active webhook", counts)
		}
		expect.OK(t, w.store.Remove(t.Context(), "r"))
		time.Sleep(2 * time.Second)
		w.grow()
		time.Sleep(5 * time.Second)
		w.wantHandled(r, 1)
		if counts, _ := p.sender.observe(); counts[string(Active)] != 0 {
			t.Errorf("got %v, want no active webhook", counts)
		}
	})
}

// TestAListThatCannotBeReadEndsNoWebhook adds a webhook while the store cannot list the webhooks. During this time,
// the existing webhook must get its changes. The new webhook must get its changes later.
func TestAListThatCannotBeReadEndsNoWebhook(t *testing.T) {
	inWorld(t, conduct{}, func(w *world, r *receiver, _ *process) {
		w.store.fail("Endpoints")
		var late *receiver
		w.set(func() { late = w.add("s", conduct{}) })
		time.Sleep(3 * time.Second)
		w.growBy(2)
		time.Sleep(2 * time.Second)
		w.wantHandled(r, 1)
		w.wantHandled(late, -1)
		w.store.fail("")
		time.Sleep(3 * time.Second)
		w.wantHandled(late, 1)
	})
}

// TestAMessageUnderWayOutlivesTheChangeOfAnotherWebhook adds and changes another webhook while a message is being
// sent. Both webhooks must get messages. The list of webhooks must be read only once after it was
// added, and once after it was changed.
func TestAMessageUnderWayOutlivesTheChangeOfAnotherWebhook(t *testing.T) {
	inWorld(t, conduct{takes: 10 * time.Second}, func(w *world, r *receiver, _ *process) {
		w.growBy(2)
		time.Sleep(2 * time.Second)
		w.store.mu.Lock()
		before := w.store.reads
		w.store.mu.Unlock()
		var other *receiver
		w.set(func() { other = w.add("s", conduct{}) })
		time.Sleep(3 * time.Second)
		w.change(other)
		time.Sleep(6 * time.Second)
		w.wantHandled(r, 1)
		w.wantHandled(other, 1)
		w.store.mu.Lock()
		defer w.store.mu.Unlock()
		if got := w.store.reads - before; got != 2 {
			t.Errorf("got the list read %d times, want once for each of 2 changes", got)
		}
	})
}

// TestWhatIsToldOfTheEndOfATerm ends terms in several ways, and checks the warnings in the log.
func TestWhatIsToldOfTheEndOfATerm(t *testing.T) {
	for _, c := range []struct {
		name    string
		prepare func(*memory)
		want    bool
	}{
		{"given back", func(*memory) {}, false},
		{"the store does not answer", func(m *memory) { m.fails = "Release" }, true},
		{"another process has the term", func(m *memory) {
			m.fails, m.holder = "Release", "another"
			m.term.Number++
			m.term.Until = time.Now().Add(time.Hour)
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, conduct{}, func(w *world, _ *receiver, p *process) {
				w.store.mu.Lock()
				c.prepare(w.store)
				w.store.mu.Unlock()
				time.Sleep(3 * time.Second)
				p.close()
				const told = "give the term of the sender back: Release: the store is down"
				if got := w.warnings(); strings.Contains(got, told) != c.want || (got != "") != c.want {
					t.Errorf("got the warnings %q, want %q: %t", got, told, c.want)
				}
			})
		})
	}
}
