// Package boltfile keeps the bbolt files of the services' embedded stores, and
// only those: a file of anything else is left as it is.
//
// bbolt maps the file into memory and trusts each page of it: a damaged page
// makes it panic, run in circles or touch memory that is not there. So a file
// is verified before it is opened, and each transaction runs where a panic or
// a fault becomes an error. A damaged file takes no more writes.
package boltfile

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

const (
	lockTimeout = time.Second           // how long to wait for another process to let go of the file
	lockRetry   = 50 * time.Millisecond // between two attempts
	fileMode    = 0o600
)

// Where a file says what it is.
var (
	metaBucket = []byte("meta")
	formatKey  = []byte("format")
)

// unfinished goes into the name of a file that is being made.
const unfinished = ".new"

// Errors of a file. Callers may wrap ErrDamaged when they cannot decode a
// value: the file then takes no more writes.
var (
	ErrDamaged = errors.New("the file is damaged")
	ErrInUse   = errors.New("it is in use by another process")
	errClosed  = errors.New("the file is closed")
	errEmpty   = errors.New("the file is empty, and what it held is lost: restore a backup")
)

// Options of a file.
type Options struct {
	Format  string       // names what the file holds and how
	Older   []string     // formats of earlier versions that this one reads too; the file then gets the new one
	Buckets [][]byte     // made if the file does not have them
	Secrets [][]byte     // the file belongs to one of these; the first is written into it. None: it is not checked
	Log     *slog.Logger // nil: nothing is logged
}

// File is an open file. It is safe for concurrent use.
type File struct {
	db  *bbolt.DB
	own *os.File // for what bbolt does not do
	log *slog.Logger

	readable atomic.Bool // bbolt holds no lock that a panic has left locked
	writing  sync.Mutex  // from the beginning of a change until its outcome is noted
	running  sync.WaitGroup

	mu       sync.Mutex
	closed   bool
	batching bool
	waiting  []*call
	health   health
}

// Open opens the file at path, or makes it. It fails when another process has
// the file open, and when the file is empty, damaged, of another format or
// program, or of another secret.
func Open(path string, o Options) (*File, error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		if err := create(path, o); err != nil {
			return nil, fmt.Errorf("make %s: %w", path, err)
		}
	}
	f, err := open(path, o)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return f, nil
}

