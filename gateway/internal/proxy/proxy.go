// Package proxy forwards requests to the asset service, over the network or
// within the process, and makes sure that what arrives there says only what
// the edge has found out, not what a client has claimed.
package proxy

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"asset-registry/shared/fault"
	"asset-registry/shared/faulthttp"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/identity"
	"asset-registry/shared/telemetry"
)

// tokenHeader and tokenParameter carry an owner token (interface document,
// Authentication).
const (
	tokenHeader    = "X-Access-Token"
	tokenParameter = "acc_token"
)

// Upstream is the asset service. It is safe for concurrent use.
type Upstream struct {
	forward   func(http.ResponseWriter, *http.Request) error
	transport http.RoundTripper
	signer    *identity.Signer
}

// Local returns an upstream in the same process.
func Local(handler http.Handler, signer *identity.Signer) *Upstream {
	forward := func(w http.ResponseWriter, r *http.Request) error {
		handler.ServeHTTP(w, r)
		return nil
	}
	return &Upstream{forward: forward, transport: telemetry.Transport(httpserver.InProcess(handler)), signer: signer}
}

// Remote returns an upstream that a transport leads to.
func Remote(transport http.RoundTripper, signer *identity.Signer) *Upstream {
	transport = telemetry.Transport(transport)
	return &Upstream{forward: remote{transport, httpserver.DefaultPace}.forward, transport: transport, signer: signer}
}

// Request is what the edge has found out about a request.
type Request struct {
	Path    string // of the upstream
	Caller  identity.Identity
	Client  string // its address; "" if it has none
	BaseURL string // that the public knows the registry by
	Seed    string // of a creation that may be repeated, a secret; "" of anything else
}

// Forward passes a request on and its answer back. Without an answer it returns
// a fault of kind Unavailable, with the cause. ErrCut says that the answer was
// not whole.
func (u *Upstream) Forward(w http.ResponseWriter, r *http.Request, about Request) error {
	if err := u.prepare(r, about); err != nil {
		return err
	}
	return u.forward(w, r)
}

// Get sends a GET in nobody's name. It returns the fault that the upstream
// answers with, one of kind NotFound if nothing is at the path.
func (u *Upstream) Get(ctx context.Context, path string) error {
	resp, err := u.send(ctx, http.MethodGet, path)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return faulthttp.Read(resp)
}

// Missing returns the upstream's fault of kind NotFound if nothing is at a path,
// else nil. The object itself does not travel: HEAD asks whether it exists. An
// answer to HEAD has no body, so the fault is asked for with GET.
func (u *Upstream) Missing(ctx context.Context, path string) error {
	resp, err := u.send(ctx, http.MethodHead, path)
	if err != nil {
		return err
	}
	if err := resp.Body.Close(); err != nil || resp.StatusCode != http.StatusNotFound {
		return err
	}
	return u.Get(ctx, path)
}

func (u *Upstream) send(ctx context.Context, method, path string) (*http.Response, error) {
	to := url.URL{Scheme: "http", Host: "assetsvc", Path: path}
	r, err := http.NewRequestWithContext(ctx, method, to.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("address asset service: %w", err)
	}
	if err := u.prepare(r, Request{Path: path}); err != nil {
		return nil, err
	}
	resp, err := u.transport.RoundTrip(r)
	if err != nil {
		return nil, unavailable(err)
	}
	return resp, nil
}

// unavailable is the fault of an asset service that did not answer; cause is
// for the log.
func unavailable(cause error) error {
	f := fault.New(fault.Unavailable, fault.URL, "registry", "The registry cannot be reached now; repeat the request.")
	return fmt.Errorf("%w: %w", f, cause)
}

// stripped are headers that a client's word counts for nothing in, or that
// are nobody's business behind the edge; X-Forwarded-* are too.
var stripped = []string{
	"Authorization", "Cookie", "Expect", "Forwarded", "X-Real-Ip",
	"Connection", "Keep-Alive", "Proxy-Authorization", "Proxy-Connection", "Te", "Trailer", "Upgrade",
}

func (u *Upstream) prepare(r *http.Request, about Request) error {
	// What Connection names ends here (RFC 9110, 7.6.1). It goes before our own
	// headers are set: a client must not name those.
	for _, names := range r.Header["Connection"] {
		for name := range strings.SplitSeq(names, ",") {
			r.Header.Del(strings.TrimSpace(name))
		}
	}
	for name := range r.Header {
		if strings.HasPrefix(name, "X-Forwarded-") || slices.Contains(stripped, name) {
			delete(r.Header, name)
		}
	}
	signed, err := u.signer.Sign(about.Caller)
	if err != nil {
		return err
	}
	r.Header.Set(identity.Header, signed)
	r.Header.Set(httpserver.BaseURLHeader, about.BaseURL)
	if about.Seed != "" {
		r.Header.Set(httpserver.SeedHeader, about.Seed)
	}
	if about.Client != "" {
		r.Header.Set(httpserver.ClientHeader, about.Client)
	}
	r.Header.Set(httpserver.RequestIDHeader, httpserver.RequestID(r.Context()))
	httpserver.SetTimeout(r.Context(), r.Header)
	telemetry.Inject(r.Context(), r.Header)
	r.URL.Path, r.URL.RawPath = about.Path, ""
	query, token := takeToken(r.URL.RawQuery)
	r.URL.RawQuery = query
	if token != "" { // the query wins over the header (contract, section 6.3)
		r.Header.Set(tokenHeader, fieldValue(token))
	}
	r.RequestURI = r.URL.RequestURI()
	return nil
}

// takeToken takes the owner token out of a query, so that it stands in no
// address behind the edge, and leaves the rest as it is to the byte. The first
// token that is not empty counts.
func takeToken(query string) (rest, token string) {
	if !strings.Contains(query, "acc") && !strings.Contains(query, "%") {
		return query, ""
	}
	var kept []string
	for part := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(part, "=")
		if name, err := url.QueryUnescape(name); err != nil || name != tokenParameter {
			kept = append(kept, part)
			continue
		}
		if text, err := url.QueryUnescape(value); token == "" && err == nil {
			token = text
		}
	}
	return strings.Join(kept, "&"), token
}

// fieldValue returns a token in a form that a header can carry (RFC 9110, 5.5).
// No token of ours has blanks or control characters; one that does must arrive,
// and arrive wrong: lost or trimmed, it would give way to another, or be right.
func fieldValue(token string) string {
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return url.QueryEscape(token)
	}
	return token
}
