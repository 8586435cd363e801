package upstream

import (
	"io"
	"net"
	"syscall"

	"asset-registry/shared/rawsocket"
)

// rawOf returns the raw form of a TCP connection, or nil for any other.
func rawOf(conn net.Conn) syscall.RawConn {
	tcp, ok := conn.(*rawsocket.Conn)
	if !ok {
		return nil
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nil
	}
	return raw
}

// Read reads from the connection. It first writes the request that was lent, if there is
// one, and then waits before it reads. Go's own Read would read before it waits, and find
// nothing. The write must be within raw.Read: Go's poller forgets what came before it, and
// an answer that came between a write and raw.Read would be missed.
func (c *conn) Read(p []byte) (n int, err error) {
	request := c.lent
	if c.lent = nil; request == nil {
		return c.net.Read(p)
	}
	if c.raw == nil {
		if _, err := c.net.Write(request); err != nil {
			return 0, err
		}
		return c.net.Read(p)
	}
	written := false
	failed := c.raw.Read(func(fd uintptr) bool {
		if !written {
			written = true
			_, err = c.net.Write(request)
			return err != nil
		}
		n, err = rawsocket.Read(fd, p)
		return err != syscall.EAGAIN
	})
	switch {
	case failed != nil:
		return 0, failed
	case err != nil:
		return 0, err
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}
