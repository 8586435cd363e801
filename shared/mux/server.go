package mux

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"asset-registry/shared/httpwire"
)

// Server answers requests for the protocol, and passes all other requests on. It is an
// http.Handler, for the calls, too.
type Server struct {
	handler http.Handler
	log     *slog.Logger

	mu       sync.Mutex
	draining bool
	calls    map[*serverConn]struct{}
	ended    chan struct{} // closed when draining and calls is empty
}

// NewServer returns a server that calls handler for each request.
func NewServer(handler http.Handler, log *slog.Logger) *Server {
	return &Server{handler: handler, log: log, calls: map[*serverConn]struct{}{}, ended: make(chan struct{})}
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != Path || r.Method != http.MethodGet || r.Header.Get("Upgrade") != Protocol {
		s.handler.ServeHTTP(w, r)
		return
	}
	conn, rest, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, "calls need a connection of HTTP/1.1", http.StatusUpgradeRequired)
		return
	}
	c := &serverConn{server: s, conn: conn, remote: r.RemoteAddr, streams: map[uint32]*serverStream{}}
	c.ctx, c.cancel = context.WithCancel(context.WithoutCancel(r.Context()))
	if !c.upgrade() {
		_ = conn.Close() // the client asks another server
		return
	}
	go c.run(rest.Reader)
}

// upgrade lets a connection take requests. It returns false if the server drains. Drain waits
// for it, so what it sends comes after the answer to the upgrade.
func (c *serverConn) upgrade() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out = newOutbox(c.conn)
	if !c.server.add(c) {
		c.out.end()
		return false
	}
	// If it fails, the connection has ended, which run sees.
	_ = c.out.put(func(b []byte) []byte {
		return append(b, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "+Protocol+"\r\n\r\n"...)
	})
	return true
}

func (s *Server) add(c *serverConn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining {
		return false
	}
	s.calls[c] = struct{}{}
	return true
}

func (s *Server) remove(c *serverConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.calls, c)
	if s.draining && len(s.calls) == 0 {
		close(s.ended)
	}
}

// Shutdown takes no more requests, and waits until those under way have their answers.
// When ctx ends, it cuts them off and returns an error. It must be called once.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	s.draining = true
	all := make([]*serverConn, 0, len(s.calls))
	for c := range s.calls {
		all = append(all, c)
	}
	if len(all) == 0 {
		close(s.ended)
	}
	s.mu.Unlock()
	for _, c := range all {
		c.drain()
	}
	select {
	case <-s.ended:
		return nil
	case <-ctx.Done():
	}
	for _, c := range all {
		c.end(errCutOff)
	}
	return errors.Join(ctx.Err(), errCutOff)
}

// errCutOff is returned by Shutdown when calls did not end in time.
var errCutOff = errors.New("calls under way were cut off")

// As net/http's server of this project does, a server waits so long for a request's body,
// and for its answer to be read. A handler may set another write deadline.
const (
	readTimeout   = 30 * time.Second
	answerTimeout = time.Minute
)

// serverConn is the server's side of a connection.
type serverConn struct {
	server *Server
	conn   net.Conn
	remote string
	out    *outbox
	ctx    context.Context // of all requests
	cancel context.CancelFunc

	mu       sync.Mutex
	streams  map[uint32]*serverStream
	last     uint32 // the last stream that was taken
	draining bool
}

// serverStream is a request under way.
type serverStream struct {
	in     inbound
	out    outbound
	cancel context.CancelFunc
}

// run takes requests until the connection ends.
func (c *serverConn) run(r *bufio.Reader) {
	defer c.server.remove(c)
	c.read(frames{r: bufio.NewReaderSize(r, 32<<10)})
	c.end(ErrLost)
	c.out.end()
	_ = c.conn.Close() // nothing can be done about an error
}

func (c *serverConn) read(frames frames) {
	for {
		f, err := frames.next()
		if err == nil {
			err = c.take(f)
		}
		if errors.Is(err, errProtocol) {
			c.server.log.Warn("calls of a service end", "client", c.remote, "error", err)
		}
		if err != nil {
			return
		}
	}
}

// take takes one frame.
func (c *serverConn) take(f frame) error {
	if f.kind == headFrame {
		return c.begin(f)
	}
	c.mu.Lock()
	s, draining := c.streams[f.stream], c.draining
	c.mu.Unlock()
	if s == nil {
		if f.stream > c.last && !draining {
			return fmt.Errorf("%w: a frame of kind %d for the stream %d, which has not begun", errProtocol, f.kind, f.stream)
		}
		return nil // the answer is on its way, or the drain is
	}
	ok := true
	switch f.kind {
	case bodyFrame:
		ok = s.in.arrive(f.content)
	case endFrame:
		s.in.end(nil)
	case cancelFrame:
		s.fail(context.Canceled)
	case windowFrame:
		ok = s.out.widen(f.content)
	default:
		ok = false
	}
	if !ok {
		return fmt.Errorf("%w: a frame of kind %d for the stream %d", errProtocol, f.kind, f.stream)
	}
	return nil
}

