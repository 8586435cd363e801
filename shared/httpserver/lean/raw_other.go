//go:build !linux

package lean

import (
	"net"
	"syscall"
)

// rawOf returns nil. How to see whether a client has left is tried on Linux only, so IsSupported is false here.
func rawOf(net.Conn) syscall.RawConn { return nil }

func readRaw(syscall.RawConn, func() []byte, func(int) bool) error { return nil }

func hasLeft(syscall.RawConn) bool { return false }
