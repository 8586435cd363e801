package httpserver

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"sync/atomic"

	"asset-registry/shared/fault"
)

// jsonListener gives net/http's own refusals the registry's error body. net/http writes
// these refusals before it calls a handler, and has no setting for their body.
type jsonListener struct {
	net.Listener
	headers http.Header // ServeOptions.Refusals
}

func (l jsonListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	secure, isSecure := conn.(*tls.Conn)
	if isSecure && secure.ConnectionState().NegotiatedProtocol == "h2" {
		return conn, nil // HTTP/2 has no such refusals, and net/http needs the *tls.Conn itself
	}
	j := &jsonConn{Conn: conn, framing: newFraming(), headers: l.headers}
	if isSecure {
		return tlsJSONConn{j, secure}, nil
	}
	return j, nil
}

// jsonConn rewrites net/http's refusals. It also makes net/http refuse a request with both Content-Length and
// Transfer-Encoding (framing). It recognises a refusal by the field isAnswering, never by the bytes of the refusal,
// because an answer may contain the same bytes.
type jsonConn struct {
	net.Conn
	framing     framing
	isAnswering atomic.Bool // a handler was called, and its answer is not whole: net/http refuses nothing
	refused     bool        // a refusal was written; no other answer follows
	headers     http.Header // ServeOptions.Refusals
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

// tellPhases makes the server tell each jsonConn when a handler answers. The second parameter is ServeOptions.Refusals.
func tellPhases(server *http.Server, more http.Header) {
	server.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		if c := jsonConnOf(conn); c != nil {
			return context.WithValue(ctx, jsonConnKey{}, c)
		}
		return ctx
	}
	next := server.Handler
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, ok := r.Context().Value(jsonConnKey{}).(*jsonConn); ok {
			c.isAnswering.Store(true)
		}
		switch {
		case r.TLS == nil && r.ProtoMajor == 2 && r.Method == "PRI": // the preface of HTTP/2, which net/http passes on
			refuse(w, http.StatusHTTPVersionNotSupported, more)
		case r.TLS != nil && headSize(r) > maxHeaderBytes:
			refuse(w, http.StatusRequestHeaderFieldsTooLarge, more)
		default:
			next.ServeHTTP(w, r)
		}
	})
	server.DisableGeneralOptionsHandler = true
	server.ConnState = func(conn net.Conn, state http.ConnState) {
		c := jsonConnOf(conn)
		if c != nil && state == http.StateIdle { // the answer is sent, and another request may come
			c.isAnswering.Store(false)
		}
	}
}

// refuse answers a request in place of the handler. The connection, or the stream of HTTP/2, ends.
func refuse(w http.ResponseWriter, code int, more http.Header) {
	h := w.Header()
	maps.Copy(h, more)
	h.Set("Content-Type", "application/json")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	h.Set("Connection", "close")
	w.WriteHeader(code)
	_, _ = w.Write(errorBody(reason(code))) // the client may have left
}

// headSize returns the number of bytes that a request's line and headers have in HTTP/1.1.
func headSize(r *http.Request) int {
	size := len(r.Method) + len(r.RequestURI) + len("  HTTP/1.1\r\n") + len("Host: \r\n") + len(r.Host)
	for name, values := range r.Header {
		for _, value := range values {
			size += len(name) + len(": \r\n") + len(value)
		}
	}
	return size
}

// Read implements net.Conn. It returns no bytes after a request whose end is not known, and no empty lines
// before a request.
func (c *jsonConn) Read(p []byte) (n int, err error) {
	for {
		if n, err = c.read(p); n > 0 || err != nil || len(p) == 0 || c.framing.skipped == 0 {
			return n, err
		}
	}
}

// read does what Read does, but n is 0 if only empty lines came.
func (c *jsonConn) read(p []byte) (n int, err error) {
	c.framing.skipped = 0
	n, err = c.Conn.Read(p)
	followed := c.framing.follow(p[:n])
	if n -= c.framing.skipped; followed < n {
		if followed == 0 {
			return 0, io.ErrUnexpectedEOF
		}
		// These bytes are returned without an error. An error would end the request's context before the request is
		// answered.
		return followed, nil
	}
	return n, err
}

// CloseWrite closes only the server's side of the connection. So a client that still sends can read the answer before
// the connection ends.
func (c *jsonConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

func (c *jsonConn) Write(p []byte) (int, error) {
	if c.isAnswering.Load() {
		return c.Conn.Write(p)
	}
	if c.refused {
		return len(p), nil // drops the rest of net/http's refusal
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
	if _, err := c.Conn.Write(refusal(code, why, c.headers)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// statusOf returns the status of an answer that net/http itself has made. p is the beginning of the answer.
// Without a status it returns 0.
func statusOf(p []byte) (code int) {
	_, _ = fmt.Sscanf(string(p[:min(len(p), len("HTTP/1.1 417"))]), "HTTP/1.%d %d", new(int), &code) // 0 on an error
	return code
}

// reason returns the detail of the error body for a status.
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

// errorBody returns an error body with one error.
func errorBody(f fault.Detail) []byte {
	body, err := json.Marshal(struct {
		Status string         `json:"status"`
		Errors []fault.Detail `json:"errors"`
	}{"error", []fault.Detail{f}})
	if err != nil { // impossible: the body has only strings
		panic(fmt.Sprintf("httpserver: %v", err))
	}
	return append(body, '\n')
}

// refusal returns a whole answer with one error, and with the given headers in addition to the usual ones.
func refusal(code int, f fault.Detail, more http.Header) []byte {
	body := errorBody(f)
	var fields bytes.Buffer
	_ = more.Write(&fields) // a bytes.Buffer does not fail
	return fmt.Appendf(nil, "HTTP/1.1 %d %s\r\n"+
		"Content-Type: application/json\r\n"+
		"X-Content-Type-Options: nosniff\r\n"+
		"Cache-Control: no-store\r\n"+
		"Content-Length: %d\r\n"+
		"Connection: close\r\n%s\r\n%s",
		code, http.StatusText(code), len(body), fields.Bytes(), body)
}
