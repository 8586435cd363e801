package httpapi

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"go.opentelemetry.io/otel/metric/noop"

	"asset-registry/gateway/internal/apikey"
	"asset-registry/gateway/internal/concurrency"
	"asset-registry/gateway/internal/limits"
	"asset-registry/gateway/internal/proxy"
	"asset-registry/gateway/internal/ratelimit"
	"asset-registry/shared/authapi"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/identity"
	"asset-registry/shared/keyring"
	"asset-registry/shared/memory"
	"asset-registry/shared/routes"
	"asset-registry/shared/testing/expect"
)

// anyKey answers as an auth service that is ready and accepts every key. The id of a key contains the key's
// hash.
func anyKey(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	body, _ := io.ReadAll(r.Body)
	_, hash, _ := strings.Cut(string(body), `:"`)
	hash, _, _ = strings.Cut(hash, `"`)
	fmt.Fprintf(w, `{"broker":"b","key_id":"k%s","role":"broker","levels":"1234"}`, hash)
}

// open returns an API in front of an asset service, and the handler of its requests. The function `change` may
// change the configuration; nil changes nothing.
func open(t *testing.T, service http.Handler, change func(*Config)) (*API, *gin.Engine) {
	t.Helper()
	secrets := keyring.Ring{bytes.Repeat([]byte("s"), identity.MinSecret)}
	signer, err := identity.NewSigner(secrets, time.Now)
	expect.OK(t, err)
	log, meter := slog.New(slog.DiscardHandler), noop.NewMeterProvider().Meter("")
	auth := authapi.NewClient(httpserver.InProcess(http.HandlerFunc(anyKey)), signer, "gateway")
	c := Config{
		Assets: proxy.Local(service, signer), Search: proxy.Local(service, signer), Files: proxy.Local(service, signer), Auth: auth,
		Keys: apikey.Cached(auth, time.Minute, time.Now, 1<<30), Usage: apikey.NewUsage(auth, log, time.Now),
		Bodies: memory.NewBudget(1 << 20), Secrets: secrets, ServerID: "id", MaxBody: 100, Memory: 1 << 30,
		Timeout: 10 * time.Second, Log: log, Meter: meter,
		Settings: Settings{MaxConcurrent: 1000, ClientStreams: 2, ClientSegments: 2},
	}
	if change != nil {
		change(&c)
	}
	c.Current = concurrency.New(c.Settings.MaxConcurrent)
	// Each client may send one request a minute.
	once := map[ratelimit.Class]int64{routes.List: 1, routes.Own: 1, routes.Read: 1, routes.Write: 1}
	c.Limits, err = limits.New(limits.Settings{Table: ratelimit.Table{
		{Name: "address", By: ratelimit.ByAddress, Costs: once, Windows: map[string]int64{"1m": 1}},
		{Name: "key", By: ratelimit.ByKey, Costs: once, Windows: map[string]int64{"1m": 1}},
	}}, limits.Options{Now: time.Now, Log: log, Meter: meter})
	expect.OK(t, err)
	a, err := New(c)
	expect.OK(t, err)
	engine := httpserver.NewEngine(httpserver.Options{
		Name: "gateway", Log: log, Timeout: c.Timeout, TimeoutOf: a.TimeoutOf, Ready: a.Health,
	})
	a.Route(engine)
	t.Cleanup(func() {
		a.Close()
		expect.Try(t, c.Limits.Close())
	})
	return a, engine
}

// send sends a request with headers.
func send(handler http.Handler, method, path string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader("{}"))
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return w
}

// boundByThemselves has the routes that have no rate limit and do not count as concurrent requests. The value says why
// a route needs neither.
var boundByThemselves = map[string]string{
	"/livez":          "answers a constant",
	"/readyz":         "all who wait share one question to the services",
	"/api/2.4/health": "has a bound of its own, and shares its question",
	"/api/2.5/health": "has a bound of its own, and shares its question",
	"/api/0/health":   "has a bound of its own, and shares its question",
}

// served returns every method and path that an engine serves. It also returns methods that a path does not
// have; for these, the gateway checks whether the object exists. Each parameter in a path is replaced by a
// value.
func served(engine *gin.Engine) (all [][2]string) {
	for _, r := range engine.Routes() {
		if _, own := boundByThemselves[r.Path]; own {
			continue
		}
		segments := strings.Split(r.Path, "/")
		for i, segment := range segments {
			if strings.HasPrefix(segment, ":") || strings.HasPrefix(segment, "*") {
				segments[i] = "x"
			}
		}
		all = append(all, [2]string{r.Method, strings.Join(segments, "/")})
	}
	return append(all, [2]string{"POST", "/api/2.5/assets/x"}, [2]string{"PUT", "/api/0/transfers/x"})
}

