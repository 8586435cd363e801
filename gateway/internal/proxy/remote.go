package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"asset-registry/gateway/internal/stream"
	"asset-registry/shared/faulthttp"
	"asset-registry/shared/follow"
	"asset-registry/shared/httpserver"
)

// remote forwards requests over the network. It drops the headers of an answer that are only about the connection.
type remote struct {
	transport http.RoundTripper
	pace      httpserver.Pace
	isReady   func() bool // reports whether all servers of the service are ready
}

// ErrCut is returned if an answer ended before it was complete. The status was already sent. So the client notices
// the error only if the connection ends.
var ErrCut = errors.New("the answer was cut off")

// errSignature is the cause that the log shows if the asset service answers 401. The gateway has already
// checked the API key, so the 401 means that the asset service refuses the gateway's signature.
var errSignature = errors.New("the asset service refuses this gateway's signature: " +
	"do both have the same secret, and clocks that agree?")

func (p remote) forward(w http.ResponseWriter, r *http.Request) error {
	_, isTimed := r.Context().Deadline()
	end := func() {}
	if !isTimed {
		var cancel context.CancelCauseFunc
		r, end, cancel = watch(r, p.isReady)
		defer cancel(nil)
		defer end()
	}
	resp, err := p.transport.RoundTrip(r)
	end()
	if err != nil && errors.Is(context.Cause(r.Context()), errSilent) {
		err = fmt.Errorf("%w: %w", errSilent, err)
	}
	if err != nil {
		return unavailable(err)
	}
	defer resp.Body.Close() // its error has no meaning: the whole body was read, or reading has failed already
	if resp.StatusCode == http.StatusUnauthorized {
		return unavailable(errSignature)
	}
	removeHopByHop(resp.Header)
	httpserver.ReceiveWork(r.Context(), resp.Header)
	header := w.Header()
	for name, values := range resp.Header {
		if _, set := header[name]; !set { // a header that the gateway has set wins
			header[name] = values
		}
	}
	w.WriteHeader(resp.StatusCode)
	if err := p.pass(w, resp, isTimed); err != nil {
		return fmt.Errorf("%w: %w", ErrCut, err)
	}
	for name, values := range resp.Trailer {
		header[http.TrailerPrefix+name] = values
	}
	return nil
}

// hopByHop has the headers that are about the connection (RFC 9110, 7.6.1).
var hopByHop = []string{
	"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Connection",
	"Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

// removeHopByHop removes the headers that are about the connection, and the headers that Connection names.
func removeHopByHop(header http.Header) {
	for _, names := range header["Connection"] {
		for name := range strings.SplitSeq(names, ",") {
			header.Del(strings.TrimSpace(name))
		}
	}
	for _, name := range hopByHop {
		delete(header, name)
	}
}

// pass copies the body. If the length of the body is unknown, it flushes each part. If the body is large or its length
// is unknown, it is sent at the client's pace. Sending may then go on after the deadline of the request, because the
// deadline only limits the time for making the answer. A service that is silent instead of the client ends the answer.
func (p remote) pass(w http.ResponseWriter, resp *http.Response, isTimed bool) error {
	var to io.Writer = w
	size := resp.ContentLength
	isLarge := size < 0 || size > int64(p.pace.Bytes)
	if isLarge {
		to = httpserver.NewSender(w, p.pace)
	}
	body, outlasts := resp.Body.(interface{ Outlast(time.Time) })
	outlasts = outlasts && (isLarge || !isTimed)
	buffer := buffers.Get().(*[bufferSize]byte)
	defer buffers.Put(buffer)
	for end := time.Now().Add(p.pace.All); ; {
		if outlasts {
			body.Outlast(earlier(time.Now().Add(silence), end))
		}
		n, err := resp.Body.Read(buffer[:])
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return err
			}
			if size < 0 {
				if err := http.NewResponseController(w).Flush(); err != nil {
					return err
				}
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

const bufferSize = 16 << 10

// buffers has buffers for the method `pass`.
var buffers = sync.Pool{New: func() any { return new([bufferSize]byte) }}

const pageWithin = 10 * time.Second // the answer with a page must begin within this time

func (u *Upstream) Page(ctx context.Context, s stream.Selection, offset string, limit int) (io.ReadCloser, error) {
	query := feedQuery(s)
	query.Set("limit", strconv.Itoa(limit))
	if offset != "" {
		query.Set("offset", offset)
	}
	body, err := u.feed(ctx, follow.PagePath(s.Version), query, pageWithin)
	if err != nil {
		return nil, err
	}
	body.timer.Reset(httpserver.DefaultPace.All)
	return body, nil
}

func (u *Upstream) Live(ctx context.Context, s stream.Selection) (io.ReadCloser, error) {
	body, err := u.feed(ctx, follow.LivePath(s.Version), feedQuery(s), silence)
	if err != nil {
		return nil, err
	}
	body.renew = silence
	return body, nil
}

// feed asks the asset service for a part of the feed. The argument "within" is the longest time until the answer
// begins. After this time, the timer in the returned body ends the request.
func (u *Upstream) feed(ctx context.Context, path string, query url.Values, within time.Duration) (*feedBody, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	body := &feedBody{cancel: cancel, timer: time.AfterFunc(within, func() { cancel(errSilent) })}
	resp, err := u.send(ctx, u.streams, http.MethodGet, &url.URL{Path: path, RawQuery: query.Encode()})
	if err != nil {
		body.end()
		return nil, err
	}
	body.ReadCloser = resp.Body
	if resp.StatusCode != http.StatusOK {
		defer body.Close()
		return nil, refusal(resp)
	}
	return body, nil
}

func feedQuery(s stream.Selection) url.Values {
	query := url.Values{}
	if s.Mode != "" {
		query.Set("mode", s.Mode)
	}
	if s.Fields != "" {
		query.Set("opt_fields", s.Fields)
	}
	return query
}

// refusal returns the fault in an answer of the asset service.
func refusal(resp *http.Response) error {
	if resp.StatusCode == http.StatusUnauthorized {
		return unavailable(errSignature)
	}
	return faulthttp.Read(resp)
}

// feedBody is the body of an answer. The request ends when the body is closed, or when its timer expires.
type feedBody struct {
	io.ReadCloser
	cancel context.CancelCauseFunc
	timer  *time.Timer
	renew  time.Duration // each Read may take this time; 0: the timer is for the whole body
}

func (b *feedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.renew > 0 && n > 0 {
		b.timer.Reset(b.renew)
	}
	if err != nil && err != io.EOF {
		err = fmt.Errorf("read the feed: %w", err)
	}
	return n, err
}

func (b *feedBody) Close() error {
	err := b.ReadCloser.Close()
	b.end()
	return err
}

// end ends the request.
func (b *feedBody) end() {
	b.timer.Stop()
	b.cancel(nil)
}
