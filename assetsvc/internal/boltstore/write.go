package boltstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"go.etcd.io/bbolt"

	"asset-registry/assetsvc/internal/registry"
)

// write is a call of Create, Replace or ClaimReference that waits for its transaction.
type write struct {
	registry.Record
	create bool
	claim  *claim       // nil: the write is a call of Create or Replace
	state  atomic.Int32 // waiting, taken or abandoned

	done     chan struct{} // closed after the transaction, if it took the write
	position int64         // result, once done is closed
	err      error         // result, once done is closed
}

// The states of a write. A write begins as waiting, and changes its state only once: either the writing
// goroutine takes the write and later closes its channel, or the caller abandons the write and nothing is written.
const (
	waiting = iota
	taken
	abandoned
)

var errClosed = errors.New("the store is closed")

// Create stores a new asset, or returns registry.ErrExists. If ctx ends before the transaction takes the write,
// nothing is written. If ctx ends later, Create still waits for the outcome.
func (s *Store) Create(ctx context.Context, r registry.Record) (int64, error) {
	return s.submit(ctx, &write{Record: r, create: true})
}

// Replace stores a new revision of an asset, or returns registry.ErrStale or registry.ErrNotFound. If ctx ends before
// the transaction takes the write, nothing is written. If ctx ends later, Replace still waits for the outcome.
func (s *Store) Replace(ctx context.Context, r registry.Record) (int64, error) {
	return s.submit(ctx, &write{Record: r})
}

func (s *Store) submit(ctx context.Context, w *write) (int64, error) {
	if err := ctx.Err(); err != nil { // the select below may choose the queue even if ctx has ended
		return 0, err
	}
	w.done = make(chan struct{})
	select {
	case s.queue <- w:
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-s.closed:
		return 0, errClosed
	}
	select {
	case <-w.done:
	case <-ctx.Done():
	case <-s.done: // the goroutine may have ended before it took this write
	}
	if w.state.CompareAndSwap(waiting, abandoned) {
		return 0, cmp.Or(ctx.Err(), errClosed)
	}
	<-w.done
	return w.position, w.err
}

// run commits batches until the store is closed and the queue is empty.
func (s *Store) run() {
	defer close(s.done)
	for {
		var w *write
		select {
		case w = <-s.queue:
		case <-s.closed:
			select {
			case w = <-s.queue:
			default:
				return
			}
		}
		s.commit(s.gather(w))
	}
}

// gather takes the first write and the writes that wait behind it. It takes at most maxBatch writes.
func (s *Store) gather(first *write) []*write {
	var batch []*write
	for w := first; ; {
		if w.state.CompareAndSwap(waiting, taken) {
			batch = append(batch, w)
		}
		if len(batch) == maxBatch {
			return batch
		}
		select {
		case w = <-s.queue:
		default:
			return batch
		}
	}
}

// commit applies a batch in one transaction. If a write is refused, the other writes are applied nevertheless. If
// the transaction fails, all writes of the batch fail.
func (s *Store) commit(batch []*write) {
	if len(batch) == 0 {
		return
	}
	defer s.announce(batch)()
	var numbers map[string]int
	err := s.file.Update(func(tx *bbolt.Tx) error {
		t := s.begin(tx)
		for _, w := range batch {
			if w.claim != nil {
				w.err = w.claim.apply(tx.Bucket(referenceBucket))
			} else {
				w.position, w.err = t.apply(w)
			}
			if w.err != nil && !isRefusal(w.err) {
				return w.err
			}
		}
		if err := t.state.Put(lastKey, positionKey(t.last)); err != nil {
			return err
		}
		if t.brokers != nil {
			if err := t.state.Put(indexedKey, positionKey(t.last)); err != nil {
				return err
			}
		}
		if err := t.counted.save(tx.Bucket(censusBucket)); err != nil {
			return err
		}
		var err error
		numbers, err = s.numbers.save(tx.Bucket(numberBucket))
		return err
	})
	if err == nil {
		s.numbers.forget(numbers)
	}
	for _, w := range batch {
		if err != nil {
			w.position, w.err = 0, fmt.Errorf("commit: %w", err)
		}
		close(w.done)
	}
}

// announce calls Options.Changing for the assets that a batch changes. It returns the function to call after the
// batch. New assets are left out, because nobody can have read them.
func (s *Store) announce(batch []*write) (done func()) {
	var ids []string
	if s.told != nil {
		for _, w := range batch {
			if !w.create && w.claim == nil {
				ids = append(ids, w.ID)
			}
		}
	}
	if len(ids) == 0 {
		return func() {}
	}
	return s.told(ids)
}

