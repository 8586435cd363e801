package apikey

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"asset-registry/shared/authapi"
	"asset-registry/shared/fault"
	"asset-registry/shared/identity"
	"asset-registry/shared/keyring"
	"asset-registry/shared/testing/expect"
)

// basic returns the Authorization header of the Basic scheme for a user name and password.
func basic(text string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte(text)) }

func TestHash(t *testing.T) {
	for _, c := range []struct{ name, header string }{
		{"an empty password", basic("key:")},
		{"a password", basic("key:word:x")},
		{"no colon", basic("key")},
		{"no padding", strings.TrimRight(basic("key:"), "=")},
		{"a scheme in capitals", strings.Replace(basic("key:"), "Basic", "BASIC", 1)},
		{"blanks", " " + strings.Replace(basic("key:"), " ", "   ", 1) + " "},
		{"the Bearer scheme", "Bearer key"},
		{"the longest header", "Bearer" + strings.Repeat(" ", maxHeader-len("Bearerkey")) + "key"},
	} {
		want := authapi.Hash("key")
		expect.Value(t, want, "%s", c.name)(Hash(http.Header{"Authorization": {c.header}}))
	}
}

func TestASeedTakesTheKeyTheNameAndTheSecrets(t *testing.T) {
	seed := func(authorization, name string, secrets ...string) string {
		t.Helper()
		var ring keyring.Ring
		for _, secret := range secrets {
			ring = append(ring, []byte(secret))
		}
		got, err := Seeds(http.Header{"Authorization": {authorization}}, name, ring)
		if err != nil || len(got) != 65*len(secrets)-1 {
			t.Fatalf("got %s, %v; want %d seeds", got, err, len(secrets))
		}
		return got
	}
	want := seed(basic("key:"), "name", "secret")
	for _, c := range []struct{ name, same string }{
		{"a second time", seed(basic("key:"), "name", "secret")},
		{"a password", seed(basic("key:word"), "name", "secret")},
		{"the Bearer scheme", seed("Bearer key", "name", "secret")},
	} {
		expect.ErrorIf(t, c.same != want, "%s: got the seed %s, want the same, %s", c.name, c.same, want)
	}
	for _, c := range []struct{ name, other string }{
		{"another key", seed(basic("key2:"), "name", "secret")},
		{"another name", seed(basic("key:"), "name2", "secret")},
		{"another secret", seed(basic("key:"), "name", "secret2")},
	} {
		expect.ErrorIf(t, c.other == want, "%s: got the same seed, %s, want another", c.name, want)
	}
	want += "," + seed(basic("key:"), "name", "new")
	expect.Equal(t, seed(basic("key"), "name", "secret", "new"), want, "two secrets")
	got, err := Seeds(http.Header{}, "name", keyring.Ring{[]byte("secret")})
	if fault.KindOf(err) != fault.Unauthorized || got != "" {
		t.Errorf("no key: got %s, %v; want no seed and kind Unauthorized", got, err)
	}
}

func TestHashRefuses(t *testing.T) {
	for _, c := range []struct {
		name   string
		values []string
		says   string
	}{
		{"no header", nil, "API key is needed"},
		{"two headers", []string{basic("key:"), basic("key:")}, "more than once"},
		{"a header that is too long", []string{basic(strings.Repeat("k", 2000))}, "too long"},
		{"an empty header", []string{""}, "scheme"},
		{"malformed Base64", []string{"Basic ???"}, "Base64"},
		{"an empty key", []string{basic(":hunter2")}, "empty"},
		{"a scheme without a key", []string{"Bearer"}, "empty"},
		{"an unknown scheme", []string{"Digest key"}, "scheme"},
		{"a key without a scheme", []string{"key"}, "scheme"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Hash(http.Header{"Authorization": c.values})
			if fault.KindOf(err) != fault.Unauthorized || !strings.Contains(err.Error(), c.says) ||
				strings.Contains(err.Error(), "hunter2") {
				t.Errorf("got %v, want kind Unauthorized with %q, without the password", err, c.says)
			}
		})
	}
}

