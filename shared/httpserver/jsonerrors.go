package httpserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"

	"asset-registry/shared/fault"
)

// inJSON is a listener on whose connections net/http's own refusals, which it
// writes before any handler is asked, are in the form of all our answers: the
// server has no other way to change them.
type inJSON struct{ net.Listener }

func (l inJSON) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return newJSONConn(conn), nil
}

type jsonConn struct {
	net.Conn
	framing framing
}

func newJSONConn(conn net.Conn) *jsonConn {
	return &jsonConn{Conn: conn, framing: framing{start: make([]byte, 0, longestField)}}
}

func (c *jsonConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.framing.spoil(p[:n])
	return n, err
}

// CloseWrite lets the server end its side of a connection first, so that a
// client that still sends reads the answer before it is cut off.
func (c *jsonConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// What net/http writes in one piece: a status line, these headers and a text.
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
		why.Name, why.Description = "Transfer-Encoding", "The request has both Content-Length and Transfer-Encoding; send one of them."
	}
	if _, err := c.Conn.Write(refusal(code, why)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// reason returns what to say instead of a status, "400 Bad Request: and why".
func reason(status []byte) (code int, f fault.Detail) {
	_, _ = fmt.Sscan(string(status), &code) // 0 for what is no number, which it always is
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

// refusal returns an answer in one piece.
func refusal(code int, f fault.Detail) []byte {
	body, err := json.Marshal(struct {
		Status string         `json:"status"`
		Errors []fault.Detail `json:"errors"`
	}{"error", []fault.Detail{f}})
	if err != nil { // strings always marshal
		panic(fmt.Sprintf("httpserver: %v", err))
	}
	body = append(body, '\n')
	return fmt.Appendf(nil, "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nX-Content-Type-Options: nosniff\r\nCache-Control: no-store\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s",
		code, http.StatusText(code), len(body), body)
}
