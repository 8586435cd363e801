package file

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"asset-registry/shared/fault"
	"asset-registry/shared/testing/expect"
)

// TestEachFailureOfAStoreIsTold makes each step of each operation fail, one at a time. The operation must then
// return the error of the store.
func TestEachFailureOfAStoreIsTold(t *testing.T) {
	follower := func(b *bench, all ...Named) Follower {
		return Follower{Service: b.Service, Awaited: b.memory, Documents: &completions{}, Feed: page1(all)}
	}
	type operation func(context.Context) error
	for _, c := range []struct {
		name    string
		prepare func(t *testing.T, b *bench) operation
	}{
		{"register", func(_ *testing.T, b *bench) operation {
			return func(ctx context.Context) error { return errorOf(b.Register(ctx, broker, sum("content"))) }
		}},
		{"add", func(_ *testing.T, b *bench) operation {
			return func(ctx context.Context) error { return errorOf(b.Add(ctx, broker, upload("content"))) }
		}},
		{"upload", func(t *testing.T, b *bench) operation {
			f := b.register(t, "content")
			return func(ctx context.Context) error { return errorOf(b.Upload(ctx, broker, f.ID, upload("content"))) }
		}},
		{"upload of removed bytes", func(t *testing.T, b *bench) operation {
			removed := b.stored(t, "content")
			must(t, removed, errorOf(b.Remove(t.Context(), admin, removed.ID, "x")))
			f := b.register(t, "content")
			return func(ctx context.Context) error {
				err := errorOf(b.Upload(ctx, broker, f.ID, upload("content")))
				if fault.KindOf(err) == fault.Forbidden && len(b.memory.blobs) == 0 {
					return nil
				}
				return err
			}
		}},
		{"open", func(t *testing.T, b *bench) operation {
			f := b.stored(t, "content")
			return func(ctx context.Context) error {
				f, err := b.Get(ctx, f.ID)
				if err != nil {
					return err
				}
				return errorOf(b.Open(ctx, f))
			}
		}},
		{"open a picture", func(t *testing.T, b *bench) operation {
			f := b.add(t, image, true)
			must(t, f, b.drawAll(t, &painter{do: works}))
			return func(ctx context.Context) error { return errorOf(b.OpenPicture(ctx, b.memory.files[f.ID].Small)) }
		}},
		{"list", func(t *testing.T, b *bench) operation {
			b.stored(t, "content")
			return func(ctx context.Context) error {
				_, _, err := b.List(ctx, broker, "", "", 1)
				return err
			}
		}},
		{"list removals", func(_ *testing.T, b *bench) operation {
			return func(ctx context.Context) error {
				_, _, err := b.ListRemoved(ctx, "", 1)
				return err
			}
		}},
		{"claim", func(t *testing.T, b *bench) operation {
			f := b.register(t, "content")
			b.clock = b.clock.Add(time.Hour)
			return func(ctx context.Context) error {
				return errorOf(b.Claim(ctx, f.ID, Claim{f.MD5, broker.Broker, false}))
			}
		}},
		{"name", func(t *testing.T, b *bench) operation {
			f := b.register(t, "content")
			return func(ctx context.Context) error { return b.Name(ctx, f.ID, true) }
		}},
		{"remove", func(t *testing.T, b *bench) operation {
			f := b.stored(t, "content")
			b.stored(t, "content")
			return func(ctx context.Context) error { return errorOf(b.Remove(ctx, admin, f.ID, "x")) }
		}},
		{"remove once more", func(t *testing.T, b *bench) operation {
			f := b.stored(t, "content")
			must(t, f, errorOf(b.Remove(t.Context(), admin, f.ID, "x")))
			return func(ctx context.Context) error { return errorOf(b.Remove(ctx, admin, f.ID, "x")) }
		}},
		{"remove again", func(t *testing.T, b *bench) operation {
			f, lost := b.stored(t, "content"), b.stored(t, "other")
			must(t, f, errorOf(b.Remove(t.Context(), admin, f.ID, "x")))
			must(t, f, errorOf(b.Remove(t.Context(), admin, lost.ID, "x")))
			b.memory.files[f.ID] = f
			delete(b.memory.files, lost.ID)
			return func(ctx context.Context) error { return errorOf(b.RemoveAgain(ctx)) }
		}},
		{"collect", func(t *testing.T, b *bench) operation {
			removed := b.stored(t, "removed")
			must(t, removed, errorOf(b.Remove(t.Context(), admin, removed.ID, "x")))
			b.stored(t, "content")
			named := b.add(t, "named", false)
			left := named.ID + "-0123456789abcdef" // left by an upload that never ended
			b.memory.blobs[left] = kept{at: b.clock}
			b.clock = start.Add(2 * keep)
			b.memory.reading.Complete = b.clock
			return func(ctx context.Context) error {
				err := errorOf(b.Collect(ctx))
				if files, blobs := len(b.memory.files), len(b.memory.blobs); err == nil && (files != 2 || blobs != 1) {
					return fmt.Errorf("%d files and %d blobs are left; want 2 and 1", files, blobs)
				}
				return err
			}
		}},
		{"draw", func(t *testing.T, b *bench) operation {
			f := b.add(t, image, true)
			return func(ctx context.Context) error { return b.drawOne(ctx, &painter{do: works}, f.ID) }
		}},
		{"draw what another process draws", func(t *testing.T, b *bench) operation {
			f := b.add(t, image, true)
			p := &painter{do: func() error {
				now := b.memory.files[f.ID]
				now.Picture, now.Revision = Unmade, now.Revision+1
				b.memory.files[f.ID] = now
				return nil
			}}
			return func(ctx context.Context) error { return b.drawOne(ctx, p, f.ID) }
		}},
		{"draw what was missed", func(t *testing.T, b *bench) operation {
			b.add(t, image, true)
			return func(ctx context.Context) error { return b.drawMissed(ctx, &painter{do: works}) }
		}},
		{"read the feed", func(t *testing.T, b *bench) operation {
			f := b.register(t, "content")
			return follower(b, Named{Naming{f.ID, "a"}, false, true}).Read
		}},
		{"complete documents", func(t *testing.T, b *bench) operation {
			f := b.stored(t, "content")
			must(t, f, b.memory.Await(t.Context(), Naming{f.ID, "a"}))
			return follower(b).complete
		}},
	} {
		b := newBench()
		do := c.prepare(t, b)
		var steps []string
		b.memory.step = func(operation string) error {
			steps = append(steps, operation)
			return nil
		}
		if err := do(t.Context()); err != nil || len(steps) == 0 {
			t.Errorf("%s: got %v after %d steps, want no error", c.name, err, len(steps))
		}
		for n := range 10 * len(steps) { // several times, because the order of files depends on their random ids
			at := n % len(steps)
			b := newBench()
			do := c.prepare(t, b)
			away, begun, failed := errors.New("the store is away"), 0, ""
			b.memory.step = func(step string) error {
				if begun++; begun-1 == at {
					failed = step
					return away
				}
				return nil
			}
			expect.Err(t, do(t.Context()), away, "%s: step %d, %s, fails", c.name, at, failed)
		}
	}
}

