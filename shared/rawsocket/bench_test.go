package rawsocket_test

import (
	"io"
	"net"
	"sync"
	"syscall"
	"testing"

	"asset-registry/shared/rawsocket"
)

// BenchmarkEcho sends 2 KiB to and fro on 16 connections, over package net and over
// rawsocket. The difference grows where the processors have other work, too.
func BenchmarkEcho(b *testing.B) {
	for _, c := range []struct {
		name string
		wrap func(net.Conn) net.Conn
	}{{"socket=net", func(conn net.Conn) net.Conn { return conn }}, {"socket=raw", rawsocket.New}} {
		b.Run(c.name, func(b *testing.B) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				b.Fatal(err)
			}
			defer listener.Close()
			var before, after syscall.Rusage
			_ = syscall.Getrusage(syscall.RUSAGE_SELF, &before) // it cannot fail for the process itself
			var all sync.WaitGroup
			for range 16 {
				near, err := net.Dial("tcp", listener.Addr().String())
				if err != nil {
					b.Fatal(err)
				}
				far, err := listener.Accept()
				if err != nil {
					b.Fatal(err)
				}
				all.Go(func() { echo(b, c.wrap(far), b.N/16+1, false) })
				all.Go(func() { echo(b, c.wrap(near), b.N/16+1, true) })
			}
			all.Wait()
			_ = syscall.Getrusage(syscall.RUSAGE_SELF, &after)
			used := after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano()
			b.ReportMetric(float64(used)/float64(b.N), "cpu-ns/op")
		})
	}
}

// echo exchanges messages, and closes the connection. The side that is first writes first.
func echo(b *testing.B, conn net.Conn, times int, first bool) {
	defer conn.Close()
	message := make([]byte, 2<<10)
	for range times {
		for _, isWrite := range []bool{first, !first} {
			var err error
			if isWrite {
				_, err = conn.Write(message)
			} else {
				_, err = io.ReadFull(conn, message)
			}
			if err != nil {
				b.Error(err)
				return
			}
		}
	}
}