func FuzzAuthorization(f *testing.F) {
	for _, seed := range []string{
		basic("key:"), basic(":"), "Bearer key", "Basic", "Basic =", "basic\tx", "", "Basic " + strings.Repeat("A", 2000),
		"\x00",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, header string) {
		hash, err := Hash(http.Header{"Authorization": {header}})
		if err != nil && fault.KindOf(err) != fault.Unauthorized || err == nil && len(hash) != 64 {
			t.Fatalf("%q: got %q, %v; want 64 characters or kind Unauthorized", header, hash, err)
		}
		if err == nil && hash == authapi.Hash("") {
			t.Fatalf("%q: got the hash of an empty key, want an error", header)
		}
	})
}

// fake is a Verifier that counts its calls. A test can delay its answers and make them fail.
type fake struct {
	asked atomic.Int64
	begun chan struct{} // if hold is set, receives a value at each call
	hold  chan struct{} // each answer is delayed until this channel is closed; nil: no delay
	err   error

	goodFor time.Duration
}

func (f *fake) VerifyKey(_ context.Context, hash string) (authapi.Key, error) {
	f.asked.Add(1)
	if f.hold != nil {
		f.begun <- struct{}{}
		<-f.hold
	}
	of := identity.Identity{Broker: "of " + hash, KeyID: "id of " + hash}
	return authapi.Key{Identity: of, GoodFor: f.goodFor}, f.err
}

// watched returns a cache that may trust its entries for the next 1000 hours.
func watched(from Verifier, ttl time.Duration, now func() time.Time) *Cache {
	c := Cached(from, ttl, now, 1<<30)
	c.Confirm(now().Add(1000 * time.Hour))
	return c
}

func TestCacheAsksOnceWithinItsTime(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		want int64 // number of calls of the Verifier for two requests within the TTL

	}{
		{"a known key", nil, 1},
		{"an unknown key", fault.New(fault.Unauthorized, fault.Header, "Authorization", "no"), 1},
		{"an unavailable service", fault.New(fault.Unavailable, fault.URL, "x", "down"), 2},
		{"an internal error", errors.New("broken"), 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			now := time.Unix(0, 0)
			from := &fake{err: c.err}
			cache := watched(from, time.Second, func() time.Time { return now })
			for range 2 {
				if got, err := cache.VerifyKey(t.Context(), "h"); err != c.err || err == nil && got.Broker != "of h" {
					t.Errorf("got %+v, %v; want the key of h, %v", got, err, c.err)
				}
			}
			expect.Equal(t, from.asked.Load(), c.want, "calls")
			now = now.Add(time.Second)
			cache.VerifyKey(t.Context(), "h")
			expect.Equal(t, from.asked.Load(), c.want+1, "after the TTL: calls")
		})
	}
}

func TestCacheAsksOnceForManyAtOnce(t *testing.T) {
	from := &fake{begun: make(chan struct{}), hold: make(chan struct{})}
	cache := watched(from, time.Second, time.Now)
	impatient, leave := context.WithCancel(t.Context())
	first := make(chan error)
	go func() {
		_, err := cache.VerifyKey(impatient, "h")
		first <- err
	}()
	<-from.begun
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if got, err := cache.VerifyKey(t.Context(), "h"); err != nil || got.Broker != "of h" {
				t.Errorf("got %+v, %v; want the key of h", got, err)
			}
		})
	}
	leave()
	expect.Err(t, <-first, context.Canceled, "a cancelled request")
	close(from.hold)
	wg.Wait()
	expect.Equal(t, from.asked.Load(), 1, "calls")
}

func TestCacheIsBounded(t *testing.T) {
	cache := watched(&fake{}, time.Minute, time.Now)
	for i := range 2*maxEntries + 1 {
		expect.Get(cache.VerifyKey(t.Context(), fmt.Sprint(i)))(t)
		if got := len(cache.entries); got > maxEntries {
			t.Fatalf("got %d entries, want at most %d", got, maxEntries)
		}
	}
}

