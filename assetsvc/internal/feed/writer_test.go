package feed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"asset-registry/shared/testing/expect"
)

// rig is a writer on a plain store. It lives in the virtual time of a synctest bubble.
type rig struct {
	*plain
	writer  *Writer
	failed  []string // errors that the writer has reported
	callers []string // for each batch: the ids of its callers, joined by blanks
	ended   int      // number of calls of the functions that Options.Batch has returned
	refused int      // number of Opens that were refused
	stop    func()
}

type callerKey struct{}

func newRig(t *testing.T) *rig {
	r := &rig{plain: newPlain()}
	r.writer = NewWriter(r, Options{
		Name: "w", Now: time.Now, MaxBatch: 3, MaxBytes: 10, Timeout: time.Minute, Pause: time.Second,
		Size:    func(w Write) int { return len(w.Document.(string)) },
		Failed:  func(err error) { r.failed = append(r.failed, err.Error()) },
		Refused: func() { r.refused++ },
		Batch: func(ctx context.Context, callers []context.Context) (context.Context, func()) {
			var names []string
			for _, c := range callers {
				names = append(names, c.Value(callerKey{}).(string))
			}
			r.callers = append(r.callers, strings.Join(names, " "))
			return ctx, func() { r.ended++ }
		},
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.writer.Run(ctx)
	}()
	r.stop = func() {
		cancel()
		<-done
	}
	return r
}

// result has what Commit has returned. done is false until Commit has returned.
type result struct {
	done     bool
	position int64
	err      error
}

// commit calls Commit in a goroutine, and returns when all goroutines are blocked.
func (r *rig) commit(ctx context.Context, id string, revision int64, size int) *result {
	got := &result{}
	ctx = context.WithValue(ctx, callerKey{}, id)
	go func() {
		got.position, got.err = r.writer.Commit(ctx, Write{ID: id, Revision: revision, Document: strings.Repeat("x", size)})
		got.done = true
	}()
	synctest.Wait()
	return got
}

// holdWrites makes the writes of batches wait until the returned function is called.
func (r *rig) holdWrites() (goOn func()) {
	held := make(chan struct{})
	r.before = func(operation string) error {
		if operation == "write" {
			<-held
		}
		return nil
	}
	return func() {
		close(held)
		synctest.Wait()
	}
}

// check compares the store's operations, and the result of Commit for each change.
func (r *rig) check(t *testing.T, operations string, got []*result, want []error) {
	t.Helper()
	if told := r.told(); told != operations {
		t.Errorf("got  %s\nwant %s", told, operations)
	}
	for i, g := range got {
		if !g.done || !errors.Is(g.err, want[i]) {
			t.Errorf("change %d: got %+v, want %v", i, *g, want[i])
		}
	}
}

func TestABatchIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		defer r.stop()
		goOn := r.holdWrites()
		got := []*result{r.commit(t.Context(), "x", 0, 1)}
		for _, c := range []struct {
			id       string
			revision int64
			size     int
		}{
			{"a", 0, 4}, {"b", 0, 4}, {"c", 0, 1}, // a batch of three changes
			{"d", 0, 1}, {"e", 0, 20}, // a change of more than ten bytes gets a batch for itself
			{"f", 0, 1}, {"g", 0, 8}, {"g", 1, 1}, // d, f and g have ten bytes; the second change of g must wait
		} {
			got = append(got, r.commit(t.Context(), c.id, c.revision, c.size))
		}
		goOn()
		r.check(t, "open x, write, open a b c, write, open d f g, write, open e, write, open g, write, close", got,
			make([]error, len(got)))
		if want := []string{"x", "a b c", "d f g", "e", "g"}; !slices.Equal(r.callers, want) || r.ended != len(want) {
			t.Errorf("got the callers %q and %d ends, want %q", r.callers, r.ended, want)
		}
	})
}

func TestARefusedChangeFailsAloneAndACancelledOneIsNotMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		defer r.stop()
		goOn := r.holdWrites()
		first := r.commit(t.Context(), "x", 0, 1)
		gone, leave := context.WithCancel(t.Context())
		a, stale := r.commit(t.Context(), "a", 0, 1), r.commit(t.Context(), "b", 7, 1)
		left := r.commit(gone, "left", 0, 1)
		blocked := r.commit(gone, "blocked", 0, 1) // has to wait, because the queue is full
		c := r.commit(t.Context(), "c", 0, 1)
		leave()
		synctest.Wait()
		goOn()
		r.check(t, "open x, write, open a b c, write, settle, close", []*result{first, a, stale, left, blocked, c},
			[]error{nil, nil, ErrRefused, ErrUnknown, ErrNotDone, nil})
		if r.at("left")+r.at("blocked")+r.at("b") != 0 || r.at("a") != a.position || r.at("c") != c.position {
			t.Errorf("got a at %d and c at %d, left at %d, blocked at %d and b at %d; want a at %d, c at %d and no other",
				r.at("a"), r.at("c"), r.at("left"), r.at("blocked"), r.at("b"), a.position, c.position)
		}
		expect.ErrorIf(t, len(r.failed) > 0, "got the errors %q, want none", r.failed)
	})
}

