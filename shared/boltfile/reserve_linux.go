package boltfile

import (
	"errors"
	"os"
	"syscall"
)

// keepSize lets a file have room beyond its end (FALLOC_FL_KEEP_SIZE).
const keepSize = 1

// reserve takes room on the disk for what is about to be written behind the
// used part of the file, or fails as a write there would. To do it again takes
// no more.
func reserve(file *os.File, used, room int64) error {
	var s syscall.Statfs_t
	if err := syscall.Fstatfs(int(file.Fd()), &s); err != nil {
		return err
	}
	room = min(room, max(minReserve, int64(s.Blocks)*s.Bsize/reservePart))
	for {
		err := syscall.Fallocate(int(file.Fd()), keepSize, used, room)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case !errors.Is(err, syscall.EOPNOTSUPP) && !errors.Is(err, syscall.ENOSYS):
			return err
		case int64(s.Bavail)*s.Bsize < room: // a file system that cannot reserve
			return syscall.ENOSPC
		}
		return nil
	}
}