// variants has configurations of gateways that serve different routes.
var variants = []struct {
	name   string
	change func(*Config)
}{
	{"a registry with a search and files", nil},
	{"a registry without them", func(c *Config) { c.Search, c.Files = nil, nil }},
	{"a mirror", func(c *Config) { c.Origin, c.Files = "https://registry.example", nil }},
}

// forms has headers with which a request asks for another kind of answer from the same route.
var forms = [][]string{nil, {"Accept", "text/html"}, {"Accept", "text/event-stream"}, {"Prefer", "wait=1"}}

func ok(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "{}") }

// TestEveryRouteHasALimit sends a request to each route, and then the same request in each of the forms. All of these
// requests come from one client, which may send one request a minute. So the gateway must refuse all of them but the
// first.
func TestEveryRouteHasALimit(t *testing.T) {
	for _, variant := range variants {
		_, engine := open(t, http.HandlerFunc(ok), variant.change)
		for n, r := range served(engine) {
			for k, key := range []string{"", fmt.Sprintf("Bearer key-%d", n)} {
				client := fmt.Sprintf("10.%d.%d.%d", k, n/250, n%250)
				headers := []string{httpserver.ClientHeader, client, "Authorization", key}
				if got := send(engine, r[0], r[1], headers...); got.Code == http.StatusTooManyRequests {
					t.Errorf("%s: the first %s %s: got 429 %s, want another status", variant.name, r[0], r[1], got.Body)
				}
				for _, form := range forms {
					got := send(engine, r[0], r[1], append(headers, form...)...)
					if got.Code != http.StatusTooManyRequests || got.Header().Get("Retry-After") == "" ||
						got.Header().Get("Cache-Control") != "no-store" {
						t.Errorf("%s: the second %s %s %v with the key %q: got %d %v, want 429 with Retry-After for no cache",
							variant.name, r[0], r[1], form, key, got.Code, got.Header())
					}
				}
			}
		}
	}
}

// TestEveryRouteHasABound sends each request twice while the gateway has as many concurrent requests as it may
// have. Both requests must be refused for the overload and not for a rate limit, because a request that is refused
// for overload costs its client nothing (docs/contract.md, "Order of checks").
func TestEveryRouteHasABound(t *testing.T) {
	for _, variant := range variants {
		a, engine := open(t, http.HandlerFunc(ok), variant.change)
		for a.config.Current.Enter(concurrency.Write) {
		}
		for n, r := range served(engine) {
			for k, key := range []string{"", fmt.Sprintf("Bearer key-%d", n)} {
				client := fmt.Sprintf("10.%d.%d.%d", k, n/250, n%250)
				for range 2 {
					got := send(engine, r[0], r[1], httpserver.ClientHeader, client, "Authorization", key)
					if got.Code != http.StatusServiceUnavailable || got.Header().Get("Retry-After") == "" {
						t.Errorf("%s: %s %s with the key %q: got %d %s, want 503 with Retry-After",
							variant.name, r[0], r[1], key, got.Code, got.Body)
					}
				}
			}
		}
	}
}

// TestStreamsAndLongPollsHaveTheirOwnBound gives a client as many streams as it may have at the same time. Then the
// client asks for one more stream or long poll. The gateway must refuse this request.
func TestStreamsAndLongPollsHaveTheirOwnBound(t *testing.T) {
	a, engine := open(t, http.HandlerFunc(ok), nil)
	live := [][]string{{"Accept", "text/event-stream"}, {"Accept", "application/x-ndjson"}, {"Prefer", "wait=1"}}
	for _, form := range live {
		for n, version := range routes.Versions() {
			client := fmt.Sprintf("10.0.%d.%d", len(form[1]), n)
			for range a.config.Settings.ClientStreams {
				a.feeds.clients.Enter(a.nameOfAddress(netip.MustParseAddr(client)))
			}
			got := send(engine, "GET", version.Prefix()+"/assets", append(form, httpserver.ClientHeader, client)...)
			if got.Code != http.StatusTooManyRequests || !strings.Contains(got.Body.String(), "streams and long polls") {
				t.Errorf("%s with %s: got %d %s, want 429 for the streams", version.Prefix(), form, got.Code, got.Body)
			}
		}
	}
}

// TestAllRoutesAreServed compares the engine with package routes. No route may be missing.
func TestAllRoutesAreServed(t *testing.T) {
	_, engine := open(t, http.HandlerFunc(ok), nil)
	got := map[string]bool{}
	for _, r := range engine.Routes() {
		got[r.Method+" "+r.Path] = true
	}
	var want []string
	for _, r := range append(routes.Site(), routes.Files()...) {
		want = append(want, r.Method+" "+r.Pattern)
	}
	for _, v := range routes.Versions() {
		for _, r := range routes.All() {
			if v.Has(r) {
				want = append(want, r.Method+" "+v.Prefix()+r.Pattern)
			}
		}
	}
	for _, route := range want {
		expect.ErrorIf(t, !got[route], "got no route %s, want it", route)
	}
}
