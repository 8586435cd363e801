//go:build !linux

package lean

import (
	"net"
	"syscall"
)

// Other systems have no way to look whether a client has left that we have tried. So IsSupported
// is false there.
func rawOf(net.Conn) syscall.RawConn { return nil }

func readRaw(syscall.RawConn, func() []byte, func(int) bool) error { return nil }

func hasLeft(syscall.RawConn) bool { return false }
