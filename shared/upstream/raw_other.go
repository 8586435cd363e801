//go:build !linux

package upstream

import (
	"net"
	"syscall"
)

func rawOf(net.Conn) syscall.RawConn { return nil }

// Read reads from the connection. It first writes the request that was lent, if there is
// one.
func (c *conn) Read(p []byte) (n int, err error) {
	request := c.lent
	if c.lent = nil; request != nil {
		if _, err := c.net.Write(request); err != nil {
			return 0, err
		}
	}
	return c.net.Read(p)
}
