package boltfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"go.etcd.io/bbolt"
)

// SnapshotOf is like File.Snapshot, but reads a file that no process has open. It neither changes this file nor makes a
// second file. It refuses a damaged file.
func SnapshotOf(path string, to func(size int64) (io.Writer, error)) error {
	f, faults := openToRead(path, quick)
	if len(faults) > 0 {
		return errors.Join(faults...)
	}
	return errors.Join(f.copyTo(to), f.Close())
}

// Verify checks the structure of a file that no process has open, as Open does. Call it before other code opens the
// file with bbolt itself. bbolt maps a file into memory, so a file that is cut off would end the process. For an empty
// or missing file, which bbolt would create, Verify returns nil. Other errors wrap ErrDamaged or ErrInUse, or come from
// the operating system.
func Verify(path string) error {
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	err = withLock(file, syscall.LOCK_SH, func() error { return errors.Join(verify(file, quick)...) })
	if errors.Is(err, errEmpty) {
		err = nil
	}
	return errors.Join(err, file.Close())
}

// Check returns the faults of a file that no process has open. It first checks the structure, the format and the secret
// of the file. If these have no fault, it calls the given function in a read-only transaction, and returns the faults
// that this function finds. It does not change the file.
func Check(path string, o Options, contents func(*bbolt.Tx) []error) []error {
	f, faults := openToRead(path, full)
	if len(faults) > 0 {
		return faults
	}
	err := f.View(func(tx *bbolt.Tx) error {
		if _, err := o.check(tx); err != nil {
			faults = append(faults, err)
			return nil
		}
		for fault := range tx.Check() { // without a break, because bbolt's goroutine would then never end
			if len(faults) < maxFaults {
				faults = append(faults, fmt.Errorf("%w: %w", ErrDamaged, fault))
			}
		}
		if len(faults) == 0 {
			faults = contents(tx)
		}
		return nil
	})
	if err := errors.Join(err, f.Close()); err != nil {
		faults = append(faults, err)
	}
	return faults
}

// openToRead verifies a file and opens it read-only. It fails if a process has the
// file open for writing.
func openToRead(path string, depth verifyDepth) (*File, []error) {
	own, err := os.Open(path)
	if err != nil {
		return nil, []error{err}
	}
	var faults []error
	if err := withLock(own, syscall.LOCK_SH, func() error {
		faults = verify(own, depth)
		return nil
	}); err != nil {
		faults = []error{err}
	}
	if len(faults) > 0 {
		_ = own.Close() // the file was only read, so an error does not matter
		return nil, faults
	}
	f := newFile(own, nil)
	if err := f.openStore(path, &bbolt.Options{ReadOnly: true, Timeout: lockTimeout}); err != nil {
		return nil, []error{errors.Join(err, f.Close())}
	}
	return f, nil
}
