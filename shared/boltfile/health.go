package boltfile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	"go.opentelemetry.io/otel/metric"

	"asset-registry/shared/fault"
	"asset-registry/shared/telemetry"
)

// probeEvery is the least time between two probes of the disk.
const probeEvery = time.Second

var probeKey = []byte("probe") // in the meta bucket; its value is empty

// health has the reasons why a file accepts no writes. All are nil if the file accepts writes.
type health struct {
	stopped error // an error after which the file accepts no writes until the next Open
	failing error // the error of the last commit
	full    error // the error of the last attempt to reserve space
	probed  time.Time
	probing chan struct{} // closed when the current probe ends; nil without a probe
}

func (h *health) cause() error { return cmp.Or(h.stopped, h.failing, h.full) }

// unavailable returns the fault for a client, with the cause for the log. The text `action` is a verb for
// what failed, such as "read".
func unavailable(action string, cause error) error {
	f := fault.New(fault.Unavailable, fault.URL, "store",
		"The registry cannot %s now; repeat the request later.", action)
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

// succeeded notes that a commit succeeded. On a full disk a small change may still find room in the file. So
// after an error about a full disk, only a probe shows that the disk has room again.
func (f *File) succeeded() {
	f.note(func(h *health) {
		if !errors.Is(h.failing, syscall.ENOSPC) {
			h.failing = nil
		}
	})
}

// failed notes that the commit of the transaction with this id failed.
//
// If a reader sees the transaction nevertheless, only its fsync failed. The next
// transaction would then reuse the pages that the failed transaction freed. The
// disk may still need these pages after a crash. So the file accepts no more writes
// until the next Open, which makes the failed transaction durable (rewriteMeta).
//
// Until then readers see the change, although the client got a 503. This status says that the change may or may
// not be done. If the machine loses its power before that Open, the change is lost.
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
		h.probed = time.Time{} // the next call of Ready probes the disk
	})
}

// note changes the file's health. It logs when the file stops accepting writes,
// and when it accepts writes again.
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
		f.log.Error("the store takes no writes until the service restarts", "file", f.own.Name(), "error", now)
	}
}

// reason returns the part of an error that a client may see. It has no paths.
func reason(err error) string {
	var number syscall.Errno
	switch {
	case errors.Is(err, ErrDamaged):
		return ErrDamaged.Error()
	case errors.As(err, &number):
		return number.Error()
	default:
		return "the disk refuses changes"
	}
}

// Ready returns nil if the file accepts writes, and otherwise a fault of kind
// Unavailable with the reason. It probes the disk at most once in probeEvery.
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
	public := fault.New(fault.Unavailable, fault.URL, "store",
		"Changes cannot be stored now: %s: %s.", filepath.Base(f.own.Name()), reason)
	return fmt.Errorf("%w: %w", public, cause)
}

// probe checks that the disk has space for a change. After a failed commit it also
// commits a small change.
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
	// If the last commit failed, the Update below tries a small change. The variable `again` is true only if this
	// change succeeds. If it fails, Update notes the failure.
	again := failing && err == nil
	if again {
		again = f.Update(func(tx *bbolt.Tx) error { return tx.Bucket(metaBucket).Put(probeKey, nil) }) == nil
	}
	f.note(func(h *health) {
		h.full, h.probed = err, time.Now()
		if again {
			h.failing = nil
		}
		close(h.probing)
		h.probing = nil
	})
}

// The space that a probe reserves for changes. While changes succeed, space for a
// small one is enough. After a failure, there must be space for the largest asset,
// unless the file system is tiny.
const (
	minReserve  = 64 << 10 // bytes that are enough while changes succeed
	maxReserve  = 8 << 20  // bytes that must be free after a failure
	reservePart = 16       // a probe reserves at most a 16th of the file system
)

// Measure registers metrics of the file and its disk until the function `stop` is called. The
// name says what the file holds.
func (f *File) Measure(meter metric.Meter, name string) (stop func()) {
	path := f.db.Path() // read now, because a closed file has no path
	return telemetry.MeasureStore(meter, name, func(context.Context) (use telemetry.StoreUse) {
		if info, err := os.Stat(path); err == nil {
			use.Size = info.Size()
		}
		var disk syscall.Statfs_t
		if err := syscall.Statfs(path, &disk); err == nil {
			use.DiskFree = int64(disk.Bavail) * int64(disk.Bsize)
			use.DiskSize = int64(disk.Blocks) * int64(disk.Bsize)
		}
		return use
	})
}
