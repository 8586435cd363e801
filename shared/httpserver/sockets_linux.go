package httpserver

import (
	"net"

	"golang.org/x/sys/unix"
)

// maxUnsent is how many bytes the kernel takes for a connection before they can
// be sent. Without a bound it is megabytes, which count as the process's own
// memory in a control group.
const maxUnsent = 128 << 10

// limitUnsent sets the bound on a connection: a listener for Multipath TCP, which
// Go's are, does not pass it on.
func limitUnsent(conn *net.TCPConn) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return // it is closed, which reading tells
	}
	_ = raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, maxUnsent) // old kernels have no such bound
	})
}
