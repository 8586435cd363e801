// Package rawsocket reads and writes TCP connections without telling Go's scheduler.
//
// The scheduler prepares for a system call that blocks: a thread of the runtime wakes up every
// 20 µs, and gives the processor of a longer call to another thread. A socket of Go never blocks,
// but a call takes that long wherever other processes need the processor too. On a machine of two
// processors that gateway, upstream and load shared, this cost 7 to 13 % of the gateway's
// processor time.
//
// Deadlines and Close work as those of net. Where the race detector runs, the calls are those of
// package syscall, so that it knows that a read follows the write of the other side.
package rawsocket

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
)

// maxWrite is the size in bytes of the largest write that the scheduler is not told of.
const maxWrite = 64 << 10

// Conn is a TCP connection.
type Conn struct {
	*net.TCPConn
	raw syscall.RawConn
}

// New returns a connection that takes the place of conn. It returns conn itself if that is closed
// or no TCP connection.
func New(conn net.Conn) net.Conn {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return conn
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return conn
	}
	return &Conn{tcp, raw}
}

// Read implements io.Reader.
func (c *Conn) Read(p []byte) (n int, err error) {
	if len(p) == 0 {
		return c.TCPConn.Read(p)
	}
	failed := c.raw.Read(func(fd uintptr) bool {
		n, err = Read(fd, p)
		return err != syscall.EAGAIN
	})
	if failed != nil || err != nil {
		return 0, c.fault("read", failed, err)
	}
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// Write implements io.Writer.
func (c *Conn) Write(p []byte) (n int, err error) {
	if len(p) > maxWrite {
		return c.TCPConn.Write(p)
	}
	failed := c.raw.Write(func(fd uintptr) bool {
		for n < len(p) && err == nil {
			var some int
			if some, err = write(fd, p[n:]); err == syscall.EAGAIN {
				err = nil
				return false
			}
			n += some
		}
		return true
	})
	if failed != nil || err != nil {
		return n, c.fault("write", failed, err)
	}
	return n, nil
}

// fault returns the error that net would return for a failed wait, or for a failed call.
func (c *Conn) fault(operation string, wait, call error) error {
	cause := os.NewSyscallError(operation, call)
	if of, is := errors.AsType[*net.OpError](wait); is {
		cause = of.Err
	}
	return &net.OpError{
		Op: operation, Net: "tcp", Source: c.TCPConn.LocalAddr(), Addr: c.TCPConn.RemoteAddr(), Err: cause,
	}
}

// Read reads from the socket of a connection once, for a function of syscall.RawConn's Read. It
// returns 0 at the end, and syscall.EAGAIN if there is nothing to read yet.
func Read(fd uintptr, p []byte) (n int, err error) {
	for {
		if n, err = read(fd, p); err != syscall.EINTR {
			return max(n, 0), err
		}
	}
}

func write(fd uintptr, p []byte) (n int, err error) {
	for {
		if n, err = writeOnce(fd, p); err != syscall.EINTR {
			return max(n, 0), err
		}
	}
}
