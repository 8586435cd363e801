package boltfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// SnapshotOf writes a file that no process has open, as File.Snapshot does, and
// leaves it as it is. A damaged file is refused.
func SnapshotOf(path string, to func(size int64) (io.Writer, error)) error {
	f, faults := openToRead(path, quick)
	if len(faults) > 0 {
		return errors.Join(faults...)
	}
	return errors.Join(f.Snapshot(to), f.Close())
}

// Check returns all that is wrong with a file that no process has open, and
// leaves it as it is: with its structure, with its format and secret, and what
// contents finds in a transaction of a file that is good as far as that.
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
		for fault := range tx.Check() { // to its end: bbolt waits for us
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

// openToRead opens a file that no process has open for anything else, once it
// is verified.
func openToRead(path string, how thoroughness) (*File, []error) {
	own, err := os.Open(path)
	if err != nil {
		return nil, []error{err}
	}
	var faults []error
	if err := whileLocked(own, syscall.LOCK_SH, func() error {
		faults = verify(own, how)
		return nil
	}); err != nil {
		faults = []error{err}
	}
	if len(faults) > 0 {
		_ = own.Close() // nothing was written
		return nil, faults
	}
	f := newFile(own, nil)
	if err := guard(func() (err error) {
		f.db, err = bbolt.Open(path, fileMode, &bbolt.Options{ReadOnly: true, Timeout: lockTimeout})
		return err
	}); err != nil {
		f.db = nil
		if errors.Is(err, bolterrors.ErrTimeout) {
			err = ErrInUse
		}
		return nil, []error{errors.Join(err, f.Close())}
	}
	return f, nil
}
