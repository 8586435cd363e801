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
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"asset-registry/shared/authapi"
	"asset-registry/shared/fault"
	"asset-registry/shared/identity"
	"asset-registry/shared/keyring"
)

func basic(text string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte(text)) }

func TestHash(t *testing.T) {
	for _, c := range []struct {
		name   string
		header string
	}{
		{"an empty password", basic("key:")},
		{"any password", basic("key:word:x")},
		{"no colon", basic("key")},
		{"no padding", strings.TrimRight(basic("key:"), "=")},
		{"a scheme in capitals", strings.Replace(basic("key:"), "Basic", "BASIC", 1)},
		{"blanks", " " + strings.Replace(basic("key:"), " ", "   ", 1) + " "},
		{"a bearer", "Bearer key"},
	} {
		if got, err := Hash(http.Header{"Authorization": {c.header}}); err != nil || got != authapi.Hash("key") {
			t.Errorf("%s: got %s, %v", c.name, got, err)
		}
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
			t.Fatalf("got %s, %v", got, err)
		}
		return got
	}
	want := seed(basic("key:"), "name", "secret")
	for _, c := range []struct {
		name string
		same string
	}{
		{"again", seed(basic("key:"), "name", "secret")},
		{"with a password", seed(basic("key:word"), "name", "secret")},
		{"the key as a bearer", seed("Bearer key", "name", "secret")},
	} {
		if c.same != want {
			t.Errorf("%s it is another", c.name)
		}
	}
	for _, c := range []struct {
		name  string
		other string
	}{
		{"key", seed(basic("key2:"), "name", "secret")},
		{"name", seed(basic("key:"), "name2", "secret")},
		{"secret", seed(basic("key:"), "name", "secret2")},
	} {
		if c.other == want {
			t.Errorf("with another %s it is the same", c.name)
		}
	}
	if got, both := want+","+seed(basic("key:"), "name", "new"), seed(basic("key:"), "name", "secret", "new"); both != got {
		t.Errorf("with two secrets: got %s, want %s", both, got)
	}
	if got, err := Seeds(http.Header{}, "name", keyring.Ring{[]byte("secret")}); fault.KindOf(err) != fault.Unauthorized || got != "" {
		t.Errorf("without a key: %s, %v", got, err)
	}
}

func TestHashRefuses(t *testing.T) {
	for _, c := range []struct {
		name   string
		values []string
		says   string
	}{
		{"none", nil, "API key is needed"},
		{"two", []string{basic("key:"), basic("key:")}, "more than once"},
		{"too long", []string{basic(strings.Repeat("k", 2000))}, "too long"},
		{"empty", []string{""}, "scheme"},
		{"no Base64", []string{"Basic ???"}, "Base64"},
		{"an empty key", []string{basic(":hunter2")}, "empty"},
		{"a scheme alone", []string{"Bearer"}, "empty"},
		{"another scheme", []string{"Digest key"}, "scheme"},
		{"the key by itself", []string{"key"}, "scheme"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Hash(http.Header{"Authorization": c.values})
			if fault.KindOf(err) != fault.Unauthorized || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("got %v, want it to say %q", err, c.says)
			}
		})
	}
}

func FuzzAuthorization(f *testing.F) {
	for _, seed := range []string{basic("key:"), basic(":"), "Bearer key", "Basic", "Basic =", "basic\tx", "", "Basic " + strings.Repeat("A", 2000), "\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, header string) {
		hash, err := Hash(http.Header{"Authorization": {header}})
		if err != nil && fault.KindOf(err) != fault.Unauthorized || err == nil && len(hash) != 64 {
			t.Fatalf("%q: %q, %v", header, hash, err)
		}
		if err == nil && hash == authapi.Hash("") {
			t.Fatalf("%q: an empty key passes", header)
		}
	})
}

// fake is a Verifier that a test can count, hold up and break.
type fake struct {
	asked atomic.Int64
	begun chan struct{} // sent to with each question, if there is one
	hold  chan struct{} // closed to let answers go, if there is one
	err   error

	goodFor time.Duration
}

