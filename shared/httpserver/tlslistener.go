package httpserver

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

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
