package clientaddr

import (
	"net/http/httptest"
	"net/netip"
	"testing"
)

func TestClient(t *testing.T) {
	trusted := Proxies{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	for _, c := range []struct {
		name      string
		peer      string
		forwarded []string
		want      string
	}{
		{"nobody between", "192.0.2.1:5", nil, "192.0.2.1"},
		{"a stranger's word counts for nothing", "192.0.2.1:5", []string{"198.51.100.7"}, "192.0.2.1"},
		{"a trusted proxy", "10.0.0.1:5", []string{"198.51.100.7"}, "198.51.100.7"},
		{"two of them", "10.0.0.1:5", []string{"198.51.100.7, 10.0.0.2"}, "198.51.100.7"},
		{"in two headers", "10.0.0.1:5", []string{"198.51.100.7", "10.0.0.2"}, "198.51.100.7"},
		{"what the client has put before", "10.0.0.1:5", []string{"203.0.113.9, 198.51.100.7"}, "198.51.100.7"},
		{"rubbish before the proxy", "10.0.0.1:5", []string{"unknown"}, "10.0.0.1"},
		{"nothing but proxies", "10.0.0.1:5", []string{"10.0.0.3"}, "10.0.0.3"},
		{"version 6", "[fd00::1]:5", []string{"2001:db8::1"}, "2001:db8::1"},
		{"version 4 in version 6", "[::ffff:192.0.2.1]:5", nil, "192.0.2.1"},
		{"no network", "@", nil, "invalid IP"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := httptest.NewRequest("GET", "/", nil)
			r.RemoteAddr = c.peer
			r.Header["X-Forwarded-For"] = c.forwarded
			if got := trusted.Client(r).String(); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestNetwork(t *testing.T) {
	for _, c := range []struct{ addr, want string }{
		{"192.0.2.1", "192.0.2.1"},
		{"2001:db8:1:2:3::4", "2001:db8:1:2::"},
		{"2001:db8:1:2:ffff::", "2001:db8:1:2::"},
		{"2001:db8:1:3::", "2001:db8:1:3::"},
		{"fe80::1%eth0", "fe80::"},
	} {
		if got := Network(netip.MustParseAddr(c.addr)); got.String() != c.want {
			t.Errorf("%s: got %s, want %s", c.addr, got, c.want)
		}
	}
}
