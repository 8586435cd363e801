package ratelimit

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/ulule/limiter/v3"

	"asset-registry/shared/redistest"
	"asset-registry/shared/testing/expect"
)

// scarce makes some calls fail, as if no connection were free. It holds back the other calls until the channel
// in the field `open` is closed.
type scarce struct {
	connections
	open chan struct{}

	mu    sync.Mutex
	short int // how many of the next calls find no free connection
	calls int // number of calls that reached the server
}

func (c *scarce) take(ctx context.Context, keys []string, args [][]any) ([][]int64, error) {
	<-c.open
	c.mu.Lock()
	isShort := c.short > 0
	if isShort {
		c.short--
	} else {
		c.calls++
	}
	c.mu.Unlock()
	if isShort {
		return nil, redis.ErrPoolTimeout
	}
	return c.connections.take(ctx, keys, args)
}

// borrowerWith returns a borrower whose connections are of type scarce.
func borrowerWith(t *testing.T, fallback Fallback, short int) (*Borrower, *scarce) {
	t.Helper()
	url := redistest.Start(t, "--appendonly", "no").URL()
	s := borrowerAt(t, url, newClock(), func(c *BorrowerConfig) { c.Fallback = fallback })
	few := &scarce{connections: s.redis.connections, open: make(chan struct{}), short: short}
	s.redis.connections = few
	return s, few
}

// TestAShortageOfConnectionsIsNoOutage lets the first calls find no free connection. With each fallback the
// requests must wait and be counted, and no outage may begin.
func TestAShortageOfConnectionsIsNoOutage(t *testing.T) {
	bucket := []Bucket{{Key: Key{Name: "client"}, Cost: 1, Rates: []limiter.Rate{{Limit: 3, Period: time.Hour}}}}
	for _, fallback := range []Fallback{FallbackLocal, FallbackOpen, FallbackClosed} {
		s, few := borrowerWith(t, fallback, 3)
		close(few.open)
		expect.ErrOf(t, nil, "%s: Peek", fallback)(s.Peek(t.Context(), bucket, nil))
		for n := range 4 {
			v, err := s.Take(t.Context(), bucket, nil)
			if passes := n < 3; err != nil || (v.Wait == 0) != passes {
				t.Errorf("%s: request %d: got a wait of %v, %v; want it to pass: %v", fallback, n+1, v.Wait, err, passes)
			}
		}
		if outages := s.outages.Load(); outages != 0 || s.IsDown() || few.short != 0 {
			t.Errorf("%s: got %d outages, down %v, %d shortages left; want none", fallback, outages, s.IsDown(), few.short)
		}
	}
}

// TestACallerWhoLeavesIsNotAdmitted sends a request whose caller leaves before Redis answers.
func TestACallerWhoLeavesIsNotAdmitted(t *testing.T) {
	s, few := borrowerWith(t, FallbackLocal, 0)
	gone, leave := context.WithCancel(t.Context())
	leave()
	expect.ErrOf(t, context.Canceled, "")(s.Take(gone, bucketOf("client"), nil))
	close(few.open)
}

// TestManyWhoAskForTheSameShareOneAnswer asks for the quotas of one client again and again, while Redis has not
// answered the first call. All callers must share one answer.
func TestManyWhoAskForTheSameShareOneAnswer(t *testing.T) {
	bucket := []Bucket{
		{Key: Key{Policy: "a", Name: "client"}, Rates: []limiter.Rate{{Limit: 3, Period: time.Hour}}},
		{Key: Key{Policy: "b", Name: "client"}, Rates: []limiter.Rate{{Limit: 5, Period: time.Hour}}},
	}
	s, few := borrowerWith(t, FallbackClosed, 0)
	gone, leave := context.WithCancel(t.Context())
	leave()
	begun := time.Now()
	for range 1000 {
		if states, err := s.Peek(gone, bucket, nil); err != nil || len(states) != 2 {
			t.Fatalf("a caller that has left: got %v, %v; want two states", states, err)
		}
	}
	most := 2 + int(time.Since(begun)/peekWithin) // a call that takes longer than peekWithin is made again
	close(few.open)
	states, err := s.Peek(t.Context(), bucket, nil)
	if err != nil || len(states) != 2 || states[0].Left != 3 || states[1].Left != 5 {
		t.Errorf("got %v, %v; want 3 and 5 left", states, err)
	}
	few.mu.Lock()
	defer few.mu.Unlock()
	if few.calls > most || s.IsDown() {
		t.Errorf("got %d calls for 1000 questions, down %v; want at most %d, not down", few.calls, s.IsDown(), most)
	}
}

// waiting is a context that calls a function when somebody begins to wait for its end.
type waiting struct {
	context.Context
	begin func()
}

func (w waiting) Done() <-chan struct{} {
	w.begin()
	return w.Context.Done()
}

// TestTheAnswerForOneClientIsNotThatOfAnother asks for what a busy client and then a new client have left. The second
// question comes while Redis has not answered the first one. It must not get the answer of the first one.
func TestTheAnswerForOneClientIsNotThatOfAnother(t *testing.T) {
	s, few := borrowerWith(t, FallbackLocal, 0)
	elsewhere := direct{&Redis{connections: few.connections, timeout: time.Minute, now: s.redis.now}}
	if v, err := elsewhere.Take(t.Context(), bucketOf("busy"), nil); err != nil || v.Wait > 0 {
		t.Fatalf("got %+v, %v; want the request admitted", v, err)
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	expect.Get(s.Peek(gone, bucketOf("busy"), nil))(t)
	asked := waiting{t.Context(), sync.OnceFunc(func() { close(few.open) })}
	if states, err := s.Peek(asked, bucketOf("new"), nil); err != nil || states[0].Left != 1000 {
		t.Errorf("a new client: got %+v, %v; want 1000 left", states, err)
	}
}
