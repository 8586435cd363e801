// Package proxy forwards requests to the asset service, over the network or within the process. It removes
// headers with which a client could claim to be somebody else, and adds what the gateway knows about the
// client.
package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"asset-registry/shared/fault"
	"asset-registry/shared/faulthttp"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/identity"
	"asset-registry/shared/telemetry"
)

// A client sends an owner token in this header or in this query parameter (docs/contract.md, "Owner tokens").
// The asset service always gets it in the header.
const (
	tokenHeader    = "X-Access-Token"
	tokenParameter = "acc_token"
)

// Upstream is the asset service. It is safe for concurrent use.
type Upstream struct {
	forward   func(http.ResponseWriter, *http.Request) error
	transport http.RoundTripper
	streams   http.RoundTripper // passes an answer on while it arrives
	signer    *identity.Signer
	remote    bool   // the asset service is called over the network
	caller    string // value of httpserver.CallerHeader; "": none
}

// Local returns an asset service that runs in this process.
func Local(handler http.Handler, signer *identity.Signer) *Upstream {
	forward := func(w http.ResponseWriter, r *http.Request) error {
		handler.ServeHTTP(w, r)
		return nil
	}
	return &Upstream{
		forward:   forward,
		transport: telemetry.Transport(httpserver.InProcess(handler)),
		streams:   httpserver.InProcessStream(handler),
		signer:    signer,
	}
}

// Remote returns an asset service that is called through a transport.
func Remote(transport http.RoundTripper, signer *identity.Signer) *Upstream {
	traced := telemetry.Transport(transport)
	return &Upstream{
		forward: remote{traced, httpserver.DefaultPace, isReady(transport)}.forward, transport: traced, streams: transport,
		signer: signer, remote: true,
	}
}

// isReady returns a function that reports whether all servers behind a transport are ready. It never does if the
// transport cannot tell.
func isReady(transport http.RoundTripper) func() bool {
	pool, _ := transport.(interface{ Ready() (ready, all int) })
	return func() bool {
		if pool == nil {
			return false
		}
		ready, all := pool.Ready()
		return ready == all
	}
}

// Patient returns the same service for long answers. An answer may take longer than the request's time limit
// while the client keeps the pace of downloads.
func (u *Upstream) Patient() *Upstream {
	patient := *u
	if u.remote {
		patient.forward = remote{u.transport, httpserver.DownloadPace, isReady(u.streams)}.forward
	}
	return &patient
}

// For returns the same service for requests of one caller, which package fair knows by this name.
func (u *Upstream) For(caller string) *Upstream {
	named := *u
	named.caller = caller
	return &named
}

// Request has what the gateway knows about a request.
type Request struct {
	Path    string // path of the request to the asset service
	Caller  identity.Identity
	Client  string // address of the client; "": not known
	BaseURL string // public address of the registry
	Seed    string // secret of a creation that can be repeated; "" for any other request
}

// Forward sends a request to the asset service and writes the answer to w. It changes r. If no answer comes, it
// writes nothing, and returns a fault of kind Unavailable that wraps the cause. If the answer breaks off, it
// returns ErrCut.
func (u *Upstream) Forward(w http.ResponseWriter, r *http.Request, about Request) error {
	if err := u.prepare(r, about); err != nil {
		return err
	}
	return u.forward(w, r)
}

// Get sends a GET as an anonymous caller. If the asset service answers with a fault, Get returns this fault;
// its kind is NotFound if the path does not exist.
func (u *Upstream) Get(ctx context.Context, path string) error {
	resp, err := u.send(ctx, u.transport, http.MethodGet, &url.URL{Path: path})
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return faulthttp.Read(resp)
}

// Read returns the answer to a GET of an anonymous caller. The argument `most` is the largest size of the answer,
// in bytes. If the service answers with a fault, Read returns this fault. A read gets no span in traces, because
// a file may need thousands of reads.
func (u *Upstream) Read(ctx context.Context, path string, query url.Values, most int64) ([]byte, error) {
	resp, err := u.send(ctx, u.streams, http.MethodGet, &url.URL{Path: path, RawQuery: query.Encode()})
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, refusal(resp)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, most+1))
	if err != nil {
		return nil, unavailable(err)
	}
	if int64(len(body)) > most {
		return nil, fmt.Errorf("the answer to %s has more than %d bytes", path, most)
	}
	return body, nil
}

// Missing returns the asset service's fault of kind NotFound if the path does not exist, and nil for any other
// answer. It first sends HEAD, so that no object is transferred. If the path does not exist, it also sends GET,
// because an answer to HEAD has no body with the fault.
func (u *Upstream) Missing(ctx context.Context, path string) error {
	resp, err := u.send(ctx, u.transport, http.MethodHead, &url.URL{Path: path})
	if err != nil {
		return err
	}
	if err := resp.Body.Close(); err != nil || resp.StatusCode != http.StatusNotFound {
		return err
	}
	return u.Get(ctx, path)
}

func (u *Upstream) send(
	ctx context.Context, transport http.RoundTripper, method string, to *url.URL,
) (*http.Response, error) {
	to.Scheme, to.Host = "http", "assetsvc"
	r, err := http.NewRequestWithContext(ctx, method, to.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("address asset service: %w", err)
	}
	if err := u.prepare(r, Request{Path: to.Path}); err != nil {
		return nil, err
	}
	resp, err := transport.RoundTrip(r)
	if err != nil {
		return nil, unavailable(err)
	}
	httpserver.ReceiveWork(ctx, resp.Header)
	return resp, nil
}

