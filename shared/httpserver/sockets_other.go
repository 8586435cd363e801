//go:build !linux

package httpserver

import "net"

func tune(*net.TCPConn) {}
