package ratelimit

import (
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/ulule/limiter/v3"
	"go.opentelemetry.io/otel/metric/noop"

	"asset-registry/shared/fault"
	"asset-registry/shared/identity"
	"asset-registry/shared/redistest"
	"asset-registry/shared/routes"
	"asset-registry/shared/testing/expect"
)

// bytesTable lets a tenant write 10,000 bytes a minute and 50,000 bytes an hour. Each write counts as 100 bytes
// more than its body has.
var bytesTable = Table{
	{Name: "b", By: ByTenant, Costs: map[Class]int64{routes.Write: 100, Bytes: 1},
		Windows: map[string]int64{"1m": 10_000, "1h": 50_000}},
	{Name: "k", By: ByKey, Costs: map[Class]int64{routes.Write: 1}, Windows: map[string]int64{"1s": 10_000}},
}

// member returns a client that uses a key of a broker.
func member(broker, key string) Client {
	return Client{
		Addr:     netip.MustParseAddr("192.0.2.1"),
		Identity: identity.Identity{Broker: broker, KeyID: key, Role: identity.Broker},
	}
}

// clocked returns three stores with a simulated clock: one in memory, one in Redis, and one in Redis for a
// gateway that shares the limits with a second gateway.
func clocked(t *testing.T, clock *simulated) map[string]Store {
	one, two := redistest.Start(t, "--appendonly", "no").URL(), redistest.Start(t, "--appendonly", "no").URL()
	return map[string]Store{
		"memory":              NewMemory(clock.now, 0),
		"Redis":               borrowerAt(t, one, clock, nil),
		"Redis of 2 gateways": borrowerAt(t, two, clock, func(c *BorrowerConfig) { c.Gateways = 2 }),
	}
}

// waitOf returns how long a refusal says to wait, in whole seconds; 0 if err is nil.
func waitOf(t *testing.T, err error) time.Duration {
	t.Helper()
	if err == nil {
		return 0
	}
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Kind != fault.TooMany || f.RetryAfter <= 0 {
		t.Fatalf("got %v, want a refusal with a time to wait", err)
	}
	return time.Duration(seconds(f.RetryAfter)) * time.Second
}

func TestABrokersKeysShareItsBytes(t *testing.T) {
	clock := newClock()
	for name, store := range clocked(t, clock) {
		t.Run(name, func(t *testing.T) {
			l := New(store, bytesTable, clock.now, noop.NewMeterProvider().Meter(""))
			write := func(broker, key string, body int64) time.Duration {
				return waitOf(t, l.Admit(t.Context(), http.Header{}, Request{routes.Write, member(broker, key), body}))
			}
			written, refused := int64(0), time.Duration(0)
			for i := 0; refused == 0; i++ {
				body := int64(i%7) * 150
				if refused = write("one", []string{"first", "second"}[i%2], body); refused == 0 {
					written += 100 + body
				}
			}
			if written > 10_000 || written < 10_000-10_000/reservePart-1000 {
				t.Errorf("got %d bytes admitted before the first refusal, want %d to 10000",
					written, 10_000-10_000/reservePart-1000)
			}
			if got := write("two", "other", 900); got > 0 {
				t.Errorf("another broker: got a wait of %v, want none", got)
			}
			if got := write("one", "third", 1000); got < 50*time.Second || got > 75*time.Second {
				t.Errorf("the broker's third key: got a wait of %v, want 50 s to 75 s", got)
			} else {
				clock.pass(got)
			}
			if got := write("one", "third", 1000); got > 0 {
				t.Errorf("after the wait: got a wait of %v more, want none", got)
			}
		})
	}
}

func TestAWriteThatIsRefusedTakesNoBytes(t *testing.T) {
	clock := newClock()
	for name, store := range clocked(t, clock) {
		t.Run(name, func(t *testing.T) {
			l := New(store, bytesTable, clock.now, noop.NewMeterProvider().Meter(""))
			admit := func(body int64) error {
				return l.Admit(t.Context(), http.Header{}, Request{routes.Write, member("one", "first"), body})
			}
			expect.OK(t, admit(8000))
			for range 50 {
				expect.FatalIf(t, admit(3000) == nil, "got 11200 bytes admitted, want at most 10000")
			}
			expect.Err(t, admit(500), nil, "a write that fits")
		})
	}
}

