package proxy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"asset-registry/shared/faulthttp"
	"asset-registry/shared/httpserver"
)

// remote passes requests on over the network, and answers back: as they come,
// without headers that end here.
type remote struct {
	transport http.RoundTripper
	pace      httpserver.Pace
	fail      func(*http.Request, error) // is told, for the log, why an answer did not come
}

// errNotOurs is for the log: keys are checked here, so a service behind that
// finds something unauthorized does not take our signature.
var errNotOurs = errors.New("the asset service does not take this gateway's identity: do they have the same secret?")

func (p remote) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	resp, err := p.transport.RoundTrip(r)
	if err != nil {
		p.refuse(w, r, err)
		return
	}
	defer resp.Body.Close() // what it returns is of no use: all that matters was read
	if resp.StatusCode == http.StatusUnauthorized {
		p.refuse(w, r, errNotOurs)
		return
	}
	endHere(resp.Header)
	header := w.Header()
	for name, values := range resp.Header {
		if _, said := header[name]; !said { // the edge's own word counts
			header[name] = values
		}
	}
	w.WriteHeader(resp.StatusCode)
	if err := p.pass(w, resp); err != nil {
		if r.Context().Err() == nil {
			p.fail(r, err)
		}
		// The answer has begun: that it is not whole can only be told by
		// ending the connection.
		panic(http.ErrAbortHandler)
	}
	for name, values := range resp.Trailer {
		header[http.TrailerPrefix+name] = values
	}
}

func (p remote) refuse(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(r.Context().Err(), context.Canceled) { // no fault of the upstream, and nobody is left to answer
		w.WriteHeader(httpserver.StatusClientGone)
		return
	}
	p.fail(r, err)
	faulthttp.Write(w, unavailable())
}

// hopByHop are headers that end at the next hop (RFC 9110, 7.6.1).
var hopByHop = []string{"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade"}

// endHere takes away the headers that do, with those that Connection names.
func endHere(header http.Header) {
	for _, names := range header["Connection"] {
		for name := range strings.SplitSeq(names, ",") {
			header.Del(strings.TrimSpace(name))
		}
	}
	for _, name := range hopByHop {
		delete(header, name)
	}
}

// pass copies the body, each part at once if nobody knows how much is to come.
// A large one is copied at the client's pace, with a time of its own: the
// request's deadline is for making it.
func (p remote) pass(w http.ResponseWriter, resp *http.Response) error {
	var to io.Writer = w
	if size := resp.ContentLength; size < 0 || size > int64(p.pace.Bytes) {
		to = httpserver.NewSender(w, p.pace)
		if body, ok := resp.Body.(interface{ Outlast(time.Time) }); ok {
			body.Outlast(time.Now().Add(p.pace.All))
		}
	}
	buffer := buffers.Get().(*[bufferSize]byte)
	defer buffers.Put(buffer)
	for {
		n, err := resp.Body.Read(buffer[:])
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return err
			}
			if resp.ContentLength < 0 {
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

const bufferSize = 16 << 10

// buffers is the memory that bodies are copied through.
var buffers = sync.Pool{New: func() any { return new([bufferSize]byte) }}
