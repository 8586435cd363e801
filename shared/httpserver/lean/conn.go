package lean

import (
	"bytes"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"asset-registry/shared/httpwire"
)

// maxHead is the largest size in bytes of the head of a simple request (see parse).
const maxHead = 4 << 10

// States of a connection.
const (
	freshState int32 = iota // no request came yet
	idleState               // it waits for a request
	busyState               // a handler runs
	overState               // the connection will be closed, or belongs to net/http
)

// conn is a connection that carries simple requests only.
type conn struct {
	listener *Listener
	net      net.Conn
	base     context.Context // the parent of all requests' contexts
	remote   string
	tls      *tls.ConnectionState // nil for a plain connection
	state    atomic.Int32

	buffer [maxHead]byte
	filled int // bytes in buffer that are not processed yet

	readBy, writeBy time.Time // the deadlines that net has now

	watch    watch
	hijacked *hijacked // nil unless a handler took the connection
	handOver bool      // net/http gets the connection
}

// serve answers the requests on a connection until it ends or is handed over.
func (l *Listener) serve(connection net.Conn) {
	c := &conn{listener: l, net: connection, remote: connection.RemoteAddr().String(), tls: stateOf(connection)}
	c.base = context.WithValue(context.Background(), http.LocalAddrContextKey, connection.LocalAddr())
	if !l.add(c) {
		_ = connection.Close()
		return
	}
	defer l.remove(c)
	now := time.Now()
	c.setReadDeadline(now.Add(l.options.First))
	c.loop()
	switch {
	case c.hijacked != nil:
		c.hijacked.release()
	case c.handOver:
		_ = connection.SetDeadline(time.Time{}) // if it fails, net/http's read fails too
		l.hand(l.options.HandOver(connection, c.buffer[:c.filled:c.filled]), nil)
	default:
		_ = connection.Close() // nothing can be done about an error
	}
}

// loop reads from the connection, and passes the bytes to the method `take`, until take returns false or the
// connection fails.
func (c *conn) loop() {
	if raw := rawOf(c.net); raw != nil {
		_ = readRaw(raw, c.free, c.take) // an error means that the connection failed, or its deadline passed
		return
	}
	for {
		n, err := c.net.Read(c.free())
		if n > 0 && !c.take(n) || err != nil {
			return
		}
	}
}

// free returns the part of the buffer that a read may fill. It is never empty.
func (c *conn) free() []byte { return c.buffer[c.filled:] }

// take answers all requests in the buffer after n more bytes came. It returns false when
// the loop must end.
func (c *conn) take(n int) bool {
	state := c.state.Load()
	if state == overState || !c.state.CompareAndSwap(state, busyState) {
		return false // Shutdown has changed the state before
	}
	c.filled += n
	used, served := 0, state == idleState
	for used < c.filled {
		size, open := c.answer(c.buffer[used:c.filled])
		if size == 0 {
			c.handOver = !served || c.filled-used >= leastStart
			break
		}
		if !open || c.listener.draining.Load() {
			return false
		}
		used += size
		served = true
	}
	c.filled = copy(c.buffer[:], c.buffer[used:c.filled])
	if c.handOver {
		return false
	}
	c.extendRead(time.Now())
	c.state.Store(idleState)
	// If Shutdown began before the line above, it did not end this connection, because the connection was not idle.
	// So the connection ends here.
	return !c.listener.draining.Load() || !c.state.CompareAndSwap(idleState, overState)
}

// leastStart is the smallest number of bytes that counts as the beginning of a second or later request on a
// connection. As in net/http, a connection with fewer bytes is idle.
const leastStart = 4

// extendRead lets the connection be idle for Options.Idle from now on. It sets a deadline only when the present one is
// too early, because setting a deadline costs more than most other steps of a request.
func (c *conn) extendRead(now time.Time) {
	if idle := c.listener.options.Idle; c.readBy.Before(now.Add(idle)) {
		c.setReadDeadline(now.Add(idle + idle/8))
	}
}

func (c *conn) setReadDeadline(end time.Time) {
	c.readBy = end
	_ = c.net.SetReadDeadline(end) // an error means that the connection is broken, so reads fail too
}

// extendWrite lets the answer take Options.Write from now on. Like extendRead, it rarely sets a deadline.
func (c *conn) extendWrite(now time.Time) {
	if write := c.listener.options.Write; c.writeBy.Before(now.Add(write)) {
		c.writeBy = now.Add(write + write/8)
		_ = c.net.SetWriteDeadline(c.writeBy) // an error means that the connection is broken, so writes fail too
	}
}

// answer answers the first request in b. size is the size of its head, or 0 if parse does not accept the request.
// open is false if no other request can follow on this connection.
func (c *conn) answer(b []byte) (size int, open bool) {
	ctx, cancel := context.WithCancel(c.base)
	defer cancel()
	r := new(http.Request).WithContext(ctx)
	if size = parse(b, r); size == 0 {
		return 0, false
	}
	r.RemoteAddr, r.TLS = c.remote, c.tls
	now := time.Now()
	c.extendWrite(now)
	w := newResponse(c, r, b[size:])
	defer w.free()
	c.watch.begin(c.net, cancel, now)
	defer c.watch.stop()
	defer func() {
		if p := recover(); p != nil {
			open = false // bytes that were not sent yet are dropped, as in net/http
			if p != http.ErrAbortHandler {
				c.listener.options.Log.Error("panic of a handler", "panic", p, "stack", string(debug.Stack()))
			}
		}
	}()
	c.listener.options.Handler.ServeHTTP(w, r)
	return size, w.finish()
}

