package httpserver

import (
	"net"

	"golang.org/x/sys/unix"
)

// maxUnsent is how many unsent bytes the kernel holds for a connection. Its
// default is megabytes, which count as the process's memory in a control group.
const maxUnsent = 128 << 10

// limitUnsent applies maxUnsent to a connection. A setting of the listener would
// not reach it: Go listens for Multipath TCP, which does not pass it on.
func limitUnsent(conn *net.TCPConn) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return // the connection is closed; Read reports that
	}
	_ = raw.Control(func(fd uintptr) {
		// Old kernels do not have this option.
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, maxUnsent)
	})
}
