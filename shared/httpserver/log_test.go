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
	"strings"
	"sync"
	"testing"

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

func TestLogLinesStayWhole(t *testing.T) {
	w := &writes{}
	log := NewLog(w, slog.LevelInfo, "one")
	var running sync.WaitGroup
	for range 8 {
		running.Go(func() {
			for i := range 2000 {
				log.LogAttrs(context.Background(), slog.LevelInfo, "line", slog.Int("i", i))
			}
		})
	}
	running.Wait()
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
		log := NewLog(w, slog.LevelInfo, "one")
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
		log := NewLog(&out, slog.LevelInfo, "one")
		log.LogAttrs(t.Context(), c.level, "request", slog.String("method", "GET"), slog.String("path", c.path),
			slog.Int("status", 404), slog.Float64("ms", 0.25), slog.String("request_id", strings.Repeat("1", 36)),
			slog.String("client", "2001:db8:1:2:3:4:5:6"), slog.String("trace_id", strings.Repeat("1", 32)),
			slog.Any("error", errors.New(c.cause)))
		line := out.String()
		if len(line) > c.most || !json.Valid([]byte(line)) || !strings.Contains(line, c.keeps) ||
			!strings.Contains(line, `"status":404`) {
			t.Errorf("%s: got %d bytes, %.200s; want JSON of at most %d with %.40q", c.name, len(line), line, c.most, c.keeps)
		}
	}
}
