package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"regexp"
	"strings"
	"testing"
	"time"

	"asset-registry/gateway/internal/ratelimit"
	"asset-registry/shared/authapi"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/identity"
	"asset-registry/shared/redistest"
)

// table is one policy of each kind.
var table = ratelimit.Table{
	{Name: "by-address", By: ratelimit.ByAddress, Costs: map[ratelimit.Class]int64{ratelimit.List: 2, ratelimit.Read: 1, ratelimit.Write: 1}, Windows: map[string]int64{"10s": 6}},
	{Name: "wrong-keys", By: ratelimit.ByAddress, Costs: map[ratelimit.Class]int64{ratelimit.Failed: 1}, Windows: map[string]int64{"1m": 3}},
	{Name: "by-key", By: ratelimit.ByKey, Costs: map[ratelimit.Class]int64{ratelimit.Read: 1, ratelimit.Write: 2}, Windows: map[string]int64{"10s": 8, "1m": 20}},
	{Name: "by-tenant", By: ratelimit.ByTenant, Costs: map[ratelimit.Class]int64{ratelimit.Read: 1, ratelimit.List: 1, ratelimit.Write: 1}, Windows: map[string]int64{"1h": 100}},
}

func limited(t *testing.T, change func(*Config)) *Server {
	t.Helper()
	now := time.Unix(1_800_000_000, 0)
	return start(t, func(c *Config) {
		c.Limits, c.Now = Limits{Table: table}, func() time.Time { return now }
		if change != nil {
			change(c)
		}
	})
}

// send sends a request from an address; the header's values come in pairs.
func send(s *Server, method, path, from string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader("body"))
	r.RemoteAddr = netip.AddrPortFrom(netip.MustParseAddr(from), 1234).String()
	r.Header.Set("Content-Type", jsonType)
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	recorder := httptest.NewRecorder()
	s.Handler().ServeHTTP(recorder, r)
	return recorder
}

const (
	authorization = "Authorization"
	goodKey       = "Bearer key"
	anAsset       = "/api/2.5/assets/there"
)

func TestAnswersTellWhatIsLeft(t *testing.T) {
	s := limited(t, nil)
	for _, c := range []struct {
		name, method, path string
		header             []string
		status             int
		policy, state      string
		limit, left        string
	}{
		{"an anonymous list", "GET", "/api/2.5/assets", nil, 200,
			`"by-address-10s";q=6;w=10`, `"by-address-10s";r=4;t=11`, "6", "4"},
		{"a read with a key", "GET", anAsset, []string{authorization, goodKey}, 200,
			`"by-key-10s";q=8;w=10, "by-key-1m";q=20;w=60, "by-tenant-1h";q=100;w=3600`, `"by-key-10s";r=7;t=11, "by-key-1m";r=19;t=62, "by-tenant-1h";r=99;t=3713`, "8", "7"},
		{"a write with a key", "PATCH", anAsset, []string{authorization, goodKey}, 200,
			`"by-key-10s";q=8;w=10, "by-key-1m";q=20;w=60, "by-tenant-1h";q=100;w=3600`, `"by-key-10s";r=5;t=11, "by-key-1m";r=17;t=62, "by-tenant-1h";r=98;t=3713`, "8", "5"},
		{"a list with a key", "GET", "/api/2.5/assets", []string{authorization, goodKey}, 200,
			`"by-tenant-1h";q=100;w=3600`, `"by-tenant-1h";r=97;t=3713`, "100", "97"},
		{"a refusal with a key", "PATCH", "/api/2.5/assets/missing", []string{authorization, goodKey, "Content-Type", "text/plain"}, 200,
			`"by-key-10s";q=8;w=10, "by-key-1m";q=20;w=60, "by-tenant-1h";q=100;w=3600`, `"by-key-10s";r=3;t=11, "by-key-1m";r=15;t=62, "by-tenant-1h";r=96;t=3713`, "8", "3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := send(s, c.method, c.path, "192.0.2.1", c.header...)
			h := got.Header()
			if c.status == 200 && got.Code >= 500 || h.Get("RateLimit-Policy") != c.policy || h.Get("RateLimit") != c.state {
				t.Errorf("got %d\n%s\n%s\nwant\n%s\n%s", got.Code, h.Get("RateLimit-Policy"), h.Get("RateLimit"), c.policy, c.state)
			}
			if h.Get("X-RateLimit-Limit") != c.limit || h.Get("X-RateLimit-Remaining") != c.left || !strings.HasPrefix(h.Get("X-RateLimit-Reset"), "18000") {
				t.Errorf("got %s, %s, %s", h.Get("X-RateLimit-Limit"), h.Get("X-RateLimit-Remaining"), h.Get("X-RateLimit-Reset"))
			}
		})
	}
}

