package logkey

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// unfinished ends the name of a file that is being written.
const unfinished = ".new"

// createFile writes a new file of mode 0600, completely or not at all.
func createFile(file string, data []byte) error {
	written, err := writeBeside(file, data, nil)
	if err != nil {
		return err
	}
	err = os.Link(written, file)
	if errors.Is(err, fs.ErrExist) {
		err = &fs.PathError{Op: "create", Path: file, Err: fs.ErrExist}
	}
	return errors.Join(err, os.Remove(written), syncDirectory(filepath.Dir(file)))
}

// replaceFile replaces a file's content, completely or not at all. A symbolic link
// stays one.
func replaceFile(file string, data []byte) error {
	file, err := filepath.EvalSymlinks(file)
	if err != nil {
		return err
	}
	like, err := os.Stat(file)
	if err != nil {
		return err
	}
	written, err := writeBeside(file, data, like)
	if err != nil {
		return err
	}
	if err := os.Rename(written, file); err != nil {
		return errors.Join(err, os.Remove(written))
	}
	return syncDirectory(filepath.Dir(file))
}

// writeBeside writes data into a new file in the same directory, syncs it, and
// returns its name. The new file has the mode and the owner of like, or 0600.
func writeBeside(file string, data []byte, like fs.FileInfo) (string, error) {
	w, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+unfinished) // of mode 0600
	if err != nil {
		return "", err
	}
	if like != nil {
		err = resemble(w, like)
	}
	if err == nil {
		_, err = w.Write(data)
	}
	if err := errors.Join(err, w.Sync(), w.Close()); err != nil {
		return "", errors.Join(err, os.Remove(w.Name()))
	}
	return w.Name(), nil
}

// resemble gives a new file the mode and the owner of another. Without it, a service
// could not read a file that root replaced.
func resemble(w *os.File, like fs.FileInfo) error {
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

// syncDirectory makes the names in a directory durable.
func syncDirectory(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
