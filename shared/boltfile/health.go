package boltfile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"syscall"
	"time"

	"go.etcd.io/bbolt"

	"asset-registry/shared/fault"
)

// probeEvery is how often Ready tries the disk at most.
const probeEvery = time.Second

var probeKey = []byte("probe") // in the meta bucket; its value says nothing

// health is why a file takes no writes.
type health struct {
	stopped error // until the process is started anew
	failing error // of the last commit
	full    error // of the last attempt to reserve room for the next ones
	probed  time.Time
	probing chan struct{} // closed when the probe under way has ended; nil: none
}

func (h *health) cause() error { return cmp.Or(h.stopped, h.failing, h.full) }

// unavailable is the error for a caller, with the cause for the log.
func unavailable(doing string, cause error) error {
	f := fault.New(fault.Unavailable, fault.URL, "store", "The registry cannot %s now; repeat the request later.", doing)
	return fmt.Errorf("%w: %w", f, cause)
}

// stop refuses all writes from now on.
func (f *File) stop(cause error) {
	f.note(func(h *health) { h.stopped = cmp.Or(h.stopped, cause) })
}

func (f *File) stopped() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.health.stopped
}

func (f *File) succeeded() { f.note(func(h *health) { h.failing = nil }) }

// failed notes that the commit of a transaction has failed. If the file tells
// of the transaction all the same, then what failed was to make that durable.
// bbolt would now use the pages again that the transaction has freed, though
// the disk may still need them after a crash. So there is no other one until
// the next Open has made the last one durable.
func (f *File) failed(cause error, id int) {
	begun := false
	err := f.View(func(tx *bbolt.Tx) error {
		begun = tx.ID() == id
		return nil
	})
	if begun || err != nil {
		f.stop(fmt.Errorf("the last change is perhaps not on the disk: %w", cause))
		return
	}
	f.note(func(h *health) {
		h.failing = cause
		h.probed = time.Time{} // the next question tries anew
	})
}

// note changes what is known of the file's health, and logs when writes end and
// begin again.
func (f *File) note(change func(*health)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := f.health.cause()
	change(&f.health)
	switch now := f.health.cause(); {
	case before == nil && now != nil:
		f.log.Error("the store takes no writes", "file", f.own.Name(), "reason", reason(now), "error", now)
	case before != nil && now == nil:
		f.log.Info("the store takes writes again", "file", f.own.Name())
	case f.health.stopped != nil && !errors.Is(before, f.health.stopped):
		f.log.Error("the store takes no writes until it is started anew", "file", f.own.Name(), "error", now)
	}
}

// reason is what of an error may be told to everybody: no paths.
func reason(err error) string {
	var number syscall.Errno
	switch {
	case errors.Is(err, ErrDamaged):
		return ErrDamaged.Error()
	case errors.As(err, &number):
		return number.Error()
	default:
		return "the disk does not take changes"
	}
}

// Ready returns nil when a change can be stored now, and a fault of kind
// Unavailable that tells the reason when none can. It tries the disk at most
// once in probeEvery, however many ask.
func (f *File) Ready(ctx context.Context) error {
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		return errClosed
	}
	h := &f.health
	if h.stopped == nil && h.probing == nil && time.Since(h.probed) >= probeEvery {
		h.probing = make(chan struct{})
		f.running.Go(f.probe)
	}
	probing := h.probing
	f.mu.Unlock()
	if probing != nil {
		select {
		case <-probing:
		case <-ctx.Done():
			return f.unready("the disk does not answer", ctx.Err())
		}
	}
	f.mu.Lock()
	cause := h.cause()
	f.mu.Unlock()
	if cause == nil {
		return nil
	}
	return f.unready(reason(cause), cause)
}

func (f *File) unready(reason string, cause error) error {
	told := fault.New(fault.Unavailable, fault.URL, "store",
		"Changes cannot be stored now: %s: %s.", filepath.Base(f.own.Name()), reason)
	return fmt.Errorf("%w: %w", told, cause)
}

// probe finds out whether a change could be stored: there must be room for it.
// After a failure it tries a small one too.
func (f *File) probe() {
	f.mu.Lock()
	failing := f.health.failing != nil
	f.mu.Unlock()
	var used int64
	err := f.View(func(tx *bbolt.Tx) error {
		used = tx.Size()
		return nil
	})
	if err == nil {
		if err = reserve(f.own, used, maxReserve); err != nil && !failing {
			err = reserve(f.own, used, minReserve)
		}
	}
	if failing && err == nil {
		// Its outcome is noted as that of every change.
		_ = f.Update(func(tx *bbolt.Tx) error { return tx.Bucket(metaBucket).Put(probeKey, nil) })
	}
	f.note(func(h *health) {
		h.full, h.probed = err, time.Now()
		close(h.probing)
		h.probing = nil
	})
}

// Room is kept for changes to come. After a failure there must be enough for
// the largest asset, unless the file system is tiny; before, as long as changes
// are stored, enough for a small one will do.
const (
	minReserve  = 64 << 10 // bytes
	maxReserve  = 8 << 20  // bytes
	reservePart = 16       // of the file system, and no more than that
)
