package httpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"asset-registry/shared/identity"
	"asset-registry/shared/testing/expect"
)

// writes is an io.Writer that keeps each write separately.
type writes struct {
	mu  sync.Mutex
	all []string
}

func (w *writes) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, string(p))
	return len(p), nil
}

// sizes returns the bytes of each write.
func (w *writes) sizes() (sizes []int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, text := range w.all {
		sizes = append(sizes, len(text))
	}
	return sizes
}

func (w *writes) check(t *testing.T, want ...int) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	var got []int
	for _, text := range w.all {
		got = append(got, strings.Count(text, "\n"))
	}
	expect.FatalIf(t, !slices.Equal(got, want), "lines of each write: got %v, want %v", got, want)
}

func TestLogLinesAreWrittenTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &writes{}
		log, flush := NewLog(w, slog.LevelInfo, "one")
		log.Info("one")
		log.With("a", 1).WithGroup("g").Info("two")
		log.Debug("not logged")
		w.check(t)
		synctest.Wait()
		<-time.After(logDelay)
		synctest.Wait()
		w.check(t, 2)
		log.Info("three")
		log.With("a", 1).Warn("four")
		w.check(t, 2, 2)
		log.Error("five")
		w.check(t, 2, 2, 1)
		log.Info("six")
		expect.OK(t, flush())
		w.check(t, 2, 2, 1, 1)
		<-time.After(2 * logDelay)
		synctest.Wait()
		w.check(t, 2, 2, 1, 1)
		for range 2 * logBytes / 1000 { // each logBytes of them are written without delay
			log.Info(strings.Repeat("x", 1000))
		}
		if got := w.sizes(); len(got) < 5 || got[4] < logBytes || got[4] > logBytes+maxLine {
			t.Fatalf("got writes of %v bytes, want a fifth of about %d", got, logBytes)
		}
		<-time.After(2 * logDelay)
		synctest.Wait()
		before := len(w.sizes())
		log.Info("seven")
		<-time.After(2 * logDelay)
		synctest.Wait()
		if got := len(w.sizes()); got != before+1 {
			t.Errorf("got %d writes, want %d: one more line is one more write", got, before+1)
		}
	})
}

func TestLogLinesStayWhole(t *testing.T) {
	w := &writes{}
	log, flush := NewLog(w, slog.LevelInfo, "one")
	var running sync.WaitGroup
	for range 8 {
		running.Go(func() {
			for i := range 2000 {
				log.LogAttrs(context.Background(), slog.LevelInfo, "line", slog.Int("i", i))
			}
		})
	}
	running.Wait()
	expect.OK(t, flush())
	lines := 0
	for _, text := range w.all {
		for line := range strings.Lines(text) {
			lines++
			if !strings.HasPrefix(line, `{"time"`) || !strings.HasSuffix(line, "}\n") {
				t.Fatalf("got the line %q, want a whole one", line)
			}
		}
	}
	expect.Equal(t, lines, 16000, "lines")
}

func TestErrorsInTheLogAreInPlainWords(t *testing.T) {
	for says, err := range map[string]error{
		"read x: no answer came in time": fmt.Errorf("read x: %w", context.DeadlineExceeded),
		"it was ended":                   context.Canceled, "it ended too early": io.ErrUnexpectedEOF,
		"x: it ended too early": fmt.Errorf("x: %w", io.EOF),
	} {
		w := &writes{}
		log, _ := NewLog(w, slog.LevelInfo, "one")
		log.Warn("EOF", "error", err, "path", "/EOF")
		if got := w.all[0]; !strings.Contains(got, `"msg":"EOF","service.name":"one","error":"`+says+`","path":"/EOF"}`) {
			t.Errorf("got %s, want %q in it, and other texts as they are", got, says)
		}
	}
}

// TestHeadersAreCanonical checks that the names of headers have the canonical form, because package proxy and
// other packages use them as keys of an http.Header.
func TestHeadersAreCanonical(t *testing.T) {
	for _, name := range []string{
		RequestIDHeader, ClientHeader, TimeoutHeader, BaseURLHeader, SeedHeader, TraceIDHeader, identity.Header,
	} {
		if got := http.CanonicalHeaderKey(name); got != name {
			t.Errorf("got the name %q, want %q", name, got)
		}
	}
}

