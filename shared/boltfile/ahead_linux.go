package boltfile

import (
	"os"

	"golang.org/x/sys/unix"
)

// willNeed asks the kernel to read a part of a file. The kernel need not do so, so errors do not matter.
func willNeed(file *os.File, from, size int64) {
	_ = unix.Fadvise(int(file.Fd()), from, size, unix.FADV_WILLNEED)
}
