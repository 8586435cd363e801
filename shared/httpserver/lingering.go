package httpserver

import (
	"io"
	"net/http"
	"time"
)

// The bounds of what is taken of a body that nobody wants.
const (
	minRest     = 256 << 10 // bytes; up to so many, the connection goes on after them
	maxRest     = 16 << 20
	restTimeout = 5 * time.Second

	// strayTimeout is how long net/http waits, after it has answered, for the body
	// of a method that has none.
	strayTimeout = time.Second
)

// lingering reads what is left of a refused request's body, once next has
// answered and holds nothing for it any more. Many clients, and balancers, look
// for an answer only when all is sent; a connection that is closed before is
// reset, and the answer lost with it. HTTP/2 needs no such thing (RFC 9113,
// section 8.1).
func lingering(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 1 || r.Body == http.NoBody {
			next.ServeHTTP(w, r)
			return
		}
		b := &body{ReadCloser: r.Body, control: http.NewResponseController(w)}
		switch r.Method {
		case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodDelete:
			b.closes = b.control.EnableFullDuplex() == nil // net/http answers without it, and must not take it for a request
			if b.closes {
				w.Header().Set("Connection", "close")
			}
			_ = b.control.SetReadDeadline(time.Now().Add(strayTimeout)) // fails if the connection is gone
		}
		own := *r // net/http looks at what it has made itself
		own.Body = b
		next.ServeHTTP(w, &own)
		b.linger()
	})
}

// body is a request's body that may be unwanted.
type body struct {
	io.ReadCloser
	control         *http.ResponseController
	begun, over     bool
	whole           bool // it was read to its end
	lingers, closes bool // after the answer: what is left is read; the connection is closed
}

func (b *body) Read(p []byte) (int, error) {
	b.begun = true
	n, err := b.ReadCloser.Read(p)
	b.over, b.whole = err != nil, err == io.EOF
	return n, err
}

// unwanted is told before a request is refused by the answer with these headers.
// The answer then waits for no more of the body.
func unwanted(r *http.Request, answer http.Header) {
	b, ok := r.Body.(*body)
	if !ok || b.over || r.ContentLength > maxRest {
		return
	}
	if !b.begun && r.Header.Get("Expect") != "" { // who waits for a 100 (Continue) has sent nothing yet
		return
	}
	if b.lingers = b.control.EnableFullDuplex() == nil; !b.lingers { // else net/http answers without reading
		return
	}
	if b.closes = b.closes || r.ContentLength < 0 || r.ContentLength > minRest; b.closes {
		answer.Set("Connection", "close")
	}
}

func (b *body) linger() {
	if !b.lingers || b.control.Flush() != nil || b.control.SetReadDeadline(time.Now().Add(restTimeout)) != nil {
		return
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(b, maxRest)) // body knows how it has ended
	if !b.whole && !b.closes {
		panic(http.ErrAbortHandler) // else net/http takes what is left for the next request
	}
}
