package mux

import (
	"encoding/binary"
	"io"
	"os"
	"sync"
	"time"
)

// inbound is the body that arrives on a stream. The reader of frames fills it and never
// waits; the reader of the body empties it.
type inbound struct {
	stream uint32
	out    *outbox

	until time.Time // Read waits so long; zero: until end

	mu     sync.Mutex
	come   sync.Cond // of mu: bytes or the end came
	bytes  []byte    // that were not read
	read   int       // bytes that the other side does not know to be read
	ended  bool
	failed error
}

func (b *inbound) begin(stream uint32, out *outbox) {
	b.stream, b.out, b.come.L = stream, out, &b.mu
}

// arrive adds bytes. It returns false if the other side sends more than its window.
func (b *inbound) arrive(p []byte) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended || b.failed != nil {
		return b.failed != nil // after a failure the other side may not know yet
	}
	if len(b.bytes)+b.read+len(p) > Window {
		return false
	}
	b.bytes = append(b.bytes, p...)
	b.come.Signal()
	return true
}

// end tells the reader that the body is whole, or has failed.
func (b *inbound) end(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failed == nil && !b.ended {
		b.failed, b.ended = err, err == nil
	}
	b.come.Signal()
}

// isOver reports whether the body is whole or has failed.
func (b *inbound) isOver() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ended || b.failed != nil
}

// wait needs mu.
func (b *inbound) wait() {
	if !b.until.IsZero() {
		defer time.AfterFunc(time.Until(b.until), func() { b.end(os.ErrDeadlineExceeded) }).Stop()
	}
	for len(b.bytes) == 0 && !b.ended && b.failed == nil {
		b.come.Wait()
	}
}

// Read implements io.Reader.
func (b *inbound) Read(p []byte) (int, error) {
	b.mu.Lock()
	if len(b.bytes) == 0 && !b.ended && b.failed == nil {
		b.wait()
	}
	if len(b.bytes) == 0 && b.failed != nil {
		defer b.mu.Unlock()
		return 0, b.failed
	}
	n := copy(p, b.bytes)
	if b.bytes = b.bytes[n:]; len(b.bytes) == 0 {
		b.bytes = nil
		if b.ended {
			defer b.mu.Unlock()
			return n, io.EOF
		}
	}
	more := 0
	if b.read += n; b.read >= Window/2 && !b.ended {
		more, b.read = b.read, 0
	}
	b.mu.Unlock()
	if more > 0 {
		// If it fails, the reader of frames will tell.
		_ = b.out.put(func(out []byte) []byte { return appendWindow(out, b.stream, more) })
	}
	return n, nil
}

func appendWindow(b []byte, stream uint32, more int) []byte {
	var size [4]byte
	binary.BigEndian.PutUint32(size[:], uint32(more))
	return appendFrame(b, stream, windowFrame, size[:])
}

// outbound is the body that is sent on a stream.
type outbound struct {
	stream uint32
	out    *outbox

	mu     sync.Mutex
	until  time.Time // take waits so long; zero: until fail
	more   sync.Cond // of mu: the window grew, or the stream failed
	window int       // bytes that may be sent
	failed error
}

func (b *outbound) begin(stream uint32, out *outbox) {
	b.stream, b.out, b.window, b.more.L = stream, out, Window, &b.mu
}

// widen lets so many more bytes be sent. It returns false for a window that is too wide.
func (b *outbound) widen(content []byte) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	more := binary.BigEndian.Uint32(content)
	if more > Window || b.window+int(more) > Window {
		return false
	}
	b.window += int(more)
	b.more.Signal()
	return true
}

// fail ends all sending.
func (b *outbound) fail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failed == nil {
		b.failed = err
	}
	b.more.Signal()
}

// wait needs mu.
func (b *outbound) wait() {
	if !b.until.IsZero() {
		defer time.AfterFunc(time.Until(b.until), func() { b.fail(os.ErrDeadlineExceeded) }).Stop()
	}
	for b.window == 0 && b.failed == nil {
		b.more.Wait()
	}
}

// setDeadline sets until when send waits for the other side.
func (b *outbound) setDeadline(end time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.until = end
}

// take waits until something may be sent and returns how much, at most n.
func (b *outbound) take(n int) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.window == 0 && b.failed == nil {
		b.wait()
	}
	n = min(n, b.window, maxBody)
	b.window -= n
	return n, b.failed
}

// send sends p, as far as the window allows at a time. First is a frame that goes before.
func (b *outbound) send(first func([]byte) []byte, p []byte) error {
	for len(p) > 0 {
		n, err := b.take(len(p))
		if err != nil {
			return err
		}
		err = b.out.put(func(out []byte) []byte {
			if first != nil {
				out, first = first(out), nil
			}
			return appendFrame(out, b.stream, bodyFrame, p[:n])
		})
		if err != nil {
			return err
		}
		p = p[n:]
	}
	if first != nil {
		return b.out.put(first)
	}
	return nil
}

// tryTake is take without waiting: all of n, or false.
func (b *outbound) tryTake(n int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failed != nil || b.window < n {
		return false
	}
	b.window -= n
	return true
}
