package boltfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"go.etcd.io/bbolt"

	"asset-registry/shared/durable"
)

const (
	copySuffix = ".compact" // the name of the copy is the name of the file with this suffix
	copyBatch  = 16 << 20   // bytes of keys and values in a transaction of the copy
)

// Compact rewrites a file without its free pages. No process may have the file
// open. A free page keeps the bytes of removed values until the page is used
// again. Compact returns the size of the file in bytes before and after.
//
// The file keeps its mode and its owner. It is replaced completely or not at all; if the process is killed, the
// next Open removes the copy. Compact needs disk space for the copy. In the cases in which Open fails, Compact
// fails too, and leaves the file unchanged.
func Compact(path string) (before, after int64, err error) {
	return compact(path, func(compactStep) error { return nil })
}

// compactStep names a moment within compact.
type compactStep string

// The moments in their order. At the moment "renamed", the copy has already taken the file's place.
const (
	opened  compactStep = "opened"
	copied  compactStep = "copied"
	synced  compactStep = "synced"
	renamed compactStep = "renamed"
)

// compact works like Compact. After each step it calls a function. If the function fails, compact fails.
func compact(path string, at func(compactStep) error) (before, after int64, err error) {
	path, err = filepath.EvalSymlinks(path)
	if err != nil {
		return 0, 0, err
	}
	f, err := openToWrite(path, full, nil)
	if err != nil {
		return 0, 0, fmt.Errorf("open %s: %w", path, err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := at(opened); err != nil {
		return 0, 0, err
	}
	like, err := f.own.Stat()
	if err != nil {
		return 0, 0, err
	}
	written := path + copySuffix
	after, err = f.writeCopy(written, like, at)
	if err != nil {
		return 0, 0, errors.Join(fmt.Errorf("compact %s: %w", path, err), removeCopy(path))
	}
	if err := durable.Rename(written, path); err != nil {
		return 0, 0, fmt.Errorf("compact %s: %w", path, err)
	}
	return like.Size(), after, at(renamed)
}

// writeCopy writes a copy without free pages into a new file, syncs it, and verifies it. It returns the copy's
// size. The new file gets the mode and the owner in the argument `like`.
func (f *File) writeCopy(written string, like fs.FileInfo, at func(compactStep) error) (size int64, err error) {
	// The copy is synced once, at its end. NoGrowSync also keeps bbolt from making the file larger than needed.
	options := &bbolt.Options{Timeout: lockTimeout, FreelistType: bbolt.FreelistMapType, NoSync: true, NoGrowSync: true}
	to, err := bbolt.Open(written, fileMode, options)
	if err != nil {
		return 0, err
	}
	err = guard(func() error { return bbolt.Compact(to, f.db, copyBatch) })
	if err == nil {
		err = to.View(func(tx *bbolt.Tx) error {
			size = tx.Size()
			return nil
		})
	}
	if err == nil {
		err = at(copied)
	}
	if err := errors.Join(err, to.Close()); err != nil {
		return 0, err
	}
	w, err := os.OpenFile(written, os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	err = errors.Join(w.Truncate(size), durable.Resemble(w, like), w.Sync())
	if err == nil {
		err = errors.Join(verify(w, full)...)
	}
	if err == nil {
		err = at(synced)
	}
	return size, errors.Join(err, w.Close())
}

// removeCopy removes the copy that an interrupted Compact has left. The caller holds
// the file's lock.
func removeCopy(path string) error {
	if err := os.Remove(path + copySuffix); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// sameFile returns ErrInUse if the open file is no longer the one at the path, because Compact has replaced it.
// The caller holds the file's lock, so Compact cannot replace it after this check.
func sameFile(file *os.File, path string) error {
	now, err := os.Stat(path)
	if err != nil {
		return err
	}
	mine, err := file.Stat()
	if err == nil && !os.SameFile(mine, now) {
		err = ErrInUse
	}
	return err
}

// Snapshot writes a consistent copy of the file, which Open can open. It first copies the file into a second file in
// the same directory, which has no name and needs as much room on the disk. It then calls the function `to` with the
// size of the copy in bytes, and writes the copy to the writer that this function returns. A slow writer holds up
// neither reads nor writes.
func (f *File) Snapshot(to func(size int64) (io.Writer, error)) (err error) {
	path := f.own.Name()
	beside, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+durable.Unfinished)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, beside.Close()) }()
	if err := os.Remove(beside.Name()); err != nil { // so that nothing is left if the process is killed
		return err
	}
	var size int64
	if err := f.copyTo(func(n int64) (io.Writer, error) { size = n; return beside, nil }); err != nil {
		return fmt.Errorf("copy the file: %w", err)
	}
	if _, err := beside.Seek(0, io.SeekStart); err != nil {
		return err
	}
	w, err := to(size)
	if err == nil {
		_, err = io.Copy(w, beside)
	}
	return err
}

// copyTo writes the copy in one read transaction, which ends only when the writer has taken all bytes.
func (f *File) copyTo(to func(size int64) (io.Writer, error)) error {
	return f.View(func(tx *bbolt.Tx) error {
		w, err := to(tx.Size())
		if err != nil {
			return err
		}
		_, err = tx.WriteTo(w)
		return err
	})
}