// TestARefusalTellsEachCostItsWait uses up most of a limit at one gateway. At another gateway, the refusals of
// several costs must name the right wait for each cost, after only one round trip to Redis.
func TestARefusalTellsEachCostItsWait(t *testing.T) {
	clock := newClock()
	url := redistest.Start(t, "--appendonly", "no").URL()
	asked, other := borrowerAt(t, url, clock, nil), borrowerAt(t, url, clock, nil)
	take := func(s Store, cost int64) time.Duration {
		rates := []limiter.Rate{{Limit: 100, Period: time.Minute}}
		v, err := s.Take(t.Context(), []Bucket{{Key: Key{Name: "k"}, Cost: cost, Rates: rates}}, nil)
		expect.OK(t, err)
		return v.Wait
	}
	for range 3 {
		if wait := take(other, 30); wait > 0 {
			t.Fatalf("a cost of 30: got a wait of %v, want none", wait)
		}
		clock.pass(15 * time.Second)
	}
	// At 45 s, 10 tokens are left. The tokens used at 0 s and 15 s are free again after a minute. The tokens
	// used at 30 s are free a minute after the end of their loan. A loan lasts 10 s. Each token may be free one
	// slot later.
	before := asked.trips.Load()
	for _, c := range []struct {
		cost int64
		want time.Duration
	}{{20, 15 * time.Second}, {60, 30 * time.Second}, {100, 55 * time.Second}} {
		if wait := take(asked, c.cost); wait < c.want || wait > c.want+2*time.Second {
			t.Errorf("a cost of %d: got a wait of %v, want %v or a slot more", c.cost, wait, c.want)
		}
	}
	expect.Equal(t, asked.trips.Load()-before, 1, "round trips for three refusals")
	if wait := take(asked, 10); wait > 0 {
		t.Errorf("a cost of 10, which is left: got a wait of %v, want none", wait)
	}
}

func TestHeadersTellOfBytes(t *testing.T) {
	clock := newClock()
	l := New(NewMemory(clock.now, 0), bytesTable, clock.now, noop.NewMeterProvider().Meter(""))
	answer := http.Header{}
	admit := func(class Class, body int64) error {
		return l.Admit(t.Context(), answer, Request{class, member("one", "first"), body})
	}
	told := func(policy, state, limit string) {
		t.Helper()
		expect.Equal(t, answer.Get(PolicyHeader), policy, "RateLimit-Policy")
		expect.Equal(t, answer.Get(StateHeader), state, "RateLimit")
		expect.Equal(t, answer.Get(LimitHeader), limit, "X-RateLimit-Limit")
	}
	policy := `"k-1s";q=10000;w=1, "b-1m";q=10000;qu="content-bytes";w=60, "b-1h";q=50000;qu="content-bytes";w=3600`
	expect.OK(t, admit(routes.Write, 5000))
	told(policy, `"k-1s";r=9999;t=2, "b-1m";r=4900;t=62, "b-1h";r=44900;t=3713`, "10000")
	if err := admit(Bytes, 4000); err != nil { // a second part of the same request's body
		t.Fatal(err)
	}
	told(policy, `"k-1s";r=9999;t=2, "b-1m";r=900;t=62, "b-1h";r=40900;t=3713`, "10000")
	answer = http.Header{}
	if err := admit(routes.Write, 2000); err == nil || !strings.Contains(err.Error(), "bytes written: b-1m allows 10000") {
		t.Errorf("got %v, want the bytes and their limit in it", err)
	}
	told(policy, `"k-1s";r=9999;t=2, "b-1m";r=900;t=62, "b-1h";r=40900;t=3713`, "10000")
	quotas, err := l.Quotas(t.Context(), http.Header{}, member("one", "second"))
	expect.OK(t, err)
	if len(quotas) != 3 || quotas[1].Policy != "b" || quotas[1].Left != 900 || quotas[1].Costs[Bytes] != 1 {
		t.Errorf("got %+v, want 3 quotas, the second with 900 bytes left", quotas)
	}
}

