package ratelimit

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/ulule/limiter/v3"

	"asset-registry/shared/redistest"
	"asset-registry/shared/testing/expect"
)

const second = int64(time.Second)

// TestALoanAndARefusalEnd asks at the last moment before their ends, and at their ends. A loan or a refusal may have an
// effect only before its end.
func TestALoanAndARefusalEnd(t *testing.T) {
	l := loan{left: 4, until: 10 * second}
	for _, c := range []struct {
		now, cost int64
		want      bool
	}{{10*second - 1, 4, true}, {10*second - 1, 5, false}, {10 * second, 4, false}} {
		expect.Equal(t, l.has(c.now, c.cost), c.want, "tokens for %d at %d", c.cost, c.now)
	}
	short := rateShortage{left: 1, period: time.Minute, uses: []int64{30_000_000, 5}}
	l.refusal = refusal{at: second, until: 2 * second, shortage: shortage{short, short}}
	for _, c := range []struct {
		now, cost int64
		want      time.Duration
	}{{second, 1, 0}, {second, 2, 30 * time.Second}, {2*second - second/2, 2, 29*time.Second + time.Second/2},
		{second, 7, time.Minute}, {2 * second, 2, 0}} {
		if got, rate := l.wait(c.now, c.cost); got != c.want || rate != 0 {
			t.Errorf("a cost of %d at %d: got a wait of %v by rate %d, want %v by the first", c.cost, c.now, got, rate, c.want)
		}
	}
}

// TestALoanIsIdleOnceItTellsNothing has a loan for each reason to keep an entry. The entry may be dropped only if
// there is no such reason.
func TestALoanIsIdleOnceItTellsNothing(t *testing.T) {
	for _, c := range []struct {
		name string
		l    loan
		want bool
	}{
		{"nothing", loan{}, true},
		{"a call under way", loan{renewal: &renewal{}}, false},
		{"a loan", loan{until: 101}, false},
		{"a loan that has ended", loan{until: 100}, true},
		{"a refusal", loan{refusal: refusal{until: 101}}, false},
		{"a refusal that has ended", loan{refusal: refusal{until: 100}}, true},
		{"use that Redis does not know", loan{unreported: 1, unreportedUntil: 101}, false},
		{"use that has left every window", loan{unreported: 1, unreportedUntil: 100}, true},
		{"use that was told", loan{unreportedUntil: 101}, true},
	} {
		expect.Equal(t, c.l.idle(100), c.want, "%s: idle", c.name)
	}
}

// TestTheStateOfALoanIsThatOfRedisAndItsOwn asks for what is left while a loan lasts, and afterwards. Tokens of
// the loan must count only while it lasts.
func TestTheStateOfALoanIsThatOfRedisAndItsOwn(t *testing.T) {
	l := loan{left: 4, until: 10 * second, known: []State{{Left: 50, Next: 30 * time.Second}}}
	for _, c := range []struct {
		name      string
		at        int64
		rate      int
		left      int64 // tokens that are left, as this gateway has counted
		want      int64
		wantsNext time.Duration
	}{
		{"during the loan", 5 * second, 0, 90, 50 + 7 + 4, 25 * time.Second},
		{"at its end", 10 * second, 0, 90, 50 + 7, 20 * time.Second},
		{"this gateway has admitted more", 5 * second, 0, 20, 20, 25 * time.Second},
		{"Redis's time is over", 30 * second, 0, 90, 57, 3 * time.Second},
		{"long after it", 40 * second, 0, 90, 57, 3 * time.Second},
		{"a rate that Redis has told nothing of", 5 * second, 1, 90, 90, 3 * time.Second},
	} {
		got := l.state(c.at, c.rate, 7, State{Left: c.left, Next: 3 * time.Second})
		if got.Left != c.want || got.Next != c.wantsNext {
			t.Errorf("%s: got %d left and more in %v, want %d and %v", c.name, got.Left, got.Next, c.want, c.wantsNext)
		}
	}
}

