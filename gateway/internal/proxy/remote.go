package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

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
