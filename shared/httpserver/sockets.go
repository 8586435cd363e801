package httpserver

import (
	"errors"
	"net"
	"os"
)

// socketListener keeps the kernel's memory for connections small. It limits unsent bytes,
// and drops them when a client is cut off. It ends connections whose peer has vanished.
type socketListener struct{ net.Listener }

func (l socketListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return conn, err
	}
	tune(tcp)
	return socket{tcp}, nil
}

// socket is a connection. Its Close resets the connection if the client was too slow.
type socket struct{ *net.TCPConn }

// Write writes to the connection. If the client was too slow, a later Close resets the connection. Otherwise the
// kernel would keep the bytes that the client has not read.
func (s socket) Write(p []byte) (int, error) {
	n, err := s.TCPConn.Write(p)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		_ = s.SetLinger(0) // fails if the connection is gone
	}
	return n, err
}