// BenchmarkLog compares lines that are written together with lines that are written one by one. The lines are like
// those that a request logs, and go into a pipe.
func BenchmarkLog(b *testing.B) {
	for _, c := range []struct {
		name string
		open func(w io.Writer) (*slog.Logger, func() error)
	}{
		{"each", func(w io.Writer) (*slog.Logger, func() error) {
			return slog.New(slog.NewJSONHandler(w, nil)), func() error { return nil }
		}},
		{"together", func(w io.Writer) (*slog.Logger, func() error) { return NewLog(w, slog.LevelInfo, "one") }},
	} {
		b.Run("lines="+c.name, func(b *testing.B) {
			r, w, err := os.Pipe()
			expect.OK(b, err)
			var reading sync.WaitGroup
			reading.Go(func() { _, _ = io.Copy(io.Discard, r) }) // ends when w is closed
			log, flush := c.open(w)
			b.ReportAllocs()
			for b.Loop() {
				log.LogAttrs(b.Context(), slog.LevelInfo, "request", slog.String("method", "GET"),
					slog.String("path", "/api/2.5/assets/0123456789abcdef0123456789abcdef"), slog.Int("status", 200),
					slog.Int("bytes", 3000), slog.Float64("ms", 1.25))
			}
			expect.OK(b, errors.Join(flush(), w.Close()))
			reading.Wait()
		})
	}
}

// TestALogLineIsBounded logs long values that a client may choose in a request.
// The line must be short and valid JSON.
func TestALogLineIsBounded(t *testing.T) {
	for _, c := range []struct {
		name, path, cause string
		level             slog.Level
		most              int
		keeps             string
	}{
		{"a short line", "/a", "b", slog.LevelInfo, 2 << 10, `"path":"/a"`},
		{"a long path", "/" + strings.Repeat("a", 30<<10), "", slog.LevelInfo, 2 << 10, `"path":"/aaaa`},
		{"a path that JSON escapes", "/" + strings.Repeat("\x01\"", 10<<10), "", slog.LevelWarn, 2 << 10, `"path":"/\u0001`},
		{"a path of broken UTF-8", "/" + strings.Repeat("\xff", 30<<10), "", slog.LevelInfo, 2 << 10, `"path":"/`},
		{"a path in Ukrainian", "/" + strings.Repeat("ї", 10<<10), "x", slog.LevelInfo, 2 << 10, `"path":"/їїї`},
		{"a long error beside a long path", strings.Repeat("a", 5000), strings.Repeat("b", 60<<10), slog.LevelWarn, 2 << 10,
			`"error":"bbbb`},
		{"the stack of a defect", "/a", strings.Repeat("b", 10<<10), slog.LevelError, 16 << 10, strings.Repeat("b", 10<<10)},
		{"more than a stack", "/a", strings.Repeat("b", 60<<10), slog.LevelError, 16 << 10, `"error":"bbbb`},
	} {
		var out bytes.Buffer
		log, flush := NewLog(&out, slog.LevelInfo, "one")
		log.LogAttrs(t.Context(), c.level, "request", slog.String("method", "GET"), slog.String("path", c.path),
			slog.Int("status", 404), slog.Float64("ms", 0.25), slog.String("request_id", strings.Repeat("1", 36)),
			slog.String("client", "2001:db8:1:2:3:4:5:6"), slog.String("trace_id", strings.Repeat("1", 32)),
			slog.Any("error", errors.New(c.cause)))
		expect.OK(t, flush())
		line := out.String()
		if len(line) > c.most || !json.Valid([]byte(line)) || !strings.Contains(line, c.keeps) ||
			!strings.Contains(line, `"status":404`) {
			t.Errorf("%s: got %d bytes, %.200s; want JSON of at most %d with %.40q", c.name, len(line), line, c.most, c.keeps)
		}
	}
}
