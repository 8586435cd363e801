package httpserver

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxUnsent is how many bytes the kernel takes for a connection before they can
// be sent. Without a bound it is megabytes, which count as the process's own
// memory in a control group.
const maxUnsent = 128 << 10

func limitUnsent(listener net.Listener) {
	socket, ok := listener.(syscall.Conn)
	if !ok {
		return
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return // it is closed, which Accept tells
	}
	_ = raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, maxUnsent) // old kernels have no such bound
	})
}