// TestALoanFollowsWhatIsUsed asks for a new loan. The new loan must be larger than the loan before it only if that
// earlier loan was used up early.
func TestALoanFollowsWhatIsUsed(t *testing.T) {
	rates := []limiter.Rate{{Limit: 1600, Period: time.Minute}}
	given := grant{tokens: 20}
	type call struct{ Most, Settled, Used, Unreported int64 }
	for _, c := range []struct {
		name      string
		l         loan
		now, cost int64
		want      call
	}{
		{"no loan before", loan{most: 9}, 5 * second, 1, call{Most: 9}},
		{"used up early", loan{grant: given, until: 10 * second, most: 20}, 10*second - 1, 1,
			call{Most: 40, Settled: 20, Used: 20}},
		{"above the most", loan{grant: grant{tokens: 90}, until: 10 * second}, second, 1,
			call{Most: 100, Settled: 90, Used: 90}},
		{"a part was used until its end", loan{grant: given, left: 5, until: 10 * second, most: 20}, 10 * second, 1,
			call{Most: 15, Settled: 20, Used: 15}},
		{"nothing was used", loan{grant: given, left: 20, until: 10 * second, most: 20}, 11 * second, 1,
			call{Most: 1, Settled: 20}},
		{"a cost above it", loan{most: 9}, 5 * second, 12, call{Most: 12}},
		{"a report only", loan{grant: given, left: 5, until: 10 * second}, 5 * second, 0, call{Settled: 20, Used: 15}},
		{"the tokens are in a window", loan{grant: given, left: 5, until: 10 * second}, 70*second - 1, 1,
			call{Most: 15, Settled: 20, Used: 15}},
		{"the tokens have left it", loan{grant: given, left: 5, until: 10 * second}, 70 * second, 1, call{Most: 15}},
		{"use that Redis does not know", loan{unreported: 3, unreportedUntil: 60 * second}, 60*second - 1, 1,
			call{Most: 1, Unreported: 3}},
		{"use that has left every window", loan{unreported: 3, unreportedUntil: 60 * second}, 60 * second, 1, call{Most: 1}},
	} {
		e := &entry{rates: rates, loan: c.l}
		r := e.renew(c.now, "key", c.cost, 1)
		expect.NoDiff(t, cmp.Diff(c.want, call{r.most, r.settle.tokens, r.used, r.unreported}), "%s: the call", c.name)
		if l := &e.loan; l.tokens != 0 || l.left != 0 || l.until != 0 || l.unreported != 0 || l.renewal != r {
			t.Errorf("%s: got a loan of %d, %d left until %d, %d untold; want nothing before the answer", c.name,
				l.tokens, l.left, l.until, l.unreported)
		}
	}
}

// TestALoanIsASmallPartOfEachLimit asks for a new loan after a large one. The new loan must have at most a sixteenth of
// the lowest limit, in whatever order the limits stand.
func TestALoanIsASmallPartOfEachLimit(t *testing.T) {
	low, high := limiter.Rate{Limit: 160, Period: time.Hour}, limiter.Rate{Limit: 1600, Period: time.Minute}
	for _, rates := range [][]limiter.Rate{{low, high}, {high, low}} {
		e := &entry{rates: rates, loan: loan{grant: grant{tokens: 90}, until: 10 * second}}
		expect.Equal(t, e.renew(second, "key", 1, 1).most, 10, "limits %v: a loan of at most", rates)
	}
}

// TestTheAnswerOfRedisIsTheStateThatIsShown reads an answer of Redis with a grant. According to the answer, other
// gateways have used a part of the limit. The state must not have more left than the answer.
func TestTheAnswerOfRedisIsTheStateThatIsShown(t *testing.T) {
	e := &entry{rates: []limiter.Rate{{Limit: 100, Period: time.Minute}}}
	r := e.renew(second, "key", 1, 2)
	r.granted, r.states = grant{tokens: 4}, []State{{Left: 30, Next: 20 * time.Second}}
	r.finish(2*second, nil)
	got := e.loan.state(3*second, 0, 0, State{Left: 99})
	if got.Left != 34 || got.Next != 19*time.Second {
		t.Errorf("got %d left and more in %v, want 34 and 19s", got.Left, got.Next)
	}
}

// TestAGrantKeepsTheRefusalBeforeIt asks for more than another gateway has left, then for what is left, and then for
// too much again. The last request must be refused without a round trip, because Redis has just refused it.
func TestAGrantKeepsTheRefusalBeforeIt(t *testing.T) {
	url, clock := redistest.Start(t, "--appendonly", "no").URL(), newClock()
	one, other := borrowerAt(t, url, clock, nil), borrowerAt(t, url, clock, nil)
	for n, c := range []struct {
		gateway *Borrower
		cost    int64
		refused bool
		trips   int64 // round trips of this gateway until then
	}{{other, 8, false, 1}, {one, 3, true, 1}, {one, 1, false, 2}, {one, 3, true, 2}} {
		rates := []limiter.Rate{{Limit: 10, Period: time.Minute}}
		v, err := c.gateway.Take(t.Context(), []Bucket{{Key: Key{Name: "k"}, Cost: c.cost, Rates: rates}}, nil)
		if trips := c.gateway.trips.Load(); err != nil || (v.Wait > 0) != c.refused || trips != c.trips {
			t.Errorf("request %d: got a wait of %v and %d round trips, %v; want it refused: %t, and %d round trips", n+1,
				v.Wait, trips, err, c.refused, c.trips)
		}
	}
}

// TestAHalfReadStateIsNone reads the states of two buckets. Redis answers for one of them only. There must be no
// result, because the state of one bucket would count for the other.
func TestAHalfReadStateIsNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Borrower{queued: make(chan struct{}, 1)}
		rates := []limiter.Rate{{Limit: 100, Period: time.Minute}}
		read := make(chan []State)
		go func() {
			read <- s.read(t.Context(), []Bucket{{Key: Key{Name: "a"}, Rates: rates}, {Key: Key{Name: "b"}, Rates: rates}})
		}()
		synctest.Wait()
		readings := s.dequeue()
		readings[0].states = []State{{Left: 30}}
		readings[0].finish(0, nil)
		readings[1].finish(0, ErrStoreDown)
		if got := <-read; got != nil {
			t.Errorf("got %v, want no states", got)
		}
	})
}
