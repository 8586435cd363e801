package httpserver

import (
	"errors"
	"net"
	"os"
)

// sockets is a listener whose connections hold little in the kernel: not much
// that is unsent, and nothing after their client was cut off.
type sockets struct{ net.Listener }

func (l sockets) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if tcp, ok := conn.(*net.TCPConn); ok {
		limitUnsent(tcp)
		return socket{tcp}, nil
	}
	return conn, err
}

type socket struct{ *net.TCPConn }

// Write resets a connection whose client was too slow: the kernel must not keep
// what the client has not taken.
func (s socket) Write(p []byte) (int, error) {
	n, err := s.TCPConn.Write(p)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		_ = s.SetLinger(0) // of a connection that is gone, nothing is kept
	}
	return n, err
}
