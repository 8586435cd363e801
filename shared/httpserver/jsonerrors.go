package httpserver

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"

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
// two framings.
type jsonConn struct {
	net.Conn
	rest    []byte // what was read from Conn already
	framing framing
}

func newJSONConn(conn net.Conn, rest []byte) *jsonConn {
	return &jsonConn{Conn: conn, rest: rest, framing: framing{start: make([]byte, 0, longestField)}}
}

func (c *jsonConn) Read(p []byte) (n int, err error) {
	if len(c.rest) > 0 {
		n = copy(p, c.rest)
		if c.rest = c.rest[n:]; len(c.rest) == 0 {
			c.rest = nil
		}
	} else {
		n, err = c.Conn.Read(p)
	}
	c.framing.spoil(p[:n])
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

// net/http writes a refusal in one piece: a status line, these headers and a
// text. Only 417 is different.
var (
	refusalStart = []byte("HTTP/1.1 ")
	refusalEnd   = []byte("\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n")
	noExpect     = []byte("HTTP/1.1 417 ")
)

func (c *jsonConn) Write(p []byte) (int, error) {
	if len(p) <= len(refusalStart) || p[len(refusalStart)] < '4' || !bytes.HasPrefix(p, refusalStart) {
		return c.Conn.Write(p)
	}
	line, _, found := bytes.Cut(p, refusalEnd)
	if bytes.HasPrefix(p, noExpect) {
		line, found = noExpect[:len(noExpect)-1], true
	}
	if !found {
		return c.Conn.Write(p)
	}
	code, why := reason(line[len(refusalStart):])
	if c.framing.broken.Load() {
		why.Name = "Transfer-Encoding"
		why.Description = "The request has both Content-Length and Transfer-Encoding; send one of them."
	}
	if _, err := c.Conn.Write(refusal(code, why)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// reason returns the code and the detail for a status such as "400 Bad Request:
// missing required Host header".
func reason(status []byte) (code int, f fault.Detail) {
	_, _ = fmt.Sscan(string(status), &code) // a status begins with a number
	f = fault.Detail{Location: fault.Header, Name: "request", Description: "The request cannot be understood."}
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
	return code, f
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
