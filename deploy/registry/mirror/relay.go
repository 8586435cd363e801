package mirror

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"asset-registry/shared/failurelog"
	"asset-registry/shared/faulthttp"
	"asset-registry/shared/httpserver"
)

const (
	relayed     = 16       // concurrent requests to the origin
	relayBuffer = 32 << 10 // bytes
	mostRelayed = 32 << 20 // greatest size of an answer, in bytes
)

// relay forwards to the origin requests for data that a copy does not have: proofs, transfers, and assets that the
// copy lacks, such as drafts. The handler in the field "next" answers all other requests.
type relay struct {
	of     *url.URL
	to     http.RoundTripper
	within time.Duration // how long the origin may take until its answer begins
	has    func(id string) (bool, error)
	next   http.Handler
	turns  chan struct{}

	failures *failurelog.Log
}

func newRelay(of *url.URL, to http.RoundTripper, within time.Duration, log *slog.Logger) *relay {
	return &relay{of: of, to: to, within: within, turns: make(chan struct{}, relayed),
		failures: failurelog.New(log, "the mirror cannot ask the registry")}
}

// The method `before` returns a relay with the same settings. The new relay stands in front of the handler "next",
// which is the asset service of the mirror.
func (r *relay) before(next http.Handler, has func(id string) (bool, error)) *relay {
	relay := *r
	relay.next, relay.has = next, has
	return &relay
}

func (r *relay) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	there, err := r.isElsewhere(req.URL.Path)
	if err == nil && !there {
		r.next.ServeHTTP(w, req)
		return
	}
	if err == nil && !isPassable(req.URL) {
		err = unready("This mirror does not have this, and relays neither scripts nor downloads: ask the registry itself.")
	} else if err == nil {
		err = r.forward(w, req)
	}
	if err != nil {
		if req.Context().Err() == nil {
			r.failures.Failed(err)
		}
		faulthttp.Write(w, err)
	}
}

// isPassable reports whether the mirror may pass on the answer to a request. With opt_jsonp, the answer would be a
// script, which runs in the pages of the mirror. With "download", the answer would lead the client to another server.
func isPassable(u *url.URL) bool {
	query := u.Query()
	return !query.Has("opt_jsonp") && !query.Has("download")
}

// isElsewhere reports whether only the origin can answer a request to read this path.
func (r *relay) isElsewhere(path string) (bool, error) {
	segments := strings.Split(path, "/") // the segments are "", "api", version, kind, id, part
	switch {
	case len(segments) < 5 || segments[1] != "api":
		return false, nil
	case segments[3] == "transfers":
		return true, nil
	case segments[3] != "assets":
		return false, nil
	case len(segments) == 6 && segments[5] == "proof":
		return true, nil
	case !isID(segments[4]):
		return false, nil
	}
	has, err := r.has(segments[4])
	return !has, err
}

// isID reports whether a text has the form of an asset's id.
func isID(text string) bool { return len(text) == 32 && strings.Trim(text, "0123456789abcdef") == "" }

// The function `away` returns the fault for an origin that does not answer.
func away(cause error) error {
	const text = "This mirror does not have this, and cannot ask the registry for it now; repeat the request."
	return fmt.Errorf("%w: %w", unready(text), cause)
}

var (
	errBusy   = errors.New("too many requests to the registry are under way")
	errAnswer = errors.New("the registry refuses to answer")
)

// passedOn and passedBack are the headers that the relay copies from requests and from answers. The mirror
// itself sets the type of an answer and how long it may be cached, and redirects no client to another address.
var (
	passedOn   = []string{"Accept", "If-Match", "If-None-Match", httpserver.RequestIDHeader}
	passedBack = []string{"Content-Length", "Etag"}
)

const jsonType = "application/json"

// forward sends a request to the origin, and the answer to w. If it returns an error, it has written nothing.
func (r *relay) forward(w http.ResponseWriter, req *http.Request) error {
	select {
	case r.turns <- struct{}{}:
		defer func() { <-r.turns }()
	default:
		return away(errBusy)
	}
	ctx, cancel := context.WithCancel(req.Context())
	defer cancel()
	late := time.AfterFunc(r.within, cancel)
	defer late.Stop()
	target := r.of.JoinPath(req.URL.EscapedPath())
	target.RawQuery = req.URL.RawQuery
	out, err := http.NewRequestWithContext(ctx, req.Method, target.String(), nil)
	if err != nil {
		return away(err)
	}
	out.Header.Set("User-Agent", userAgent)
	out.Header.Set("Accept-Encoding", "identity") // no compression here: the mirror's gateway compresses
	pass(out.Header, req.Header, passedOn)
	resp, err := r.to.RoundTrip(out)
	if err != nil {
		return away(err)
	}
	defer resp.Body.Close()
	if !late.Stop() || !isAnswer(out, resp) {
		return away(fmt.Errorf("%w: status %d with %.80q", errAnswer, resp.StatusCode, resp.Header.Get("Content-Type")))
	}
	pass(w.Header(), resp.Header, passedBack)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-cache")
	if resp.StatusCode >= http.StatusBadRequest {
		w.Header().Set("Cache-Control", "no-store")
	}
	if resp.StatusCode != http.StatusNotModified {
		w.Header().Set("Content-Type", jsonType)
	}
	w.WriteHeader(resp.StatusCode)
	sender, body := httpserver.NewSender(w, httpserver.DefaultPace), http.MaxBytesReader(nil, resp.Body, mostRelayed)
	if _, err := io.CopyBuffer(sender, body, make([]byte, relayBuffer)); err != nil {
		panic(http.ErrAbortHandler) // break the connection, so that the client sees an incomplete answer
	}
	return nil
}

// isAnswer reports whether the mirror may pass an answer on. The status must depend only on the request, unlike 429
// and 503, and fit its conditions. The body must be JSON. An answer with the status 304 has no body.
func isAnswer(asked *http.Request, resp *http.Response) bool {
	switch isGuarded := asked.Header.Get("If-Match") != ""; {
	case resp.StatusCode == http.StatusNotModified:
		return asked.Header.Get("If-None-Match") != ""
	case resp.StatusCode == http.StatusPreconditionFailed && !isGuarded:
		return false
	}
	kind, parameters, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	charset := parameters["charset"]
	isJSON := err == nil && kind == jsonType && (charset == "" || strings.EqualFold(charset, "utf-8"))
	isPlain := resp.Header.Get("Content-Encoding") == ""
	return isJSON && isPlain && slices.Contains([]int{
		http.StatusOK, http.StatusBadRequest, http.StatusNotFound, http.StatusPreconditionFailed,
	}, resp.StatusCode)
}

func pass(to, from http.Header, names []string) {
	for _, name := range names {
		if values := from.Values(name); len(values) > 0 {
			to[http.CanonicalHeaderKey(name)] = slices.Clone(values)
		}
	}
}
