package main

import (
	"fmt"
	"net"
	"net/netip"

	"asset-registry/shared/command"
)

// listen listens on a TCP address. If the host is a network, as in
// "10.230.0.0/24:8083", it listens only on this machine's own address in the network.
// Machines outside the network therefore cannot connect. It fails if the machine has no
// address in the network.
func listen(addr string) (net.Listener, error) {
	const flag = "--admin-addr"
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	if network, err := netip.ParsePrefix(host); err == nil {
		own, err := addressIn(network)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", flag, err)
		}
		addr = net.JoinHostPort(own.String(), port)
	}
	return command.Listen(flag, addr)
}

// addressIn returns the first address of this machine in a network.
func addressIn(network netip.Prefix) (netip.Addr, error) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return netip.Addr{}, fmt.Errorf("read this machine's addresses: %w", err)
	}
	for _, a := range all {
		if own, err := netip.ParsePrefix(a.String()); err == nil && network.Contains(own.Addr()) {
			return own.Addr(), nil
		}
	}
	return netip.Addr{}, fmt.Errorf("this machine has no address in %s", network)
}