func (f *fake) VerifyKey(_ context.Context, hash string) (authapi.Key, error) {
	f.asked.Add(1)
	if f.hold != nil {
		f.begun <- struct{}{}
		<-f.hold
	}
	return authapi.Key{Identity: identity.Identity{Broker: "of " + hash, KeyID: "id of " + hash}, GoodFor: f.goodFor}, f.err
}

// watched is a cache that is told at all times that nothing has changed.
func watched(from Verifier, ttl time.Duration, now func() time.Time) *Cache {
	c := Cached(from, ttl, now)
	c.Confirm(now().Add(1000 * time.Hour))
	return c
}

func TestCacheAsksOnceWithinItsTime(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		want int64 // questions for two calls within the time

	}{
		{"a known key", nil, 1},
		{"an unknown key", fault.New(fault.Unauthorized, fault.Header, "Authorization", "no"), 1},
		{"no answer at all", fault.New(fault.Unavailable, fault.URL, "x", "down"), 2},
		{"a broken answer", errors.New("broken"), 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			now := time.Unix(0, 0)
			from := &fake{err: c.err}
			cache := watched(from, time.Second, func() time.Time { return now })
			for range 2 {
				if got, err := cache.VerifyKey(t.Context(), "h"); err != c.err || err == nil && got.Broker != "of h" {
					t.Errorf("got %+v, %v", got, err)
				}
			}
			if got := from.asked.Load(); got != c.want {
				t.Errorf("asked %d times, want %d", got, c.want)
			}
			now = now.Add(time.Second)
			cache.VerifyKey(t.Context(), "h")
			if got := from.asked.Load(); got != c.want+1 {
				t.Errorf("asked %d times after the time was over, want %d", got, c.want+1)
			}
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
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
	leave()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Errorf("who left got %v", err)
	}
	close(from.hold)
	wg.Wait()
	if got := from.asked.Load(); got != 1 {
		t.Errorf("asked %d times", got)
	}
}

