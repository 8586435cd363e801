// Package clientaddr determines the address of a request's client.
package clientaddr

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Proxies are the networks of trusted proxies. Their X-Forwarded-For headers
// name the real client.
type Proxies []netip.Prefix

func (p Proxies) contain(addr netip.Addr) bool {
	return slices.ContainsFunc(p, func(network netip.Prefix) bool { return network.Contains(addr) })
}

// Client returns the address of a request's client. It reads X-Forwarded-For
// from the right, as long as a trusted proxy wrote the entry: a client can forge
// the entries further left. For a request without a network connection it
// returns the zero address. No other code determines the client.
func (p Proxies) Client(r *http.Request) netip.Addr {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	addr := peer.Addr().Unmap()
	if !p.contain(addr) {
		return addr
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for len(hops) > 0 && p.contain(addr) {
		forwarded, err := netip.ParseAddr(strings.TrimSpace(hops[len(hops)-1]))
		if err != nil {
			break
		}
		addr, hops = forwarded.Unmap(), hops[:len(hops)-1]
	}
	return addr
}

// Network returns the part of an address that belongs to one client: a whole IPv4
// address, or the /64 network of an IPv6 address.
func Network(addr netip.Addr) netip.Addr {
	if addr.Is6() {
		if network, err := addr.WithZone("").Prefix(64); err == nil {
			return network.Addr()
		}
	}
	return addr
}
