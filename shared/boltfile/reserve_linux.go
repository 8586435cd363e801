package boltfile

import (
	"errors"
	"os"
	"syscall"
)

// keepSize is the mode of fallocate that does not change the size of the file (FALLOC_FL_KEEP_SIZE).
const keepSize = 1

// reserve allocates disk space behind the used part of the file, or returns the
// error that a write there would return. If the space is already allocated, reserve
// allocates nothing more.
func reserve(file *os.File, used, space int64) error {
	var s syscall.Statfs_t
	if err := syscall.Fstatfs(int(file.Fd()), &s); err != nil {
		return err
	}
	space = min(space, max(minReserve, int64(s.Blocks)*s.Bsize/reservePart))
	for {
		err := syscall.Fallocate(int(file.Fd()), keepSize, used, space)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case !errors.Is(err, syscall.EOPNOTSUPP) && !errors.Is(err, syscall.ENOSYS):
			return err
		case int64(s.Bavail)*s.Bsize < space: // without fallocate, only the free space can be compared
			return syscall.ENOSPC
		}
		return nil
	}
}
