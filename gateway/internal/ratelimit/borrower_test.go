package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/ulule/limiter/v3"
	"pgregory.net/rapid"

	"asset-registry/shared/logtest"
	"asset-registry/shared/redistest"
	"asset-registry/shared/testing/expect"
)

// borrowerAt returns a borrower at a Redis server. The argument "clock" replaces the real clock. The function
// "change" may change the configuration. Both arguments may be nil.
func borrowerAt(t testing.TB, url string, clock *simulated, change func(*BorrowerConfig)) *Borrower {
	t.Helper()
	within := callTimeout
	if clock != nil { // with a simulated clock, a busy machine must not cause a timeout
		within = time.Minute
	}
	r, err := openWithin(url, within)
	expect.OK(t, err)
	c := BorrowerConfig{Fallback: FallbackLocal, Now: time.Now, Log: slog.New(slog.DiscardHandler)}
	if clock != nil {
		r.now, c.Now = clock.now, clock.now
	}
	if change != nil {
		change(&c)
	}
	s := NewBorrower(r, c)
	s.clock.start = s.clock.start.Add(-24 * time.Hour) // as if the gateway had started long ago, so it uses its reserve
	t.Cleanup(func() { s.Close() })
	return s
}

// TestAReserveSurvivesARestart starts a gateway several times, always after its reserve was used up. No window
// may admit more than its limit.
func TestAReserveSurvivesARestart(t *testing.T) {
	clock, url := newClock(), redistest.Start(t, "--appendonly", "no").URL()
	bucket := []Bucket{{Key: Key{Name: "k"}, Cost: 1, Rates: []limiter.Rate{{Limit: 80, Period: time.Minute}}}}
	admitted := 0
	for range 10 {
		s := borrowerAt(t, url, clock, func(c *BorrowerConfig) { c.Gateways = 1 })
		s.clock.start = clock.now() // as if the gateway had just started
		for {
			v, err := s.Take(t.Context(), bucket, nil)
			expect.OK(t, err)
			if v.Wait > 0 {
				expect.ErrorIf(t, v.Wait > 2*time.Minute, "got a wait of %v, want at most two periods", v.Wait)
				break
			}
			admitted++
		}
		clock.pass(time.Second)
	}
	expect.ErrorIf(t, admitted > 80, "got %d requests admitted by 10 starts within a minute, want at most 80", admitted)
	clock.pass(3 * time.Minute)
	s := borrowerAt(t, url, clock, func(c *BorrowerConfig) { c.Gateways = 1 })
	if v, err := s.Take(t.Context(), bucket, nil); err != nil || v.Wait > 0 {
		t.Errorf("later: got %+v, %v; want it admitted", v, err)
	}
}

// TestAClockThatWasWrongLocksNobodyOut uses up part of a limit while the clock is a year ahead or behind, and
// another part while the clock is right. The whole limit must be free one window later.
func TestAClockThatWasWrongLocksNobodyOut(t *testing.T) {
	const year = 365 * 24 * time.Hour
	url := redistest.Start(t, "--appendonly", "no").URL()
	for name, wrong := range map[string]time.Duration{
		"ahead": year, "an hour ahead": time.Hour, "behind": -year, "a minute ahead": time.Minute, "a minute behind": -time.Minute,
		"a day ahead": 24 * time.Hour, "a day behind": -24 * time.Hour, "ten years ahead": 10 * year, "ten years behind": -10 * year,
	} {
		clock := newClock()
		s := borrowerAt(t, url, clock, nil)
		shift := wrong
		s.redis.now = func() time.Time { return clock.now().Add(shift) }
		rates := []limiter.Rate{{Limit: 100, Period: time.Minute}, {Limit: 1000, Period: time.Hour}}
		take := func(n int) (admitted int) {
			for range n {
				v, err := s.Take(t.Context(), []Bucket{{Key: Key{Name: name}, Cost: 1, Rates: rates}}, nil)
				expect.OK(t, err)
				if v.Wait == 0 {
					admitted++
				}
			}
			return admitted
		}
		if got := take(40); got != 40 {
			t.Fatalf("%s: by the wrong clock got %d admitted, want 40", name, got)
		}
		shift = 0
		clock.pass(15 * time.Second) // the loan has ended
		expect.Equal(t, take(40), 40, "%s: by the right clock admitted", name)
		clock.pass(time.Minute) // a clock that was up to a minute ahead is waited for
		for range 3 {
			clock.pass(90 * time.Second)
			expect.Equal(t, take(90), 90, "%s: a window later admitted", name)
		}
	}
}