// TestOperationsFail lets one operation of a batch fail, before or after it is done. The writer must find out
// whether the change was made, and go on.
func TestOperationsFail(t *testing.T) {
	for _, c := range []struct {
		name, fails string
		after       bool
		operations  string
		want        error
		failed      string
	}{
		{"open", "open", false, "open a fails, open a, write, close", nil, "open batch: no open"},
		{"open without an answer", "open", true, "open a, open a, write, close", nil, "open batch: no open"},
		{"write", "write", false, "open a, write fails, fence a, settle, close", ErrNotDone, "write batch: no write"},
		{"write without an answer", "write", true, "open a, write, fence a, settle, close", nil, "write batch: no write"},
		{"close", "close", false, "open a, write, close fails, close", nil, "close batch: no close"},
		{"close without an answer", "close", true, "open a, write, close, close", nil, "close batch: no close"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				defer r.stop()
				if r.before = once(c.fails); c.after {
					r.before, r.after = nil, r.before
				}
				got := r.commit(t.Context(), "a", 0, 1)
				time.Sleep(time.Minute) // in virtual time, so that the failed operation is repeated
				synctest.Wait()
				r.check(t, c.operations, []*result{got}, []error{c.want})
				if fmt.Sprint(r.failed) != "["+c.failed+"]" {
					t.Errorf("got the errors %q, want %q", r.failed, c.failed)
				}
				if stored := r.at("a"); (stored == got.position) != (c.want == nil) {
					t.Errorf("got the document at %d and %+v from Commit", stored, *got)
				}
				r.before, r.after = nil, nil
				if next := r.commit(t.Context(), "next", 0, 1); next.err != nil || next.position <= got.position {
					t.Errorf("the next change: got %+v, want a position above %d", *next, got.position)
				}
			})
		})
	}
}

// TestAFailingStoreIsAskedOnceAPause lets every Open fail for ten seconds. The writer must report the error only
// once.
func TestAFailingStoreIsAskedOnceAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		defer r.stop()
		until := time.Now().Add(9500 * time.Millisecond)
		r.before = func(string) error {
			if time.Now().Before(until) {
				return errors.New("down")
			}
			return nil
		}
		got := r.commit(t.Context(), "a", 0, 1)
		time.Sleep(time.Minute)
		synctest.Wait()
		r.check(t, strings.Repeat("open a fails, ", 10)+"open a, write, close", []*result{got}, []error{nil})
		expect.ErrorIf(t, len(r.failed) != 1, "got the errors %q, want one", r.failed)
	})
}

// TestFailuresOfARefusal lets a write fail. The writer then uses two operations: fence refuses late writes, and settle
// finds out whether the write was applied. The test lets one of the two fail, too. The writer must repeat it, and
// report ErrNotDone.
func TestFailuresOfARefusal(t *testing.T) {
	for _, fails := range []string{"fence", "settle"} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			defer r.stop()
			write, other := once("write"), once(fails)
			r.before = func(operation string) error { return errors.Join(write(operation), other(operation)) }
			got := r.commit(t.Context(), "a", 0, 1)
			time.Sleep(time.Minute)
			synctest.Wait()
			want := "open a, write fails, fence a fails, fence a, settle, close"
			if fails == "settle" {
				want = "open a, write fails, fence a, settle fails, settle, close"
			}
			r.check(t, want, []*result{got}, []error{ErrNotDone})
		})
	}
}

// TestPositionsThatAnotherWriterTook raises the newest position of the clock before a batch, as another writer would.
// The first Open must be refused, and the second must take the next position.
func TestPositionsThatAnotherWriterTook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		defer r.stop()
		ahead := time.Now().Add(time.Hour).UnixMicro()
		r.clock.Last = ahead
		got := r.commit(t.Context(), "a", 0, 1)
		r.check(t, "open a, open a, write, close", []*result{got}, []error{nil})
		if got.position != ahead+1 || r.at("a") != ahead+1 || r.refused != 1 {
			t.Errorf("got the position %d, the document at %d and %d refusals; want %d and one", got.position, r.at("a"),
				r.refused, ahead+1)
		}
	})
}

// TestNobodyIsToldBeforeTheBatchIsClosed makes Close wait. The caller must get no outcome until Close is done,
// and no outcome at all if the writer is stopped meanwhile.
func TestNobodyIsToldBeforeTheBatchIsClosed(t *testing.T) {
	for _, ends := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			held := make(chan struct{})
			r.before = func(operation string) error {
				if operation == "close" {
					<-held
				}
				return nil
			}
			caller, leave := context.WithCancel(t.Context())
			got := r.commit(caller, "a", 0, 1)
			if got.done {
				t.Errorf("got %+v before the batch is closed, want no answer", *got)
			}
			if ends {
				go r.stop()
				synctest.Wait()
			}
			close(held)
			synctest.Wait()
			if got.done == ends {
				t.Errorf("got an answer: %t, want %t: the writer has ended: %t", got.done, !ends, ends)
			}
			leave()
			synctest.Wait()
			expect.ErrorIf(t, len(r.failed) > 0, "got the errors %q, want none", r.failed)
			if want := map[bool]error{false: nil, true: ErrUnknown}[ends]; !errors.Is(got.err, want) {
				t.Errorf("got %v, want %v", got.err, want)
			}
			r.stop()
		})
	}
}
