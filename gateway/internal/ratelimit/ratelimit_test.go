package ratelimit

import (
	"errors"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/ulule/limiter/v3"
	"github.com/ulule/limiter/v3/drivers/store/memory"

	"asset-registry/shared/fault"
)

func TestClient(t *testing.T) {
	trusted := Proxies{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	for name, c := range map[string]struct {
		peer      string
		forwarded []string
		want      string
	}{
		"nobody between":                       {"192.0.2.1:5", nil, "192.0.2.1"},
		"a stranger's word counts for nothing": {"192.0.2.1:5", []string{"198.51.100.7"}, "192.0.2.1"},
		"a trusted proxy":                      {"10.0.0.1:5", []string{"198.51.100.7"}, "198.51.100.7"},
		"two of them":                          {"10.0.0.1:5", []string{"198.51.100.7, 10.0.0.2"}, "198.51.100.7"},
		"in two headers":                       {"10.0.0.1:5", []string{"198.51.100.7", "10.0.0.2"}, "198.51.100.7"},
		"what the client has put before":       {"10.0.0.1:5", []string{"203.0.113.9, 198.51.100.7"}, "198.51.100.7"},
		"rubbish before the proxy":             {"10.0.0.1:5", []string{"unknown"}, "10.0.0.1"},
		"nothing but proxies":                  {"10.0.0.1:5", []string{"10.0.0.3"}, "10.0.0.3"},
		"version 6":                            {"[fd00::1]:5", []string{"2001:db8::1"}, "2001:db8::1"},
		"version 4 in version 6":               {"[::ffff:192.0.2.1]:5", nil, "192.0.2.1"},
		"no network":                           {"@", nil, "invalid IP"},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest("GET", "/", nil)
			r.RemoteAddr = c.peer
			r.Header["X-Forwarded-For"] = c.forwarded
			if got := trusted.Client(r).String(); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestSite(t *testing.T) {
	for addr, want := range map[string]string{
		"192.0.2.1": "192.0.2.1", "2001:db8:1:2:3::4": "2001:db8:1:2::/64", "2001:db8:1:2:ffff::": "2001:db8:1:2::/64", "2001:db8:1:3::": "2001:db8:1:3::/64",
	} {
		if got := site(netip.MustParseAddr(addr)); got != want {
			t.Errorf("%s: got %s, want %s", addr, got, want)
		}
	}
}

func TestLimitsAreKeptApart(t *testing.T) {
	store := memory.NewStoreWithOptions(limiter.StoreOptions{Prefix: t.Name(), CleanUpInterval: time.Minute})
	l := New(store, Rates{Read: 2}, Rates{Write: 1}, time.Now)
	recorder := httptest.NewRecorder()
	c, _ := gin.CreateTestContext(recorder)
	c.Request = httptest.NewRequest("GET", "/", nil)
	one, other := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	var over error
	for range 10 { // more than two windows can let through, should a second end in between
		over = errors.Join(over, l.Address(c, Read, one))
	}
	f, ok := errors.AsType[*fault.Error](over)
	if !ok || f.Kind != fault.TooMany || f.RetryAfter < time.Second {
		t.Errorf("ten reads where two are allowed: %v", over)
	}
	if got := recorder.Header().Get("X-RateLimit-Limit"); got != "2" {
		t.Errorf("X-RateLimit-Limit is %q", got)
	}
	for name, err := range map[string]error{
		"another address":     l.Address(c, Read, other),
		"a class of no limit": l.Address(c, List, one),
		"a key":               l.Key(c, Write, "k1"),
		"another key":         l.Key(c, Write, "k2"),
		"a key of no limit":   l.Key(c, Read, "k1"),
		"a write, by address": l.Address(c, Write, one),
	} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