// TestAnUnreadableRecordIsOneKeysOnly replaces the record of one key by values that cannot be decoded. Other
// keys must still work.
func TestAnUnreadableRecordIsOneKeysOnly(t *testing.T) {
	server := redistest.Start(t, "--appendonly", "no")
	client := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer client.Close()
	s := borrowerAt(t, server.URL(), newClock(), nil)
	rates := []limiter.Rate{{Limit: 100, Period: time.Minute}}
	bucket := func(name string) Bucket { return Bucket{Key: Key{Name: name}, Cost: 1, Rates: rates} }
	for n, put := range []func(key string) error{
		func(key string) error { return client.Set(t.Context(), key, "no msgpack \xc1", 0).Err() },
		func(key string) error { return client.Set(t.Context(), key, "", 0).Err() },
		func(key string) error { return client.Set(t.Context(), key, "\xa1x", 0).Err() },                 // a text
		func(key string) error { return client.Set(t.Context(), key, "\x81\xa5marks\x91\x01", 0).Err() }, // marks: [1]
		func(key string) error {
			return client.Set(t.Context(), key, "\x83\xa5marks\x91\x90\xa4time\xa1x\xaageneration\x01", 0).Err()
		},
		func(key string) error { return client.RPush(t.Context(), key, "a list").Err() },
	} {
		hurt, well := bucket(fmt.Sprint("hurt ", n)), bucket(fmt.Sprint("well ", n))
		expect.OK(t, put(redisKey(&hurt)))
		for _, b := range []Bucket{hurt, well} {
			v, err := s.Take(t.Context(), []Bucket{b}, nil)
			if err != nil || v.Wait > 0 || len(v.States) != 1 {
				t.Errorf("record %d, %s: got %+v, %v; want it admitted and counted", n, b.Key.Name, v, err)
			}
		}
		expect.FatalIf(t, s.IsDown(), "record %d: got Redis taken for down, want it in use", n)
	}
}

var lentRates = []limiter.Rate{{Limit: 64, Period: time.Second}, {Limit: 170, Period: 10 * time.Second}}

// TestLoansNeverLetMoreThroughInAnyWindow lets two gateways share a Redis. The size of their first loans is
// random, up to the whole limit. No window may admit more than the limit.
func TestLoansNeverLetMoreThroughInAnyWindow(t *testing.T) {
	url := redistest.Start(t, "--appendonly", "no").URL()
	for _, c := range []struct {
		name  string
		known int64
	}{{"unknown number of gateways", 0}, {"two gateways", 2}} {
		t.Run(c.name, func(t *testing.T) { testBorrower(t, url, c.known) })
	}
}

func testBorrower(t *testing.T, url string, known int64) {
	clock := newClock()
	count := func(c *BorrowerConfig) { c.Gateways = known }
	gateways := []Store{borrowerAt(t, url, clock, count), borrowerAt(t, url, clock, count)}
	n, refused := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		for _, g := range gateways {
			s := g.(*Borrower)
			e := s.table.find(&Bucket{Key: Key{Name: fmt.Sprint(known, n)}, Rates: lentRates}, 0)
			e.loan.most = rapid.Int64Range(1, lentRates[0].Limit).Draw(t, "most")
		}
		all := steps(time.Second, 60).Draw(t, "steps")
		uses := run(t, clock, fmt.Sprint(known, n), lentRates, all, gateways...)
		refused += len(all) - len(uses)
		if b := breach(uses, lentRates); b != "" {
			t.Fatal(b)
		}
	})
	expect.ErrorIf(t, refused == 0, "got no refusal, want some: without one the test proves nothing")
}

// The function `each` calls the function f n times in all, on several goroutines.
func each(goroutines, n int, f func(i int)) {
	var wg sync.WaitGroup
	var next atomic.Int64
	for range goroutines {
		wg.Go(func() {
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				f(int(i))
			}
		})
	}
	wg.Wait()
}

