package httpserver

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// maxUnsent is how many unsent bytes the kernel holds for a connection. The kernel's default is megabytes, which
	// count as the process's memory in a control group.
	maxUnsent = 128 << 10
	// ackWithin is how long bytes may wait for the peer to acknowledge or accept
	// them. Then the connection ends. The default is a quarter of an hour, so
	// streams of a client that has vanished would stay open.
	ackWithin = 15 * time.Second
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
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(ackWithin.Milliseconds()))
	})
}
