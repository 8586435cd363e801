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
	return slices.ContainsFunc(p, func(network netip.Prefix) bool { return Contains(network, addr) })
}

// Contains reports whether an address is in a network. An IPv4 address and network may be written as IPv6
// (::ffff:192.0.2.0/120), and the zone of an address is ignored.
func Contains(network netip.Prefix, addr netip.Addr) bool {
	const mapped = 96 // bits before the IPv4 address in its IPv6 form
	if network.Addr().Is4In6() && network.Bits() >= mapped {
		network = netip.PrefixFrom(network.Addr().Unmap(), network.Bits()-mapped)
	}
	return network.Contains(addr.Unmap().WithZone(""))
}

// Trust reports whether the peer of a request is a trusted proxy, so that its headers count.
func (p Proxies) Trust(r *http.Request) bool {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && p.contain(peer.Addr())
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
		forwarded, err := parseHop(strings.TrimSpace(hops[len(hops)-1]))
		if err != nil {
			break
		}
		addr, hops = forwarded.Unmap(), hops[:len(hops)-1]
	}
	return addr
}

// parseHop returns the address of an entry of X-Forwarded-For. Some proxies add the port, and then
// put an IPv6 address in brackets.
func parseHop(text string) (netip.Addr, error) {
	if withPort, err := netip.ParseAddrPort(text); err == nil {
		return withPort.Addr(), nil
	}
	return netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(text, "["), "]"))
}

// Prefix returns the network of many clients around an address: /16 of IPv4, /32 of IPv6. Clients that a full table
// does not keep count together with others of their prefix.
func Prefix(addr netip.Addr) netip.Prefix {
	bits := 32
	if addr.Is4() {
		bits = 16
	}
	prefix, _ := addr.Prefix(bits) // only the zero address has none
	return prefix
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