func TestTwoGatewaysOnOneRedisEnforceOneLimit(t *testing.T) {
	url := redistest.Start(t, "--appendonly", "no").URL()
	gateways := []*Borrower{borrowerAt(t, url, nil, nil), borrowerAt(t, url, nil, nil)}
	bucket := []Bucket{{Key: Key{Name: "k"}, Cost: 1, Rates: []limiter.Rate{{Limit: 1000, Period: time.Minute}}}}
	var passed atomic.Int64
	each(16, 4000, func(i int) {
		v, err := gateways[i%2].Take(t.Context(), bucket, nil)
		expect.Try(t, err)
		if v.Wait == 0 {
			passed.Add(1)
		}
	})
	if got := passed.Load(); got > 1000 || got < 1000-2 {
		t.Errorf("got %d requests admitted, want 998 to 1000", got)
	}
	trips := gateways[0].trips.Load() + gateways[1].trips.Load()
	t.Logf("%d round trips for 4000 requests", trips)
	expect.ErrorIf(t, trips > 200, "4000 requests: got %d round trips, want at most 200", trips)
}

// TestAGatewayKeepsToALimitThatRedisHasLost uses up a limit, and then lets Redis lose its data. The gateway must admit
// nothing more, because it has counted for itself.
func TestAGatewayKeepsToALimitThatRedisHasLost(t *testing.T) {
	server, clock := redistest.Start(t, "--appendonly", "no"), newClock()
	client := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer client.Close()
	s := borrowerAt(t, server.URL(), clock, nil)
	bucket := []Bucket{{Key: Key{Name: "k"}, Cost: 5, Rates: []limiter.Rate{{Limit: 10, Period: time.Minute}}}}
	for n := range 5 {
		expect.OK(t, client.FlushAll(t.Context()).Err())
		v, err := s.Take(t.Context(), bucket, nil)
		if err != nil || (v.Wait > 0) != (n >= 2) {
			t.Errorf("request %d: got %+v, %v; want it refused: %t", n+1, v, err, n >= 2)
		}
		clock.pass(5 * time.Second)
	}
}

// TestPeekAddsALoanToWhatRedisHas takes tokens at one gateway, and asks both gateways what is left. Tokens of a loan are
// left only for the gateway that has the loan, and only until the loan ends.
func TestPeekAddsALoanToWhatRedisHas(t *testing.T) {
	url, clock := redistest.Start(t, "--appendonly", "no").URL(), newClock()
	one, other := borrowerAt(t, url, clock, nil), borrowerAt(t, url, clock, nil)
	rates := []limiter.Rate{{Limit: 64, Period: time.Minute}, {Limit: 100, Period: time.Hour}}
	bucket := []Bucket{{Key: Key{Name: "k"}, Cost: 1, Rates: rates}}
	for range 2 { // the second loan has two tokens, of which one is left
		if v, err := one.Take(t.Context(), bucket, nil); err != nil || v.Wait > 0 {
			t.Fatalf("got %+v, %v; want the request admitted", v, err)
		}
	}
	left := func(name string, s *Borrower, want ...int64) {
		t.Helper()
		states, err := s.Peek(t.Context(), bucket, nil)
		if err != nil || states[0].Left != want[0] || states[1].Left != want[1] ||
			min(states[0].Next, states[1].Next) <= 0 {
			t.Errorf("%s: got %+v, %v; want %v left, and more later", name, states, err, want)
		}
	}
	left("during the loan", one, 62, 98)
	left("at the other gateway", other, 61, 97)
	clock.pass(longestLoan)
	left("at the end of the loan", one, 61, 97)
}

// TestCloseEndsCallsAndAllWhoWait closes a borrower while requests wait for two calls, and for a third call in the
// queue. Close must wait for the calls, and all requests must get an answer. The test is repeated, because a worker
// may see the end or the queue first.
func TestCloseEndsCallsAndAllWhoWait(t *testing.T) {
	for round := range 20 {
		synctest.Test(t, func(t *testing.T) {
			s, link := lingers(t)
			answers := make(chan error)
			for n := range workers + 1 {
				go func() {
					_, err := s.Take(t.Context(), bucketOf(fmt.Sprint(n)), nil)
					answers <- err
				}()
				synctest.Wait()
			}
			go func() {
				if err := s.Close(); err != nil || link.ended.Load() != workers {
					t.Errorf("round %d: got %v, and %d calls ended; want all ended", round, err, link.ended.Load())
				}
			}()
			for range workers + 1 {
				if err := <-answers; err != nil {
					t.Errorf("round %d: got %v, want the request decided without Redis", round, err)
				}
			}
		})
	}
}

