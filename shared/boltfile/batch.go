package boltfile

import (
	"slices"

	"go.etcd.io/bbolt"
)

// call is a change that waits for its transaction.
type call struct {
	change func(*bbolt.Tx) error
	done   chan error
}

// Batch is Update for many at once: changes that wait share a transaction. The
// function may be called more than once. bbolt's own Batch would end the
// process when it finds a damaged page.
func (f *File) Batch(change func(*bbolt.Tx) error) error {
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
	return <-c.done
}

// runBatches makes the changes that wait, until there are none.
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

// makeAll makes changes in one transaction. One that is refused is tried
// again alone: the others may have been the reason.
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
