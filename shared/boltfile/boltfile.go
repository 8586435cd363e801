// Package boltfile opens the bbolt files of the services' embedded stores. It
// refuses every other file and leaves it unchanged.
//
// bbolt maps the file into memory and trusts every page. A damaged page can make
// it panic, loop for ever or read unmapped memory. So Open verifies the file
// first, and each transaction turns a panic or a memory fault into an error. A
// damaged file accepts no more writes.
package boltfile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"asset-registry/shared/dataformat"
	"asset-registry/shared/durable"
	"asset-registry/shared/errs"
)

const (
	lockTimeout = time.Second           // how long to wait until another process releases the file
	lockRetry   = 50 * time.Millisecond // pause between two attempts to lock the file
	fileMode    = 0o600

	// mapAhead is the number of bytes that are mapped beyond the end of the file. When the file outgrows the map,
	// bbolt waits for the end of all reads before it maps more, and new reads wait too. The map takes addresses, not
	// memory.
	mapAhead = 64 << 30

	// growth is the number of bytes by which a full file grows. bbolt's default is 16 MiB. With mapAhead, even a small
	// file would grow by 16 MiB.
	growth = 4 << 20
)

// The bucket and the key under which the file's format is stored.
var (
	metaBucket = []byte("meta")
	formatKey  = []byte("format")
)

// Errors of a file. Inside a transaction, a caller that cannot decode a value
// may return an error that wraps ErrDamaged. The file then takes no more writes.
var (
	ErrDamaged = errors.New("the file is damaged")
	ErrInUse   = errors.New("it is in use by another process: stop the registry or the service that uses it")
	errClosed  = errors.New("the file is closed")
	errEmpty   = errors.New("the file is empty, and what it held is lost: restore a backup")
)

// Options configure Open. Only Format is required.
type Options struct {
	Format  string   // names the contents and their encoding
	Buckets [][]byte // the buckets of the format, besides boltfile's own
	Added   [][]byte // further buckets, which a file of the format may lack; Open creates them

	// Secrets are the registry's secrets, the current one first. The file must have the check value of one of them.
	// Open replaces the value by the check value of the current secret. If Secrets is empty, Open does not check it.
	Secrets [][]byte

	Log *slog.Logger // nil for no log
}

// File is an open file. It is safe for concurrent use.
type File struct {
	db  *bbolt.DB
	own *os.File // the file, opened a second time, for work that bbolt does not do
	log *slog.Logger

	readable atomic.Bool // false if a panic may have left a lock of bbolt locked
	writing  sync.Mutex  // held from the start of a change until its outcome is noted
	running  sync.WaitGroup
	aheads   atomic.Int64 // calls of Ahead under way
	updates  atomic.Int64 // successful transactions that changed the file
	updating atomic.Int64 // total time of these transactions, in nanoseconds

	mu       sync.Mutex
	closed   bool
	batching bool
	waiting  []*call
	health   health
}

// Open opens the file at path, and creates it if it does not exist. It fails if
//
//   - another process has the file open (ErrInUse),
//   - the file is empty, or damaged (ErrDamaged),
//   - or the file has another format, or belongs to another program or secret.
func Open(path string, o Options) (*File, error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		if err := create(path, o); err != nil {
			return nil, fmt.Errorf("create %s: %w", path, err)
		}
	}
	f, err := open(path, o)
	return f, errs.In(err, "open %s", path)
}

// createTries is the maximum number of times that create tries to make the file.
const createTries = 8

// create writes the whole file under a temporary name and then links it to path. So a crash never leaves a file that
// a later Open refuses. If another process creates the file at the same time, the file that is linked first stays.
func create(path string, o Options) error {
	var err error
	for range createTries {
		if err = createOnce(path, o); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		// createOnce did not find its own temporary file. Another process has taken it for the remains of a crash and
		// removed it. The other process is about to create the file.
		if _, absent := os.Stat(path); absent == nil {
			return nil
		}
	}
	return err
}