// isRefusal reports whether err refuses only one write, so that the transaction can go on.
func isRefusal(err error) bool {
	return errors.Is(err, registry.ErrExists) || errors.Is(err, registry.ErrNotFound) || errors.Is(err, registry.ErrStale)
}

// transaction applies the writes of one batch.
type transaction struct {
	assets, real, test, changes, history, state *bbolt.Bucket

	brokers *bbolt.Bucket // nil: the file has no index of brokers

	last    int64 // newest position given out
	now     int64 // current time, µs since the Unix epoch
	counted tally // how these writes change the census
}

func (s *Store) begin(tx *bbolt.Tx) *transaction {
	t := &transaction{
		assets:  tx.Bucket(assetBucket),
		real:    tx.Bucket(realBucket),
		test:    tx.Bucket(testBucket),
		changes: tx.Bucket(changeBucket),
		history: tx.Bucket(historyBucket),
		state:   tx.Bucket(stateBucket),
		now:     s.now().UnixMicro(),

		counted: tally{},
	}
	if s.indexed {
		t.brokers = tx.Bucket(brokerBucket)
	}
	for _, b := range []*bbolt.Bucket{t.real, t.test, t.changes} {
		b.FillPercent = 1 // fill pages completely, because new keys come only at the end
	}
	if value := t.state.Get(lastKey); value != nil {
		t.last = positionOf(value)
	}
	return t
}

// apply gives a write its position and puts it into the buckets. If it returns an error for which isRefusal is
// true, the buckets are unchanged.
func (t *transaction) apply(w *write) (int64, error) {
	key, ok := registry.ParseID(w.ID)
	if !ok {
		return 0, fmt.Errorf("%q: %w", w.ID, registry.ErrNotFound)
	}
	value := t.assets.Get(key)
	from := int64(0) // position of the asset before the change; 0: the asset is new
	switch {
	case w.create && value != nil:
		return 0, registry.ErrExists
	case w.create:
		w.Revision = 1
	case value == nil:
		return 0, registry.ErrNotFound
	default:
		before, err := decodeHeader(value)
		if err != nil {
			return 0, fmt.Errorf("asset %s: %w", w.ID, err)
		}
		if before.removed {
			return 0, registry.ErrRemoved
		}
		if before.revision != w.Revision {
			return 0, registry.ErrStale
		}
		if before.listed {
			if err := t.feed(before.test).Delete(positionKey(before.position)); err != nil {
				return 0, err
			}
		}
		w.Revision++
		from = before.position
		t.counted[before.state]--
	}
	t.counted[w.State]++
	t.last = max(t.now, t.last+1)
	w.Position = t.last
	if w.Listed {
		if err := t.feed(w.Test).Put(positionKey(w.Position), key); err != nil {
			return 0, err
		}
	}
	if err := t.enlist(key, w.Record, from); err != nil {
		return 0, err
	}
	if err := t.note(key, w.Record, from); err != nil {
		return 0, err
	}
	return w.Position, t.assets.Put(key, encode(w.Record))
}

// feed returns the feed of test assets if test is true, otherwise the feed of real assets.
func (t *transaction) feed(test bool) *bbolt.Bucket {
	if test {
		return t.test
	}
	return t.real
}

// claim is a call of ClaimReference that waits for its transaction.
type claim struct{ key, from, to string }

// ClaimReference implements registry.Store. It writes the new id (to) only if the reference still stands for the
// old id (from).
func (s *Store) ClaimReference(ctx context.Context, key, from, to string) (id string, err error) {
	for range 2 { // the second round reads what the first one has stored
		err = s.file.View(func(tx *bbolt.Tx) error {
			id = string(tx.Bucket(referenceBucket).Get([]byte(key)))
			return nil
		})
		if err != nil || id != from || to == "" {
			return id, err
		}
		w := &write{Record: registry.Record{ID: to}, claim: &claim{key, from, to}}
		if _, err = s.submit(ctx, w); err != nil {
			return "", err
		}
	}
	return to, nil
}

// apply makes the reference stand for the new id, unless another claim was faster.
func (c *claim) apply(references *bbolt.Bucket) error {
	if string(references.Get([]byte(c.key))) != c.from {
		return nil
	}
	return references.Put([]byte(c.key), []byte(c.to))
}