// cut ends a connection whose handler may still run. The handler's context ends.
func (c *conn) cut() {
	c.state.Store(overState)
	_ = c.net.SetDeadline(time.Unix(1, 0)) // fails only if the connection is already closed
	if half, ok := plainOf(c.net).(interface{ CloseRead() error }); ok {
		_ = half.CloseRead() // the watch notices this
	}
}

// watch ends the context of a request whose client leaves while its handler runs. Its timer is not stopped
// after a request, so on a busy connection one timer serves many requests.
type watch struct {
	mu     sync.Mutex
	raw    syscall.RawConn
	cancel context.CancelFunc // ends the context of the request; nil: no handler runs
	begun  time.Time          // when the handler began
	timer  *time.Timer        // nil: the connection cannot be watched
	isSet  bool               // the timer runs
	wait   time.Duration      // time until the next check
}

// A watch first checks between firstLook and twice firstLook after a handler began. If the timer of an earlier long
// request still runs, this first check may come as late as lastLook. The time between two checks then doubles, up to
// lastLook.
const (
	firstLook = 100 * time.Millisecond
	lastLook  = time.Second
)

func (w *watch) begin(conn net.Conn, cancel context.CancelFunc, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cancel, w.begun, w.wait = cancel, now, firstLook
	switch {
	case w.isSet:
	case w.timer != nil:
		w.timer.Reset(firstLook)
		w.isSet = true
	default:
		if w.raw = rawOf(plainOf(conn)); w.raw != nil {
			w.timer, w.isSet = time.AfterFunc(firstLook, w.look), true
		}
	}
}

func (w *watch) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cancel = nil
}

func (w *watch) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cancel == nil {
		w.isSet = false
		return
	}
	if time.Since(w.begun) >= firstLook { // otherwise the timer was set for an earlier request
		if hasLeft(w.raw) {
			w.cancel()
			w.isSet = false
			return
		}
		w.wait = min(2*w.wait, lastLook)
	}
	w.timer.Reset(w.wait)
}

// lookNow ends the context if the client has left already.
func (w *watch) lookNow() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cancel != nil && w.raw != nil && hasLeft(w.raw) {
		w.cancel()
	}
}

// plainOf returns the connection under TLS, or conn itself.
func plainOf(conn net.Conn) net.Conn {
	if secure, ok := conn.(*tls.Conn); ok {
		return secure.NetConn()
	}
	return conn
}

// stateOf returns the state of a TLS connection, or nil for a plain one.
func stateOf(conn net.Conn) *tls.ConnectionState {
	secure, ok := conn.(*tls.Conn)
	if !ok {
		return nil
	}
	state := secure.ConnectionState()
	return &state
}

var endOfHead = []byte("\r\n\r\n")

const endOfRequestLine = " HTTP/1.1\r\n"

// parse reads the first request of b into r, which must be new. It returns the size of the request's head. It returns
// 0 if a part of the head is missing, or if the request is not simple. A request is simple if
//
//   - its first line is GET or HEAD, a path, and HTTP/1.1, with single spaces,
//   - each further line ends with CR LF, and has a name, a colon, and a value of printable ASCII,
//   - it has one Host, of the characters of names, addresses and ports,
//   - and it has none of the fields that net/http itself acts on (the list `difficult`).
//
// The request equals the one that net/http's server makes.
func parse(b []byte, r *http.Request) (size int) {
	end := bytes.Index(b, endOfHead)
	if end < 0 {
		return 0
	}
	size = end + len(endOfHead)
	head := string(b[:end+2])
	r.Proto, r.ProtoMajor, r.ProtoMinor, r.Body = "HTTP/1.1", 1, 1, http.NoBody
	fields, ok := parseRequestLine(r, head)
	if !ok {
		return 0
	}
	r.Header, ok = httpwire.Fields(fields, difficult)
	if !ok {
		return 0
	}
	hosts := r.Header["Host"]
	if len(hosts) != 1 || !httpwire.IsHost(hosts[0]) {
		return 0
	}
	r.Host = hosts[0]
	delete(r.Header, "Host")
	return size
}

// parseRequestLine reads the first line of head, and sets the fields of r from it. It returns the other lines of head.
// The result `ok` is false if the line is not simple.
func parseRequestLine(r *http.Request, head string) (fields string, ok bool) {
	method, rest, _ := strings.Cut(head, " ")
	if method != http.MethodGet && method != http.MethodHead {
		return "", false
	}
	target, _, _ := strings.Cut(rest, " ")
	if !httpwire.IsTarget(target) || !strings.HasPrefix(rest[len(target):], endOfRequestLine) {
		return "", false
	}
	u, err := url.ParseRequestURI(target)
	if err != nil || u.Host != "" {
		return "", false
	}
	r.Method, r.RequestURI, r.URL = method, target, u
	return rest[len(target)+len(endOfRequestLine):], true
}

// difficult are the header fields that change how net/http reads or handles a request. The field Connection is not
// among them, because httpwire.Fields checks its value.
var difficult = map[string]bool{
	"Content-Length": true, "Expect": true, "Http2-Settings": true, "Pragma": true, "Trailer": true,
	"Transfer-Encoding": true, "Upgrade": true,
}
