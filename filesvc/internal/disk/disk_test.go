package disk

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"asset-registry/filesvc/internal/file"
	"asset-registry/shared/fault"
	"asset-registry/shared/testing/expect"
)

// closing is the result of a call, which must be closed if nobody waits for it.
type closing struct{ closed *atomic.Int64 }

func (c closing) Close() error { c.closed.Add(1); return nil }

// TestADiskThatHangsKeepsFewCalls makes 5,000 calls on a disk that hangs, and then lets the disk go on. The clock is
// simulated.
func TestADiskThatHangsKeepsFewCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, hangs := New(), make(chan struct{})
		var begun, closed, unavailable, pending atomic.Int64
		for range 5000 {
			go func() {
				before := time.Now()
				_, err := Do(t.Context(), d, func() (closing, error) {
					begun.Add(1)
					<-hangs
					return closing{&closed}, nil
				})
				if took := time.Since(before); took != within {
					t.Errorf("got an answer after %v, want it after %v", took, within)
				}
				if fault.KindOf(err) == fault.Unavailable {
					unavailable.Add(1)
				}
				if errors.Is(err, ErrPending) {
					pending.Add(1)
				}
			}()
		}
		time.Sleep(within + 1)
		synctest.Wait()
		if begun.Load() != callsAtOnce || pending.Load() != callsAtOnce || unavailable.Load() != 5000 {
			t.Errorf("got %d calls, %d of them pending, and %d refusals; want %d, all of them, and 5000",
				begun.Load(), pending.Load(), unavailable.Load(), callsAtOnce)
		}
		expect.Fault(t, d.Try(t.Context(), func() error { return nil }), fault.Unavailable,
			"after the clients have their answers")
		close(hangs)
		synctest.Wait()
		expect.Equal(t, closed.Load(), callsAtOnce, "results closed")
		expect.Err(t, d.Try(t.Context(), func() error { return nil }), nil, "after the disk goes on")
	})
}

func TestErrorsOfADisk(t *testing.T) {
	d := New()
	ended, end := context.WithCancel(t.Context())
	end()
	expect.Equal(t, d.Try(ended, func() error { return nil }), context.Canceled, "after the end of its context")
	for _, c := range []struct {
		err  error
		kind fault.Kind
		full bool
	}{
		{syscall.EIO, fault.Unavailable, false}, {fs.ErrNotExist, fault.Unavailable, false},
		{syscall.ENOSPC, fault.Internal, true}, {syscall.EDQUOT, fault.Internal, true},
	} {
		err := d.Try(t.Context(), func() error { return c.err })
		if !errors.Is(err, c.err) || fault.KindOf(err) != c.kind || errors.Is(err, file.ErrFull) != c.full {
			t.Errorf("%v: got %v, of kind %d; want kind %d, full: %t", c.err, err, fault.KindOf(err), c.kind, c.full)
		}
	}
}

// TestAFileKeepsItsPlaceUntilItIsClosed opens as many files as may be open at the same time.
func TestAFileKeepsItsPlaceUntilItIsClosed(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	expect.OK(t, os.WriteFile(name, nil, 0o600))
	d := New()
	for range filesAtOnce {
		r := expect.Get(d.Open(t.Context(), name))(t)
		if len(d.files) == filesAtOnce {
			expect.Try(t, r.Close())
			break
		}
		defer r.Close()
	}
	if _, err := d.Open(t.Context(), name+"?"); !errors.Is(err, fs.ErrNotExist) || len(d.files) != filesAtOnce-1 {
		t.Errorf("a file that is missing: got %v with %d places taken, want %v and %d", err, len(d.files), fs.ErrNotExist,
			filesAtOnce-1)
	}
}

// TestAWriterSyncs counts what a writer has not synced.
func TestAWriterSyncs(t *testing.T) {
	f := expect.Get(os.Create(filepath.Join(t.TempDir(), "file")))(t)
	defer f.Close()
	w := &Writer{Context: t.Context(), Disk: New(), File: f, Sync: 5}
	for _, left := range []int{3, 0, 3} {
		if n, err := w.Write([]byte("abc")); n != 3 || err != nil || w.written != left {
			t.Errorf("got %d, %v with %d bytes not synced; want 3 and %d", n, err, w.written, left)
		}
	}
}
