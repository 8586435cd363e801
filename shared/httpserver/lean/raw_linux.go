package lean

import (
	"crypto/tls"
	"io"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// rawOf returns the raw form of a TCP connection, or nil for any other connection.
func rawOf(conn net.Conn) syscall.RawConn {
	if _, secure := conn.(*tls.Conn); secure {
		return nil
	}
	c, ok := conn.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return nil
	}
	return raw
}

// readRaw reads into the memory that the function `free` returns. After each read it calls the function `take` with the
// number of bytes. It stops when take returns false or the connection ends. It waits before each read except the
// first.
//
// Go's poller reports only once that bytes have come. The report may come while the function `take` runs. Within one
// call of raw.Read, the poller keeps this report for the next wait. If a read did not fill its buffer, it has emptied
// the socket. So it is safe to wait after such a read.
func readRaw(raw syscall.RawConn, free func() []byte, take func(n int) bool) (err error) {
	failed := raw.Read(func(fd uintptr) bool {
		for {
			buffer := free()
			var n int
			switch n, err = read(fd, buffer); {
			case err == syscall.EAGAIN:
				err = nil
				return false
			case err == nil && n == 0:
				err = io.EOF
			}
			if err != nil || !take(n) {
				return true
			}
			if n < len(buffer) {
				return false
			}
		}
	})
	if failed != nil {
		return failed
	}
	return err
}

// read reads once. If a signal interrupts the read, it tries again. It uses package syscall, because for this package
// the race detector knows that a read comes after the write of the other side. For package unix, the race detector
// does not know this.
func read(fd uintptr, p []byte) (int, error) {
	for {
		if n, err := syscall.Read(int(fd), p); err != syscall.EINTR {
			return max(n, 0), err
		}
	}
}

// hasLeft reports whether the client has closed its side, or the connection is lost.
func hasLeft(raw syscall.RawConn) (left bool) {
	err := raw.Control(func(fd uintptr) {
		var one [1]byte
		n, _, err := unix.Recvfrom(int(fd), one[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		left = n == 0 && err == nil || err != nil && err != unix.EAGAIN && err != unix.EINTR
	})
	return left || err != nil
}