// unseekable is a blob for which Seek fails with one value of whence.
type unseekable struct {
	open
	fails int // value of whence with which Seek fails
}

func (u unseekable) Seek(offset int64, whence int) (int64, error) {
	if whence == u.fails {
		return 0, errLost
	}
	return u.open.Seek(offset, whence)
}

func TestASizeThatCannotBeReadIsNone(t *testing.T) {
	for _, whence := range []int{io.SeekStart, io.SeekEnd} {
		expect.ErrOf(t, errLost, "whence %d fails", whence)(SizeOf(unseekable{open{bytes.NewReader([]byte("x"))},
			whence}))
	}
}

// unseekables is a store whose blobs are unseekable.
type unseekables struct{ *memory }

func (u unseekables) Open(ctx context.Context, name string) (Blob, error) {
	blob, err := u.memory.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	return unseekable{blob.(open), io.SeekEnd}, nil
}

// TestDamagedBytesAreNotServed opens a file whose length differs from the length in its metadata, and a file whose
// length cannot be read.
func TestDamagedBytesAreNotServed(t *testing.T) {
	b := newBench()
	f := b.stored(t, "content")
	b.Service.bytes = unseekables{b.memory}
	expect.ErrOf(t, errLost, "no length")(b.Open(t.Context(), f))
	b.Service.bytes = b.memory
	for _, text := range []string{"conten", "contents", ""} {
		b.memory.blobs[f.Blob] = kept{text: []byte(text)}
		expect.FailsOf(t, "%d bytes instead of %d", len(text), f.Size)(b.Open(t.Context(), f))
	}
	expect.Equal(t, b.Counts.Unread.Load(), 4, "readings that failed")
}

