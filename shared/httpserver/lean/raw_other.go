//go:build !linux

package lean

import (
	"net"
	"syscall"
)

// rawOf returns nil. On this system IsSupported is false: the way to notice that a client has left was tested on Linux
// only.
func rawOf(net.Conn) syscall.RawConn { return nil }

func readRaw(syscall.RawConn, func() []byte, func(int) bool) error { return nil }

func hasLeft(syscall.RawConn) bool { return false }
