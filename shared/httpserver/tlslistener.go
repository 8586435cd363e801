package httpserver

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/gin-gonic/gin"

	"asset-registry/shared/fault"
)

// tlsListener accepts TLS connections after their handshake, because the protocol
// of a connection is not known earlier.
type tlsListener struct {
	net.Listener
	config   *tls.Config
	timeout  time.Duration // time limit of a handshake
	log      *slog.Logger
	headers  http.Header // headers of the refusal of plain HTTP; they do not depend on the Origin of a request
	accepted chan accepted
	closed   <-chan struct{}
	close    context.CancelFunc
}

// accepted is a result of Accept.
type accepted struct {
	conn net.Conn
	err  error
}

func newTLSListener(
	l net.Listener, config *tls.Config, timeout time.Duration, log *slog.Logger, headers http.Header,
) *tlsListener {
	open, end := context.WithCancel(context.Background())
	t := &tlsListener{
		Listener: l, config: config, timeout: timeout, log: log, headers: headers,
		accepted: make(chan accepted), closed: open.Done(), close: end,
	}
	go t.listen(open)
	return t
}

// listen accepts connections and starts a handshake on each. It stops when the context `open` is done.
func (t *tlsListener) listen(open context.Context) {
	for {
		conn, err := t.Listener.Accept()
		if err == nil {
			go t.handshake(open, conn)
			continue
		}
		select {
		case t.accepted <- accepted{err: err}: // the server knows which errors are temporary
		case <-t.closed:
			return
		}
	}
}

// handshake makes a TLS connection of a plain one, within the timeout.
func (t *tlsListener) handshake(open context.Context, plain net.Conn) {
	ctx, cancel := context.WithTimeout(open, t.timeout)
	defer cancel()
	conn := tls.Server(plain, t.config)
	if err := conn.HandshakeContext(ctx); err != nil {
		t.log.Debug("TLS handshake failed", "client", plain.RemoteAddr().String(), "error", err)
		if no, ok := errors.AsType[tls.RecordHeaderError](err); ok && no.Conn != nil && looksLikeHTTP(no.RecordHeader) {
			_, _ = plain.Write(refusal(http.StatusBadRequest, fault.Detail{ // the client may have left
				Location: fault.Header, Name: "request", Description: "Only HTTPS is understood here.",
			}, t.headers))
		}
		plain.Close()
		return
	}
	select {
	case t.accepted <- accepted{conn: conn}:
	case <-t.closed:
		conn.Close()
	}
}

// looksLikeHTTP reports whether a broken TLS record begins with an HTTP method. The type of a TLS record is never a
// letter (RFC 8446, section 5.1).
func looksLikeHTTP(header [5]byte) bool { return header[0] >= 'A' && header[0] <= 'Z' }

func (t *tlsListener) Accept() (net.Conn, error) {
	select {
	case a := <-t.accepted:
		return a.conn, a.err
	case <-t.closed:
		return nil, net.ErrClosed
	}
}

// Close also ends the handshakes under way.
func (t *tlsListener) Close() error {
	t.close()
	return t.Listener.Close()
}

// tlsJSONConn is a jsonConn with the method from which net/http gets the state of TLS.
type tlsJSONConn struct {
	*jsonConn
	tls *tls.Conn
}

func (c tlsJSONConn) ConnectionState() tls.ConnectionState { return c.tls.ConnectionState() }

// firstByte is the writer of an answer. It measures the time until the answer begins. It leaves out the time for the
// rest of the answer and the time for the request's body, because these depend on the client's connection.
type firstByte struct {
	gin.ResponseWriter
	progress
	isTimed bool // the handler has set a time limit for writes
	isH2    bool
	begun   time.Time
	until   time.Duration // time from begun to the first byte; 0: the answer has not begun
	body    *awaitedBody  // the body of the request; nil: the request has none
}

// awaitFirst makes the request's writer a firstByte.
func awaitFirst(c *gin.Context, begun time.Time) *firstByte {
	w := &firstByte{ResponseWriter: c.Writer, begun: begun, isH2: c.Request.ProtoMajor == 2}
	w.progress.to = c.Writer
	if c.Request.Body != nil && c.Request.Body != http.NoBody {
		w.body = &awaitedBody{ReadCloser: c.Request.Body}
		c.Request.Body = w.body
	}
	c.Writer = w
	return w
}

// took returns the time until the answer began, or until now if it has not begun. The time for which reads of
// the body waited does not count.
func (w *firstByte) took() time.Duration {
	w.note()
	return w.until
}

func (w *firstByte) note() {
	if w.until != 0 {
		return
	}
	until := time.Since(w.begun)
	if w.body != nil {
		until -= time.Duration(w.body.waited.Load())
	}
	w.until = max(until, 1)
	if w.isH2 && !w.isTimed {
		// A stream whose window is shut ends as a connection does whose peer takes nothing.
		_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(takeWithin))
	}
}

// SetWriteDeadline is for an http.ResponseController.
func (w *firstByte) SetWriteDeadline(end time.Time) error {
	w.isTimed = true
	return http.NewResponseController(w.ResponseWriter).SetWriteDeadline(end)
}

func (w *firstByte) Write(p []byte) (int, error) {
	w.note()
	w.await()
	defer w.taken()
	return w.ResponseWriter.Write(p)
}

func (w *firstByte) WriteString(s string) (int, error) {
	w.note()
	w.await()
	defer w.taken()
	return w.ResponseWriter.WriteString(s)
}

func (w *firstByte) WriteHeaderNow() {
	w.note()
	w.ResponseWriter.WriteHeaderNow()
}

func (w *firstByte) Flush() {
	w.note()
	w.await()
	defer w.taken()
	w.ResponseWriter.Flush()
}

// Unwrap is for an http.ResponseController.
func (w *firstByte) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// awaitedBody is the body of a request. It adds up the time that its reads take.
type awaitedBody struct {
	io.ReadCloser
	waited atomic.Int64 // ns; atomic, because a transport reads in another goroutine
}

func (b *awaitedBody) Read(p []byte) (int, error) {
	begun := time.Now()
	n, err := b.ReadCloser.Read(p)
	b.waited.Add(int64(time.Since(begun)))
	return n, err
}

// Unwrap lets refuseBody find the body below.
func (b *awaitedBody) Unwrap() io.ReadCloser { return b.ReadCloser }

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

	// These are atomic, because a transport reads in another goroutine.
	begun atomic.Bool // a part was read
	over  atomic.Bool // reading has ended, at the end of the body or with an error
	whole atomic.Bool // the body was read to its end

	lingers bool // the rest is read after the answer
	closes  bool // the connection is closed after the answer
}

func (b *body) Read(p []byte) (int, error) {
	b.begun.Store(true)
	n, err := b.ReadCloser.Read(p)
	b.over.Store(err != nil)
	b.whole.Store(err == io.EOF)
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
	if !ok || b.over.Load() || r.ContentLength > maxRest {
		return
	}
	if !b.begun.Load() && r.Header.Get("Expect") != "" { // a client that waits for 100 (Continue) has sent no body yet
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
	if !b.whole.Load() && !b.closes {
		panic(http.ErrAbortHandler) // otherwise net/http reads the rest as the next request
	}
}