// TestWrongKeysDropNoRightKey fills a small cache with wrong keys. The right key must stay, and the cache keep its size.
func TestWrongKeysDropNoRightKey(t *testing.T) {
	from, now := &fake{}, time.Unix(0, 0)
	cache := Cached(from, time.Hour, func() time.Time { return now }, 8*entryBytes)
	expect.Get(cache.VerifyKey(t.Context(), "right"))(t)
	from.err = fault.New(fault.Unauthorized, fault.Header, "Authorization", "no")
	for i := range 100 {
		cache.VerifyKey(t.Context(), fmt.Sprint(i))
		if got := len(cache.entries); got > 8 {
			t.Fatalf("got %d entries, want at most 8", got)
		}
	}
	if _, known, err := cache.Recall("right"); !known || err != nil {
		t.Errorf("the right key: got known %t, %v; want it known", known, err)
	}
}

func TestANewKeyIsSoonKnown(t *testing.T) {
	now := time.Unix(0, 0)
	from := &fake{err: fault.New(fault.Unauthorized, fault.Header, "Authorization", "no")}
	cache := watched(from, time.Hour, func() time.Time { return now })
	if _, err := cache.VerifyKey(t.Context(), "h"); fault.KindOf(err) != fault.Unauthorized {
		t.Fatalf("before the key exists: got %v, want kind Unauthorized", err)
	}
	from.err = nil // the key exists now
	now = now.Add(invalidTTL)
	expect.ErrOf(t, nil, "a new key")(cache.VerifyKey(t.Context(), "h"))
	from.err = errors.New("unexpected call")
	now = now.Add(time.Hour - time.Nanosecond)
	expect.ErrOf(t, nil, "a known key within its TTL")(cache.VerifyKey(t.Context(), "h"))
}

func TestCacheTrustsWhatIsConfirmed(t *testing.T) {
	start := time.Unix(1000, 0)
	refused := fault.New(fault.Unauthorized, fault.Header, "Authorization", "no")
	for _, c := range []struct {
		name    string
		err     error
		goodFor time.Duration
		confirm time.Duration // time of the last confirmation, counted from the start; 0: none
		later   time.Duration // time of the second request, counted from the start
		want    int64         // number of calls of the Verifier

	}{
		{"a hit at once", nil, 0, 0, 0, 1},
		{"a hit within unwatchedTTL", nil, 0, 0, unwatchedTTL - 1, 1},
		{"a miss after unwatchedTTL", nil, 0, 0, unwatchedTTL, 2},
		{"a hit within unwatchedTTL of the confirmation", nil, 0, 3 * time.Second, 3*time.Second + unwatchedTTL - 1, 1},
		{"a miss unwatchedTTL after the confirmation", nil, 0, 3 * time.Second, 3*time.Second + unwatchedTTL, 2},
		{"a miss after the cache's TTL", nil, 0, 5 * time.Second, 5 * time.Second, 2},
		{"a miss after the key has expired", nil, 2 * time.Second, 2 * time.Second, 2 * time.Second, 2},
		{"a hit before the key expires", nil, 2 * time.Second, 2 * time.Second, 2*time.Second - 1, 1},
		{"a hit for a refused key within a second", refused, 0, time.Second, time.Second - 1, 1},
		{"a miss for a refused key after a second", refused, 0, time.Second, time.Second, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			now := start
			from := &fake{err: c.err, goodFor: c.goodFor}
			cache := Cached(from, 5*time.Second, func() time.Time { return now }, 1<<30)
			cache.VerifyKey(t.Context(), "h")
			if c.confirm > 0 {
				cache.Confirm(start.Add(c.confirm))
			}
			now = start.Add(c.later)
			cache.VerifyKey(t.Context(), "h")
			expect.Equal(t, from.asked.Load(), c.want, "calls")
		})
	}
}

