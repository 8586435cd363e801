// Package durable writes files completely or not at all. When a function returns
// without an error, the file outlives a crash of the machine.
//
// A function first writes a temporary file in the same directory. A process that is
// killed may leave it; nothing reads it, and it never stops a later write.
package durable

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Unfinished follows the name of the final file in the name of a temporary file.
const Unfinished = ".new"

// left matches what follows the name of a file in a name of Temporary. Names that people choose do not match.
var left = regexp.MustCompile(`^` + regexp.QuoteMeta(Unfinished) + `[A-Z2-7]{26}$`)

// Temporary returns a name beside a path for a file or a directory that becomes the path. It first removes those that
// killed processes have left. It keeps one that is locked: a process holds it (Hold).
func Temporary(path string) (string, error) {
	dir, base := filepath.Split(filepath.Clean(path))
	var err error
	entries, _ := os.ReadDir(filepath.Clean(dir)) // if it fails, making the file or directory says why
	for _, e := range entries {
		if rest, ours := strings.CutPrefix(e.Name(), base); ours && left.MatchString(rest) {
			err = errors.Join(err, removeFree(dir+e.Name()))
		}
	}
	return dir + base + Unfinished + rand.Text(), err // not the process id: two containers may have the same one
}

// removeFree removes a file or a directory that no process holds.
func removeFree(name string) error {
	f, err := os.Open(name)
	if err == nil {
		if Hold(f) == nil {
			err = os.RemoveAll(name)
		}
		err = errors.Join(err, f.Close())
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) { // another user's is not ours
		return nil
	}
	return err
}

// Create writes a new file of mode 0600. If the file exists, it stays as it is, and
// the error has the cause fs.ErrExist. If several processes create the file at the
// same time, one succeeds.
func Create(file string, data []byte) error {
	return writeNew(file, data, private, Link)
}

// WriteFile writes a file that only its owner may read. It replaces an existing one.
func WriteFile(file string, data []byte) error {
	return writeNew(file, data, private, Rename)
}

// Replace replaces the content of an existing file, which keeps its mode and its owner. A symbolic link stays a
// link. If the file does not exist, the error has the cause fs.ErrNotExist.
func Replace(file string, data []byte) error {
	file, err := filepath.EvalSymlinks(file)
	if err != nil {
		return err
	}
	return WriteLike(file, data, file)
}

// WriteLike writes a file with the mode and the owner of the file `like`. It replaces an existing file.
func WriteLike(file string, data []byte, like string) error {
	info, err := os.Stat(like)
	if err != nil {
		return err
	}
	return writeNew(file, data, func(w *os.File) error { return Resemble(w, info) }, Rename)
}

// Link gives a synced file its final name in the same directory, and removes its old name. If another file has
// the final name already, that file stays and is made durable, and the error has the cause fs.ErrExist.
func Link(written, file string) error {
	err := os.Link(written, file)
	exists := errors.Is(err, fs.ErrExist)
	if exists {
		err = nil
	}
	err = errors.Join(err, os.Remove(written), SyncDirectory(filepath.Dir(file)))
	if err == nil && exists {
		return &fs.PathError{Op: "create", Path: file, Err: fs.ErrExist}
	}
	return err
}

// Rename gives a synced file its final name in the same directory. A file that has this name already is
// replaced. After an error, no file with the old name exists.
func Rename(written, file string) error {
	if err := os.Rename(written, file); err != nil {
		return errors.Join(err, os.Remove(written))
	}
	return SyncDirectory(filepath.Dir(file))
}

// private leaves a new file as it is, with mode 0600.
func private(*os.File) error { return nil }

// writeNew writes data into a new file of mode 0600 in the same directory and syncs it. It calls the
// function `adapt` before it writes, and the function `name` to give the file its final name.
func writeNew(file string, data []byte, adapt func(*os.File) error, name func(written, file string) error) error {
	w, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+Unfinished) // of mode 0600
	if err != nil {
		return err
	}
	if err = adapt(w); err == nil {
		_, err = w.Write(data)
	}
	if err := errors.Join(err, w.Sync(), w.Close()); err != nil {
		return errors.Join(err, os.Remove(w.Name()))
	}
	return name(w.Name(), file)
}
