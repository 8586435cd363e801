package httpserver

import (
	"net"
	"testing"

	"golang.org/x/sys/unix"

	"asset-registry/shared/testing/expect"
)

func TestAnAcceptedConnectionHasItsLimits(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	expect.OK(t, err)
	defer listener.Close()
	client, err := net.Dial("tcp", listener.Addr().String())
	expect.OK(t, err)
	defer client.Close()
	conn, err := socketListener{listener}.Accept()
	expect.OK(t, err)
	defer conn.Close()
	raw, err := conn.(socket).SyscallConn()
	expect.OK(t, err)
	for _, option := range []struct {
		name         string
		number, want int
	}{
		{"unsent bytes", unix.TCP_NOTSENT_LOWAT, 128 << 10},
		{"milliseconds without an acknowledgement", unix.TCP_USER_TIMEOUT, 15_000},
	} {
		var got int
		var failed error
		err := raw.Control(func(fd uintptr) { got, failed = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, option.number) })
		if err != nil || failed != nil || got != option.want {
			t.Errorf("%s: got %d, %v, %v, want %d", option.name, got, err, failed, option.want)
		}
	}
}
