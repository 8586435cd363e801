package httpserver

import (
	"net"
	"net/netip"
)

// Scheme returns the scheme of addresses at a listener with this certificate.
func (c Certificate) Scheme() string {
	if c.Cert != "" {
		return "https"
	}
	return "http"
}

// OwnURL returns the URL of a listener as its machine reaches it. It returns "" for
// an address that is no host with a port, and for one with a zone.
func OwnURL(scheme, addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return ""
	}
	switch own, err := netip.ParseAddr(host); {
	case host == "" || err == nil && own.IsUnspecified():
		host = "127.0.0.1"
	case own.Zone() != "":
		return ""
	}
	return scheme + "://" + net.JoinHostPort(host, port)
}
