package mongostore

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"asset-registry/shared/testing/expect"
)

// sender stands for a database: it answers a barrier when the test sends on the channel `answers`.
type sender struct {
	sent    atomic.Int64
	ended   atomic.Int64 // barriers that were answered or cancelled
	answers chan error   // the test sends one value for each barrier
}

func newSender() *sender { return &sender{answers: make(chan error)} }

func (s *sender) send(ctx context.Context) error {
	s.sent.Add(1)
	defer s.ended.Add(1)
	select {
	case err := <-s.answers:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// read starts a read, lets it run until it waits for a barrier, and returns the channel for its result.
func read(ctx context.Context, b *barrier) <-chan error {
	result := make(chan error, 1)
	go func() { result <- b.wait(ctx) }()
	synctest.Wait()
	return result
}

// result returns the result of a read, and whether the read has ended.
func result(r <-chan error) (error, bool) {
	synctest.Wait()
	select {
	case err := <-r:
		return err, true
	default:
		return nil, false
	}
}

func TestReadsThatWaitShareABarrier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSender()
		b := newBarrier(s.send)
		first := read(t.Context(), b)
		var later []<-chan error
		for range 5 {
			later = append(later, read(t.Context(), b))
		}
		expect.Equal(t, s.sent.Load(), 1, "barriers while the first runs")
		s.answers <- nil
		if err, done := result(first); err != nil || !done {
			t.Errorf("the first read: got %v, done %v; want nil, true", err, done)
		}
		for i, r := range later {
			if _, done := result(r); done {
				t.Errorf("read %d arrived while the first barrier ran: got its answer, want the next", i)
			}
		}
		last := read(t.Context(), b)
		s.answers <- nil
		for i, r := range later {
			if err, done := result(r); err != nil || !done {
				t.Errorf("read %d after the second barrier: got %v, done %v; want nil, true", i, err, done)
			}
		}
		s.answers <- nil
		if err, done := result(last); err != nil || !done {
			t.Errorf("the last read: got %v, done %v; want nil, true", err, done)
		}
		expect.Equal(t, s.sent.Load(), 3, "barriers of 7 reads")
	})
}

func TestAnErrorReachesTheReadsOfItsBarrier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, broken := newSender(), errors.New("broken")
		b := newBarrier(s.send)
		first := read(t.Context(), b)
		second, third := read(t.Context(), b), read(t.Context(), b)
		s.answers <- nil
		s.answers <- broken
		for _, c := range []struct {
			name string
			read <-chan error
			want error
		}{{"first", first, nil}, {"second", second, broken}, {"third", third, broken}} {
			if err, done := result(c.read); !errors.Is(err, c.want) || !done {
				t.Errorf("the %s read: got %v, done %v; want %v, true", c.name, err, done, c.want)
			}
		}
		fourth := read(t.Context(), b)
		s.answers <- nil
		if err, done := result(fourth); err != nil || !done {
			t.Errorf("a read after the error: got %v, done %v; want nil, true", err, done)
		}
	})
}

// TestACancelledReadLeavesItsBarrier cancels reads that wait for the running barrier or for the next one. They
// must return, and a barrier without reads must end. The bubble of synctest fails if a goroutine does not end.
func TestACancelledReadLeavesItsBarrier(t *testing.T) {
	for _, c := range []struct {
		name            string
		cancelled, kept int // how many reads are cancelled while they wait for the next barrier, and how many are not
		running         bool
		sent            int64 // how many barriers are sent in total
	}{
		{"all of the next barrier", 2, 0, false, 1},
		{"some of the next barrier", 2, 1, false, 2},
		{"the only one of the running barrier", 0, 0, true, 1},
		{"the running barrier's, while others wait", 0, 2, true, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSender()
				b := newBarrier(s.send)
				ctx, cancel := context.WithCancel(t.Context())
				var stay, leave []<-chan error
				if c.running {
					leave = append(leave, read(ctx, b))
				} else {
					stay = append(stay, read(t.Context(), b))
				}
				for range c.cancelled {
					leave = append(leave, read(ctx, b))
				}
				for range c.kept {
					stay = append(stay, read(t.Context(), b))
				}
				cancel()
				for i, r := range leave {
					if err, done := result(r); !errors.Is(err, context.Canceled) || !done {
						t.Errorf("cancelled read %d: got %v, done %v; want context.Canceled, true", i, err, done)
					}
				}
				expect.Equal(t, s.ended.Load() == 1, c.running, "the running barrier has ended")
				for range c.sent {
					synctest.Wait()
					select {
					case s.answers <- nil:
					default:
					}
				}
				for i, r := range stay {
					if err, done := result(r); err != nil || !done {
						t.Errorf("other read %d: got %v, done %v; want nil, true", i, err, done)
					}
				}
				expect.Equal(t, s.sent.Load(), c.sent, "barriers")
			})
		})
	}
}

func TestTheOtherReadsOfABarrierSurviveACancelledOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSender()
		b := newBarrier(s.send)
		first := read(t.Context(), b)
		ctx, cancel := context.WithCancel(t.Context())
		leaves, stays := read(ctx, b), read(t.Context(), b)
		s.answers <- nil // the barrier for these two reads runs now
		synctest.Wait()
		cancel()
		if err, done := result(leaves); !errors.Is(err, context.Canceled) || !done {
			t.Errorf("the cancelled read: got %v, done %v; want context.Canceled, true", err, done)
		}
		if err, done := result(stays); done {
			t.Errorf("the other read: got %v before the answer, want it to wait", err)
		}
		s.answers <- nil
		for name, r := range map[string]<-chan error{"first": first, "other": stays} {
			if err, done := result(r); err != nil || !done {
				t.Errorf("the %s read: got %v, done %v; want nil, true", name, err, done)
			}
		}
	})
}

func TestAClosedBarrierRefusesReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSender()
		b := newBarrier(s.send)
		running, next := read(t.Context(), b), read(t.Context(), b)
		expect.Nil(t, b.close(), "close")
		for name, r := range map[string]<-chan error{"running": running, "next": next} {
			if err, done := result(r); !errors.Is(err, context.Canceled) || !done {
				t.Errorf("the read of the %s barrier: got %v, done %v; want context.Canceled, true", name, err, done)
			}
		}
		expect.Err(t, b.wait(t.Context()), errClosed, "a read of a closed barrier")
	})
}

// TestABarrierStartsAfterItsReads lets many reads arrive at the same time, again and again. Each read must wait
// for a barrier that was sent after the read had arrived.
func TestABarrierStartsAfterItsReads(t *testing.T) {
	var began, ended atomic.Int64 // number of the newest barrier that was sent, and of the newest that was answered
	b := newBarrier(func(context.Context) error {
		number := began.Add(1)
		ended.Store(number)
		return nil
	})
	reads := make(chan error)
	const readers, each = 32, 500
	for range readers {
		go func() {
			for range each {
				before := began.Load()
				if err := b.wait(t.Context()); err != nil {
					reads <- err
				} else if after := ended.Load(); after <= before {
					reads <- fmt.Errorf("a read that saw barrier %d start: got the answer of %d", before, after)
				} else {
					reads <- nil
				}
			}
		}()
	}
	for range readers * each {
		expect.Try(t, <-reads)
	}
	t.Logf("%d reads shared %d barriers", readers*each, began.Load())
	expect.Try(t, b.close())
}
