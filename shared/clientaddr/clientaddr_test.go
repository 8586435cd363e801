package clientaddr

import (
	"net/http/httptest"
	"net/netip"
	"testing"

	"asset-registry/shared/testing/expect"
)

func TestClient(t *testing.T) {
	trusted := Proxies{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8"),
		netip.MustParsePrefix("::ffff:172.16.0.0/108")}
	for _, c := range []struct {
		name, peer string
		forwarded  []string
		want       string
	}{
		{"no proxy", "192.0.2.1:5", nil, "192.0.2.1"},
		{"the header of an untrusted peer is ignored", "192.0.2.1:5", []string{"198.51.100.7"}, "192.0.2.1"},
		{"a trusted proxy", "10.0.0.1:5", []string{"198.51.100.7"}, "198.51.100.7"},
		{"two trusted proxies", "10.0.0.1:5", []string{"198.51.100.7, 10.0.0.2"}, "198.51.100.7"},
		{"two trusted proxies in two headers", "10.0.0.1:5", []string{"198.51.100.7", "10.0.0.2"}, "198.51.100.7"},
		{"the client's own entry is ignored", "10.0.0.1:5", []string{"203.0.113.9, 198.51.100.7"}, "198.51.100.7"},
		{"a malformed entry", "10.0.0.1:5", []string{"unknown"}, "10.0.0.1"},
		{"only trusted proxies", "10.0.0.1:5", []string{"10.0.0.3"}, "10.0.0.3"},
		{"IPv6", "[fd00::1]:5", []string{"2001:db8::1"}, "2001:db8::1"},
		{"IPv4 in IPv6", "[::ffff:192.0.2.1]:5", nil, "192.0.2.1"},
		{"an entry with a port", "10.0.0.1:5", []string{"198.51.100.7:49152"}, "198.51.100.7"},
		{"two entries with ports", "10.0.0.1:5", []string{"198.51.100.7:1, 10.0.0.2:65535"}, "198.51.100.7"},
		{"IPv6 with a port", "[fd00::1]:5", []string{"[2001:db8::1]:443"}, "2001:db8::1"},
		{"IPv6 in brackets", "[fd00::1]:5", []string{"[2001:db8::1]"}, "2001:db8::1"},
		{"IPv4 in IPv6 with a port", "10.0.0.1:5", []string{"[::ffff:198.51.100.7]:80"}, "198.51.100.7"},
		{"a port alone", "10.0.0.1:5", []string{":80"}, "10.0.0.1"},
		{"a proxy of a network in IPv6", "172.16.3.4:5", []string{"198.51.100.7"}, "198.51.100.7"},
		{"a proxy beside that network", "172.32.3.4:5", []string{"198.51.100.7"}, "172.32.3.4"},
		{"a proxy with a zone", "[fd00::1%eth0]:5", []string{"198.51.100.7"}, "198.51.100.7"},
		{"a peer without an IP address", "@", nil, "invalid IP"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := httptest.NewRequest("GET", "/", nil)
			r.RemoteAddr = c.peer
			r.Header["X-Forwarded-For"] = c.forwarded
			expect.Equal(t, trusted.Client(r).String(), c.want, "")
		})
	}
}

// Promises: counted-by
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
