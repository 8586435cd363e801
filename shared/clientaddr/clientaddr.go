// Package clientaddr tells whose a request is by its address.
package clientaddr

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Proxies are the networks of the proxies that are trusted to say who stands
// behind them.
type Proxies []netip.Prefix

func (p Proxies) trust(addr netip.Addr) bool {
	return slices.ContainsFunc(p, func(network netip.Prefix) bool { return network.Contains(addr) })
}

// Client returns the address of a request's client, for the limits, the log and
// whoever else asks: nothing else in the registry finds it out. X-Forwarded-For is read
// from the right, for as long as trusted proxies have written it: what stands
// further left anybody may have invented.
func (p Proxies) Client(r *http.Request) netip.Addr {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{} // no network connection: all such clients are one
	}
	addr := peer.Addr().Unmap()
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for len(hops) > 0 && p.trust(addr) {
		said, err := netip.ParseAddr(strings.TrimSpace(hops[len(hops)-1]))
		if err != nil {
			break
		}
		addr, hops = said.Unmap(), hops[:len(hops)-1]
	}
	return addr
}

// Network is the part of an address that one client is sure to have alone: all of
// an IPv4 address, the /64 of an IPv6 one.
func Network(addr netip.Addr) netip.Addr {
	if addr.Is6() {
		if network, err := addr.WithZone("").Prefix(64); err == nil {
			return network.Addr()
		}
	}
	return addr
}
