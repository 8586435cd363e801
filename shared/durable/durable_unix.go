//go:build !windows

package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// Hold locks an open file or directory until it is closed. It returns an error if another process holds it.
func Hold(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }

// SyncDirectory makes the names in a directory durable.
func SyncDirectory(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Private returns an error if other users than the owner can access a file. On Windows it takes their access away.
func Private(f *os.File) error {
	info, err := f.Stat()
	if err == nil && info.Mode().Perm()&0o077 != 0 {
		err = fmt.Errorf("other users can access it (mode %v)", info.Mode())
	}
	return err
}

// Resemble gives the file w the mode and the owner of another file. Without it, a service could not read its file
// after root has replaced the file.
func Resemble(w *os.File, like fs.FileInfo) error {
	mine, err := w.Stat()
	if err != nil {
		return err
	}
	has, okHas := mine.Sys().(*syscall.Stat_t)
	want, okWant := like.Sys().(*syscall.Stat_t)
	if okHas && okWant && (has.Uid != want.Uid || has.Gid != want.Gid) {
		if err := w.Chown(int(want.Uid), int(want.Gid)); err != nil {
			return err
		}
	}
	return w.Chmod(like.Mode().Perm())
}