func TestCacheIsBounded(t *testing.T) {
	cache := watched(&fake{}, time.Minute, time.Now)
	for i := range 2*maxEntries + 1 {
		if _, err := cache.VerifyKey(t.Context(), fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	if got := len(cache.entries); got > maxEntries {
		t.Errorf("it holds %d entries", got)
	}
}

func TestANewKeyIsSoonKnown(t *testing.T) {
	now := time.Unix(0, 0)
	from := &fake{err: fault.New(fault.Unauthorized, fault.Header, "Authorization", "no")}
	cache := watched(from, time.Hour, func() time.Time { return now })
	if _, err := cache.VerifyKey(t.Context(), "h"); fault.KindOf(err) != fault.Unauthorized {
		t.Fatalf("got %v", err)
	}
	from.err = nil // the key is made
	now = now.Add(invalidTTL)
	if _, err := cache.VerifyKey(t.Context(), "h"); err != nil {
		t.Errorf("got %v", err)
	}
	from.err = errors.New("not to be asked")
	now = now.Add(time.Hour - time.Nanosecond)
	if _, err := cache.VerifyKey(t.Context(), "h"); err != nil {
		t.Errorf("a known key is not kept for its time: %v", err)
	}
}

func TestCacheTrustsWhatIsConfirmed(t *testing.T) {
	start := time.Unix(1000, 0)
	refused := fault.New(fault.Unauthorized, fault.Header, "Authorization", "no")
	for _, c := range []struct {
		name    string
		err     error
		goodFor time.Duration
		confirm time.Duration // after the start; 0: never
		later   time.Duration // that the second question comes
		want    int64         // questions asked

	}{
		{"at once", nil, 0, 0, 0, 1},
		{"for less than a second unwatched", nil, 0, 0, unwatchedTTL - 1, 1},
		{"no longer unwatched", nil, 0, 0, unwatchedTTL, 2},
		{"as long as it is watched", nil, 0, 3 * time.Second, 3*time.Second + unwatchedTTL - 1, 1},
		{"no longer once that is lost", nil, 0, 3 * time.Second, 3*time.Second + unwatchedTTL, 2},
		{"never beyond its time", nil, 0, 5 * time.Second, 5 * time.Second, 2},
		{"never beyond the key's end", nil, 2 * time.Second, 2 * time.Second, 2 * time.Second, 2},
		{"until the key's end", nil, 2 * time.Second, 2 * time.Second, 2*time.Second - 1, 1},
		{"a key that was refused for a second", refused, 0, time.Second, time.Second - 1, 1},
		{"and not for longer", refused, 0, time.Second, time.Second, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			now := start
			from := &fake{err: c.err, goodFor: c.goodFor}
			cache := Cached(from, 5*time.Second, func() time.Time { return now })
			cache.VerifyKey(t.Context(), "h")
			if c.confirm > 0 {
				cache.Confirm(start.Add(c.confirm))
			}
			now = start.Add(c.later)
			cache.VerifyKey(t.Context(), "h")
			if got := from.asked.Load(); got != c.want {
				t.Errorf("asked %d times, want %d", got, c.want)
			}
		})
	}
}

func TestCacheForgetsWhatHasChanged(t *testing.T) {
	for name, c := range map[string]struct {
		what authapi.WatchKeysResponse
		want int64 // questions asked anew, of the keys a, b and one that is refused
	}{
		"a key":        {authapi.WatchKeysResponse{Keys: []string{"id of a"}}, 2},
		"a broker":     {authapi.WatchKeysResponse{Brokers: []string{"of b"}}, 2},
		"both":         {authapi.WatchKeysResponse{Keys: []string{"id of a"}, Brokers: []string{"of b"}}, 3},
		"others":       {authapi.WatchKeysResponse{Keys: []string{"id of c"}, Brokers: []string{"of c"}}, 1},
		"all there is": {authapi.WatchKeysResponse{All: true}, 3},
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
			if got := from.asked.Load() - before; got != c.want {
				t.Errorf("asked %d times anew, want %d", got, c.want)
			}
		})
	}
}

func TestAnAnswerFromBeforeAChangeIsNotKept(t *testing.T) {
	from := &fake{begun: make(chan struct{}), hold: make(chan struct{})}
	cache := watched(from, time.Hour, time.Now)
	before := make(chan error)
	go func() {
		_, err := cache.VerifyKey(t.Context(), "h")
		before <- err
	}()
	<-from.begun
	cache.Forget(authapi.WatchKeysResponse{Keys: []string{"id of h"}})
	after := make(chan error)
	go func() { // does not join the flight from before
		_, err := cache.VerifyKey(t.Context(), "h")
		after <- err
	}()
	<-from.begun
	close(from.hold)
	if err := errors.Join(<-before, <-after); err != nil {
		t.Error(err)
	}
	from.hold = nil
	cache.VerifyKey(t.Context(), "h")
	if got := from.asked.Load(); got != 2 {
		t.Errorf("asked %d times, want 2", got)
	}
}

// telling answers a watcher's questions one after the other, and then fails.
type telling struct {
	answers []authapi.WatchKeysResponse
	asked   []string
	end     context.CancelFunc
}

func (w *telling) WatchKeys(_ context.Context, since string, _ time.Duration) (authapi.WatchKeysResponse, error) {
	w.asked = append(w.asked, since)
	if len(w.answers) == 0 {
		w.end()
		return authapi.WatchKeysResponse{}, errors.New("lost")
	}
	answer := w.answers[0]
	w.answers = w.answers[1:]
	return answer, nil
}