// TestCloseAnswersAQueueLongerThanABatch closes a borrower while many requests of different keys wait for its
// calls. Each request must get an answer, although it has no deadline.
func TestCloseAnswersAQueueLongerThanABatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := lingers(t)
		var requests sync.WaitGroup
		for n := range workers + workers*maxBatch + 1 {
			requests.Go(func() { mustAdmit(t, s, fmt.Sprint(n)) })
			if n < workers {
				synctest.Wait() // each worker has a call with one key
			}
		}
		synctest.Wait()
		expect.Try(t, s.Close())
		requests.Wait()
	})
}

// TestAQueueLongerThanABatchIsEmptied lets many requests of different keys wait while Redis does not answer. When Redis
// answers, all of them must be admitted, with few calls.
func TestAQueueLongerThanABatchIsEmptied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open := make(chan struct{})
		server := &scripted{told: map[string]int64{}, before: func(string, int64) error { <-open; return nil }}
		s := NewBorrower(&Redis{connections: server, timeout: time.Hour}, BorrowerConfig{
			Fallback: FallbackClosed, Now: time.Now, Log: slog.New(slog.DiscardHandler),
		})
		var requests sync.WaitGroup
		for n := range workers + 3*maxBatch {
			requests.Go(func() { mustAdmit(t, s, fmt.Sprint(n)) })
			if n < workers {
				synctest.Wait() // each worker has a call with one key
			}
		}
		synctest.Wait()
		close(open)
		requests.Wait()
		expect.Equal(t, s.trips.Load(), workers+3, "round trips")
		expect.Try(t, s.Close())
	})
}

// TestAClosedBorrowerDecidesWithoutRedis closes a borrower that has nothing to do, and then sends a request.
func TestAClosedBorrowerDecidesWithoutRedis(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := lingers(t)
		s.wake() // a worker may wake up after another worker has taken the whole queue
		synctest.Wait()
		expect.Equal(t, s.trips.Load(), 0, "round trips without a request")
		expect.Try(t, s.Close())
		mustAdmit(t, s, "k")
		if states, err := s.Peek(t.Context(), bucketOf("k"), nil); err != nil || states[0].Left != 999 {
			t.Errorf("got %+v, %v; want 999 left", states, err)
		}
	})
}

// lingers returns a borrower whose calls end an hour after their context.
func lingers(t *testing.T) (*Borrower, *lingering) {
	link := &lingering{scripted: &scripted{}}
	s := NewBorrower(&Redis{connections: link, timeout: time.Minute}, BorrowerConfig{
		Fallback: FallbackLocal, Now: time.Now, Log: slog.New(slog.DiscardHandler),
	})
	return s, link
}

// lingering has connections whose calls end an hour after their context.
type lingering struct {
	*scripted
	ended atomic.Int64 // number of calls that have ended
}

func (l *lingering) take(ctx context.Context, _ []string, _ [][]any) ([][]int64, error) {
	<-ctx.Done()
	time.Sleep(time.Hour)
	l.ended.Add(1)
	return nil, ctx.Err()
}

// TestARefusalOfRedisNamesItsRate lets one gateway use up the last of three rates. The refusal at another gateway must
// name this rate.
func TestARefusalOfRedisNamesItsRate(t *testing.T) {
	url, clock := redistest.Start(t, "--appendonly", "no").URL(), newClock()
	one, other := borrowerAt(t, url, clock, nil), borrowerAt(t, url, clock, nil)
	tenant := Bucket{Key: Key{Name: "tenant"}, Cost: 5, Rates: []limiter.Rate{{Limit: 5, Period: time.Minute}}}
	if v, err := other.Take(t.Context(), []Bucket{tenant}, nil); err != nil || v.Wait > 0 {
		t.Fatalf("got %+v, %v; want the request admitted", v, err)
	}
	v, err := one.Take(t.Context(), []Bucket{{Key: Key{Name: "key"}, Cost: 1, Rates: twoRates}, tenant}, nil)
	if err != nil || v.Wait == 0 || v.Refused != 2 || len(v.States) != 3 || v.States[2].Left != 0 {
		t.Errorf("got %+v, %v; want a refusal by the third rate, which has nothing left", v, err)
	}
}

