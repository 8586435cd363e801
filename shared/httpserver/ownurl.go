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

// OwnURL returns the URL at which programs on the same machine reach a listener. It returns "" for an address that is
// not a host and a port, and for an address with a zone.
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
