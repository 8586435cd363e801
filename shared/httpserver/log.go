package httpserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"
	"unicode/utf8"
)

const (
	logDelay = 100 * time.Millisecond // the longest time that a line waits
	logBytes = 32 << 10               // if more bytes wait, they are written without delay
)

// NewLog returns a log of JSON lines. Lines below the level warn wait for other lines for at most 100 ms, and are
// written together; a line that is written alone takes 1.4 times as long (BenchmarkLog). A warning or an error is
// written without delay, with all lines before it. The function `flush` writes the lines that wait; call it before the
// process ends. If the process is killed, the lines that wait are lost.
func NewLog(w io.Writer, level slog.Level) (log *slog.Logger, flush func() error) {
	lines := &lineBuffer{w: w}
	return slog.New(bufferedHandler{slog.NewJSONHandler(lines, &slog.HandlerOptions{Level: level}), lines}), lines.flush
}

// bufferedHandler writes lines of level warn and above without delay.
type bufferedHandler struct {
	slog.Handler
	lines *lineBuffer
}

func (h bufferedHandler) Handle(ctx context.Context, r slog.Record) error {
	most := maxLine
	if r.Level >= slog.LevelError { // the line of a panic has a stack, so it needs more room
		most = maxErrorLine
	}
	err := h.Handler.Handle(ctx, shortened(r, most))
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

// The limits of a log line, in bytes. They are needed because a client may choose a path of up to 32 KiB.
const (
	maxLine      = 2 << 10
	maxErrorLine = 16 << 10
	lineFrame    = 256 // the part of each limit for the time, the level and other things that the log adds to each line
)

// shortened returns a record whose line has at most the given number of bytes. It cuts the longest values.
func shortened(r slog.Record, most int) slog.Record {
	const number = 32 // maximum number of bytes of a value that is not a text
	cut := most
	sizeBy := func(width func(string) int) int {
		n := lineFrame + min(width(r.Message), cut)
		r.Attrs(func(a slog.Attr) bool {
			n += len(a.Key) + number
			if text, ok := textOf(a.Value); ok {
				n += min(width(text), cut)
			}
			return true
		})
		return n
	}
	// The function `widest` returns an upper bound without looking at each letter.
	widest := func(text string) int { return len(text) * len(`\u0000`) }
	if sizeBy(widest) <= most || sizeBy(inJSON) <= most {
		return r
	}
	for cut > number && sizeBy(inJSON) > most {
		cut /= 2
	}
	short := slog.NewRecord(r.Time, r.Level, cutTo(r.Message, cut), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		if text, ok := textOf(a.Value); ok {
			a.Value = slog.StringValue(cutTo(text, cut))
		}
		short.AddAttrs(a)
		return true
	})
	return short
}

// textOf returns the text of a value that is a string in the log line. ok is false for other values.
func textOf(v slog.Value) (text string, ok bool) {
	switch v.Kind() {
	case slog.KindString:
		return v.String(), true
	case slog.KindAny, slog.KindGroup, slog.KindLogValuer:
		return fmt.Sprint(v.Any()), true
	}
	return "", false
}

// inJSON returns an upper bound of the bytes that a text needs in JSON.
func inJSON(text string) (n int) {
	for _, r := range text {
		n += widthOf(r)
	}
	return n
}

// widthOf returns an upper bound of the bytes that a character needs in JSON.
func widthOf(r rune) int {
	switch {
	case r == utf8.RuneError, r < ' ', r == 0x7f, r == '\u2028', r == '\u2029':
		return len(`\u0000`)
	case r == '"', r == '\\':
		return 2
	}
	return utf8.RuneLen(r)
}

// cutTo returns a text that needs at most the given number of bytes in JSON. If it has to cut the text, it
// adds "…".
func cutTo(text string, most int) string {
	const more = "…"
	if inJSON(text) <= most {
		return text
	}
	n := 0
	for i, r := range text {
		if n += widthOf(r); n > most-len(more) {
			return text[:i] + more
		}
	}
	return text
}

// lineBuffer collects lines and writes them with few calls. It is safe for concurrent use.
type lineBuffer struct {
	w io.Writer

	mu      sync.Mutex
	waiting []byte
	timer   *time.Timer // calls flush; nil before the first line
}

// Write implements io.Writer. Each call has one line.
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
		b.timer = time.AfterFunc(logDelay, func() { _ = b.flush() }) // nobody is there to get the error
		return
	}
	b.timer.Reset(logDelay)
}

// flush writes the lines that wait.
func (b *lineBuffer) flush() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.write()
}

// write writes the lines that wait. The caller holds the lock.
func (b *lineBuffer) write() error {
	if len(b.waiting) == 0 {
		return nil
	}
	b.timer.Stop()
	_, err := b.w.Write(b.waiting)
	b.waiting = b.waiting[:0]
	return err
}
