package httpserver

import (
	"net"

	"golang.org/x/sys/unix"
)

const (
	// maxUnsent is the maximum number of unsent bytes that the kernel holds for a connection. The kernel's default is
	// megabytes. In a control group these bytes count as the process's memory.
	maxUnsent = 128 << 10
)

// tune applies both limits to a connection. A setting of the listener would not reach
// the connection: Go listens for Multipath TCP, which does not pass such settings on.
func tune(conn *net.TCPConn) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return // the connection is closed; Read reports that
	}
	_ = raw.Control(func(fd uintptr) {
		// Old kernels and Multipath TCP do not have these options.
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, maxUnsent)
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(takeWithin.Milliseconds()))
	})
}
