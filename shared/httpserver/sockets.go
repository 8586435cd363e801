package httpserver

import (
	"errors"
	"io"
	"net"
	"os"

	"asset-registry/shared/rawsocket"
)

// socketListener keeps the kernel's memory for connections small: it limits
// unsent bytes, and drops them when a client is cut off. It ends connections whose peer
// has vanished. With std, reads and writes are those of package net.
type socketListener struct {
	net.Listener
	std bool
}

func (l socketListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return conn, err
	}
	tune(tcp)
	if l.std {
		return socket{tcp, tcp}, nil
	}
	return socket{tcp, rawsocket.New(tcp)}, nil
}

// socket is a connection that reads and writes by calls.
type socket struct {
	*net.TCPConn
	calls io.ReadWriter
}

// Read implements io.Reader.
func (s socket) Read(p []byte) (int, error) { return s.calls.Read(p) }

// Write makes Close reset the connection of a client that was too slow. Else the
// kernel would keep the bytes that the client has not read.
func (s socket) Write(p []byte) (int, error) {
	n, err := s.calls.Write(p)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		_ = s.SetLinger(0) // fails if the connection is gone
	}
	return n, err
}
