package concurrency

import (
	"testing"
	"time"

	"asset-registry/shared/testing/expect"
)

func TestTheLeastImportantAreRefusedFirst(t *testing.T) {
	l := New(10)
	for _, c := range []struct {
		priority Priority
		admitted int // number of admitted requests at which one more request of this priority is refused
	}{{AnonymousRead, 7}, {KeyedRead, 8}, {Write, 10}} {
		for l.Enter(c.priority) {
		}
		expect.Equal(t, l.Current(), int64(c.admitted), "priority of %d %%: admitted", c.priority)
	}
	for range 10 {
		l.Leave()
	}
	expect.Equal(t, l.Current(), 0, "after all have left: under way")
}

func TestOneRequestIsAlwaysAdmitted(t *testing.T) {
	l := New(1)
	expect.ErrorIf(t, !l.Enter(AnonymousRead), "got the only request refused, want it admitted")
	expect.ErrorIf(t, l.Enter(Write), "got a second request admitted, want it refused")
}

// stuck is an answer whose client takes nothing.
type stuck struct{ isCut bool }

func (*stuck) Waits() time.Duration { return time.Minute }
func (s *stuck) Cut()               { s.isCut = true }

// TestAStuckAnswerGivesItsPlace fills a part with answers that nobody takes. Another read of this part gets a place of it,
// and one of another part gets one when the whole is full. An answer of another part ends only if that helps.
// Promises: stuck-answers
func TestAStuckAnswerGivesItsPlace(t *testing.T) {
	all := New(100)
	assets, search := all.Part(50), all.Part(50)
	fill := func(l *Limiter, p Priority) (cuts func() int, leaves []func()) {
		var answers []*stuck
		for l.Enter(p) {
			l.Leave()
			answers = append(answers, &stuck{})
			leave, _ := l.Admit(p, "attacker", answers[len(answers)-1])
			leaves = append(leaves, leave)
		}
		return func() (n int) {
			for _, a := range answers {
				if a.isCut {
					n++
				}
			}
			return n
		}, leaves
	}
	cutAssets, leaves := fill(assets, AnonymousRead)
	cutSearch, more := fill(search, AnonymousRead)
	admit := func(l *Limiter, p Priority, ofAssets, ofSearch int) {
		t.Helper()
		leave, ok := l.Admit(p, "other", &stuck{})
		if !ok || cutAssets() != ofAssets || cutSearch() != ofSearch {
			t.Errorf("got %t with %d and %d cut, want a place with %d and %d", ok, cutAssets(), cutSearch(), ofAssets, ofSearch)
		}
		leaves = append(leaves, leave)
	}
	admit(assets, AnonymousRead, 1, 0)
	admit(search, AnonymousRead, 1, 1)
	admit(all, AnonymousRead, 2, 1) // the gateway's own answers have no part
	for _, leave := range append(leaves, more...) {
		leave()
	}
	expect.Equal(t, all.Current()+assets.Current()+search.Current(), 0, "places taken at the end")
}