func TestWatchForgetsAndConfirms(t *testing.T) {
	now := time.Unix(1000, 0)
	from := &fake{}
	cache := Cached(from, time.Hour, func() time.Time { return now })
	cache.VerifyKey(t.Context(), "h")
	now = now.Add(time.Minute)
	ctx, end := context.WithCancel(t.Context())
	w := &telling{end: end, answers: []authapi.WatchKeysResponse{{At: "1"}, {At: "1"}, {At: "2", Keys: []string{"x"}}}}
	cache.Watch(ctx, w, slog.New(slog.DiscardHandler))
	if got, want := fmt.Sprint(w.asked), "[ 1 1 2]"; got != want {
		t.Errorf("asked since %s, want %s", got, want)
	}
	cache.VerifyKey(t.Context(), "h")
	if got := from.asked.Load(); got != 1 {
		t.Errorf("asked %d times, want 1: nothing has changed", got)
	}
}

// taking takes reports, or not.
type taking struct {
	reports []authapi.ReportUsageRequest
	err     error
}

func (r *taking) ReportUsage(_ context.Context, report authapi.ReportUsageRequest) error {
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
			t.Fatal("a report that was not taken passes for one that was")
		}
		now = now.Add(time.Duration(i) * time.Second)
	}
	to.err = nil
	for range 2 {
		if err := u.report(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if len(to.reports) != 1 || len(to.reports[0].Uses) != 1 || len(to.reports[0].Counts) != 2 {
		t.Fatalf("got %+v", to.reports)
	}
	if got := to.reports[0].Uses[0]; got.Secret != 2 || got.Micros != now.Add(-2*time.Second).UnixMicro() {
		t.Errorf("got %+v", got)
	}
	for i := range 2*authapi.MaxReport + 1 {
		u.Count(fmt.Sprint(i), "list")
	}
	to.reports = nil
	if err := u.report(t.Context()); err != nil || len(to.reports) != 3 {
		t.Errorf("got %d reports, %v", len(to.reports), err)
	}
}

func TestAReportThatIsRefusedIsDropped(t *testing.T) {
	to := &taking{err: fault.New(fault.Invalid, fault.Body, "data", "This is no report of the use of keys.")}
	var log bytes.Buffer
	u := NewUsage(to, slog.New(slog.NewTextHandler(&log, nil)), time.Now)
	u.Count("{bad}", "read")
	if err := u.report(t.Context()); err != nil || !strings.Contains(log.String(), "dropped") {
		t.Errorf("got %v, and the log says %q", err, log.String())
	}
	to.err = nil
	u.Count("good", "read")
	if err := u.report(t.Context()); err != nil || len(to.reports) != 1 || len(to.reports[0].Counts) != 1 || to.reports[0].Counts[0].KeyID != "good" {
		t.Errorf("got %+v, %v", to.reports, err)
	}
}

func TestMetricsTellWhatIsRememberedAndWhetherItIsWatched(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	now := time.Unix(1000, 0)
	from := &fake{}
	cache := Cached(from, time.Hour, func() time.Time { return now })
	unregister, err := cache.Measure(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("test"))
	if err != nil {
		t.Fatal(err)
	}
	must := func(want string) {
		t.Helper()
		var all metricdata.ResourceMetrics
		if err := reader.Collect(t.Context(), &all); err != nil {
			t.Fatal(err)
		}
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
				for _, p := range points {
					result, _ := p.Attributes.Value("result")
					told = append(told, fmt.Sprint(strings.TrimPrefix(m.Name, "registry.keys."), result.AsString(), p.Value))
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
	cache.Recall("nobody's") // is counted by the VerifyKey that follows
	from.err = fault.New(fault.Unauthorized, fault.Header, "Authorization", "no")
	cache.VerifyKey(t.Context(), "none") // a miss
	cache.Recall("none")
	must("forgets0 lookupshit2 lookupsmiss2 lookupsnegative1 remembered2 unwatched0")
	cache.Forget(authapi.WatchKeysResponse{Keys: []string{"id of h"}})
	now = now.Add(unwatchedTTL)
	must("forgets1 lookupshit2 lookupsmiss2 lookupsnegative1 remembered0 unwatched1")
	if err := unregister(); err != nil {
		t.Fatal(err)
	}
	must("")
}
