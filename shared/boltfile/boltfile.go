// Package boltfile opens the bbolt files of the services' embedded stores, and
// only those: a file of anything else is left as it is.
package boltfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

const (
	lockTimeout = time.Second // how long to wait for another process to let go of the file
	fileMode    = 0o600
)

// Where a file says what it is.
var (
	metaBucket = []byte("meta")
	formatKey  = []byte("format")
)

// unfinished goes into the name of a file that is being made.
const unfinished = ".new"

// Open opens the file at path, or makes it, with buckets in it. The format names
// what the file holds and how. It fails when another process has the file
// open, and when it is of another format or program.
func Open(path, format string, buckets ...[]byte) (*bbolt.DB, error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		if err := create(path, format, buckets); err != nil {
			return nil, fmt.Errorf("make %s: %w", path, err)
		}
	}
	db, err := open(path, format, buckets)
	if errors.Is(err, bolterrors.ErrTimeout) {
		return nil, fmt.Errorf("open %s: it is in use by another process", path)
	}
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return db, nil
}

// create makes the file whole and durable under another name, and then gives it
// its own, so that a crash amid that leaves nothing that a later start refuses.
// If another process was faster, its file stands.
func create(path, format string, buckets [][]byte) error {
	making := path + unfinished + strconv.Itoa(os.Getpid())
	if err := os.Remove(making); err != nil && !errors.Is(err, fs.ErrNotExist) { // of a process of this number before
		return err
	}
	db, err := open(making, format, buckets)
	if err != nil {
		return err
	}
	if err := db.Close(); err != nil {
		return err
	}
	if err := os.Link(making, path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := os.Remove(making); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

func open(path, format string, buckets [][]byte) (*bbolt.DB, error) {
	// The list of free pages is kept in the file. To find them anew at each start
	// would save no time that can be measured in writing, and cost a second of
	// the start at a million assets.
	db, err := bbolt.Open(path, fileMode, &bbolt.Options{Timeout: lockTimeout, FreelistType: bbolt.FreelistMapType})
	if err != nil {
		return nil, err
	}
	if err := db.Update(func(tx *bbolt.Tx) error { return prepare(tx, format, buckets) }); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

func prepare(tx *bbolt.Tx, format string, buckets [][]byte) error {
	if meta := tx.Bucket(metaBucket); meta != nil {
		if found := string(meta.Get(formatKey)); found != format {
			return fmt.Errorf("the file is %q, not %q", found, format)
		}
		for _, name := range buckets { // a file of an earlier version may not have all
			if _, err := tx.CreateBucketIfNotExists(name); err != nil {
				return err
			}
		}
		return nil
	}
	if name, _ := tx.Cursor().First(); name != nil {
		return errors.New("the file is of another program")
	}
	for _, name := range buckets {
		if _, err := tx.CreateBucket(name); err != nil {
			return err
		}
	}
	meta, err := tx.CreateBucket(metaBucket)
	if err != nil {
		return err
	}
	return meta.Put(formatKey, []byte(format))
}
