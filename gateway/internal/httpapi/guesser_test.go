package httpapi

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"asset-registry/shared/clientaddr"
	"asset-registry/shared/keyring"
	"asset-registry/shared/testing/expect"
)

// TestEverNewOriginsAreFewGuessers sends wrong keys from many pages at two addresses. The pages of an address must be
// few networks of one prefix, which no page of the other address has.
func TestEverNewOriginsAreFewGuessers(t *testing.T) {
	a := &API{config: Config{Secrets: keyring.Ring{bytes.Repeat([]byte{1}, keyring.MinLength)}}}
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	one, other := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")
	expect.Equal(t, a.guesserOf(r, one), one, "without an origin")
	networks, prefixes := map[netip.Addr]bool{}, map[netip.Prefix]int{}
	for n := range 10_000 {
		r.Header.Set("Origin", fmt.Sprintf("https://%d.example", n))
		for i, addr := range []netip.Addr{one, other} {
			guesser := a.guesserOf(r, addr)
			networks[clientaddr.Network(guesser)] = true
			if was, known := prefixes[clientaddr.Prefix(guesser)]; known && was != i {
				t.Fatalf("origin %d: got the prefix of another address", n)
			}
			prefixes[clientaddr.Prefix(guesser)] = i
		}
	}
	if len(networks) > 512 || len(networks) < 500 || len(prefixes) != 2 {
		t.Errorf("got %d networks of %d prefixes, want 512 of 2", len(networks), len(prefixes))
	}
}