// TestBytesOfFilesAreCountedBesideTheWrite counts an upload in two pieces. The bytes must count for the policy
// about files, and not as bytes of writes.
func TestBytesOfFilesAreCountedBesideTheWrite(t *testing.T) {
	clock := newClock()
	table := append(Table{{Name: "f", By: ByTenant, Costs: map[Class]int64{FileBytes: 1},
		Windows: map[string]int64{"1h": 10_000}}}, bytesTable...)
	for name, store := range clocked(t, clock) {
		t.Run(name, func(t *testing.T) {
			l := New(store, table, clock.now, noop.NewMeterProvider().Meter(""))
			answer := http.Header{}
			admit := func(broker string, class Class, body int64) error {
				return l.Admit(t.Context(), answer, Request{class, member(broker, "first"), body})
			}
			for _, one := range []Request{{Class: routes.Write}, {Class: FileBytes, Body: 4000}, {Class: FileBytes, Body: 4000}} {
				expect.OK(t, admit("one", one.Class, one.Body))
			}
			const units = `;qu="content-bytes";w=`
			want := `"k-1s";q=10000;w=1, "b-1m";q=10000` + units + `60, "b-1h";q=50000` + units + `3600, "f-1h";q=10000` + units + `3600`
			expect.Equal(t, answer.Get(PolicyHeader), want, "RateLimit-Policy")
			if got := answer.Get(StateHeader); strings.Count(got, `"f-1h";r=`) != 1 || !strings.Contains(got, `"b-1m";r=9900;`) {
				t.Errorf("RateLimit: got %s, want f-1h once, and 9900 of b-1m left", got)
			}
			if got := answer.Get(LimitHeader); got != "10000" || answer.Get(RemainingHeader) != "9999" {
				t.Errorf("X-RateLimit: got %s and %s left, want the 10000 and 9999 of k", got, answer.Get(RemainingHeader))
			}
			if err := admit("one", FileBytes, 4000); err == nil || !strings.Contains(err.Error(), "f-1h allows 10000") {
				t.Errorf("got %v, want a refusal by f-1h", err)
			} else if wait := waitOf(t, err); wait < 59*time.Minute || wait > 75*time.Minute {
				t.Errorf("got a wait of %v, want about an hour", wait)
			}
			expect.Err(t, admit("two", FileBytes, 4000), nil, "another broker")
		})
	}
}

// TestALockoutLastsAsLongAsItsLongestWindow exceeds both windows of a limit at the same time. Here the lockout
// by the shorter window ends last, and the address must stay locked out until then.
func TestALockoutLastsAsLongAsItsLongestWindow(t *testing.T) {
	clock := newClock()
	table := Table{{
		Name: "f", By: ByAddress, Costs: map[Class]int64{Failed: 1}, Windows: map[string]int64{"1m": 3, "1h": 4},
	}}
	l := New(NewMemory(clock.now, 0), table, clock.now, noop.NewMeterProvider().Meter(""))
	guesser := netip.MustParseAddr("192.0.2.1")
	fail := func() {
		t.Helper()
		expect.Must(t, l.CountWrongKey(t.Context(), http.Header{}, guesser), "within the limit")
	}
	fail()
	clock.pass(time.Hour + time.Duration(slotWidth(time.Hour)) - 10*time.Second)
	for range 3 {
		fail()
	}
	wait := waitOf(t, l.CheckLockout(t.Context(), guesser))
	expect.ErrorIf(t, wait < time.Minute, "got a wait of %v, want at least a minute", wait)
	clock.pass(wait - time.Second)
	if l.CheckLockout(t.Context(), guesser) == nil {
		t.Errorf("a second before the end of %v: got no error, want a refusal", wait)
	}
	clock.pass(time.Second)
	expect.Err(t, l.CheckLockout(t.Context(), guesser), nil, "after the wait")
}
