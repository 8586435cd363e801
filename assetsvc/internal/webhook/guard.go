package webhook

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"syscall"
	"time"

	"code.dny.dev/ssrf"
)

// maxURL is the most bytes of an endpoint's address.
const maxURL = 2000

// Policy says which addresses get messages. The zero value allows public addresses over
// https only.
type Policy struct {
	Networks []netip.Prefix // networks that are allowed although they are not public
	HTTP     bool           // "http" is allowed too
}

// errNotPublic is returned for an address that the policy refuses. It also stands for a
// name that does not resolve, so that nobody can explore the names of a private network.
var errNotPublic = errors.New("the address is not public, or its name does not resolve")

// metadataPrefix is a public address by which machines of a provider get their secrets
// (Azure). The others are in ranges that are not public.
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
	return ssrf.New(ssrf.WithAnyPort(), ssrf.WithAllowedV4Prefixes(v4...), ssrf.WithAllowedV6Prefixes(v6...),
		ssrf.WithDeniedV4Prefixes(metadataPrefix))
}

// CheckURL returns an error, which says what is wrong, for an address to which the policy
// lets nothing be sent. It resolves no names: the sender checks the addresses of each
// connection.
func CheckURL(text string, p Policy) error {
	if len(text) > maxURL {
		return fmt.Errorf("the address has %d characters; at most %d are accepted", len(text), maxURL)
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return errors.New("this is not an address, such as https://example.org/path") // err may quote a password
	case u.Scheme != "https" && !(p.HTTP && u.Scheme == "http"):
		return errors.New(`the address must begin with "https://"`)
	case u.User != nil:
		return errors.New("the address must have no user name and no password")
	case u.Fragment != "":
		return errors.New(`the address must have no "#"`)
	case u.Hostname() == "":
		return errors.New("the address has no host")
	}
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil && p.guardian().SafeAddr(ip.Unmap()) != nil {
		return errors.New("the address is not public")
	}
	return nil
}

const (
	answerWithin  = 15 * time.Second // from the first byte of DNS to the last of the answer
	connectWithin = 5 * time.Second
	maxAnswer     = 4 << 10  // bytes of an answer's body that are read
	maxHeaders    = 16 << 10 // bytes of an answer's headers
	window        = 64 << 10 // bytes that a receiver may send before they are read (HTTP/2)
	idleFor       = 2 * time.Minute
)

// newTransport returns a transport that connects to what the policy allows only,
// whatever a name resolves to at that moment. It follows no redirect, uses no proxy and
// keeps no cookie.
func newTransport(p Policy, resolver *net.Resolver) *http.Transport {
	guardian := p.guardian()
	dialer := &net.Dialer{
		Timeout: connectWithin, Resolver: resolver,
		ControlContext: func(_ context.Context, network, address string, c syscall.RawConn) error {
			if err := guardian.Safe(network, address, c); err != nil {
				return errNotPublic
			}
			return nil
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