func TestAGatewayThatDiesTakesALittleWithIt(t *testing.T) {
	url, clock := redistest.Start(t, "--appendonly", "no").URL(), newClock()
	dies, lives := borrowerAt(t, url, clock, nil), borrowerAt(t, url, clock, nil)
	rates := []limiter.Rate{{Limit: 320, Period: time.Second}}
	bucket := []Bucket{{Key: Key{Name: "k"}, Cost: 1, Rates: rates}}
	passed := func(s *Borrower, tries int) (n int) {
		for range tries {
			if v, err := s.Take(t.Context(), bucket, nil); err != nil {
				t.Fatal(err)
			} else if v.Wait == 0 {
				n++
			}
		}
		return n
	}
	before := passed(dies, 60)
	if got := before + passed(lives, 400); got > 320 || got < 320-320/tokenPart {
		t.Errorf("got %d requests admitted, want %d to 320", got, 320-320/tokenPart)
	}
	clock.pass(2 * time.Second)
	expect.Equal(t, passed(lives, 400), 320, "a window later: requests admitted")
}

func TestRedisIsKilledAndComesBackUnderRequests(t *testing.T) {
	server := redistest.Start(t, "--appendonly", "no")
	var log logtest.Log
	s := borrowerAt(t, server.URL(), nil, func(c *BorrowerConfig) { c.Log = slog.New(slog.NewJSONHandler(&log, nil)) })
	rates := []limiter.Rate{{Limit: 300, Period: time.Second}}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var mu sync.Mutex
	var uses []use
	var slowest time.Duration
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				// Half of the requests use the same key, above its limit. Each of the others uses a new key.
				name := "k"
				if n%2 == 0 {
					name = fmt.Sprint(i, n)
				}
				start := time.Now()
				v, err := s.Take(context.WithoutCancel(ctx), []Bucket{{Key: Key{Name: name}, Cost: 1, Rates: rates}}, nil)
				took := time.Since(start)
				expect.Try(t, err)
				mu.Lock()
				slowest = max(slowest, took)
				if name == "k" && v.Wait == 0 {
					uses = append(uses, use{start.Add(took), 1})
				}
				mu.Unlock()
				time.Sleep(200 * time.Microsecond)
			}
		})
	}
	await := func(what string, n int) {
		t.Helper()
		for deadline := time.Now().Add(5 * time.Second); log.Count(what) < n; {
			if time.Now().After(deadline) {
				t.Fatalf("%q: got it %d times in the log after 5 s, want %d", what, log.Count(what), n)
			}
			time.Sleep(time.Millisecond)
		}
	}
	for i := range 3 {
		time.Sleep(300 * time.Millisecond)
		server.Kill(t)
		await("does not answer", i+1)
		time.Sleep(300 * time.Millisecond)
		server.Restart(t)
		await("answers again", i+1)
	}
	stop()
	wg.Wait()
	if entered := s.outages.Load(); entered != 3 || log.Count("does not answer") != 3 || log.Count("answers again") != 3 {
		t.Errorf("got %d outages, logged %d and %d times; want 3 each",
			entered, log.Count("does not answer"), log.Count("answers again"))
	}
	expect.ErrorIf(t, s.unaided.Load() == 0, "got no request decided without Redis, want some")
	// The test knows the time of a use only to within a few milliseconds.
	if n := most(uses, rates[0].Period-20*time.Millisecond); n > rates[0].Limit {
		t.Errorf("got %d requests admitted in a second, want at most %d", n, rates[0].Limit)
	}
	t.Logf("%d requests admitted, slowest decision %v, %d decided without Redis", len(uses), slowest, s.unaided.Load())
}

func TestWithoutRedis(t *testing.T) {
	server := redistest.Start(t)
	server.Kill(t)
	bucket := []Bucket{{Key: Key{Name: "k"}, Cost: 1, Rates: []limiter.Rate{{Limit: 10, Period: time.Minute}}}}
	for _, want := range []struct {
		mode Fallback

		passed int
		err    error
	}{
		{FallbackLocal, 5, nil}, // half of the limit, because there are two gateways
		{FallbackOpen, 20, nil},
		{FallbackClosed, 0, ErrStoreDown},
	} {
		t.Run(string(want.mode), func(t *testing.T) {
			s := borrowerAt(t, server.URL(), nil, func(c *BorrowerConfig) { c.Fallback, c.Gateways = want.mode, 2 })
			passed := 0
			for range 20 {
				v, err := s.Take(t.Context(), bucket, nil)
				expect.Err(t, err, want.err, "")
				if err == nil && v.Wait == 0 {
					passed++
				}
			}
			expect.Equal(t, passed, want.passed, "requests admitted")
		})
	}
}

