//go:build !linux || race

package rawsocket

import "syscall"

func read(fd uintptr, p []byte) (int, error) { return syscall.Read(int(fd), p) }

func writeOnce(fd uintptr, p []byte) (int, error) { return syscall.Write(int(fd), p) }