func TestOverTheLimitIsToldWithTheTimeToWait(t *testing.T) {
	s := limited(t, nil)
	var got *httptest.ResponseRecorder
	for range 5 {
		got = send(s, "PATCH", anAsset, "192.0.2.1", authorization, goodKey)
	}
	var body struct {
		Status string
		Errors []struct{ Location, Name, Description string }
	}
	if err := json.Unmarshal(got.Body.Bytes(), &body); err != nil {
		t.Fatal(err)
	}
	h := got.Header()
	if got.Code != http.StatusTooManyRequests || body.Status != "error" || len(body.Errors) != 1 || body.Errors[0].Location != "header" || !strings.Contains(body.Errors[0].Description, "by-key-10s allows 8") {
		t.Errorf("got %d %s", got.Code, got.Body)
	}
	if h.Get("Retry-After") != "11" || h.Get("Content-Type") != jsonType || !strings.HasPrefix(h.Get("RateLimit"), `"by-key-10s";r=0;t=11, `) || h.Get("X-RateLimit-Remaining") != "0" || h.Get("X-RateLimit-Reset") != "1800000011" {
		t.Errorf("got %v", h)
	}
	if other := send(s, "PATCH", anAsset, "192.0.2.1"); other.Code != http.StatusUnauthorized {
		t.Errorf("who has no key is counted by address, and got %d", other.Code)
	}
}

func TestMeTellsWhoIAmAtNoCost(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"in memory": nil,
		"in Redis":  func(c *Config) { c.Limits.Redis, c.Now = redistest.Start(t, "--appendonly", "no").URL(), nil },
	} {
		t.Run(name, func(t *testing.T) {
			s := limited(t, change)
			send(s, "GET", anAsset, "192.0.2.1", authorization, goodKey)
			for range 30 {
				send(s, "GET", "/api/2.5/me", "192.0.2.1", authorization, goodKey)
			}
			got := send(s, "GET", "/api/2.5/me", "192.0.2.1", authorization, goodKey)
			reset := regexp.MustCompile(`"reset":\d+`)
			want := `{"data":{"accreditations":"1234","broker":"b","key":"k","limits":[` +
				`{"policy":"by-key","by":"key","costs":{"read":1,"write":2},"window":10,"limit":8,"remaining":7,"reset":0},` +
				`{"policy":"by-key","by":"key","costs":{"read":1,"write":2},"window":60,"limit":20,"remaining":19,"reset":0},` +
				`{"policy":"by-tenant","by":"tenant","costs":{"list":1,"read":1,"write":1},"window":3600,"limit":100,"remaining":99,"reset":0}` +
				`],"role":"broker"}}`
			if text := strings.TrimSpace(reset.ReplaceAllString(got.Body.String(), `"reset":0`)); got.Code != 200 || text != want {
				t.Errorf("got %d\n%s\nwant\n%s", got.Code, text, want)
			}
			if h := got.Header(); !strings.HasPrefix(h.Get("RateLimit"), `"by-key-10s";r=7`) || h.Get("X-RateLimit-Remaining") != "7" {
				t.Errorf("got %v", h)
			}
		})
	}
	s := limited(t, nil)
	for key, status := range map[string]int{"": 401, "Bearer wrong": 401, goodKey: 200} {
		header := []string{authorization, key}
		if key == "" {
			header = nil
		}
		if got := send(s, "HEAD", "/api/0/me", "192.0.2.1", header...); got.Code != status {
			t.Errorf("with %q: got %d", key, got.Code)
		}
	}
}