func TestCacheForgetsWhatHasChanged(t *testing.T) {
	for name, c := range map[string]struct {
		what authapi.WatchKeysResponse
		want int64 // after the change: calls of the verifier when a, b and a refused key are verified again
	}{
		"a key":              {authapi.WatchKeysResponse{Keys: []string{"id of a"}}, 2},
		"a broker":           {authapi.WatchKeysResponse{Brokers: []string{"of b"}}, 2},
		"a key and a broker": {authapi.WatchKeysResponse{Keys: []string{"id of a"}, Brokers: []string{"of b"}}, 3},
		"neither cached":     {authapi.WatchKeysResponse{Keys: []string{"id of c"}, Brokers: []string{"of c"}}, 1},
		"everything":         {authapi.WatchKeysResponse{All: true}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			from := &fake{}
			cache := watched(from, time.Hour, time.Now)
			ask := func() {
				for _, hash := range []string{"a", "b", "refused"} {
					from.err = nil
					if hash == "refused" {
						from.err = fault.New(fault.Unauthorized, fault.Header, "Authorization", "no")
					}
					cache.VerifyKey(t.Context(), hash)
				}
			}
			ask()
			cache.Forget(c.what)
			before := from.asked.Load()
			ask()
			expect.Equal(t, from.asked.Load()-before, c.want, "after the change: calls")
		})
	}
}

// held is a Verifier whose calls a test answers one by one. Each call sends a new channel to the test, and
// returns the error that the test sends back on it.
type held chan chan error

func (h held) VerifyKey(_ context.Context, hash string) (authapi.Key, error) {
	answer := make(chan error)
	h <- answer
	err := <-answer
	return authapi.Key{Identity: identity.Identity{Broker: "of " + hash, KeyID: "id of " + hash}}, err
}

func TestAnAnswerFromBeforeAChangeIsNotKept(t *testing.T) {
	refused := fault.New(fault.Unauthorized, fault.Header, "Authorization", "the key is revoked")
	for _, c := range []struct {
		name  string
		early bool // the call from before the change is answered before the next call begins
	}{
		{"it comes first", true},
		{"it comes last", false},
	} {
		run := func(t *testing.T) {
			from := make(held)
			cache := watched(from, time.Hour, time.Now)
			results := make(chan error, 3)
			verify := func() {
				_, err := cache.VerifyKey(t.Context(), "h")
				results <- err
			}
			tell := func(call chan error, answer error) {
				t.Helper()
				call <- answer
				expect.Equal(t, <-results, answer, "")
			}
			go verify()
			before := <-from
			cache.Forget(authapi.WatchKeysResponse{Keys: []string{"id of h"}}) // the key is revoked
			if c.early {
				tell(before, nil)
			}
			// This request must make a new call. It must use neither the call from before the change nor its answer.
			go verify()
			select {
			case after := <-from:
				tell(after, refused)
			case err := <-results:
				t.Fatalf("a revoked key: got %v from memory, want a call", err)
			}
			if !c.early {
				tell(before, nil)
			}
			go verify()
			select {
			case call := <-from: // the answer was not remembered, which is allowed
				tell(call, refused)
			case err := <-results:
				expect.ErrorIf(t, err != refused, "a revoked key afterwards: got %v, want %v", err, refused)
			}
		}
		// In a bubble, waiting for a call that never comes fails immediately.
		t.Run(c.name, func(t *testing.T) { synctest.Test(t, run) })
	}
}

// taking is a Reporter that keeps the reports that it gets. If err is set, it returns err and does not keep the
// report.
type taking struct {
	mu      sync.Mutex // for tests in which reports come from another goroutine
	reports []authapi.ReportUsageRequest
	err     error
}

func (r *taking) ReportUsage(_ context.Context, report authapi.ReportUsageRequest) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.reports = append(r.reports, report)
	}
	return r.err
}

