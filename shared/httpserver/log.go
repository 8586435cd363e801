package httpserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gin-gonic/gin"

	"asset-registry/shared/failurelog"
	"asset-registry/shared/telemetry"
)

// ServiceName is the name of the attribute of the service that writes a line, as of OpenTelemetry.
const ServiceName = "service.name"

// NewLog returns a log of JSON lines. Each line has the name of the process's service, or the one of a With.
func NewLog(w io.Writer, level slog.Level, service string) *slog.Logger {
	unnamed := slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level})
	return slog.New(lineHandler{unnamed, unnamed}).With(ServiceName, service)
}

// lineHandler bounds the length of a line, and writes errors in plain words.
type lineHandler struct {
	slog.Handler
	unnamed slog.Handler // has no attributes
}

func (h lineHandler) Handle(ctx context.Context, r slog.Record) error {
	most := maxLine
	if r.Level >= slog.LevelError { // the line of a panic has a stack, so it needs more room
		most = maxErrorLine
	}
	if r.Level >= slog.LevelWarn {
		r = inWords(r)
	}
	return h.Handler.Handle(ctx, shortened(r, most))
}

func (h lineHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	if attrs[0].Key == ServiceName { // the name of a service in place of the process's
		h.Handler = h.unnamed
	}
	return lineHandler{h.Handler.WithAttrs(attrs), h.unnamed}
}

func (h lineHandler) WithGroup(name string) slog.Handler {
	return lineHandler{h.Handler.WithGroup(name), h.unnamed}
}

// words replaces the words of Go that errors have.
var words = strings.NewReplacer("context deadline exceeded", "no answer came in time",
	"context canceled", "it was ended", "unexpected EOF", "it ended too early", "EOF", "it ended too early")

// inWords returns a record with its errors in plain words.
func inWords(r slog.Record) slog.Record {
	told := slog.NewRecord(r.Time, r.Level, r.Message, r.PC)
	r.Attrs(func(a slog.Attr) bool {
		if err, isError := a.Value.Any().(error); isError {
			a.Value = slog.StringValue(words.Replace(err.Error()))
		}
		told.AddAttrs(a)
		return true
	})
	return told
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

// quietKey is the key under which Quiet marks a request.
const quietKey = "quiet"

// Quiet is middleware for health checks: their requests are logged at debug.
func Quiet(c *gin.Context) { c.Set(quietKey, true) }

type requestIDKey struct{}

// RequestID returns the id of the request that ctx belongs to, or "" outside of
// a request.
func RequestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}

// accessLog logs a line when a request ends, also if the request ends by a panic. Lines of requests that were refused
// or have failed are told together (causeOf). It counts answers with 503 as failures in the argument `refused`.
func accessLog(o Options, refused *failurelog.Log) gin.HandlerFunc {
	repeats := failurelog.NewRepeats(o.Log)
	return func(c *gin.Context) {
		start, path := time.Now(), c.Request.URL.Path // a handler may change the path
		id := c.GetHeader(RequestIDHeader)
		client := c.GetHeader(ClientHeader)
		defer func() {
			switch status := c.Writer.Status(); {
			case c.GetBool(quietKey):
			case status == http.StatusServiceUnavailable:
				refused.Failed(fmt.Errorf("%s %s: %w", method(c), c.FullPath(), lastError(c)))
			case status < http.StatusInternalServerError && isAPI(c.FullPath()):
				refused.Worked()
			}
			ctx, level := c.Request.Context(), logLevel(c, o.LogLevel)
			if !o.Log.Enabled(ctx, level) {
				return
			}
			by := callerOf(c)
			cause := causeOf(c, level, cmp.Or(by.KeyID, client))
			if cause.Status >= http.StatusBadRequest && !repeats.IsFirst(cause) {
				return
			}
			attrs := []slog.Attr{
				slog.String("method", c.Request.Method),
				slog.String("path", path),
				slog.Int("status", c.Writer.Status()),
				slog.Int("bytes", max(c.Writer.Size(), 0)),
				slog.Float64("ms", float64(time.Since(start).Microseconds())/1000),
				slog.String("request_id", id),
			}
			for _, known := range [...]slog.Attr{
				slog.String("client", client), slog.String("broker", by.Broker), slog.String("key", by.KeyID),
				slog.String("trace_id", telemetry.TraceID(ctx)),
			} {
				if known.Value.String() != "" {
					attrs = append(attrs, known)
				}
			}
			if last := c.Errors.Last(); last != nil {
				attrs = append(attrs, slog.String("error", last.Err.Error()))
			}
			o.Log.LogAttrs(ctx, level, "request", attrs...)
		}()
		c.Next()
	}
}

// logLevel returns the level of a request's log line. A 503 does not raise the level: accessLog logs it as a
// failure that repeats.
func logLevel(c *gin.Context, usual slog.Level) slog.Level {
	status := c.Writer.Status()
	switch {
	case c.GetBool(quietKey):
		return slog.LevelDebug
	case status >= http.StatusInternalServerError && status != http.StatusServiceUnavailable:
		return slog.LevelError
	default:
		return usual
	}
}

// maxCause is the number of bytes by which two errors are compared.
const maxCause = 200

// causeOf returns what the line of a request has in common with other lines: the key of a refusal, else the client, or
// the route and the error of a failure. A 503 is of one cause for all, because a service refuses all alike.
func causeOf(c *gin.Context, level slog.Level, client string) failurelog.Cause {
	cause := failurelog.Cause{Level: level, What: "request", Status: c.Writer.Status()}
	switch {
	case cause.Status < http.StatusInternalServerError:
		cause.Client = client
	case cause.Status != http.StatusServiceUnavailable:
		cause.Of = c.FullPath()
		if err := c.Errors.Last(); err != nil {
			text := err.Error()
			cause.Of += ": " + text[:min(len(text), maxCause)]
		}
	}
	return cause
}

// errElsewhere replaces an error in the log line of a service that did not get the error itself.
var errElsewhere = errors.New("another service refused the request; see its log")

// lastError returns the error that a request ended with.
func lastError(c *gin.Context) error {
	if last := c.Errors.Last(); last != nil {
		return last.Err
	}
	return errElsewhere
}
