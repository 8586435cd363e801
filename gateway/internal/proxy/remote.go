package proxy

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"asset-registry/shared/httpserver"
)

// remote passes requests on over the network, and answers back: as they come,
// without headers that end here.
type remote struct {
	transport http.RoundTripper
	pace      httpserver.Pace
}

// ErrCut is returned when an answer ended before it was whole. The client can
// only be told by ending its connection.
var ErrCut = errors.New("the answer was cut off")

// errNotOurs is for the log: keys are checked here, so a service behind that
// finds something unauthorized does not take our signature.
var errNotOurs = errors.New("the asset service does not take this gateway's identity: do they have the same secret?")

func (p remote) forward(w http.ResponseWriter, r *http.Request) error {
	resp, err := p.transport.RoundTrip(r)
	if err != nil {
		return unavailable(err)
	}
	defer resp.Body.Close() // what it returns is of no use: all that matters was read
	if resp.StatusCode == http.StatusUnauthorized {
		return unavailable(errNotOurs)
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
		return fmt.Errorf("%w: %w", ErrCut, err)
	}
	for name, values := range resp.Trailer {
		header[http.TrailerPrefix+name] = values
	}
	return nil
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