func TestUsageIsReportedOnceAndWhole(t *testing.T) {
	now := time.Date(2026, 11, 21, 23, 59, 59, 0, time.UTC)
	to := &taking{err: errors.New("down")}
	u := NewUsage(to, slog.New(slog.DiscardHandler), func() time.Time { return now })
	for i := range 3 {
		u.Count("k", "read")
		u.Used(authapi.Key{Identity: identity.Identity{KeyID: "k"}, Secret: 2}, netip.MustParseAddr("192.0.2.1"))
		if err := u.report(t.Context()); err == nil {
			t.Fatal("a failed report: got no error, want one")
		}
		now = now.Add(time.Duration(i) * time.Second)
	}
	to.err = nil
	for range 2 {
		expect.OK(t, u.report(t.Context()))
	}
	if len(to.reports) != 1 || len(to.reports[0].Uses) != 1 || len(to.reports[0].Counts) != 2 {
		t.Fatalf("got %+v, want one report with one use and two counts", to.reports)
	}
	want := now.Add(-2 * time.Second).UnixMicro()
	if got := to.reports[0].Uses[0]; got.Secret != 2 || got.Micros != want {
		t.Errorf("got %+v, want secret 2 at %d", got, want)
	}
	for i := range 2*authapi.MaxReport + 1 {
		u.Count(fmt.Sprint(i), "list")
	}
	to.reports = nil
	if err := u.report(t.Context()); err != nil || len(to.reports) != 3 {
		t.Errorf("got %d reports, %v; want 3", len(to.reports), err)
	}
}

func TestAReportThatIsRefusedIsDropped(t *testing.T) {
	to := &taking{err: fault.New(fault.Invalid, fault.Body, "data", "This is no report of the use of keys.")}
	var log bytes.Buffer
	u := NewUsage(to, slog.New(slog.NewTextHandler(&log, nil)), time.Now)
	u.Count("{bad}", "read")
	if err := u.report(t.Context()); err != nil || !strings.Contains(log.String(), "dropped") {
		t.Errorf("got %v and the log %q; want no error, and %q in the log", err, log.String(), "dropped")
	}
	to.err = nil
	u.Count("good", "read")
	err := u.report(t.Context())
	if err != nil || len(to.reports) != 1 || len(to.reports[0].Counts) != 1 ||
		to.reports[0].Counts[0].KeyID != "good" {
		t.Errorf("got %+v, %v; want one report with one count, of the key good", to.reports, err)
	}
}

func TestMetricsTellWhatIsRememberedAndWhetherItIsWatched(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	now := time.Unix(1000, 0)
	from := &fake{}
	cache := Cached(from, time.Hour, func() time.Time { return now }, 1<<30)
	unregister := cache.Measure(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("test"))
	must := func(want string) {
		t.Helper()
		var all metricdata.ResourceMetrics
		expect.OK(t, reader.Collect(t.Context(), &all))
		var told []string
		for _, scope := range all.ScopeMetrics {
			for _, m := range scope.Metrics {
				points := []metricdata.DataPoint[int64]{}
				switch data := m.Data.(type) {
				case metricdata.Sum[int64]:
					points = data.DataPoints
				case metricdata.Gauge[int64]:
					points = data.DataPoints
				}
				name := strings.TrimPrefix(m.Name, "registry.keys.")
				for _, p := range points {
					result, _ := p.Attributes.Value("result")
					told = append(told, fmt.Sprint(name, result.AsString(), p.Value))
				}
			}
		}
		slices.Sort(told)
		if got := strings.Join(told, " "); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	must("forgets0 lookupshit0 lookupsmiss0 lookupsnegative0 remembered0 unwatched1")
	cache.Confirm(now)
	cache.VerifyKey(t.Context(), "h") // a miss
	cache.VerifyKey(t.Context(), "h")
	cache.Recall("h")
	cache.Recall("nobody's") // counts nothing, because VerifyKey counts the miss afterwards
	from.err = fault.New(fault.Unauthorized, fault.Header, "Authorization", "no")
	cache.VerifyKey(t.Context(), "none") // a miss
	cache.Recall("none")
	must("forgets0 lookupshit2 lookupsmiss2 lookupsnegative1 remembered2 unwatched0")
	cache.Forget(authapi.WatchKeysResponse{Keys: []string{"id of h"}})
	now = now.Add(unwatchedTTL)
	must("forgets1 lookupshit2 lookupsmiss2 lookupsnegative1 remembered0 unwatched1")
	unregister()
	must("")
}
