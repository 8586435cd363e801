package httpserver

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"
)

const (
	logDelay = 100 * time.Millisecond // a line is written after that at the latest
	logBytes = 32 << 10               // or once so many bytes wait
)

// NewLog returns a log of JSON lines. Lines below warn wait for others for at most 100 ms
// and are written together; a line that is written alone takes 1.4 times as long
// (BenchmarkLog). A warning or an error is written at once, with all lines before it. flush
// writes the lines that wait; call it before the process ends. A process that is killed
// loses them.
func NewLog(w io.Writer, level slog.Level) (log *slog.Logger, flush func() error) {
	lines := &lineBuffer{w: w}
	return slog.New(bufferedHandler{slog.NewJSONHandler(lines, &slog.HandlerOptions{Level: level}), lines}), lines.flush
}

// bufferedHandler writes lines at once from warn on.
type bufferedHandler struct {
	slog.Handler
	lines *lineBuffer
}

func (h bufferedHandler) Handle(ctx context.Context, r slog.Record) error {
	err := h.Handler.Handle(ctx, r)
	if r.Level >= slog.LevelWarn {
		return errors.Join(err, h.lines.flush())
	}
	return err
}

func (h bufferedHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return bufferedHandler{h.Handler.WithAttrs(attrs), h.lines}
}

func (h bufferedHandler) WithGroup(name string) slog.Handler {
	return bufferedHandler{h.Handler.WithGroup(name), h.lines}
}

// lineBuffer passes lines on in few writes. It is safe for concurrent use.
type lineBuffer struct {
	w io.Writer

	mu      sync.Mutex
	waiting []byte
	timer   *time.Timer // flushes; nil before the first line
}

// Write implements io.Writer. It takes one line.
func (b *lineBuffer) Write(line []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.waiting) == 0 {
		b.arm()
	}
	b.waiting = append(b.waiting, line...)
	if len(b.waiting) >= logBytes {
		return len(line), b.write()
	}
	return len(line), nil
}

// arm starts the timer.
func (b *lineBuffer) arm() {
	if b.timer == nil {
		b.timer = time.AfterFunc(logDelay, func() { _ = b.flush() }) // nobody is left to tell
		return
	}
	b.timer.Reset(logDelay)
}

// flush writes what waits.
func (b *lineBuffer) flush() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.write()
}

// write writes what waits. The caller holds the lock.
func (b *lineBuffer) write() error {
	if len(b.waiting) == 0 {
		return nil
	}
	b.timer.Stop()
	_, err := b.w.Write(b.waiting)
	b.waiting = b.waiting[:0]
	if cap(b.waiting) > 2*logBytes { // a line was very long
		b.waiting = nil
	}
	return err
}