// fail ends a request whose client waits no more.
func (s *serverStream) fail(err error) {
	s.cancel()
	s.in.end(err)
	s.out.fail(err)
}

// begin starts a request.
func (c *serverConn) begin(f frame) error {
	r, err := parseRequest(string(f.content))
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.stream <= c.last {
		return fmt.Errorf("%w: the stream %d begins after the stream %d", errProtocol, f.stream, c.last)
	}
	if c.draining { // the client learns from the drain that it was not taken
		return nil
	}
	c.last = f.stream
	if len(c.streams) >= maxStreams {
		return fmt.Errorf("%w: more than %d streams", errProtocol, maxStreams)
	}
	ctx, cancel := context.WithCancel(c.ctx)
	s := &serverStream{cancel: cancel}
	s.in.begin(f.stream, c.out)
	s.out.begin(f.stream, c.out)
	now := time.Now()
	s.in.until, s.out.until = now.Add(readTimeout), now.Add(answerTimeout)
	c.streams[f.stream] = s
	r.RemoteAddr = c.remote
	if r.ContentLength == 0 {
		s.in.end(nil)
	} else {
		r.Body = requestBody{&s.in}
	}
	go c.answer(f.stream, s, r.WithContext(ctx))
	return nil
}

// requestBody is the body of a request at the server.
type requestBody struct{ *inbound }

func (b requestBody) Close() error { return nil }

// answer calls the handler.
func (c *serverConn) answer(number uint32, s *serverStream, r *http.Request) {
	w := &response{r: r, out: &s.out, header: http.Header{}}
	defer func() {
		s.cancel()
		c.mu.Lock()
		delete(c.streams, number)
		idle := c.draining && len(c.streams) == 0
		c.mu.Unlock()
		if idle {
			c.hangUp()
		}
	}()
	defer func() {
		if p := recover(); p != nil {
			if p != http.ErrAbortHandler {
				c.server.log.Error("panic of a handler", "panic", p, "stack", string(debug.Stack()))
			}
			// If it fails, the connection has ended, which tells the client the same.
			_ = c.out.put(func(b []byte) []byte { return appendFrame(b, number, cancelFrame, "") })
		}
	}()
	c.server.handler.ServeHTTP(w, r)
	w.finish()
	if w.failed != nil {
		panic(http.ErrAbortHandler)
	}
}

// drain takes no more requests, and ends the connection after those under way.
func (c *serverConn) drain() {
	c.mu.Lock()
	c.draining = true
	last, idle := c.last, len(c.streams) == 0
	c.mu.Unlock()
	_ = c.out.put(func(b []byte) []byte { return appendFrame(b, last, drainFrame, "") }) // else it has ended
	if idle {
		c.hangUp()
	}
}

// hangUp lets run end after what was put is sent.
func (c *serverConn) hangUp() {
	c.out.end()
	_ = c.conn.Close() // the reader of frames ends
}

// end ends all requests.
func (c *serverConn) end(err error) {
	c.cancel()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.streams {
		s.fail(err)
	}
	if errors.Is(err, errCutOff) {
		_ = c.conn.Close() // run ends
	}
}

// parseRequest parses the head of a request.
func parseRequest(head string) (*http.Request, error) {
	line, fields, _ := strings.Cut(head, "\r\n")
	method, target, _ := strings.Cut(line, " ")
	if !httpwire.IsTarget(target) || !isMethod(method) {
		return nil, fmt.Errorf("%w: a request for %q", errProtocol, line)
	}
	u, err := url.ParseRequestURI(target)
	if err != nil {
		return nil, errors.Join(errProtocol, err)
	}
	header, ok := httpwire.Fields(fields, nil)
	if !ok {
		return nil, fmt.Errorf("%w: the fields of a request", errProtocol)
	}
	r := &http.Request{
		Method: method, RequestURI: target, URL: u, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Body: http.NoBody, Host: header.Get("Host"),
	}
	delete(header, "Host")
	if length := header.Get("Content-Length"); length != "" {
		if r.ContentLength, err = strconv.ParseInt(length, 10, 64); err != nil || r.ContentLength < 0 {
			return nil, fmt.Errorf("%w: the length %q of a request", errProtocol, length)
		}
	}
	return r, nil
}

// isMethod reports whether s consists of letters.
func isMethod(s string) bool {
	for _, c := range s {
		if (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return s != ""
}
