package webhook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"syscall"
	"time"

	"code.dny.dev/ssrf"
)

// maxURL is the longest address of an endpoint, in bytes.
const maxURL = 2000

// Policy says to which addresses messages may be sent. The zero value allows public addresses over https only.
type Policy struct {
	Networks []netip.Prefix // networks that are allowed although they are not public
	HTTP     bool           // "http" is allowed too

	// OwnPorts are the ports at which the registry itself listens, if all its listeners are on loopback addresses. Then
	// http://127.0.0.1 is allowed with any other port. Empty: it is not allowed.
	OwnPorts []uint16
}

var thisMachine = netip.MustParseAddr("127.0.0.1")

// errOwnPort is returned for an address at which the registry itself listens.
var errOwnPort = errors.New("the registry itself listens at this port")

// errNotPublic is returned for an address that the policy refuses. It is also returned for a name that does not
// resolve, so that nobody can find out the names of a private network.
var errNotPublic = errors.New("the address is not public, or its name does not resolve")

// metadataPrefix is a public address at which virtual machines in Azure get their secrets. Other providers use
// addresses that are not public.
var metadataPrefix = netip.MustParsePrefix("168.63.129.16/32")

// guardian returns the rules for the addresses of connections.
func (p Policy) guardian() *ssrf.Guardian {
	var v4, v6 []netip.Prefix
	for _, n := range p.Networks {
		if n.Addr().Is4() {
			v4 = append(v4, n)
		} else {
			v6 = append(v6, n)
		}
	}
	if len(p.OwnPorts) > 0 {
		v4 = append(v4, netip.PrefixFrom(thisMachine, thisMachine.BitLen()))
	}
	return ssrf.New(ssrf.WithAnyPort(), ssrf.WithAllowedV4Prefixes(v4...), ssrf.WithAllowedV6Prefixes(v6...),
		ssrf.WithDeniedV4Prefixes(metadataPrefix))
}

// CheckURL returns an error that says why nothing may be sent to an address. It returns nil for an allowed
// address. It resolves no names, because the sender checks the addresses of each connection.
func CheckURL(text string, p Policy) error {
	if len(text) > maxURL {
		return fmt.Errorf("the address has %d characters; at most %d are accepted", len(text), maxURL)
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return errors.New("this is not an address, such as https://example.org/path") // err may quote a password
	case u.Scheme != "https" && !(u.Scheme == "http" && (p.HTTP || p.isLocal(u))):
		return errors.New(`the address must begin with "https://"; the operator permits others with --webhook-http`)
	case u.User != nil:
		return errors.New("the address must have no user name and no password")
	case u.Fragment != "":
		return errors.New(`the address must have no "#"`)
	case u.Hostname() == "":
		return errors.New("the address has no host")
	}
	ip, err := netip.ParseAddr(u.Hostname())
	if err != nil {
		return nil
	}
	if p.guardian().SafeAddr(ip.Unmap()) != nil {
		return errors.New("the address is not public; the operator permits networks with --webhook-networks")
	}
	port := cmp.Or(u.Port(), map[string]string{"http": "80"}[u.Scheme], "443")
	at, err := netip.ParseAddrPort(net.JoinHostPort(ip.Unmap().String(), port))
	if err != nil {
		return errors.New("the address has no port from 1 to 65535")
	}
	return p.checkPort(at)
}

// isLocal reports whether an address is one of this machine that a sandbox permits.
func (p Policy) isLocal(u *url.URL) bool {
	return len(p.OwnPorts) > 0 && u.Hostname() == thisMachine.String()
}

// checkPort returns errOwnPort for a listener of the registry on a loopback address.
func (p Policy) checkPort(at netip.AddrPort) error {
	if at.Addr().Unmap().IsLoopback() && slices.Contains(p.OwnPorts, at.Port()) {
		return errOwnPort
	}
	return nil
}

const (
	answerWithin  = 15 * time.Second // longest time from the start of the DNS query to the last byte of the answer
	connectWithin = 5 * time.Second
	maxAnswer     = 4 << 10  // maximum number of bytes that are read from an answer's body
	maxHeaders    = 16 << 10 // maximum number of bytes of an answer's headers
	window        = 64 << 10 // maximum number of bytes that a receiver may send before the sender reads them (HTTP/2)
	idleFor       = 2 * time.Minute
)

// newTransport returns a transport that connects only to addresses that the policy allows. It resolves a name
// when it connects, and checks the resulting address then. It follows no redirect, uses no proxy and keeps no
// cookie.
func newTransport(p Policy, resolver *net.Resolver) *http.Transport {
	guardian := p.guardian()
	dialer := &net.Dialer{
		Timeout: connectWithin, Resolver: resolver,
		ControlContext: func(_ context.Context, network, address string, c syscall.RawConn) error {
			if err := guardian.Safe(network, address, c); err != nil {
				return errNotPublic
			}
			at, err := netip.ParseAddrPort(address)
			return errors.Join(err, p.checkPort(at))
		},
	}
	return &http.Transport{
		DialContext:            dialer.DialContext,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true,
		TLSHandshakeTimeout:    connectWithin,
		MaxResponseHeaderBytes: maxHeaders,
		IdleConnTimeout:        idleFor,
		MaxIdleConns:           maxSlots,
		MaxIdleConnsPerHost:    maxSlots,
		HTTP2:                  &http.HTTP2Config{MaxReceiveBufferPerStream: window, MaxReceiveBufferPerConnection: window},
	}
}
