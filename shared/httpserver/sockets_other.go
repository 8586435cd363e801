//go:build !linux

package httpserver

import "net"

func limitUnsent(*net.TCPConn) {}