func TestWrongKeysAreLimitedByAddress(t *testing.T) {
	asked := 0
	s := limited(t, func(c *Config) {
		auth := c.Auth
		c.Auth, c.Limits.Table = counting{auth, &asked}, table[1:]
	})
	guess := func(method, path, from string, n int) (last *httptest.ResponseRecorder) {
		for i := range n {
			last = send(s, method, path, from, authorization, fmt.Sprint("Bearer guess", i, from))
		}
		return last
	}
	if got := guess("PATCH", anAsset, "192.0.2.1", 3); got.Code != 401 {
		t.Errorf("the third guess: %d", got.Code)
	}
	if got := guess("PATCH", anAsset, "192.0.2.1", 2); got.Code != 429 || got.Header().Get("Retry-After") == "" {
		t.Errorf("one more: %d %v", got.Code, got.Header())
	}
	if got := send(s, "PATCH", anAsset, "192.0.2.1", authorization, goodKey); got.Code != 429 {
		t.Errorf("a right guess after too many: %d", got.Code)
	}
	if asked != 3 {
		t.Errorf("%d keys were looked at", asked)
	}
	if got := guess("GET", anAsset, "192.0.2.1", 1); got.Code != 200 {
		t.Errorf("reading needs no key, and got %d", got.Code)
	}
	if got := send(s, "PATCH", anAsset, "192.0.2.2", authorization, goodKey); got.Code != 200 {
		t.Errorf("another address: %d", got.Code)
	}
	// The addresses of one /64 are one client.
	guess("PATCH", anAsset, "2001:db8::1", 2)
	guess("PATCH", anAsset, "2001:db8::2", 2)
	if got := guess("PATCH", anAsset, "2001:db8::3", 1); got.Code != 429 {
		t.Errorf("a third address of one network: %d", got.Code)
	}
	if got := guess("PATCH", anAsset, "2001:db8:0:1::1", 1); got.Code != 401 {
		t.Errorf("another network: %d", got.Code)
	}
}

type counting struct {
	http.RoundTripper
	n *int
}

func (c counting) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Path == authapi.VerifyKeyPath {
		*c.n++
	}
	return c.RoundTripper.RoundTrip(r)
}

// TestNobodyChoosesTheirAddress sends what a client may, to be counted as
// somebody else; the limits, the log and the services behind must all see the
// one address.
func TestNobodyChoosesTheirAddress(t *testing.T) {
	proxies := ratelimit.Proxies{netip.MustParsePrefix("10.0.0.0/8")}
	for name, c := range map[string]struct {
		from   string
		header []string
		want   string
	}{
		"no header":                       {"192.0.2.1", nil, "192.0.2.1"},
		"X-Forwarded-For":                 {"192.0.2.1", []string{"X-Forwarded-For", "198.51.100.%d"}, "192.0.2.1"},
		"X-Real-IP":                       {"192.0.2.1", []string{"X-Real-Ip", "198.51.100.%d"}, "192.0.2.1"},
		"Forwarded":                       {"192.0.2.1", []string{"Forwarded", "for=198.51.100.%d"}, "192.0.2.1"},
		"our own header":                  {"192.0.2.1", []string{"X-Registry-Client", "198.51.100.%d"}, "192.0.2.1"},
		"our own header, named twice":     {"192.0.2.1", []string{"X-Registry-Client", "198.51.100.%d", "X-Registry-Client", "::1"}, "192.0.2.1"},
		"our own header, to be dropped":   {"192.0.2.1", []string{"Connection", "X-Registry-Client"}, "192.0.2.1"},
		"a trusted proxy's address":       {"192.0.2.1", []string{"X-Forwarded-For", "198.51.100.%d, 10.0.0.1"}, "192.0.2.1"},
		"through a proxy":                 {"10.0.0.1", []string{"X-Forwarded-For", "192.0.2.7"}, "192.0.2.7"},
		"through a proxy, with a forgery": {"10.0.0.1", []string{"X-Forwarded-For", "198.51.100.%d, 192.0.2.7"}, "192.0.2.7"},
		"with a forgery of its own line":  {"10.0.0.1", []string{"X-Forwarded-For", "198.51.100.%d", "X-Forwarded-For", "192.0.2.7"}, "192.0.2.7"},
		"with rubbish":                    {"10.0.0.1", []string{"X-Forwarded-For", "198.51.100.%d, \x01"}, "10.0.0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			var log journal
			seen := map[string]bool{}
			s := limited(t, func(config *Config) {
				config.TrustedProxies, config.Log = proxies, log.logger()
				config.Assets = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
					seen[strings.Join(r.Header.Values("X-Registry-Client"), " and ")] = true
				})
			})
			var last int
			for i := range 7 {
				var header []string
				for _, part := range c.header {
					if strings.Contains(part, "%d") {
						part = fmt.Sprintf(part, i)
					}
					header = append(header, part)
				}
				last = send(s, "GET", anAsset, c.from, header...).Code
			}
			if last != http.StatusTooManyRequests {
				t.Errorf("the limits do not take seven requests of one client for that: got %d", last)
			}
			if len(seen) != 1 || !seen[c.want] {
				t.Errorf("the service behind sees %v, want %s", seen, c.want)
			}
			if got := strings.Count(log.String(), `"client":"`+c.want+`"`); got != 7 {
				t.Errorf("the log is %s, want %s", log.String(), c.want)
			}
		})
	}
}