// create makes the file whole and durable under another name, and then gives it
// its own, so that a crash amid that leaves nothing that a later start refuses.
// If another process was faster, its file stands.
func create(path string, o Options) error {
	making := path + unfinished + strconv.Itoa(os.Getpid())
	if err := os.Remove(making); err != nil && !errors.Is(err, fs.ErrNotExist) { // of a process of this number before
		return err
	}
	db, err := bbolt.Open(making, fileMode, &bbolt.Options{Timeout: lockTimeout})
	if err != nil {
		return err
	}
	if err := errors.Join(db.Update(o.fill), db.Close()); err != nil {
		return errors.Join(err, os.Remove(making))
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

// open opens a file that was made before.
func open(path string, o Options) (_ *File, err error) {
	own, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	f := newFile(own, o.Log)
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	if err := whileLocked(own, syscall.LOCK_EX, func() error { return errors.Join(verify(own, quick)...) }); err != nil {
		return nil, err
	}
	// The list of free pages is kept in the file. To find them anew at each start
	// would save no time that can be measured in writing, and cost a second of
	// the start at a million assets.
	options := &bbolt.Options{Timeout: lockTimeout, FreelistType: bbolt.FreelistMapType}
	if err := guard(func() (err error) {
		f.db, err = bbolt.Open(path, fileMode, options)
		return err
	}); err != nil {
		f.db = nil // bbolt has closed what it had opened
		if errors.Is(err, bolterrors.ErrTimeout) {
			err = ErrInUse
		}
		return nil, err
	}
	if err := settle(own); err != nil {
		return nil, err
	}
	return f, f.prepare(o)
}

func newFile(own *os.File, log *slog.Logger) *File {
	f := &File{own: own, log: log}
	if log == nil {
		f.log = slog.New(slog.DiscardHandler)
	}
	f.readable.Store(true)
	return f
}

// whileLocked runs do while no other process has the file open for more than how.
func whileLocked(file *os.File, how int, do func() error) error {
	for end := time.Now().Add(lockTimeout); ; time.Sleep(lockRetry) {
		err := syscall.Flock(int(file.Fd()), how|syscall.LOCK_NB)
		if err == nil {
			break
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return fmt.Errorf("lock: %w", err)
		}
		if time.Now().After(end) {
			return ErrInUse
		}
	}
	return errors.Join(do(), syscall.Flock(int(file.Fd()), syscall.LOCK_UN))
}

// settle makes the newest change durable. A process before may have failed at
// just that: the change is then in the system's memory alone, while the pages
// that it has freed are about to be used again. The system does not write twice
// what it has once failed to write, so the pages that tell of it are written anew.
func settle(file *os.File) error {
	metas := make([]byte, 2*os.Getpagesize())
	n, err := file.ReadAt(metas, 0)
	if err != nil {
		return err
	}
	if _, err := file.WriteAt(metas[:n], 0); err != nil {
		return err
	}
	return file.Sync()
}

// prepare checks that the file is what o says, and adds what it lacks. It
// writes only then: a full disk is no reason not to start.
func (f *File) prepare(o Options) error {
	var complete bool
	err := f.View(func(tx *bbolt.Tx) (err error) {
		complete, err = o.check(tx)
		return err
	})
	if err != nil || complete {
		return err
	}
	return f.Update(o.fill)
}

// check fails if the file is of another format or secret. It tells whether the
// file has all that fill would write.
func (o Options) check(tx *bbolt.Tx) (complete bool, err error) {
	meta := tx.Bucket(metaBucket)
	if meta == nil {
		return false, errors.New("the file is of another program")
	}
	found := string(meta.Get(formatKey))
	if found != o.Format && !slices.Contains(o.Older, found) {
		return false, fmt.Errorf("the file is %q, not %q", found, o.Format)
	}
	complete, err = checkSecret(meta, o.Secrets)
	complete = complete && found == o.Format
	for _, name := range o.Buckets {
		complete = complete && tx.Bucket(name) != nil
	}
	return complete, err
}

// fill writes what a file has before anything is stored in it; a file of an
// earlier version may not have all.
func (o Options) fill(tx *bbolt.Tx) error {
	for _, name := range append([][]byte{metaBucket}, o.Buckets...) {
		if _, err := tx.CreateBucketIfNotExists(name); err != nil {
			return err
		}
	}
	meta := tx.Bucket(metaBucket)
	if err := meta.Put(formatKey, []byte(o.Format)); err != nil {
		return err
	}
	return putSecret(meta, o.Secrets)
}

// View reads in a transaction. It returns an error that wraps ErrDamaged when
// the file is damaged where it was read.
func (f *File) View(read func(*bbolt.Tx) error) error {
	if !f.readable.Load() {
		return unavailable("read", ErrDamaged)
	}
	began := false
	err := guard(func() error {
		return f.db.View(func(tx *bbolt.Tx) error {
			began = true
			return read(tx)
		})
	})
	if !errors.Is(err, ErrDamaged) {
		return err
	}
	if !began {
		f.readable.Store(false)
	}
	f.stop(err)
	return unavailable("read", err)
}

// Update makes a change in a transaction, durably. When that fails, and the
// error is not one of change's own, nobody knows whether the change was made.
func (f *File) Update(change func(*bbolt.Tx) error) error {
	f.writing.Lock()
	defer f.writing.Unlock()
	if err := f.stopped(); err != nil {
		return unavailable("store changes", err)
	}
	var id int
	var refused error
	panicked := true
	err := guard(func() error {
		err := f.db.Update(func(tx *bbolt.Tx) error {
			id = tx.ID()
			refused = change(tx)
			return refused
		})
		panicked = false
		return err
	})
	switch {
	case errors.Is(err, ErrDamaged):
		if panicked { // bbolt may hold its locks for good
			f.readable.Store(false)
		}
		f.stop(err)
	case refused != nil, errors.Is(err, bolterrors.ErrDatabaseNotOpen):
		return err
	case err != nil:
		f.failed(err, id)
	default:
		f.succeeded()
		return nil
	}
	return unavailable("store changes", err)
}

// guard runs do, and makes an error of a panic, and of a fault in the memory
// that the file is mapped to.
func guard(do func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", ErrDamaged, p)
		}
	}()
	return do()
}

// Close waits for what is under way and closes the file. A file that bbolt has
// panicked over stays open until the process ends: bbolt could wait for ever.
func (f *File) Close() error {
	f.mu.Lock()
	closed := f.closed
	f.closed = true
	f.mu.Unlock()
	if closed {
		return nil
	}
	f.running.Wait()
	if f.db == nil || !f.readable.Load() {
		return f.own.Close()
	}
	return errors.Join(f.db.Close(), f.own.Close())
}
