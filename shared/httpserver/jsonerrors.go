package httpserver

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"

	"asset-registry/shared/fault"
)

// jsonListener gives net/http's own refusals the error body of all our answers.
// net/http writes them before it calls a handler, and has no setting for them.
type jsonListener struct{ net.Listener }

func (l jsonListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return withJSONErrors(conn, nil), nil
}

// withJSONErrors returns a connection for net/http with our refusals. Its Read first
// returns rest. HTTP/2 has no such refusals, and needs the *tls.Conn itself.
func withJSONErrors(conn net.Conn, rest []byte) net.Conn {
	if !isHTTP1(conn) {
		return conn
	}
	j := newJSONConn(conn, rest)
	if secure, ok := conn.(*tls.Conn); ok {
		return tlsJSONConn{j, secure}
	}
	return j
}

// isHTTP1 reports whether a connection, whose handshake is over, carries HTTP/1.1 or 1.0.
func isHTTP1(conn net.Conn) bool {
	secure, ok := conn.(*tls.Conn)
	return !ok || secure.ConnectionState().NegotiatedProtocol != "h2"
}

// jsonConn rewrites net/http's refusals, and lets net/http refuse a request with
// two framings. Its phase says which bytes are refusals, never the bytes themselves:
// an answer may contain the text of any refusal.
type jsonConn struct {
	net.Conn
	rest    []byte // what was read from Conn already
	framing framing
	phase   atomic.Int32
	refused bool // a refusal was written, and is the last answer
}

// Phases of a jsonConn. net/http writes a refusal only in awaiting. It writes nothing
// else then, but for the answer to OPTIONS *, which has no error's status.
const (
	awaiting  int32 = iota // no handler has this connection's request
	answering              // a handler was called, and its answer is not whole yet
	taken                  // a handler has taken the connection: its bytes are no requests
)

func newJSONConn(conn net.Conn, rest []byte) *jsonConn {
	return &jsonConn{Conn: conn, rest: rest, framing: newFraming()}
}

// jsonConnOf returns the jsonConn in a connection of net/http, or nil if it has none.
func jsonConnOf(conn net.Conn) *jsonConn {
	switch c := conn.(type) {
	case *jsonConn:
		return c
	case tlsJSONConn:
		return c.jsonConn
	}
	return nil
}

type jsonConnKey struct{}

// tellPhases lets server tell its connections their phases.
func tellPhases(server *http.Server) {
	server.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		if c := jsonConnOf(conn); c != nil {
			return context.WithValue(ctx, jsonConnKey{}, c)
		}
		return ctx
	}
	next := server.Handler
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, ok := r.Context().Value(jsonConnKey{}).(*jsonConn); ok {
			c.phase.Store(answering)
		}
		next.ServeHTTP(w, r)
	})
	server.ConnState = func(conn net.Conn, state http.ConnState) {
		c := jsonConnOf(conn)
		switch {
		case c == nil:
		case state == http.StateIdle: // the answer is sent, and another request may come
			c.phase.Store(awaiting)
		case state == http.StateHijacked:
			c.phase.Store(taken)
		}
	}
}

// Read implements net.Conn. It gives no bytes after a request whose end is not known.
func (c *jsonConn) Read(p []byte) (n int, err error) {
	if len(c.rest) > 0 {
		n = copy(p, c.rest)
		if c.rest = c.rest[n:]; len(c.rest) == 0 {
			c.rest = nil
		}
	} else {
		n, err = c.Conn.Read(p)
	}
	if c.phase.Load() == taken {
		return n, err
	}
	if followed := c.framing.follow(p[:n]); followed < n {
		if followed == 0 {
			return 0, io.ErrUnexpectedEOF
		}
		// An error with these bytes would end the request's context before its answer.
		return followed, nil
	}
	return n, err
}

// CloseWrite closes the server's side of the connection only. So a client that
// still sends can read the answer before it is cut off.
func (c *jsonConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// Write implements net.Conn.
func (c *jsonConn) Write(p []byte) (int, error) {
	if c.phase.Load() != awaiting {
		return c.Conn.Write(p)
	}
	if c.refused {
		return len(p), nil // the rest of net/http's refusal
	}
	code := statusOf(p)
	if code < http.StatusBadRequest {
		return c.Conn.Write(p)
	}
	c.refused = true
	why := reason(code)
	if c.framing.broken.Load() {
		why.Name = "Transfer-Encoding"
		why.Description = "The request has both Content-Length and Transfer-Encoding; send one of them."
	}
	if _, err := c.Conn.Write(refusal(code, why)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// statusOf returns the status of an answer that net/http itself has made, of which p is
// the beginning.
func statusOf(p []byte) (code int) {
	_, _ = fmt.Sscanf(string(p[:min(len(p), len("HTTP/1.1 417"))]), "HTTP/1.%d %d", new(int), &code) // 0: none
	return code
}

// reason returns the detail for a status.
func reason(code int) fault.Detail {
	f := fault.Detail{Location: fault.Header, Name: "request", Description: "The request cannot be understood."}
	switch code {
	case http.StatusRequestHeaderFieldsTooLarge:
		f.Description = fmt.Sprintf("The request line and headers have more than %d bytes.", maxHeaderBytes)
	case http.StatusNotImplemented:
		f.Name, f.Description = "Transfer-Encoding", "Only chunked is understood."
	case http.StatusExpectationFailed:
		f.Name, f.Description = "Expect", "Only 100-continue is understood."
	case http.StatusHTTPVersionNotSupported:
		f.Description = "Only HTTP/1.1 and HTTP/1.0 are understood here."
	}
	return f
}

// refusal returns a whole answer with one error.
func refusal(code int, f fault.Detail) []byte {
	body, err := json.Marshal(struct {
		Status string         `json:"status"`
		Errors []fault.Detail `json:"errors"`
	}{"error", []fault.Detail{f}})
	if err != nil { // strings always marshal
		panic(fmt.Sprintf("httpserver: %v", err))
	}
	body = append(body, '\n')
	return fmt.Appendf(nil, "HTTP/1.1 %d %s\r\n"+
		"Content-Type: application/json\r\n"+
		"X-Content-Type-Options: nosniff\r\n"+
		"Cache-Control: no-store\r\n"+
		"Content-Length: %d\r\n"+
		"Connection: close\r\n\r\n%s",
		code, http.StatusText(code), len(body), body)
}
