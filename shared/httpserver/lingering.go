package httpserver

import (
	"io"
	"net/http"
	"time"
)

// Limits on reading the rest of a refused request's body.
const (
	minRest     = 256 << 10 // bytes of a refused body up to which the connection stays open after the body was read
	maxRest     = 16 << 20  // maximum number of bytes that are read from the rest
	restTimeout = 5 * time.Second

	// strayTimeout limits how long net/http waits, after the answer, for the
	// body of a request whose method has no body.
	strayTimeout = time.Second
)

// lingering reads the rest of a refused request's body. It does so after the handler has answered, when the handler no
// longer holds memory for the body. Many clients and load balancers read the answer only after they have sent the whole
// body. If the server closed the connection earlier, they would get a reset and lose the answer. HTTP/2 does not need
// this (RFC 9113, section 8.1).
func lingering(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 1 || r.Body == http.NoBody {
			next.ServeHTTP(w, r)
			return
		}
		b := &body{ReadCloser: r.Body, control: http.NewResponseController(w)}
		switch r.Method {
		case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodDelete:
			// In full duplex, net/http answers without reading the body. The
			// connection must then be closed: otherwise net/http would read the
			// body as the next request.
			b.closes = b.control.EnableFullDuplex() == nil
			if b.closes {
				w.Header().Set("Connection", "close")
			}
			_ = b.control.SetReadDeadline(time.Now().Add(strayTimeout)) // fails if the connection is gone
		}
		wrapped := *r // a copy: net/http needs the Body of its own request
		wrapped.Body = b
		next.ServeHTTP(w, &wrapped)
		b.linger()
	})
}

// body is a request's body that may be refused.
type body struct {
	io.ReadCloser
	control *http.ResponseController

	begun   bool // a part was read
	over    bool // reading has ended, at the end of the body or with an error
	whole   bool // the body was read to its end
	lingers bool // the rest is read after the answer
	closes  bool // the connection is closed after the answer
}

func (b *body) Read(p []byte) (int, error) {
	b.begun = true
	n, err := b.ReadCloser.Read(p)
	b.over, b.whole = err != nil, err == io.EOF
	return n, err
}

// refuseBody lets the server send a refusal before the request's body has arrived. Call it before the answer, because
// it may change the answer's header. If other readers wrap the body, refuseBody finds the body by their method Unwrap.
func refuseBody(r *http.Request, answer http.Header) {
	inner := r.Body
	for {
		outer, wraps := inner.(interface{ Unwrap() io.ReadCloser })
		if !wraps {
			break
		}
		inner = outer.Unwrap()
	}
	b, ok := inner.(*body)
	if !ok || b.over || r.ContentLength > maxRest {
		return
	}
	if !b.begun && r.Header.Get("Expect") != "" { // a client that waits for 100 (Continue) has sent no body yet
		return
	}
	b.lingers = b.control.EnableFullDuplex() == nil
	if !b.lingers { // the connection cannot do this, so net/http handles the rest of the body
		return
	}
	if b.closes = b.closes || r.ContentLength < 0 || r.ContentLength > minRest; b.closes {
		answer.Set("Connection", "close")
	}
}

// linger sends the answer and reads the rest of a refused body.
func (b *body) linger() {
	if !b.lingers || b.control.Flush() != nil || b.control.SetReadDeadline(time.Now().Add(restTimeout)) != nil {
		return
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(b, maxRest)) // the method Read of b notes how reading ended
	if !b.whole && !b.closes {
		panic(http.ErrAbortHandler) // otherwise net/http reads the rest as the next request
	}
}
