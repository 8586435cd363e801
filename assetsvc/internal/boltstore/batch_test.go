package boltstore

import (
	"context"
	"errors"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"asset-registry/assetsvc/internal/registry"
	"asset-registry/assetsvc/internal/storetest"
	"asset-registry/shared/testing/expect"
)

// TestAWriteOfABatchFailsAlone queues writes while another transaction begins, so that one batch takes all of
// them. If a write is refused, the others must succeed. A write whose caller has left must never be applied.
func TestAWriteOfABatchFailsAlone(t *testing.T) {
	s, hold, begins, goOn := heldStore(t)
	record := func(id, body string, revision int64) registry.Record {
		return registry.Record{ID: id, Listed: true, Revision: revision, Sealed: "sealed", Body: []byte(body)}
	}
	changed, stale, left := storetest.NewID(), storetest.NewID(), storetest.NewID()
	for _, id := range []string{changed, stale, left} {
		expect.Get(s.Create(t.Context(), record(id, "old", 0)))(t)
	}

	gone, leave := context.WithCancel(t.Context())
	created, abandoned := storetest.NewID(), storetest.NewID()
	writes := []struct {
		name string
		ctx  context.Context
		do   func(context.Context, registry.Record) (int64, error)
		r    registry.Record
		want error
		body string // body of the asset in the end; "": the asset does not exist
	}{
		{"a change", t.Context(), s.Replace, record(changed, "new", 1), nil, "new"},
		{"a change of a revision that is gone", t.Context(), s.Replace, record(stale, "new", 7), registry.ErrStale, "old"},
		{"a change of no asset", t.Context(), s.Replace, record(storetest.NewID(), "new", 1), registry.ErrNotFound, ""},
		{"a creation of an id that is taken", t.Context(), s.Create, record(changed, "other", 0), registry.ErrExists, "new"},
		{"a change whose caller has left", gone, s.Replace, record(left, "new", 1), context.Canceled, "old"},
		{"a creation whose caller has left", gone, s.Create, record(abandoned, "new", 0), context.Canceled, ""},
		{"a creation", t.Context(), s.Create, record(created, "new", 0), nil, "new"},
	}
	hold()
	first := make(chan error)
	go func() {
		_, err := s.Create(t.Context(), record(storetest.NewID(), "first", 0))
		first <- err
	}()
	<-begins
	got := make([]chan error, len(writes))
	for i, w := range writes {
		got[i] = make(chan error, 1)
		go func() {
			_, err := w.do(w.ctx, w.r)
			got[i] <- err
		}()
		for len(s.queue) <= i { // so that the writes queue up in the order of the table
			runtime.Gosched()
		}
	}
	leave()
	check := func(i int) {
		t.Helper()
		expect.Err(t, <-got[i], writes[i].want, "%s", writes[i].name)
	}
	check(4) // callers that leave do not wait for the transaction
	check(5)
	close(goOn)
	expect.Nil(t, <-first, "the write before")
	for i, w := range writes {
		if w.ctx != gone {
			check(i)
		}
	}
	for _, w := range writes {
		stored, err := s.Get(t.Context(), w.r.ID, registry.AnySize)
		switch {
		case w.body == "" && !errors.Is(err, registry.ErrNotFound):
			t.Errorf("%s: got the asset %q, %v afterwards; want none", w.name, stored.Body, err)
		case w.body != "" && (err != nil || string(stored.Body) != w.body):
			t.Errorf("%s: got the asset %q, %v afterwards; want %q", w.name, stored.Body, err, w.body)
		}
	}
}

// heldStore returns a store. After the test has called the function `hold`, the next transaction waits at its
// start. It sends a value to the channel `begins`, and goes on once it has received a value from the channel
// `goOn`.
func heldStore(t *testing.T) (s *Store, hold func(), begins, goOn chan struct{}) {
	t.Helper()
	begins, goOn = make(chan struct{}), make(chan struct{})
	held := false // set by the test before it sends the write that must wait
	s = expect.Get(Open(filepath.Join(t.TempDir(), "assets.db"), Options{Now: func() time.Time {
		if held {
			held = false
			begins <- struct{}{}
			<-goOn
		}
		return time.Now()
	}}))(t)
	t.Cleanup(func() { s.Close() })
	return s, func() { held = true }, begins, goOn
}

// TestACallerWhoLeavesKnowsWhatIsStored ends the context of a creation that the transaction has already taken.
// The creation must succeed nevertheless. Creations that start with an ended context must be refused, and must
// not be stored.
func TestACallerWhoLeavesKnowsWhatIsStored(t *testing.T) {
	s, hold, begins, goOn := heldStore(t)
	gone, leave := context.WithCancel(t.Context())
	r := registry.Record{ID: storetest.NewID(), Sealed: "sealed", Body: []byte("{}")}
	created := make(chan error)
	hold()
	go func() {
		_, err := s.Create(gone, r)
		created <- err
	}()
	<-begins
	leave()
	for range 64 { // often, because a select that can do two things chooses at random
		other := registry.Record{ID: storetest.NewID(), Sealed: "sealed", Body: []byte("{}")}
		if _, err := s.Create(gone, other); !errors.Is(err, context.Canceled) || len(s.queue) > 0 {
			t.Errorf("got %v and %d writes that wait, want %v and none", err, len(s.queue), context.Canceled)
			break
		}
	}
	close(goOn)
	expect.Nil(t, <-created, "the creation that was taken")
	if _, err := s.Get(t.Context(), r.ID, registry.AnySize); err != nil {
		t.Errorf("afterwards: got %v, want the asset", err)
	}
}

// TestABatchIsBounded lets more writes wait than one transaction may take. The rest must keep waiting.
func TestABatchIsBounded(t *testing.T) {
	s := &Store{queue: make(chan *write, 2*maxBatch)}
	for range 2 * maxBatch {
		s.queue <- &write{}
	}
	if got := len(s.gather(&write{})); got != maxBatch || len(s.queue) != maxBatch+1 {
		t.Errorf("got a batch of %d writes and %d that wait, want %d and the rest", got, len(s.queue), maxBatch)
	}
}
