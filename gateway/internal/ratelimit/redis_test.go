package ratelimit

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/ulule/limiter/v3"

	"asset-registry/shared/telemetry"
	"asset-registry/shared/testing/expect"
)

func TestAWrongAddressNamesTheServer(t *testing.T) {
	const wrong, want = "redis+sentinel://a,b", "the limits' Redis server: "
	if err := CheckURL(wrong); err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("check: got %v, want an error that begins with %q", err, want)
	}
	if r, err := OpenRedis(wrong); r != nil || err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("open: got %v, %v; want no server and an error that begins with %q", r, err, want)
	}
}

func TestOtherClientsAndWindowsHaveOtherCounts(t *testing.T) {
	at := func(addr string) Key { return Key{Policy: "p", Addr: netip.MustParseAddr(addr)} }
	second, minute := limiter.Rate{Limit: 1, Period: time.Second}, limiter.Rate{Limit: 1, Period: time.Minute}
	buckets := []Bucket{
		{Key: Key{Policy: "p", Name: "n"}, Rates: []limiter.Rate{second}},
		{Key: Key{Policy: "p", Name: "n"}, Rates: []limiter.Rate{minute}},
		{Key: Key{Policy: "p", Name: "n"}, Rates: []limiter.Rate{second, minute}},
		{Key: Key{Policy: "p", Name: "m"}, Rates: []limiter.Rate{second}},
		{Key: Key{Policy: "q", Name: "n"}, Rates: []limiter.Rate{second}},
		{Key: at("192.0.2.1"), Rates: []limiter.Rate{second}},
		{Key: at("192.0.2.2"), Rates: []limiter.Rate{second}},
		{Key: at("2001:db8::"), Rates: []limiter.Rate{second}},
	}
	keys := map[string]bool{}
	for i := range buckets {
		keys[redisKey(&buckets[i])] = true
	}
	expect.ErrorIf(t, len(keys) != len(buckets), "got the keys %v, want %d that differ", keys, len(buckets))
}

// fixed is a Redis that always gives the same answer.
type fixed struct {
	answer []int64
	closed error
}

func (f fixed) take(context.Context, []string, [][]any) ([][]int64, error) {
	return [][]int64{f.answer}, nil
}

func (f fixed) pool() telemetry.Pool { return telemetry.Pool{} }

func (f fixed) Close() error { return f.closed }

// TestAnAnswerOfAnotherFormIsAnError reads wrong answers to a call with one rate. Each must be an error.
func TestAnAnswerOfAnotherFormIsAnError(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer []int64
		good   bool
	}{
		{"lent", []int64{1, 7, 5, 0, 2, 0}, true},
		{"refused", []int64{0, 7, 0, 9, 2, 1, 9, 1}, true},
		{"empty", nil, false},
		{"one number", []int64{1}, false},
		{"without the rate", []int64{1, 7}, false},
		{"three numbers of the rate", []int64{1, 7, 5, 0, 2}, false},
		{"a negative number of uses", []int64{1, 7, 5, 0, 2, -1}, false},
		{"refused, with a negative number of uses", []int64{0, 7, 0, 9, 2, -1}, false},
		{"fewer uses than told", []int64{0, 7, 0, 9, 2, 2, 9, 1}, false},
		{"half a use", []int64{0, 7, 0, 9, 2, 1, 9}, false},
		{"a number more", []int64{1, 7, 5, 0, 2, 0, 1}, false},
	} {
		r := &Redis{connections: fixed{answer: c.answer}, timeout: time.Minute}
		calls := callsFor([]Bucket{{Key: Key{Name: "k"}, Cost: 1, Rates: []limiter.Rate{{Limit: 9, Period: time.Hour}}}})
		if err := r.run(t.Context(), calls); (err == nil) != c.good {
			t.Errorf("%s: got %v, want an error: %t", c.name, err, !c.good)
		}
	}
	if c := (&scriptCall{}); !c.read([]int64{0, 7}) {
		t.Error("a call without a rate: got its answer refused, want it read")
	}
}

// TestTheLastTokensAreNoRefusal reads an answer that lends everything that was left, and one that lends nothing.
// Only the answer that lends nothing may make the next request wait.
func TestTheLastTokensAreNoRefusal(t *testing.T) {
	rates := []limiter.Rate{{Limit: 9, Period: time.Hour}}
	for lent, want := range map[int64]time.Duration{1: 0, 0: time.Hour} {
		c := scriptCall{rates: rates, least: 1, most: 1}
		expect.FatalIf(t, !c.read([]int64{lent, 7, 0, 0, 0, 0}), "got the answer refused, want it read")
		if wait, _ := c.shortage.wait(0, 1); wait != want {
			t.Errorf("%d lent: got a wait of %v for the next one, want %v", lent, wait, want)
		}
	}
}

func TestAnEndedCallKeepsItsCause(t *testing.T) {
	r, err := OpenRedis("redis://127.0.0.1:1")
	expect.OK(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	expect.Err(t, r.run(ctx, callsFor(bucketOf("k"))), context.Canceled, "")
	if got := r.connections.pool().Max; got <= 0 {
		t.Errorf("one server: got at most %d connections, want the bound of the client", got)
	}
	expect.Try(t, r.Close())
	cluster, err := OpenRedis("redis://127.0.0.1:1?addr=127.0.0.1:2")
	expect.OK(t, err)
	defer cluster.Close()
	expect.Equal(t, cluster.connections.pool().Max, 0, "a cluster: at most connections")
	if err := r.Close(); err == nil {
		t.Error("the second Close: got no error, want one: the client is closed")
	}
}

func TestACloseThatFailsIsTold(t *testing.T) {
	want := errors.New("the connection hangs")
	s := NewBorrower(&Redis{connections: fixed{closed: want}}, BorrowerConfig{Now: time.Now})
	expect.Err(t, s.Close(), want, "")
}

// TestAWaitIsForAsManyCostsAsMustLeave counts costs in three slots. A wait must end when enough of these costs
// have left the window.
func TestAWaitIsForAsManyCostsAsMustLeave(t *testing.T) {
	const limit, period = 3, slots * time.Second
	var w window
	for second := range int64(3) {
		w.add(second*int64(time.Second), 1, period)
	}
	now := int64(3 * time.Second)
	for cost, want := range map[int64]time.Duration{
		1: period - 2*time.Second, // the first cost leaves one period after the end of its slot; a slot lasts a second
		2: period - time.Second,
		3: period,
	} {
		expect.Equal(t, w.wait(now, cost, limit, period), want, "cost %d: a wait of", cost)
	}
	for _, used := range []window{w, {}} {
		expect.Equal(t, used.wait(now, limit+1, limit, period), period, "a cost above the limit: a wait of")
	}
}

// TestASlotHasOneMark counts several costs in one slot, one of them after the clock has stepped back. They must
// share one mark.
func TestASlotHasOneMark(t *testing.T) {
	const period = slots * time.Second
	var w window
	for i := range int64(1000) {
		w.add(int64(5*time.Second)+i, 1, period)
	}
	w.add(0, 1, period)
	if len(w.marks) != 1 || w.marks[0] != (mark{5, 1001}) || w.used != 1001 {
		t.Errorf("got the marks %v and %d used, want one mark of slot 5 with all 1,001", w.marks, w.used)
	}
	w.add(int64(6*time.Second), 1, period)
	expect.ErrorIf(t, len(w.marks) != 2, "a slot later: got the marks %v, want two", w.marks)
}