// TestARefusalWithoutRedisCountsNothing uses up a limit while Redis is down, and is then refused. When the use has left
// the window, the whole limit must be free.
func TestARefusalWithoutRedisCountsNothing(t *testing.T) {
	clock := newClock()
	s, _, _ := outage(t, FallbackLocal, clock.now, func(string, int64) error { return errors.New("Redis is away") })
	bucket := bucketOf("k")
	bucket[0].Cost = bucket[0].Rates[0].Limit
	for n, refused := range []bool{false, true, false} {
		v, err := s.Take(t.Context(), bucket, nil)
		if err != nil || (v.Wait > 0) != refused {
			t.Errorf("request %d: got %+v, %v; want it refused: %t", n+1, v, err, refused)
		}
		clock.pass(35 * time.Minute)
	}
}

// TestPeekWithoutRedisShowsTheShare asks for what is left while Redis is down, and again when it is back. One of two
// gateways has half of the limit without Redis.
func TestPeekWithoutRedisShowsTheShare(t *testing.T) {
	server := redistest.Start(t)
	server.Kill(t)
	s := borrowerAt(t, server.URL(), newClock(), func(c *BorrowerConfig) { c.Gateways = 2 })
	bucket := []Bucket{{Key: Key{Name: "k"}, Cost: 1, Rates: []limiter.Rate{{Limit: 10, Period: time.Minute}}}}
	left := func(want int64) {
		t.Helper()
		if states, err := s.Peek(t.Context(), bucket, nil); err != nil || len(states) != 1 || states[0].Left != want {
			t.Errorf("got %+v, %v; want %d left", states, err, want)
		}
	}
	for range 3 {
		left(5)
	}
	expect.Equal(t, s.trips.Load(), 1, "round trips")
	server.Restart(t)
	await(t, "Redis is back", isUp(s))
	left(10)
}

func TestAHungRedisHoldsUpOneRoundOfRequests(t *testing.T) {
	server := redistest.Start(t)
	s := borrowerAt(t, server.URL(), nil, nil)
	take := func(i int) {
		bucket := []Bucket{{Key: Key{Name: fmt.Sprint(i)}, Cost: 1, Rates: twoRates}}
		expect.ErrOf(t, nil, "")(s.Take(t.Context(), bucket, nil))
	}
	take(0)
	await(t, "Redis is up", isUp(s)) // on a busy machine, the answer to the first request may have come too late
	before := s.unaided.Load()
	server.Hang(t)
	take(1) // waits until the call times out
	trips := s.trips.Load()
	for i := range 100 {
		take(2 + i)
	}
	if more, alone := s.trips.Load()-trips, s.unaided.Load()-before; more != 0 || alone != 101 {
		t.Errorf("got %d round trips, and %d requests decided without Redis; want 0 and 101", more, alone)
	}
}

func TestWhoComesNowAndThenCostsNoRoundTrips(t *testing.T) {
	clock := newClock()
	s := borrowerAt(t, redistest.Start(t, "--appendonly", "no").URL(), clock, func(c *BorrowerConfig) { c.Gateways = 4 })
	rates := []limiter.Rate{{Limit: 100, Period: time.Second}, {Limit: 3000, Period: time.Minute}}
	for i := range 1000 {
		clock.pass(time.Second)
		bucket := []Bucket{{Key: Key{Name: fmt.Sprint(i % 10)}, Cost: 1, Rates: rates}}
		if v, err := s.Take(t.Context(), bucket, nil); err != nil || v.Wait > 0 {
			t.Fatalf("request %d: got %+v, %v; want it admitted", i, v, err)
		}
	}
	if got := s.trips.Load(); got > 0 {
		t.Errorf("got %d round trips, want none", got)
	}
}

func TestOneGatewayHasAllOfWhatItKeepsAndBorrows(t *testing.T) {
	s := borrowerAt(t, redistest.Start(t, "--appendonly", "no").URL(), newClock(), func(c *BorrowerConfig) { c.Gateways = 1 })
	bucket := []Bucket{{Key: Key{Name: "k"}, Cost: 1, Rates: []limiter.Rate{{Limit: 100, Period: time.Second}}}}
	for i := range 120 {
		v, err := s.Take(t.Context(), bucket, nil)
		if err != nil || v.States[0].Left != max(0, int64(99-i)) || (v.Wait > 0) != (i >= 100) {
			t.Fatalf("request %d: got %+v, %v; want %d left, refused: %t", i, v, err, max(0, 99-i), i >= 100)
		}
	}
}
