package ratelimit

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/metric/noop"

	"asset-registry/shared/fault"
	"asset-registry/shared/routes"
	"asset-registry/shared/testing/expect"
)

// wrongKeysOf returns a limiter of wrong keys. It also has a policy for other requests of the same addresses.
func wrongKeysOf(t *testing.T, store Store, now func() time.Time, cost int64, windows map[string]int64) *Limiter {
	t.Helper()
	l, err := New(store, Table{
		{Name: "r", By: ByAddress, Costs: map[Class]int64{routes.Read: 1}, Windows: map[string]int64{"1s": 1}},
		{Name: "f", By: ByAddress, Costs: map[Class]int64{Failed: cost}, Windows: windows},
	}, now, noop.NewMeterProvider().Meter(""))
	expect.OK(t, err)
	return l
}

// TestWrongKeysAreRefusedAboveTheirLimit sends wrong keys one after the other. It does not call CheckLockout between
// them, so it is the limit itself that refuses. The refusal must name the end of the lockout.
func TestWrongKeysAreRefusedAboveTheirLimit(t *testing.T) {
	guesser := netip.MustParseAddr("192.0.2.1")
	for _, c := range []struct {
		name    string
		cost    int64
		windows map[string]int64
		within  int    // number of wrong keys within the limit
		limit   string // the limit that refuses
		state   string // beginning of the value of the header StateHeader
	}{
		{"the shorter window", 1, map[string]int64{"1m": 3, "1h": 10}, 3, "3", `"f-1m";r=0;t=`},
		{"the longer window", 1, map[string]int64{"1m": 10, "1h": 3}, 3, "3", `"f-1m";r=6;t=`},
		{"a rest that is too little", 2, map[string]int64{"1m": 3}, 1, "3", `"f-1m";r=1;t=`},
	} {
		t.Run(c.name, func(t *testing.T) {
			clock := newClock()
			l := wrongKeysOf(t, NewMemory(clock.now, 0), clock.now, c.cost, c.windows)
			for n := range c.within {
				answer := http.Header{}
				if err := l.CountWrongKey(t.Context(), answer, guesser); err != nil || len(answer) > 0 {
					t.Errorf("key %d: got %v and headers %v, want neither", n+1, err, answer)
				}
			}
			answer := http.Header{}
			err := l.CountWrongKey(t.Context(), answer, guesser)
			wait := waitOf(t, err)
			if fault.KindOf(err) != fault.TooMany || answer.Get(LimitHeader) != c.limit ||
				!strings.HasPrefix(answer.Get(StateHeader), c.state) || wait < time.Second {
				t.Errorf("one more: got %v, a wait of %v and headers %v; want a refusal by a limit of %s and %s", err, wait,
					answer, c.limit, c.state)
			}
			if locked := waitOf(t, l.CheckLockout(t.Context(), guesser)); locked != wait {
				t.Errorf("got a lockout of %v, want %v as the refusal says", locked, wait)
			}
			expect.Err(t, l.CheckLockout(t.Context(), netip.MustParseAddr("192.0.2.2")), nil, "another address")
			clock.pass(wait)
			expect.Err(t, l.CheckLockout(t.Context(), guesser), nil, "after the wait")
			expect.Err(t, l.CountWrongKey(t.Context(), http.Header{}, guesser), nil, "the next wrong key")
		})
	}
}

// answering is a store that always gives the same answer.
type answering struct {
	Store
	err error
}

func (a answering) Take(context.Context, []Bucket, []State) (Verdict, error) { return Verdict{}, a.err }

func TestWrongKeysThatCannotBeCounted(t *testing.T) {
	guesser, broken := netip.MustParseAddr("192.0.2.1"), errors.New("broken")
	for _, c := range []struct {
		name string
		err  error
		kind fault.Kind
	}{
		{"nothing is counted", nil, fault.KindOf(nil)},
		{"the store is down", ErrStoreDown, fault.Unavailable},
		{"the store fails", broken, fault.Internal},
	} {
		l := wrongKeysOf(t, answering{err: c.err}, time.Now, 1, map[string]int64{"1m": 3})
		err := l.CountWrongKey(t.Context(), http.Header{}, guesser)
		if !errors.Is(err, c.err) || err != nil && fault.KindOf(err) != c.kind {
			t.Errorf("%s: got %v, want %v", c.name, err, c.err)
		}
		if err := l.CheckLockout(t.Context(), guesser); err != nil {
			t.Errorf("%s: got the lockout %v, want none", c.name, err)
		}
	}
}
