// Package disk bounds the system calls on one disk. A call on a disk that hangs, such as a lost network disk, never
// returns, and holds a thread of the process for good. Go ends a process with 10,000 threads.
package disk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"asset-registry/filesvc/internal/file"
	"asset-registry/shared/fault"
)

const (
	callsAtOnce = 64   // calls on one disk that are under way at the same time
	filesAtOnce = 1000 // files of one disk that are open at the same time to be read
	within      = 10 * time.Second
)

// ErrPending is the cause of the error of a call that has not returned. It may still change the disk.
var ErrPending = errors.New("a call on the disk has not returned")

// Disk has the places for calls on one disk. A place is free again when its call has returned, even if nobody waits for
// the call any more. It is safe for concurrent use.
type Disk struct{ calls, files chan struct{} }

// New returns a disk with free places.
func New() *Disk {
	return &Disk{calls: make(chan struct{}, callsAtOnce), files: make(chan struct{}, filesAtOnce)}
}

// unavailable returns the fault for a disk that does not do what was asked. Only the log shows the cause.
func unavailable(cause error) error {
	f := fault.New(fault.Unavailable, fault.URL, "files",
		"The store of the files does not answer as it should; repeat the request later.")
	return fmt.Errorf("%w: %w", f, cause)
}

// why returns the error of a call as file.Bytes specifies it.
func why(err error) error {
	if err = file.NoRoom(err); err == nil || errors.Is(err, file.ErrFull) {
		return err
	}
	return unavailable(err)
}

// take takes a place, and waits at most until the deadline for it.
func take(ctx context.Context, places chan struct{}, late <-chan time.Time) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-late:
		return unavailable(errors.New("too many calls on the disk have not returned"))
	}
}

// Do returns the result of a call, or a fault: Unavailable if the call fails or takes longer than 10 s with its wait
// for a place. The fault wraps ErrPending if the call has not returned. A result that comes later and is an io.Closer
// is closed. So the call may only change what nobody else uses after an error. If there is no room, Do returns
// file.ErrFull.
func Do[T any](ctx context.Context, d *Disk, call func() (T, error)) (result T, err error) {
	late := time.NewTimer(within)
	defer late.Stop()
	if err := take(ctx, d.calls, late.C); err != nil {
		return result, err
	}
	type returned struct {
		value T
		err   error
	}
	done, left := make(chan returned), make(chan struct{})
	go func() {
		defer func() { <-d.calls }()
		value, err := call()
		select {
		case done <- returned{value, err}:
		case <-left:
			if c, isOpen := any(value).(io.Closer); isOpen && err == nil {
				_ = c.Close() // nothing was written to it
			}
		}
	}()
	select {
	case r := <-done:
		return r.value, why(r.err)
	case <-ctx.Done():
		err = fmt.Errorf("%w: %w", ErrPending, ctx.Err())
	case <-late.C:
		err = unavailable(ErrPending)
	}
	close(left)
	return result, err
}

// Try makes a call as Do does.
func (d *Disk) Try(ctx context.Context, call func() error) error {
	_, err := Do(ctx, d, func() (struct{}, error) { return struct{}{}, call() })
	return err
}

// Open opens a file for reading, and reads from it, so that the error of a disk that hangs comes before an answer has
// begun. The file keeps its place until Close.
func (d *Disk) Open(ctx context.Context, name string) (*Reading, error) {
	late := time.NewTimer(within)
	defer late.Stop()
	if err := take(ctx, d.files, late.C); err != nil {
		return nil, err
	}
	f, err := Do(ctx, d, func() (*os.File, error) {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		if _, err := f.ReadAt(make([]byte, 1), 0); err != nil && err != io.EOF {
			return nil, errors.Join(err, f.Close())
		}
		return f, nil
	})
	if err != nil {
		<-d.files
		return nil, err
	}
	return &Reading{f, d}, nil
}

// Reading is a file that is open for reading.
type Reading struct {
	file *os.File
	disk *Disk
}

func (r *Reading) Read(p []byte) (int, error) { return r.file.Read(p) }

func (r *Reading) Seek(offset int64, whence int) (int64, error) { return r.file.Seek(offset, whence) }

// File returns the open file. Only a file of this machine has this method.
func (r *Reading) File() *os.File { return r.file }

// Close closes the file and frees its place. It must be called once.
func (r *Reading) Close() error {
	defer func() { <-r.disk.files }()
	return r.file.Close()
}

// Writer writes to a file. After an error, the caller must not change the bytes that it passed to Write.
type Writer struct {
	Context context.Context
	Disk    *Disk
	File    *os.File
	Sync    int // after this number of bytes, Write syncs the file, so that no single call takes long; 0: never

	written int
}

func (w *Writer) Write(p []byte) (int, error) {
	return Do(w.Context, w.Disk, func() (int, error) {
		n, err := w.File.Write(p)
		if w.written += n; err == nil && w.Sync > 0 && w.written >= w.Sync {
			w.written, err = 0, w.File.Sync()
		}
		return n, err
	})
}
