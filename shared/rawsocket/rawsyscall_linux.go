//go:build linux && !race

package rawsocket

import (
	"syscall"
	"unsafe"
)

func read(fd uintptr, p []byte) (int, error) { return call(syscall.SYS_READ, fd, p) }

func writeOnce(fd uintptr, p []byte) (int, error) { return call(syscall.SYS_WRITE, fd, p) }

func call(number, fd uintptr, p []byte) (int, error) {
	n, _, failed := syscall.RawSyscall(number, fd, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)))
	if failed != 0 {
		return 0, failed
	}
	return int(n), nil
}
