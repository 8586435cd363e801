package boltfile

import (
	"context"
	"slices"

	"go.etcd.io/bbolt"
)

// call is a waiting call of Batch.
type call struct {
	change func(*bbolt.Tx) error
	done   chan error
}

// Batch is like Update, but changes that wait at the same time share a transaction.
// It may call the function `change` more than once. bbolt's own Batch would crash the
// process on a damaged page. If ctx ends first, as on a disk that hangs, Batch returns a fault of kind Unavailable, and
// the change may be made later. So the change may only write to what nobody else uses after an error.
func (f *File) Batch(ctx context.Context, change func(*bbolt.Tx) error) error {
	c := &call{change, make(chan error, 1)}
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		return errClosed
	}
	f.waiting = append(f.waiting, c)
	if !f.batching {
		f.batching = true
		f.running.Go(f.runBatches)
	}
	f.mu.Unlock()
	select {
	case err := <-c.done:
		return err
	case <-ctx.Done():
		return unavailable("store changes", ctx.Err())
	}
}

// runBatches carries out waiting changes until none is left.
func (f *File) runBatches() {
	for {
		f.mu.Lock()
		calls := f.waiting
		f.waiting = nil
		f.batching = len(calls) > 0
		f.mu.Unlock()
		if len(calls) == 0 {
			return
		}
		f.makeAll(calls)
	}
}

// makeAll carries out changes in one transaction. If a change fails, makeAll carries it out again alone,
// since another change may be the cause, and carries out the other changes again together.
func (f *File) makeAll(calls []*call) {
	for len(calls) > 0 {
		refused := -1
		err := f.Update(func(tx *bbolt.Tx) error {
			for i, c := range calls {
				if err := c.change(tx); err != nil {
					refused = i
					return err
				}
			}
			return nil
		})
		if refused < 0 {
			for _, c := range calls {
				c.done <- err
			}
			return
		}
		calls[refused].done <- f.Update(calls[refused].change)
		calls = slices.Delete(calls, refused, refused+1)
	}
}
