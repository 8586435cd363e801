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

// secure is a listener whose connections have TLS, and have shaken hands: only
// then is it known which speak HTTP/2, whose *tls.Conn the server must see, and
// which HTTP/1.1, where its own refusals are put into JSON.
type secure struct {
	net.Listener
	config   *tls.Config
	timeouts time.Duration // with a client that shakes hands
	log      *slog.Logger
	accepted chan accepted
	closed   <-chan struct{}
	close    context.CancelFunc
}

type accepted struct {
	conn net.Conn
	err  error
}

func newSecure(l net.Listener, config *tls.Config, timeouts time.Duration, log *slog.Logger) *secure {
	open, end := context.WithCancel(context.Background())
	s := &secure{Listener: l, config: config, timeouts: timeouts, log: log, accepted: make(chan accepted), closed: open.Done(), close: end}
	go s.listen(open)
	return s
}

func (s *secure) listen(open context.Context) {
	for {
		conn, err := s.Listener.Accept()
		if err == nil {
			go s.shake(open, conn)
			continue
		}
		select {
		case s.accepted <- accepted{err: err}: // the server knows which errors pass
		case <-s.closed:
			return
		}
	}
}

// shake makes a connection one with TLS, within bounds.
func (s *secure) shake(open context.Context, plain net.Conn) {
	ctx, cancel := context.WithTimeout(open, s.timeouts)
	defer cancel()
	conn := tls.Server(plain, s.config)
	if err := conn.HandshakeContext(ctx); err != nil {
		s.log.Debug("no TLS connection came about", "client", plain.RemoteAddr().String(), "error", err)
		if no, ok := errors.AsType[tls.RecordHeaderError](err); ok && no.Conn != nil && looksLikeHTTP(no.RecordHeader) {
			_, _ = plain.Write(refusal(http.StatusBadRequest, fault.Detail{Location: fault.Header, Name: "request", Description: "Only HTTPS is understood here."})) // a client that has gone is no concern of ours
		}
		plain.Close()
		return
	}
	ready := accepted{conn: conn}
	if conn.ConnectionState().NegotiatedProtocol != "h2" {
		ready.conn = secureConn{newJSONConn(conn), conn}
	}
	select {
	case s.accepted <- ready:
	case <-s.closed:
		conn.Close()
	}
}

// looksLikeHTTP tells whether what came instead of a TLS record, whose type is
// never a letter (RFC 8446, section 5.1), begins with a method.
func looksLikeHTTP(header [5]byte) bool { return header[0] >= 'A' && header[0] <= 'Z' }

func (s *secure) Accept() (net.Conn, error) {
	select {
	case a := <-s.accepted:
		return a.conn, a.err
	case <-s.closed:
		return nil, net.ErrClosed
	}
}

// Close ends the connections, too, that still shake hands: they have asked for
// nothing yet.
func (s *secure) Close() error {
	s.close()
	return s.Listener.Close()
}

// secureConn tells the server that it has TLS, by the method that net/http asks for.
type secureConn struct {
	*jsonConn
	tls *tls.Conn
}

func (c secureConn) ConnectionState() tls.ConnectionState { return c.tls.ConnectionState() }