// unavailable returns the fault for an asset service that did not answer. Only the log shows the cause; the
// client does not see it.
func unavailable(cause error) error {
	f := fault.New(fault.Unavailable, fault.URL, "registry", "The registry cannot be reached now; repeat the request.")
	return fmt.Errorf("%w: %w", f, cause)
}

// removed has the headers of a client that the asset service does not get, in addition to X-Forwarded-*. Some of
// them contain secrets. With others, a client could make false claims. The rest are about the connection.
var removed = []string{
	"Authorization", "Cookie", "Expect", "Forwarded", "X-Real-Ip",
	"Connection", "Keep-Alive", "Proxy-Authorization", "Proxy-Connection", "Te", "Trailer", "Upgrade",
}

// prepare changes a client's request into a request to the asset service.
func (u *Upstream) prepare(r *http.Request, about Request) error {
	// The headers that Connection names must not be forwarded (RFC 9110, 7.6.1). They are removed before our
	// own headers are set: otherwise a client could remove our headers by naming them.
	for _, names := range r.Header["Connection"] {
		for name := range strings.SplitSeq(names, ",") {
			r.Header.Del(strings.TrimSpace(name))
		}
	}
	for name := range r.Header {
		if strings.HasPrefix(name, "X-Forwarded-") || slices.Contains(removed, name) {
			delete(r.Header, name)
		}
	}
	signed, err := u.signer.Sign(about.Caller)
	if err != nil {
		return err
	}
	values := [...]string{
		signed, about.BaseURL, httpserver.RequestID(r.Context()), about.Client, about.Seed, u.caller,
	}
	r.Header[identity.Header] = values[0:1:1]
	r.Header[httpserver.BaseURLHeader] = values[1:2:2]
	r.Header[httpserver.RequestIDHeader] = values[2:3:3]
	if about.Client != "" {
		r.Header[httpserver.ClientHeader] = values[3:4:4]
	}
	if about.Seed != "" {
		r.Header[httpserver.SeedHeader] = values[4:5:5]
	}
	delete(r.Header, httpserver.CallerHeader)
	if u.caller != "" {
		r.Header[httpserver.CallerHeader] = values[5:6:6]
	}
	httpserver.SetTimeout(r.Context(), r.Header)
	telemetry.Inject(r.Context(), r.Header)
	r.URL.Path, r.URL.RawPath = about.Path, ""
	query, token := takeToken(r.URL.RawQuery)
	r.URL.RawQuery = query
	if token != "" { // the token in the query wins over the token in the header
		r.Header.Set(tokenHeader, fieldValue(token))
	}
	r.RequestURI = r.URL.RequestURI()
	return nil
}

// takeToken removes the owner tokens from a query, so that no URL behind the gateway contains a secret. It
// returns the first token that is not empty. The rest of the query stays the same, byte for byte.
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

// fieldValue returns a token in a form that a header can carry (RFC 9110, 5.5). If the token has blanks or
// control characters, it is escaped. No valid token has them, so the asset service must get a wrong token. Without
// the header, the service would use a token in the body. Without the blanks, the token might be right.
func fieldValue(token string) string {
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return url.QueryEscape(token)
	}
	return token
}

const (
	// silence is how long a service may neither take a byte of a request nor give one of its answer (docs/contract.md,
	// "Limits"). It holds for requests without a deadline, and for answers that may outlast their deadline.
	// The live feed has the same bound.
	silence = 10 * time.Second

	// storing is how often a service that is ready may be silent after it took a whole body. It may store the body in a
	// bucket or on a disk that is slow. A service on a store that hangs ends the request by itself.
	storing = 4
)

// errSilent is the cause of the error when a service takes and sends nothing for too long.
var errSilent = errors.New("the service takes and sends nothing")

// vigil ends a request at a service that is silent. It has the body of the request: while the body is read from the
// client, the service has nothing to do, so the time stops.
type vigil struct {
	io.ReadCloser
	timer  *time.Timer
	taken  atomic.Bool // the service has the whole body
	cancel context.CancelCauseFunc
}

// watch returns a copy of a request that ends if the service is silent. The caller must call the function `end` once
// the answer begins, and the function `cancel` after the answer. The parameter `isReady` reports whether the service
// can do its work.
func watch(r *http.Request, isReady func() bool) (watched *http.Request, end func(), cancel context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(r.Context())
	v := &vigil{ReadCloser: r.Body, cancel: cancel}
	watched = r.WithContext(ctx)
	if r.Body != nil && r.Body != http.NoBody {
		watched.Body = v
	}
	left := storing
	v.timer = time.AfterFunc(silence, func() {
		if left--; left > 0 && v.taken.Load() && isReady() {
			v.timer.Reset(silence)
			return
		}
		cancel(errSilent)
	})
	return watched, func() { v.timer.Stop() }, cancel
}

func (v *vigil) Read(p []byte) (int, error) {
	v.timer.Stop()
	n, err := v.ReadCloser.Read(p)
	v.taken.Store(err == io.EOF)
	v.timer.Reset(silence)
	return n, err
}