func TestTwoGatewaysShareTheLimitsOfOneRedis(t *testing.T) {
	url := redistest.Start(t, "--appendonly", "no").URL()
	shared := func(c *Config) { c.Limits.Redis, c.Now = url, nil }
	one, two := limited(t, shared), limited(t, shared)
	passed := 0
	for range 8 {
		for _, s := range []*Server{one, two} {
			if send(s, "GET", anAsset, "192.0.2.1").Code == 200 {
				passed++
			}
		}
	}
	if passed != 6 {
		t.Errorf("%d requests have passed, where 6 may", passed)
	}
}

func TestWithoutTheLimitsRedis(t *testing.T) {
	server := redistest.Start(t)
	server.Kill(t)
	for mode, want := range map[ratelimit.Away]int{ratelimit.AwayLocal: 429, ratelimit.AwayOpen: 200, ratelimit.AwayClosed: 503} {
		t.Run(string(mode), func(t *testing.T) {
			s := limited(t, func(c *Config) { c.Limits.Redis, c.Limits.Away, c.Now = server.URL(), mode, nil })
			var got *httptest.ResponseRecorder
			for range 10 {
				got = send(s, "GET", anAsset, "192.0.2.1")
			}
			if got.Code != want || want != 200 && got.Header().Get("Retry-After") == "" {
				t.Errorf("got %d %v", got.Code, got.Header())
			}
			if ready := send(s, "GET", "/readyz", "192.0.2.1"); ready.Code != 200 || !strings.Contains(ready.Body.String(), "mode "+string(mode)) {
				t.Errorf("got %d %s", ready.Code, ready.Body)
			}
		})
	}
}

func BenchmarkLimitedRead(b *testing.B) {
	for name, url := range map[string]string{"memory": "", "redis": redistest.Start(b, "--appendonly", "no").URL()} {
		generous := ratelimit.Production()
		for i := range generous {
			for length := range generous[i].Windows {
				generous[i].Windows[length] = 1 << 30
			}
		}
		s, err := New(b.Context(), Config{
			Assets: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}),
			Auth:   httpserver.InProcess(http.HandlerFunc(known)),
			Secret: bytes.Repeat([]byte("s"), identity.MinSecret),
			Limits: Limits{Table: generous, Redis: url},
			Log:    slog.New(slog.DiscardHandler),
		})
		if err != nil {
			b.Fatal(err)
		}
		defer s.Close()
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r := httptest.NewRequest("GET", anAsset, nil)
				r.Header.Set(authorization, goodKey)
				s.Handler().ServeHTTP(httptest.NewRecorder(), r)
			}
		})
	}
}