// halfFeed is a feed that has one page, and fails after it.
type halfFeed struct{}

func (halfFeed) After(_ context.Context, position int64) ([]Named, int64, error) {
	if position > 0 {
		return nil, 0, errLost
	}
	return nil, 1, nil
}

// TestAReadingIsCompleteAtTheEndOfTheFeedOnly reads a feed that fails in the middle. The rest may name files, so
// the reading must not count as complete.
func TestAReadingIsCompleteAtTheEndOfTheFeedOnly(t *testing.T) {
	b := newBench()
	follower := Follower{Service: b.Service, Awaited: b.memory, Documents: &completions{}, Feed: halfFeed{}}
	if err := follower.Read(t.Context()); !errors.Is(err, errLost) {
		t.Fatalf("got %v, want %v", err, errLost)
	}
	if got := b.memory.reading; got.Position != 1 || !got.Complete.IsZero() {
		t.Errorf("got %+v after half of the feed, want the position 1 and no whole reading", got)
	}
	follower.Feed = page1{}
	if err := follower.Read(t.Context()); err != nil || !b.memory.reading.Complete.Equal(start) {
		t.Errorf("got %+v, %v after all of it; want it complete as of %v", b.memory.reading, err, start)
	}
}

// TestWhatIsHeldOrCollectedIsNotShown opens a file while the service cannot read the removals. Then it asks for a
// file that was collected. The service must refuse both.
func TestWhatIsHeldOrCollectedIsNotShown(t *testing.T) {
	b := newBench()
	f := b.stored(t, "content")
	b.Hold()
	if _, err := b.Open(t.Context(), f); fault.KindOf(err) != fault.Unavailable || b.Counts.Unread.Load() != 1 {
		t.Errorf("held: got %v and %d readings that failed, want Unavailable and 1", err, b.Counts.Unread.Load())
	}
	const picture = "00000000000000000000000000000000-0123456789abcdef"
	expect.FaultOf(t, fault.Unavailable, "held, a picture")(b.OpenPicture(t.Context(), picture))
	must(t, f, errorOf(b.RemoveAgain(t.Context())))
	must(t, f, errorOf(b.Open(t.Context(), f)))
	expect.Equal(t, b.Counts.Unread.Load(), 1, "readings that failed after one that did not")
	expect.FaultOf(t, fault.NotFound, "a picture without its bytes")(b.OpenPicture(t.Context(), picture))
	gone, leave := context.WithCancel(t.Context())
	leave()
	delete(b.memory.blobs, f.Blob)
	for ctx, want := range map[context.Context]int64{gone: 0, t.Context(): 1} {
		before := b.Counts.Unread.Load()
		if _, err := b.Open(ctx, f); !errors.Is(err, ErrNotFound) || b.Counts.Unread.Load()-before != want {
			t.Errorf("without its bytes: got %v and %d more readings that failed, want %v and %d", err,
				b.Counts.Unread.Load()-before, ErrNotFound, want)
		}
	}
	f.State = Collected
	b.memory.files[f.ID] = f
	if _, err := b.Get(t.Context(), f.ID); fault.KindOf(err) != fault.NotFound {
		t.Errorf("collected: got %v, want kind %d", err, fault.NotFound)
	}
}