func createOnce(path string, o Options) error {
	temporary, err := durable.Temporary(path)
	if err != nil {
		return err
	}
	db, err := bbolt.Open(temporary, fileMode, &bbolt.Options{Timeout: lockTimeout}) // locks the file
	if err != nil {
		return err
	}
	if err := errors.Join(db.Update(o.fill), db.Close()); err != nil {
		return errors.Join(err, os.Remove(temporary))
	}
	if err := durable.Link(temporary, path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// open opens a file that exists.
func open(path string, o Options) (*File, error) {
	f, err := openToWrite(path, quick, o.Log)
	if err != nil {
		return nil, err
	}
	err = rewriteMeta(f.own)
	if err == nil {
		err = f.prepare(o)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// openToWrite verifies a file and opens it. It does not change the file, and fails if
// another process has it open.
func openToWrite(path string, depth verifyDepth, log *slog.Logger) (_ *File, err error) {
	own, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	f := newFile(own, log)
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	verified := func() error { return errors.Join(verify(own, depth)...) }
	if err := withLock(own, syscall.LOCK_EX, verified); err != nil {
		return nil, err
	}
	// bbolt must store the list of free pages in the file. Otherwise a start with a million assets would take a second
	// longer, and writes would hardly be faster.
	info, err := own.Stat()
	if err != nil {
		return nil, err
	}
	options := &bbolt.Options{
		Timeout: lockTimeout, FreelistType: bbolt.FreelistMapType, InitialMmapSize: int(info.Size()) + mapAhead,
	}
	if err := f.openStore(path, options); err != nil {
		return nil, err
	}
	f.db.AllocSize = growth
	return f, removeCopy(path)
}

// openStore opens the store of bbolt. The file with the path must be the one that f has opened.
func (f *File) openStore(path string, options *bbolt.Options) error {
	err := guard(func() (err error) {
		f.db, err = bbolt.Open(path, fileMode, options)
		return err
	})
	if err == nil {
		return sameFile(f.own, path)
	}
	f.db = nil // bbolt has closed the file
	if errors.Is(err, bolterrors.ErrTimeout) {
		err = ErrInUse
	}
	return err
}

func newFile(own *os.File, log *slog.Logger) *File {
	f := &File{own: own, log: log}
	if log == nil {
		f.log = slog.New(slog.DiscardHandler)
	}
	f.readable.Store(true)
	return f
}

// withLock runs the function `do` while it holds a lock on the file: syscall.LOCK_EX or LOCK_SH. It returns ErrInUse
// if it does not get the lock in time.
func withLock(file *os.File, lock int, do func() error) error {
	for end := time.Now().Add(lockTimeout); ; time.Sleep(lockRetry) {
		err := syscall.Flock(int(file.Fd()), lock|syscall.LOCK_NB)
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

// rewriteMeta makes the newest change durable by writing the meta pages again.
//
// The fsync of an earlier process may have failed. Then the change is only in the
// page cache, and the next change would reuse pages that the disk still needs. A
// second fsync is not enough: the kernel does not write a page again after a
// failure, unless the page changes.
func rewriteMeta(file *os.File) error {
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

// prepare checks the file against the options, creates the added buckets and stores the current secret. If the file
// already has all of them, prepare writes nothing, so that a service can start on a full disk.
func (f *File) prepare(o Options) error {
	var current bool
	err := f.View(func(tx *bbolt.Tx) (err error) {
		current, err = o.check(tx)
		return err
	})
	if err != nil || current {
		return err
	}
	return f.Update(func(tx *bbolt.Tx) error {
		for _, name := range o.Added {
			if _, err := tx.CreateBucketIfNotExists(name); err != nil {
				return err
			}
		}
		return putSecret(tx.Bucket(metaBucket), o.Secrets)
	})
}

// check returns an error if the file has another format or secret, or lacks a bucket. It
// reports whether the file has the current secret and all added buckets.
func (o Options) check(tx *bbolt.Tx) (current bool, err error) {
	meta := tx.Bucket(metaBucket)
	if meta == nil {
		return false, errors.New("the file belongs to another program")
	}
	if found := string(meta.Get(formatKey)); found != o.Format {
		return false, dataformat.Refusal(found, o.Format)
	}
	for _, name := range o.Buckets {
		if tx.Bucket(name) == nil {
			return false, fmt.Errorf("%w: the bucket %s is missing", ErrDamaged, name)
		}
	}
	current, err = checkSecret(meta, o.Secrets)
	for _, name := range o.Added {
		current = current && tx.Bucket(name) != nil
	}
	return current, err
}

// fill writes the buckets, the format and the secret into a new file.
func (o Options) fill(tx *bbolt.Tx) error {
	for _, name := range slices.Concat([][]byte{metaBucket}, o.Buckets, o.Added) {
		if _, err := tx.CreateBucket(name); err != nil {
			return err
		}
	}
	meta := tx.Bucket(metaBucket)
	if err := meta.Put(formatKey, []byte(o.Format)); err != nil {
		return err
	}
	return putSecret(meta, o.Secrets)
}

// ViewIn is View, unless ctx has ended.
func (f *File) ViewIn(ctx context.Context, read func(*bbolt.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return f.View(read)
}

// UpdateIn is Update, unless ctx has ended.
func (f *File) UpdateIn(ctx context.Context, change func(*bbolt.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return f.Update(change)
}

// View runs a read-only transaction. It returns an error that wraps ErrDamaged if the function `read` meets a damaged
// part of the file.
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

// Update runs a transaction and commits it durably. If the function `change` returns an error, nothing is stored.
// After any other error, the change may or may not be stored.
func (f *File) Update(change func(*bbolt.Tx) error) error {
	f.writing.Lock()
	defer f.writing.Unlock()
	if err := f.stopped(); err != nil {
		return unavailable("store changes", err)
	}
	var id int
	var refused error
	begun, panicked := time.Now(), true
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
		if panicked { // bbolt has perhaps kept a lock locked
			f.readable.Store(false)
		}
		f.stop(err)
	case refused != nil, errors.Is(err, bolterrors.ErrDatabaseNotOpen):
		return err
	case err != nil:
		f.failed(err, id)
	default:
		f.updates.Add(1)
		f.updating.Add(int64(time.Since(begun)))
		f.succeeded()
		return nil
	}
	return unavailable("store changes", err)
}

// Updates returns how many transactions have changed the file, and how long they took
// together.
func (f *File) Updates() (count int64, took time.Duration) {
	return f.updates.Load(), time.Duration(f.updating.Load())
}

// guard runs the function `do`. It turns a panic, and a fault in the mapped memory, into an error that wraps
// ErrDamaged. It cannot distinguish a panic of our own code from one by which bbolt reports a damaged page. So each
// panic counts as damage, and ends writes until the next Open.
func guard(do func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", ErrDamaged, p)
		}
	}()
	return do()
}

// Close waits for changes under way and closes the file. After a panic in bbolt it
// leaves bbolt's file open until the process ends: bbolt's Close could wait for
// ever.
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
